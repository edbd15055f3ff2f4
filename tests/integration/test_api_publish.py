# SPDX-License-Identifier: Apache-2.0
"""Published ports: on ports of the host and by host name, for those who may come in."""

import base64
import contextlib
import json
import socket
import urllib.parse

import pytest

from cella_ports import PORT, Published, is_closed, open_stream, send, start_app
from cella_server import wait_until


@pytest.fixture(scope="module")
def app(server):
    made = start_app(server.create())
    yield made
    made.delete()


@contextlib.contextmanager
def published(app, **fields):
    port = Published(app, **fields)
    try:
        yield port
    finally:
        app.request("DELETE", f"/ports/{port.port}")


def key_of(app):
    return {"X-Api-Key": app.server.key}


def statuses(answers):
    return [answer.status for answer in answers]


def fields_of(answer):
    return {name.lower(): value for name, value in answer.json()["fields"]}


# --- who may come in ---


def test_private_unless_it_is_said(app):
    with published(app) as port:
        assert port.json["access"] == "private" and port.json["protocol"] == "http"
        assert 30000 <= port.host_port <= 32767 and "hostError" not in port.json
        assert statuses(port.everywhere()) == [401, 401]
        for fields in (key_of(app), {"Authorization": f"Bearer {app.server.key}"}):
            for answer in port.everywhere("/a/b?c=d", headers=fields):
                assert answer.status == 200 and answer.json()["target"] == "/a/b?c=d"
        by_path = app.request("GET", f"/port/{PORT}/echo")
        assert by_path.status == 200


def test_what_is_not_published_is_private(app):
    with published(app) as port:
        pass
    assert is_closed(port.server, port.host_port)
    assert port.by_name().status == 401
    assert port.by_name(headers=key_of(app)).status == 200
    assert app.request("GET", f"/ports/{PORT}").error() == "PORT_NOT_PUBLISHED"


def test_public(app):
    with published(app, access="public") as port:
        for answer in port.everywhere(headers={"Authorization": "Basic cHJvZ3JhbQ=="}):
            assert answer.status == 200
            assert fields_of(answer)["authorization"] == "Basic cHJvZ3JhbQ=="  # the program's own


def test_token(app):
    with published(app, access="token") as port:
        token = port.token()
        assert statuses(port.everywhere()) == [401, 401]
        for answer in port.everywhere(headers={"X-Cella-Port-Token": token}):
            assert answer.status == 200 and "x-cella-port-token" not in fields_of(answer)
        for answer in port.everywhere(f"/echo?a=1&cella_token={token}&b=2"):
            assert answer.status == 200 and answer.json()["target"] == "/echo?a=1&b=2"
        assert statuses(port.everywhere(headers=key_of(app))) == [200, 200]
        for wrong in (token[:-2] + "AA", "x", ""):
            assert statuses(port.everywhere(headers={"X-Cella-Port-Token": wrong})) == [401, 401]


def test_a_browser_keeps_the_token(app):
    with published(app, access="token") as port:
        token = port.token(expiresIn="1h")
        for way in (port.by_name, port.on_host):
            first = way(f"/text?a=1&cella_token={token}&b=2", headers={"Accept": "text/html"})
            cookie, *rest = first.headers["Set-Cookie"].split("; ")
            assert rest == ["Path=/", "HttpOnly", "SameSite=Lax"]
            # … and goes on without it: what is in an address gets around.
            assert first.status == 303 and first.headers["Location"] == "/text?a=1&b=2"
            assert first.headers["Referrer-Policy"] == "no-referrer"
            again = way(headers={"Cookie": f"mine=1; {cookie}; other=2"})
            assert again.status == 200 and fields_of(again)["cookie"] == "mine=1; other=2"
            alone = way(headers={"Cookie": cookie})
            assert alone.status == 200 and "cookie" not in fields_of(alone)
            for path in ("//evil.example/x", "/\\evil.example/x"):  # nowhere else
                answer = way(f"{path}?cella_token={token}", headers={"Accept": "text/html"})
                assert "Location" not in answer.headers, answer


def test_revoked_tokens(app):
    with published(app, access="token") as port:
        token = port.token()
        assert app.request("DELETE", f"/ports/{PORT}/tokens").status == 200
        assert statuses(port.everywhere(headers={"X-Cella-Port-Token": token})) == [401, 401]
        token = port.token()
        assert statuses(port.everywhere(headers={"X-Cella-Port-Token": token})) == [200, 200]
    with published(app, access="token") as port:  # another one, though it looks the same
        assert statuses(port.everywhere(headers={"X-Cella-Port-Token": token})) == [401, 401]


def test_tokens_are_for_token_ports(app):
    with published(app) as port:
        answer = app.request("POST", f"/ports/{PORT}/tokens", {})
        assert answer.status == 409 and answer.error() == "CONFLICT"
        port.patch(access="token")
        for lifetime in ("0s", "400d", "x", -1):
            answer = app.request("POST", f"/ports/{PORT}/tokens", {"expiresIn": lifetime})
            assert answer.status == 400, answer
        answer = app.request("POST", f"/ports/{PORT}/tokens", {"expiresIn": 60}).json()
        url = urllib.parse.urlsplit(answer["url"])
        assert url.netloc == port.name and url.query == f"cella_token={answer['token']}"


def test_access_changes_at_once(app):
    with published(app, access="public") as port:
        sock, head = open_stream(port.ways[1][0], ["GET /upgrade HTTP/1.1", "Host: x",
                                                   "Connection: Upgrade", "Upgrade: echo"])
        assert " 101 " in head.splitlines()[0]
        assert statuses(port.everywhere()) == [200, 200]
        assert port.patch(access="private")["access"] == "private"
        assert statuses(port.everywhere()) == [401, 401]
        with sock, contextlib.suppress(ConnectionResetError):  # whoever was let in before is out
            while sock.recv(100):
                pass


# --- what passes ---


def test_an_origin_of_its_own(app):
    given = ["Set-Cookie: a=1; Path=/; Domain=localhost", "Set-Cookie: b=2; domain = x.example ;Secure",
             "Set-Cookie: cella_port_1_x=stolen", "Access-Control-Allow-Origin: https://mine.example"]
    packed = ",".join(base64.b64encode(line.encode()).decode() for line in given)
    with published(app, access="public") as port:
        for answer in port.everywhere("/text?f=" + urllib.parse.quote(packed)):
            assert answer.headers.get_all("Set-Cookie") == ["a=1; Path=/", "b=2; Secure"]
            assert answer.headers["Access-Control-Allow-Origin"] == "https://mine.example"
            assert "Content-Security-Policy" not in answer.headers
        for answer, (_, host) in zip(port.everywhere(), port.ways):
            fields = fields_of(answer)
            assert fields["x-forwarded-host"] == host and "x-forwarded-prefix" not in fields
            assert fields["host"] == f"localhost:{PORT}"


@pytest.mark.parametrize("path", ["/v0/sandbox", "/health", "/default/sandbox", "/preview/x"])
def test_the_api_is_not_there(app, path):
    with published(app, access="public") as port:
        for answer in port.everywhere(path, headers=key_of(app)):
            assert answer.status == 200 and answer.json()["target"] == path
            assert "x-api-key" not in fields_of(answer)


def test_websocket_and_events(app):
    with published(app, access="public") as port:
        for address, host in port.ways:
            sock, head = open_stream(address, [
                "GET /ws HTTP/1.1", f"Host: {host}", "Connection: Upgrade", "Upgrade: websocket",
                "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13"])
            with sock:
                assert " 101 " in head and "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
                sock.sendall(b"\x81\x82\0\0\0\0hi")
                assert sock.recv(4, socket.MSG_WAITALL) == b"\x81\x02hi"
            sock, head = open_stream(address, ["GET /drip HTTP/1.1", f"Host: {host}"])
            with sock:
                assert "text/event-stream" in head
                data = b""
                while b"data: 1\n\n" not in data:
                    piece = sock.recv(100)
                    assert piece, data
                    data += piece


def test_names_in_every_spelling(app):
    with published(app, access="public") as port:
        name, api_port = port.name.rsplit(":", 1)
        for host in (name, name.upper(), f"{name}.", f"{name}:1", f"{name}.:{api_port}"):
            assert port.by_name(headers={"Host": host}).json()["target"] == "/echo", host
        for host in (f"0{name}", f"x.{name}", f"{name}x", f"8000-{name}", f"99999-{name[5:]}",
                     f"{name}.example", name.replace("-", "--"), name.replace(".", "x.")):
            answer = port.by_name("/health", headers={"Host": host})
            assert answer.status == 200 and "status" in answer.json(), host  # the API


def test_raw_bytes(app):
    app.write("/tmp/upper.py", "import socket\ns = socket.create_server(('127.0.0.1', 9000))\n"
              "while True:\n c, _ = s.accept()\n while d := c.recv(99): c.sendall(d.upper())\n c.close()\n")
    app.spawn("exec python3 /tmp/upper.py")
    with published(app, port=9000, protocol="tcp", access="public") as port:
        assert port.json["urls"]["hostPort"] == f"tcp://127.0.0.1:{port.host_port}"

        def talks():
            with contextlib.suppress(ConnectionResetError, BrokenPipeError), \
                    socket.create_connection(("127.0.0.1", port.host_port), timeout=30) as sock:
                sock.sendall(b"\0hello")
                if (got := sock.recv(6, socket.MSG_WAITALL)) != b"":
                    assert got == b"\0HELLO"
                    sock.shutdown(socket.SHUT_WR)
                    assert sock.recv(1) == b""
                    return True
            return False

        wait_until(talks, 20, "the program")
        with socket.create_connection(("127.0.0.1", port.host_port), timeout=30) as sock:
            sock.sendall(b"x")
            assert sock.recv(1) == b"X"
            port.delete()
            with contextlib.suppress(ConnectionResetError):
                assert sock.recv(1) == b""
        assert is_closed(port.server, port.host_port)


# --- ports of the host ---


def test_a_port_of_ones_choice(app):
    def publish():
        """Any free one, and the same again: another program may be faster in between."""
        with published(app) as port:
            chosen = port.host_port
        answer = app.request("POST", "/ports", {"port": PORT, "hostPort": chosen})
        return answer if answer.status == 201 else None

    answer = wait_until(publish, 20, "a port of the host")
    host_port = answer.json()["hostPort"]
    again = app.request("POST", "/ports", {"port": 8001, "hostPort": host_port})
    assert again.status == 409 and again.error() == "PORT_IN_USE"
    assert app.request("POST", "/ports", {"port": PORT}).error() == "ALREADY_EXISTS"
    listed = app.request("GET", "/ports").json()
    assert listed["total"] == 1 and listed["ports"][0]["hostPort"] == host_port
    assert app.request("DELETE", f"/ports/{PORT}").status == 200
    with contextlib.ExitStack() as stack:
        with contextlib.suppress(OSError):  # free at once, and somebody else's now: ours, or another's yet
            stack.enter_context(socket.create_server(("127.0.0.1", host_port)))
        answer = app.request("POST", "/ports", {"port": PORT, "hostPort": host_port})
        assert answer.status == 409 and answer.error() == "PORT_IN_USE"
    assert app.request("GET", "/ports").json()["ports"] == []


def test_without_a_port_of_the_host(app):
    with published(app, hostPort=None, access="public") as port:
        assert port.host_port is None and port.json["urls"]["hostPort"] is None
        assert port.by_name().status == 200


@pytest.mark.parametrize("body, code", [
    ({}, "INVALID_ARGUMENT"), ({"port": 0}, "INVALID_ARGUMENT"), ({"port": 65536}, "INVALID_ARGUMENT"),
    ({"port": "x"}, "INVALID_ARGUMENT"), ({"port": 1.5}, "INVALID_ARGUMENT"),
    ({"port": 1, "hostPort": 22}, "INVALID_ARGUMENT"), ({"port": 1, "hostPort": -1}, "INVALID_ARGUMENT"),
    ({"port": 1, "hostPort": 65536}, "INVALID_ARGUMENT"), ({"port": 1, "hostPort": "x"}, "INVALID_ARGUMENT"),
    ({"port": 1, "access": "all"}, "INVALID_ARGUMENT"), ({"port": 1, "protocol": "udp"}, "INVALID_ARGUMENT"),
    ({"port": 1, "protocol": "tcp"}, "INVALID_ARGUMENT"),
    ({"port": 1, "protocol": "tcp", "access": "token"}, "INVALID_ARGUMENT"),
    ({"port": 1, "protocol": "tcp", "access": "public", "hostPort": None}, "INVALID_ARGUMENT"),
    ({"port": 1, "command": "x" * 4097}, "INVALID_ARGUMENT"), ({"port": 1, "name": "x"}, "UNKNOWN_FIELD"),
])
def test_bad_requests(app, body, code):
    answer = app.request("POST", "/ports", body)
    assert answer.status == 400 and answer.error() == code, answer
    assert app.request("GET", "/ports").json()["total"] == 0


def test_bad_changes(app):
    with published(app) as port:
        for body in ({"access": "x"}, {"port": 1}, {"hostPort": 1}, {"command": 1}):
            assert app.request("PATCH", f"/ports/{PORT}", body).status == 400, body
        assert port.patch(command="sleep 1")["command"] == "sleep 1"
        assert port.patch(access="public")["command"] == "sleep 1"
        assert port.patch(command=None)["command"] is None
    for number in ("0", "08000", "65536", "x"):
        assert app.request("GET", f"/ports/{number}").status == 400
    for method in ("GET", "DELETE"):
        assert app.request(method, "/ports/1").error() == "PORT_NOT_PUBLISHED"
    assert app.request("PATCH", "/ports/1", {}).error() == "PORT_NOT_PUBLISHED"


def test_there_is_a_limit(server):
    box = server.create(enabled=False)
    for number in range(1, 65):
        assert box.request("POST", "/ports", {"port": number, "hostPort": None}).status == 201
    answer = box.request("POST", "/ports", {"port": 65, "hostPort": None})
    assert answer.status == 429 and answer.error() == "LIMIT_EXCEEDED"
    box.delete()


def test_the_log_tells_of_it(sandbox):
    port = Published(sandbox, access="token")
    port.patch(access="public")
    sandbox.request("DELETE", f"/ports/{PORT}/tokens")
    port.delete()
    on_host = f"http on port {port.host_port} of the host"
    lines = [line["message"] for line in sandbox.request("GET", "/logs").json()["logs"]]
    assert [line for line in lines if line.startswith("Port ")] == [
        f"Port {PORT} published by admin (token, {on_host})",
        f"Port {PORT} changed by admin (public, {on_host})",
        f"Port {PORT} closed to its tokens by admin (public, {on_host})",
        f"Port {PORT} unpublished by admin (public, {on_host})"]


def test_gone_with_the_sandbox(server):
    box = server.create(enabled=False)
    port = Published(box, access="public")
    answer = port.on_host()
    assert answer.status == 409 and answer.error() == "NOT_RUNNING"
    assert box.name not in answer.text  # that is not for strangers
    box.delete()
    wait_until(lambda: is_closed(port.server, port.host_port), 20, "the port of the host closed")
    assert port.by_name(headers={"X-Api-Key": server.key}).error() == "SANDBOX_NOT_FOUND"


def test_clones_have_none(server):
    box = server.create(enabled=False)
    Published(box, access="public")
    answer = box.request("POST", "/clone", {"metadata": {"name": f"{box.name}-2"}})
    assert answer.status == 202, answer
    other = server.sandbox(f"{box.name}-2")
    assert other.request("GET", "/ports").json()["total"] == 0
    other.wait_status("stopped")
    other.delete()
    box.delete()


# --- options of the server ---


def test_options(server_factory):
    server = server_factory("--ports", "off", "--domain", "boxes.example", "--public-url",
                            "https://cella.example:8443/x")
    box = start_app(server.create())
    answer = box.request("POST", "/ports", {"port": PORT})
    assert answer.status == 503 and answer.error() == "UNAVAILABLE"
    port = Published(box, hostPort=None, access="public")
    assert port.json["urls"]["name"].startswith(f"https://{PORT}-")
    assert port.name.endswith(".boxes.example:8443")
    answer = port.by_name()
    assert fields_of(answer)["x-forwarded-proto"] == "https"
    box.delete()


@pytest.mark.parametrize("option", [
    ("--ports", "x"), ("--ports", "127.0.0.1:80-90"), ("--ports", "127.0.0.1:3000-2000"),
    ("--ports", "127.0.0.1:3000-70000"), ("--ports", "example.com:3000-3001"), ("--domain", ""),
    ("--domain", "a..b"), ("--domain", "A_b"), ("--domain", "-x"), ("--domain", "a" * 64),
])
def test_bad_options(server, option):
    done = server.cli("server", *option)
    assert done.returncode == 2 and option[0] in done.stderr, done


def test_an_open_server_asks_pages_where_they_come_from(server_factory):
    server = server_factory("--no-auth")
    server.key = None
    box = start_app(server.create())
    port = Published(box)
    for (_, host), answer in zip(port.ways, port.everywhere()):
        assert answer.status == 200, host
    evil = {"Origin": "https://evil.example"}
    assert statuses(port.everywhere(headers=evil)) == [403, 403]
    address = port.ways[1][0]
    assert send(address, "GET", "/echo", {"Host": "evil.example"}).status == 403
    port.patch(access="public")
    assert statuses(port.everywhere(headers=evil)) == [200, 200]
    assert json.loads(port.by_name().body)["target"] == "/echo"
    box.delete()
