# SPDX-License-Identifier: Apache-2.0
"""Every route against every caller that must not get through it.

The rows come from the compiled route table, so a new route is in here from its first day. Most requests
have no body and make no sense: who is calling is settled before anything else is looked at."""

import pytest

import cella_routes
from cella_auth import Workspace, call, expired_token, fresh, fresh_address, request_token
from cella_routes import fill, in_groups


def guarded():
    """The rows that need a key; one for any method is tried with some."""
    rows, table = [], cella_routes.all_routes()
    for route in table + in_groups(table):
        methods = ("GET", "POST", "OPTIONS") if route.method == "ANY" else (route.method,)
        if route.scope != "public":
            rows += [route._replace(method=method) for method in methods]
    return rows


class World:
    """Two workspaces, a sandbox in one, and callers of either."""

    def __init__(self, server):
        self.server = server
        self.mine, self.other = Workspace(server), Workspace(server)
        self.box = fresh("box")
        self.box_id = self.mine.create(self.box)["metadata"]["id"]
        self.group, self.member = fresh("group"), fresh("member")
        self.group_id = self.make_group()["metadata"]["id"]
        self.reader = self.mine.key("read")
        self.writer = self.mine.key("write")
        self.stranger = self.other.key("admin")

    def make_group(self):
        answer = self.server.request(
            "POST", "/v0/groups",
            {"name": self.group, "spec": {"enabled": False}, "sandboxes": [{"name": self.member}]},
            {"X-Cella-Workspace": self.mine.name})
        assert answer.status == 202, answer
        return answer.json()

    def path(self, route, workspace=None, name=None, group=None):
        return fill(route.path, workspace=workspace or self.mine.name, name=name or self.box,
                    group=group or self.group, member=self.member)


@pytest.fixture(scope="module")
def world(server):
    made = World(server)
    yield made
    made.mine.delete()
    made.other.delete()


def check_all(ask, expected, rows=None):
    """ask(route) for each row; every answer has to be one of the expected (status, code)."""
    wrong = []
    for route in rows if rows is not None else guarded():
        answer = ask(route)
        if answer.status != expected:
            wrong.append((route.method, route.path, answer))
    assert not wrong, wrong


def test_there_are_routes():
    assert len(guarded()) > 30
    public = {route.path for route in cella_routes.all_routes() if route.scope == "public"}
    assert {"/health", "/v0/oauth/token"} <= public


def test_no_key(world):
    def ask(route):
        answer = call(world.server, route.method, world.path(route))
        assert answer.headers["WWW-Authenticate"].startswith("Bearer"), (route, answer)
        return answer

    check_all(ask, 401)


def test_wrong_key(world):
    def ask(route):
        return call(world.server, route.method, world.path(route), "cella_" + "x" * 43,
                    source=fresh_address())

    check_all(ask, 401)


def test_key_in_the_query_where_it_does_not_belong(world):
    def ask(route):
        return call(world.server, route.method, world.path(route) + "?token=" + world.writer)

    check_all(ask, 401, [route for route in guarded() if "query" not in route.flags])


def test_key_in_the_query_where_a_browser_needs_it(world):
    """It is looked at there, and a wrong one does not get through."""
    rows = [route for route in guarded() if "query" in route.flags]
    for route in rows:
        path = world.path(route) + "?token="
        assert call(world.server, route.method, path + world.writer).status != 401, route
        wrong = call(world.server, route.method, path + "cella_wrong", source=fresh_address())
        assert wrong.status == 401, (route, wrong)
        two = call(world.server, route.method, path + world.reader, world.writer)
        assert two.status == 400, (route, two)


def test_expired_token(world):
    key = world.mine.new_key("admin")
    token = expired_token(world.server, key["id"], world.mine.name)
    check_all(lambda route: call(world.server, route.method, world.path(route), token), 401)


def test_revoked_key_and_its_token(world):
    key = world.mine.new_key("admin")
    token = request_token(world.server, key)
    assert call(world.server, "GET", "/v0/whoami", token).status == 200
    gone = world.server.request(
        "DELETE", f"/v0/workspaces/{world.mine.name}/api-keys/{key['id']}")
    assert gone.status == 200, gone
    for credential in (key["secret"], token):
        check_all(lambda route, shown=credential: call(
            world.server, route.method, world.path(route), shown, source=fresh_address()), 401)


def test_read_only_key_changes_nothing(world):
    rows = [route for route in guarded() if route.scope != "read"]
    assert len(rows) > 20
    check_all(lambda route: call(world.server, route.method, world.path(route), world.reader), 403,
              rows)


def test_read_only_token_changes_nothing(world):
    token = request_token(world.server, world.mine.new_key("read"))
    rows = [route for route in guarded() if route.scope != "read"]
    check_all(lambda route: call(world.server, route.method, world.path(route), token), 403, rows)


def test_ordinary_key_manages_neither_keys_nor_workspaces(world):
    rows = [route for route in guarded() if route.scope in ("admin", "server")]
    assert len(rows) > 5
    check_all(lambda route: call(world.server, route.method, world.path(route), world.writer), 403,
              rows)


def test_admin_of_a_workspace_does_not_manage_workspaces(world):
    rows = [route for route in guarded() if route.scope == "server"]
    admin = world.mine.key("admin")
    check_all(lambda route: call(world.server, route.method, world.path(route), admin), 403, rows)


def same(one, two, *names):
    """Whether two answers tell the same, but for the names that were asked for."""

    def plain(answer):
        text = answer.text
        for name in names:
            text = text.replace(name, "NAME")
        return answer.status, text

    return plain(one) == plain(two)


# What is gone is as its caller wants it: to end nothing is no error.
FINE_WITH_NOTHING = {("DELETE", "/v1/sandboxes/{name}")}


def compare_all(rows, ask, real, invented, status=None):
    """What is there and what is not must look the same to somebody who may not see it."""
    wrong = []
    for route in rows:
        one, two = ask(route, real), ask(route, invented)
        refused = one.status >= 400 or (route.method, route.path) in FINE_WITH_NOTHING
        if not refused or not same(one, two, real, invented) or status not in (None, one.status):
            wrong.append((route.method, route.path, one, two))
    assert not wrong, wrong


def test_another_workspace_in_the_path(world):
    rows = [route for route in guarded() if "{workspace}" in route.path and route.scope != "server"]
    assert len(rows) > 10
    compare_all(rows, lambda route, workspace: call(
        world.server, route.method, world.path(route, workspace=workspace), world.stranger),
        world.mine.name, fresh("ws"), 404)


@pytest.mark.parametrize("field", ["X-Cella-Workspace", "X-Blaxel-Workspace"])
def test_another_workspace_in_a_field(world, field):
    rows = [route for route in guarded()
            if "{workspace}" not in route.path and route.scope != "server"]
    compare_all(rows, lambda route, workspace: call(
        world.server, route.method, world.path(route), world.stranger,
        headers={field: workspace}), world.mine.name, fresh("ws"), 404)


@pytest.mark.parametrize("what", ["name", "id"])
def test_sandbox_of_another_workspace(world, what):
    rows = [route for route in guarded() if "{name}" in route.path and route.scope != "server"]
    assert len(rows) > 20
    real = world.box if what == "name" else world.box_id
    # As long as the real one: messages may be cut.
    invented = fresh("box") if what == "name" else "zzzzzzzzzzzz"
    compare_all(rows, lambda route, name: call(
        world.server, route.method, world.path(route, world.other.name, name), world.stranger),
        real, invented)


@pytest.mark.parametrize("what", ["name", "id"])
def test_group_of_another_workspace(world, what):
    rows = [route for route in guarded() if "{group}" in route.path and route.scope != "server"]
    assert len(rows) > 50
    real = world.group if what == "name" else world.group_id
    invented = fresh("group") if what == "name" else "zzzzzzzzzzzz"
    compare_all(rows, lambda route, group: call(
        world.server, route.method, world.path(route, group=group), world.stranger),
        real, invented)


def test_lists_show_nothing_of_others(world):
    # What a stranger asked for is in his own workspace's audit log: test_audit_log.py looks at that.
    rows = [route for route in guarded()
            if route.method == "GET" and "{" not in route.path and route.path != "/v0/audit"]
    assert len(rows) > 4
    for route in rows:
        answer = call(world.server, "GET", route.path, world.stranger)
        for name in (world.box, world.box_id, world.mine.name, world.group, world.member):
            assert name not in answer.text, route


def test_nothing_happened_to_it(world):
    """After all of the above, and whatever order they ran in."""
    answer = world.server.request("GET", f"/v0/sandbox/{world.box}", None,
                                  {"X-Cella-Workspace": world.mine.name})
    assert answer.status == 200, answer
    assert answer.json()["status"] == "stopped"
    assert [event["type"] for event in answer.json()["events"]] == ["CREATE"]
    listed = call(world.server, "GET", "/v0/sandbox", world.stranger).json()
    assert listed["total"] == 0
    group = world.server.request("GET", f"/v0/groups/{world.group}", None,
                                 {"X-Cella-Workspace": world.mine.name}).json()
    assert group["status"] == "stopped"
    assert [box["name"] for box in group["sandboxes"]] == [world.member]
