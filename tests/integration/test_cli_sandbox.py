# SPDX-License-Identifier: Apache-2.0
"""`cella sandbox …` and how the command line finds its server."""

import json
import os
import subprocess
import uuid

import pytest


def fresh_name():
    return f"cli-{uuid.uuid4().hex[:12]}"


@pytest.fixture
def name(server):
    """A name, and the end of whatever got it."""
    made = fresh_name()
    yield made
    server.cli("sandbox", "delete", made, "--wait")


def ok(done):
    assert done.returncode == 0, done
    return done.stdout


def test_life(server, name):
    created = ok(server.cli("sandbox", "create", "--name", name, "--cpu", "0.5", "--memory",
                            "256Mi", "--disk", "1Gi", "--env", "A=1", "-e", "B=x=y", "--wait"))
    assert created.split() == ["NAME", "STATUS", name, "running"]
    assert ok(server.cli("sandbox", "wait", name, "--status", "running")).split()[-1] == "running"

    shown = ok(server.cli("sandbox", "get", name))
    for part in (name, "running", "256Mi", "A=1", "B=x=y", "CREATE"):
        assert part in shown
    spec = json.loads(ok(server.cli("sandbox", "get", name, "-o", "json")))["spec"]
    assert spec["resources"] == {"cpu": "0.5", "memory": "256Mi", "disk": "1Gi"}
    assert spec["env_vars"] == {"A": "1", "B": "x=y"}

    assert ok(server.cli("sandbox", "stop", name, "--wait")).split()[-1] == "stopped"
    assert ok(server.cli("sandbox", "start", name, "--wait", "--timeout", 30)).split()[-1] == "running"
    assert ok(server.cli("sandbox", "delete", name, "--wait")).split()[-2:] == [name, "deleted"]
    assert server.cli("sandbox", "get", name).returncode == 3


def test_create_returns_at_once(server, name):
    made = json.loads(ok(server.cli("sandbox", "create", "--name", name, "--output=json")))
    assert made["metadata"]["name"] == name
    assert made["status"] in ("creating", "running")
    assert ok(server.cli("run", name, "process", "exec", "echo there")) == "there\n"


def test_disabled(server, name):
    assert "stopped" in ok(server.cli("sandbox", "create", "--name", name, "--disabled", "--wait"))
    stopped = server.cli("run", name, "process", "exec", "true")
    assert stopped.returncode == 4
    assert stopped.stderr.startswith("cella: ")


def test_a_name_is_made_up(server):
    made = ok(server.cli("sandbox", "create", "--wait")).split()
    assert made[3] == "running"
    ok(server.cli("sandbox", "delete", made[2], "--wait"))


def test_list(server, name):
    ok(server.cli("sandbox", "create", "--name", name, "--disabled"))
    lines = ok(server.cli("sandbox", "list", "--status", "stopped", "--limit", 1000)).splitlines()
    assert lines[0].split() == ["NAME", "STATUS", "IMAGE", "CPU", "MEMORY", "DISK", "CREATED"]
    mine = [line.split() for line in lines[1:] if line.split()[0] == name]
    assert len(mine) == 1
    assert len(mine[0]) == 7
    answer = json.loads(ok(server.cli("sandbox", "list", "-o", "json", "--limit", 1, "--offset", 0)))
    assert answer["limit"] == 1
    assert len(answer["sandboxes"]) == 1
    assert ok(server.cli("__names")).split().count(name) == 1


def test_errors(server, name):
    ok(server.cli("sandbox", "create", "--name", name, "--wait"))
    rows = [
        (("sandbox", "create", "--name", name), 4),
        (("sandbox", "create", "--name", "No Name"), 2),
        (("sandbox", "create", "--memory", "lots"), 2),
        (("sandbox", "create", "--image", "no-such-image"), 3),
        (("sandbox", "start", name), 4),
        (("sandbox", "get", "no-such-sandbox"), 3),
        (("sandbox", "get", "../../health"), 3),
        (("sandbox", "delete", "no-such-sandbox"), 3),
        (("sandbox", "list", "--workspace", "elsewhere"), 3),
        (("run", name, "file", "ls", "/", "--workspace", "elsewhere"), 3),
        (("sandbox", "wait", name, "--status", "stopped", "--timeout", "0"), 6),
        (("sandbox", "list", "--api-key", "wrong"), 5),
    ]
    for args, status in rows:
        done = server.cli(*args)
        assert done.returncode == status, (args, done)
        assert done.stderr.startswith("cella: "), done
        assert done.stdout == "", done


def test_workspace(server, name):
    ok(server.cli("sandbox", "create", "--name", name, "--workspace", "default"))
    assert ok(server.cli("run", name, "process", "exec", "echo a", "--workspace", "default")) == "a\n"


def cella(server, *args, env=None):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CELLA_", "BL_"))}
    return subprocess.run([server.bin / "cella", *args], capture_output=True, text=True,
                          timeout=60, check=False, env={**clean, **(env or {})})


def test_finding_the_server(server):
    nowhere = {"CELLA_DATA": "/nonexistent-folder"}
    by_url = cella(server, "sandbox", "list", "--url", server.url, "--api-key", server.key,
                   env=nowhere)
    assert by_url.returncode == 0, by_url
    by_env = cella(server, "sandbox", "list", env={**nowhere, "CELLA_URL": server.url,
                                                   "CELLA_API_KEY": server.key})
    assert by_env.returncode == 0, by_env
    by_bl = cella(server, "sandbox", "list", env={**nowhere, "CELLA_URL": server.url,
                                                  "BL_API_KEY": server.key})
    assert by_bl.returncode == 0, by_bl
    by_folder = cella(server, "sandbox", "list", env={"CELLA_DATA": str(server.data)})
    assert by_folder.returncode == 0, by_folder


def test_no_key(server):
    done = cella(server, "sandbox", "list", "--url", server.url,
                 env={"CELLA_DATA": "/nonexistent-folder"})
    assert done.returncode == 5
    assert f"no key was given for {server.url}" in done.stderr
    assert "CELLA_API_KEY" in done.stderr


def test_doctor_sees_the_server(server):
    found = json.loads(ok(server.cli("doctor", "--output", "json")))
    checks = {check["name"]: check for check in found["checks"]}
    assert checks["server"]["status"] == "ok"
    assert server.url in checks["server"]["message"]


def test_no_leaks(server, sandbox):
    done = server.cli("doctor", "--leaks")
    assert done.returncode == 0, done
    assert done.stdout.endswith("no leaks\n")


def test_names_are_completed(server, sandbox):
    script = ('source <("$0" completion bash); COMP_WORDS=("$0" "$@"); COMP_CWORD=$#; _cella; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    done = subprocess.run(["bash", "-c", script, server.bin / "cella", "--data", server.data, "run",
                           sandbox.name[:-1]], capture_output=True, text=True, timeout=60,
                          check=False)
    assert done.stderr == ""
    assert sandbox.name in done.stdout.split()


def test_what_is_in_force_is_shown(server, name):
    """The level, each option, each limit, and of those that are not enforced why."""
    assert server.cli("sandbox", "create", "--name", name, "--trust", "untrusted", "--security", "timeout_seconds=10",
                      "--network-in", "1M", "--auto-lower", "2", "--wait").returncode == 0
    shown = server.cli("sandbox", "get", name).stdout
    for text in ("Trust      untrusted", "read_only_root=true", "timeout_seconds=10", "capabilities=none",
                 "to 2 times what is used"):
        assert text in shown, shown
    row = next(line for line in shown.splitlines() if line.startswith("networkIn"))
    assert row.split()[:3] == ["networkIn", "976.6", "KiB/s"] and "yes: tc token bucket" in row, row
    totals = server.cli("machine").stdout.splitlines()
    assert any(line.startswith("networkIn") and "/s" in line and "tc token bucket" in line for line in totals), totals
    assert server.cli("sandbox", "delete", name, "--wait").returncode == 0


def test_clone_update_resume_and_labels(server, name):
    """The seed's own command lines among them."""
    ok(server.cli("sandbox", "create", "--name", name, "--label", "team=a", "--label", f"run={name}", "--wait"))
    copy = f"{name}-c"
    try:
        cloned = ok(server.cli("sandbox", "clone", name, "--name", copy, "--cpu", "2", "--memory", "2Gi"))
        assert cloned.split() == ["NAME", "STATUS", copy, "creating"]
        assert ok(server.cli("sandbox", "wait", copy, "--status", "running")).split()[-1] == "running"
        info = json.loads(ok(server.cli("sandbox", "get", copy, "-o", "json")))
        assert info["spec"]["resources"] == {"cpu": "2", "memory": "2Gi", "disk": "10Gi"}
        assert info["metadata"]["labels"] == {"team": "a", "run": name}

        listed = ok(server.cli("sandbox", "list", "--label", f"run={name}", "--label", "team=a"))
        assert name in listed and copy in listed
        ok(server.cli("sandbox", "update", copy, "--cpu", "500m", "--memory", "512Mi", "--env", "A=1",
                      "--env", "B=2", "--label", "team=b"))
        assert copy not in ok(server.cli("sandbox", "list", "--label", f"run={name},team=a"))
        shown = ok(server.cli("sandbox", "get", copy))
        for part in ("512Mi", "team=b", "A=1", "B=2", "UPDATE", "rev-"):
            assert part in shown
        ok(server.cli("sandbox", "update", copy, "--remove-env", "A", "--remove-label", "team"))
        assert ok(server.cli("run", copy, "process", "exec", "echo ${A-none} $B")) == "none 2\n"
        stale = server.cli("sandbox", "update", copy, "--cpu", "1", "--revision", "rev-1")
        assert stale.returncode == 4 and "rev-1" in stale.stderr

        ok(server.cli("sandbox", "stop", copy, "--wait"))
        assert ok(server.cli("sandbox", "resume", copy, "--wait")).split()[-1] == "running"
        assert server.cli("sandbox", "resume", copy).returncode == 4
        other = ok(server.cli("sandbox", "clone", copy, "--wait", "-o", "json"))
        made = json.loads(other)["metadata"]["name"]
        assert ok(server.cli("sandbox", "delete", made, "--wait"))
    finally:
        server.cli("sandbox", "delete", copy, "--wait")
