# SPDX-License-Identifier: Apache-2.0
"""Too slow, too many, too large: what a client can make the server hold is bounded in number, size and
time, and others do not notice. How long a slow body lasts is a unit test (http/server): it takes a minute here."""

import contextlib
import json
import os
import pathlib
import resource
import socket
import struct

import pytest

import raw_http
from cella_exec import ExecSocket
from cella_server import wait_until
from cella_websocket import CLOSE, PING, TEXT, WebSocket


def rss(pid):
    """Resident bytes of a process."""
    return int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


# --- slow ---

def test_slow_heads_and_bodies_beside_ordinary_requests(server, shared_sandbox):
    """A thousand connections that never get to the point, of five kinds."""
    before = rss(server.pids().cellad)
    kinds = [
        b"",
        b"GET /v0/whoami HTTP/1.1\r\nHo",
        raw_http.head(server, "POST /v0/sandbox HTTP/1.1", "Host: x", "Content-Length: 1000") + b"{",
        raw_http.head(server, "POST /v0/sandbox HTTP/1.1", "Host: x", "Content-Length: 1000", key=False) + b"{",
        b"\x16\x03\x01\x02\x00\x01",  # TLS that is never agreed on
    ]
    socks = []
    try:
        for i in range(1000):
            socks.append(raw_http.connect(server))
            socks[-1].sendall(kinds[i % len(kinds)])
        for _ in range(20):
            assert server.request("GET", "/v0/whoami", timeout=10).status == 200
            assert shared_sandbox.exec("true", timeout=20).exit_code == 0
        for sock in socks:  # a byte more each: it is no use
            with contextlib.suppress(ConnectionError):
                sock.sendall(b"x")
        assert server.request("GET", "/v0/whoami", timeout=10).status == 200
        assert rss(server.pids().cellad) - before < 200 << 20
    finally:
        for sock in socks:
            sock.close()
    assert server.request("GET", "/health").status == 200


@pytest.fixture
def many_files():
    """As many descriptors as it takes to fill a server."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (min(max(soft, 20000), hard), hard))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


PLACES = 8192


def test_every_place_held_by_slow_strangers(server_factory, many_files):
    """Answered or not, waited for to send or to read: whoever comes next is served, and who has a key keeps his place."""
    own = server_factory()
    kinds = [
        raw_http.head(own, "GET /health HTTP/1.1", "Host: x", "Content-Length: 1000", key=False),
        raw_http.head(own, "POST /v0/oauth/token HTTP/1.1", "Host: x", "Content-Length: 1000", key=False),
        raw_http.head(own, "GET /openapi.json HTTP/1.1", "Host: x", key=False) * 100,
        raw_http.head(own, "POST /v0/sandbox HTTP/1.1", "Host: x", "Content-Length: 1000", key=False),
    ]
    with contextlib.ExitStack() as stack:
        known = stack.enter_context(raw_http.connect(own))
        body = b'{"name": "late"}'
        known.sendall(raw_http.head(own, "POST /v0/workspaces HTTP/1.1", "Host: x", f"Content-Length: {len(body)}") + body[:5])
        for i in range(PLACES):
            sock = stack.enter_context(raw_http.connect(own))
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            with contextlib.suppress(ConnectionError):
                sock.sendall(kinds[i % len(kinds)])
        assert sock.recv(12) == b"HTTP/1.1 401"  # all of them have been heard
        for _ in range(20):
            assert own.request("GET", "/v0/whoami", timeout=10).status == 200
        known.sendall(body[5:])
        assert known.recv(12) == b"HTTP/1.1 201"


def test_a_client_that_never_reads(server, shared_sandbox):
    """Its answer waits for it in the sandbox, not in the server's memory."""
    shared_sandbox.run("head -c 64M /dev/zero > /tmp/large")
    before = rss(server.pids().cellad)
    request = raw_http.head(server, f"GET {shared_sandbox.base}/filesystem/tmp/large HTTP/1.1", "Host: x",
                            "Accept: application/octet-stream")
    socks = [raw_http.connect(server) for _ in range(16)]
    try:
        for sock in socks:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            sock.sendall(request)
        for sock in socks:
            assert sock.recv(12) == b"HTTP/1.1 200"
        assert server.request("GET", "/v0/whoami").status == 200
        assert rss(server.pids().cellad) - before < 64 << 20
    finally:
        for sock in socks:
            sock.close()
    shared_sandbox.run("rm /tmp/large")


# --- large ---

LARGE = [
    ("the request line", lambda s: raw_http.head(s, f"GET /{'x' * 20000} HTTP/1.1", "Host: x"), {414}),
    ("the query", lambda s: raw_http.head(s, f"GET /v0/sandbox?x={'y' * 20000} HTTP/1.1", "Host: x"), {414}),
    ("many parameters", lambda s: raw_http.head(s, f"GET /v0/sandbox?{'&'.join('a=b' for _ in range(3000))} HTTP/1.1",
                                                "Host: x", "Connection: close"), {200, 400}),
    ("one field", lambda s: raw_http.head(s, "GET /health HTTP/1.1", "Host: x", "X: " + "y" * 70000), {431}),
    ("many fields", lambda s: raw_http.head(s, "GET /health HTTP/1.1", "Host: x", *[f"X{i}: y" for i in range(200)]),
     {431}),
    ("fields without end", lambda s: b"GET /health HTTP/1.1\r\nHost: x\r\n" + b"X: y\r\n" * 50000, {431}),
    ("a key", lambda s: raw_http.head(s, "GET /v0/whoami HTTP/1.1", "Host: x", "Authorization: Bearer " + "x" * 60000,
                                      "Connection: close", key=False), {401}),
    ("a length", lambda s: raw_http.head(s, "POST /v0/sandbox HTTP/1.1", "Host: x", "Content-Length: 999999999999"),
     {413}),
    ("a token request", lambda s: raw_http.head(s, "POST /v0/oauth/token HTTP/1.1", "Host: x",
                                                "Content-Length: 99999999", key=False), {413}),
]


@pytest.mark.parametrize("what, make, statuses", LARGE, ids=[row[0] for row in LARGE])
def test_large_requests(server, what, make, statuses):
    got = raw_http.answers(raw_http.exchange(server, make(server)))
    assert len(got) == 1 and got[0][0] in statuses, (what, got[:2])


BODIES = [
    ("depth", b'{"spec":' * 10000 + b"1" + b"}" * 10000, 400),
    ("depth of arrays", b"[" * 100000, 400),
    ("a name", json.dumps({"metadata": {"name": "x" * 1000000}}).encode(), 400),
    ("labels", json.dumps({"metadata": {"labels": {f"l{i}": "" for i in range(100000)}}}).encode(), 400),
    ("variables", json.dumps({"spec": {"env_vars": {f"V{i}": "" for i in range(100000)}}}).encode(), 400),
    ("a number", b'{"spec": {"resources": {"cpu": ' + b"9" * 100000 + b"}}}", 400),
    ("too much", b'"' + b"x" * (25 << 20) + b'"', 413),
]


@pytest.mark.parametrize("what, body, status", BODIES, ids=[row[0] for row in BODIES])
def test_large_bodies(server, what, body, status):
    before = rss(server.pids().cellad)
    answer = server.request("POST", "/v0/sandbox", body, {"Content-Type": "application/json"})
    assert answer.status == status and answer.error(), answer
    assert rss(server.pids().cellad) - before < 128 << 20


def test_multipart_without_end(server, shared_sandbox):
    """Thousands of parts, and a part's head that does not end."""
    path = f"/upload/{shared_sandbox.name}/filesystem/tmp/x"
    boundary = "----b"
    head = f"--{boundary}\r\nContent-Disposition: form-data; name=\"x\"\r\n".encode()
    for body in (head + b"X: " + b"y" * (1 << 20), (head + b"\r\ny\r\n") * 20000 + f"--{boundary}--\r\n".encode()):
        before = rss(server.pids().cellad)
        answer = server.request("PUT", f"{shared_sandbox.base}/filesystem/tmp/form", body,
                                {"Content-Type": f"multipart/form-data; boundary={boundary}"})
        assert answer.status in (200, 400, 413, 415), (path, answer)
        assert rss(server.pids().cellad) - before < 64 << 20


# --- hostile WebSockets ---

def open_raw(server, sandbox):
    return WebSocket(server.url, f"{sandbox.base}/exec/ws", {"Authorization": f"Bearer {server.key}"})


def close_code(ws):
    """What the server closes with; None when it just went."""
    with contextlib.suppress(ConnectionError, OSError):
        while ws.receive() is not None:
            pass
    return ws.close_code


MASK = b"\1\2\3\4"
FRAMES = [
    ("not masked", b"\x81\x02{}", 1002),
    ("a reserved bit", b"\xc1\x80" + MASK, 1002),
    ("an unknown kind", b"\x83\x80" + MASK, 1002),
    ("a control frame in pieces", b"\x09\x80" + MASK, 1002),
    ("a control frame that is too long", b"\x89\xfe\x00\x7e" + MASK + b"x" * 126, 1002),
    ("a rest without a beginning", b"\x80\x80" + MASK, 1002),
    ("a beginning in the middle", b"\x01\x80" + MASK + b"\x81\x80" + MASK, 1002),
    ("a length in too many bytes", b"\x81\xfe\x00\x01" + MASK + b"x", 1002),
    ("a negative length", b"\x81\xff" + b"\xff" * 8 + MASK, None),
    ("a huge length", b"\x81\xff" + struct.pack("!Q", 1 << 40) + MASK, 1009),
    ("a message over the limit", b"\x81\xff" + struct.pack("!Q", (1 << 20) + 1) + MASK, 1009),
    ("no UTF-8", b"\x81\x82" + MASK + bytes(a ^ b for a, b in zip(b"\xff\xff", MASK)), 1007),
    ("a Close of one byte", b"\x88\x81" + MASK + b"x", 1002),
    ("a Close with a code that is none", b"\x88\x82" + MASK + bytes(a ^ b for a, b in zip(b"\x03\xed", MASK)), 1002),
]


@pytest.mark.parametrize("what, frame, code", FRAMES, ids=[row[0] for row in FRAMES])
def test_broken_frames(server, shared_sandbox, what, frame, code):
    ws = open_raw(server, shared_sandbox)
    assert json.loads(ws.receive()[1])["type"] == "ready"
    ws.sock.sendall(frame)
    got = close_code(ws)
    assert got == code or (code is None and got in (1002, 1009)), (what, got)
    ws.close()


def test_fragments_without_end(server, shared_sandbox):
    """Each is small; all together they are not taken."""
    ws = open_raw(server, shared_sandbox)
    ws.receive()
    before = rss(server.pids().cellad)
    with contextlib.suppress(ConnectionError, OSError):
        ws.sock.sendall(b"\x01\x80" + MASK)
        for _ in range(40):
            ws.sock.sendall((b"\x00\xfe\xff\xff" + MASK + MASK * 16383 + MASK[:3]))
    assert close_code(ws) == 1009
    assert rss(server.pids().cellad) - before < 32 << 20
    ws.close()


def test_pings_without_end(server, shared_sandbox):
    """They are answered as fast as the answers are read; nothing piles up."""
    ws = open_raw(server, shared_sandbox)
    before = rss(server.pids().cellad)
    ws.sock.settimeout(2)
    frame = b"\x89\xfd" + MASK + b"x" * 125
    with contextlib.suppress(OSError):
        for _ in range(20000):
            ws.sock.sendall(frame)
    assert rss(server.pids().cellad) - before < 32 << 20
    assert server.request("GET", "/v0/whoami").status == 200
    ws.close()


def test_half_open_and_silent_ones(server, shared_sandbox):
    """A hundred that start something endless and read nothing, and a hundred that hang up without a word:
    others are served, and what they have held is given back."""
    def streams():
        return len(list(pathlib.Path(f"/proc/{server.pids().cellad}/fd").iterdir()))

    quiet = streams()
    silent = [ExecSocket(server, shared_sandbox.name) for _ in range(100)]
    pids = []
    for i, one in enumerate(silent):
        one.start("a", "yes" if i < 10 else "sleep 1000")
        pids.append(one.await_("a", "started")["pid"])
    before = rss(server.pids().cellad)
    other = ExecSocket(server, shared_sandbox.name)
    for i in range(5):
        assert other.run(f"x{i}", "echo served")[1] == b"served\n"
    assert rss(server.pids().cellad) - before < 64 << 20
    for one in silent[:50]:
        one.close()
    for one in silent[50:]:
        one.ws.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        one.close()  # a reset
    for pid in pids:
        other.send(type="attach", id=f"k{pid}", process=pid, offset=1 << 60)
        other.send(type="ping")
        other.await_(None, "pong")
        other.messages.pop(None)
        assert shared_sandbox.request("POST", f"/process/{pid}/kill").status in (200, 404)
        other.await_(f"k{pid}", lambda message: message["type"] in ("exit", "error"))
    other.close()
    wait_until(lambda: streams() <= quiet + 8, 30, lambda: f"{streams()} descriptors, of {quiet}")


def test_garbage_messages_without_end(server, shared_sandbox):
    s = ExecSocket(server, shared_sandbox.name)
    before = rss(server.pids().cellad)
    for _ in range(2000):
        s.ws.send(TEXT, b"{" * 100)
        assert s.take()["code"] == "INVALID_JSON"
        s.messages.clear()
    assert rss(server.pids().cellad) - before < 16 << 20
    s.ws.send(PING, b"x")
    s.ws.send(CLOSE, struct.pack("!H", 1000))
    assert s.take() is None and s.ws.close_code == 1000
