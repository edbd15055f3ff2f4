# SPDX-License-Identifier: Apache-2.0
"""Secrets of a workspace: stored, replaced, listed without their values, deleted; who may, and what is
left of a value on disk. What they do is in tests/security/test_network_secrets.py."""

import json

import pytest

from cella_auth import Workspace, call, fresh


@pytest.fixture(scope="module")
def workspace(server):
    made = Workspace(server)
    yield made
    made.delete()


def value():
    return fresh("sk-value")


def put(server, key, name, body, status=200):
    answer = call(server, "PUT", f"/v0/secrets/{name}", key, body)
    assert answer.status == status, answer
    return answer.json()


def test_made_changed_deleted(server, workspace):
    key, name, first = workspace.key("admin"), fresh("s"), value()
    made = call(server, "POST", "/v0/secrets", key, {"name": name, "value": first, "hosts": ["API.a.example."]})
    assert made.status == 201
    assert made.json()["hosts"] == ["api.a.example"] and made.json()["name"] == name
    again = call(server, "POST", "/v0/secrets", key, {"name": name, "value": first, "hosts": ["a.example"]})
    assert (again.status, again.json()["error"]["code"]) == (409, "ALREADY_EXISTS")
    changed = put(server, key, name, {"hosts": ["b.example", "*.c.example"]})
    assert changed["hosts"] == ["b.example", "*.c.example"]
    assert changed["createdAt"] == made.json()["createdAt"]
    put(server, key, name, {"value": value()})
    one = call(server, "GET", f"/v0/secrets/{name}", key)
    listed = call(server, "GET", "/v0/secrets", key)
    assert one.json() in listed.json()["secrets"]
    assert "sk-value" not in one.text + listed.text + made.text + again.text
    # One that was read can be written back.
    assert put(server, key, name, one.json())["hosts"] == changed["hosts"]
    assert call(server, "DELETE", f"/v0/secrets/{name}", key).status == 200
    for method in ("GET", "DELETE"):
        gone = call(server, method, f"/v0/secrets/{name}", key)
        assert (gone.status, gone.json()["error"]["code"]) == (404, "SECRET_NOT_FOUND")


def test_who_may(server, workspace):
    name = fresh("s")
    body = {"value": value(), "hosts": ["a.example"]}
    for scope in ("read", "write"):
        key = workspace.key(scope)
        for method, path in (("POST", "/v0/secrets"), ("PUT", f"/v0/secrets/{name}"),
                             ("DELETE", f"/v0/secrets/{name}")):
            assert call(server, method, path, key, body).status == 403, (scope, method)
        assert call(server, "GET", "/v0/secrets", key).status == 200
    put(server, workspace.key("admin"), name, body)
    # Not from another workspace.
    other = Workspace(server)
    try:
        key = other.key("admin")
        assert call(server, "GET", "/v0/secrets", key).json()["secrets"] == []
        assert call(server, "GET", f"/v0/secrets/{name}", key).status == 404
        assert call(server, "DELETE", f"/v0/secrets/{name}", key).status == 404
    finally:
        other.delete()


@pytest.mark.parametrize("body, code", [
    ({}, "INVALID_ARGUMENT"),
    ({"value": "v4lue"}, "INVALID_ARGUMENT"),
    ({"hosts": ["a.example"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": []}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": ["10.0.0.1"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": ["localhost"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": ["*"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": ["a.example:443"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": ["a\0.example"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": [7]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": [f"h{i}.example" for i in range(33)]}, "LIMIT_EXCEEDED"),
    ({"value": "", "hosts": ["a.example"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue\r\nX: y", "hosts": ["a.example"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue\0", "hosts": ["a.example"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue" * 2000, "hosts": ["a.example"]}, "PAYLOAD_TOO_LARGE"),
    ({"value": 12345678, "hosts": ["a.example"]}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": ["a.example"], "name": "another"}, "INVALID_ARGUMENT"),
    ({"value": "v4lue", "hosts": ["a.example"], "more": 1}, "UNKNOWN_FIELD"),
])
def test_bad_input(server, workspace, body, code):
    answer = call(server, "PUT", f"/v0/secrets/{fresh('s')}", workspace.key("admin"), body)
    assert answer.json()["error"]["code"] == code, answer
    assert "v4lue" not in answer.text and "12345678" not in answer.text
    named = call(server, "PUT", "/v0/secrets/Not%20A%20Name", workspace.key("admin"),
                 {"value": "v4lue", "hosts": ["a.example"]})
    assert named.json()["error"]["code"] == "INVALID_NAME"


def test_sealed_on_disk_and_back_after_a_restart(server_factory):
    server, secret = server_factory(), value()
    assert server.request("PUT", "/v0/secrets/kept", {"value": secret, "hosts": ["a.example"]}).status == 200
    stopped = server.create(enabled=False)
    ca = f"/v0/sandbox/{stopped.name}/network/ca"
    certificate = server.request("PUT", ca).json()["certificate"]
    server.kill("supervisor", "warden", "cellad")
    key = server.data / "secret-key"
    assert key.stat().st_mode & 0o777 == 0o600 and key.stat().st_uid == 0 and len(key.read_text(encoding="ascii")) == 64
    for path in [*server.data.glob("*"), *(server.data / "db").rglob("*")]:
        if path.is_file() and path.name != "volume.img":
            assert secret.encode() not in path.read_bytes(), path
    server.start()
    assert server.request("GET", "/v0/secrets/kept").json()["hosts"] == ["a.example"]
    assert server.request("GET", ca).json() == {"certificate": certificate}
    # It can still be opened: what is sealed anew is the old value.
    assert server.request("PUT", "/v0/secrets/kept", {"hosts": ["b.example"]}).status == 200


def cella(server, *args, text="", status=0):
    done = server.cli(*args, input=text)
    assert done.returncode == status, done
    return done.stdout + done.stderr


def test_command_line(server, tmp_path):
    name, secret = fresh("s"), value()
    out = cella(server, "secret", "set", name, "--host", "a.example", "--host", "*.b.example", text=secret + "\n")
    assert "a.example,*.b.example" in out
    file = tmp_path / "value"
    file.write_text(secret, encoding="ascii")
    out += cella(server, "secret", "set", name, "--from-file", str(file))
    out += cella(server, "secret", "set", name, "--keep-value", "--host", "c.example")
    listed = json.loads(cella(server, "secret", "list", "-o", "json"))
    [mine] = [each for each in listed["secrets"] if each["name"] == name]
    assert mine["hosts"] == ["c.example"]
    out += cella(server, "secret", "list")
    out += cella(server, "secret", "set", name, text="", status=2)
    out += cella(server, "secret", "set", fresh("s"), text="x\ny\n", status=2)
    assert secret not in out
    assert "deleted" in cella(server, "secret", "delete", name)
    cella(server, "secret", "delete", name, status=3)


# --- a sandbox's authority ---

LOOK = """
import ssl, glob
print(sum("Cella sandbox" in str(each) for each in ssl.create_default_context(
    cafile="/etc/ssl/certs/ca-certificates.crt").get_ca_certs()), len(glob.glob("/etc/ssl/certs/*.0") and [
    path for path in glob.glob("/etc/ssl/certs/*.0") if "{line}" in open(path).read()]),
    len(glob.glob("/usr/local/share/ca-certificates/cella.crt")))
"""


def test_an_authority_is_trusted_inside(server, sandbox):
    path = f"/v0/sandbox/{sandbox.name}/network/ca"
    assert server.request("GET", path).json() == {"certificate": None}
    made = server.request("PUT", path)
    assert made.status == 200 and made.json()["installed"] is True, made
    certificate = made.json()["certificate"]
    assert certificate.startswith("-----BEGIN CERTIFICATE-----") and "PRIVATE" not in made.text
    look = LOOK.replace("{line}", certificate.splitlines()[3])
    assert sandbox.python(look).stdout.strip() == "1 1 1"
    # The same again changes nothing.
    assert server.request("PUT", path).json() == made.json()
    assert server.request("GET", path).json() == {"certificate": certificate}
    assert sandbox.python(look).stdout.strip() == "1 1 1"
    # A clone has the files, and so it.
    copied = sandbox.request("POST", "/clone", {"metadata": {}})
    assert copied.status == 202, copied
    clone = server.sandbox(copied.json()["metadata"]["name"])
    clone.wait_status("running")
    assert server.request("GET", f"/v0/sandbox/{clone.name}/network/ca").json() == {"certificate": certificate}
    clone.delete()
    assert server.request("DELETE", path).json() == {"certificate": None, "removed": True}
    assert sandbox.python(look).stdout.strip() == "0 0 0"
    assert server.request("DELETE", path).json() == {"certificate": None, "removed": True}


def test_an_authority_where_files_cannot_be_written(server):
    stopped = server.create(enabled=False)
    path = f"/v0/sandbox/{stopped.name}/network/ca"
    made = server.request("PUT", path).json()
    assert made["installed"] is False and "stopped" in made["message"] and made["certificate"]
    stopped.delete()
    assert server.request("PUT", path).status == 404


def test_authority_on_the_command_line(server, sandbox):
    assert "BEGIN CERTIFICATE" in cella(server, "secret", "trust", sandbox.name)
    assert cella(server, "secret", "trust", sandbox.name, "--remove") == ""
    cella(server, "secret", "trust", "no-such", status=3)
