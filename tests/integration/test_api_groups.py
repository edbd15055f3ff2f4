# SPDX-License-Identifier: Apache-2.0
"""Groups: /v0/groups, and how the sandboxes in one are found."""

import contextlib
import threading
import uuid

import pytest

from cella_auth import Workspace, call
from cella_server import Sandbox, wait_until

SMALL = {"resources": {"cpu": "100m", "memory": "64Mi", "disk": "64Mi"}}
STOPPED = {**SMALL, "enabled": False}


def unique(prefix="g"):
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


class Group:
    """A group of a server's, with requests to it and to what is in it."""

    def __init__(self, server, name):
        self.server, self.name, self.base = server, name, f"/v0/groups/{name}"

    def request(self, method, path="", body=None):
        return self.server.request(method, self.base + path, body)

    def get(self):
        answer = self.request("GET")
        assert answer.status == 200, answer
        return answer.json()

    def names(self):
        return [box["name"] for box in self.get()["sandboxes"]]

    def wait(self, status):
        wait_until(lambda: self.get()["status"] == status, 60, lambda: f"{status}: {self.get()}")
        return self

    def sandbox(self, name):
        box = Sandbox(self.server, f"{self.name}/{name}")
        box.base = f"{self.base}/sandbox/{name}"
        return box

    def end(self):
        answer = self.request("POST", "/end")
        assert answer.status in (202, 404), answer
        wait_until(lambda: self.request("GET").status == 404, 60, "the group's end")


@contextlib.contextmanager
def group(server, **body):
    name = body.setdefault("name", unique())
    answer = server.request("POST", "/v0/groups", body)
    assert answer.status == 202, answer
    made = Group(server, name)
    try:
        yield made
    finally:
        made.end()


# --- making ---


def test_one_spec_for_all(server):
    spec = {**SMALL, "env_vars": {"ROLE": "worker"}}
    with group(server, count=3, spec=spec) as team:
        made = team.get()
        assert set(made) == {"metadata", "spec", "status", "count", "sandboxes"}
        assert set(made["metadata"]) == {"name", "id", "createdAt", "updatedAt", "createdBy",
                                         "updatedBy", "workspace"}
        assert (made["metadata"]["name"], made["metadata"]["workspace"]) == (team.name, "default")
        assert made["spec"] == spec and made["count"] == 3
        assert team.names() == ["sandbox-1", "sandbox-2", "sandbox-3"]
        team.wait("running")
        for number in (1, 2, 3):
            box = team.sandbox(f"sandbox-{number}")
            assert box.run("hostname; echo $ROLE").split() == [f"sandbox-{number}", "worker"]
            assert box.get()["metadata"]["group"] == team.name
            assert box.get()["spec"]["resources"]["memory"] == "64Mi"


def test_one_spec_each(server):
    with group(server, spec={**STOPPED, "env_vars": {"A": "1", "B": "2"}}, sandboxes=[
            {"name": "lead", "spec": {"resources": {"memory": "96Mi"}, "env_vars": {"B": None, "C": "3"}}},
            {"name": "worker", "metadata": {"labels": {"kind": "plain"}}}, {}]) as team:
        lead, worker = team.sandbox("lead").get(), team.sandbox("worker").get()
        assert lead["spec"]["resources"] == {**SMALL["resources"], "memory": "96Mi"}
        assert lead["spec"]["env_vars"] == {"A": "1", "C": "3"}
        assert worker["spec"]["resources"] == SMALL["resources"]
        assert worker["spec"]["env_vars"] == {"A": "1", "B": "2"}
        assert worker["metadata"]["labels"] == {"kind": "plain"}
        assert team.get()["status"] == "stopped" and len(team.names()) == 3


def test_names_are_unique_in_the_group_only(server):
    name = unique("box")
    outside = server.create(name, wait=False, **STOPPED)
    with group(server, spec=STOPPED, sandboxes=[{"name": name}]) as one, \
            group(server, spec=STOPPED, sandboxes=[{"name": name}]) as two:
        ids = {box.get()["metadata"]["id"] for box in (outside, one.sandbox(name), two.sandbox(name))}
        assert len(ids) == 3
        assert "group" not in outside.get()["metadata"]
        again = one.request("POST", "/sandbox", {"metadata": {"name": name}})
        assert (again.status, again.error()) == (409, "ALREADY_EXISTS")
        outside.delete()
        gone = server.request("GET", f"/v0/sandbox/{name}")
        assert (gone.status, gone.error()) == (404, "SANDBOX_NOT_FOUND")
        assert one.sandbox(name).status() == "stopped"


def test_every_way_to_find_one(server):
    with group(server, count=1, spec=SMALL) as team:
        box_id = team.wait("running").get()["sandboxes"][0]["id"]
        for path in (f"{team.base}/sandbox/sandbox-1", f"{team.base}/sandbox/{box_id}",
                     f"/v0/sandbox/{team.name}%2Fsandbox-1", f"/v0/sandbox/{box_id}",
                     f"{team.base}/sandbox/sandbox-1/"):
            answer = server.request("GET", path)
            assert answer.status == 200 and answer.json()["metadata"]["id"] == box_id, path
        for path in (f"/v0/groups/{unique()}/sandbox/sandbox-1", f"/v0/groups/{unique()}/sandbox/{box_id}",
                     "/v0/sandbox/sandbox-1", f"{team.base}/sandbox/{team.name}",
                     f"/v0/groups/{team.name}%2Fsandbox-1/sandbox/x", f"{team.base}/sandbox/x%2Fsandbox-1"):
            answer = server.request("GET", path)
            assert (answer.status, answer.error()) == (404, "SANDBOX_NOT_FOUND"), path
        endpoint = team.sandbox("sandbox-1").get()["access"]["api_endpoint"]
        assert endpoint == f"{server.url}/default/sandbox/{box_id}"
        assert server.request("GET", endpoint[len(server.url):] + "/health").status == 200
        assert server.request("GET", f"/v0/groups/{team.get()['metadata']['id']}").status == 200


def test_what_is_inside_one(server):
    with group(server, count=1, spec=SMALL) as team:
        box = team.sandbox("sandbox-1")
        box.write("/workspace/a file", b"hello")
        assert box.read("/workspace/a file") == b"hello"
        assert box.run("cat '/workspace/a file'") == "hello"
        assert box.request("GET", "/health").json() == {"status": "ok"}
        box.stop()
        refused = box.request("POST", "/process", {"command": "true"})
        assert refused.error() == "NOT_RUNNING" and f"{team.name}/sandbox-1" in refused.text
        box.start()
        box.delete()
        assert team.names() == [] and team.get()["status"] == "empty"


def test_add_one_later(server):
    with group(server, spec={**STOPPED, "env_vars": {"A": "1"}}) as team:
        assert (team.get()["status"], team.get()["count"]) == ("empty", 0)
        one = team.request("POST", "/sandbox", {"metadata": {"name": "one"}, "spec": {"enabled": True}})
        assert one.status == 202, one
        two = server.request("POST", "/v0/sandbox", {"metadata": {"name": "two", "group": team.name}})
        assert two.status == 202, two
        three = team.request("POST", "/sandbox")
        assert three.status == 202, three
        assert team.names() == ["one", "two", three.json()["metadata"]["name"]]
        for answer in (one, two, three):
            made = answer.json()
            assert made["metadata"]["group"] == team.name
            assert made["spec"]["resources"] == SMALL["resources"]
            assert made["spec"]["env_vars"] == {"A": "1"}
        assert team.sandbox("one").run("echo $A") == "1"
        team.wait("mixed")


def test_clone_is_made_beside_its_source(server):
    with group(server, count=1, spec=SMALL) as team:
        source = team.sandbox("sandbox-1")
        source.write("/workspace/kept", b"kept")
        answer = source.request("POST", "/clone", {"name": "copy"})
        assert answer.status == 202 and answer.json()["metadata"]["group"] == team.name, answer
        copy = team.sandbox("copy").wait_status("running")
        assert copy.read("/workspace/kept") == b"kept"
        outside = unique("copy")
        answer = server.request("POST", f"/v0/sandbox/{source.get()['metadata']['id']}/clone", {"name": outside})
        assert answer.status == 202 and "group" not in answer.json()["metadata"], answer
        server.sandbox(outside).wait_status("running").delete()


def test_patch_changes_what_is_inherited(server):
    with group(server, count=1, spec=STOPPED) as team:
        answer = team.request("PATCH", "", {"spec": {"resources": {"memory": "128Mi"}, "env_vars": {"N": "1"}}})
        assert answer.status == 200, answer
        assert answer.json()["spec"] == {**STOPPED, "env_vars": {"N": "1"},
                                         "resources": {**SMALL["resources"], "memory": "128Mi"}}
        later = team.request("POST", "/sandbox", {"metadata": {"name": "later"}}).json()
        assert later["spec"]["resources"]["memory"] == "128Mi"
        assert team.sandbox("sandbox-1").get()["spec"]["resources"]["memory"] == "64Mi"
        bad = team.request("PATCH", "", {"spec": {"memroy": 1}})
        assert (bad.status, bad.error()) == (400, "UNKNOWN_FIELD")
        low = team.request("PATCH", "", {"spec": {"resources": {"memory": "1"}}})
        assert (low.status, low.error()) == (400, "INVALID_QUANTITY")
        assert team.request("PATCH", "", {}).status == 400


# --- all or none ---


@pytest.mark.parametrize("body, code, said", [
    ({"sandboxes": [{"name": "a"}, {"name": "b"}, {"name": "a"}]}, "ALREADY_EXISTS", "sandboxes[2]"),
    ({"sandboxes": [{"name": "a"}, {"name": "A b"}]}, "INVALID_NAME", "sandboxes[1]"),
    ({"sandboxes": [{"name": "a"}, {"spec": {"resources": {"memory": "1"}}}]}, "INVALID_QUANTITY", "sandboxes[1]"),
    ({"sandboxes": [{"name": "a"}, {"spec": {"image": "no such"}}]}, "IMAGE_NOT_FOUND", "sandboxes[1]"),
    ({"sandboxes": [{"name": "a"}, {"spec": {"memroy": "1Gi"}}]}, "UNKNOWN_FIELD", "sandboxes[1]"),
    ({"sandboxes": [{"name": "a"}, {"nmae": "b"}]}, "UNKNOWN_FIELD", "sandboxes[1]"),
    ({"sandboxes": [{"name": "a"}, 7]}, "INVALID_ARGUMENT", "sandboxes[1]"),
    ({"sandboxes": [{"metadata": {"externalId": "x"}}, {"metadata": {"externalId": "x"}}]},
     "ALREADY_EXISTS", "sandboxes[1]"),
    ({"sandboxes": [{}] * 1001}, "INVALID_ARGUMENT", "1000"),
    ({"sandboxes": {}}, "INVALID_ARGUMENT", "sandboxes"),
    ({"sandboxes": [{}], "count": 2}, "INVALID_ARGUMENT", "count"),
    ({"count": 1001}, "INVALID_ARGUMENT", "count"),
    ({"count": -1}, "INVALID_ARGUMENT", "count"),
    ({"count": "2"}, "INVALID_ARGUMENT", "count"),
    ({"count": 2, "spec": {"resources": {"cpu": "lots"}}}, "INVALID_QUANTITY", "cpu"),
    ({"count": 0, "spec": {"nothing": 1}}, "UNKNOWN_FIELD", "nothing"),
    ({"sandboxes": [], "spec": {"nothing": 1}}, "UNKNOWN_FIELD", "nothing"),
    ({"spec": {"resources": {"disk": "much"}}}, "INVALID_QUANTITY", "disk"),
    ({"spec": []}, "INVALID_ARGUMENT", "spec"),
    ({"name": "Not A Name"}, "INVALID_NAME", "capital"),
    ({"name": "a/b"}, "INVALID_NAME", "position 2"),
    ({"name": "a", "metadata": {"name": "b"}}, "INVALID_ARGUMENT", "name"),
    ({"members": 3}, "UNKNOWN_FIELD", "members"),
])
def test_refused_as_a_whole(server, body, code, said):
    name = unique()
    answer = server.request("POST", "/v0/groups", {"name": name, **body})
    assert answer.error() == code and said in answer.text, answer
    assert server.request("GET", f"/v0/groups/{name}").error() == "GROUP_NOT_FOUND"
    assert server.request("GET", f"/v0/sandbox?group={name}").json()["total"] == 0


def test_admission_is_for_all_or_none(server_factory):
    server = server_factory("--capacity", "memory=1000Mi,cpu=64", "--overcommit", "1")
    three = {"count": 3, "spec": {"resources": {"cpu": "10m", "memory": "400Mi", "disk": "64Mi"}}}
    answer = server.request("POST", "/v0/groups", {"name": "team", **three})
    assert answer.error() == "INSUFFICIENT_RESOURCES", answer
    assert "sandboxes[2]" in answer.text and "200 MiB" in answer.text, answer
    assert server.request("GET", "/v0/groups").json()["total"] == 0
    assert server.request("GET", "/v0/sandbox").json()["total"] == 0
    three["spec"]["enabled"] = False
    with group(server, name="team", **three) as team:  # a stopped one holds its disk alone
        answer = team.request("POST", "/start")
        assert answer.error() == "INSUFFICIENT_RESOURCES", answer
        team.wait("stopped")
        team.sandbox("sandbox-3").delete()
        assert team.request("POST", "/start").status == 202
        team.wait("running")
        late = team.request("POST", "/sandbox", {"spec": {"enabled": True}})
        assert late.error() == "INSUFFICIENT_RESOURCES", late
    with group(server, name="again", count=2, spec={**three["spec"], "enabled": True}) as again:
        again.wait("running")


def test_a_name_is_taken_until_the_group_is_gone(server):
    with group(server, count=2, spec=SMALL) as team:
        taken = server.request("POST", "/v0/groups", {"name": team.name})
        assert (taken.status, taken.error()) == (409, "ALREADY_EXISTS")
        old = team.get()["metadata"]["id"]
        assert team.request("DELETE").status == 202
        again = server.request("POST", "/v0/groups", {"name": team.name, "count": 1, "spec": STOPPED})
        assert again.status == 202, again
        assert again.json()["metadata"]["id"] != old and team.names() == ["sandbox-1"]


def test_what_was_read_can_be_sent(server):
    with group(server, count=2, spec=STOPPED) as team:
        body = team.get()
        body["metadata"]["name"] = copy_name = unique()
        answer = server.request("POST", "/v0/groups", body)
        assert answer.status == 202, answer
        copy = Group(server, copy_name)
        try:
            assert copy.names() == team.names() and copy.get()["spec"] == team.get()["spec"]
        finally:
            copy.end()


def test_many_at_once_get_one_name(server):
    name, answers = unique(), []

    def make():
        answers.append(server.request("POST", "/v0/groups", {"name": name, "count": 3, "spec": STOPPED}))

    threads = [threading.Thread(target=make) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.status for answer in answers) == [202] + [409] * 5
    team = Group(server, name)
    assert len(team.names()) == 3
    team.end()


# --- life ---


def test_start_and_stop(server):
    with group(server, count=3, spec=STOPPED) as team:
        assert team.get()["status"] == "stopped"
        assert team.request("POST", "/stop").status == 202  # nothing to do is fine
        assert team.request("POST", "/start").json()["status"] == "starting"
        team.wait("running")
        team.sandbox("sandbox-2").stop()
        assert team.get()["status"] == "mixed"
        assert team.request("POST", "/start").status == 202
        team.wait("running")
        assert team.request("POST", "/stop").json()["status"] == "stopping"
        team.wait("stopped")
    empty = unique()
    with group(server, name=empty):
        assert server.request("POST", f"/v0/groups/{empty}/start").json()["status"] == "empty"


def test_end(server):
    with group(server, count=4, spec=SMALL) as team:
        ids = [box["id"] for box in team.wait("running").get()["sandboxes"]]
        assert team.request("POST", "/end").json()["status"] == "ending"
        answer = team.request("POST", "/sandbox", {"metadata": {"name": "late"}})
        assert answer.error() == "GROUP_NOT_FOUND", answer
        for verb in ("/start", "/stop", "/end"):
            assert team.request("POST", verb).error() == "GROUP_NOT_FOUND"
        wait_until(lambda: team.request("GET").status == 404, 60, "the end")
        for box_id in ids:
            assert server.request("GET", f"/v0/sandbox/{box_id}").status == 404


def memory_of(team):
    boxes = team.request("GET", "/sandbox").json()["sandboxes"]
    return {box["metadata"]["name"]: box["spec"]["resources"]["memory"] for box in boxes}


def test_resize(server):
    with group(server, spec=SMALL, sandboxes=[
            {"name": "a"}, {"name": "b", "spec": {"resources": {"memory": "128Mi"}}},
            {"name": "c", "spec": {"enabled": False}}]) as team:
        wait_until(lambda: team.get()["status"] == "mixed", 60, lambda: team.get())
        assert team.request("POST", "/resize", {"factor": 2}).status == 200
        assert memory_of(team) == {"a": "128Mi", "b": "256Mi", "c": "128Mi"}
        assert team.request("POST", "/resize", {"memory": "96Mi"}).status == 200
        assert set(memory_of(team).values()) == {"96Mi"}
        event = team.sandbox("a").get()["events"][-1]
        assert (event["type"], event["message"]) == ("RESIZE", "Sandbox resized with its group")
        assert team.get()["spec"]["resources"]["memory"] == "64Mi"  # what is inherited is PATCH's
        lower = {"factor": 3}
        assert team.request("POST", "/resize", {"autoLower": lower}).status == 200
        assert all(team.sandbox(name).get()["spec"]["autoLower"]["factor"] == 3 for name in "abc")
        assert team.request("POST", "/resize", {"autoLower": False, "memory": "80Mi"}).status == 200
        assert set(memory_of(team).values()) == {"80Mi"}
        assert all("autoLower" not in team.sandbox(name).get()["spec"] for name in "abc")
        for bad in ({}, {"factor": 0}, {"memroy": "1Gi"}, {"autoLower": {"factor": 0.5}}, {"memory": "1"},
                    {"factor": 2, "memory": "1Gi"}):
            answer = team.request("POST", "/resize", bad)
            assert answer.status == 400, (bad, answer)
        assert set(memory_of(team).values()) == {"80Mi"}


def test_resize_is_for_all_or_none(server):
    with group(server, count=3, spec=SMALL) as team:
        team.wait("running")
        full = team.sandbox("sandbox-3")
        full.run("dd if=/dev/zero of=/workspace/full bs=1M count=40 2>/dev/null; sync")
        answer = team.request("POST", "/resize", {"disk": "20Mi"})
        assert answer.error() == "RESOURCE_IN_USE" and "sandbox-3" in answer.text, answer
        disks = [box["spec"]["resources"]["disk"] for box in team.request("GET", "/sandbox").json()["sandboxes"]]
        assert disks == ["64Mi"] * 3
        assert all(event["type"] != "RESIZE" for event in team.sandbox("sandbox-1").get()["events"])
        assert team.sandbox("sandbox-1").run("dd if=/dev/zero of=/workspace/x bs=1M count=40 2>/dev/null; echo $?") == "0"


def stats(team):
    answer = team.request("GET", "/stats")
    assert answer.status == 200, answer
    found = answer.json()
    return found["total"], {box["name"]: box for box in found["sandboxes"]}


def test_stats(server):
    with group(server, count=3, spec=SMALL) as team:
        team.wait("running")
        busy = team.sandbox("sandbox-1")
        for _ in range(3):
            busy.run("true")
        busy.write("/workspace/x", b"x")
        team.sandbox("sandbox-3").stop()
        wait_until(lambda: stats(team)[0]["memory"] > 0, 30, "a sample")
        total, boxes = stats(team)
        assert boxes["sandbox-1"]["history"]["commands"] == 3
        assert boxes["sandbox-1"]["history"]["actions"] == 4
        assert boxes["sandbox-2"]["history"]["actions"] == 0
        assert boxes["sandbox-1"]["group"] == team.name
        assert boxes["sandbox-1"]["limits"]["memory"] == 64 << 20
        assert "startedAt" in boxes["sandbox-1"]["history"] and "startedAt" not in boxes["sandbox-3"]["history"]
        assert boxes["sandbox-1"]["history"]["totalSeconds"] > 0 and boxes["sandbox-3"]["history"]["totalSeconds"] > 0
        assert boxes["sandbox-3"]["history"]["runningSeconds"] == 0
        assert "memory" not in boxes["sandbox-3"]
        assert total["allocated"] == {"cpu": 0.2, "memory": 128 << 20, "disk": 192 << 20}
        assert total["history"]["commands"] == 3 and total["history"]["actions"] == 4
        assert 0 < total["percent"]["memory"] <= 100
        assert total["memory"] == sum(box.get("memory", 0) for box in boxes.values())
        team.sandbox("sandbox-3").start()
        assert stats(team)[1]["sandbox-3"]["history"]["starts"] == 2
    with group(server) as empty:
        total, boxes = stats(empty)
        assert boxes == {} and total["allocated"] == {"cpu": 0, "memory": 0, "disk": 0}
        assert total["percent"] == {}


def test_unknown_group(server):
    for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/end"), ("POST", "/start"),
                         ("POST", "/stop"), ("GET", "/stats"), ("GET", "/sandbox"),
                         ("POST", "/sandbox")):
        answer = server.request(method, f"/v0/groups/nobody{path}", {"spec": {}} if method != "GET" else None)
        assert (answer.status, answer.error()) == (404, "GROUP_NOT_FOUND"), (method, path, answer)
    answer = server.request("POST", "/v0/sandbox", {"metadata": {"group": "nobody"}})
    assert answer.error() == "GROUP_NOT_FOUND"
    assert server.request("POST", "/v0/sandbox", {"metadata": {"group": 3}}).error() == "INVALID_ARGUMENT"


# --- lists ---


def test_pages(server):
    workspace = Workspace(server)
    key = workspace.key("admin")
    names = [unique() for _ in range(5)]
    for name in names:
        assert call(server, "POST", "/v0/groups", key, {"name": name, "count": 1, "spec": STOPPED}).status == 202
    seen = []
    for offset in (0, 2, 4, 6):
        page = call(server, "GET", f"/v0/groups?limit=2&offset={offset}", key).json()
        assert (page["total"], page["limit"], page["offset"]) == (5, 2, offset)
        assert all("sandboxes" not in item for item in page["groups"])
        seen += [item["metadata"]["name"] for item in page["groups"]]
    assert seen == names
    assert call(server, "GET", "/v0/groups?limit=0", key).status == 400
    all_boxes = call(server, "GET", "/v0/sandbox", key).json()
    assert all_boxes["total"] == 5
    one = call(server, "GET", f"/v0/groups/{names[1]}/sandbox?limit=1", key).json()
    assert one["total"] == 1 and one["sandboxes"][0]["metadata"]["group"] == names[1]
    assert call(server, "GET", f"/v0/sandbox?group={names[1]}", key).json()["total"] == 1
    assert call(server, "GET", "/v0/sandbox?group=", key).json()["total"] == 0
    full = call(server, "DELETE", f"/v0/workspaces/{workspace.name}", server.key)
    assert full.error() == "WORKSPACE_NOT_EMPTY"
    workspace.delete()


def test_workspace_goes_with_its_groups(server):
    workspace = Workspace(server)
    key = workspace.key("admin")
    for count in (0, 2):
        answer = call(server, "POST", "/v0/groups", key, {"name": f"g{count}", "count": count, "spec": SMALL})
        assert answer.status == 202, answer
    answer = server.request("DELETE", f"/v0/workspaces/{workspace.name}")
    assert answer.error() == "WORKSPACE_NOT_EMPTY"
    workspace.delete()
    assert server.request("GET", f"/v0/workspaces/{workspace.name}").status == 404


# --- who may ---


def test_groups_of_another_workspace_cannot_be_seen(server):
    one, two = Workspace(server), Workspace(server)
    mine, stranger = one.key("admin"), two.key("admin")
    made = call(server, "POST", "/v0/groups", mine, {"name": "team", "count": 1, "spec": STOPPED}).json()
    box_id = made["sandboxes"][0]["id"]
    for name in ("team", made["metadata"]["id"]):
        for method, path in (("GET", ""), ("PATCH", ""), ("DELETE", ""), ("POST", "/start"), ("POST", "/stop"),
                             ("POST", "/end"), ("GET", "/sandbox"), ("POST", "/sandbox")):
            answer = call(server, method, f"/v0/groups/{name}{path}", stranger, {"spec": {}})
            assert (answer.status, answer.error()) == (404, "GROUP_NOT_FOUND"), (method, path, answer)
        for path in (f"/v0/groups/{name}/sandbox/sandbox-1", f"/v0/groups/{name}/sandbox/{box_id}",
                     f"/v0/sandbox/{box_id}", f"/v0/sandbox/{name}%2Fsandbox-1"):
            assert call(server, "DELETE", path, stranger).error() == "SANDBOX_NOT_FOUND", path
    assert call(server, "GET", "/v0/groups", stranger).json()["total"] == 0
    theirs = call(server, "POST", "/v0/groups", stranger, {"name": "team"})
    assert theirs.status == 202, theirs
    for workspace in (one, two):
        workspace.delete()


def test_scopes(server):
    workspace = Workspace(server)
    admin, writer, reader = (workspace.key(scope) for scope in ("admin", "write", "read"))
    assert call(server, "POST", "/v0/groups", writer, {"name": "team"}).error() == "FORBIDDEN"
    assert call(server, "POST", "/v0/groups", admin, {"name": "team", "spec": STOPPED}).status == 202
    assert call(server, "POST", "/v0/groups/team/sandbox", writer, {"metadata": {"name": "a"}}).status == 202
    assert call(server, "POST", "/v0/groups/team/sandbox", reader, {}).error() == "FORBIDDEN"
    assert call(server, "POST", "/v0/groups/team/end", writer).error() == "FORBIDDEN"
    assert call(server, "POST", "/v0/groups/team/start", reader).error() == "FORBIDDEN"
    assert call(server, "GET", "/v0/groups/team/sandbox/a", reader).status == 200
    assert call(server, "DELETE", "/v0/groups/team/sandbox/a", reader).error() == "FORBIDDEN"
    workspace.delete()
