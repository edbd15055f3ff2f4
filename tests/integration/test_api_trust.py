# SPDX-License-Identifier: Apache-2.0
"""Trust levels: what is shown, what may be asked for and by whom, and what comes of it in the API."""

import contextlib
import json
import sqlite3

import pytest

from cella_auth import Workspace, call
from cella_server import wait_until
from cella_websocket import Refused, Terminal

OPTIONS = {"network_enabled", "allowed_hosts", "allow_shell", "allow_subprocess", "allow_network_tools",
           "memory_limit_mb", "cpu_limit", "timeout_seconds", "read_only_root", "log_all_commands",
           "no_new_privs"}
SHOWN = OPTIONS | {"capabilities"}

# What DESIGN and docs/api.md say of each level.
LEVELS = {
    "standard": {"allow_shell": True, "allow_subprocess": True, "read_only_root": False,
                 "memory_limit_mb": None, "cpu_limit": None, "timeout_seconds": None,
                 "log_all_commands": False, "no_new_privs": False, "capabilities": "default"},
    "trusted": {"allow_shell": True, "allow_subprocess": True, "read_only_root": False,
                "memory_limit_mb": 2048, "cpu_limit": None, "timeout_seconds": None,
                "log_all_commands": False, "no_new_privs": False, "capabilities": "default"},
    "sandboxed": {"allow_shell": False, "allow_subprocess": False, "read_only_root": True,
                  "memory_limit_mb": 512, "cpu_limit": 1.0, "timeout_seconds": 300,
                  "log_all_commands": True, "no_new_privs": True, "capabilities": "default"},
    "untrusted": {"allow_shell": False, "allow_subprocess": False, "read_only_root": True,
                  "memory_limit_mb": 256, "cpu_limit": 0.5, "timeout_seconds": 60,
                  "log_all_commands": True, "no_new_privs": True, "capabilities": "none"},
}
RESOURCES = {"standard": ("1000m", "1Gi"), "trusted": ("1000m", "2Gi"), "sandboxed": ("1000m", "512Mi"),
             "untrusted": ("500m", "256Mi")}


@contextlib.contextmanager
def made(server, **spec):
    sandbox = server.create(**spec)
    try:
        yield sandbox
    finally:
        sandbox.delete()


@pytest.fixture(scope="module")
def guest(server):
    """An untrusted sandbox."""
    with made(server, trustLevel="untrusted") as sandbox:
        yield sandbox


@pytest.fixture
def workspace(server):
    made_here = Workspace(server)
    yield made_here
    made_here.delete()


def refused(answer, status, code, word=""):
    assert (answer.status, answer.error()) == (status, code), answer
    assert word in answer.json()["error"]["message"], answer


# --- what is shown ---

@pytest.mark.parametrize("level", LEVELS)
def test_a_level_is_a_row(server, level):
    with made(server, trustLevel=level, enabled=False) as sandbox:
        spec = sandbox.get()["spec"]
        assert spec["trustLevel"] == level
        assert set(spec["security"]) - {"enforcement"} == SHOWN
        for option, value in LEVELS[level].items():
            assert spec["security"][option] == value, option
        assert (spec["resources"]["cpu"], spec["resources"]["memory"]) == RESOURCES[level]


@pytest.mark.parametrize("level,mode", [("standard", "none"), ("trusted", "full"),
                                        ("sandboxed", "allowlist"), ("untrusted", "none")])
def test_levels_have_the_network_of_the_table(server, level, mode):
    with made(server, trustLevel=level, enabled=False) as sandbox:
        spec = sandbox.get()["spec"]
        security, notes = spec["security"], spec["security"].get("enforcement", {})
        assert security["allowed_hosts"] == []
        if spec["network"]["mode"] != mode:  # a machine that has none to give, and says so
            assert spec["network"]["mode"] == "none" and "network_enabled" in notes
        assert security["network_enabled"] is (spec["network"]["mode"] != "none")
        assert ("allow_network_tools" in notes) == security["allow_network_tools"]


def test_without_a_level_it_is_standard(server):
    with made(server, enabled=False) as sandbox:
        assert sandbox.get()["spec"]["trustLevel"] == "standard"


def test_an_answer_can_be_sent_again(server):
    with made(server, trustLevel="untrusted", security={"timeout_seconds": 7, "cpu_limit": 0.25},
              enabled=False) as sandbox:
        body = sandbox.get()
        del body["metadata"]["name"]
        answer = server.request("POST", "/v0/sandbox", body)
        assert answer.status == 202, answer
        again = server.sandbox(answer.json()["metadata"]["name"])
        try:
            assert again.get()["spec"] == body["spec"]
            # And as an update, which changes nothing.
            put = server.request("PUT", again.base, again.get())
            assert put.status == 200, put
        finally:
            again.delete()


def test_options_survive_the_server(server_factory):
    server = server_factory()
    sandbox = server.create(trustLevel="sandboxed", security={"timeout_seconds": 11, "read_only_root": True})
    stopped = server.create(trustLevel="untrusted", enabled=False)
    shown = [box.get()["spec"] for box in (sandbox, stopped)]
    before = server.kill("cellad")
    server.wait_recovered(before, "cellad")
    assert [box.get()["spec"] for box in (sandbox, stopped)] == shown
    server.stop()
    server.start()
    assert [box.get()["spec"] for box in (sandbox, stopped)] == shown
    # In force again, too.
    stopped.start()
    refused(stopped.request("POST", "/process", {"command": "true"}), 403, "SHELL_NOT_ALLOWED")
    done = stopped.exec(["grep", "-E", "NoNewPrivs|CapBnd", "/proc/self/status"])
    assert done.stdout.split() == ["CapBnd:", "0" * 16, "NoNewPrivs:", "1"]
    for box in (sandbox, stopped):
        box.delete()


# --- who may ask for what ---

TIGHTER = [("standard", {"allow_shell": False}), ("standard", {"allow_subprocess": False}),
           ("standard", {"read_only_root": True}), ("standard", {"log_all_commands": True}),
           ("standard", {"memory_limit_mb": 64, "cpu_limit": 0.1, "timeout_seconds": 5}),
           ("trusted", {"network_enabled": False, "allow_network_tools": False, "allowed_hosts": []}),
           ("untrusted", {"memory_limit_mb": 128, "cpu_limit": 0.5, "timeout_seconds": 60})]

LOOSER = [("untrusted", {"allow_shell": True}), ("untrusted", {"allow_subprocess": True}),
          ("untrusted", {"read_only_root": False}), ("untrusted", {"log_all_commands": False}),
          ("untrusted", {"memory_limit_mb": 257}), ("untrusted", {"memory_limit_mb": 0}),
          ("untrusted", {"cpu_limit": 0.501}), ("untrusted", {"timeout_seconds": 61}),
          ("untrusted", {"timeout_seconds": 0}), ("sandboxed", {"allow_shell": True}),
          ("trusted", {"memory_limit_mb": 4096})]


def create_with(server, workspace, key, **spec):
    body = {"spec": {"enabled": False, **spec}}
    return call(server, "POST", "/v0/sandbox", key, body, {"X-Cella-Workspace": workspace.name})


def test_tightening_is_free(server, workspace):
    key = workspace.key("write")
    for level, security in TIGHTER:
        answer = create_with(server, workspace, key, trustLevel=level, security=security)
        assert answer.status == 202, answer
        shown = answer.json()["spec"]["security"]
        assert {option: shown[option] for option in security} == security


def test_loosening_needs_the_scope(server, workspace):
    write, admin = workspace.key("write"), workspace.key("admin")
    for level, security in LOOSER:
        option, value = next(iter(security.items()))
        refused(create_with(server, workspace, write, trustLevel=level, security=security),
                403, "FORBIDDEN", option)
        answer = create_with(server, workspace, admin, trustLevel=level, security=security)
        assert answer.status == 202, answer
        assert answer.json()["spec"]["security"][option] == (value or None if option not in (
            "read_only_root", "log_all_commands") else value)


def test_resources_stay_below_the_level(server, workspace):
    write, admin = workspace.key("write"), workspace.key("admin")
    for resources in ({"memory": "257Mi"}, {"cpu": "501m"}, {"memory": "1Gi", "cpu": "100m"}):
        refused(create_with(server, workspace, write, trustLevel="untrusted", resources=resources),
                403, "FORBIDDEN", "spec.resources.")
    answer = create_with(server, workspace, write, trustLevel="untrusted", resources={"memory": "64Mi"})
    assert answer.json()["spec"]["resources"]["memory"] == "64Mi"
    answer = create_with(server, workspace, admin, trustLevel="untrusted", resources={"memory": "1Gi"})
    assert answer.json()["spec"]["security"]["memory_limit_mb"] == 1024

    name = create_with(server, workspace, write, trustLevel="untrusted").json()["metadata"]["name"]
    fields = {"X-Cella-Workspace": workspace.name}
    more = {"spec": {"resources": {"memory": "512Mi"}}}
    refused(call(server, "PATCH", f"/v0/sandbox/{name}", write, more, fields), 403, "FORBIDDEN", "memory")
    assert call(server, "GET", f"/v0/sandbox/{name}", write,
                headers=fields).json()["spec"]["resources"]["memory"] == "256Mi"
    assert call(server, "PATCH", f"/v0/sandbox/{name}", admin, more, fields).status == 200


def test_a_sandbox_keeps_its_level(server):
    with made(server, trustLevel="sandboxed", enabled=False) as sandbox:
        for spec in ({"trustLevel": "untrusted"}, {"trustLevel": "standard"},
                     {"security": {"allow_shell": True}}, {"security": {"timeout_seconds": 3}}):
            refused(server.request("PATCH", sandbox.base, {"spec": spec}), 400, "INVALID_ARGUMENT",
                    "keeps")
        same = {"spec": {"trustLevel": "sandboxed", "security": {"allow_shell": False}}}
        assert server.request("PATCH", sandbox.base, same).status == 200


# --- clones ---

def test_a_clone_inherits_and_may_tighten(server, workspace):
    write, admin = workspace.key("write"), workspace.key("admin")
    fields = {"X-Cella-Workspace": workspace.name}
    source = create_with(server, workspace, write, trustLevel="sandboxed",
                         security={"timeout_seconds": 20}).json()

    def clone(key, **spec):
        path = f"/v0/sandbox/{source['metadata']['name']}/clone"
        return call(server, "POST", path, key, {"spec": spec}, fields)

    plain = clone(write).json()["spec"]
    assert (plain["trustLevel"], plain["security"]) == ("sandboxed", source["spec"]["security"])
    tighter = clone(write, security={"timeout_seconds": 10, "memory_limit_mb": 100}).json()["spec"]
    assert tighter["security"]["timeout_seconds"] == 10 and tighter["resources"]["memory"] == "100Mi"
    refused(clone(write, trustLevel="standard"), 403, "FORBIDDEN")
    refused(clone(write, security={"allow_shell": True}), 403, "FORBIDDEN", "allow_shell")
    # Its own time-out is longer than what its source has.
    refused(clone(write, trustLevel="untrusted"), 403, "FORBIDDEN", "timeout_seconds")
    strict = clone(write, trustLevel="untrusted", security={"timeout_seconds": 20}).json()["spec"]
    assert strict["security"]["capabilities"] == "none"
    assert (strict["resources"]["cpu"], strict["resources"]["memory"]) == ("500m", "256Mi")
    assert clone(admin, trustLevel="standard").json()["spec"]["security"]["allow_shell"] is True


# --- no shell ---

def test_a_line_is_refused_and_a_program_runs(guest):
    for body in ({"command": "echo hi"}, {"command": "true", "waitForCompletion": True}):
        refused(guest.request("POST", "/process", body), 403, "SHELL_NOT_ALLOWED", "allow_shell")
    for shell in ("sh", "/bin/sh", "bash", "/usr/bin/bash", "busybox"):
        refused(guest.request("POST", "/process", {"command": [shell, "-c", "echo hi"]}), 403,
                "SHELL_NOT_ALLOWED", "is a shell")
    for pip in (["pip", "install", "x"], ["/usr/bin/pip3", "--version"], ["python3", "-m", "pip", "list"]):
        refused(guest.request("POST", "/process", {"command": pip}), 403, "SHELL_NOT_ALLOWED", "pip")
    done = guest.exec(["printf", "%s|", "a b", "", "$HOME; ls", "*"])
    assert (done.exit_code, done.stdout) == (0, "a b||$HOME; ls|*|")
    assert guest.exec(["python3", "-c", "print(6 * 7)"]).stdout == "42\n"


def test_a_line_is_refused_for_a_stream_too(guest):
    answer = guest.request("POST", "/process", {"command": "echo hi"}, {"Accept": "text/event-stream"})
    refused(answer, 403, "SHELL_NOT_ALLOWED")


def test_no_terminal(server, guest):
    refused(guest.request("POST", "/terminal/sessions", {}), 403, "SHELL_NOT_ALLOWED", "terminal")
    refused(guest.request("POST", "/terminal/sessions", {"command": "python3"}), 403, "SHELL_NOT_ALLOWED")
    with pytest.raises(Refused) as failure:
        Terminal(server, guest.name)
    assert "SHELL_NOT_ALLOWED" in str(failure.value)


def test_blaxels_api_is_refused_too(server, guest):
    answer = server.request("POST", f"/default/sandbox/{guest.name}/process", {"command": "ls"})
    assert answer.status == 403 and "shell" in answer.text, answer


def test_arguments_work_where_there_is_a_shell(shared_sandbox):
    done = shared_sandbox.exec(["sh", "-c", "echo $0-$1", "zero", "one two"])
    assert done.stdout == "zero-one two\n"
    missing = shared_sandbox.exec(["no-such-program"])
    assert missing.exit_code == 127 and "not found" in missing.stderr


# --- time-outs ---

def test_the_time_out_is_default_and_cap(server):
    with made(server, security={"timeout_seconds": 1}) as sandbox:
        for fields in ({}, {"timeout": 1000}):
            body = {"command": "sleep 1000", "waitForCompletion": True, **fields}
            answer = sandbox.request("POST", "/process", body, timeout=60)
            assert answer.json()["status"] == "timeout", answer
        # Nobody waits for it, and it ends all the same.
        pid = sandbox.spawn("sleep 1000")
        wait_until(lambda: sandbox.request("GET", f"/process/{pid}").json()["status"] == "timeout", 30,
                   "the end of its time")


def test_a_terminal_has_its_time(server):
    with made(server, security={"timeout_seconds": 1}) as sandbox:
        terminal = Terminal(server, sandbox.name)
        try:
            assert terminal.await_end()["reason"] == "timeout"
        finally:
            terminal.close()


# --- the log ---

def log_of(sandbox):
    answer = sandbox.request("GET", "/logs?source=sandbox&tail=100")
    assert answer.status == 200, answer
    return [entry["message"] for entry in answer.json()["logs"]]


def test_commands_are_logged(server_factory):
    server = server_factory()
    sandbox = server.create(security={"log_all_commands": True})
    quiet = server.create()
    sandbox.exec("echo one\necho two")
    sandbox.exec(["printf", "x" * 1000])
    made_terminal = sandbox.request("POST", "/terminal/sessions", {"command": "true"})
    assert made_terminal.status == 201, made_terminal
    quiet.exec("echo quiet")
    lines = [line for line in log_of(sandbox) if line.startswith("Command by admin, as root: ")]
    assert [line[27:] for line in lines][0] == "echo one echo two"
    assert lines[1].endswith("xxx…") and len(lines[1]) < 400
    assert len(lines) == 3
    assert not any("Command" in line for line in log_of(quiet))
    assert f"audit: sandbox default/{sandbox.name}" in server.log_path.read_text()
    # It was stored when it was run, not when the server went down.
    wait_until(lambda: stored_notes(server, sandbox) == 3, 20, "three lines in the store")
    before = server.kill("cellad")
    server.wait_recovered(before, "cellad")
    assert [line for line in log_of(sandbox) if line.startswith("Command by")] == lines
    for box in (sandbox, quiet):
        box.delete()


def stored_notes(server, sandbox):
    path = next(server.data.glob("db/*.db"))
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute("SELECT count(*) FROM note JOIN sandbox ON sandbox.id = note.sandbox WHERE"
                          " sandbox.name = ? AND message LIKE 'Command by%'",
                          (sandbox.name,)).fetchone()[0]


# --- the command line ---

def test_command_line(server):
    name = "trust-cli"
    done = server.cli("sandbox", "create", "--name", name, "--trust", "untrusted", "--security",
                      "timeout_seconds=30", "--security", "cpu_limit=0.25", "--wait")
    assert done.returncode == 0, done
    sandbox = server.sandbox(name)
    try:
        shown = server.cli("sandbox", "get", name).stdout
        for word in ("untrusted", "allow_shell=false", "timeout_seconds=30", "cpu_limit=0.25",
                     "read_only_root=true", "capabilities=none"):
            assert word in shown, shown
        spec = json.loads(server.cli("sandbox", "get", name, "-o", "json").stdout)["spec"]
        assert spec["trustLevel"] == "untrusted" and spec["security"]["timeout_seconds"] == 30
        assert server.cli("run", name, "process", "exec", "printf", "%s", "$HOME").stdout == "$HOME"
        line = server.cli("run", name, "process", "exec", "echo hi")
        assert line.returncode == 5 and "needs a shell" in line.stderr
        wrong = server.cli("sandbox", "clone", name, "--security", "allow_shell=maybe")
        assert wrong.returncode == 2 and "true or false" in wrong.stderr
    finally:
        sandbox.delete()


def test_the_command_line_shows_what_is_not_available(server):
    with made(server, trustLevel="trusted", enabled=False) as sandbox:
        shown = server.cli("sandbox", "get", sandbox.name).stdout
        assert "allow_network_tools=true (nothing to allow yet" in shown
