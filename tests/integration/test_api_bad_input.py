# SPDX-License-Identifier: Apache-2.0
"""What is refused, each with its own code, status and a message that names what is wrong.

One row is one request. A body that is a dict is sent as JSON; text and bytes are sent as they are.
{box} in a path or body is a running sandbox, {stopped} one that is stopped.
"""

import json
import uuid

import pytest

JSON = {"Content-Type": "application/json"}
RAW = {"Content-Type": "application/octet-stream"}
ACCEPT_RAW = {"Accept": "application/octet-stream"}


class Row:
    def __init__(self, request, status, code, word="", body=None, headers=None):
        self.method, self.path = request.split(" ", 1)
        self.status, self.code, self.word = status, code, word
        self.body, self.headers = body, headers

    def __str__(self):
        shown = self.body if isinstance(self.body, (str, bytes)) else json.dumps(self.body)
        return f"{self.method} {self.path[:60]} {shown[:60]!r}" if self.body is not None \
            else f"{self.method} {self.path[:60]}"


def create(status, code, word, body, headers=None):
    return Row("POST /v0/sandbox", status, code, word, body,
               JSON if headers is None and not isinstance(body, dict) else headers)


def create_spec(status, code, word, **spec):
    return create(status, code, word, {"spec": {"enabled": False, **spec}})


def resources(word, **values):
    return create_spec(400, "INVALID_QUANTITY", word, resources=values)


def create_name(name):
    return create(400, "INVALID_NAME", "", {"metadata": {"name": name}})


def exec_(status, code, word, body):
    return Row("POST /v0/sandbox/{box}/process", status, code, word, body,
               None if isinstance(body, dict) else JSON)


def put(status, code, word, body, path="/workspace/f", headers=None):
    return Row(f"PUT /v0/sandbox/{{box}}/filesystem{path}", status, code, word, body,
               headers if headers is not None or isinstance(body, dict) else JSON)


def get(status, code, word, path, headers=None):
    return Row(f"GET /v0/sandbox/{{box}}/filesystem{path}", status, code, word, None, headers)


DEEP = "[" * 100 + "]" * 100

ROWS = [
    # Malformed JSON
    create(400, "INVALID_JSON", "", "{"),
    create(400, "INVALID_JSON", "", "nonsense"),
    create(400, "INVALID_JSON", "", "{'metadata': {}}"),
    create(400, "INVALID_JSON", "", '{"metadata": {},}'),
    create(400, "INVALID_JSON", "", '{"metadata": {}} x'),
    create(400, "INVALID_JSON", "", '{"spec": {"enabled": true, "enabled": false}}'),
    create(400, "INVALID_JSON", "", '{"metadata": {"name": "\\ud800"}}'),
    create(400, "INVALID_JSON", "", b'{"metadata": {"name": "\xff"}}'),
    create(400, "INVALID_JSON", "", '{"spec": %s}' % DEEP),
    create(400, "INVALID_JSON", "", '{"spec": {"enabled": NaN}}'),
    create(400, "INVALID_JSON", "", "/* c */ {}"),
    exec_(400, "INVALID_JSON", "", '{"command": "ls"'),
    put(400, "INVALID_JSON", "", "{]"),
    Row("DELETE /v0/sandbox/{box}/filesystem/workspace/f", 400, "INVALID_JSON", "", "{", JSON),

    # Something else than an object, or than JSON
    create(400, "INVALID_ARGUMENT", "object", "[]"),
    create(400, "INVALID_ARGUMENT", "object", '"text"'),
    create(400, "INVALID_ARGUMENT", "object", "null"),
    create(415, "UNSUPPORTED_MEDIA_TYPE", "application/json", "{}", {"Content-Type": "text/plain"}),
    create(415, "UNSUPPORTED_MEDIA_TYPE", "application/json", "a=b",
           {"Content-Type": "application/x-www-form-urlencoded"}),
    Row("POST /v0/sandbox/{box}/process", 415, "UNSUPPORTED_MEDIA_TYPE", "application/json",
        "ls", {"Content-Type": "text/plain"}),
    put(415, "UNSUPPORTED_MEDIA_TYPE", "application/json", "x", headers={"Content-Type": "text/plain"}),

    # Unknown fields
    create(400, "UNKNOWN_FIELD", "nmae", {"metadata": {"nmae": "x"}}),
    create(400, "UNKNOWN_FIELD", "label", {"metadata": {"label": {}}}),
    create(400, "UNKNOWN_FIELD", "name", {"name": "x"}),
    create_spec(400, "UNKNOWN_FIELD", "memory", memory="1Gi"),
    create_spec(400, "UNKNOWN_FIELD", "memroy", resources={"memroy": "1Gi"}),
    exec_(400, "UNKNOWN_FIELD", "cmd", {"cmd": "ls"}),
    create_spec(400, "UNKNOWN_FIELD", "allow_shel", security={"allow_shel": False}),

    # Trust levels and their options
    create_spec(400, "INVALID_ARGUMENT", "untrusted", trustLevel="paranoid"),
    create_spec(400, "INVALID_ARGUMENT", "spec.trustLevel", trustLevel=3),
    create_spec(400, "INVALID_ARGUMENT", "spec.security", security=[]),
    create_spec(400, "INVALID_ARGUMENT", "spec.security.allow_shell", security={"allow_shell": "no"}),
    create_spec(400, "INVALID_ARGUMENT", "spec.security.cpu_limit", security={"cpu_limit": -1}),
    create_spec(400, "INVALID_ARGUMENT", "spec.security.memory_limit_mb", security={"memory_limit_mb": 3}),
    create_spec(400, "INVALID_ARGUMENT", "spec.security.timeout_seconds",
                security={"timeout_seconds": 1 << 40}),
    create_spec(400, "INVALID_ARGUMENT", "spec.security.allowed_hosts", security={"allowed_hosts": "x"}),
    create_spec(400, "INVALID_ARGUMENT", "spec.resources.memory", resources={"memory": "1Gi"},
                security={"memory_limit_mb": 128}),
    create_spec(400, "INVALID_ARGUMENT", "spec.security.allowed_hosts",
                security={"allowed_hosts": ["exa mple"]}),
    create_spec(400, "INVALID_ARGUMENT", "network_enabled is false", network={"mode": "full"},
                security={"network_enabled": False}),
    create_spec(400, "INVALID_ARGUMENT", "the same list", network={"allow": ["a.example"]},
                security={"allowed_hosts": ["b.example"]}),
    create_spec(400, "INVALID_ARGUMENT", "spec.network", network=[]),
    create_spec(400, "INVALID_ARGUMENT", "allowlist", network={"mode": "some"}),
    create_spec(400, "UNKNOWN_FIELD", "alow", network={"alow": []}),
    create_spec(400, "INVALID_ARGUMENT", "mode none", network={"mode": "none", "allow": ["a.example"]}),
    create_spec(400, "INVALID_ARGUMENT", "network.bandwidth", network={"bandwidth": {"in": []}}),

    exec_(400, "INVALID_ARGUMENT", "stdin", {"command": "ls", "stdin": 1}),
    exec_(400, "INVALID_NAME", "name", {"command": "ls", "name": "a b"}),
    exec_(400, "INVALID_NAME", "pid", {"command": "ls", "name": "12"}),
    exec_(400, "INVALID_ARGUMENT", "maxRestarts", {"command": "ls", "maxRestarts": -2}),
    exec_(400, "INVALID_ARGUMENT", "waitForPorts[0]", {"command": "ls", "waitForPorts": [0]}),
    exec_(400, "INVALID_ARGUMENT", "waitForPorts", {"command": "ls", "waitForPorts": [1] * 65}),
    put(400, "UNKNOWN_FIELD", "contents", {"contents": "x"}),
    Row("DELETE /v0/sandbox/{box}/filesystem/workspace/f", 400, "UNKNOWN_FIELD", "force",
        {"force": True}),

    # Wrong types
    create(400, "INVALID_ARGUMENT", "metadata.name", {"metadata": {"name": 5}}),
    create(400, "INVALID_ARGUMENT", "metadata", {"metadata": []}),
    create(400, "INVALID_ARGUMENT", "spec", {"spec": "x"}),
    create(400, "INVALID_ARGUMENT", "spec.enabled", {"spec": {"enabled": 1}}),
    create(400, "INVALID_ARGUMENT", "spec.image", {"spec": {"image": {}}}),
    create_spec(400, "INVALID_ARGUMENT", "spec.resources.cpu", resources={"cpu": True}),
    create_spec(400, "INVALID_ARGUMENT", "spec.env_vars", env_vars=["A=1"]),
    create_spec(400, "INVALID_ARGUMENT", "spec.env_vars.A", env_vars={"A": 1}),
    create_spec(400, "INVALID_ARGUMENT", "spec.env_vars.A", env_vars={"A": None}),
    create_spec(400, "INVALID_ARGUMENT", "spec.env_vars.A", env_vars={"A": "x\0y"}),
    create_spec(400, "INVALID_ARGUMENT", "1A", env_vars={"1A": "x"}),
    create_spec(400, "INVALID_ARGUMENT", "A=B", env_vars={"A=B": "x"}),
    create_spec(400, "INVALID_ARGUMENT", "env_vars", env_vars={"": "x"}),
    create_spec(400, "INVALID_ARGUMENT", "env_vars", env_vars={f"V{n}": "" for n in range(257)}),
    create_spec(413, "PAYLOAD_TOO_LARGE", "env_vars", env_vars={"A": "x" * 65536}),
    exec_(400, "INVALID_ARGUMENT", "command", {}),
    exec_(400, "INVALID_ARGUMENT", "command", ""),
    exec_(400, "INVALID_ARGUMENT", "command", {"command": ""}),
    exec_(400, "INVALID_ARGUMENT", "command", {"command": ["ls", 1]}),
    exec_(400, "INVALID_ARGUMENT", "command", {"command": "a\0b"}),
    exec_(400, "INVALID_ARGUMENT", "command", {"command": "x" * (128 * 1024 + 1)}),
    exec_(400, "INVALID_ARGUMENT", "waitForCompletion", {"command": "ls", "waitForCompletion": "yes"}),
    exec_(400, "INVALID_ARGUMENT", "timeout", {"command": "ls", "timeout": -1}),
    exec_(400, "INVALID_ARGUMENT", "timeout", {"command": "ls", "timeout": 1.5}),
    exec_(400, "INVALID_ARGUMENT", "timeout", {"command": "ls", "timeout": "30"}),
    exec_(400, "INVALID_ARGUMENT", "timeout", {"command": "ls", "timeout": 10 ** 18}),
    exec_(400, "INVALID_ARGUMENT", "env.A", {"command": "ls", "env": {"A": True}}),
    put(400, "INVALID_ARGUMENT", "content", {}),
    put(400, "INVALID_ARGUMENT", "content", {"isDirectory": False}),
    put(400, "INVALID_ARGUMENT", "content", {"content": 5}),
    put(400, "INVALID_ARGUMENT", "content", {"content": "x", "isDirectory": True}),
    put(400, "INVALID_ARGUMENT", "isDirectory", {"isDirectory": "true"}),
    put(400, "INVALID_ARGUMENT", "content", {"content": "###", "encoding": "base64"}),
    put(400, "INVALID_ARGUMENT", "content", {"content": "YQ", "encoding": "base64"}),
    put(400, "INVALID_ARGUMENT", "encoding", {"content": "x", "encoding": "latin1"}),
    put(400, "INVALID_ARGUMENT", "permissions", {"content": "x", "permissions": "rw-r--r--"}),
    put(400, "INVALID_ARGUMENT", "permissions", {"content": "x", "permissions": "888"}),
    put(400, "INVALID_ARGUMENT", "permissions", {"content": "x", "permissions": "64"}),
    put(400, "INVALID_ARGUMENT", "permissions", {"content": "x", "permissions": 644}),
    put(400, "INVALID_ARGUMENT", "permissions", b"x", "/workspace/f?permissions=9", RAW),
    Row("DELETE /v0/sandbox/{box}/filesystem/workspace/f", 400, "INVALID_ARGUMENT", "recursive",
        {"recursive": "yes"}),
    Row("DELETE /v0/sandbox/{box}/filesystem/workspace/f?recursive=maybe", 400, "INVALID_ARGUMENT",
        "recursive"),
    get(400, "INVALID_ARGUMENT", "download", "/etc/hostname?download=2"),
    get(400, "INVALID_ARGUMENT", "encoding", "/etc/hostname?encoding=hex"),
    get(400, "INVALID_ARGUMENT", "", "/etc/hostname?encoding=%zz"),

    # Quantities
    *(resources("cpu", cpu=text) for text in
      ("", "x", "-1", "1x", "1Gi2", "0", "0m", "1 000m", "0x10", "1e999", "NaN", -1)),
    *(resources("memory", memory=text) for text in
      ("", "1GB", "1gi", "-1Gi", "Gi", "1.2.3Gi", "9999999999Ti", "1", "1Ki", 0)),
    *(resources("disk", disk=text) for text in ("", "lots", "-5Gi", "1K")),

    # Names
    *(create_name(name) for name in
      ("", "-a", "a-", "A", "a_b", "a.b", "a b", "ü", "a/b", "..", "a" * 64, "a\n")),
    create(400, "INVALID_ARGUMENT", "metadata.name", {"metadata": {"name": "a\0"}}),

    # Images
    create_spec(404, "IMAGE_NOT_FOUND", "no-such-image", image="no-such-image:1"),

    # Paths
    get(400, "INVALID_PATH", "", "/a%00b"),
    get(400, "INVALID_PATH", "", "/%zz"),
    get(400, "INVALID_PATH", "", "/a%2"),
    get(400, "INVALID_PATH", "", "/../etc/passwd"),
    get(400, "INVALID_PATH", "", "/%2e%2e/etc/passwd"),
    get(400, "INVALID_PATH", "", "/a/..%2f..%2fetc"),
    get(400, "INVALID_PATH", "", "/" + "a/" * 2100),
    put(400, "INVALID_PATH", "", {"content": "x"}, "/a/../../b"),
    Row("DELETE /v0/sandbox/{box}/filesystem/", 400, "INVALID_PATH", "root"),
    Row("DELETE /v0/sandbox/{box}/filesystem/tmp/..?recursive=true", 400, "INVALID_PATH", "root"),
    exec_(400, "INVALID_PATH", "workingDir", {"command": "ls", "workingDir": "/.."}),
    exec_(400, "INVALID_PATH", "workingDir", {"command": "ls", "workingDir": "relative"}),
    exec_(400, "INVALID_PATH", "workingDir", {"command": "ls", "workingDir": ""}),
    exec_(400, "INVALID_ARGUMENT", "workingDir", {"command": "ls", "workingDir": "/a\0"}),

    # Files where directories are meant, and the other way round
    get(404, "FILE_NOT_FOUND", "", "/no/such/file"),
    get(404, "FILE_NOT_FOUND", "", "/no/such/file", ACCEPT_RAW),
    get(409, "NOT_A_DIRECTORY", "", "/etc/hostname/x"),
    get(409, "IS_A_DIRECTORY", "", "/etc", ACCEPT_RAW),
    get(409, "IS_A_DIRECTORY", "", "/etc?download=true"),
    get(409, "NOT_A_FILE", "", "/dev/null"),
    get(409, "NOT_A_FILE", "", "/dev/zero", ACCEPT_RAW),
    put(409, "NOT_A_DIRECTORY", "", {"content": "x"}, "/etc/hostname/x"),
    put(409, "NOT_A_DIRECTORY", "", b"x", "/etc/hostname/x", RAW),
    put(409, "IS_A_DIRECTORY", "", {"content": "x"}, "/etc"),
    put(409, "IS_A_DIRECTORY", "", b"x", "/etc", RAW),
    put(409, "IS_A_DIRECTORY", "", {"content": "x"}, "/"),
    put(409, "NOT_A_DIRECTORY", "", {"isDirectory": True}, "/etc/hostname/sub"),
    Row("DELETE /v0/sandbox/{box}/filesystem/no/such/file", 404, "FILE_NOT_FOUND"),
    Row("DELETE /v0/sandbox/{box}/filesystem/etc", 409, "DIRECTORY_NOT_EMPTY"),
    exec_(404, "FILE_NOT_FOUND", "", {"command": "ls", "workingDir": "/no/such"}),
    exec_(409, "NOT_A_DIRECTORY", "", {"command": "ls", "workingDir": "/etc/hostname"}),

    # Sandboxes that are not there, or not in that state
    Row("GET /v0/sandbox/nobody", 404, "SANDBOX_NOT_FOUND", "nobody"),
    Row("DELETE /v0/sandbox/nobody", 404, "SANDBOX_NOT_FOUND", "nobody"),
    Row("PUT /v0/sandbox/nobody/start", 404, "SANDBOX_NOT_FOUND", "nobody"),
    Row("PUT /v0/sandbox/nobody/stop", 404, "SANDBOX_NOT_FOUND", "nobody"),
    Row("GET /v0/sandbox/nobody/health", 404, "SANDBOX_NOT_FOUND", "nobody"),
    Row("GET /v0/sandbox/nobody/filesystem/etc", 404, "SANDBOX_NOT_FOUND", "nobody"),
    Row("PUT /v0/sandbox/nobody/filesystem/etc", 404, "SANDBOX_NOT_FOUND", "nobody", b"x", RAW),
    Row("POST /v0/sandbox/nobody/process", 404, "SANDBOX_NOT_FOUND", "nobody", {"command": "ls"}),
    Row("GET /v0/sandbox/%2E%2E", 404, "SANDBOX_NOT_FOUND"),
    Row("GET /v0/sandbox/a%2Fb", 404, "SANDBOX_NOT_FOUND"),
    Row("PUT /v0/sandbox/{box}/start", 409, "ALREADY_RUNNING"),
    Row("PUT /v0/sandbox/{stopped}/stop", 409, "NOT_RUNNING"),
    Row("POST /v0/sandbox/{stopped}/process", 409, "NOT_RUNNING", "", {"command": "ls"}),
    Row("GET /v0/sandbox/{stopped}/process", 409, "NOT_RUNNING"),
    Row("GET /v0/sandbox/{stopped}/process/5/logs", 409, "NOT_RUNNING"),
    Row("GET /v0/sandbox/{stopped}/filesystem/etc", 409, "NOT_RUNNING"),
    Row("PUT /v0/sandbox/{stopped}/filesystem/f", 409, "NOT_RUNNING", "", {"content": "x"}),
    Row("PUT /v0/sandbox/{stopped}/filesystem/f", 409, "NOT_RUNNING", "", b"x", RAW),
    Row("DELETE /v0/sandbox/{stopped}/filesystem/f", 409, "NOT_RUNNING"),
    create(409, "ALREADY_EXISTS", "{box}", {"metadata": {"name": "{box}"}}),

    # Processes
    Row("GET /v0/sandbox/{box}/process/999999", 404, "PROCESS_NOT_FOUND"),
    Row("GET /v0/sandbox/{box}/process/abc", 404, "PROCESS_NOT_FOUND", "abc"),
    Row("GET /v0/sandbox/{box}/process/0", 404, "PROCESS_NOT_FOUND", "0"),
    Row("GET /v0/sandbox/{box}/process/-1", 400, "INVALID_ARGUMENT", "-1"),
    Row("GET /v0/sandbox/{box}/process/a%20b", 400, "INVALID_ARGUMENT", "a b"),
    Row("GET /v0/sandbox/{box}/process/99999999999999999999", 404, "PROCESS_NOT_FOUND", ""),
    Row("POST /v0/sandbox/{box}/process/1x/kill", 404, "PROCESS_NOT_FOUND", "1x"),
    Row("GET /v0/sandbox/{box}/process/999999/logs", 400, "INVALID_ARGUMENT", "stream",
        headers=ACCEPT_RAW),
    Row("GET /v0/sandbox/{box}/process/999999/logs?stream=all", 400, "INVALID_ARGUMENT", "stream",
        headers=ACCEPT_RAW),

    # Lists
    *(Row(f"GET /v0/sandbox?{name}={value}", 400, "INVALID_ARGUMENT", name)
      for name, values in {"limit": ("0", "-1", "1001", "x", "", "1.5", "99999999999999999999"),
                           "offset": ("-1", "x", "", "1e3", "%2B1"),
                           "status": ("", "Running", "up")}.items() for value in values),
    Row("GET /v0/sandbox?limit=%", 400, "INVALID_ARGUMENT"),

    # Routes, methods, workspaces
    Row("GET /nowhere", 404, "ROUTE_NOT_FOUND"),
    Row("GET /v0", 404, "ROUTE_NOT_FOUND"),
    Row("GET /v0/sandbox/{box}/nothing", 404, "ROUTE_NOT_FOUND"),
    Row("GET /v9/sandbox", 404, "ROUTE_NOT_FOUND"),
    Row("PATCH /v0/sandbox", 405, "METHOD_NOT_ALLOWED"),
    Row("POST /v0/sandbox/{box}", 405, "METHOD_NOT_ALLOWED"),
    Row("GET /v0/sandbox/{box}/start", 405, "METHOD_NOT_ALLOWED"),
    Row("DELETE /v0/sandbox/{box}/process", 405, "METHOD_NOT_ALLOWED"),
    Row("POST /health", 405, "METHOD_NOT_ALLOWED"),
    Row("GET /nobody/sandbox/{box}/health", 404, "WORKSPACE_NOT_FOUND", "nobody"),
    Row("GET /console/sandbox/{box}/health", 404, "WORKSPACE_NOT_FOUND"),
    Row("GET /Default/sandbox/{box}/health", 404, "WORKSPACE_NOT_FOUND"),

    # Over the limit
    exec_(413, "PAYLOAD_TOO_LARGE", "", b'{"command": "' + b"x" * (24 << 20) + b'"}'),
    create(413, "PAYLOAD_TOO_LARGE", "", b" " * ((24 << 20) + 1)),
]


@pytest.fixture(scope="module")
def names(server):
    """What {box} and {stopped} stand for."""
    box, stopped = server.create(f"bad-{uuid.uuid4().hex[:10]}"), server.create(enabled=False)
    box.write("/workspace/f", "untouched")
    yield {"box": box.name, "stopped": stopped.name}
    try:
        # No refused request has changed anything.
        assert box.status() == "running" and stopped.status() == "stopped"
        assert box.run("cat /workspace/f; ls -A /workspace | wc -l") == "untouched1"
    finally:
        box.delete()
        stopped.delete()


def fill(value, names):
    if isinstance(value, str):
        for name, text in names.items():
            value = value.replace("{%s}" % name, text)
        return value
    if isinstance(value, dict):
        return {key: fill(item, names) for key, item in value.items()}
    return value


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_refused(server, names, row):
    answer = server.request(row.method, fill(row.path, names), fill(row.body, names), row.headers)
    if answer.status == 202:  # a sandbox that should not be: do not leave it behind
        server.sandbox(answer.json()["metadata"]["name"]).delete()
    assert (answer.status, answer.error()) == (row.status, row.code), answer
    error = answer.json()
    assert set(error) == {"error"} and set(error["error"]) == {"code", "message"}
    assert error["error"]["message"] and fill(row.word, names) in error["error"]["message"]
    assert answer.headers["Content-Type"].startswith("application/json")


def test_method_not_allowed_says_what_is(server, names):
    answer = server.request("POST", f"/v0/sandbox/{names['box']}")
    allowed = {method.strip() for method in answer.headers["Allow"].split(",")}
    assert {"GET", "PUT", "PATCH", "DELETE"} <= allowed and "POST" not in allowed


def test_deleting_twice(server):
    made = server.create(enabled=False)
    assert server.request("DELETE", made.base).status == 202
    answer = server.request("DELETE", made.base)
    assert (answer.status, answer.error()) == (404, "SANDBOX_NOT_FOUND")
    made.wait_status("gone")
    answer = server.request("DELETE", made.base)
    assert (answer.status, answer.error()) == (404, "SANDBOX_NOT_FOUND")


def test_links_that_point_outside(server, names):
    """A link is resolved inside the sandbox: the host's files are not to be had."""
    box = server.sandbox(names["box"])
    box.run("ln -sfn ../../../../../../../../etc /tmp/up && ln -sfn /proc/1/root /tmp/init "
            "&& ln -sfn /nowhere/at/all /tmp/dangling")
    try:
        assert box.request("GET", "/filesystem/tmp/up/hostname").json()["content"].strip() == box.name
        answer = box.request("GET", "/filesystem/tmp/init/etc/hostname")
        assert answer.status >= 400 or answer.json()["content"].strip() == box.name
        answer = box.request("GET", "/filesystem/tmp/dangling")
        assert (answer.status, answer.error()) == (404, "FILE_NOT_FOUND")
    finally:
        box.run("rm -f /tmp/up /tmp/init /tmp/dangling")


def test_a_command_that_does_not_exist(server, names):
    done = server.sandbox(names["box"]).exec("no-such-command-at-all")
    assert done.exit_code == 127


def test_the_connection_goes_on_after_an_error(server):
    connection = server.connection()
    try:
        for _ in range(3):
            connection.request("POST", "/v0/sandbox", b"{", {"Authorization": f"Bearer {server.key}"})
            answer = connection.getresponse()
            assert answer.status == 400
            answer.read()
            first = connection.sock
        assert connection.sock is first and first is not None
    finally:
        connection.close()
