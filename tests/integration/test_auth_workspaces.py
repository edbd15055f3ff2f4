# SPDX-License-Identifier: Apache-2.0
"""Workspaces: apart from each other, found by path and by field, gone when they are deleted."""

import contextlib
import threading

import pytest

import raw_http
from cella_auth import Workspace, call, fresh, request_token
from cella_server import wait_until


@pytest.fixture
def pair(server):
    made = Workspace(server), Workspace(server)
    yield made
    for workspace in made:
        workspace.delete()


def exec_in(server, path, key, command):
    answer = call(server, "POST", f"{path}/process", key,
                  {"command": command, "waitForCompletion": True, "timeout": 30})
    assert answer.status == 200, answer
    return answer.json()["stdout"].strip()


def test_the_same_name_twice(server, pair):
    """Two sandboxes of one name are two sandboxes, whichever way they are reached."""
    name, keys = fresh("box"), [workspace.key() for workspace in pair]
    for workspace, key in zip(pair, keys):
        workspace.create(name, enabled=True)
        assert exec_in(server, f"/v0/sandbox/{name}", key, f"echo {workspace.name} > /tmp/me") == ""
    ids = set()
    for workspace, key in zip(pair, keys):
        for path in (f"/v0/sandbox/{name}", f"/{workspace.name}/sandbox/{name}"):
            assert exec_in(server, path, key, "cat /tmp/me") == workspace.name
        # The first key gets into either by saying which.
        assert exec_in(server, f"/{workspace.name}/sandbox/{name}", server.key,
                       "cat /tmp/me") == workspace.name
        shown = server.request("GET", f"/v0/sandbox/{name}", None,
                               {"X-Blaxel-Workspace": workspace.name}).json()
        assert shown["metadata"]["workspace"] == workspace.name
        ids.add(shown["metadata"]["id"])
        listed = call(server, "GET", "/v0/sandbox", key).json()
        assert [item["metadata"]["id"] for item in listed["sandboxes"]] == [shown["metadata"]["id"]]
    assert len(ids) == 2
    # In its own workspace the first key has neither.
    assert server.request("GET", f"/v0/sandbox/{name}").status == 404
    assert server.request("GET", f"/default/sandbox/{name}/health").status == 404

    gone = call(server, "DELETE", f"/v0/sandbox/{name}", keys[0])
    assert gone.status == 202, gone
    assert exec_in(server, f"/v0/sandbox/{name}", keys[1], "cat /tmp/me") == pair[1].name


def test_life(server):
    name = fresh("ws")
    made = server.request("POST", "/v0/workspaces", {"name": name})
    assert made.status == 201, made
    assert made.json()["createdBy"] == "admin"
    again = server.request("POST", "/v0/workspaces", {"name": name})
    assert (again.status, again.error()) == (409, "ALREADY_EXISTS")
    got = server.request("GET", f"/v0/workspaces/{name}").json()
    assert got.pop("quotas") and got == made.json()
    listed = server.request("GET", "/v0/workspaces").json()
    names = [item["name"] for item in listed["workspaces"]]
    assert name in names and "default" in names and names == sorted(names)
    assert listed["total"] == len(names)
    gone = server.request("DELETE", f"/v0/workspaces/{name}")
    assert gone.status == 200, gone
    assert server.request("GET", f"/v0/workspaces/{name}").error() == "WORKSPACE_NOT_FOUND"
    assert server.request("DELETE", f"/v0/workspaces/{name}").error() == "WORKSPACE_NOT_FOUND"


@pytest.mark.parametrize("name, code", [
    ("v0", "INVALID_NAME"), ("docs", "INVALID_NAME"), ("preview", "INVALID_NAME"),
    ("default-workspace", "INVALID_NAME"), ("Blue", "INVALID_NAME"), ("", "INVALID_NAME"),
    ("a" * 64, "INVALID_NAME"), ("a/b", "INVALID_NAME"), (7, "INVALID_ARGUMENT"),
    (None, "INVALID_ARGUMENT"),
])
def test_bad_names(server, name, code):
    answer = server.request("POST", "/v0/workspaces", {"name": name})
    assert (answer.status, answer.error()) == (400, code), answer


def test_default(server):
    for name in ("default", "default-workspace"):
        answer = server.request("DELETE", f"/v0/workspaces/{name}?force=true")
        assert (answer.status, answer.error()) == (409, "CONFLICT")
        got = server.request("GET", f"/v0/workspaces/{name}").json()
        assert got.pop("quotas") and got == {"name": "default"}


def test_own_workspace_is_all_one_sees(server, pair):
    key = pair[0].key("admin")
    listed = call(server, "GET", "/v0/workspaces", key).json()
    assert [item["name"] for item in listed["workspaces"]] == [pair[0].name]
    assert call(server, "GET", f"/v0/workspaces/{pair[1].name}", key).error() == "WORKSPACE_NOT_FOUND"


def test_not_empty(server, pair):
    workspace = pair[0]
    name, key = fresh("box"), workspace.key()
    workspace.create(name)
    refused = server.request("DELETE", f"/v0/workspaces/{workspace.name}")
    assert (refused.status, refused.error()) == (409, "WORKSPACE_NOT_EMPTY")
    assert "1 sandbox" in refused.text
    assert call(server, "GET", f"/v0/sandbox/{name}", key).status == 200  # open again


def test_force(server):
    workspace = Workspace(server)
    key = workspace.new_key()
    token = request_token(server, key)
    for enabled in (True, True, False):
        workspace.create(fresh("box"), enabled=enabled)
    gone = server.request("DELETE", f"/v0/workspaces/{workspace.name}?force=true", timeout=90)
    assert gone.status == 200, gone
    for shown in (key["secret"], token):
        assert call(server, "GET", "/v0/whoami", shown).status == 401
    # Nothing comes back with the name.
    again = Workspace(server, workspace.name)
    assert server.request("GET", "/v0/sandbox", None,
                          {"X-Cella-Workspace": again.name}).json()["total"] == 0
    assert server.request("GET", f"/v0/workspaces/{again.name}/api-keys").json()["total"] == 0
    again.delete()


def test_deleting_while_others_create(server):
    """One of the two wins: no sandbox is left without a workspace."""
    workspace = Workspace(server)
    key = workspace.key()
    made, stop = [], threading.Event()

    def create():
        while not stop.is_set():
            answer = call(server, "POST", "/v0/sandbox", key, {"spec": {"enabled": False}})
            if answer.status != 202:
                made.append(answer)
                return

    threads = [threading.Thread(target=create) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        wait_until(lambda: server.request("GET", "/v0/sandbox", None, {
            "X-Cella-Workspace": workspace.name}).json()["total"] > 3, 30, "some sandboxes")
        gone = server.request("DELETE", f"/v0/workspaces/{workspace.name}?force=true", timeout=90)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    assert gone.status == 200, gone
    assert {answer.error() for answer in made} <= {"WORKSPACE_NOT_FOUND", "UNAUTHORIZED"}
    again = Workspace(server, workspace.name)
    assert server.request("GET", "/v0/sandbox", None,
                          {"X-Cella-Workspace": again.name}).json()["total"] == 0
    again.delete()


@pytest.mark.parametrize("whose", ["its own", "the server's"])
def test_a_request_does_not_outlive_its_workspace(server, whose):
    """What was let into one is not done in another one of the same name."""
    workspace = Workspace(server)
    key = workspace.key() if whose == "its own" else server.key
    body = b'{"metadata": {"name": "late"}, "spec": {"enabled": false}}'
    with raw_http.connect(server) as sock:
        sock.sendall(raw_http.head(server, "POST /v0/sandbox HTTP/1.1", "Host: x", f"Authorization: Bearer {key}",
                                   f"X-Cella-Workspace: {workspace.name}", f"Content-Length: {len(body)}",
                                   "Expect: 100-continue", key=False))
        assert sock.recv(100) == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert server.request("DELETE", f"/v0/workspaces/{workspace.name}").status == 200
        again = Workspace(server, workspace.name)
        with contextlib.suppress(ConnectionError):
            sock.sendall(body)
        answer = sock.recv(1000)
    assert answer.startswith(b"HTTP/1.1 404") and b"WORKSPACE_NOT_FOUND" in answer, answer
    listed = server.request("GET", "/v0/sandbox", None, {"X-Cella-Workspace": again.name}).json()
    assert listed["total"] == 0
    again.delete()


def test_everything_survives_restarts(server_factory):
    own = server_factory()
    workspace = Workspace(own)
    name, key = fresh("box"), workspace.new_key("write")
    revoked = workspace.new_key("write")
    token = request_token(own, key)
    created = workspace.create(name)
    path = f"/v0/workspaces/{workspace.name}/api-keys/{revoked['id']}"
    assert own.request("DELETE", path).status == 200

    def check():
        for shown in (key["secret"], token):
            answer = call(own, "GET", f"/v0/sandbox/{name}", shown)
            assert answer.status == 200, answer
            assert answer.json()["metadata"]["id"] == created["metadata"]["id"]
        assert call(own, "GET", "/v0/whoami", revoked["secret"]).status == 401
        assert own.request("GET", f"/v0/workspaces/{workspace.name}").status == 200

    check()
    before = own.kill("cellad")
    own.wait_recovered(before, "cellad")
    check()
    own.stop()
    own.start()
    check()


def test_no_auth_gets_everywhere(server_factory):
    own = server_factory("--no-auth")
    own.key = None
    made = own.request("POST", "/v0/workspaces", {"name": "blue"})
    assert made.status == 201, made
    assert made.json()["createdBy"] == "anonymous"
    who = own.request("GET", "/v0/whoami", None, {"X-Cella-Workspace": "blue"}).json()
    assert (who["credential"], who["workspace"]) == ("none", "blue")
    assert own.request("GET", "/v0/whoami", None, {"X-Cella-Workspace": "red"}).status == 404
    own.key = (own.data / "api-key").read_text().strip()
