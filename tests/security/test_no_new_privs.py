# SPDX-License-Identifier: Apache-2.0
"""no_new_privs: nothing in the sandbox gains privileges by exec, whichever way it was started."""

import pytest

from cella_websocket import Terminal

STATUS = "grep NoNewPrivs /proc/self/status | cut -f 2"
SETUID = "cp /usr/bin/id /workspace/as-owner && chown root:root /workspace/as-owner && chmod 4755 /workspace/as-owner"


@pytest.fixture(scope="module")
def container(server):
    """Made at /api/sandbox, where everything is done by the ordinary user."""
    answer = server.request("POST", "/api/sandbox", {})
    assert answer.status == 201, answer
    name = answer.json()["containerId"]
    yield name
    assert server.request("DELETE", f"/api/sandbox/{name}").status == 200


@pytest.fixture(scope="module")
def strict(server):
    sandbox = server.create(security={"no_new_privs": True})
    yield sandbox
    sandbox.delete()


def as_user(box, command):
    done = box.exec(f"su user -c '{command}'")
    return done.stdout.strip() if done.exit_code == 0 else None


def test_setuid_has_no_effect(strict, shared_sandbox):
    for box, uid, bit in ((shared_sandbox, "0", "0"), (strict, "1000", "1")):
        box.run(SETUID)
        assert as_user(box, "/workspace/as-owner -u") == uid
        assert as_user(box, STATUS) == bit and box.run(STATUS).strip() == bit
    assert as_user(strict, "sudo -n true") is None
    assert strict.get()["spec"]["security"]["no_new_privs"] is True


def test_every_way_of_starting_something(server, strict):
    with Terminal(server, strict.name, command=STATUS) as terminal:
        terminal.await_end()
        assert terminal.seen.split() == [b"1"], terminal.seen
    done = strict.request("POST", "/code", {"language": "python",
                                            "code": "print(open('/proc/self/status').read().split('NoNewPrivs:')[1].split()[0])"})
    assert done.status == 200 and done.json()["stdout"].strip() == "1", done
    strict.run(f"setsid sh -c '{STATUS} > /workspace/left' > /dev/null 2>&1 < /dev/null & wait")
    assert strict.read("/workspace/left").strip() == b"1"


def test_containers_always_have_it(server, container):
    def run(command):
        return server.request("POST", "/api/sandbox/exec", {"containerId": container, "command": command}).json()

    assert run(STATUS)["stdout"] == "1" and run("id -un")["stdout"] == "user"
    assert run("sudo -n true")["error"]["code"] == "EXECUTION_FAILED"
    # Root, by the other API, makes a program that would be his to anybody who runs it.
    made = server.request("POST", f"/v0/sandbox/{container.removeprefix('container_')}/process",
                          {"command": SETUID, "waitForCompletion": True}).json()
    assert made["exitCode"] == 0, made
    assert run("./as-owner -u")["stdout"] == "1000"


def test_it_stays_in_a_clone_and_is_not_loosened_by_just_anybody(server, strict):
    same = strict.request("PATCH", "", {"spec": {"security": {"no_new_privs": True}}})
    assert same.status == 200, same
    assert strict.request("PATCH", "", {"spec": {"security": {"no_new_privs": False}}}).status == 400
    key = server.request("POST", "/v0/workspaces/default/api-keys", {"name": "writer", "scopes": ["read", "write"]}).json()
    fields = {"Authorization": f"Bearer {key['secret']}"}
    # What goes without subprocesses has it, whatever is asked for.
    spec = {"security": {"allow_subprocess": False, "no_new_privs": False}, "enabled": False}
    made = server.request("POST", "/v0/sandbox", {"spec": spec}, fields).json()
    assert made["spec"]["security"]["no_new_privs"] is True
    server.sandbox(made["metadata"]["name"]).delete()
    answer = strict.request("POST", "/clone", {"spec": {"security": {"no_new_privs": False}, "enabled": False}}, fields)
    assert answer.status == 403 and "no_new_privs" in answer.text, answer
    clone = strict.request("POST", "/clone", {"spec": {"enabled": False}}, fields).json()
    assert clone["spec"]["security"]["no_new_privs"] is True
    server.sandbox(clone["metadata"]["name"]).delete()
    assert server.request("DELETE", f"/v0/workspaces/default/api-keys/{key['id']}").status in (200, 204)
