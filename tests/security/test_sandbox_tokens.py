# SPDX-License-Identifier: Apache-2.0
"""A token that is bound to one sandbox, against everything that is not inside of it.

The rows come from the compiled tables of every dialect: one that is added tomorrow is closed to such tokens
unless it says that it stays inside, and then it is tried here with another sandbox's name."""

import concurrent.futures
import contextlib
import http.client
import json

import pytest

import cella_routes
from cella_auth import Workspace, call, forge_token, fresh, token_claims
from cella_routes import fill, in_groups
from cella_server import PATIENCE, wait_until
from e2b_box import START, Box, shell


class World:
    def __init__(self, server):
        self.server = server
        self.workspace = Workspace(server)
        self.box, self.other = fresh("box"), fresh("other")
        self.box_id = self.workspace.create(self.box, enabled=True)["metadata"]["id"]
        self.other_id = self.workspace.create(self.other)["metadata"]["id"]
        self.maker = self.workspace.new_key("write")

    def tokens(self, name):
        return f"/{self.workspace.name}/sandbox/{name}/tokens"

    def token(self, name=None, key=None, **wish):
        answer = call(self.server, "POST", self.tokens(name or self.box),
                      key or self.maker["secret"], wish)
        assert answer.status == 201, answer
        return answer.json()["token"]

    def ask(self, method, path, token, **more):
        return call(self.server, method, path, token, **more)


@pytest.fixture(scope="module")
def world(server):
    made = World(server)
    yield made
    made.workspace.delete()


def rows(*flags):
    """Rows that ask for a key and have one of these flags ("": none of those that let a bound token in)."""
    found, table = [], cella_routes.all_routes()
    for route in table + in_groups(table):
        if route.scope == "public":
            continue
        kind = next((flag for flag in ("inside", "body", "caller") if flag in route.flags), "")
        if kind in flags:
            methods = ("GET", "POST") if route.method == "ANY" else (route.method,)
            found += [route._replace(method=method) for method in methods]
    return found


def test_the_table_says_where_it_is_let_in():
    inside, closed = rows("inside"), rows("")
    assert len(inside) > 80 and len(closed) > 80
    assert all("{name}" in route.path or "{member}" in route.path for route in inside)
    assert [route.path for route in rows("caller")] == ["/v0/whoami"]
    assert [route.path for route in rows("body")] == ["/api/sandbox/exec"]  # its handler looks: test_containers
    shut = {(route.method, route.path) for route in closed}
    for row in (("DELETE", "/v0/sandbox/{name}"), ("POST", "/v0/sandbox/{name}/clone"),
                ("POST", "/v0/sandbox/{name}/tokens"), ("PUT", "/v0/sandbox/{name}/network"),
                ("POST", "/v0/sandbox/{name}/ports"), ("GET", "/v0/sandbox"),
                ("GET", "/v0/api-keys"), ("GET", "/sandboxes/{name}"), ("GET", "/v1/sandboxes/{name}"),
                ("DELETE", "/v0/sandboxes/{name}"), ("DELETE", "/api/sandbox/{name}"), ("POST", "/api/sandbox")):
        assert row in shut, row


def test_what_is_not_inside_is_closed(world):
    token, wrong = world.token(), []
    for route in rows(""):
        path = fill(route.path, workspace=world.workspace.name, name=world.box, group="x", member="x")
        answer = world.ask(route.method, path, token)
        if answer.status != 403:
            wrong.append((route.method, path, answer))
    assert not wrong, wrong
    assert world.server.request("GET", f"/v0/sandbox/{world.box}", None,
                                {"X-Cella-Workspace": world.workspace.name}).status == 200


def test_another_sandbox_is_not_there(world):
    token, wrong = world.token(), []
    for route in rows("inside"):
        for name in (world.other, world.other_id, "no-such-box"):
            path = fill(route.path, workspace=world.workspace.name, name=name, group="x", member=name)
            answer = world.ask(route.method, path, token)
            if answer.status != 404:
                wrong.append((route.method, path, answer))
    assert not wrong, wrong


def test_a_name_in_disguise(world):
    """The path names the bound sandbox and means another one, in ways that have worked elsewhere."""
    token = world.token()
    for path in (f"/v0/sandbox/{world.box}/../{world.other}", f"/v0/sandbox/{world.box}%2f..%2f{world.other}",
                 f"/v0/sandbox/{world.box};{world.other}/health",
                 f"/v0/groups/{world.box}/sandbox/{world.other}/process",
                 f"/v0/sandbox/{world.other}%00/health", f"//v0/sandbox/{world.other}"):
        assert world.ask("GET", path, token).status in (400, 403, 404), path
    for headers in ({"E2b-Sandbox-Id": world.other_id}, {"X-Cella-Workspace": "default"}):
        answer = world.ask("GET", f"/v0/sandbox/{world.other}", token, headers=headers)
        assert answer.status in (401, 403, 404), (headers, answer)


def test_other_doors_do_not_know_it(world):
    """The doors of E2B's and Scalebox's clients take tokens of their own kind."""
    token = world.token()
    for box in (world.box_id, world.other_id):
        answer = world.ask("GET", "/files?path=/etc/hostname", None,
                           headers={"E2b-Sandbox-Id": box, "X-Access-Token": token})
        assert answer.status in (401, 404), answer
        answer = world.ask("GET", "/download/etc/hostname", None,
                           headers={"X-Access-Token": f"{box}:{token}"})
        assert answer.status in (401, 404), answer


def test_inside_it_works(world):
    token = world.token()
    base = f"/v0/sandbox/{world.box}"
    assert world.ask("GET", base, token).json()["metadata"]["name"] == world.box
    assert world.ask("GET", f"/v0/sandbox/{world.box_id}", token).status == 200
    ran = world.ask("POST", base + "/process", token,
                    body={"command": "echo bound", "waitForCompletion": True})
    assert ran.status == 200 and "bound" in json.dumps(ran.json()), ran
    assert world.ask("PUT", f"/{world.workspace.name}/sandboxes/{world.box}/filesystem/tmp/x", token,
                     body={"content": "hi"}).status == 200
    who = world.ask("GET", "/v0/whoami", token).json()
    assert who["sandboxId"] == world.box_id and who["credential"] == "token", who


def test_containers(world):
    """/api/sandbox, where a sandbox is a container: its own by any of its names, as its scopes say, and no other."""
    token, reader = world.token(), world.token(scopes=["read"])
    own, other = f"container_{world.box_id}", f"container_{world.other_id}"

    def run(name, shown=token):
        return world.ask("POST", "/api/sandbox/exec", shown, body={
            "containerId": name, "files": {"a.txt": fresh("text")}, "command": ["cat", "a.txt"]})

    runs = [run(name) for name in (own, world.box_id, world.box)]
    assert [answer.json().get("status") for answer in runs] == ["success"] * 3, runs
    for name in (other, world.other_id, world.other, "container_nobody", "nobody", "", f"container_{own}", f"{own}/x"):
        assert run(name).status in (400, 404), name
    assert run(other).json()["error"] == {**run("container_nobody").json()["error"],
                                          "message": run(other).json()["error"]["message"]}
    assert run(own, reader).status == 403

    for name in (own, world.box_id, world.box):
        base = f"/api/sandbox/{name}"
        assert world.ask("GET", base, reader).json()["containerId"] == own
        assert len(world.ask("GET", base + "/history", reader).json()["history"]) >= 3
        ids = {"fromExecId": runs[0].json()["id"], "toExecId": runs[1].json()["id"]}
        assert "a.txt" in world.ask("POST", base + "/diff", reader, body=ids).json()["diff"]
        back = {"executionId": runs[0].json()["id"]}
        assert world.ask("POST", base + "/rollback", reader, body=back).status == 403
        assert world.ask("POST", base + "/rollback", token, body=back).status == 200
        assert world.ask("DELETE", base, token).status == 403
    assert world.ask("GET", f"/api/sandbox/{other}", token).status == 404
    assert world.ask("POST", f"/api/sandbox/{other}/rollback", token, body=back).status == 404


def test_a_maker_who_gets_into_every_workspace(world):
    """Its key is of another workspace: the token is for the sandbox's, and for no more of it than the sandbox."""
    fields = {"X-Cella-Workspace": world.workspace.name}
    made = world.server.request("POST", f"/v0/sandbox/{world.box}/tokens", {}, fields)
    assert made.status == 201, made
    token, base = made.json()["token"], f"/v0/sandbox/{world.box}"
    for more in ({}, fields):
        assert world.ask("GET", base, token, headers=more).json()["metadata"]["id"] == world.box_id
    assert world.ask("GET", f"/{world.workspace.name}/sandbox/{world.box}/process", token).status == 200
    assert run_true(world, token).status == 200
    who = world.ask("GET", "/v0/whoami", token).json()
    assert who["workspace"] == world.workspace.name and "server" not in who["scopes"], who
    for more in ({}, fields, {"X-Cella-Workspace": "default"}):
        for path in (f"/v0/sandbox/{world.other}", f"/v0/sandbox/{world.other_id}", "/v0/sandbox/nobody"):
            assert world.ask("GET", path, token, headers=more).status == 404, (path, more)
    assert world.ask("GET", base, token, headers={"X-Cella-Workspace": "default"}).status == 404
    # A token that says another workspace than its key gets into opens nothing.
    claims = token_claims(world.token())
    assert world.ask("GET", base, forge_token(world.server, {**claims, "workspace": "default"})).status == 401


def run_true(world, token):
    return world.ask("POST", f"/v0/sandbox/{world.box}/process", token,
                     body={"command": "true", "waitForCompletion": True})


def test_scopes(world):
    reader = world.workspace.new_key("read")["secret"]
    assert call(world.server, "POST", world.tokens(world.box), reader, {}).status == 403
    token = world.token(scopes=["read"])
    base = f"/v0/sandbox/{world.box}"
    assert world.ask("GET", base + "/process", token).status == 200
    assert world.ask("POST", base + "/process", token, body={"command": "true"}).status == 403
    for bad in ({"scopes": ["admin"]}, {"scopes": ["server"]}, {"scopes": []}, {"scopes": "read"},
                {"expiresIn": 0}, {"expiresIn": "366d"}, {"expiresIn": "x"}, {"role": "admin"}):
        answer = call(world.server, "POST", world.tokens(world.box), world.maker["secret"], bad)
        assert answer.status == 400, (bad, answer)


def test_it_cannot_make_more_of_itself(world):
    token = world.token()
    assert world.ask("POST", world.tokens(world.box), token, body={}).status == 403
    assert world.ask("DELETE", world.tokens(world.box), token).status == 403


def test_it_ends(world):
    """By its time, by a change to what it says, by a revocation, and with its key."""
    base = f"/v0/sandbox/{world.box}"
    claims = token_claims(world.token())
    for change in ({"exp": claims["iat"] - 1}, {"generation": 7}, {"sub": "nobody"}, {"sub": "anonymous"}):
        forged = forge_token(world.server, {**claims, **change})
        assert world.ask("GET", base, forged).status == 401, change
    moved = forge_token(world.server, {**claims, "sandbox": world.other_id})
    assert world.ask("GET", base, moved).status == 404
    wider = forge_token(world.server, {**claims, "scope": "read write admin server"})
    assert world.ask("GET", "/v0/api-keys", wider).status == 403

    key = world.workspace.new_key("write", expiresIn=3600)
    token = world.token(key=key["secret"], expiresIn="30d")
    assert token_claims(token)["exp"] <= claims["iat"] + 3700
    assert world.ask("GET", base, token).status == 200
    gone = world.server.request("DELETE", f"/v0/workspaces/{world.workspace.name}/api-keys/{key['id']}")
    assert gone.status == 200
    assert world.ask("GET", base, token).status == 401


def test_revoking_cuts_off_what_is_open(world):
    token, base = world.token(), f"/v0/sandbox/{world.box}"
    other = world.token(name=world.other)
    with concurrent.futures.ThreadPoolExecutor() as pool:
        command = fresh("sleep")
        waits = pool.submit(world.ask, "POST", base + "/process", token,
                            body={"name": command, "command": "sleep 600", "waitForCompletion": True})
        wait_until(lambda: world.ask("GET", f"{base}/process/{command}", token).status == 200, 60,
                   "the command running")
        assert call(world.server, "DELETE", world.tokens(world.box), world.maker["secret"]).status == 200
        assert waits.result(60).status == 401
    assert world.ask("GET", base, token).status == 401
    assert world.ask("GET", f"/v0/sandbox/{world.other}", other).status == 200
    assert world.ask("GET", base, world.token()).status == 200


def test_revoking_cuts_off_clients_of_e2b(world):
    """What E2B's clients show is a token of the sandbox's, too: a stream that runs on one ends with it."""
    box, other = Box(world.server), Box(world.server)
    command = shell("echo here; sleep 600")
    try:
        with box.open_stream(START, command, 60 * PATIENCE) as cut, other.open_stream(START, command) as stays:
            for frames in (cut, stays):
                assert any("data" in message.get("event", {}) for _, message in frames)
            assert world.server.request("DELETE", f"/v0/sandbox/{box.id}/tokens").status == 200
            with contextlib.suppress(http.client.HTTPException, ConnectionError):
                assert not [message for _, message in cut if "data" in message.get("event", {})]
        assert box.call("POST", "/process.Process/List", {}).status == 401
        assert other.call("POST", "/process.Process/List", {}).status == 200
    finally:
        box.kill()
        other.kill()


def test_a_namesake_is_another_one(world):
    name = fresh("again")
    world.workspace.create(name)
    token = world.token(name=name)
    assert world.ask("GET", f"/v0/sandbox/{name}", token).status == 200
    fields = {"X-Cella-Workspace": world.workspace.name}
    assert world.server.request("DELETE", f"/v0/sandbox/{name}", None, fields).status in (200, 202)
    wait_until(lambda: world.server.request("GET", f"/v0/sandbox/{name}", None, fields).status == 404, 60,
               "the sandbox gone")
    world.workspace.create(name)
    assert world.ask("GET", f"/v0/sandbox/{name}", token).status == 404
