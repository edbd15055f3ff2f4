# SPDX-License-Identifier: Apache-2.0
"""`cella env`: what other makers' clients have to be told, as lines for a shell."""

import json
import os
import subprocess
import urllib.request

import pytest


def told(server, client, *options):
    """The variables as a shell has them after eval."""
    done = server.cli("env", client, *options)
    assert done.returncode == 0, done.stderr
    shell = subprocess.run(["sh", "-c", 'eval "$1" && env -0', "sh", done.stdout], env={"PATH": os.environ["PATH"]},
                           stdout=subprocess.PIPE, text=True, check=True)
    return dict(line.split("=", 1) for line in shell.stdout.split("\0") if "=" in line)


def get(url, **fields):
    request = urllib.request.Request(url, headers=fields)
    with urllib.request.urlopen(request, timeout=30) as answer:
        return json.load(answer)


def test_e2b_s_clients(server):
    env = told(server, "e2b")
    assert env["E2B_SANDBOX_URL"] == env["E2B_API_URL"] == server.url
    assert get(env["E2B_API_URL"] + "/v2/sandboxes", **{"X-API-KEY": env["E2B_API_KEY"]}) == []
    digits = env["E2B_API_KEY"].removeprefix("e2b_")
    assert bytes.fromhex(digits).decode() == server.key


def test_scalebox_s_clients(server):
    env = told(server, "scalebox")
    assert env["SCALEBOX_API_KEY"] == server.key
    assert env["NODE_EXTRA_CA_CERTS"] == str(server.data / "tls" / "ca.pem")
    assert get(env["SCALEBOX_API_URL"] + "/v1/sandboxes", **{"X-API-KEY": env["SCALEBOX_API_KEY"]})["success"]


def test_blaxel_s_clients(server):
    env = told(server, "blaxel", "--workspace", "default")
    assert (env["BL_WORKSPACE"], env["BL_RUN_URL"]) == ("default", server.url)
    get(env["BL_API_URL"] + "/sandboxes", Authorization="Bearer " + env["BL_API_KEY"])


def test_whatever_is_in_a_value_stays_one_word(server):
    env = told(server, "scalebox", "--api-key", "it's; echo $HOME `id`")
    assert env["SCALEBOX_API_KEY"] == "it's; echo $HOME `id`"


@pytest.mark.parametrize("words, message", [
    (["env", "modal"], '"modal" is no client that this is known of: e2b, scalebox, blaxel'),
    (["env", "e2b", "--url", "unix:/run/x.sock", "--api-key", "k"], "give --url http://HOST:PORT"),
    (["env"], "CLIENT"),
])
def test_what_cannot_be_told_says_why(server, words, message):
    done = server.cli(*words)
    assert done.returncode != 0
    assert message in done.stderr and done.stdout == ""
