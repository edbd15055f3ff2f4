# SPDX-License-Identifier: Apache-2.0
"""/port/{port}/…: programs inside a sandbox, through the API."""

import base64
import contextlib
import hashlib
import http.client
import json
import pathlib
import socket
import threading
import urllib.parse

import pytest

from cella_server import wait_until

APP = pathlib.Path(__file__).resolve().parents[1] / "support/port_app.py"
PORT = 8000
LARGE = 200 << 20


def start_app(sandbox, port=PORT, address="127.0.0.1"):
    sandbox.write("/tmp/port_app.py", APP.read_text())
    sandbox.spawn(f"exec python3 /tmp/port_app.py {port} {address}")
    wait_until(lambda: sandbox.request("GET", f"/port/{port}/text").status == 200, 20, "the program")
    return sandbox


@pytest.fixture(scope="module")
def app(server):
    made = start_app(server.create())
    yield made
    made.delete()


def echo(app, path="/echo", method="GET", body=None, headers=None):
    answer = app.request(method, f"/port/{PORT}{path}", body, headers)
    assert answer.status == 200, answer
    return answer.json()


def fields_of(seen):
    return {name.lower(): value for name, value in seen["fields"]}


def connect(server):
    url = urllib.parse.urlsplit(server.url)
    sock = socket.create_connection((url.hostname, url.port), timeout=30)
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return sock


def ask(app, path, *fields, method="GET", version="1.1"):
    """A request by hand: the socket, right behind the head."""
    sock = connect(app.server)
    head = [f"{method} {app.base}/port/{PORT}{path} HTTP/{version}", "Host: cella.example",
            f"Authorization: Bearer {app.server.key}", *fields, "", ""]
    sock.sendall("\r\n".join(head).encode("latin-1"))
    return sock


def read_all(sock):
    data = b""
    with contextlib.suppress(ConnectionResetError):
        while piece := sock.recv(65536):
            data += piece
    return data


def read_head(sock):
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(1)
        assert piece, data
        data += piece
    return data.decode("latin-1")


# --- requests ---


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "PROPFIND"])
def test_any_method(app, method):
    seen = echo(app, method=method, body=b"x" if method in ("POST", "PUT", "PATCH") else None)
    assert seen["method"] == method
    assert seen["peer"] == "127.0.0.1"


@pytest.mark.parametrize("path, target", [
    ("", "/"), ("/", "/"), ("/a/b", "/a/b"), ("/a%2Fb//c/", "/a%2Fb//c/"), ("//host/x", "//host/x"),
    ("/a?b=c&d", "/a?b=c&d"), ("/..%2f../x", "/..%2f../x"), ("/%0d%0aX:%20y", "/%0d%0aX:%20y"),
    ("/a?x=1&bl_preview_token=secret&y=2", "/a?x=1&y=2"), ("/a?bl_preview_token=s", "/a"),
])
def test_paths_arrive_as_they_were_sent(app, path, target):
    assert echo(app, path)["target"] == target


def test_both_addresses(app):
    answer = app.server.request("GET", f"/default/sandbox/{app.name}/port/{PORT}/echo")
    assert answer.status == 200 and answer.json()["target"] == "/echo"


def test_fields_are_ours(app):
    seen = echo(app, headers={
        "X-App": "1", "Connection": "X-Named", "X-Named": "hop", "Keep-Alive": "5", "TE": "trailers",
        "X-Forwarded-For": "6.6.6.6", "X-Forwarded-Host": "evil", "X-Real-IP": "6.6.6.6",
        "Forwarded": "for=6.6.6.6", "Cookie": "a=b", "Referer": "http://x/?token=secret"})
    fields = fields_of(seen)
    assert fields["host"] == f"localhost:{PORT}"
    assert fields["x-app"] == "1"
    assert fields["x-forwarded-for"] == "127.0.0.1"
    assert fields["x-forwarded-host"] == urllib.parse.urlsplit(app.server.url).netloc
    assert fields["x-forwarded-proto"] == "http"
    assert fields["x-forwarded-prefix"] == f"{app.base}/port/{PORT}"
    for name in ("x-named", "keep-alive", "te", "x-real-ip", "forwarded", "cookie", "referer",
                 "authorization"):
        assert name not in fields, name
    assert seen["head"].count("X-Forwarded-For") == 1


def test_a_program_has_its_own_authorization(app):
    key = app.server.key
    fields = fields_of(echo(app, headers={"X-Api-Key": key, "Authorization": "Basic YTpi"}))
    assert fields["authorization"] == "Basic YTpi"
    fields = fields_of(echo(app, headers={"X-Blaxel-Authorization": f"Bearer {key}",
                                          "Authorization": "Bearer eyJhbGciOiJIUzI1NiJ9.e30.x"}))
    assert fields["authorization"].startswith("Bearer eyJ")


@pytest.mark.parametrize("headers", [
    {}, {"X-Api-Key": "KEY"}, {"X-Blaxel-Authorization": "Bearer KEY"},
    {"X-Api-Key": "KEY", "Authorization": "Bearer KEY"},
    {"X-Api-Key": "KEY", "Authorization": "bearer  KEY"},
    {"X-Blaxel-Preview-Token": "KEY"},
])
def test_keys_never_reach_the_program(app, headers):
    key = app.server.key
    given = {name: value.replace("KEY", key) for name, value in headers.items()}
    if "Authorization" not in given and "X-Api-Key" in given or "X-Blaxel-Authorization" in given:
        given["Authorization"] = ""
    seen = echo(app, f"/echo?bl_preview_token={key}", headers=given)
    assert key not in json.dumps(seen)


# --- bodies ---


@pytest.mark.parametrize("size", [1, 1000, 300000])
def test_bodies_with_a_length(app, size):
    body = bytes(i % 251 for i in range(size))
    seen = echo(app, method="POST", body=body)
    assert (seen["length"], seen["sha256"]) == (size, hashlib.sha256(body).hexdigest())


def test_bodies_in_chunks(app):
    with ask(app, "/echo", "Transfer-Encoding: chunked", "Connection: close", method="POST") as sock:
        for piece in (b"a", b"bc" * 5000, b"d"):
            sock.sendall(b"%x;e=1\r\n%s\r\n" % (len(piece), piece))
        sock.sendall(b"0\r\nX-Trailer: 1\r\n\r\n")
        head, body = read_all(sock).split(b"\r\n\r\n", 1)
    assert b" 200 " in head
    seen = json.loads(body)
    assert seen["length"] == 10002 and fields_of(seen)["transfer-encoding"] == "chunked"
    assert "X-Trailer" not in seen["head"]


def test_expect_continue(app):
    with ask(app, "/echo", "Content-Length: 3", "Expect: 100-continue", "Connection: close",
             method="PUT") as sock:
        assert " 100 " in read_head(sock)
        sock.sendall(b"abc")
        answer = read_all(sock)
    assert b"\"length\": 3" in answer
    assert b"xpect" not in answer.split(b"\r\n\r\n", 1)[1]


@pytest.mark.parametrize("path, size", [
    ("/big?n=0", 0), ("/big?n=10", 10), ("/big?n=3000000", 3000000),
    ("/chunked?n=0", 0), ("/chunked?n=5000&s=7", 5000), ("/chunked?n=2000000&s=100000", 2000000),
    ("/until-close?n=0", 0), ("/until-close?n=60000", 60000),
])
def test_answers_of_all_kinds(app, path, size):
    answer = app.request("GET", f"/port/{PORT}{path}")
    assert answer.status == 200 and len(answer.body) == size
    assert "X-After" not in answer.headers and "Trailer" not in answer.headers


def test_head(app):
    answer = app.request("HEAD", f"/port/{PORT}/text?body=12345")
    assert (answer.status, answer.body, answer.headers["Content-Length"]) == (200, b"", "5")


@pytest.mark.parametrize("status", [201, 204, 304, 404, 418, 500, 503])
def test_statuses_pass(app, status):
    field = base64.b64encode(b"X-Mine: 1").decode()
    answer = app.request("GET", f"/port/{PORT}/text?body=&status={status}&f={field}")
    assert answer.status == status and answer.headers["X-Mine"] == "1"


def test_http10_clients(app):
    with ask(app, "/chunked?n=5000", version="1.0") as sock:
        head, body = read_all(sock).split(b"\r\n\r\n", 1)
    assert b"chunked" not in head and len(body) == 5000


def test_answers_do_not_act_for_the_api(app):
    fields = ["Set-Cookie: a=b; Path=/", "Clear-Site-Data: *", "Service-Worker-Allowed: /",
              "Connection: X-Hop", "X-Hop: 1", "Keep-Alive: 5", "X-Kept: 1"]
    packed = ",".join(base64.b64encode(f.encode()).decode() for f in fields)
    answer = app.request("GET", f"/port/{PORT}/text?f={urllib.parse.quote(packed)}")
    assert answer.status == 200 and answer.headers["X-Kept"] == "1"
    for name in ("Set-Cookie", "Clear-Site-Data", "Service-Worker-Allowed", "X-Hop", "Keep-Alive"):
        assert name not in answer.headers, name
    assert "sandbox" in answer.headers["Content-Security-Policy"].split()
    assert "allow-same-origin" not in answer.headers["Content-Security-Policy"]


def memory_of(server):
    for line in pathlib.Path(f"/proc/{server.pids().cellad}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) * 1024
    raise AssertionError("no RssAnon")


def test_large_bodies_in_constant_memory(app):
    """200 MB each way: more than cellad may grow by, by far."""
    before = memory_of(app.server)
    url = urllib.parse.urlsplit(app.server.url)
    auth = {"Authorization": f"Bearer {app.server.key}"}
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    connection.request("GET", f"{app.base}/port/{PORT}/big?n={LARGE}", headers=auth)
    answer, total = connection.getresponse(), 0
    while piece := answer.read(1 << 20):
        total += len(piece)
    assert total == LARGE
    block = b"x" * (1 << 20)
    connection.request("POST", f"{app.base}/port/{PORT}/echo", headers=auth,
                       body=(block for _ in range(LARGE >> 20)), encode_chunked=True)
    told = json.loads(connection.getresponse().read())
    assert told.get("length") == LARGE, told
    connection.close()
    assert memory_of(app.server) - before < 32 << 20


def test_answer_while_the_body_still_comes(app):
    with ask(app, "/duplex", "Transfer-Encoding: chunked", method="POST") as sock:
        sock.sendall(b"5\r\nfirst\r\n")
        got = read_head(sock)
        assert " 200 " in got
        while "first" not in got:
            got += sock.recv(100).decode()
        sock.sendall(b"6\r\nsecond\r\n0\r\n\r\n")
        while not got.endswith("0\r\n\r\n"):
            got += sock.recv(100).decode()
    assert "second" in got


def test_early_answer_to_a_large_body(app):
    with ask(app, "/early", f"Content-Length: {LARGE}", method="POST") as sock:
        with contextlib.suppress(OSError):
            for _ in range(64):
                sock.sendall(b"x" * 65536)
        assert b" 413 " in read_all(sock)


# --- connections ---


def test_connections_are_kept(app):
    assert [echo(app)["nth"] >= 1 for _ in range(3)]
    before = json.loads(app.request("GET", f"/port/{PORT}/stats").body)["connections"]
    for _ in range(10):
        echo(app)
    after = json.loads(app.request("GET", f"/port/{PORT}/stats").body)["connections"]
    assert after - before < 10


def test_a_kept_connection_that_died(app):
    for _ in range(10):
        assert app.request("GET", f"/port/{PORT}/stale").status == 200


def test_ipv6_loopback(sandbox):
    start_app(sandbox, 8001, "::1")
    assert sandbox.request("GET", "/port/8001/echo").json()["peer"] == "::1"


def test_100_at_once(app):
    failures = []

    def one(number):
        try:
            seen = echo(app, f"/echo?{number}", "POST", b"y" * 20000)
            assert seen["target"] == f"/echo?{number}" and seen["length"] == 20000
        except Exception as failure:  # noqa: BLE001 - told below
            failures.append(failure)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(100)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures[0]


def sockets_into(server):
    """Sockets that cellad holds, but for those it listens on and serves."""
    return sum("socket:" in _link(fd) for fd in
               pathlib.Path(f"/proc/{server.pids().cellad}/fd").iterdir())


def _link(path):
    with contextlib.suppress(OSError):
        return str(path.readlink())
    return ""


def dripping(app):
    return json.loads(app.request("GET", f"/port/{PORT}/stats").body)["dripping"]


def test_nothing_is_left_of_a_client_that_went(app):
    clients = []
    for _ in range(20):
        sock = ask(app, "/drip")
        while b"data: 1" not in sock.recv(4096):
            pass
        clients.append(sock)
    assert dripping(app) == 20
    for sock in clients:
        sock.close()
    wait_until(lambda: dripping(app) == 0, 20, lambda: f"{dripping(app)} still there")


def test_stopping_a_sandbox_ends_its_streams(sandbox):
    start_app(sandbox)
    with ask(sandbox, "/drip") as sock:
        while b"data: 1" not in sock.recv(4096):
            pass
        before = sockets_into(sandbox.server)
        sandbox.stop()
        assert b"0\r\n\r\n" not in read_all(sock)  # an answer that was cut must not look whole
    wait_until(lambda: sockets_into(sandbox.server) < before, 20, "the end of its sockets")
    answer = sandbox.request("GET", f"/port/{PORT}/text")
    assert (answer.status, answer.error()) == (409, "NOT_RUNNING")
    sandbox.start()
    assert sandbox.request("GET", f"/port/{PORT}/text").error() == "PORT_NOT_LISTENING"


# --- programs that do not behave ---


def raw_answer(app, raw):
    """The program answers with exactly these bytes, and closes."""
    return app.request("POST", f"/port/{PORT}/raw", raw)


@pytest.mark.parametrize("raw", [
    b"", b"SSH-2.0-OpenSSH_9.2\r\n", b"HTTP/1.1 200 OK\r\n", b"HTTP/1.1 200 OK\r\nA: b",
    b"HTTP/1.1 99 No\r\n\r\n", b"HTTP/1.1 999 No\r\n\r\n", b"HTTP/2 200\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd",
    b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: +1\r\n\r\nx",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
    b"HTTP/1.1 200 OK\r\nA : b\r\n\r\n", b"HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
    b"HTTP/1.1 200 OK\nA: b\n\n", b"HTTP/1.1 200 OK\r\nA: b\x00c\r\n\r\n",
    b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", b"HTTP/1.1 200 OK\r\nA: " + b"x" * 70000,
    b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n",
    b"HTTP/1.1 103 Early Hints\r\n\r\n" * 50 + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
])
def test_no_http(app, raw):
    answer = raw_answer(app, raw)
    assert (answer.status, answer.error()) == (502, "UPSTREAM_FAILED"), answer


@pytest.mark.parametrize("raw", [
    b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nabc",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n",
    b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
])
def test_a_cut_answer_does_not_look_whole(app, raw):
    with pytest.raises((http.client.IncompleteRead, ConnectionResetError, http.client.BadStatusLine)):
        raw_answer(app, raw)


def test_interim_answers_stay_behind(app):
    assert app.request("GET", f"/port/{PORT}/interim?n=3").text == "done"


def test_a_program_that_says_nothing(app):
    answer = app.request("GET", f"/port/{PORT}/hang", None, {"X-Cella-Timeout": "1"})
    assert (answer.status, answer.error()) == (504, "TIMEOUT")
    for bad in ("0", "3601", "1.5", "x", "-1"):
        answer = app.request("GET", f"/port/{PORT}/echo", None, {"X-Cella-Timeout": bad})
        assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT")


def test_a_client_that_breaks_its_body(app):
    with ask(app, "/echo", "Transfer-Encoding: chunked", method="POST") as sock:
        sock.sendall(b"3\r\nabc\r\nzz\r\n")
        assert b" 400 " in read_all(sock).split(b"\r\n")[0]


# --- bad requests ---


@pytest.mark.parametrize("port", ["0", "65536", "-1", "+80", "080", "8o", "%20", "99999999999999999999", "80a"])
def test_ports_that_are_none(app, port):
    answer = app.request("GET", f"/port/{port}/x")
    assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT")


def test_who_may(app):
    answer = app.request("GET", f"/port/{PORT}/x", None, {"Authorization": "Bearer cella_wrong"})
    assert answer.status == 401
    answer = app.server.request("GET", f"/v0/sandbox/nobody/port/{PORT}/x")
    assert (answer.status, answer.error()) == (404, "SANDBOX_NOT_FOUND")
    answer = app.request("GET", "/port/8999/x")
    assert (answer.status, answer.error()) == (502, "PORT_NOT_LISTENING")


# --- other protocols ---


def test_upgrade(app):
    with ask(app, "/upgrade", "Connection: upgrade", "Upgrade: echo") as sock:
        sock.sendall(b"early ")
        head = read_head(sock)
        assert " 101 " in head and "X-Kept: 1" in head and "Upgrade: echo" in head
        sock.sendall(b"late ")
        sock.shutdown(socket.SHUT_WR)  # half-close: what was still to come does
        assert read_all(sock) == b"WELCOME EARLY LATE END"


def test_upgrade_to_something_else_is_refused(app):
    with ask(app, "/upgrade?to=other", "Connection: upgrade", "Upgrade: echo") as sock:
        assert b"UPSTREAM_FAILED" in read_all_answer(sock)


def read_all_answer(sock):
    """An answer by its length; the connection may stay open."""
    head = read_head(sock)
    length = int(next(line.split(":")[1] for line in head.split("\r\n") if line.startswith("Content-Length")))
    data = b""
    while len(data) < length:
        data += sock.recv(length - len(data))
    return data


def frame(opcode, payload):
    length = len(payload)
    size = (bytes([128 | length]) if length < 126 else bytes([254]) + length.to_bytes(2, "big")
            if length < 65536 else bytes([255]) + length.to_bytes(8, "big"))
    return bytes([128 | opcode]) + size + b"\0\0\0\0" + payload


def exactly(sock, count):
    data = b""
    while len(data) < count:
        piece = sock.recv(count - len(data))
        assert piece
        data += piece
    return data


def test_websocket(app):
    with ask(app, "/ws", "Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
             "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol: chat",
             "Origin: http://localhost") as sock:
        head = read_head(sock)
        assert "Sec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
        assert "Sec-WebSocket-Protocol: chat" in head
        sock.sendall(frame(1, b"hello"))
        assert exactly(sock, 7) == b"\x81\x05hello"
        big = bytes(range(256)) * 400
        sock.sendall(frame(2, big))
        assert exactly(sock, 10 + len(big))[10:] == big
        sock.sendall(frame(8, b"\x03\xe8"))
        assert exactly(sock, 4) == b"\x88\x02\x03\xe8"
        assert read_all(sock) == b""


def tunnel(sandbox, port, *fields):
    sock = connect(sandbox.server)
    head = [f"GET {sandbox.base}/tunnel/{port} HTTP/1.1", "Host: x", "Connection: Upgrade",
            "Upgrade: tcp", f"Authorization: Bearer {sandbox.server.key}", *fields, "", ""]
    sock.sendall("\r\n".join(head).encode())
    return sock


def test_tunnel(app):
    with tunnel(app, PORT) as sock:
        sock.sendall(b"GET /text HTTP/1.0\r\n\r\n")  # with the request, or behind it
        assert " 101 " in read_head(sock)
        assert "hello" in read_all_answer(sock).decode()
        sock.shutdown(socket.SHUT_WR)
        assert read_all(sock) == b""


def test_tunnel_to_nowhere(app):
    with tunnel(app, 8998) as sock:
        assert " 502 " in read_head(sock)
    answer = app.request("GET", f"/tunnel/{PORT}")
    assert (answer.status, answer.error(), answer.headers["Upgrade"]) == (426, "UPGRADE_REQUIRED", "tcp")


def test_tunnel_moves_much(app):
    with tunnel(app, PORT) as sock:
        read_head(sock)
        size = 50 << 20
        sock.sendall(f"GET /big?n={size} HTTP/1.1\r\n\r\n".encode())
        read_head(sock)
        left = size
        while left > 0:
            piece = sock.recv(1 << 20)
            assert piece
            left -= len(piece)


def test_a_program_that_reads_late(app):
    """The body fills every buffer on the way before the answer is waited for."""
    with ask(app, "/late", "Content-Length: 20000000", "Connection: close", method="POST") as sock:
        sock.sendall(b"x" * 20000000)
        assert b"20000000" in read_all(sock)
