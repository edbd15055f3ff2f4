# SPDX-License-Identifier: Apache-2.0
"""`cella workspace`, `key`, `token`, `login`, `whoami`, and where a call gets its server and key from."""

import contextlib
import json
import os
import pty
import stat
import subprocess

import pytest

from cella_auth import Workspace, call, fresh, fresh_address, token_claims
from cella_server import PATIENCE


def ok(done):
    assert done.returncode == 0, done
    return done.stdout


@pytest.fixture
def workspace(server):
    made = Workspace(server)
    yield made
    made.delete()


@pytest.fixture
def home(tmp_path):
    return tmp_path


def cella(server, home, *args, env=None, input=None):
    """The program for somebody who has a home and nothing else."""
    clean = {k: v for k, v in os.environ.items()
             if not k.startswith(("CELLA_", "BL_", "XDG_"))}
    return subprocess.run([server.bin / "cella", *args], capture_output=True, text=True, input=input,
                          timeout=60 * PATIENCE, check=False,
                          env={**clean, "HOME": str(home), **(env or {})})


def test_workspaces(server):
    name = fresh("ws")
    assert ok(server.cli("workspace", "create", name)) == f"{name}\n"
    assert name in [line.split()[0] for line in ok(server.cli("workspace", "list")).splitlines()]
    listed = json.loads(ok(server.cli("workspace", "list", "-o", "json")))
    assert name in [item["name"] for item in listed["workspaces"]]
    ok(server.cli("sandbox", "create", "--name", "box", "--disabled", "--workspace", name))
    refused = server.cli("workspace", "delete", name)
    assert refused.returncode == 4 and "1 sandbox" in refused.stderr
    ok(server.cli("workspace", "delete", name, "--force"))
    assert server.cli("workspace", "delete", name).returncode == 3
    assert server.cli("workspace", "create", "v0").returncode == 2


def test_every_command_goes_to_the_workspace(server, workspace):
    """Not only those that the path names it in."""
    names = [workspace.name, "default"]
    box = fresh("box")
    ok(server.cli("sandbox", "create", "--name", box, "--wait", "--workspace", names[0]))
    assert ok(server.cli("run", box, "process", "exec", "echo a", "--workspace", names[0])) == "a\n"
    ok(server.cli("run", box, "file", "write", "/tmp/x", "--content", "b", "--workspace", names[0]))
    assert ok(server.cli("run", box, "file", "read", "/tmp/x",
                         env={"CELLA_WORKSPACE": names[0]})) == "b"
    assert box in ok(server.cli("sandbox", "list", env={"BL_WORKSPACE": names[0]}))
    assert box not in ok(server.cli("sandbox", "list"))
    assert server.cli("sandbox", "get", box).returncode == 3
    assert server.cli("sandbox", "get", box, "--workspace", "a\nb: c").returncode == 2


def test_keys(server, workspace):
    name = fresh("key")
    made = server.cli("key", "create", name, "--scope", "read", "--expires", "30d", "--workspace",
                      workspace.name)
    identity, shown, key = ok(made).splitlines()[1].split()
    assert shown == name and key.startswith("cella_")
    assert "not shown again" in made.stderr
    listed = ok(server.cli("key", "list", "--workspace", workspace.name))
    assert identity in listed and key not in listed and key[:10] in listed
    assert " read " in listed
    who = call(server, "GET", "/v0/whoami", key).json()
    assert (who["scopes"], who["workspace"]) == (["read"], workspace.name)
    assert who["expiresAt"] is not None
    ok(server.cli("key", "delete", name, "--workspace", workspace.name))  # by its name
    assert call(server, "GET", "/v0/whoami", key, source=fresh_address()).status == 401
    assert server.cli("key", "delete", identity, "--workspace", workspace.name).returncode == 3
    assert server.cli("key", "create", name, "--expires", "soon").returncode == 2
    assert server.cli("key", "create", name, "--scope", "all").returncode == 2


def test_token(server, workspace):
    key = workspace.new_key("write")
    token = ok(server.cli("token", "--client-id", key["id"], "--client-secret", key["secret"],
                          "--scope", "read")).strip()
    assert token_claims(token)["scope"] == "read"
    # For the key in use, and used as one.
    own = ok(server.cli("token")).strip()
    assert token_claims(own)["sub"] == "admin"
    shown = ok(server.cli("whoami", "--api-key", own))
    assert "token" in shown and "admin" in shown and server.url in shown
    by_env = ok(server.cli("token", "-o", "json", env={"CELLA_CLIENT_ID": key["id"],
                                                       "CELLA_CLIENT_SECRET": key["secret"]}))
    assert json.loads(by_env)["token_type"] == "Bearer"
    wrong = server.cli("token", "--client-id", key["id"], "--client-secret", "x")
    assert wrong.returncode == 5 and "invalid_client" in wrong.stderr
    assert server.cli("token", "--client-id", key["id"]).returncode == 2


def test_login(server, workspace, home):
    key = workspace.new_key("write")
    done = cella(server, home, "login", server.url, input=key["secret"] + "\n",
                 env={"CELLA_DATA": "/nonexistent"})
    assert key["name"] in ok(done) and workspace.name in done.stdout
    assert key["secret"] not in done.stdout + done.stderr
    file = home / ".config" / "cella" / "config.json"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert json.loads(file.read_text()) == {"url": server.url, "apiKey": key["secret"]}

    who = json.loads(ok(cella(server, home, "whoami", "-o", "json")))
    assert who["name"] == key["name"]
    # What is named counts more; a folder that is named is another server.
    other = cella(server, home, "whoami", "-o", "json", env={"CELLA_API_KEY": server.key})
    assert json.loads(ok(other))["name"] == "admin"
    assert "admin" in ok(cella(server, home, "whoami", "--data", str(server.data)))
    # The key is for that server alone.
    elsewhere = cella(server, home, "whoami", "--url", server.url.replace("127.0.0.1", "127.0.0.2"),
                      env={"CELLA_DATA": "/nonexistent"})
    assert elsewhere.returncode != 0

    file.chmod(0o644)
    exposed = cella(server, home, "whoami")
    assert exposed.returncode == 5 and "chmod 600" in exposed.stderr
    file.chmod(0o600)
    ok(cella(server, home, "logout"))
    assert not file.exists()
    assert "nobody" in cella(server, home, "logout").stderr


def test_login_keeps_a_workspace(server, workspace, home):
    ok(cella(server, home, "login", server.url, "--api-key", server.key, "--workspace",
             workspace.name, env={"CELLA_CONFIG": str(home / "mine")}))
    who = cella(server, home, "whoami", "-o", "json", env={"CELLA_CONFIG": str(home / "mine")})
    assert json.loads(ok(who))["workspace"] == workspace.name


def test_login_with_a_wrong_key_keeps_nothing(server, home):
    done = cella(server, home, "login", server.url, "--api-key", "cella_wrong")
    assert done.returncode == 5, done
    assert not (home / ".config").exists()
    nothing = cella(server, home, "login", server.url, input="",
                    env={"CELLA_DATA": "/nonexistent"})
    assert nothing.returncode == 2 and "no key was given" in nothing.stderr


def test_key_typed_at_a_terminal_is_not_shown(server, workspace, home):
    key = workspace.key()
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("CELLA_", "BL_", "XDG_"))}
    ours, theirs = pty.openpty()
    with subprocess.Popen([server.bin / "cella", "login", server.url], stdin=theirs,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                          env={**clean, "HOME": str(home), "CELLA_DATA": "/nonexistent"}) as process:
        prompt = process.stderr.read(len("API key for "))
        assert prompt == "API key for "
        os.write(ours, key.encode() + b"\n")
        out, err = process.communicate(timeout=60 * PATIENCE)
    os.set_blocking(ours, False)
    with contextlib.suppress(BlockingIOError):
        assert key.encode() not in os.read(ours, 4096)  # what a person would have seen
    os.close(theirs)
    os.close(ours)
    assert process.returncode == 0, err
    assert workspace.name in out


def test_blaxel_variables(server, workspace, home):
    key = workspace.key()
    shown = cella(server, home, "whoami", "-o", "json", env={
        "BL_API_URL": f"{server.url}/v0", "BL_API_KEY": key, "BL_WORKSPACE": workspace.name})
    assert json.loads(ok(shown))["workspace"] == workspace.name
