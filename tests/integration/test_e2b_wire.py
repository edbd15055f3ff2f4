# SPDX-License-Identifier: Apache-2.0
"""E2B's protocol without its clients: what they never send, and what older ones do. tests/clients runs
the clients themselves."""

import base64
import gzip
import time

import pytest

from cella_server import wait_until
from e2b_box import START, Box, envelope, error_of, shell


@pytest.fixture(scope="module")
def box(server):
    made = Box(server)
    yield made
    made.kill()


ECHO = shell("echo hi")


def test_a_stream_is_as_it_was_recorded(box):
    answer, found = box.stream(START, ECHO)
    assert answer.headers["Content-Type"] == "application/connect+json"
    assert [next(iter(m["event"])) for _, m in found[:-1]] == ["start", "data", "end"]
    assert found[1][1] == {"event": {"data": {"stdout": base64.b64encode(b"hi\n").decode()}}}
    assert found[2][1] == {"event": {"end": {"exitCode": 0, "exited": True, "status": "exit status 0"}}}
    assert found[3] == (2, {})


@pytest.mark.parametrize("body", [
    b"", b"\0\0", b"\0\0\0\0\x05{}", b"\0\0\0\0\x01{}", b"\x01\0\0\0\x02{}", b"\0\xff\xff\xff\xff{}",
    envelope(ECHO) + envelope(ECHO), b"\0\0\0\0\x02[]", b"\0\0\0\0\x01{", b"\0\0\0\0\x02\xff\xfe"],
    ids=["empty", "cut header", "cut message", "more behind it", "compressed", "huge", "two", "no object",
         "no json", "no text"])
def test_broken_envelopes_are_told(box, body):
    answer, found = box.stream(START, body)
    assert answer.status == 200
    # An empty message has all its defaults, and then names no process.
    assert error_of(found) == "invalid_argument"


@pytest.mark.parametrize("method, message, status, code", [
    ("/filesystem.Filesystem/Nope", {}, 404, "unimplemented"),
    ("/process.Process/StreamInput", {}, 415, "invalid_argument"),
    ("/filesystem.Filesystem/Stat", {"path": "nope"}, 404, "not_found"),
    ("/filesystem.Filesystem/Stat", {"path": 7}, 400, "invalid_argument"),
    ("/filesystem.Filesystem/Stat", {"path": "../../../../x"}, 400, "invalid_argument"),
    ("/filesystem.Filesystem/Stat", {"path": "x" * 5000}, 400, "invalid_argument"),
    ("/filesystem.Filesystem/GetWatcherEvents", {"watcherId": "x"}, 404, "not_found"),
    ("/process.Process/SendInput", {"process": {"pid": 1}, "input": {"stdin": "not base64!"}}, 400,
     "invalid_argument"),
    ("/process.Process/SendInput", {"process": {"pid": 99999}, "input": {"stdin": ""}}, 404, "not_found"),
    ("/process.Process/SendInput", {"process": {}, "input": {"stdin": ""}}, 400, "invalid_argument"),
    ("/process.Process/SendSignal", {"process": {"pid": 99999}, "signal": "SIGNAL_SIGKILL"}, 404, "not_found"),
    ("/process.Process/SendSignal", {"process": {"pid": 99999}, "signal": "SIGNAL_NOPE"}, 400,
     "invalid_argument"),
])
def test_bad_calls_are_told(box, method, message, status, code):
    answer = box.call("POST", method, message)
    assert (answer.status, answer.json()["code"]) == (status, code), answer


def test_protobuf_is_refused(box):
    answer = box.call("POST", "/filesystem.Filesystem/Stat", b"\x0a\x01x", Content_Type="application/proto")
    assert (answer.status, answer.json()["code"]) == (415, "invalid_argument")


def test_the_time_of_a_stream_ends_its_command(box):
    _, found = box.stream(START, {"process": {"cmd": "/bin/sleep", "args": ["1000"]}}, Connect_Timeout_Ms="300")
    assert found[-1][1]["error"]["code"] == "deadline_exceeded"
    listed = box.call("POST", "/process.Process/List", {}).json()["processes"]
    assert not [p for p in listed if p["config"]["cmd"] == "/bin/sleep"]


def test_keepalives_are_sent(box):
    _, found = box.stream(START, {"process": {"cmd": "/bin/sleep", "args": ["2.5"]}}, Keepalive_Ping_Interval="1")
    assert (0, {"event": {"keepalive": {}}}) in found


def test_a_tag_finds_its_process(box):
    _, found = box.stream(START, {"process": {"cmd": "/bin/bash", "args": ["-c", "sleep 1000 & disown"]},
                                  "tag": "tagged"})
    assert found[-1] == (2, {})
    gone = box.call("POST", "/process.Process/SendSignal",
                    {"process": {"tag": "tagged"}, "signal": "SIGNAL_SIGTERM"})
    assert gone.status == 404


def test_an_open_sandbox_asks_for_none(server):
    made = Box(server, secure=False)
    try:
        assert "envdAccessToken" not in made.about
        assert made.call("GET", "/files?path=/etc/hostname", token=False).status == 200
    finally:
        made.kill()


def test_files_are_sent_in_gzip_and_raw(box):
    content = bytes(range(256)) * 4000
    for encoding, body in (("identity", content), ("gzip", gzip.compress(content)),
                           ("gzip", gzip.compress(content[:9]) + gzip.compress(content[9:]))):
        answer = box.call("POST", "/files?path=z.bin", body, Content_Type="application/octet-stream",
                          Content_Encoding=encoding)
        assert answer.status == 200, answer
        assert box.call("GET", "/files?path=z.bin").body == content
    for encoding, body in (("gzip", b"no gzip"), ("gzip", gzip.compress(content)[:-20]), ("br", content)):
        answer = box.call("POST", "/files?path=bad.bin", body, Content_Type="application/octet-stream",
                          Content_Encoding=encoding)
        assert answer.status == 400, answer
    assert box.call("GET", "/files?path=bad.bin").status == 404


def test_paths_named_as_ours_belong_to_a_sandboxs_program(server, box):
    """A program behind a port may have a /files of its own."""
    answer = box.call("GET", "/files?path=/etc/hostname", port=3456)
    assert answer.status == 502, answer


def test_sandboxes_of_other_apis_are_not_opened(server, sandbox):
    """A field of E2B's is no way around the rules of a port."""
    fields = {"Authorization": None, "E2b-Sandbox-Id": sandbox.get()["metadata"]["id"], "E2b-Sandbox-Port": "8080"}
    assert server.request("GET", "/", None, fields).status == 502
    fields["E2b-Sandbox-Port"] = "49983"
    assert server.request("GET", "/files?path=/etc/passwd", None, fields).status == 401


def test_a_dash_in_a_name_is_no_clients_id(server, box):
    assert box.control("GET", f"/sandboxes/{box.id}-cella").status == 200
    other = server.create("web")
    assert box.control("DELETE", "/sandboxes/web-2").status == 404
    assert other.get()["status"] == "running"
    other.delete()


def test_bad_creates_are_told(server, box):
    for body in ({"metadata": {"a": 1}}, {"timeout": -1}, {"timeout": "x"}, {"envVars": {"A": 1}},
                 {"envVars": {"not a name": ""}}, {"network": {"allowOut": [1]}}, {"metadata": {"a": "x" * 40000}},
                 {"autoResume": {"enabled": True}}, {"autoPause": 1}, {"autoPauseMemory": "no"},
                 {"autoPause": True, "autoPauseMemory": False, "autoResume": {"enabled": True}},
                 {"volumeMounts": [{"name": "a", "path": "/a"}]}):
        answer = box.control("POST", "/v2/sandboxes", {"templateID": "base", **body})
        assert answer.status in (400, 413) and answer.json()["code"] == answer.status, (body, answer)
        assert answer.json()["message"]


def test_the_first_generation_of_routes(server, box):
    assert box.id in [item["sandboxID"] for item in box.control("GET", "/sandboxes").json()]
    assert box.control("POST", f"/sandboxes/{box.id}-cella/timeout", {"timeout": 900}).status == 204
    assert box.control("POST", f"/sandboxes/{box.id}/refreshes", {"duration": 60}).status == 204
    assert box.control("POST", f"/sandboxes/{box.id}/resume", {"timeout": 900}).status == 409
    assert box.control("POST", f"/sandboxes/{box.id}/connect", {"timeout": 900}).status == 200
    logs = box.control("GET", f"/sandboxes/{box.id}/logs").json()
    assert logs["logs"] and logs["logEntries"]
    assert box.control("GET", "/templates/aliases/base").status == 200
    assert box.control("GET", "/templates/aliases/nope").json()["code"] == 404


def test_paused_with_and_without_memory(server):
    made = Box(server)
    path = f"/sandboxes/{made.id}"
    state = lambda: server.sandbox(made.id).status()  # noqa: E731
    born = server.sandbox(made.id).init_start_time()
    for body in (None, {}, {"memory": True}):
        assert made.control("POST", f"{path}/pause", body).status == 204
        assert state() == "paused" and made.control("GET", path).json()["state"] == "paused"
        assert made.control("POST", f"{path}/pause", body).status == 409
        assert made.call("GET", "/health").status == 502
        assert made.control("POST", f"/v2{path}/connect", {"timeout": 900}).status == 201
        assert server.sandbox(made.id).init_start_time() == born
    assert made.control("POST", f"{path}/pause", {"memory": 1}).status == 400
    # Only the files: by the pause, or by who comes back.
    assert made.control("POST", f"{path}/pause", {"memory": False}).status == 204
    assert state() == "stopped" and made.control("GET", path).json()["state"] == "paused"
    assert made.control("POST", f"{path}/resume", {"timeout": 900}).status == 201
    second = server.sandbox(made.id).init_start_time()
    assert second != born
    assert made.control("POST", f"{path}/pause", {}).status == 204
    assert made.control("POST", f"/v2{path}/connect", {"timeout": 900, "memory": False}).status == 201
    assert server.sandbox(made.id).init_start_time() not in (born, second)
    made.kill()


def test_what_was_made_outlives_the_server(server_factory):
    own = server_factory()
    made = Box(own, metadata={"kept": "yes"})
    watcher = made.call("POST", "/filesystem.Filesystem/CreateWatcher", {"path": "/tmp"})
    assert watcher.status == 200, watcher
    before = own.pids()
    own.kill("cellad")
    own.wait_recovered(before, "cellad")
    wait_until(lambda: made.call("GET", "/health").status == 204, 30, "the sandbox, again")
    about = made.control("GET", f"/sandboxes/{made.id}").json()
    assert about["metadata"] == {"kept": "yes"}
    assert about["envdAccessToken"] == made.about["envdAccessToken"]
    assert made.call("GET", "/files?path=/etc/hostname").status == 200
    made.kill()


def test_a_key_is_shown_in_e2bs_form(server):
    name = f"e2b-{time.time_ns()}"
    done = server.cli("key", "create", name, "--e2b")
    assert done.returncode == 0, done
    key = done.stdout.split()[-1]
    assert key.startswith("e2b_") and set(key[4:]) <= set("0123456789abcdef")
    assert server.request("GET", "/v2/sandboxes", None, {"Authorization": None, "X-API-KEY": key}).status == 200
    assert server.cli("key", "delete", name).returncode == 0
    assert server.request("GET", "/v2/sandboxes", None, {"Authorization": None, "X-API-KEY": key}).status == 401


def test_moving_and_owning(box):
    """What no client of theirs asks: to another file system, onto something, as somebody else."""
    def run(command):
        _, found = box.stream(START, {"process": {"cmd": "/bin/bash", "args": ["-c", command]}})
        assert found[-1] == (2, {}), found
        return found

    def move(source, destination):
        return box.call("POST", "/filesystem.Filesystem/Move", {"source": source, "destination": destination},
                        Authorization="Basic " + base64.b64encode(b"root:").decode())

    run("mkdir -p d/e; echo 1 > d/a; echo 2 > d/b; sudo rm -rf /usr/moved")
    assert move("/home/user/d/a", "/home/user/d/b").status == 200
    assert box.call("GET", "/files?path=d/b").body == b"1\n"
    moved = move("/home/user/d/b", "/usr/moved/b")
    assert moved.status == 200, moved
    assert moved.json()["entry"]["owner"] == "user"
    assert box.call("GET", "/files?path=/usr/moved/b").body == b"1\n"
    assert box.call("GET", "/files?path=d/b").status == 404
    assert move("/home/user/d/e", "/usr/moved/e").status == 400
    assert move("/home/user/d", "/home/user/d/e/f").status >= 400
    assert move("/home/user/nope", "/home/user/d/x").status == 404
