# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: /ready says no at once, what is under way ends, and then the server does; sandboxes as it was told."""

import base64
import json
import signal
import threading

import pytest

from cella_exec import ExecSocket
from cella_server import PATIENCE, Server, wait_until
from e2b_box import END, START, STREAM_TYPE, Box, envelope, frames, shell


@pytest.fixture
def made(request):
    def make(*args):
        server = Server(*args)
        request.addfinalizer(lambda: close(server, args))
        return server
    return make


def close(server, args):
    """An ordinary server cleans up after one that was told how to end."""
    server.process.kill()
    server.process.wait()
    server.args = [arg for arg in server.args if arg not in args]
    server.close()


def start_slow(server, box):
    """A request that ends when the file /tmp/go is there; [its answer] once there is one."""
    answers = []

    def ask():
        answers.append(server.request("POST", f"/v0/sandbox/{box.name}/process", {
            "command": "touch /tmp/begun; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo whole",
            "waitForCompletion": True}, timeout=60 * PATIENCE))

    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: box.exec("test -e /tmp/begun").exit_code == 0, 30, "the slow command")
    return thread, answers


def test_what_is_under_way_ends_and_ready_says_no(made):
    server = made("--drain-delay", "60s", "--drain-timeout", "60s")
    box = server.create()
    assert server.request("GET", "/ready").status == 200
    thread, answers = start_slow(server, box)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: server.request("GET", "/ready").status == 503, 30, "/ready says no")
    said = server.request("GET", "/ready")
    assert "drain" in said.text, said
    assert server.request("GET", "/health").status == 200
    assert box.exec("touch /tmp/go").exit_code == 0  # still served: the delay is for load balancers
    thread.join(60 * PATIENCE)
    assert answers and answers[0].status in (200, 201), answers
    assert "whole" in answers[0].text
    server.process.send_signal(signal.SIGTERM)  # a second one ends the waiting
    assert server.process.wait(60 * PATIENCE) == 0


def test_a_websocket_is_told_at_once_that_the_server_goes(made):
    server = made("--drain-timeout", "60s")
    box = server.create()
    thread, answers = start_slow(server, box)
    socket = ExecSocket(server, box.name)
    socket.start("a", "echo on; sleep 1000")
    socket.await_("a", "stdout")
    server.process.send_signal(signal.SIGTERM)
    while socket.take() is not None:
        pass
    assert socket.ws.close_code == 1001
    assert server.process.poll() is None and not answers  # a request has the timeout, a WebSocket has not
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60 * PATIENCE) == 0
    thread.join(60 * PATIENCE)
    assert answers and answers[0].status == 503, answers


def test_sandboxes_can_be_kept(made):
    server = made("--keep-sandboxes")
    box = server.create()
    pid = box.exec("sleep 1000 & echo $!").stdout.strip()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60 * PATIENCE) == 0
    server.start()
    wait_until(lambda: box.status() == "running", 30, "it is running")
    assert box.exec(f"kill -0 {pid}").exit_code == 0


class Stream:
    """A request whose answer does not end: what came first, and, after the server's end, all the rest of it."""

    def __init__(self, server, method, path, body, fields):
        self.connection = server.connection(60)
        if isinstance(body, dict):
            fields = {"Content-Type": "application/json", **fields}
            body = json.dumps(body).encode()
        self.connection.request(method, path, body, {"Authorization": f"Bearer {server.key}", **fields})
        self.answer = None

    def first(self, size=1):
        """The answer has begun, and some of it is here."""
        self.answer = self.answer or self.connection.getresponse()
        assert self.answer.status == 200, (self.answer.status, self.answer.read())
        self.begun = self.answer.read(size) if size else b""
        return self

    def rest(self):
        """Everything, to an end that is one: a connection that is cut fails here."""
        text = self.begun + self.answer.read()
        self.connection.close()
        return text

    def lines(self):
        return [json.loads(line) for line in self.rest().splitlines()]


def test_streams_are_told_in_their_own_way(made):
    server = made("--drain-timeout", "0s")
    box, e2b = server.create(), Box(server)
    base = f"/v0/sandbox/{box.name}"
    events, ndjson = {"Accept": "text/event-stream"}, {"Accept": "application/x-ndjson"}
    answer = server.request("POST", "/v1/sandboxes", {"template": "base", "timeout": 3600},
                            {"Authorization": None, "X-API-KEY": server.key})
    scalebox = {"Authorization": "Bearer root", "X-Access-Token": answer.json()["data"]["envd_access_token"],
                "Content-Type": STREAM_TYPE}
    inside = e2b.fields(Content_Type=STREAM_TYPE)
    slow = "print('on', flush=True)\nimport time\ntime.sleep(1000)"

    def stream(method, path, body=None, fields=None):
        return Stream(server, method, path, body, fields or {}).first()

    output = stream("POST", f"{base}/process", {"command": "echo on; sleep 1000"}, ndjson)
    code = {kind: stream("POST", f"{base}/code", {"code": slow, "context": context}, fields) for kind, context, fields in (
        ("lines", new_context(box), ndjson), ("events", new_context(box), events))}
    watch = stream("GET", f"{base}/watch/filesystem/tmp")
    logs = stream("GET", f"{base}/logs?follow=true", None, events)
    plain_logs = [stream("GET", f"{base}/logs?follow=true"),
                  Stream(server, "GET", f"{base}/network/log?follow=true", None, {}).first(0)]
    connect = {
        "process": stream("POST", START, envelope(shell("echo on; sleep 1000")), inside),
        "terminal": stream("POST", START, envelope(shell("sleep 1000", pty={"size": {"cols": 80, "rows": 24}})), inside),
        "watch": stream("POST", "/filesystem.Filesystem/WatchDir", envelope({"path": "/tmp"}), inside),
        "scalebox": stream("POST", "/sandboxagent.ExecutionService/Execute",
                           envelope({"code": slow, "language": "python"}), scalebox)}
    e2b_code = stream("POST", "/execute", {"code": slow}, {**e2b.fields(port=49999)})
    pid = next(process["pid"] for process in e2b.processes() if "sleep 1000" in str(process))
    before = in_progress(server)
    waiting = Stream(server, "POST", "/process.Process/SendInput", {
        "process": {"pid": pid}, "input": {"stdin": base64.b64encode(bytes(200_000)).decode()}}, e2b.fields())
    wait_until(lambda: in_progress(server) > before, 30, "a call that waits")

    server.process.send_signal(signal.SIGTERM)

    told = "the server is shutting down"
    assert output.lines()[-1] == {"type": "error", "data": told, "offset": 3}
    last = code["lines"].lines()[-1]
    assert (last["type"], last["name"], last["value"]) == ("error", "UNAVAILABLE", told)
    last = code["events"].rest().decode().split("\n\n")[-2]
    assert last.startswith("event: error\ndata: ") and json.loads(last.split("data: ")[1])["value"] == told
    last = watch.lines()[-1]
    assert (last["op"], last["error"]) == ("OVERFLOW", told)
    last = logs.rest().decode().split("\n\n")[-2]
    assert last.startswith("event: error\n") and told in last
    for one in plain_logs:
        assert one.lines()[-1] == {"error": {"code": "UNAVAILABLE", "message": told}}
    for kind, one in connect.items():
        flags, message = frames(one.rest())[-1]
        assert (flags, message) == (END, {"error": {"code": "unavailable", "message": told}}), kind
    broken, end = e2b_code.lines()[-2:]
    assert (broken["type"], broken["name"], broken["value"]) == ("error", "UnexpectedEndOfExecution", told)
    assert end == {"type": "end_of_execution"}
    refused = waiting.connection.getresponse()
    assert (refused.status, json.loads(refused.read())) == (503, {"code": "unavailable", "message": told})
    assert server.process.wait(60 * PATIENCE) == 0
    check_log(server, ["POST /process.Process/{method}", "POST /execute", *(f"{way} /v0/sandbox/{{name}}/{rest}" for way, rest in (
        ("POST", "process"), ("POST", "code"), ("GET", "watch/filesystem/{path*}"), ("GET", "logs"),
        ("GET", "network/log")))])


def check_log(server, operations):
    """Each stream's last line says why it ended, too."""
    text = "".join(path.read_text() for path in sorted((server.data / "audit").glob("audit-*.jsonl")))
    entries = [json.loads(line) for line in text.splitlines()]
    ends = {one["operation"] for one in entries if one.get("phase") == "end" and one.get("error") == "UNAVAILABLE"}
    assert set(operations) <= ends, ends


def in_progress(server):
    text = server.request("GET", "/metrics").text
    return float(next(line for line in text.splitlines() if line.startswith("cella_http_requests_in_progress ")).split()[1])


def new_context(box):
    answer = box.request("POST", "/code/contexts", {"language": "python"})
    assert answer.status == 201, answer
    return answer.json()["id"]
