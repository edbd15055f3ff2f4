# SPDX-License-Identifier: Apache-2.0
"""A preview's address and token are given to people without a key. They lead to one port of one
sandbox, or to the API of one sandbox, and to nothing else, however a request is written."""

import contextlib
import http.client

import pytest

from cella_auth import Workspace, call, fresh_address
from cella_ports import PORT, start_app
from cella_server import wait_until
from cella_websocket import Terminal

END = "2099-01-01T00:00:00Z"


class Preview:
    """A preview of a sandbox, and what a stranger gets at its address."""

    def __init__(self, server, sandbox, name, **spec):
        self.server, self.name, self.base = server, name, f"/v0/sandboxes/{sandbox.name}/previews"
        made = server.request("POST", self.base, {"metadata": {"name": name}, "spec": spec})
        assert made.status == 200, made
        self.path = made.json()["spec"]["url"].removeprefix(server.url)
        token = server.request("POST", f"{self.base}/{name}/tokens", {"spec": {"expiresAt": END}})
        self.token = token.json()["spec"]["token"]

    def get(self, rest, method="GET", body=None, **fields):
        """With the token, and the path as it is."""
        fields = {"X-Blaxel-Preview-Token": self.token,
                  **{name.replace("_", "-"): value for name, value in fields.items()}}
        return self.server.request(method, self.path + rest, body, {"Authorization": None, **fields})


@pytest.fixture(scope="module")
def boxes(server):
    """Two sandboxes with a secret each, and a program on port 3000 that says whose it is."""
    made = [server.create(), server.create()]
    for sandbox in made:
        sandbox.write("/tmp/secret", f"secret of {sandbox.name}")
        sandbox.run(f"mkdir -p /srv/web && echo web of {sandbox.name} > /srv/web/index.html")
        answer = server.request("POST", f"/default/sandboxes/{sandbox.name}/process", {
            "command": "cd /srv/web && exec python3 -m http.server 3000",
            "waitForPorts": [3000]}, timeout=60)
        assert answer.status == 200, answer
    yield made
    for sandbox in made:
        sandbox.delete()


@pytest.fixture(scope="module")
def session(server, boxes):
    return Preview(server, boxes[0], "session-a", port=443, public=False, expires=END)


@pytest.fixture(scope="module")
def web(server, boxes):
    return Preview(server, boxes[0], "web-a", port=3000, public=False)


def test_they_open_what_they_are_for(boxes, session, web):
    assert session.get("/filesystem/%2Ftmp%2Fsecret").json()["content"] == f"secret of {boxes[0].name}"
    assert web.get("/").body.decode().strip() == f"web of {boxes[0].name}"


@pytest.mark.parametrize("fields", [
    {"Authorization": "Bearer {}"}, {"X-Blaxel-Authorization": "Bearer {}"}, {"X-Api-Key": "{}"},
    {"X-Blaxel-Preview-Token": "{}"}, {"Cookie": "bl_preview_token={}"},
])
def test_the_token_is_no_key(server, boxes, session, web, fields):
    name = boxes[0].name
    for token in (session.token, web.token):
        shown = {name: value.format(token) for name, value in fields.items()}
        for path in ("/v0/sandboxes", f"/v0/sandbox/{name}", "/v0/whoami",
                     f"/default/sandboxes/{name}/filesystem/%2Ftmp%2Fsecret",
                     f"/default/sandbox/{name}/filesystem/tmp/secret",
                     f"/default/sandboxes/{name}/port/3000/"):
            for query in ("", f"?bl_preview_token={token}", f"?token={token}"):
                # Wrong keys are counted by where they come from.
                answer = call(server, "GET", path + query, headers=shown, source=fresh_address())
                assert answer.status == 401, (path + query, answer)


def test_the_token_is_for_one_preview(server, boxes, session, web):
    other = Preview(server, boxes[1], "web-b", port=3000, public=False)
    for mine, theirs in ((session, web), (web, session), (web, other), (other, session)):
        answer = mine.get("/", X_Blaxel_Preview_Token=theirs.token)
        assert answer.status == 401, answer


TRICKS = ["/../{other}", "/..%2F{other}", "/%2e%2e/{other}", "/%2E%2E%2F{other}", "//{other}",
          "/./../{other}", "/.%2e/{other}", "/..%5c{other}", "/..;/{other}", "/%252e%252e/{other}"]


@pytest.mark.parametrize("trick", TRICKS)
def test_no_way_out_of_a_session(boxes, session, trick):
    other = boxes[1].name
    for rest in (f"{other}/filesystem/%2Ftmp%2Fsecret", f"sandboxes/{other}/filesystem/%2Ftmp%2Fsecret",
                 f"default/sandboxes/{other}/filesystem/%2Ftmp%2Fsecret", f"{other}/port/3000/",
                 "v0/sandboxes", "v0/sandbox"):
        answer = session.get(trick.format(other=rest))
        assert answer.status in (400, 404), (rest, answer)
        assert b"secret of" not in answer.body and b"web of" not in answer.body


@pytest.mark.parametrize("trick", TRICKS)
def test_no_way_out_of_a_port(boxes, web, trick):
    other = boxes[1].name
    for rest in (f"port/3000/{other}", f"sandboxes/{other}/filesystem/%2Ftmp%2Fsecret", "v0/sandboxes",
                 "filesystem/%2Ftmp%2Fsecret", "process"):
        answer = web.get(trick.format(other=rest))
        # Whatever comes back is the program's, which has no such file; or nothing was asked of it.
        assert answer.status in (400, 404), (rest, answer)
        assert b"secret of" not in answer.body
        assert f"web of {other}".encode() not in answer.body


def test_a_session_has_no_control_plane(session, boxes):
    for method, rest in (("DELETE", ""), ("PUT", ""), ("GET", "/previews"), ("POST", "/fork"),
                         ("POST", "/previews"), ("PUT", "/stop"), ("GET", "/metrics")):
        answer = session.get(rest, method)
        assert answer.status in (404, 405), (method, rest, answer)
    assert boxes[0].status() == "running"


def test_a_name_in_another_sandboxes_place(server, session, boxes):
    """The sandbox is found by the preview, not by anything in the request."""
    for fields in ({"X-Blaxel-Workspace": "other"}, {"X-Cella-Workspace": "other"},
                   {"Host": f"{boxes[1].name}.example"}):
        answer = server.request("GET", session.path + "/filesystem/%2Ftmp%2Fsecret", headers={
            "Authorization": None, "X-Blaxel-Preview-Token": session.token, **fields})
        assert answer.json()["content"] == f"secret of {boxes[0].name}"


def test_a_public_preview_of_443_is_no_session(server, boxes):
    public = Preview(server, boxes[0], "public-443", port=443, public=True)
    answer = public.get("/filesystem/%2Ftmp%2Fsecret")
    assert answer.status == 502, answer  # a port like any other, and nobody listens there


def test_the_next_of_the_same_name_is_another(server):
    first = server.create("again")
    first.write("/tmp/secret", "first")
    session = Preview(server, first, "session-x", port=443, public=False, expires=END)
    public = Preview(server, first, "public-x", port=3000, public=True)
    first.delete()
    second = server.create("again")
    try:
        second.write("/tmp/secret", "second")
        assert session.get("/filesystem/%2Ftmp%2Fsecret").status == 404
        assert public.get("/").status == 404
        assert server.request("GET", "/v0/sandboxes/again/previews").json() == []
    finally:
        second.delete()


def test_the_program_sees_neither_token_nor_cookie(server, boxes):
    box = boxes[1]
    preview = Preview(server, box, "headers-b", port=3001, public=False)
    box.write("/tmp/tell.py", "import http.server\n"
              "class H(http.server.BaseHTTPRequestHandler):\n"
              "    def do_GET(self):\n"
              "        data = (self.path + str(self.headers)).encode()\n"
              "        self.send_response(200)\n"
              "        self.send_header('Content-Length', str(len(data)))\n"
              "        self.send_header('Set-Cookie', 'a=b; Path=/')\n"
              "        self.end_headers()\n"
              "        self.wfile.write(data)\n"
              "http.server.HTTPServer(('', 3001), H).serve_forever()\n")
    started = server.request("POST", f"/default/sandboxes/{box.name}/process", {
        "command": "exec python3 /tmp/tell.py", "waitForPorts": [3001]}, timeout=60)
    assert started.status == 200, started
    answer = preview.get(f"/x?bl_preview_token={preview.token}&y=1",
                         Cookie=f"bl_preview_token={preview.token}; mine=1",
                         Referer=f"http://a/?bl_preview_token={preview.token}")
    assert answer.status == 200 and b"/x?y=1" in answer.body
    assert preview.token.encode() not in answer.body
    # The address is this server's own origin: a cookie would go to every other sandbox's pages.
    assert "Set-Cookie" not in answer.headers
    assert "sandbox" in answer.headers["Content-Security-Policy"]


def test_other_workspaces_see_no_previews(server, boxes, session):
    base = f"/v0/sandboxes/{boxes[0].name}/previews"
    stranger = Workspace(server)
    try:
        key = {"Authorization": f"Bearer {stranger.key('admin')}"}
        for method, path in (("GET", base), ("GET", base + "/session-a"), ("DELETE", base + "/session-a"),
                             ("GET", base + "/session-a/tokens"), ("POST", base + "/session-a/tokens")):
            assert server.request(method, path, headers=key).status == 404, path
    finally:
        stranger.delete()
    assert session.get("/health").status == 200


def test_who_may_only_read_gets_no_token(server):
    mine = Workspace(server)
    try:
        mine.create("box")
        reader = {"Authorization": f"Bearer {mine.key('read')}"}
        writer = {"Authorization": f"Bearer {mine.key('write')}"}
        base = "/v0/sandboxes/box/previews"
        made = server.request("POST", base, {"metadata": {"name": "p"}, "spec": {"port": 1}}, writer)
        assert made.status == 200, made
        assert server.request("GET", base + "/p", headers=reader).status == 200
        assert server.request("GET", base + "/p/tokens", headers=reader).status == 403
        assert server.request("POST", base + "/p/tokens", {}, reader).status == 403
        assert server.request("POST", base, {"metadata": {"name": "q"}, "spec": {"port": 1}},
                              reader).status == 403
    finally:
        mine.delete()


def test_there_are_not_more_than_so_many(server):
    box = server.create(enabled=False)
    base = f"/v0/sandboxes/{box.name}/previews"
    try:
        for i in range(100):
            made = server.request("POST", base, {"metadata": {"name": f"p{i}"}, "spec": {"port": 80}})
            assert made.status == 200, made
        refused = server.request("POST", base, {"metadata": {"name": "more"}, "spec": {"port": 80}})
        assert refused.status == 429 and refused.json()["error"] == "LIMIT_EXCEEDED"
        for i in range(100):
            assert server.request("POST", base + "/p0/tokens", {}).status == 200
        assert server.request("POST", base + "/p0/tokens", {}).status == 429
    finally:
        box.delete()


def test_a_websocket_through_a_preview_needs_the_token(server, web):
    with contextlib.closing(server.connection()) as connection:
        connection.request("GET", web.path + "/ws", headers={
            "Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ=="})
        assert connection.getresponse().status == 401


def test_a_token_that_was_taken_back_opens_nothing(server, boxes, session):
    base = f"/v0/sandboxes/{boxes[0].name}/previews/session-a/tokens"
    made = server.request("POST", base, {"metadata": {"name": "t2"}, "spec": {}}).json()
    token = made["spec"]["token"]
    assert session.get("/health", X_Blaxel_Preview_Token=token).status == 200
    assert server.request("DELETE", base + "/t2").status == 200
    assert session.get("/health", X_Blaxel_Preview_Token=token).status == 401
    wait_until(lambda: session.get("/health").status == 200, 10, "the other one still does")


def own_session(server_factory, *options):
    """A session of a server with these options: its sandbox, and it."""
    own = server_factory(*options)
    box = own.create()
    return own, box, Preview(own, box, "session", port=443, public=False, expires=END)


def lines_of(server, box):
    answer = call(server, "GET", "/v0/audit?limit=1000", server.key)
    return [line for line in answer.json()["entries"] if line.get("sandboxId") == box.get()["metadata"]["id"] and line["api"] == "blaxel"]


def test_what_a_session_does_is_in_the_audit_log(server_factory):
    """As what a token of the sandbox does: which row, who, where and what, also where reads are left out."""
    own, box, session = own_session(server_factory, "--audit", "reads=no")
    assert session.get("/filesystem/%2Ftmp%2Fa", "PUT", {"content": "x"}).status == 200
    assert session.get("/filesystem/%2Ftmp%2Fa").status == 200
    assert session.get("/process", "POST", {"command": "true", "waitForCompletion": True}).status == 200
    told = {line["operation"]: line for line in lines_of(own, box)}
    row = "/{workspace}/sandboxes/{name}"
    assert f"GET {row}/filesystem/{{path*}}" not in told
    written, ran = told[f"PUT {row}/filesystem/{{path*}}"], told[f"POST {row}/process"]
    assert (written["class"], written["target"], ran["class"], ran["command"]) == ("files", "/tmp/a", "exec", "true")
    for line in (written, ran):
        assert (line["key"], line["workspace"], line["sandbox"]) == ("(preview token)", "default", box.name), line
    box.delete()


def test_a_session_is_limited_as_what_it_asks_for(server_factory):
    _, box, session = own_session(server_factory, "--rate-limit", "local=on,exec=1:3,read=off,write=off,proxy=off,address=off")
    answers = [session.get("/process", "POST", {"command": "true"}) for _ in range(12)]
    assert answers[0].status == 200 and answers[-1].status == 429, answers
    assert answers[-1].headers["RateLimit-Policy"].startswith('"exec";'), answers[-1].headers
    assert session.get("/filesystem/%2Ftmp").status == 200
    box.delete()


def test_a_session_stays_inside(session):
    """What a token of one sandbox does not open is nothing for a session either."""
    for method in ("POST", "DELETE"):
        answer = session.get("/network/process/1/monitor", method, {"callback": "http://127.0.0.1:1/"} if method == "POST" else None)
        assert answer.status == 403 and "not inside" in answer.json()["error"], answer


# --- those who are inside ---

def add_token(preview, name):
    made = preview.server.request("POST", f"{preview.base}/{preview.name}/tokens", {"metadata": {"name": name}})
    assert made.status == 200, made
    return made.json()["spec"]["token"]


@contextlib.contextmanager
def terminal_by(preview, token):
    """A terminal that the token has open: it is at work."""
    base, name = preview.path.rsplit("/", 1)
    with Terminal(preview.server, name, base, {"X-Blaxel-Preview-Token": token}, timeout=60) as terminal:
        alive(terminal)
        yield terminal


def alive(terminal):
    terminal.seen = b""
    terminal.type("echo up-$((6*7))\n")
    terminal.await_(b"up-42")


def ends(terminal):
    with contextlib.suppress(ConnectionError):
        terminal.await_end()
    return True


def test_who_is_inside_goes_with_the_token_or_the_preview(server, boxes):
    """A terminal of a session: another one's token leaves it open, its own does not; nor does the preview's end."""
    preview = Preview(server, boxes[0], "session-live", port=443, public=False, expires=END)
    one, two = add_token(preview, "one"), add_token(preview, "two")
    address = f"{preview.base}/session-live"
    with terminal_by(preview, one) as first, terminal_by(preview, two) as second:
        assert server.request("DELETE", f"{address}/tokens/one").status == 200
        assert ends(first)
        alive(second)
        assert server.request("PUT", address, {"spec": {"port": 443, "public": False, "expires": END}}).status == 200
        alive(second)  # it is as it was
        assert server.request("PUT", address, {"spec": {"port": 3000, "public": False}}).status == 200
        assert ends(second)
    assert server.request("PUT", address, {"spec": {"port": 443, "public": False, "expires": END}}).status == 200
    three = add_token(preview, "three")  # what becomes a session loses its tokens
    with terminal_by(preview, three) as third:
        assert server.request("DELETE", address).status == 200
        assert ends(third)


def test_who_is_inside_goes_when_it_is_made_private(server, boxes):
    """A stream of a port's program, by a preview that is public until then."""
    start_app(boxes[1])
    preview = Preview(server, boxes[1], "drip-b", port=PORT, public=True)
    with contextlib.closing(server.connection(60)) as connection:
        connection.request("GET", preview.path + "/drip")
        answer = connection.getresponse()
        assert answer.status == 200 and answer.read1()
        assert server.request("PUT", f"{preview.base}/drip-b", {"spec": {"port": PORT, "public": False}}).status == 200
        with contextlib.suppress(ConnectionError, http.client.IncompleteRead):
            while answer.read1():
                pass
