# SPDX-License-Identifier: Apache-2.0
"""Scalebox's protocol where its own client does not go: wrong tokens, broken frames, bad input."""

import base64
import hashlib
import json
import struct
import time
import urllib.parse

import pytest

from cella_server import wait_until


@pytest.fixture(scope="module")
def own_server(request):
    """One of its own: wrong tokens make its clients wait."""
    from cella_server import Server  # pylint: disable=import-outside-toplevel
    made = Server()
    request.addfinalizer(made.close)
    return made


@pytest.fixture(scope="module")
def box(own_server):
    answer = own_server.request("POST", "/v1/sandboxes", {"template": "base", "timeout": 3600},
                                {"Authorization": None, "X-API-KEY": own_server.key})
    assert answer.status == 201, answer
    return answer.json()["data"]


def call(server, box, path, body=b"", headers=None, method="POST", token=None):
    fields = {"Authorization": "Bearer root", "X-Access-Token": token or box["envd_access_token"],
              **(headers or {})}
    return server.request(method, path, body, fields)


def frame(message, flags=0):
    text = json.dumps(message).encode()
    return struct.pack(">BI", flags, len(text)) + text


def frames(body):
    found = []
    while body:
        flags, size = struct.unpack(">BI", body[:5])
        found.append((flags, json.loads(body[5:5 + size])))
        body = body[5 + size:]
    return found


STREAM = {"Content-Type": "application/connect+json"}


def test_a_process_is_a_stream_of_events(own_server, box):
    message = {"process": {"cmd": "/bin/sh", "args": ["-c", "echo out; exit 3"]}}
    answer = call(own_server, box, "/sandboxagent.Process/Start", frame(message), STREAM)
    assert answer.status == 200
    events = [event for _, event in frames(answer.body)]
    assert "pid" in events[0]["event"]["start"]
    assert base64.b64decode(events[1]["event"]["data"]["stdout"]) == b"out\n"
    assert events[-2]["event"]["end"]["exitCode"] == 3
    assert frames(answer.body)[-1] == (2, {})


def test_a_large_result_is_one_message(own_server, box):
    message = {"code": "from IPython.display import HTML\nHTML('<b>' * 1_500_000)", "language": "python"}
    answer = call(own_server, box, "/sandboxagent.ExecutionService/Execute", frame(message), STREAM)
    events = [event for _, event in frames(answer.body)]
    assert events[-1] == {}
    assert events[-2]["result"]["html"] == "<b>" * 1_500_000


@pytest.mark.parametrize("body, code", [
    (b"\0\0\0", "invalid_argument"),
    (struct.pack(">BI", 0, 100) + b"{}", "invalid_argument"),
    (struct.pack(">BI", 0, 2**32 - 1) + b"{}", "invalid_argument"),
    (frame({}, flags=1), "invalid_argument"),
    (struct.pack(">BI", 0, 3) + b"{,}", "invalid_argument"),
    (frame([1]), "invalid_argument"),
])
@pytest.mark.parametrize("path", ["/sandboxagent.Process/Start", "/sandboxagent.ExecutionService/Execute"])
def test_broken_frames(own_server, box, path, body, code):
    answer = call(own_server, box, path, body, STREAM)
    assert answer.status == 200
    flags, end = frames(answer.body)[-1]
    assert flags == 2 and end["error"]["code"] == code, end


@pytest.mark.parametrize("service", ["Filesystem", "Process", "ContextService", "ExecutionService"])
def test_a_method_that_is_not_there(own_server, box, service):
    answer = call(own_server, box, f"/sandboxagent.{service}/Nothing", {})
    assert answer.status == 404 and answer.json()["code"] == "unimplemented", answer


def test_a_service_that_is_not_there(own_server, box):
    assert call(own_server, box, "/sandboxagent.Nothing/Stat", {}).status == 404


def test_a_path_that_is_not_there_is_told_as_its_clients_read_it(own_server):
    answer = own_server.request("GET", "/v1/sandbox")
    assert answer.status == 404
    assert answer.json() == {"success": False, "code": 404, "error": "ROUTE_NOT_FOUND",
                             "message": "no such path: /v1/sandbox"}


def test_not_found_says_so(own_server, box):
    answer = call(own_server, box, "/sandboxagent.Filesystem/Stat", {"path": "/nope"})
    assert answer.status == 404
    assert answer.json()["code"] == "not_found" and "not found" in answer.json()["message"]


@pytest.mark.parametrize("token", ["x", ":", "a:b", "::::", "{id}:", "{id}:{zeros}", "{id}:{right}0", "a" * 50 + ":b"])
def test_wrong_tokens(own_server, box, token):
    right = box["envd_access_token"].split(":")[1]
    token = token.format(id=box["sandbox_id"], zeros="0" * 64, right=right)
    for method, path in (("POST", "/sandboxagent.Filesystem/Stat"), ("GET", "/download/etc/hostname"),
                         ("POST", "/upload")):
        answer = call(own_server, box, path, {"path": "/"} if "Stat" in path else b"", method=method, token=token)
        assert answer.status in (401, 429), (path, answer)


def test_health_without_a_token_is_the_servers(own_server):
    assert own_server.request("GET", "/health").status == 200


def test_upload_wants_a_file_and_a_path(own_server, box):
    edge = {"Content-Type": "multipart/form-data; boundary=b"}
    for body in (b"--b--\r\n", b"--b\r\nContent-Disposition: form-data; name=\"path\"\r\n\r\n/tmp/x\r\n--b--\r\n"):
        answer = call(own_server, box, "/upload", body, edge)
        assert answer.status == 400 and "file" in answer.json()["message"], answer
    answer = call(own_server, box, "/upload", b"x", {"Content-Type": "application/octet-stream"})
    assert answer.status == 400 and "path" in answer.json()["message"], answer


def test_a_path_behind_the_file_counts(own_server, box):
    body = (b"--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"a.txt\"\r\n\r\nhello\r\n"
            b"--b\r\nContent-Disposition: form-data; name=\"path\"\r\n\r\n/tmp/moved/a.txt\r\n--b--\r\n")
    answer = call(own_server, box, "/upload", body, {"Content-Type": "multipart/form-data; boundary=b"})
    assert answer.status == 200 and answer.json() == {"path": "/tmp/moved/a.txt", "name": "a.txt", "type": "file"}
    assert call(own_server, box, "/download/tmp/moved/a.txt", None, method="GET").body == b"hello"
    assert call(own_server, box, "/sandboxagent.Filesystem/Stat", {"path": "/root/a.txt"}).status == 404


def signed(box, path, operation, expires=None, user="root"):
    raw = f"{path}:{operation}:{user}:{box['envd_access_token']}" + (f":{expires}" if expires else "")
    text = base64.b64encode(hashlib.sha256(raw.encode()).digest()).decode().rstrip("=")
    query = {"signature": f"v1_{text}", "username": user}
    if expires:
        query["signature_expiration"] = expires
    return urllib.parse.urlencode(query)


def test_signed_addresses_end(own_server, box):
    def get(query, path="/etc/hostname"):
        return own_server.request("GET", f"/download{path}?{query}", None, {"Authorization": None}).status

    now = int(time.time())
    assert get(signed(box, "/etc/hostname", "read")) == 200
    assert get(signed(box, "/etc/hostname", "read", now + 3600)) == 200
    assert get(signed(box, "/etc/hostname", "read", now - 10)) == 401
    assert get(signed(box, "/etc/hostname", "write")) == 401
    assert get(signed(box, "/etc/passwd", "read")) == 401
    later = signed(box, "/etc/hostname", "read", now - 10).replace(str(now - 10), str(now + 3600))
    assert get(later) == 401


@pytest.mark.parametrize("body, words", [
    ({"template": "no-such"}, "no-such"),
    ({"template": 7}, "template"),
    ({"timeout": "soon"}, "timeout"),
    ({"metadata": {"a": 1}}, "metadata.a"),
    ({"cpu_count": -1}, "cpu_count"),
    ({"object_storage": {"uri": "s3://x"}}, "object_storage"),
    ({"custom_ports": {"port": 1}}, "custom_ports"),
    ({"custom_ports": [7]}, "custom_ports[0]"),
    ({"custom_ports": [{"name": "web"}]}, "custom_ports[0].port"),
    ({"custom_ports": [{"port": 80}, {"port": 80}]}, "custom_ports[1]"),
    ({"custom_ports": [{"port": 80, "protocol": "UDP"}]}, "UDP"),
    ({"custom_ports": [{"port": 80, "service_port": 81}]}, "service_port"),
    ({"custom_ports": [{"port": 80, "is_protected": True}]}, "is_protected"),
    ({"custom_ports": [{"port": i + 1} for i in range(33)]}, "32 ports"),
])
def test_bad_requests_are_named(own_server, body, words):
    answer = own_server.request("POST", "/v1/sandboxes", body)
    assert answer.status in (400, 404, 409, 422, 429), answer
    told = answer.json()
    assert told["success"] is False and words in told["message"], told


def test_lists(own_server, box):
    mine = own_server.request("GET", "/v1/sandboxes?status=running").json()["data"]["sandboxes"]
    assert box["sandbox_id"] in {item["sandbox_id"] for item in mine}
    assert all("envd_access_token" not in item for item in mine)
    assert own_server.request("GET", "/v1/sandboxes?status=terminated").json()["data"]["total"] == 0
    assert own_server.request("GET", "/v1/sandboxes?status=lost").status == 400
    assert own_server.request("GET", "/v1/sandboxes", None, {"Authorization": None}).status == 401


def test_killing_twice(own_server):
    made = own_server.request("POST", "/v1/sandboxes", {"template": "base"}).json()["data"]["sandbox_id"]
    for name in (made, made, "nosuchsandbox"):
        answer = own_server.request("DELETE", f"/v1/sandboxes/{name}?force=true")
        assert answer.status == 200 and answer.json()["data"]["sandbox_id"] == name


# --- StreamInput: a request of several messages ---

INPUT = "/sandboxagent.Process/StreamInput"


def start_cat(server, box):
    """A cat that writes what it reads into a file; its pid."""
    made = server.request("POST", f"/v0/sandbox/{box['sandbox_id']}/process",
                          {"command": "cat > /tmp/heard", "stdin": True, "name": "listener"})
    assert made.status == 200, made
    return made.json()["pid"]


def data(text, kind="stdin"):
    return frame({"data": {"input": {kind: base64.b64encode(text).decode()}}})


def heard(server, box):
    return call(server, box, "/download/tmp/heard", None, method="GET").body


def test_input_in_a_stream(own_server, box):
    pid = start_cat(own_server, box)
    body = (frame({"start": {"process": {"pid": pid}}}) + data(b"one\n") + frame({"keepalive": {}})
            + data("dvě\n".encode()) + data(b"x" * 300000))
    answer = call(own_server, box, INPUT, body, STREAM)
    assert answer.status == 200 and frames(answer.body) == [(0, {}), (2, {})]
    wait_until(lambda: heard(own_server, box) == "one\ndvě\n".encode() + b"x" * 300000, 30, "all of it")
    assert call(own_server, box, "/sandboxagent.Process/SendSignal",
                {"process": {"pid": pid}, "signal": "SIGNAL_SIGKILL"}).status == 200


@pytest.mark.parametrize("body, code, words", [
    (data(b"x"), "invalid_argument", "start"),
    (frame({"start": {"process": {"pid": 999999}}}), "not_found", "999999"),
    (frame({"start": {}}), "invalid_argument", "process"),
    (frame({"keepalive": {}})[:-1], "invalid_argument", "cut off"),
    (struct.pack(">BI", 0, 5), "invalid_argument", "cut off"),
    (struct.pack(">BI", 0, 2**32 - 1), "invalid_argument", "at most"),
    (frame({"keepalive": {}}, flags=1), "invalid_argument", "flags"),
    (frame([1]), "invalid_argument", "object"),
    (struct.pack(">BI", 0, 1) + b"{", "invalid_argument", ""),
])
def test_broken_streams_of_input(own_server, box, body, code, words):
    answer = call(own_server, box, INPUT, body, STREAM)
    assert answer.status == 200
    flags, end = frames(answer.body)[-1]
    assert flags == 2 and end["error"]["code"] == code and words in end["error"]["message"], end


def test_a_stream_of_input_is_one(own_server, box):
    answer = call(own_server, box, INPUT, {"keepalive": {}})
    assert answer.status == 415, answer


# --- the control plane's code ---

def test_a_context_needs_a_sandbox(own_server, box):
    other = own_server.request("POST", "/v1/sandboxes", {"template": "base"}).json()["data"]["sandbox_id"]
    answer = own_server.request("POST", "/v1/contexts", {"language": "bash"})
    assert answer.status == 400 and "sandbox_id" in answer.json()["message"], answer
    assert own_server.request("POST", "/v1/sandboxes/default/execute", {"code": "true"}).status == 400
    made = own_server.request("POST", "/v1/contexts", {"language": "bash"}, {"X-Sandbox-ID": other})
    assert made.status == 201, made
    context = made.json()["data"]["id"]
    # It is that sandbox's, and none of another one.
    run = {"code": "echo x", "context_id": context}
    assert own_server.request("POST", f"/v1/sandboxes/{other}/execute", run).json()["data"]["stdout"] == "x\n"
    answer = own_server.request("POST", f"/v1/sandboxes/{box['sandbox_id']}/execute", run)
    assert answer.status == 404 and "not found" in answer.json()["message"], answer
    assert own_server.request("DELETE", f"/v1/contexts/{context}").status == 200
    assert own_server.request("DELETE", f"/v1/contexts/{context}").status == 404
    assert own_server.request("DELETE", f"/v1/sandboxes/{other}").status == 200


@pytest.mark.parametrize("body, words", [
    ({}, "code"), ({"code": 7}, "code"), ({"code": "1", "language": "cobol"}, "cobol"),
    ({"code": "1", "env_vars": {"A": 1}}, "env_vars"), ({"code": "1", "timeout": -1}, "timeout"),
    ({"code": "1", "context_id": "nope"}, "nope"),
])
def test_bad_runs_are_named(own_server, box, body, words):
    answer = own_server.request("POST", f"/v1/sandboxes/{box['sandbox_id']}/execute", body)
    assert answer.status in (400, 404), answer
    assert answer.json()["success"] is False and words in answer.json()["message"], answer


@pytest.mark.parametrize("body, words", [
    ({}, "name"), ({"name": ""}, "name"), ({"name": "a:b"}, "colon"), ({"name": "x", "is_public": True}, "is_public"),
    ({"name": "x", "ready_command": "true"}, "ready_command"), ({"name": "x", "cpu_count": "many"}, "cpu_count"),
])
def test_bad_templates_are_named(own_server, box, body, words):
    answer = own_server.request("POST", f"/v1/sandboxes/{box['sandbox_id']}/create-template", body)
    assert answer.status == 400 and words in answer.json()["message"], answer


@pytest.mark.parametrize("path, body", [
    ("/v1/contexts", {"language": "bash"}), ("/v1/sandboxes/{id}/execute", {"code": "true"}),
    ("/v1/sandboxes/{id}/ports", {"port": 1}), ("/v1/sandboxes/{id}/create-template", {"name": "x"}),
])
def test_nobody_gets_in_without_a_key(own_server, box, path, body):
    answer = own_server.request("POST", path.format(id=box["sandbox_id"]), body, {"Authorization": None})
    assert answer.status == 401, answer
    # Nor with the sandbox's token alone.
    token = {"Authorization": None, "X-Access-Token": box["envd_access_token"]}
    assert own_server.request("POST", path.format(id=box["sandbox_id"]), body, token).status == 401
