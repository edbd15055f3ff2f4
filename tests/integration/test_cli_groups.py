# SPDX-License-Identifier: Apache-2.0
"""`cella group …`, and sandboxes of groups in other commands."""

import json
import uuid

import pytest


@pytest.fixture
def name(server):
    """A name for a group, and the end of whatever got it."""
    made = f"cli-{uuid.uuid4().hex[:10]}"
    yield made
    server.cli("group", "end", made, "--wait")


def ok(done):
    assert done.returncode == 0, done
    return done.stdout


SMALL = ("--cpu", "0.1", "--memory", "64Mi", "--disk", "64Mi")


def test_life(server, name):
    made = ok(server.cli("group", "create", "--name", name, "--count", 2, *SMALL, "--env", "A=1", "--wait"))
    assert made.split() == ["NAME", "STATUS", "SANDBOXES", name, "running", "2"]
    assert name in ok(server.cli("group", "list", "--limit", 1000))
    shown = ok(server.cli("group", "get", name))
    for part in (name, "running", "sandbox-1", "sandbox-2"):
        assert part in shown
    ok(server.cli("run", f"{name}/sandbox-1", "process", "exec", "true"))
    stats = ok(server.cli("group", "stats", name)).splitlines()
    assert [line.split()[0] for line in stats] == ["SANDBOX", "sandbox-1", "sandbox-2", "(all)"]
    assert [line.split()[-1] for line in stats] == ["COMMANDS", "1", "0", "1"]
    ok(server.cli("group", "resize", name, "--factor", "2", "--auto-lower", "2"))
    assert "128Mi" in ok(server.cli("sandbox", "get", f"{name}/sandbox-2"))
    ok(server.cli("group", "resize", name, "--memory", "64Mi", "--auto-lower", "off"))
    assert server.cli("group", "resize", name, "--factor", "x").returncode == 2
    assert ok(server.cli("group", "stop", name, "--wait")).split()[-2] == "stopped"
    assert ok(server.cli("group", "start", name, "--wait")).split()[-2] == "running"
    whole = json.loads(ok(server.cli("group", "get", name, "-o", "json")))
    assert whole["spec"]["resources"] == {"cpu": "0.1", "memory": "64Mi", "disk": "64Mi"}
    assert ok(server.cli("group", "end", name, "--wait")).split()[-3:] == [name, "ended", "2"]
    assert server.cli("group", "get", name).returncode == 3


def test_sandboxes_of_a_group_in_other_commands(server, name):
    ok(server.cli("group", "create", "--name", name, "--sandbox", "a", "--sandbox", "b", *SMALL, "--env", "A=1"))
    added = ok(server.cli("sandbox", "create", "--group", name, "--name", "c", "--wait"))
    assert added.split()[-2:] == [f"{name}/c", "running"]
    assert ok(server.cli("run", f"{name}/a", "process", "exec", "hostname; echo $A")).split() == ["a", "1"]
    ok(server.cli("run", f"{name}/a", "file", "write", "/workspace/x", "--content", "inside"))
    assert ok(server.cli("cp", f"{name}/a:/workspace/x", "-")) == "inside"
    listed = ok(server.cli("sandbox", "list", "--group", name))
    assert [line.split()[0] for line in listed.splitlines()[1:]] == [f"{name}/{box}" for box in "abc"]
    copied = ok(server.cli("sandbox", "clone", f"{name}/a", "--name", "d", "--wait"))
    assert copied.split()[-2:] == [f"{name}/d", "running"]
    assert ok(server.cli("sandbox", "delete", f"{name}/d", "--wait")).split()[-2:] == [f"{name}/d", "deleted"]
    assert "Group" in ok(server.cli("sandbox", "get", f"{name}/b"))
    assert f"{name}/c" in ok(server.cli("__names")).split()


def test_from_a_file(server, name, tmp_path):
    body = {"name": name, "spec": {"enabled": False}, "sandboxes": [
        {"name": "lead", "spec": {"resources": {"memory": "96Mi"}}}, {"name": "worker"}]}
    path = tmp_path / "group.json"
    path.write_text(json.dumps(body))
    made = json.loads(ok(server.cli("group", "create", "--from-file", path, "-o", "json")))
    assert [box["name"] for box in made["sandboxes"]] == ["lead", "worker"]
    assert "96Mi" in ok(server.cli("sandbox", "get", f"{name}/lead"))
    both = server.cli("group", "create", "--from-file", path, "--count", 2)
    assert both.returncode == 2 and "--count" in both.stderr
    taken = server.cli("group", "create", "--from-file", "-", input=json.dumps(body))
    assert taken.returncode == 4, taken
    broken = server.cli("group", "create", "--from-file", "-", input="{")
    assert broken.returncode == 2, broken


def test_lives_and_lowered_limits(server, name):
    ok(server.cli("group", "create", "--name", name, "--count", "1", *SMALL, "--ttl", "1h", "--on-expire", "stop",
                  "--auto-lower", "1.5"))
    mine = [item for item in server.request("GET", "/v0/machine").json()["sandboxes"] if item.get("group") == name]
    assert [item["name"] for item in mine] == ["sandbox-1"]
    assert f"{name}/sandbox-1 " in ok(server.cli("machine"))
    shown = ok(server.cli("sandbox", "get", f"{name}/sandbox-1"))
    assert "TTL        1h" in shown and "On expire  stop" in shown and "to 1.5 times" in shown
    ok(server.cli("sandbox", "update", f"{name}/sandbox-1", "--auto-lower", "off"))
    assert "1.5 times" not in ok(server.cli("sandbox", "get", f"{name}/sandbox-1"))
    wrong = server.cli("sandbox", "update", f"{name}/sandbox-1", "--auto-lower", "x")
    assert wrong.returncode == 2 and "autoLower.factor" in wrong.stderr
    ok(server.cli("group", "end", name, "--wait"))


def test_empty_group(server, name):
    assert ok(server.cli("group", "create", "--name", name, "--wait")).split()[-2:] == ["empty", "0"]
    assert ok(server.cli("group", "start", name, "--wait")).split()[-2:] == ["empty", "0"]
    assert server.cli("group", "start", "no-such-group").returncode == 3
