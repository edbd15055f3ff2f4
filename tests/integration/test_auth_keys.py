# SPDX-License-Identifier: Apache-2.0
"""API keys: made, shown once, limited, revoked; and every place in a request where one can be."""

import contextlib
import json
import pathlib
import re
import socket
import time
import urllib.parse

import pytest

from cella_auth import Workspace, call, fresh, fresh_address, request_token
from cella_server import PATIENCE, wait_until


@pytest.fixture(scope="module")
def workspace(server):
    made = Workspace(server)
    yield made
    made.delete()


def test_made_and_shown_once(server, workspace):
    key = workspace.new_key("read", "write")
    assert re.fullmatch(r"cella_[A-Za-z0-9_-]{43}", key["secret"])
    assert re.fullmatch(r"[a-z2-7]{12}", key["id"])
    assert key["secret"].startswith(key["prefix"]) and len(key["prefix"]) == 10
    assert (key["workspace"], key["createdBy"]) == (workspace.name, "admin")
    assert key["scopes"] == ["read", "write"]
    assert key["expiresAt"] is None and key["lastUsedAt"] is None

    path = f"/v0/workspaces/{workspace.name}/api-keys"
    one = server.request("GET", f"{path}/{key['id']}")
    listed = server.request("GET", path)
    assert one.status == listed.status == 200
    assert key["secret"] not in one.text + listed.text
    assert one.json() in listed.json()["keys"]
    assert one.json() == {name: value for name, value in key.items() if name != "secret"}
    # Nor is it in what the server keeps.
    for file in (server.data / "db").glob("cella.db*"):
        assert key["secret"].encode() not in file.read_bytes(), file
        assert file.stat().st_mode & 0o077 == 0, file


def test_use_is_noted(server, workspace):
    key = workspace.new_key("read")
    assert call(server, "GET", "/v0/whoami", key["secret"]).status == 200
    seen = server.request("GET", f"/v0/workspaces/{workspace.name}/api-keys/{key['id']}").json()
    assert seen["lastUsedAt"] >= key["createdAt"]


def test_whoami(server, workspace):
    key = workspace.new_key("write")
    who = call(server, "GET", "/v0/whoami", key["secret"]).json()
    assert who == {"name": key["name"], "keyId": key["id"], "credential": "key",
                   "workspace": workspace.name, "scopes": ["read", "write"], "expiresAt": None}
    token = call(server, "GET", "/v0/whoami", request_token(server, key)).json()
    assert token["credential"] == "token" and token["expiresAt"] is not None
    assert server.request("GET", "/v0/whoami").json()["scopes"] == ["read", "write", "admin", "server"]


def test_who_made_a_sandbox(server, workspace):
    maker, changer = workspace.new_key("write"), workspace.new_key("write")
    name = fresh("box")
    made = call(server, "POST", "/v0/sandbox", maker["secret"],
                {"metadata": {"name": name}, "spec": {"enabled": False}})
    assert made.status == 202, made
    assert made.json()["metadata"]["createdBy"] == maker["name"]
    assert made.json()["metadata"]["workspace"] == workspace.name
    assert f"/{workspace.name}/sandbox/{name}" in made.json()["access"]["api_endpoint"]
    assert call(server, "PUT", f"/v0/sandbox/{name}/start", changer["secret"]).status == 202
    metadata = call(server, "GET", f"/v0/sandbox/{name}", maker["secret"]).json()["metadata"]
    assert (metadata["createdBy"], metadata["updatedBy"]) == (maker["name"], changer["name"])
    assert call(server, "DELETE", f"/v0/sandbox/{name}", changer["secret"]).status == 202


def test_expiry(server, workspace):
    key = workspace.new_key("read", expiresIn=1)
    assert key["expiresAt"] > key["createdAt"]
    address = fresh_address()
    deadline = time.monotonic() + 60
    while call(server, "GET", "/v0/whoami", key["secret"], source=address).status == 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    answer = call(server, "GET", "/v0/whoami", key["secret"], source=address)
    assert (answer.status, answer.error()) == (401, "UNAUTHORIZED")
    assert "expired" in answer.text


@pytest.mark.parametrize("body, code, word", [
    ({}, "INVALID_ARGUMENT", "name"),
    ({"name": ""}, "INVALID_NAME", "empty"),
    ({"name": "Big"}, "INVALID_NAME", "capital"),
    ({"name": "admin"}, "INVALID_NAME", "server's own"),
    ({"name": "a", "scopes": []}, "INVALID_ARGUMENT", "scopes"),
    ({"name": "a", "scopes": ["all"]}, "INVALID_ARGUMENT", "scopes[0]"),
    ({"name": "a", "scopes": ["read", 1]}, "INVALID_ARGUMENT", "scopes[1]"),
    ({"name": "a", "scopes": "read"}, "INVALID_ARGUMENT", "scopes"),
    ({"name": "a", "expiresIn": 0}, "INVALID_ARGUMENT", "expiresIn"),
    ({"name": "a", "expiresIn": 1 << 40}, "INVALID_ARGUMENT", "expiresIn"),
    ({"name": "a", "expiresIn": "1h"}, "INVALID_ARGUMENT", "expiresIn"),
    ({"name": "a", "scope": ["read"]}, "UNKNOWN_FIELD", "scopes"),
])
def test_bad_requests(server, workspace, body, code, word):
    answer = server.request("POST", f"/v0/workspaces/{workspace.name}/api-keys", body)
    assert (answer.status, answer.error()) == (400, code), answer
    assert word in answer.json()["error"]["message"], answer


def test_names_are_unique_in_a_workspace(server, workspace):
    name = workspace.new_key()["name"]
    again = server.request("POST", f"/v0/workspaces/{workspace.name}/api-keys", {"name": name})
    assert (again.status, again.error()) == (409, "ALREADY_EXISTS")


def test_nobody_grants_more_than_he_has(server, workspace):
    admin = workspace.new_key("admin")
    child = call(server, "POST", "/v0/api-keys", admin["secret"],
                 {"name": fresh("key"), "scopes": ["admin"]})
    assert child.status == 201, child
    assert child.json()["createdBy"] == admin["name"]
    assert child.json()["workspace"] == workspace.name
    more = call(server, "POST", "/v0/api-keys", admin["secret"],
                {"name": fresh("key"), "scopes": ["server"]})
    assert (more.status, more.error()) == (403, "FORBIDDEN")
    for path in ("/v0/workspaces/default/api-keys", "/v0/workspaces/nothing/api-keys"):
        elsewhere = call(server, "POST", path, admin["secret"], {"name": fresh("key")})
        assert (elsewhere.status, elsewhere.error()) == (404, "WORKSPACE_NOT_FOUND")
    # A token can be weaker than its key, and then grants no more than that.
    answer = call(server, "POST", "/v0/oauth/token", body={
        "grant_type": "client_credentials", "client_id": admin["id"],
        "client_secret": admin["secret"], "scope": "read"})
    weak = call(server, "POST", "/v0/api-keys", answer.json()["access_token"], {"name": fresh("key")})
    assert weak.status == 403, weak


def open_stream(server, head, body=b""):
    """A connection with a request sent on it."""
    parts = urllib.parse.urlsplit(server.url)
    stream = socket.create_connection((parts.hostname, parts.port), timeout=60 * PATIENCE)
    stream.sendall((head + "\r\n\r\n").encode() + body)
    return stream


def read_to_the_end(stream):
    with contextlib.suppress(ConnectionResetError):
        while stream.recv(65536):
            pass


def test_revoking_ends_what_is_open(server, workspace):
    """A command that is waited for, a terminal: both end with the key, the command itself goes on."""
    key, box = workspace.new_key("write"), fresh("box")
    workspace.create(box, enabled=True)
    base = f"/{workspace.name}/sandbox/{box}"
    body = json.dumps({"command": "sleep 1000", "waitForCompletion": True}).encode()
    common = f"Host: x\r\nAuthorization: Bearer {key['secret']}"
    streams = [
        open_stream(server, f"POST {base}/process HTTP/1.1\r\n{common}\r\nContent-Type: "
                            f"application/json\r\nContent-Length: {len(body)}", body),
        open_stream(server, f"GET {base}/terminal/ws HTTP/1.1\r\n{common}\r\nConnection: Upgrade\r\n"
                            "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
                            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=="),
    ]

    def processes():
        return [process for process in server.request("GET", f"{base}/process").json()
                if process["command"] == "sleep 1000" and process["status"] == "running"]

    wait_until(processes, 30, "the command")
    assert streams[1].recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 101"
    path = f"/v0/workspaces/{workspace.name}/api-keys/{key['id']}"
    assert server.request("DELETE", path).status == 200
    assert streams[0].recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 401"
    read_to_the_end(streams[1])
    for stream in streams:
        stream.close()
    assert processes()
    assert server.request("DELETE", f"/v0/sandbox/{box}", None,
                          {"X-Cella-Workspace": workspace.name}).status == 202


def test_first_key_stays(server):
    answer = server.request("DELETE", "/v0/api-keys/admin")
    assert (answer.status, answer.error()) == (409, "CONFLICT")
    assert server.request("GET", "/v0/whoami").status == 200


def test_keys_of_another_workspace(server, workspace):
    """Not by their id either."""
    other = Workspace(server)
    key, admin = workspace.new_key(), other.key("admin")
    for method in ("GET", "DELETE"):
        answer = call(server, method, f"/v0/api-keys/{key['id']}", admin)
        assert (answer.status, answer.error()) == (404, "KEY_NOT_FOUND")
    assert [k["name"] for k in call(server, "GET", "/v0/api-keys", admin).json()["keys"]] != []
    assert key["id"] not in call(server, "GET", "/v0/api-keys", admin).text
    assert call(server, "GET", "/v0/whoami", key["secret"]).status == 200
    other.delete()


# --- where a key can be ---


@pytest.mark.parametrize("fields", [
    lambda key: {"Authorization": f"Bearer {key}"},
    lambda key: {"authorization": f"bearer  {key} "},
    lambda key: {"X-Blaxel-Authorization": f"Bearer {key}"},
    lambda key: {"X-Api-Key": key},
    lambda key: {"Authorization": f"Bearer {key}", "X-Blaxel-Authorization": f"Bearer {key}",
                 "X-Api-Key": key},
    lambda key: {"Authorization": "", "X-Api-Key": key},
])
def test_places(server, workspace, fields):
    key = workspace.new_key("read")
    for shown in (key["secret"], request_token(server, key)):
        answer = call(server, "GET", "/v0/whoami", headers=fields(shown))
        assert answer.status == 200, answer
        assert answer.json()["name"] == key["name"]


@pytest.mark.parametrize("fields, status, code", [
    ({"X-Api-Key": "cella_other"}, 400, "CONFLICTING_CREDENTIALS"),
    ({"X-Blaxel-Authorization": "Bearer cella_other"}, 400, "CONFLICTING_CREDENTIALS"),
    ({"X-Blaxel-Authorization": "cella_other"}, 401, "UNAUTHORIZED"),
    ({"X-Blaxel-Authorization": "Basic eDp5"}, 401, "UNAUTHORIZED"),
    ({"X-Cella-Workspace": "a", "X-Blaxel-Workspace": "b"}, 400, "CONFLICTING_CREDENTIALS"),
    ({"X-Cella-Workspace": "nothing"}, 404, "WORKSPACE_NOT_FOUND"),
])
def test_conflicts(server, fields, status, code):
    answer = server.request("GET", "/v0/whoami", None, fields)
    assert (answer.status, answer.error()) == (status, code), answer
    assert "other" not in answer.text  # what was sent is not repeated


def test_the_same_field_twice(server):
    connection = server.connection()
    for second, status in ((server.key, 200), ("cella_other", 400)):
        connection.putrequest("GET", "/v0/whoami")
        connection.putheader("Authorization", f"Bearer {server.key}")
        connection.putheader("Authorization", f"Bearer {second}")
        connection.endheaders()
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
    connection.close()


def test_path_and_field_name_two_workspaces(server, workspace):
    answer = server.request("GET", f"/v0/workspaces/{workspace.name}", None,
                            {"X-Cella-Workspace": "default"})
    assert (answer.status, answer.error()) == (400, "CONFLICTING_CREDENTIALS")
    answer = server.request("GET", "/v0/workspaces/default", None,
                            {"X-Cella-Workspace": "default-workspace"})
    assert answer.status == 200


def test_keys_are_not_on_the_command_line_nor_in_the_log(server_factory):
    own = server_factory("--log-level", "debug")
    name = fresh("key")
    secret = own.request("POST", "/v0/api-keys", {"name": name}).json()["secret"]
    call(own, "GET", f"/v0/whoami?token={secret}", secret)
    call(own, "GET", f"/v0/nothing?token={secret}", secret)
    for pid in own.pids():
        line = pathlib.Path(f"/proc/{pid}/cmdline").read_text()
        assert own.key not in line
        assert not re.search(r"[0-9a-f]{64}", line), line
    assert "ROUTE_NOT_FOUND" in own.log()
    assert secret not in own.log() and own.key not in own.log()
