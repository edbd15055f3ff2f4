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


class E2bPty(Pty):
    """The same by E2B's fields."""

    def __init__(self, server, sandbox, token, method, message):  # pylint: disable=super-init-not-called
        text = json.dumps(message).encode()
        self.connection = server.connection(60)
        self.fields = {"E2b-Sandbox-Id": sandbox, "E2b-Sandbox-Port": "49983", "X-Access-Token": token}
        self.connection.request("POST", f"/process.Process/{method}", struct.pack(">BI", 0, len(text)) + text,
                                {"Content-Type": "application/connect+json", **self.fields})
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.seen, self.ended = b"", None
        self.pid = self.take()["start"]["pid"]


def e2b_call(server, viewer, method, message):
    answer = server.request("POST", f"/process.Process/{method}", message, {"Authorization": None, **viewer.fields})
    assert answer.status == 200, answer


def e2b_token(server, box):
    """E2B's clients are given the sandbox's token when they connect."""
    answer = server.request("POST", f"/sandboxes/{box['sandbox_id']}/connect", {"timeout": 3600})
    assert answer.status in (200, 201), answer
    return answer.json()["envdAccessToken"]


def test_all_three_ways_at_once(server, box):
    """Begun by E2B's calls, seen and typed into by Scalebox's and by WebSocket; each changes its size."""
    token = e2b_token(server, box)
    with contextlib.ExitStack() as stack:
        first = stack.enter_context(contextlib.closing(E2bPty(server, box["sandbox_id"], token, "Start", START)))
        second = stack.enter_context(contextlib.closing(
            Pty(server, box["envd_access_token"], "Connect", {"process": {"pid": first.pid}})))
        web = stack.enter_context(Terminal(server, box["sandbox_id"], sessionId=session_of(server, box, first.pid)))
        viewers = (first, second, web)
        e2b_call(server, first, "SendInput", {"process": {"pid": first.pid}, "input": {
            "pty": base64.b64encode(b"echo e2b-$((20+1))\n").decode()}})
        for viewer in viewers:
            viewer.await_(b"e2b-21")
        sizes = ((71, 11), (72, 12), (73, 13))
        e2b_call(server, first, "Update", {"process": {"pid": first.pid}, "pty": {"size": {"cols": 71, "rows": 11}}})
        for number, (cols, rows) in enumerate(sizes):
            if number == 1:
                rpc(server, box, "Update", {"process": {"pid": first.pid}, "pty": {"size": {"cols": cols, "rows": rows}}})
            if number == 2:
                web.send(type="resize", cols=cols, rows=rows)
            web.type("stty size\n")
            for viewer in viewers:
                viewer.await_(f"{rows} {cols}".encode())
        # One goes, and comes back: the shell is the same.
        web.type("kept=here\n")
        second.close()
        again = stack.enter_context(contextlib.closing(
            E2bPty(server, box["sandbox_id"], token, "Connect", {"process": {"pid": first.pid}})))
        web.type("echo still-$kept\n")
        for viewer in (first, again, web):
            viewer.await_(b"still-here")
        # Killed by one, ended for all.
        e2b_call(server, first, "SendSignal", {"process": {"pid": first.pid}, "signal": "SIGNAL_SIGKILL"})
        assert first.await_end() is not None and again.await_end() is not None
        assert web.await_end() is not None
    answer = server.request("POST", "/process.Process/SendInput", {
        "process": {"pid": first.pid}, "input": {"pty": "eA=="}}, {"Authorization": None, **first.fields})
    assert answer.status == 404, answer
