# SPDX-License-Identifier: Apache-2.0
"""Fields that are documented as secret are write-only: whatever was written to one is in no answer of any route,
for any key, in any of the APIs, and in no log. A row per field; the routes come from the compiled table."""

import contextlib
import re
import socket
import urllib.parse
import uuid

import pytest

import cella_routes
from cella_auth import Workspace, call, fresh

# Routes whose answer goes on for as long as somebody listens.
ENDLESS = re.compile(r"/watch/|/logs/stream$|/ws$|/tunnel/|/run$")


class Field:
    """Writes a marker of its own into a field, and says what that was answered."""

    def __init__(self, name, method, path, body, statuses, shown_once=False):
        self.name, self.method, self.path, self.body = name, method, path, body
        self.statuses = statuses
        self.shown_once = shown_once  # the answer to this very request has it, and no other
        self.marker = f"MARK{uuid.uuid4().hex}"

    def fill(self, value, names):
        if isinstance(value, dict):
            return {key: self.fill(item, names) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item, names) for item in value]
        return value.replace("MARKER", self.marker).format_map(names) if isinstance(value, str) else value


def routing(value):
    return {"network": {"proxy": {"routing": [{
        "destinations": ["api.example.com"], "headers": {"Authorization": "Bearer {{{{SECRET:k}}}}"},
        "secrets": {"k": value}}]}}}


def envs(value, **more):
    return {"envs": [{"name": "PLAIN", "value": "plain"}, {"name": "TOKEN", "value": value, "secret": True, **more}]}


BLAXEL = "/v0/sandboxes"
FIELDS = [
    # Our own.
    Field("secret", "POST", "/v0/secrets", {"name": "made", "value": "MARKER", "hosts": ["api.example.com"]}, [201]),
    Field("secret, again", "PUT", "/v0/secrets/made", {"value": "MARKER"}, [200]),
    Field("secret, put", "PUT", "/v0/secrets/put", {"value": "MARKER", "hosts": ["api.example.com"]}, [200, 201]),
    Field("secret, wrong value", "POST", "/v0/secrets", {"name": "bad", "value": "MARKER\n", "hosts": ["a.example"]}, [400]),
    Field("secret, wrong type", "POST", "/v0/secrets", {"name": "bad", "value": ["MARKER"]}, [400]),
    Field("secret, wrong name", "POST", "/v0/secrets", {"name": "no name", "value": "MARKER", "hosts": ["a.example"]}, [400]),
    Field("secret, broken JSON", "POST", "/v0/secrets", '{{"name": "bad", "value": "MARKER', [400]),
    Field("secret, unknown member", "POST", "/v0/secrets", {"name": "bad", "value": "MARKER", "more": "x"}, [400]),
    Field("client secret", "POST", "/v0/oauth/token",
          {"grant_type": "client_credentials", "client_id": "nobody", "client_secret": "MARKER"}, [400, 401]),
    # Blaxel's.
    Field("routing secrets", "POST", BLAXEL, {"metadata": {"name": "{blaxel}"}, "spec": {**routing("MARKER")}}, [200]),
    Field("routing secrets, put", "PUT", BLAXEL + "/{blaxel}", {"spec": {**routing("MARKER"), "runtime": {}}}, [200]),
    Field("routing secrets, patched", "PATCH", BLAXEL + "/{blaxel}", {"spec": {**routing("MARKER")}}, [200]),
    Field("secret env", "POST", BLAXEL, {"metadata": {"name": "{blaxel2}"}, "spec": {"runtime": envs("MARKER")}}, [200]),
    Field("secret env, put", "PUT", BLAXEL + "/{blaxel2}", {"spec": {"runtime": envs("MARKER")}}, [200]),
    Field("secret env, patched", "PATCH", BLAXEL + "/{blaxel2}", {"spec": {"runtime": envs("MARKER")}}, [200]),
    Field("secret env, wrong", "POST", BLAXEL, {"metadata": {"name": "bad"}, "spec": {
        "runtime": {"envs": [{"name": "TO=KEN", "value": "MARKER", "secret": True}]}}}, [400]),
    Field("secret env, fork", "POST", BLAXEL + "/{blaxel2}/fork", {"targetName": "{fork}", **envs("MARKER")}, [200]),
    # E2B's.
    Field("E2B's secret", "POST", "/secrets", {"name": "e2b-made", "value": "MARKER"}, [201]),
    Field("E2B's secret, again", "POST", "/secrets/e2b-made", {"value": "MARKER"}, [200]),
    Field("E2B's secret, wrong", "POST", "/secrets", {"name": "e2b-bad", "value": "MARKER\n"}, [400]),
    Field("proxy's password", "POST", "/v2/sandboxes", {"templateID": "base", "network": {
        "egressProxy": {"address": "192.0.2.1:1", "username": "u", "password": "MARKER"}}}, [400]),
    Field("registry's password", "POST", "/v3/templates", {"name": "t", "fromImageRegistry": {
        "type": "registry", "username": "u", "password": "MARKER"}}, [400, 404, 405, 501]),
    Field("MCP's keys", "POST", "/v2/sandboxes", {"templateID": "base", "metadata": {"for": "mcp"}, "mcp": {
        "exa": {"apiKey": "MARKER"}}}, [201, 400]),
    # Scalebox's.
    Field("bucket's secret key", "POST", "/v1/sandboxes", {"template": "base", "object_storage": {
        "uri": "s3://x", "access_key": "a", "secret_key": "MARKER"}}, [400]),
]

# What the server makes, and shows once: (what, how to ask for it, the member).
SHOWN_ONCE = [
    ("API key", "POST", "/v0/api-keys", {"name": "once"}, "secret"),
    ("sandbox's token", "POST", "/v0/sandbox/{blaxel}/tokens", {}, "token"),
    ("port's token", "POST", "/v0/sandbox/{blaxel}/ports/8080/tokens", {}, "token"),
]


class World:
    def __init__(self, server):
        self.server, self.workspace = server, Workspace(server)
        self.names = {name: fresh(name) for name in ("blaxel", "blaxel2", "fork", "plain")}
        self.keys = {"admin": self.workspace.key("admin"), "read": self.workspace.key("read")}
        self.workspace.create(self.names["plain"])
        self.markers = {}  # marker: what it was written to

    def ask(self, method, path, body=None, key="admin", **fields):
        return call(self.server, method, path, self.keys[key], body, fields)

    def write(self, field):
        body = field.fill(field.body, self.names)
        fields = {"Content-Type": "application/json"}
        answer = self.ask(field.method, field.path.format_map(self.names),
                          body.encode() if isinstance(body, str) else body, **fields)
        assert answer.status in field.statuses, (field.name, answer)
        assert field.marker not in answer.text + str(answer.headers), (field.name, answer)
        self.markers[field.marker] = field.name

    def get(self, path, key):
        """All of an answer; of one that does not end, what comes at first."""
        parts = urllib.parse.urlsplit(self.server.url)
        got = b""
        with socket.create_connection((parts.hostname, parts.port), timeout=60) as sock, contextlib.suppress(TimeoutError):
            sock.sendall(f"GET {path} HTTP/1.1\r\nHost: {parts.netloc}\r\nAuthorization: Bearer {self.keys[key]}\r\n"
                         f"X-Cella-Workspace: {self.workspace.name}\r\nConnection: close\r\n\r\n".encode())
            endless = ENDLESS.search(path.partition("?")[0]) is not None
            if endless:
                sock.settimeout(0.2)
            while piece := sock.recv(65536):
                got += piece
        return got.decode(errors="replace")

    def found_in(self, text):
        return [name for marker, name in self.markers.items() if marker in text]


@pytest.fixture(scope="module")
def world(server):
    made = World(server)
    for field in FIELDS:
        made.write(field)
    for what, method, path, body, member in SHOWN_ONCE:
        answer = made.ask(method, path.format_map(made.names), body)
        if answer.status in (200, 201):
            made.markers[answer.json()[member]] = what
    yield made
    made.workspace.delete()


def paths(world):
    """Every GET, for each of the things that were made."""
    found = set()
    for route in cella_routes.all_routes():
        if route.method not in ("GET", "ANY"):
            continue
        for name in world.names.values():
            for secret in ("made", "e2b-made"):
                found.add(cella_routes.fill(route.path, workspace=world.workspace.name, name=name, secret=secret,
                                            id=secret if "secrets" in route.path else "x"))
    return sorted(found)


@pytest.mark.parametrize("key", ["admin", "read"])
def test_no_route_shows_it(world, key):
    asked = paths(world)
    assert len(asked) > 200
    wrong = [(path, found) for path in asked if (found := world.found_in(world.get(path, key)))]
    assert wrong == []
    shown = world.get(f"/v0/sandboxes/{world.names['blaxel']}", key)
    assert "api.example.com" in shown and "SECRET:k" in shown and '"secrets"' not in shown
    for name in ("blaxel2", "fork"):
        shown = world.get(f"/v0/sandboxes/{world.names[name]}", key)
        assert '"TOKEN"' in shown and '"plain"' in shown and "********" in shown


def test_it_is_in_no_log(server, world):
    assert world.found_in(server.log()) == []
    written = [file for file in (server.data / "audit").rglob("*") if file.is_file()]
    assert written and [found for file in written if (found := world.found_in(file.read_text("utf-8", "replace")))] == []


def test_a_secret_variable_reaches_commands_and_stays_what_it_is(world):
    """Clients read the whole object and send it back, changed: what they were not shown is not lost by that."""
    name, value = fresh("kept"), f"MARK{uuid.uuid4().hex}"
    path = f"/v0/sandboxes/{name}"
    spec = {"runtime": envs(value)}
    assert world.ask("POST", "/v0/sandboxes", {"metadata": {"name": name}, "spec": spec}).status == 200

    def inside(box=name):
        answer = world.ask("POST", f"/v0/sandbox/{box}/process", {"command": "echo $TOKEN", "waitForCompletion": True})
        assert answer.status == 200, answer
        return answer.json()["stdout"].strip()

    assert inside() == value
    shown = world.ask("GET", path).json()
    token = {"name": "TOKEN", "value": "********", "secret": True}
    assert token in shown["spec"]["runtime"]["envs"]
    shown["metadata"]["displayName"] = "changed"
    back = world.ask("PUT", path, {"metadata": shown["metadata"], "spec": shown["spec"]})
    assert back.status == 200 and token in back.json()["spec"]["runtime"]["envs"] and inside() == value
    # Without the mark it is still the same secret; by our own API as well.
    del shown["spec"]["runtime"]["envs"][1]["secret"]
    back = world.ask("PUT", path, {"spec": shown["spec"]})
    assert token in back.json()["spec"]["runtime"]["envs"] and inside() == value
    own = world.ask("GET", f"/v0/sandbox/{name}").json()["spec"]["env_vars"]
    assert own == {"PLAIN": "plain", "TOKEN": "********"}
    assert world.ask("PUT", f"/v0/sandbox/{name}", {"spec": {"env_vars": own}}).status == 200 and inside() == value
    clone = world.ask("POST", f"/v0/sandbox/{name}/clone", {"spec": {"env_vars": own}})
    assert clone.status == 202, clone
    assert inside(clone.json()["metadata"]["name"]) == value
    # Another value is another value.
    other = world.ask("PATCH", f"/v0/sandbox/{name}", {"spec": {"env_vars": {"TOKEN": "other"}}})
    assert other.json()["spec"]["env_vars"]["TOKEN"] == "********" and inside() == "other"
