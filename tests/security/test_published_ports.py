# SPDX-License-Identifier: Apache-2.0
"""A published port is a stranger's way in. It leads to one port of one sandbox, for those that its access
names, however a request is written; and nothing of the server's gets to the program behind it."""

import base64
import contextlib
import socket
import urllib.parse

import pytest

from cella_auth import Workspace, call, forge_token, fresh_address
from cella_ports import PORT, Published, own_range, send, start_app
from cella_server import Server, wait_until
from e2b_box import Box


@pytest.fixture(scope="module")
def boxes(server):
    made = [start_app(server.create()), start_app(server.create())]
    yield made
    for box in made:
        box.delete()


@pytest.fixture(scope="module")
def ports(boxes):
    """One that takes tokens in each sandbox, and a second one in the first, behind which nothing is."""
    return [Published(boxes[0], access="token"), Published(boxes[1], access="token"),
            Published(boxes[0], port=8001, access="token")]


def shown(token):
    """Every way to show a token or key."""
    return [{"X-Cella-Port-Token": token}, {"Authorization": f"Bearer {token}"}, {"X-Api-Key": token},
            {"X-Blaxel-Authorization": f"Bearer {token}"}, {"X-Blaxel-Preview-Token": token},
            {"Cookie": f"cella_port_{PORT}_x={token}; bl_preview_token={token}"}]


def test_a_token_opens_one_port(ports):
    for mine in ports:
        for theirs in ports:
            for fields in shown(theirs.token()):
                for answer in mine.everywhere(headers=fields, source=fresh_address()):
                    opens = mine is theirs and "X-Cella-Port-Token" in fields
                    wanted = (200 if mine.port == PORT else 502) if opens else 401
                    assert answer.status == wanted, (mine.port, theirs.port, fields)


def test_a_token_is_no_key(server, boxes, ports):
    name, token = boxes[0].name, ports[0].token()
    for fields in shown(token):
        for path in ("/v0/sandbox", f"/v0/sandbox/{name}", f"/v0/sandbox/{name}/port/{PORT}/echo",
                     f"/v0/sandbox/{name}/ports", f"/default/sandboxes/{name}/port/{PORT}/echo"):
            for query in ("", f"?cella_token={token}", f"?token={token}"):
                answer = call(server, "GET", path + query, headers=fields, source=fresh_address())
                assert answer.status == 401, (path, fields, answer)


def test_forged_and_old_tokens(server, ports):
    box_id = ports[0].name.split(".")[0].split("-")[1]
    for audience in (f"port/{box_id}/{PORT}/", f"port/{box_id}/{PORT}", "api", f"port/{box_id}/{PORT}/x",
                     f"{PORT}-{box_id}"):
        token = forge_token(server, {"iss": "cella", "aud": audience, "sub": "x", "workspace": "default",
                                     "scope": "", "iat": 1, "nbf": 1, "exp": 1 << 33, "jti": "x"})
        for answer in ports[0].everywhere(headers={"X-Cella-Port-Token": token}):
            assert answer.status == 401, audience


def test_what_is_not_there_looks_private(server, boxes, ports):
    """To those without a key: a private port, one with tokens, another port, no sandbox at all."""
    with_tokens = ports[0].by_name()
    assert with_tokens.status == 401
    label, domain = ports[0].name.split(".", 1)
    box_id = label.split("-")[1]
    for host in (f"9-{box_id}.{domain}", f"{PORT}-aaaaaaaaaaaa.{domain}"):
        answer = ports[0].by_name(headers={"Host": host})
        assert (answer.status, answer.body) == (401, with_tokens.body), host
    nowhere = ports[0].by_name(headers={"Host": f"{PORT}-aaaaaaaaaaaa.{domain}", "X-Api-Key": server.key})
    assert nowhere.status == 404 and nowhere.error() == "SANDBOX_NOT_FOUND"


def test_other_peoples_keys(server, ports):
    space = Workspace(server)
    for fields, wanted in (({"X-Api-Key": space.key("read", "write")}, 404),
                           ({"X-Api-Key": space.key("read")}, 403)):
        for answer in ports[0].everywhere(headers=fields):
            assert answer.status == wanted, (fields, answer)
    reader = server.request("POST", "/v0/api-keys", {"name": "port-reader", "scopes": ["read"]}).json()
    for answer in ports[0].everywhere(headers={"X-Api-Key": reader["secret"]}):
        assert answer.status == 403, answer
    server.request("DELETE", f"/v0/api-keys/{reader['id']}")
    space.delete()


def test_workspaces_do_not_see_each_others(server, boxes):
    space = Workspace(server)
    key = space.key("read", "write")
    for method, path in (("GET", ""), ("POST", ""), ("GET", f"/{PORT}"), ("DELETE", f"/{PORT}"),
                         ("PATCH", f"/{PORT}"), ("POST", f"/{PORT}/tokens"), ("DELETE", f"/{PORT}/tokens")):
        body = {"port": 1} if (method, path) == ("POST", "") else {} if method in ("POST", "PATCH") else None
        answer = call(server, method, f"/v0/sandbox/{boxes[0].name}/ports{path}", key, body)
        assert answer.status == 404, (method, path, answer)
    space.delete()


def test_a_revoked_key_is_out(server, boxes, ports):
    """A connection that a key has open goes with the key."""
    key = server.request("POST", "/v0/api-keys", {"name": "port-user", "scopes": ["read", "write"]}).json()
    host, number = ports[0].ways[1][0].split(":")
    with socket.create_connection((host, int(number)), timeout=60) as sock:
        sock.sendall(f"GET /drip HTTP/1.1\r\nHost: x\r\nX-Api-Key: {key['secret']}\r\n\r\n".encode())
        data = b""
        while b"data: 1" not in data:
            piece = sock.recv(4096)
            assert piece, data
            data += piece
        assert server.request("DELETE", f"/v0/api-keys/{key['id']}").status == 200
        with contextlib.suppress(ConnectionResetError):
            while sock.recv(4096):
                pass


def test_nothing_of_ours_reaches_the_program(ports):
    token = ports[0].token()
    for way in (ports[0].by_name, ports[0].on_host):
        answer = way(f"/echo?a=1&cella_token={token}&CELLA_TOKEN={token}&bl_preview_token={token}", headers={
            "X-Cella-Port-Token": token, "X-Api-Key": "cella_x", "X-Blaxel-Authorization": "Bearer cella_x",
            "Authorization": "Bearer cella_x", "Cookie": f"a=1; cella_port_1_x={token}",
            "Referer": f"http://x/?cella_token={token}", "Connection": "close"})
        assert answer.status == 200
        seen = answer.json()
        assert token not in seen["head"] and "cella_x" not in seen["head"]
        assert seen["target"] == "/echo?a=1" and ["Cookie", "a=1"] in seen["fields"]


def test_no_credential_reaches_the_program_of_a_public_port(server):
    """Nobody asks for one there, and a client may send it all the same: in each form that opens something here."""
    box = Box(server)
    sandbox = start_app(server.sandbox(box.id))
    port = Published(sandbox, access="public")
    e2b_key = "e2b_" + server.key.encode().hex()
    inside, traffic = box.about["envdAccessToken"], box.about["trafficAccessToken"]
    for fields in ({"Authorization": f"Bearer {e2b_key}"}, {"authorization": f"bearer  {server.key}"},
                   {"X-Access-Token": inside}, {"X-Access-Token": traffic}, {"X-Access-Token": f"{box.id}:{inside}"},
                   {"E2b-Traffic-Access-Token": traffic}):
        for answer in port.everywhere(headers=fields):
            assert answer.status == 200, answer
            head = answer.json()["head"]
            assert not [value for value in (e2b_key, server.key, inside, traffic) if value in head], fields
    port.delete()
    # By E2B's own way in, where everybody may come.
    answer = box.call("GET", "/echo", None, PORT, Authorization=f"Bearer {e2b_key}")
    assert answer.status == 200 and e2b_key not in answer.text and inside not in answer.text, answer
    box.kill()


def test_what_is_the_programs_own_passes(boxes, ports):
    """Names and forms that others use as well."""
    token, other = ports[0].token(), "e2b_" + "0123456789abcdef" * 2 + "01234567"
    foreign = ".".join(base64.urlsafe_b64encode(part).rstrip(b"=").decode()
                       for part in (b'{"alg":"HS256"}', b'{"iss":"cella","aud":"api","sub":"x"}', b"signature"))
    for fields in ({"Authorization": f"Bearer {foreign}"}, {"Authorization": f"Bearer {other}"}, {"Authorization": "Basic YTpi"},
                   {"X-Access-Token": "0" * 64}, {"X-Access-Token": "its:own"}):
        for answer in ports[0].everywhere(headers={"X-Cella-Port-Token": token, **fields}):
            assert answer.status == 200 and [*fields.items()][0] in [tuple(f) for f in answer.json()["fields"]], (fields, answer)


@pytest.mark.parametrize("path", ["/../v0/sandbox", "/%2e%2e/v0/sandbox", "//v0/sandbox", "/v0/../v0/sandbox",
                                  "/v0/sandbox%00", "/preview/x", "/.cella"])
def test_no_path_leads_to_the_api(server, ports, path):
    token = ports[0].token()
    for answer in ports[0].everywhere(path, headers={"X-Cella-Port-Token": token,
                                                     "Authorization": f"Bearer {server.key}"}):
        assert answer.status == 200 and answer.json()["target"] == path


def raw(address, text):
    host, number = address.rsplit(":", 1)
    with socket.create_connection((host, int(number)), timeout=60) as sock:
        sock.sendall(text.encode("latin-1"))
        sock.shutdown(socket.SHUT_WR)
        data = b""
        with contextlib.suppress(ConnectionResetError):
            while piece := sock.recv(65536):
                data += piece
    return data.decode("latin-1")


def test_which_host_it_is_about(server, ports):
    """Two names in one request: whichever counts, nobody gets in to the other without asking."""
    api = urllib.parse.urlsplit(server.url).netloc
    name = ports[0].name
    for head in (f"GET /echo HTTP/1.1\r\nHost: {name}\r\nHost: {api}\r\n",
                 f"GET /echo HTTP/1.1\r\nHost: {name}, {api}\r\n",
                 f"GET /echo HTTP/1.1\r\nHost: {api}\r\nX-Forwarded-Host: {name}\r\n",
                 f"GET http://{name}/echo HTTP/1.1\r\nHost: {api}\r\n",
                 f"GET http://{api}/v0/sandbox HTTP/1.1\r\nHost: {name}\r\n",
                 "GET /echo HTTP/1.1\r\nHost: x@" + name + "\r\n",
                 f"GET /echo HTTP/1.0\r\nHost: {name}\r\n"):
        status = raw(api, head + "Connection: close\r\n\r\n").split(" ", 2)[1]
        assert status in ("400", "401", "404"), (head, status)


def test_no_smuggling(ports):
    """On the program's side there is one request for each that was let in."""
    token = ports[0].token()
    for framing in ("Content-Length: 5\r\nTransfer-Encoding: chunked", "Content-Length: 5, 6",
                    "Transfer-Encoding: chunked, identity", "Content-Length: +5", "Content-Length: 5\r\nContent-Length: 6"):
        answer = raw(ports[0].ways[1][0],
                     f"POST /echo HTTP/1.1\r\nHost: x\r\nX-Cella-Port-Token: {token}\r\n{framing}\r\n\r\n"
                     "0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n")
        assert answer.split(" ", 2)[1] in ("400", "501") and "smuggled" not in answer, (framing, answer)
    for answer in ports[0].everywhere(headers={"X-Cella-Port-Token": token}):
        assert answer.status == 200


def test_programs_cannot_set_our_cookies(boxes, ports):
    token = ports[0].token()
    label = f"cella_port_{PORT}_{ports[1].name.split('.')[0].split('-')[1]}"
    field = urllib.parse.quote(base64.b64encode(f"Set-Cookie: {label}=x; Domain=localhost".encode()))
    answer = send(ports[0].ways[1][0], "GET", f"/text?f={field}", {"X-Cella-Port-Token": token})
    assert answer.status == 200 and "Set-Cookie" not in answer.headers


# --- ports of the host ---

UPPER = ("import socket\ns = socket.create_server(('127.0.0.1', 9000))\n"
         "while True:\n c, _ = s.accept()\n while d := c.recv(99): c.sendall(d.upper())\n c.close()\n")


@pytest.fixture(scope="module")
def host(contract):
    """A server of these tests' own that counts who comes, with a program for HTTP and one for bytes."""
    made = Server(*own_range(), "--rate-limit", "local=on,proxy=1:5,address=off,read=off,write=off,files=off,exec=off",
                  "--quota", "streams-per-key=1")
    box = start_app(made.create())
    box.write("/tmp/upper.py", UPPER)
    box.spawn("exec python3 /tmp/upper.py")
    yield box
    box.delete()
    made.close()


def lines_from(server, source):
    answer = call(server, "GET", "/v0/audit?limit=1000", server.key)
    return [line for line in answer.json()["entries"] if line.get("address", "").startswith(f"{source}:")]


def shouts(port, source):
    """Whether the program for bytes answers; or the connection is closed."""
    with contextlib.suppress(ConnectionResetError, BrokenPipeError), \
            socket.create_connection(("127.0.0.1", port.host_port), 60, (source, 0)) as sock:
        sock.sendall(b"x")
        return sock.recv(1) == b"X"
    return False


def test_visits_on_the_host_are_limited_and_recorded(host):
    port, here = Published(host, access="public"), fresh_address()
    answers = [port.on_host("/text", source=here) for _ in range(12)]
    assert answers[0].status == 200 and answers[-1].status == 429, answers
    assert answers[-1].error() == "RATE_LIMITED" and int(answers[-1].headers["Retry-After"]) >= 1
    assert answers[-1].headers["RateLimit-Policy"].startswith('"proxy";')
    assert port.on_host("/text", source=fresh_address()).status == 200
    lines = lines_from(host.server, here)
    assert len(lines) == len(answers) and {line["status"] for line in lines} == {200, 429}
    for line in lines:
        assert (line["operation"], line["class"], line["sandboxId"]) == ("GET (port)", "proxy", host.get()["metadata"]["id"])
        assert "key" not in line
    port.delete()


def test_streams_on_the_host_are_counted(host):
    port, here = Published(host, access="public"), fresh_address()
    address = port.ways[1][0].split(":")
    with socket.create_connection((address[0], int(address[1])), 60, (here, 0)) as sock:
        sock.sendall(b"GET /drip HTTP/1.1\r\nHost: x\r\n\r\n")
        assert sock.recv(12).endswith(b"200")
        refused = port.on_host("/drip", source=here)
        assert refused.status == 429 and refused.error() == "TOO_MANY_STREAMS", refused
        assert int(refused.headers["Retry-After"]) >= 1
    port.delete()


def test_who_guesses_keys_on_the_host_is_told_to_wait(host):
    port, here = Published(host, access="private"), fresh_address()
    guesses = [call(host.server, "GET", "/v0/whoami", "cella_wrong", source=here) for _ in range(40)]
    assert guesses[-1].status == 429
    refused = port.on_host(headers={"X-Api-Key": "cella_wrong"}, source=here)
    assert refused.status == 429 and refused.error() == "TOO_MANY_ATTEMPTS", refused
    assert int(refused.headers["Retry-After"]) >= 1
    port.delete()


def test_connections_of_bytes_are_limited_and_recorded(host):
    port, here, other = Published(host, port=9000, protocol="tcp", access="public"), fresh_address(), fresh_address()
    wait_until(lambda: shouts(port, fresh_address()), 30, "the program")
    answers = [shouts(port, here) for _ in range(12)]
    assert answers[0] and not answers[-1], answers
    lines = lines_from(host.server, here)
    assert len(lines) == len(answers)
    for line in lines:
        assert (line["operation"], line["class"], line["target"], line["workspace"]) == ("TCP (port)", "proxy", "9000", "default")
        assert line["sandboxId"] == host.get()["metadata"]["id"]
    assert {None, "RATE_LIMITED"} <= {line.get("error") for line in lines}  # one before may not be over yet
    with socket.create_connection(("127.0.0.1", port.host_port), 60, (other, 0)) as sock:  # and as streams
        sock.sendall(b"x")
        assert sock.recv(1) == b"X" and not shouts(port, other)
    assert {line.get("error") for line in lines_from(host.server, other)} == {None, "TOO_MANY_STREAMS"}
    wait_until(lambda: shouts(port, other), 30, "a place for a stream")
    port.delete()
