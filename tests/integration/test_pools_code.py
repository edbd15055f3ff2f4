# SPDX-License-Identifier: Apache-2.0
"""Pools whose spares have interpreters running: up before anybody asks, and only where they fit."""

import pytest

from cella_server import Server, wait_until


@pytest.fixture(scope="module")
def server():
    made = Server("--pool", "image=host,size=1,code=py+bash+python")
    yield made
    made.close()


def pool_of(server, name="host"):
    answer = server.request("GET", f"/v0/pools/{name}")
    assert answer.status == 200, answer
    return answer.json()


def wait_full(server, name="host"):
    def full():
        pool = pool_of(server, name)
        return pool["status"]["ready"] == pool["size"] and pool["status"]["making"] == 0
    wait_until(full, 60, lambda: f"a full pool: {pool_of(server, name)}\n{server.log()}")


def run(box, code, **fields):
    answer = box.request("POST", "/code", {"code": code, **fields}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def contexts(box):
    answer = box.request("GET", "/code/contexts")
    assert answer.status == 200, answer
    return {made["id"]: made for made in answer.json()["contexts"]}


def from_pool(server, **spec):
    """A sandbox that certainly came out of it."""
    wait_full(server)
    before = pool_of(server)["status"]["claimed"]
    box = server.create(**spec)
    assert pool_of(server)["status"]["claimed"] == before + 1
    return box


def test_interpreters_are_up_before_anybody_asks(server):
    assert pool_of(server)["code"] == ["python", "bash"]
    box = from_pool(server)
    up = contexts(box)
    assert set(up) == {"default-python", "default-bash"}
    assert all(made["status"] == "idle" for made in up.values())
    done = run(box, "import os\nx = 41 + 1\n(x, os.getpid(), os.getcwd())")
    assert done["text"] == f"(42, {up['default-python']['pid']}, '/workspace')"
    assert done["executionCount"] == 1
    assert run(box, "x")["text"] == "42"
    assert run(box, "echo $$; hostname", language="bash")["stdout"] == f"{up['default-bash']['pid']}\n{box.name}\n"
    assert run(box, "import socket\nsocket.gethostname()")["text"] == repr(box.name)
    box.delete()


def test_two_sandboxes_share_nothing(server):
    one, two = from_pool(server), from_pool(server)
    run(one, "secret = 1")
    assert run(two, "secret")["error"]["name"] == "NameError"
    one.delete()
    two.delete()


def test_a_sandbox_with_an_environment_has_its_own(server):
    box = from_pool(server, env_vars={"WHO": "me"})
    ahead = contexts(box)["default-python"]["pid"]
    done = run(box, "import os\n(os.environ['WHO'], os.getpid())")
    who, pid = done["text"].strip("()").split(", ")
    assert who == "'me'" and int(pid) != ahead
    assert contexts(box)["default-python"]["pid"] == int(pid)
    assert run(box, "echo $WHO", language="bash")["stdout"] == "me\n"
    box.delete()


def test_a_context_that_was_started_ahead_is_like_any_other(server):
    box = from_pool(server)
    before = contexts(box)["default-python"]["pid"]
    assert box.request("POST", "/code/contexts/default-python/restart").status == 200
    assert contexts(box)["default-python"]["pid"] != before
    assert box.request("DELETE", "/code/contexts/default-bash").status == 200
    assert run(box, "echo again", language="bash")["stdout"] == "again\n"
    box.delete()


def test_what_runs_in_spares_can_be_changed_and_is_kept(server):
    assert server.cli("pool", "update", "host", "--code", "none").returncode == 0
    assert pool_of(server)["code"] == []
    box = from_pool(server)
    assert contexts(box) == {}
    box.delete()
    answer = server.request("PATCH", "/v0/pools/host", {"code": ["sh", "bash"]})
    assert answer.status == 200 and answer.json()["code"] == ["bash"], answer
    box = from_pool(server)
    assert set(contexts(box)) == {"default-bash"}
    box.delete()
    assert "interpreters      bash" in server.cli("pool", "get", "host").stdout
    wait_full(server)


@pytest.mark.parametrize("body, code, word", [
    ({"code": "python"}, "INVALID_ARGUMENT", "a list"),
    ({"code": [1]}, "INVALID_ARGUMENT", "a list"),
    ({"code": ["python", "cobol"]}, "CODE_LANGUAGE_UNKNOWN", "cobol"),
    ({"code": ["python"], "security": {"timeout_seconds": 60}}, "INVALID_ARGUMENT", "60 s"),
])
def test_what_can_not_be_is_refused(server, body, code, word):
    answer = server.request("POST", "/v0/pools", {"name": "other", "network": True, **body})
    assert answer.status == 400, answer
    error = answer.json()["error"]
    assert error["code"] == code and word in error["message"], answer
    assert server.request("GET", "/v0/pools/other").status == 404


def test_spares_with_interpreters_leave_nothing_when_the_server_is_killed(server):
    wait_full(server)
    server.wait_recovered(server.kill("cellad"), "cellad")
    wait_full(server)
    assert pool_of(server)["code"]
    box = from_pool(server)
    assert contexts(box)
    box.delete()
    wait_until(lambda: server.leaks() == "", 30, server.leaks)
