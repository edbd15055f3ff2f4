# SPDX-License-Identifier: Apache-2.0
"""`cella sandbox logs`, once and followed."""

import json
import os
import re
import signal
import subprocess

import pytest

from cella_server import wait_until


@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    made.run(r"echo to stdout; echo to stderr >&2; printf 'tab\tbell\007\n'", name="talker")
    yield made
    made.delete()


def test_lines(server, box):
    done = server.cli("sandbox", "logs", box.name, "--tail", "20")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    stamp = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.fullmatch(f"{stamp}  info   Sandbox created successfully", lines[0])
    assert any(re.fullmatch(f"{stamp}  info   Starting sandbox...", line) for line in lines)
    assert any(re.fullmatch(rf"{stamp}  info   \[talker\] to stdout", line) for line in lines)
    assert any(re.fullmatch(rf"{stamp}  error  \[talker\] to stderr", line) for line in lines)
    assert "tab\tbell\x07" in done.stdout, "exact into a pipe"


def test_options(server, box):
    assert len(server.cli("sandbox", "logs", box.name, "--tail", "2").stdout.splitlines()) == 2
    errors = server.cli("sandbox", "logs", box.name, "--level", "error").stdout
    assert "to stderr" in errors and "to stdout" not in errors
    life = server.cli("sandbox", "logs", box.name, "--source", "sandbox", "--since", "1h").stdout
    assert "Sandbox started" in life and "talker" not in life
    entries = json.loads(server.cli("sandbox", "logs", box.name, "-o", "json").stdout)["logs"]
    assert "to stderr" in [entry["message"] for entry in entries]
    assert server.cli("sandbox", "logs", "nobody").returncode == 3
    assert server.cli("sandbox", "logs", box.name, "--level", "loud").returncode == 2
    assert server.cli("sandbox", "logs", box.name, "--since", "then").returncode == 2


@pytest.mark.parametrize("extra", [(), ("-o", "json")])
def test_following(server, tmp_path, extra):
    box = server.create()
    shown = tmp_path / "shown"
    with open(shown, "wb") as out:
        command = [server.bin / "cella", "--data", server.data, "sandbox", "logs", box.name, "-f", *extra]
        with subprocess.Popen(command, stdout=out, stderr=subprocess.PIPE) as following:
            try:
                wait_until(lambda: "Sandbox started" in shown.read_text(), 30, "its life so far")
                box.run("echo while it is followed")
                wait_until(lambda: "while it is followed" in shown.read_text(), 30, "a new line")
            finally:
                box.delete()
            assert following.wait(60) == 0, following.stderr.read()
    if extra:
        assert all(json.loads(line)["message"] for line in shown.read_text().splitlines())


def test_interrupting(server, box, tmp_path):
    shown = tmp_path / "shown"
    with open(shown, "wb") as out:
        command = [server.bin / "cella", "--data", server.data, "sandbox", "logs", box.name, "-f"]
        with subprocess.Popen(command, stdout=out) as following:
            wait_until(lambda: "talker" in shown.read_text(), 30, "lines")
            os.kill(following.pid, signal.SIGINT)
            assert following.wait(30) in (-signal.SIGINT, 130)


def test_harmless_on_a_terminal(server, box):
    done = subprocess.run(
        ["script", "-qec", f"{server.bin}/cella --data {server.data} sandbox logs {box.name}",
         "/dev/null"], capture_output=True, timeout=60, stdin=subprocess.DEVNULL, check=False)
    assert b"tab\\tbell\\x07" in done.stdout
