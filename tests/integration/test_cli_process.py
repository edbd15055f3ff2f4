# SPDX-License-Identifier: Apache-2.0
"""`cella run NAME process …`: a command behaves as if it ran here."""

import json
import subprocess
import time

import pytest


@pytest.fixture
def box(server, shared_sandbox):
    def run(*args, **kwargs):
        return server.cli("run", shared_sandbox.name, "process", *args, **kwargs)

    run.sandbox = shared_sandbox
    return run


@pytest.mark.parametrize("command, status", [
    ("true", 0), ("false", 1), ("exit 42", 42), ("exit 255", 255), ("no-such-command", 127),
    ("kill -9 $$", 137), ("kill -TERM $$", 143),
])
def test_exit_status_is_the_commands_own(box, command, status):
    assert box("exec", command).returncode == status


def test_output_goes_where_it_belongs(box):
    done = box("exec", "echo out; echo err >&2; exit 3")
    assert (done.stdout, done.stderr, done.returncode) == ("out\n", "err\n", 3)


def test_exact_bytes(box):
    every = "python3 -c 'import sys; sys.stdout.buffer.write(bytes(range(256)))'"
    done = box("exec", every, text=False)
    assert done.stdout == bytes(range(256))
    done = box("exec", every + " >&2", text=False)
    assert done.stderr == bytes(range(256))
    assert box("exec", "printf 'no newline'").stdout == "no newline"


def test_several_words_are_arguments(server, shared_sandbox):
    def words(*argv):
        return subprocess.run([server.bin / "cella", "--data", server.data, "run",
                               shared_sandbox.name, "process", "exec", "--", *argv],
                              capture_output=True, text=True, timeout=60, check=False)

    assert words("printf", "[%s]", "a b", "$HOME", "it's", "", "--help").stdout == \
        "[a b][$HOME][it's][][--help]"
    assert words("sh", "-c", "exit 9").returncode == 9
    assert words("echo $((1 + 1))").stdout == "2\n"


def test_where_and_with_what(box):
    assert box("exec", "pwd").stdout == "/workspace\n"
    assert box("exec", "pwd", "--working-dir", "/usr/lib").stdout == "/usr/lib\n"
    done = box("exec", "echo $A-$B", "--env", "A=1", "-e", "B=two words=2", "-e", "A=3")
    assert done.stdout == "3-two words=2\n"
    assert box("exec", "true", "--working-dir", "/no/such").returncode == 3
    assert box("exec", "true", "--working-dir", "relative").returncode == 2


def test_timeout(box):
    done = box("exec", "echo before; sleep 60", "--timeout", 1)
    assert done.returncode == 124
    assert done.stdout == "before\n"
    assert "time was over" in done.stderr


def test_json(box):
    done = box("exec", "echo out; exit 5", "--output", "json")
    assert done.returncode == 5
    answer = json.loads(done.stdout)
    assert answer["exitCode"] == 5
    assert answer["stdout"] == "out\n"


def test_more_output_than_is_kept(box):
    """The newest bytes are there, and it is said how many are not."""
    done = box("exec", "head -c 3000000 /dev/zero | tr '\\0' x; echo end", text=False)
    assert done.returncode == 0
    assert done.stdout.endswith(b"xend\n")
    assert set(done.stdout[:-5]) == {ord("x")}
    assert b"bytes of stdout were not kept" in done.stderr
    dropped = int(done.stderr.split(b"first ")[1].split()[0])
    assert dropped + len(done.stdout) == 3000005 - 1


def test_detached(box):
    pid = box("exec", "echo started; exec sleep 300", "--detach").stdout.strip()
    assert pid.isdigit()
    end = time.monotonic() + 10
    while box("logs", pid).stdout != "started\n":
        assert time.monotonic() < end
    rows = {line.split()[0]: line.split() for line in box("list").stdout.splitlines()}
    assert rows["PID"] == ["PID", "STATUS", "EXIT", "STARTED", "COMMAND"]
    assert rows[pid][1:3] == ["running", "-"]
    assert any(str(process["pid"]) == pid
               for process in json.loads(box("list", "-o", "json").stdout))
    assert box("kill", pid).stdout == "Process killed successfully\n"
    ended = {line.split()[0]: line.split() for line in box("list").stdout.splitlines()}[pid]
    assert ended[1:3] == ["killed", "137"]


def test_stop(box):
    pid = box("exec", "trap 'echo bye; exit 0' TERM; while :; do sleep 0.05; done",
              "--detach").stdout.strip()
    done = box("stop", pid)
    assert done.returncode == 0, done
    assert done.stdout == "Process stopped successfully\n"


def test_logs(box):
    pid = str(box.sandbox.exec("echo out; printf '\\377' >&2").pid)
    done = box("logs", pid, text=False)
    assert (done.stdout, done.stderr) == (b"out\n", b"\xff")
    assert json.loads(box("logs", pid, "-o", "json").stdout)["stdout"] == "out\n"


def test_errors(box, server):
    for verb in ("logs", "stop", "kill"):
        assert box(verb, "999999").returncode == 3
        assert box(verb, "one").returncode == 3
        assert box(verb, "a b").returncode == 2
    assert server.cli("run", "no-such-box", "process", "list").returncode == 3
    assert box("exec", "").returncode == 2


def test_hostile_command_in_the_list(box):
    box("exec", "true '\033[31m\nred'")
    listed = box("list").stdout
    assert "\033" not in listed
    assert "\\x1b[31m\\nred" in listed



def test_what_is_no_utf8_is_not_changed_quietly(box):
    assert box("exec", b"echo \xff".decode("utf-8", "surrogateescape")).returncode == 2
