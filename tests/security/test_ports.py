# SPDX-License-Identifier: Apache-2.0
"""A port of a sandbox leads into that sandbox and nowhere else, whatever a client or a program tries."""

import contextlib
import json
import pathlib
import socket
import threading
import urllib.parse

import pytest

from cella_server import wait_until

APP = pathlib.Path(__file__).resolve().parents[1] / "support/port_app.py"
PORT = 8000
BANNER = b"HTTP/1.1 200 OK\r\nContent-Length: 8\r\nConnection: close\r\n\r\nTHE HOST"


def start_app(sandbox, port=PORT):
    sandbox.write("/tmp/port_app.py", APP.read_text())
    sandbox.spawn(f"exec python3 /tmp/port_app.py {port}")
    wait_until(lambda: sandbox.request("GET", f"/port/{port}/text").status == 200, 20, "the program")
    return sandbox


@pytest.fixture(scope="module")
def app(server):
    made = start_app(server.create())
    yield made
    made.delete()


@pytest.fixture
def host_listener():
    """Something on the host's own loopback; .port, and .met, how often it was reached."""
    with socket.socket() as listener:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", 0))
        listener.listen()

        class Listener:
            port, met = listener.getsockname()[1], 0

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listener.accept()
                    Listener.met += 1
                    with peer:
                        peer.sendall(BANNER)

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Listener
        listener.shutdown(socket.SHUT_RDWR)
        thread.join()


def raw(server, request):
    url = urllib.parse.urlsplit(server.url)
    with socket.create_connection((url.hostname, url.port), timeout=30) as sock:
        sock.sendall(request)
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := sock.recv(65536):
                data += piece
    return data


def head(app, line, *fields):
    return "\r\n".join([line, f"Authorization: Bearer {app.server.key}", *fields, "", ""]).encode("latin-1")


# --- nowhere else ---


def test_the_hosts_loopback_is_not_reached(app, host_listener):
    answer = app.request("GET", f"/port/{host_listener.port}/x")
    assert (answer.status, answer.error()) == (502, "PORT_NOT_LISTENING")
    line = f"GET {app.base}/tunnel/{host_listener.port} HTTP/1.1"
    got = raw(app.server, head(app, line, "Host: x", "Connection: Upgrade, close", "Upgrade: tcp"))
    assert got.startswith(b"HTTP/1.1 502 ") and b"THE HOST" not in got
    assert host_listener.met == 0


def test_the_control_plane_is_not_reached(app):
    port = urllib.parse.urlsplit(app.server.url).port
    assert app.request("GET", f"/port/{port}/health").error() == "PORT_NOT_LISTENING"


def test_the_same_port_of_another_sandbox(app, sandbox):
    assert sandbox.request("GET", f"/port/{PORT}/echo").error() == "PORT_NOT_LISTENING"
    start_app(sandbox)
    app.run("echo mine > /tmp/whose")
    sandbox.run("echo theirs > /tmp/whose")
    peers = {name: box.request("GET", f"/port/{PORT}/stats").json()["connections"]
             for name, box in (("app", app), ("sandbox", sandbox))}
    for _ in range(3):
        sandbox.request("POST", f"/port/{PORT}/echo", b"x")
    assert app.request("GET", f"/port/{PORT}/stats").json()["connections"] <= peers["app"] + 1
    sandbox.delete()
    assert app.request("GET", f"/port/{PORT}/echo").status == 200


def test_from_inside_the_server_is_not_reached_either(app):
    """A tunnel opens nothing in the other direction."""
    port = urllib.parse.urlsplit(app.server.url).port
    probe = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
    assert "refused" in app.python(probe).stderr


def test_another_workspace(app):
    server = app.server
    assert server.request("POST", "/v0/workspaces", {"name": "ports-blue"}).status in (200, 201)
    try:
        for path in (f"/ports-blue/sandbox/{app.name}/port/{PORT}/x", f"/v0/sandbox/{app.name}/port/{PORT}/x"):
            answer = server.request("GET", path, None, {"X-Cella-Workspace": "ports-blue"})
            assert (answer.status, answer.error()) == (404, "SANDBOX_NOT_FOUND")
    finally:
        server.request("DELETE", "/v0/workspaces/ports-blue")


# --- tricks of clients ---


@pytest.mark.parametrize("target", [
    "http://127.0.0.1:{host}{base}/port/{port}/echo", "https://evil.example{base}/port/{port}/echo",
    "http://localhost:{host}{base}/port/{port}/http://127.0.0.1:{host}/",
    "{base}/port/{port}/@127.0.0.1:{host}/", "{base}/port/{port}//127.0.0.1:{host}/",
    "{base}/port/{port}/%2e%2e/%2e%2e/port/{host}/", "{base}/port/{port}/..%2f..%2fport%2f{host}",
    "{base}/port/{port}/../../port/{port}/x",
])
def test_targets_cannot_name_a_place(app, host_listener, target):
    line = target.format(base=app.base, port=PORT, host=host_listener.port)
    got = raw(app.server, head(app, f"GET {line} HTTP/1.1", f"Host: 127.0.0.1:{host_listener.port}",
                               "Connection: close"))
    assert got.startswith(b"HTTP/1.1 200 ") and b"THE HOST" not in got
    seen = json.loads(got.split(b"\r\n\r\n", 1)[1])
    assert dict(map(tuple, seen["fields"]))["Host"] == f"localhost:{PORT}"
    assert host_listener.met == 0


@pytest.mark.parametrize("port", ["{host}@8000", "8000%00", "8000%0d%0a", "127.0.0.1:8000", "8000:80", "%38000x"])
def test_ports_cannot_hide_something(app, host_listener, port):
    answer = app.request("GET", f"/port/{port.format(host=host_listener.port)}/echo")
    assert answer.status == 400, answer
    assert host_listener.met == 0


@pytest.mark.parametrize("fields, body", [
    (["Content-Length: 5", "Content-Length: 6"], b"hello"),
    (["Content-Length: 5, 5"], b"hello"),
    (["Content-Length: 5", "Transfer-Encoding: chunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], b"0\r\n\r\n"),
    (["Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding : chunked"], b"0\r\n\r\n"),
    (["Transfer-Encoding:\x0bchunked"], b"0\r\n\r\n"),
    (["X: y\rTransfer-Encoding: chunked"], b"0\r\n\r\n"),
    (["X: y\nTransfer-Encoding: chunked"], b"0\r\n\r\n"),
    ([" folded: 1"], b""),
    (["Host: a", "Host: b"], b""),
])
def test_ambiguous_requests_end_here(app, fields, body):
    smuggled = head(app, "GET /smuggled HTTP/1.1", "Host: x")
    own = [] if any(field.startswith("Host") for field in fields) else ["Host: x"]
    got = raw(app.server, head(app, f"POST {app.base}/port/{PORT}/echo HTTP/1.1", *own, *fields) +
              body + smuggled)
    assert got.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")), got[:100]
    assert got.count(b"HTTP/1.1 ") == 1 and b"smuggled" not in got


def test_a_body_is_no_second_request(app):
    """What stands in a body arrives as a body, on a connection that others use next."""
    inner = b"GET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    for _ in range(3):
        seen = app.request("POST", f"/port/{PORT}/echo", inner).json()
        assert seen["length"] == len(inner) and seen["target"] == "/echo"
        assert app.request("GET", f"/port/{PORT}/next").json()["target"] == "/next"


def test_line_ends_in_paths_and_queries_stay_encoded(app):
    path = "/a%0d%0aX-Evil:%201%0d%0a?q=%0d%0aX-Evil:%202"
    seen = app.request("GET", f"/port/{PORT}{path}").json()
    assert seen["target"] == path and "\r\nX-Evil" not in seen["head"]


def test_connection_cannot_remove_what_we_say(app):
    """Naming fields in Connection takes the client's away, never ours."""
    seen = app.request("GET", f"/port/{PORT}/echo", None, {
        "Connection": "X-Forwarded-For, Host, Via, X-Forwarded-Host"}).json()
    fields = {name.lower() for name, _ in seen["fields"]}
    assert {"x-forwarded-for", "x-forwarded-host", "host", "via"} <= fields


# --- tricks of programs ---


def test_answers_cannot_bring_a_second_one(app):
    evil = (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
            b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nEVIL")
    for _ in range(5):
        assert app.request("POST", f"/port/{PORT}/raw", evil).body == b"ok"
        answer = app.request("GET", f"/port/{PORT}/echo")
        assert answer.status == 200 and b"EVIL" not in answer.body


def test_an_endless_header_is_cut(app):
    answer = app.request("POST", f"/port/{PORT}/raw", b"HTTP/1.1 200 OK\r\nX: " + b"x" * (1 << 20))
    assert answer.error() == "UPSTREAM_FAILED"


def test_a_program_that_floods_before_it_is_asked(app):
    """Bytes on an idle connection, and an answer that comes too early, poison nothing."""
    app.write("/tmp/flood.py", """
import socketserver, time
class Flood(socketserver.BaseRequestHandler):
    def handle(self):
        try:
            while True:
                self.request.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Length: 4\\r\\n\\r\\nEVIL" * 100)
        except OSError:
            pass
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer(("127.0.0.1", 8001), Flood).serve_forever()
""")
    app.spawn("exec python3 /tmp/flood.py")
    wait_until(lambda: app.request("GET", "/port/8001/x").error() != "PORT_NOT_LISTENING", 20, "the flood")
    for _ in range(10):
        app.request("GET", "/port/8001/x")
        assert b"EVIL" not in app.request("GET", f"/port/{PORT}/echo").body


def test_limits_hold(app):
    """Connections of one sandbox are counted; beyond, it is told, and others are served."""
    limit = 512
    url = urllib.parse.urlsplit(app.server.url)
    socks, refused = [], 0
    request = head(app, f"GET {app.base}/port/{PORT}/drip HTTP/1.1", "Host: x")
    try:
        for _ in range(limit + 20):
            sock = socket.create_connection((url.hostname, url.port), timeout=60)
            socks.append(sock)
            sock.sendall(request)
            refused += b" 429 " in sock.recv(4096).split(b"\r\n", 1)[0]
        assert refused >= 20
        assert app.server.request("GET", "/health").status == 200
    finally:
        for sock in socks:
            sock.close()
    wait_until(lambda: app.request("GET", f"/port/{PORT}/stats").status == 200 and
               app.request("GET", f"/port/{PORT}/stats").json()["dripping"] == 0, 30, "the end of all")
