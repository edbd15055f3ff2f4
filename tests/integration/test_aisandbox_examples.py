# SPDX-License-Identifier: Apache-2.0
"""The curl examples of examples/aisandbox.md, run by bash as they stand there, against
`--listen 127.0.0.1:3000 --no-auth`; only execution ids, which nobody can know ahead, are put in.

The server has a network of its own, so that nobody else has that port in it."""

import json
import os
import pathlib
import re
import subprocess

import pytest

from cella_server import PATIENCE, Server
from world import UnixConnection

EXAMPLES = (pathlib.Path(__file__).parent / "examples" / "aisandbox.md").read_text()
MADE_UP = {"exec_7683de5a": 0, "exec_8794fe6b": 1}  # which execution of the session each stands for


class LonelyServer(Server):
    """One in a network namespace with nothing but a loopback; reached by its unix socket from here."""

    def __init__(self, *args):
        super().__init__(*args, prefix=["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"])

    def connection(self, timeout=30):
        return UnixConnection(self.data / "run" / "api.sock", timeout * PATIENCE)

    def bash(self, script, **env):
        """What a script prints that is run on its machine."""
        done = subprocess.run(
            ["nsenter", f"--net=/proc/{self.pids().supervisor}/ns/net", "bash", "-euo", "pipefail", "-c", script],
            capture_output=True, text=True, timeout=60 * PATIENCE, env={"PATH": os.environ["PATH"], **env}, check=False)
        assert done.returncode == 0, (script, done)
        return done.stdout


def blocks(language):
    """The examples, by the number of their section."""
    found = {}
    for number, text in re.findall(r"^### (13\.\d) .*?\n(.*?)(?=^### |\Z)", EXAMPLES, re.M | re.S):
        fenced = re.search(rf"```{language}\n(.*?)```", text, re.S)
        if fenced:
            found[number] = fenced.group(1)
    return found


def documents(text):
    """JSON documents that stand one behind the other."""
    found, decoder = [], json.JSONDecoder()
    while text := text.strip():
        value, end = decoder.raw_decode(text)
        found.append(value)
        text = text[end:]
    return found


def shape(value):
    """What a document is made of, whatever it says."""
    if isinstance(value, dict):
        return {key: shape(item) for key, item in value.items()}
    return [shape(item) for item in value[:1]] if isinstance(value, list) else type(value).__name__


class Session:
    """The examples in the order in which they stand, each run once."""

    def __init__(self, server):
        self.server, self.scripts, self.executions = server, blocks("bash"), []
        self.container = re.fullmatch(r"Container ID: (\S+)\n", server.bash(self.scripts["13.1"])).group(1)
        self.first, self.second = self.run("13.2")
        self.executions = [self.first["id"], self.second["id"]]
        self.history, = self.run("13.3")
        self.diff, = self.run("13.4")
        self.rollback, self.after = self.run("13.5")

    def run(self, number):
        script = self.scripts[number]
        for made_up, index in MADE_UP.items():
            if made_up in script:
                script = script.replace(made_up, self.executions[index])
        return documents(self.server.bash(script, CONTAINER_ID=self.container))


@pytest.fixture(scope="module")
def session():
    if os.geteuid() != 0:
        pytest.skip("needs root: a server makes namespaces, mounts and cgroups")
    server = LonelyServer("--listen", "127.0.0.1:3000", "--no-auth")
    try:
        yield Session(server)
    finally:
        server.close()


def test_there_are_examples():
    assert sorted(blocks("bash")) == ["13.1", "13.2", "13.3", "13.4", "13.5"]
    assert sorted(blocks("json")) == ["13.3", "13.4"]


def test_a_container_is_made(session):
    assert re.fullmatch(r"container_[a-z0-9]{12}", session.container)


def test_code_runs(session):
    assert session.first["status"] == session.second["status"] == "success"
    assert session.first["stdout"] == "Version 1"
    assert session.second["stdout"] == "Version 2\nNew feature added!"
    assert session.first["stderr"] == "" and session.first["duration"] >= 0
    for execution in session.executions:
        assert re.fullmatch(r"exec_[0-9a-f]{8}", execution)


def test_history_is_as_the_example_expects(session):
    expected = json.loads(blocks("json")["13.3"])
    assert shape(session.history) == shape(expected)
    for entry, like in zip(session.history["history"], expected["history"], strict=True):
        assert entry["message"] == like["message"] and entry["files"] == like["files"]
        assert re.fullmatch(r"[0-9a-f]{40}", entry["commitId"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", entry["timestamp"])
    assert [entry["id"] for entry in session.history["history"]] == [*reversed(session.executions), "unknown"]


def test_diff_is_as_the_example_expects(session):
    expected = json.loads(blocks("json")["13.4"])

    def plain(diff):
        return {name: re.sub(r"^index \w+\.\.\w+", "index", text, flags=re.M) for name, text in diff["diff"].items()}

    # The example's own hunk; what its file has at its end, a newline or none, is told besides.
    got = {name: text.replace("\\ No newline at end of file\n", "") for name, text in plain(session.diff).items()}
    assert got == plain(expected)


def test_rollback_brings_the_first_version_back(session):
    assert session.rollback["status"] == "success"
    assert session.rollback["containerId"] == session.container
    assert session.rollback["executionId"] == session.executions[0]
    assert session.rollback["files"] == ["index.js"]
    assert session.after["status"] == "success" and session.after["stdout"] == "Version 1"
