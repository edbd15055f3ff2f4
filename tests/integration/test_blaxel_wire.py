# SPDX-License-Identifier: Apache-2.0
"""What Blaxel's client puts on the wire, byte for byte as it was recorded, without the client: paths
with %2F and with a double slash, its form data, its headers. tests/clients runs the client itself."""

import contextlib
import json
import re

import pytest

from cella_server import wait_until

BOUNDARY = "----formdata-undici-003786323743"


@pytest.fixture(scope="module")
def client(server):
    return Client(server)


class Client:
    """Requests with the client's own fields. Paths are sent as they are."""

    def __init__(self, server):
        self.server = server
        self.fields = {"x-blaxel-authorization": f"Bearer {server.key}",
                       "x-blaxel-workspace": "default", "Blaxel-Version": "2026-04-28",
                       "accept": "*/*"}

    def __call__(self, method, path, body=None, **fields):
        fields = {**self.fields, **{name.replace("_", "-"): value for name, value in fields.items()}}
        if isinstance(body, (dict, list)):
            body = json.dumps(body, separators=(",", ":")).encode()
            fields.setdefault("Content-Type", "application/json")
        return self.server.request(method, path, body, {"Authorization": None, **fields})


@pytest.fixture(scope="module")
def box(client):
    """A sandbox made as the client makes it; call it with a path of its own API."""
    made = client("POST", "/v0/sandboxes", {
        "metadata": {"name": "sb1", "labels": {"a": "b"}},
        "spec": {"runtime": {"image": "blaxel/base-image:latest", "memory": 2048,
                             "ports": [{"target": 3000, "protocol": "HTTP"}],
                             "envs": [{"name": "A", "value": "1"}], "generation": "mk3",
                             "ttl": "1h"}}})
    assert made.status == 200, made

    def call(method, path, body=None, **fields):
        return client(method, "/default/sandboxes/sb1" + path, body, **fields)

    call.made = made.json()
    yield call
    assert client("DELETE", "/v0/sandboxes/sb1").json()["status"] == "DELETING"


def form(*parts):
    lines = b""
    for disposition, content_type, content in parts:
        lines += f"--{BOUNDARY}\r\nContent-Disposition: form-data; {disposition}\r\n".encode()
        lines += f"Content-Type: {content_type}\r\n".encode() if content_type else b""
        lines += b"\r\n" + content + b"\r\n"
    return lines + f"--{BOUNDARY}--\r\n".encode()


FORM_TYPE = f"multipart/form-data; boundary={BOUNDARY}"


# --- control plane ---


def test_create(box):
    made = box.made
    assert made["status"] == "DEPLOYED"
    assert made["metadata"]["labels"] == {"a": "b"}
    runtime = made["spec"]["runtime"]
    assert runtime["memory"] == 2048 and runtime["generation"] == "mk3" and runtime["ttl"] == "1h"
    assert runtime["ports"] == [{"target": 3000, "protocol": "HTTP"}]
    assert runtime["envs"] == [{"name": "A", "value": "1"}]
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z", made["metadata"]["createdAt"])


def test_memory_brings_the_cpu(box, server):
    resources = server.request("GET", "/v0/sandbox/sb1").json()["spec"]["resources"]
    assert resources["memory"] == "2048Mi" and resources["cpu"] == "1000m"


def test_create_if_not_exist(client, box):
    body = {"metadata": {"name": "sb1"}, "spec": {"runtime": {
        "image": "blaxel/base-image:latest", "memory": 4096, "generation": "mk3"}}}
    again = client("POST", "/v0/sandboxes?createIfNotExist=true", body)
    assert again.status == 200
    assert again.json()["metadata"]["createdAt"] == box.made["metadata"]["createdAt"]
    twice = client("POST", "/v0/sandboxes", body)
    assert twice.status == 409
    assert twice.json()["code"] == 409 and twice.json()["error"] == "ALREADY_EXISTS"


def test_a_stopped_one_is_started_by_create_if_not_exist(client, server):
    sandbox = server.create(enabled=False)
    try:
        assert client("GET", f"/v0/sandboxes/{sandbox.name}").json()["status"] == "DEACTIVATED"
        found = client("POST", "/v0/sandboxes?createIfNotExist=true",
                       {"metadata": {"name": sandbox.name}, "spec": {}})
        assert found.status == 200 and found.json()["status"] == "DEPLOYED"
        assert found.json()["state"] == "RUNNING"
    finally:
        sandbox.delete()


def test_get_and_list(client, box):
    assert client("GET", "/v0/sandboxes/sb1").json()["metadata"]["name"] == "sb1"
    missing = client("GET", "/v0/sandboxes/nope")
    assert missing.status == 404
    assert missing.json()["code"] == 404 and missing.json()["error"] == "SANDBOX_NOT_FOUND"
    page = client("GET", "/v0/sandboxes?limit=10").json()
    assert "sb1" in [one["metadata"]["name"] for one in page["data"]]
    assert page["meta"]["hasMore"] is False and page["meta"]["total"] >= 1


def test_put_takes_back_what_get_showed(client, box):
    shown = client("GET", "/v0/sandboxes/sb1").json()
    shown["metadata"]["labels"] = {"x": "y"}
    put = client("PUT", "/v0/sandboxes/sb1", shown)
    assert put.status == 200, put
    assert put.json()["metadata"]["labels"] == {"x": "y"}
    assert put.json()["spec"] == shown["spec"]


def test_patch_merges(client, box):
    changed = client("PATCH", "/v0/sandboxes/sb1",
                     {"metadata": {"displayName": "One"}, "spec": {"runtime": {"ttl": None}}}).json()
    assert changed["metadata"]["displayName"] == "One"
    assert "ttl" not in changed["spec"]["runtime"]
    assert changed["spec"]["runtime"]["generation"] == "mk3"


@pytest.mark.parametrize("change, word", [
    ({"metadata": {"name": "other"}}, "name"),
    ({"spec": {"runtime": {"image": "host"}}}, "image"),
    ({"spec": {"runtime": {"memory": "2Gi"}}}, "memory"),
    ({"spec": {"runtime": {"envs": {"A": "1"}}}}, "envs"),
    ({"metadata": {"labels": {"a": 1}}}, "labels"),
    ({"metadata": {"externalId": "not one"}}, "externalId"),
    ({"spec": {"filler": "x" * 20000}}, "spec"),
])
def test_bad_changes(client, box, change, word):
    refused = client("PATCH", "/v0/sandboxes/sb1", change)
    assert refused.status in (400, 413), refused
    assert refused.json()["code"] == refused.status
    assert word in refused.json()["message"]


def test_no_key(client):
    refused = client("GET", "/v0/sandboxes", x_blaxel_authorization=None)
    assert refused.status == 401 and refused.json()["code"] == 401


def test_paths_that_lead_nowhere(client, box):
    nowhere = client("GET", "/v0/sandboxes/sb1/nothing/here")
    assert nowhere.status == 404 and nowhere.json()["code"] == 404
    inside = box("GET", "/nothing")
    assert inside.status == 404 and list(inside.json()) == ["error"]
    wrong = box("PATCH", "/process")
    assert wrong.status == 405 and list(wrong.json()) == ["error"]


# --- files ---


def test_a_file_by_an_encoded_path(box):
    put = box("PUT", "/filesystem/%2Ftmp%2Fa.txt", {"content": "hello"})
    assert put.json() == {"path": "/tmp/a.txt", "message": "File created/updated successfully"}
    got = box("GET", "/filesystem/%2Ftmp%2Fa.txt").json()
    assert got["path"] == "/tmp/a.txt" and got["name"] == "a.txt" and got["content"] == "hello"
    assert got["permissions"] == "644" and got["size"] == 5
    assert got["owner"] == got["group"] == "root"
    assert re.match(r"\d{4}-\d\d-\d\dT", got["lastModified"])


def test_an_encoded_slash_makes_a_path_absolute(box):
    assert box("PUT", "/filesystem/rel%2Fb%20c.txt", {"content": "x"}).json()["path"] == "/rel/b c.txt"
    assert box("PUT", "/filesystem/plain.txt", {"content": "x"}).json()["path"] == "/workspace/plain.txt"
    assert box("PUT", "/filesystem/a/b.txt", {"content": "x"}).json()["path"] == "/workspace/a/b.txt"
    assert box("PUT", "/filesystem/~/c.txt", {"content": "x"}).json()["path"] == "/root/c.txt"


def test_directories(box):
    missing = box("GET", "/filesystem/%2Ftmp%2Fnone")
    assert missing.status == 404 and list(missing.json()) == ["error"]
    root = box("GET", "/filesystem/%2F").json()
    assert root["path"] == "/" and root["name"] == "/" and root["subdirectories"]
    made = box("PUT", "/filesystem/%2Ftmp%2Fdir", {"isDirectory": True, "permissions": "0755"})
    assert made.json()["path"] == "/tmp/dir"
    box("PUT", "/filesystem/%2Ftmp%2Fdir%2Ff", {"content": "x"})
    assert box("DELETE", "/filesystem/%2Ftmp%2Fdir").status == 422
    gone = box("DELETE", "/filesystem/%2Ftmp%2Fdir?recursive=true")
    assert gone.json() == {"path": "/tmp/dir", "message": "File deleted successfully"}


def test_a_form_by_a_double_slash(box):
    content = bytes(range(256))
    body = form(('name="file"; filename="test-binary.bin"', "application/octet-stream", content),
                ('name="permissions"', None, b"0600"), ('name="path"', None, b"/tmp/bin"))
    put = box("PUT", "/filesystem//tmp/bin", body, Content_Type=FORM_TYPE)
    assert put.json()["path"] == "/tmp/bin", put
    got = box("GET", "/filesystem/%2Ftmp%2Fbin", accept="application/octet-stream")
    assert got.body == content
    assert box("GET", "/filesystem//tmp/bin?download=true").body == content
    listed = box("GET", "/filesystem//tmp").json()["files"]
    assert [one["permissions"] for one in listed if one["name"] == "bin"] == ["600"]
    head = box("HEAD", "/filesystem//tmp/bin", accept="application/octet-stream")
    assert head.status == 200 and head.body == b"" and head.headers["Content-Length"] == "256"


@pytest.mark.parametrize("body", [
    form(('name="other"', None, b"x")),
    form(('name="file"', None, b"x"), ('name="file"', None, b"y")),
    form(('name="file"', None, b"x"), ('name="permissions"', None, b"rw-r--r--")),
    form(('name="file"', None, b"x"))[:-30],
    b"not a form",
])
def test_bad_forms_write_nothing(box, body):
    refused = box("PUT", "/filesystem//tmp/bad", body, Content_Type=FORM_TYPE)
    assert refused.status == 400, refused
    assert box("GET", "/filesystem//tmp/bad").status == 404


def test_permissions_behind_a_large_file_are_refused(box):
    large = ('name="file"; filename="f"', None, b"x" * (9 << 20))
    late = form(large, ('name="permissions"', None, b"0600"))
    refused = box("PUT", "/filesystem//tmp/large", late, Content_Type=FORM_TYPE)
    assert refused.status == 400 and "permissions" in refused.json()["error"]
    assert box("GET", "/filesystem//tmp/large").status == 404
    early = form(('name="permissions"', None, b"0600"), large)
    assert box("PUT", "/filesystem//tmp/large", early, Content_Type=FORM_TYPE).status == 200
    listed = box("GET", "/filesystem//tmp").json()["files"]
    assert [(one["permissions"], one["size"]) for one in listed
            if one["name"] == "large"] == [("600", 9 << 20)]


def test_trees_are_absolute(box):
    made = box("PUT", "/filesystem/tree//tmp/t", {"files": {"a/b.txt": "1"}}).json()
    assert made["path"] == "/tmp/t" and made["name"] == "t"
    assert made["subdirectories"][0]["path"] == "/tmp/t/a"
    tree = box("GET", "/filesystem/tree/tmp/t").json()
    assert tree["subdirectories"][0]["files"][0]["name"] == "b.txt"
    assert box("DELETE", "/filesystem/tree/%2Ftmp%2Ft?recursive=true").status == 200
    assert box("GET", "/filesystem/tree/tmp/t").status == 404


def test_an_upload_in_parts(box):
    start = box("POST", "/filesystem-multipart/initiate/%2Fbig", {"permissions": "0644"}).json()
    assert start["path"] == "/big"
    upload = "/filesystem-multipart/" + start["uploadId"]
    parts = []
    for number, content in ((2, b"world"), (1, b"hello ")):
        part = box("PUT", f"{upload}/part?partNumber={number}",
                   form(('name="file"; filename="blob"', "application/octet-stream", content)),
                   Content_Type=FORM_TYPE).json()
        assert part["partNumber"] == number and part["size"] == len(content)
        parts.insert(0, part)
    assert len(box("GET", upload + "/parts").json()["parts"]) == 2
    done = box("POST", upload + "/complete", {"parts": parts})
    assert done.json() == {"path": "/big", "message": "Multipart upload completed successfully"}
    assert box("GET", "/filesystem/%2Fbig").json()["content"] == "hello world"
    assert box("PUT", upload + "/part?partNumber=1", b"x").status == 404


# --- processes ---


def test_a_process(box):
    done = box("POST", "/process", {"name": "p1", "command": "echo hi", "waitForCompletion": True,
                                    "workingDir": "/", "env": {"X": "1"}, "timeout": 30}).json()
    assert isinstance(done["pid"], str) and done["name"] == "p1"
    assert done["status"] == "completed" and done["exitCode"] == 0
    assert done["logs"] == done["stdout"] == "hi\n" and done["stderr"] == ""
    assert done["startedAt"].endswith(" GMT") and done["completedAt"].endswith(" GMT")
    assert (done["restartOnFailure"], done["maxRestarts"], done["restartCount"]) == (False, 0, 0)
    assert done["keepAlive"] is False and done["workingDir"] == "/"
    assert box("GET", "/process/p1").json()["pid"] == done["pid"]
    assert "p1" in [one["name"] for one in box("GET", "/process").json()]
    assert box("GET", "/process/p1/logs").json() == {"logs": "hi\n", "stdout": "hi\n", "stderr": ""}
    stream = box("GET", "/process/p1/logs/stream")
    assert stream.headers["Content-Type"].startswith("text/plain")
    assert stream.body == b"stdout:hi\n"


def test_a_process_with_limits(box):
    ended = box("POST", "/process", {"command": "yes", "waitForCompletion": True, "timeout": 60,
                                     "limits": {"output": "1Ki", "memory": "64Mi"}}).json()
    assert (ended["status"], len(ended["stdout"])) == ("failed", 1024)


def test_a_streamed_process(box):
    answer = box("POST", "/process", {"command": "echo hi", "waitForCompletion": True},
                 accept="text/event-stream")
    assert "application/x-ndjson" in answer.headers["Content-Type"]
    events = [json.loads(line) for line in answer.body.decode().splitlines()]
    assert [event["data"] for event in events if event["type"] == "stdout"] == ["hi\n"]
    assert events[-1]["type"] == "result"
    result = json.loads(events[-1]["data"])
    assert result["status"] == "completed" and result["logs"] == "hi\n"
    assert isinstance(result["pid"], str)


@pytest.mark.parametrize("method, path, status", [
    ("DELETE", "/kill", "killed"), ("POST", "/kill", "killed"), ("DELETE", "", "stopped")])
def test_ends(box, method, path, status):
    name = box("POST", "/process", {"command": "sleep 1000"}).json()["name"]
    assert "success" in box(method, f"/process/{name}{path}").json()["message"]
    assert box("GET", f"/process/{name}").json()["status"] == status


def test_input(box):
    box("POST", "/process", {"name": "in", "command": "cat", "stdin": True})
    assert box("POST", "/process/in/stdin", b"data", Content_Type="application/octet-stream").status == 200
    assert box("DELETE", "/process/in/stdin").status == 200
    wait_until(lambda: box("GET", "/process/in").json()["status"] == "completed", 30, "its end")
    assert box("GET", "/process/in/logs").json()["stdout"] == "data"


def test_output_that_is_no_text(box):
    done = box("POST", "/process", {"command": r"printf 'a\377b'", "waitForCompletion": True}).json()
    assert done["stdout"] == "a\ufffdb" and done["stdoutBase64"] == "Yf9i"


def test_health(box):
    assert box("GET", "/health").json()["status"] == "ok"
    assert box("HEAD", "/health").status == 200


def test_a_sandbox_that_is_not_there(client):
    missing = client("GET", "/default/sandboxes/nope/filesystem/%2F")
    assert missing.status == 404 and list(missing.json()) == ["error"]


def test_options(box, server):
    with contextlib.closing(server.connection()) as connection:
        connection.request("OPTIONS", "/default/sandboxes/sb1/process", headers={
            "Origin": "https://app.example", "Access-Control-Request-Method": "POST"})
        answer = connection.getresponse()
        assert answer.status == 204
        assert "POST" in answer.headers["Access-Control-Allow-Methods"]


# --- previews ---


def test_previews(client, box):
    base = "/v0/sandboxes/sb1/previews"
    missing = client("GET", base + "/pv")
    assert missing.status == 404 and missing.json()["code"] == 404
    made = client("POST", base, {"metadata": {"name": "pv"}, "spec": {"port": 3000, "public": True}})
    assert made.json()["metadata"]["resourceName"] == "sb1"
    assert made.json()["spec"]["url"].startswith("http://")
    assert [one["metadata"]["name"] for one in client("GET", base).json()] == ["pv"]
    put = client("PUT", base + "/pv", {"metadata": {"name": "pv"}, "spec": {"port": 3001}})
    assert put.json()["spec"]["port"] == 3001 and put.json()["spec"]["public"] is False
    assert put.json()["spec"]["url"] == made.json()["spec"]["url"]
    assert client("DELETE", base + "/pv").status == 200
    assert client("GET", base).json() == []


def test_a_session(client, box, server):
    base = "/v0/sandboxes/sb1/previews"
    end = "2099-11-16T06:52:03.497Z"
    made = client("POST", base, {"metadata": {"name": "session-1"},
                                 "spec": {"port": 443, "public": False, "expires": end}}).json()
    token = client("POST", base + "/session-1/tokens",
                   {"metadata": {"name": "token-1"}, "spec": {"expiresAt": end}}).json()
    url = made["spec"]["url"].removeprefix(server.url)
    box("PUT", "/filesystem/%2Ftmp%2Fa.txt", {"content": "hello"})
    guest = {"Authorization": None, "X-Blaxel-Preview-Token": token["spec"]["token"]}
    got = server.request("GET", url + "/filesystem/%2Ftmp%2Fa.txt", headers=guest)
    assert got.json()["content"] == "hello"
    refused = server.request("GET", url + "/filesystem/%2Ftmp%2Fa.txt", headers={"Authorization": None})
    assert refused.status == 401 and list(refused.json()) == ["error"]
    assert client("DELETE", base + "/session-1/tokens/token-1").status == 200
    assert server.request("GET", url + "/health", headers=guest).status == 401
    client("DELETE", base + "/session-1")


def test_previews_survive_the_server(server_factory):
    own = server_factory()
    sandbox = own.create("kept")
    fresh = Client(own)
    base = "/v0/sandboxes/kept/previews"
    spec = {"port": 443, "public": False, "expires": "2099-01-01T00:00:00Z",
            "responseHeaders": {"X-Kept": "yes"}}
    url = fresh("POST", base, {"metadata": {"name": "s"}, "spec": spec}).json()["spec"]["url"]
    token = fresh("POST", base + "/s/tokens", {"spec": {}}).json()["spec"]["token"]
    own.kill("cellad")
    path = url.removeprefix(own.url) + "/health"
    guest = {"Authorization": None, "X-Blaxel-Preview-Token": token}
    wait_until(lambda: answers(own, path, guest), 30, "the server to be back")
    got = own.request("GET", path, headers=guest)
    assert got.status == 200 and got.headers["X-Kept"] == "yes"
    sandbox.delete()
    wait_until(lambda: own.request("GET", path, headers=guest).status == 404, 30, "its end")


def answers(server, path, headers):
    try:
        return server.request("GET", path, headers=headers).status == 200
    except OSError:
        return False


def test_domains_become_rules(client, server):
    def network(name, domains):
        made = client("POST", "/v0/sandboxes", {"metadata": {"name": name}, "spec": {
            "enabled": False, "runtime": {"image": "blaxel/base-image:latest"},
            **({"network": domains} if domains else {})}})
        if made.status == 503:  # a machine that has no networks to give
            assert domains and "NETWORK_UNAVAILABLE" in made.text, made
            pytest.skip(made.text)
        assert made.status == 200, made
        shown = server.sandbox(name).get()["spec"]["network"]
        assert client("DELETE", f"/v0/sandboxes/{name}").status == 200
        return shown

    shown = network("domains-1", {"allowedDomains": ["*.Example.com"], "proxy": {"routing": []}})
    assert (shown["mode"], shown["allow"]) == ("allowlist", ["*.example.com"])
    shown = network("domains-2", {"forbiddenDomains": ["bad.example"]})
    assert (shown["mode"], shown["deny"]) == ("isolated", ["bad.example"])
    shown = network("domains-3", {"allowedDomains": ["*.a.example"], "forbiddenDomains": ["b.a.example"]})
    assert (shown["mode"], shown["allow"], shown["deny"]) == ("allowlist", ["*.a.example"], ["b.a.example"])
    assert network("domains-4", None)["mode"] == "isolated"
    refused = client("POST", "/v0/sandboxes", {"spec": {"network": {"allowedDomains": ["http://x"]}}})
    assert refused.status == 400 and "not a URL" in refused.text, refused
