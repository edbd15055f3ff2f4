# SPDX-License-Identifier: Apache-2.0
"""One terminal, several at it: whoever comes by our WebSocket and by the PTY calls of E2B's and Scalebox's
clients sees the same bytes, and types into the same shell."""

import base64
import contextlib
import http.client
import json
import struct
import urllib.parse

import pytest

from cella_server import wait_until
from cella_websocket import Terminal


class Pty:
    """A stream of Scalebox's Process service on a terminal. What came so far is in .seen."""

    def __init__(self, server, token, method, message):
        parts = urllib.parse.urlsplit(server.url)
        text = json.dumps(message).encode()
        self.connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
        self.connection.request("POST", f"/sandboxagent.Process/{method}", struct.pack(">BI", 0, len(text)) + text, {
            "Content-Type": "application/connect+json", "X-Access-Token": token})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        self.seen, self.ended = b"", None
        self.pid = self.take()["start"]["pid"]

    def take(self):
        flags, size = struct.unpack(">BI", self.answer.read(5))
        message = json.loads(self.answer.read(size))
        assert flags == 0, message
        event = message["event"]
        self.seen += base64.b64decode(event.get("data", {}).get("pty", ""))
        self.ended = event.get("end", self.ended)
        return event

    def await_(self, what):
        while what not in self.seen:
            assert self.ended is None, (what, self.seen)
            self.take()

    def await_end(self):
        while self.ended is None:
            self.take()
        return self.ended

    def close(self):
        self.connection.close()


@pytest.fixture
def box(server):
    made = server.request("POST", "/v1/sandboxes", {"template": "base", "timeout": 3600})
    assert made.status == 201, made
    yield made.json()["data"]
    server.request("DELETE", f"/v1/sandboxes/{made.json()['data']['sandbox_id']}")


def rpc(server, box, method, message):
    answer = server.request("POST", f"/sandboxagent.Process/{method}", message, {
        "Authorization": "Bearer root", "X-Access-Token": box["envd_access_token"]})
    assert answer.status == 200, answer


START = {"process": {"cmd": "/bin/bash", "args": ["-i"], "envs": {"PS1": "$ "}},
         "pty": {"size": {"cols": 80, "rows": 24}}}


def session_of(server, box, pid):
    sessions = server.request("GET", f"/v0/sandbox/{box['sandbox_id']}/terminal/sessions").json()["sessions"]
    return next(item["sessionId"] for item in sessions if item["pid"] == pid)


def test_by_websocket_and_by_pty_at_once(server, box):
    token = box["envd_access_token"]
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.closing(Pty(server, token, "Start", START)))
        second = stack.enter_context(
            contextlib.closing(Pty(server, token, "Connect", {"process": {"pid": first.pid}})))
        web = stack.enter_context(Terminal(server, box["sandbox_id"], sessionId=session_of(server, box, first.pid)))
        web.type("echo web-$((20+1))\n")
        for viewer in (first, second, web):
            viewer.await_(b"web-21")
        rpc(server, box, "SendInput", {"process": {"pid": first.pid}, "input": {
            "pty": base64.b64encode(b"echo rpc-$((20+2))\n").decode()}})
        for viewer in (first, second, web):
            viewer.await_(b"rpc-22")
        rpc(server, box, "Update", {"process": {"pid": first.pid}, "pty": {"size": {"cols": 101, "rows": 31}}})
        web.type("stty size\n")
        for viewer in (first, second, web):
            viewer.await_(b"31 101")
        web.type("exit 7\n")
        assert first.await_end()["exitCode"] == 7
        assert second.await_end()["exitCode"] == 7
        assert web.await_end()["exitCode"] == 7


def test_one_that_leaves_does_not_take_it_along(server, box):
    token = box["envd_access_token"]
    first = Pty(server, token, "Start", START)
    session = session_of(server, box, first.pid)
    first.close()
    with Terminal(server, box["sandbox_id"], sessionId=session) as web:
        web.type("echo still-$((40+2))\n")
        web.await_(b"still-42")
        second = Pty(server, token, "Connect", {"process": {"pid": first.pid}})
        web.type("echo both-$((40+3))\n")
        web.await_(b"both-43")
        second.await_(b"both-43")
        second.close()
    rpc(server, box, "SendSignal", {"process": {"pid": first.pid}, "signal": "SIGNAL_SIGKILL"})
    sessions = f"/v0/sandbox/{box['sandbox_id']}/terminal/sessions"
    wait_until(lambda: all(item["pid"] != first.pid
                           for item in server.request("GET", sessions).json()["sessions"]), 30, "its end")
