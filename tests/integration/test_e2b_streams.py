# SPDX-License-Identifier: Apache-2.0
"""Streams of E2B's protocol when one end does what it should not: clients that vanish, sandboxes and
servers that die, and watchers that nobody fetches."""

import base64
import concurrent.futures
import json
import socket
import threading

import pytest

from cella_server import Server, wait_until
from e2b_box import CONNECT, END, START, Box, envelope, error_of, shell

FILESYSTEM = "/filesystem.Filesystem"


@pytest.fixture(scope="module")
def own():
    """A server that these tests may kill."""
    made = Server()
    yield made
    made.close()


@pytest.fixture(scope="module")
def box(own):
    return Box(own)


def started(found):
    """The pid of the first event."""
    flags, message = next(found)
    assert flags == 0, message
    return message["event"]["start"]["pid"]


def pids(box):
    return [process["pid"] for process in box.processes()]


# --- clients ---

def test_a_client_that_vanishes_leaves_its_command_running(box):
    with box.open_stream(START, shell("echo one; sleep 1000")) as found:
        pid = started(found)
        assert next(found)[1]["event"]["data"]
    assert pid in pids(box)
    with box.open_stream(CONNECT, {"process": {"pid": pid}}) as found:
        assert started(found) == pid
        box.call("POST", "/process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})
        assert [message for _, message in found][-2]["event"]["end"]["status"] == "signal: killed"


def test_a_client_that_does_not_read_holds_up_nobody_else(box):
    """Its command waits, as the reader of a pipe would make it wait; memory does not grow."""
    with box.open_stream(START, shell("yes | head -c 300000000")) as found:
        pid = started(found)
        assert box.run("echo others") == b"others\n"
        assert pid in pids(box)
    box.call("POST", "/process.Process/SendSignal", {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"})


def test_many_viewers_of_one_process(box):
    with box.open_stream(START, shell("read line; echo got $line")) as found:
        pid = started(found)
        with box.open_stream(CONNECT, {"process": {"pid": pid}}) as second:
            assert started(second) == pid
            sent = box.call("POST", "/process.Process/SendInput", {
                "process": {"pid": str(pid)}, "input": {"stdin": base64.b64encode(b"this\n").decode().rstrip("=")}})
            assert sent.status == 200, sent
            for viewer in (found, second):
                data = [m["event"]["data"]["stdout"] for _, m in viewer if "data" in m.get("event", {})]
                assert b"".join(map(base64.b64decode, data)) == b"got this\n"


def test_a_call_that_waits_ends_in_its_time(box):
    """Nobody reads what is sent: the client's time-out is kept all the same."""
    with box.open_stream(START, shell("sleep 1000")) as found:
        pid = started(found)
        body = {"process": {"pid": pid}, "input": {"stdin": base64.b64encode(bytes(4 << 20)).decode()}}
        answer = box.call("POST", "/process.Process/SendInput", body, Connect_Timeout_Ms="500")
        assert (answer.status, answer.json()["code"]) == (504, "deadline_exceeded"), answer
        gone = box.call("POST", "/process.Process/SendSignal", {"process": {"pid": pid}, "signal": 9})
        assert gone.status == 200, gone


@pytest.mark.parametrize("fields, code", [
    ({"Content_Type": "application/json"}, 415), ({"Content_Type": "text/plain"}, 415),
    ({"Content_Type": "application/connect+proto"}, "invalid_argument"),
    ({"Connect_Content_Encoding": "gzip"}, "unimplemented"), ({"Connect_Protocol_Version": "2"}, "invalid_argument"),
    ({"Connect_Timeout_Ms": "soon"}, "invalid_argument"), ({"Connect_Timeout_Ms": "-1"}, "invalid_argument"),
    ({"Keepalive_Ping_Interval": "x"}, "invalid_argument"),
    ({"Authorization": "Basic !!!"}, "unauthenticated"), ({"Authorization": "Basic bm9ib2R5Og=="}, "invalid_argument")],
    ids=lambda value: "" if not isinstance(value, dict) else "=".join(*value.items()))
def test_streams_that_are_none(box, fields, code):
    fields = {"Content_Type": "application/connect+json", **fields}
    answer = box.call("POST", START, envelope(shell("true")), **fields)
    if isinstance(code, int):
        assert (answer.status, answer.headers["Accept-Post"]) == (code, "application/connect+json"), answer
    else:
        assert answer.status == 200
        assert error_of([(answer.body[0], json.loads(answer.body[5:]))]) == code


@pytest.mark.parametrize("fields, status, code", [
    ({"Content_Type": "application/connect+json"}, 200, None), ({"Content_Type": "application/proto"}, 415, None),
    ({"Content_Encoding": "gzip"}, 404, "unimplemented"), ({"Connect_Protocol_Version": "2"}, 400, "invalid_argument"),
    ({"Connect_Timeout_Ms": "x"}, 400, "invalid_argument"), ({"Connect_Timeout_Ms": "0"}, 200, None)],
    ids=lambda value: "" if not isinstance(value, dict) else "=".join(*value.items()))
def test_calls_that_are_none(box, fields, status, code):
    body = json.dumps({"path": "/tmp"}).encode()
    answer = box.call("POST", f"{FILESYSTEM}/Stat", body, **{"Content_Type": "application/json", **fields})
    assert answer.status == status, answer
    if fields.get("Content_Type") == "application/connect+json":
        assert b"415" in answer.body or b"takes application/json" in answer.body
    elif code:
        assert answer.json()["code"] == code


def raw_start(box, fields, *pieces, cut=False):
    """A Start whose body is sent piece by piece: all that is answered. cut: nothing more will come."""
    host, port = box.server.url.split("//")[1].split(":")
    fields = {"Host": host, "Connection": "close", **box.fields(Content_Type="application/connect+json", **fields)}
    head = f"POST {START} HTTP/1.1\r\n" + "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    with socket.create_connection((host, int(port)), 60) as connection:
        connection.sendall(head.encode() + b"\r\n")
        for piece in pieces:
            connection.sendall(piece)
        if cut:
            connection.shutdown(socket.SHUT_WR)
        return b"".join(iter(lambda: connection.recv(65536), b""))


def chunk(piece):
    return b"%x\r\n%s\r\n" % (len(piece), piece)


def test_a_request_comes_whole_or_starts_nothing(box):
    sleep, echo = envelope(shell("exec sleep 1001")), envelope(shell("echo slowly"))
    assert b'"start"' not in raw_start(box, {"Content_Length": len(sleep)}, sleep[:-1], cut=True)
    assert b'"start"' not in raw_start(box, {"Transfer_Encoding": "chunked"}, chunk(sleep), cut=True)
    assert b'"start"' not in raw_start(box, {"Transfer_Encoding": "chunked"}, chunk(sleep), b"zz\r\n")
    assert "1001" not in str(box.processes())
    answer = raw_start(box, {"Transfer_Encoding": "chunked"}, *(chunk(bytes([byte])) for byte in echo), chunk(b""))
    assert base64.b64encode(b"slowly\n") in answer and b'"exitCode":0' in answer


def test_messages_that_are_too_large(box):
    answer = box.call("POST", f"{FILESYSTEM}/Stat", b'{"path":"' + b"x" * (25 << 20) + b'"}',
                      Content_Type="application/json")
    assert (answer.status, answer.json()["code"]) == (413, "invalid_argument"), answer


# --- sandboxes ---

def test_a_sandbox_that_dies_ends_its_streams(own):
    """commands.run, watchDir and runCode end, and say why; none hangs."""
    made = Box(own)
    ready = threading.Barrier(4)

    def follow(method, message):
        with made.open_stream(method, message) as found:
            next(found)
            ready.wait(60)
            return list(found)[-1]

    def execute():
        connection = own.connection(60)
        try:
            body = json.dumps({"code": "import time\nprint(1, flush=True)\ntime.sleep(1000)"})
            connection.request("POST", "/execute", body, made.fields(49999, Content_Type="application/json"))
            answer = connection.getresponse()
            answer.readline()
            ready.wait(60)
            return [json.loads(line) for line in answer.read().splitlines()]
        finally:
            connection.close()

    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        run = pool.submit(follow, START, shell("sleep 1000"))
        watch = pool.submit(follow, f"{FILESYSTEM}/WatchDir", {"path": "/tmp"})
        code = pool.submit(execute)
        ready.wait(60)
        made.kill()
        for stream in (run, watch):
            flags, message = stream.result(60)
            assert flags == END and message["error"]["code"] == "unavailable", message
        types = [event["type"] for event in code.result(60)]
        assert types[0] == "error" and types[-1] == "end_of_execution", types
    assert made.call("GET", "/health").status == 502


def test_what_runs_outlives_the_server(own, box):
    """kill -9 in the middle of a stream: the command goes on, and is found again by its pid."""
    before = own.pids()
    with box.open_stream(START, shell("echo one; read x; echo two")) as found:
        pid = started(found)
        next(found)
        own.kill("cellad")
        with pytest.raises(Exception):
            assert list(found)[-1][0] == END  # cut off, never ended as if it were whole
            raise AssertionError("the stream ended well")
    own.wait_recovered(before, "cellad")
    wait_until(lambda: box.call("GET", "/health").status == 204, 30, "the sandbox, again")
    assert pid in pids(box)
    with box.open_stream(CONNECT, {"process": {"pid": pid}}) as found:
        assert started(found) == pid
        box.call("POST", "/process.Process/SendInput", {"process": {"pid": pid}, "input": {"stdin": "Cg=="}})
        events = [message["event"] for flags, message in found if flags == 0]
    assert events[-1]["end"]["exitCode"] == 0
    assert base64.b64decode(events[-2]["data"]["stdout"]) == b"two\n"


# --- watchers ---

def watcher(box, call, **message):
    return box.call("POST", f"{FILESYSTEM}/{call}", message)


def test_watchers_are_counted_and_given_back(box):
    made = []
    while (answer := watcher(box, "CreateWatcher", path="/tmp")).status == 200 and len(made) < 100:
        made.append(answer.json()["watcherId"])
    assert (answer.status, answer.json()["code"]) == (429, "resource_exhausted"), answer
    assert answer.headers["Retry-After"] == "1"
    assert watcher(box, "RemoveWatcher", watcher_id=made.pop()).status == 200
    assert watcher(box, "RemoveWatcher", watcherId="nope").status == 404
    wait_until(lambda: (answer := watcher(box, "CreateWatcher", path="/tmp")).status == 200 and
               made.append(answer.json()["watcherId"]) is None, 30, "a place for another one")
    for name in made:
        assert watcher(box, "RemoveWatcher", watcherId=name).status == 200
    assert watcher(box, "CreateWatcher", path="/etc/passwd").status == 400
    assert watcher(box, "CreateWatcher", path="/nope").status == 404


def test_a_watcher_ends_with_its_directory(box):
    box.run("mkdir -p /tmp/watched/below")
    name = watcher(box, "CreateWatcher", path="/tmp/watched", recursive=True).json()["watcherId"]
    box.run("touch /tmp/watched/below/file; rm -r /tmp/watched")
    seen = []

    def ended():
        answer = watcher(box, "GetWatcherEvents", watcherId=name)
        if answer.status == 200:
            seen.extend(answer.json()["events"])
        return answer.status == 404
    wait_until(ended, 30, "the end of the watch")
    assert "below/file" in [event["name"] for event in seen]


def test_watchers_of_another_sandbox(own, box):
    other = Box(own)
    name = watcher(box, "CreateWatcher", path="/tmp").json()["watcherId"]
    assert watcher(other, "GetWatcherEvents", watcherId=name).status == 404
    assert watcher(other, "RemoveWatcher", watcherId=name).status == 404
    assert watcher(box, "RemoveWatcher", watcherId=name).status == 200
    other.kill()


def test_lists_of_several_levels_have_metadata(box):
    for path in ("tree/a/b.txt", "tree/c.txt"):
        answer = box.call("POST", f"/files?path={path}", b"x", Content_Type="application/octet-stream",
                          X_Metadata_Color="red")
        assert answer.status == 200, answer
    for depth in (1, 2, "3"):
        listed = box.call("POST", f"{FILESYSTEM}/ListDir", {"path": "tree", "depth": depth}).json()["entries"]
        found = {entry["name"]: entry.get("metadata") for entry in listed}
        assert found["c.txt"] == {"color": "red"} and found["a"] is None
        assert ("b.txt" in found) == (depth != 1)
        assert found.get("b.txt", {"color": "red"}) == {"color": "red"}
