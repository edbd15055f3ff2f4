# SPDX-License-Identifier: Apache-2.0
"""Output as it comes: streaming exec, log streams, joining again from an offset, and input."""

import base64
import contextlib
import http.client
import json
import struct
import threading
import urllib.parse

from cella_server import wait_until

FRAMES = "application/vnd.cella.stream"
NDJSON = "application/x-ndjson"


class Stream:
    """One request whose answer is read while it comes."""

    def __init__(self, sandbox, method, path, body=None, accept=None, headers=None):
        url = urllib.parse.urlsplit(sandbox.server.url)
        self.connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
        fields = {"Authorization": f"Bearer {sandbox.server.key}", **(headers or {})}
        if accept:
            fields["Accept"] = accept
        if body is not None:
            body = json.dumps(body)
            fields["Content-Type"] = "application/json"
        self.connection.request(method, sandbox.base + path, body, fields)
        self.answer = self.connection.getresponse()
        self.status, self.headers = self.answer.status, self.answer.headers

    def close(self):
        self.connection.close()

    def lines(self):
        while line := self.answer.readline():
            yield line.decode()

    def objects(self):
        for line in self.lines():
            yield json.loads(line)

    def exactly(self, size):
        data = self.answer.read(size)
        assert len(data) == size, "the stream was cut"
        return data

    def frame(self):
        """(type, payload), or None at the end."""
        head = self.answer.read(8)
        if not head:
            return None
        kind, size = struct.unpack(">B3xI", head)
        return kind, self.exactly(size)

    def frames(self):
        """(stdout, stderr, dropped, result) of the rest."""
        out, dropped, result = {1: bytearray(), 2: bytearray()}, 0, None
        while frame := self.frame():
            kind, data = frame
            if kind in out:
                out[kind] += data
            elif kind == 6:
                dropped += int(data)
            elif kind in (3, 4):
                result = json.loads(data)
        return bytes(out[1]), bytes(out[2]), dropped, result


def exec_stream(sandbox, command, accept=NDJSON, **fields):
    return contextlib.closing(Stream(sandbox, "POST", "/process", {"command": command, **fields},
                                     accept))


def log_stream(sandbox, process, query="", accept=None, headers=None):
    return contextlib.closing(Stream(sandbox, "GET", f"/process/{process}/logs/stream{query}",
                                     None, accept, headers))


def test_lines_come_before_the_end(shared_sandbox):
    command = "echo first; until [ -e /tmp/go-on ]; do sleep 0.01; done; echo second >&2; exit 3"
    with exec_stream(shared_sandbox, command, name="lines") as stream:
        assert stream.headers["Content-Type"] == NDJSON
        assert stream.headers["X-Cella-Process"] == "lines"
        objects = stream.objects()
        first = next(objects)
        assert (first["type"], first["data"], first["offset"]) == ("stdout", "first\n", 6)
        shared_sandbox.run("touch /tmp/go-on")
        rest = list(objects)
    assert [o["type"] for o in rest] == ["stderr", "result"]
    assert rest[0]["data"] == "second\n"
    result = json.loads(rest[1]["data"])
    assert result["exitCode"] == 3 and result["status"] == "failed" and result["name"] == "lines"
    assert str(result["pid"]) == stream.headers["X-Cella-Pid"]


def test_every_way_to_ask_for_it(shared_sandbox):
    for accept, query in (("text/event-stream", ""), (NDJSON, ""), (None, "?stream=true")):
        with contextlib.closing(Stream(shared_sandbox, "POST", "/process" + query,
                                       {"command": "echo hi"}, accept)) as stream:
            assert stream.status == 200
            assert stream.headers["Content-Type"] == NDJSON
            assert [o["type"] for o in stream.objects()] == ["stdout", "result"]


def test_a_command_that_cannot_start_is_an_ordinary_error(shared_sandbox):
    with exec_stream(shared_sandbox, "true", workingDir="/none") as stream:
        assert stream.status == 404
        assert json.loads(stream.answer.read())["error"]["code"] == "FILE_NOT_FOUND"


def test_big_binary_output_is_exact(shared_sandbox):
    command = "head -c 20000000 /dev/urandom | tee /tmp/random; head -c 3000000 /tmp/random >&2"
    with exec_stream(shared_sandbox, command, FRAMES) as stream:
        assert stream.headers["Content-Type"] == FRAMES
        out, err, dropped, result = stream.frames()
    assert len(out) == 20000000 and dropped == 0 and result["exitCode"] == 0
    assert out == shared_sandbox.read("/tmp/random")
    assert err == out[:3000000]
    shared_sandbox.run("rm /tmp/random")


def test_text_is_cut_between_characters(shared_sandbox):
    source = ("import os,time\n"
              "for b in 'aé€😀'.encode(): os.write(1, bytes([b])); time.sleep(0.02)\n"
              "os.write(1, b'\\xff\\xc3')\n")
    shared_sandbox.write("/tmp/bytes.py", source)
    with exec_stream(shared_sandbox, "python3 /tmp/bytes.py") as stream:
        objects = [o for o in stream.objects() if o["type"] == "stdout"]
    exact = b"".join(base64.b64decode(o["dataBase64"]) if "dataBase64" in o else o["data"].encode()
                     for o in objects)
    assert exact == "aé€😀".encode() + b"\xff\xc3"
    assert "".join(o["data"] for o in objects).startswith("aé€😀")
    assert objects[-1]["offset"] == len(exact)


def test_prefixed_lines_with_backlog(shared_sandbox):
    pid = shared_sandbox.spawn(
        "printf 'a\\nb'; echo e >&2; until [ -e /tmp/end-lines ]; do sleep 0.01; done; echo c")
    wait_until(lambda: shared_sandbox.logs(pid)["stderr"] == "e\n", 20, "the first lines")
    with log_stream(shared_sandbox, pid) as stream:
        assert stream.headers["Content-Type"].startswith("text/plain")
        lines = stream.lines()
        first = {next(lines), next(lines)}
        assert first == {"stdout:a\n", "stderr:e\n"}
        shared_sandbox.run("touch /tmp/end-lines")
        assert list(lines) == ["stdout:bc\n"]


def test_events_and_their_ids(shared_sandbox):
    done = shared_sandbox.exec("echo one; echo two")
    with log_stream(shared_sandbox, done.pid, accept="text/event-stream") as stream:
        assert stream.headers["Content-Type"] == "text/event-stream"
        text = "".join(stream.lines())
    events = [dict(line.split(": ", 1) for line in event.split("\n"))
              for event in text.strip().split("\n\n")]
    assert [e["event"] for e in events] == ["stdout", "result"]
    assert events[0]["id"] == "8"
    with log_stream(shared_sandbox, done.pid, accept="text/event-stream",
                    headers={"Last-Event-ID": "4"}) as stream:
        assert '"data":"two\\n"' in "".join(stream.lines())


def test_from_an_offset_and_without_following(shared_sandbox):
    pid = shared_sandbox.spawn("echo abcdef; exec sleep 100")
    wait_until(lambda: shared_sandbox.logs(pid)["stdout"], 20, "the line")
    with log_stream(shared_sandbox, pid, "?offset=3&follow=false", FRAMES) as stream:
        out, _, dropped, result = stream.frames()
    assert (out, dropped, result["status"]) == (b"def\n", 0, "running")
    shared_sandbox.request("POST", f"/process/{pid}/kill")
    for query in ("?offset=-1", "?offset=x", "?follow=perhaps"):
        answer = shared_sandbox.request("GET", f"/process/{pid}/logs/stream{query}")
        assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT")
    answer = shared_sandbox.request("GET", "/process/nobody/logs/stream")
    assert (answer.status, answer.error()) == (404, "PROCESS_NOT_FOUND")


def test_combined_log_is_in_order(shared_sandbox):
    pid = shared_sandbox.spawn(
        "while read line; do echo $line; done", name="ordered", stdin=True)
    wait_until(lambda: write(shared_sandbox, pid, b"1\n") == 200, 20, "input")
    wait_until(lambda: shared_sandbox.logs(pid)["stdout"] == "1\n", 20, "1")
    logs = shared_sandbox.logs(pid)
    assert logs["logs"] == "1\n" and logs["pid"] == pid
    shared_sandbox.request("POST", "/process/ordered/kill")
    # Each line is written when the one before was seen.
    pid = shared_sandbox.spawn(
        "n=0; while read line; do n=$((n+1)); [ $((n % 2)) = 0 ] && echo $n || echo $n >&2; done",
        stdin=True)
    for n in range(1, 9):
        assert write(shared_sandbox, pid, b"x\n") == 200
        wait_until(lambda n=n: str(n) in shared_sandbox.logs(pid)["logs"], 20, f"line {n}")
    logs = shared_sandbox.logs(pid)
    assert logs["logs"].split() == [str(n) for n in range(1, 9)]
    assert logs["stdout"].split() == ["2", "4", "6", "8"]
    raw = shared_sandbox.request("GET", f"/process/{pid}/logs?stream=both", None,
                                 {"Accept": "application/octet-stream"})
    assert raw.body.decode() == logs["logs"]
    shared_sandbox.request("POST", f"/process/{pid}/kill")


# --- input ---


def write(sandbox, process, data):
    return sandbox.request("POST", f"/process/{process}/stdin", data,
                           {"Content-Type": "application/octet-stream"}, timeout=60).status


def test_input_of_any_size(shared_sandbox):
    data = bytes(range(256)) * 20000  # 5 MB, more than every buffer on the way
    with exec_stream(shared_sandbox, "cat", FRAMES, name="mirror", stdin=True) as stream:
        sent = threading.Thread(target=lambda: statuses.append(
            (write(shared_sandbox, "mirror", data),
             shared_sandbox.request("DELETE", "/process/mirror/stdin").status)))
        statuses = []
        sent.start()
        out, _, dropped, result = stream.frames()
        sent.join()
    assert statuses == [(200, 200)]
    assert out == data and dropped == 0 and result["exitCode"] == 0 and result["stdin"] is False


def test_input_at_the_start(shared_sandbox):
    assert shared_sandbox.exec("cat", stdin="all of it").stdout == "all of it"
    assert shared_sandbox.exec("cat", stdin="").stdout == ""
    pid = shared_sandbox.spawn("cat", stdin="first ")
    assert write(shared_sandbox, pid, b"second") == 200
    assert shared_sandbox.request("DELETE", f"/process/{pid}/stdin").status == 200
    wait_until(lambda: shared_sandbox.request("GET", f"/process/{pid}").json()["exitCode"] == 0, 20,
               "the end")
    assert shared_sandbox.logs(pid)["stdout"] == "first second"


def test_input_refused(shared_sandbox):
    pid = shared_sandbox.spawn("exec sleep 100")
    for method in ("POST", "DELETE"):
        answer = shared_sandbox.request(method, f"/process/{pid}/stdin", b"" if method == "POST"
                                        else None, {"Content-Type": "application/octet-stream"})
        assert (answer.status, answer.error()) == (409, "NO_STDIN"), answer
    shared_sandbox.request("POST", f"/process/{pid}/kill")
    done = shared_sandbox.exec("cat", stdin="x")
    answer = shared_sandbox.request("POST", f"/process/{done.pid}/stdin", b"y",
                                    {"Content-Type": "application/octet-stream"})
    assert (answer.status, answer.error()) == (409, "STDIN_CLOSED")
    answer = shared_sandbox.request("POST", "/process/nobody/stdin", b"y",
                                    {"Content-Type": "application/octet-stream"})
    assert (answer.status, answer.error()) == (404, "PROCESS_NOT_FOUND")
    answer = shared_sandbox.request("POST", "/process", {"command": "cat", "stdin": "x" * 70000})
    assert (answer.status, answer.error()) == (413, "PAYLOAD_TOO_LARGE")


# --- slow readers, lost connections ---


def rss_kib(pid):
    with open(f"/proc/{pid}/status", encoding="ascii") as status:
        return int(next(line for line in status if line.startswith("VmRSS")).split()[1])


def test_a_slow_reader_takes_no_memory(server, sandbox):
    """A reader that does not read: the process waits, and so does everything in between."""
    before = rss_kib(server.pids().cellad)
    with exec_stream(sandbox, "head -c 200000000 /dev/zero", FRAMES, name="flood") as stream:
        totals = []
        # The answer comes when the shell runs; it may not have become `head` yet.
        wait_until(lambda: sandbox.exec("pgrep -x head").stdout, 20, "the program")

        def standing_still():
            totals.append(sandbox.run("cat /proc/$(pgrep -x head)/io | grep wchar"))
            return len(totals) > 20 and len(set(totals[-20:])) == 1

        wait_until(standing_still, 60, "the process waits")
        assert int(totals[-1].split()[1]) < 100000000
        assert rss_kib(server.pids().cellad) - before < 20000
        out, _, dropped, result = stream.frames()
        assert len(out) == 200000000 and dropped == 0 and result["exitCode"] == 0


def test_a_client_that_goes_leaves_the_process(sandbox):
    with exec_stream(sandbox, "head -c 30000000 /dev/zero; echo done >&2", FRAMES,
                     name="left") as stream:
        stream.exactly(8)
    wait_until(lambda: sandbox.request("GET", "/process/left").json()["exitCode"] == 0, 30,
               "the end of it")
    assert sandbox.logs("left")["stderr"] == "done\n"


def test_cellad_dies_under_a_stream(server_factory):
    """Everything that was told is followed by everything that was not, from the offset reached."""
    server = server_factory()
    box = server.create()
    command = "i=0; while [ $i -lt 400 ]; do echo line $i; i=$((i+1)); sleep 0.005; done"
    got, offset = b"", 0
    with exec_stream(box, command, NDJSON, name="survivor") as stream:
        objects = stream.objects()
        while offset < 500:
            line = next(objects)
            got += line["data"].encode()
            offset = line["offset"]
        before = server.kill("cellad")
    server.wait_recovered(before, "cellad")
    with log_stream(box, "survivor", f"?offset={offset}", FRAMES) as stream:
        out, _, dropped, result = stream.frames()
    assert dropped == 0 and result["exitCode"] == 0
    assert got + out == "".join(f"line {i}\n" for i in range(400)).encode()
