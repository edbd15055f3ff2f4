# SPDX-License-Identifier: Apache-2.0
"""`cella run NAME process …`: a command behaves as if it ran here."""

import json
import signal
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
    done = box("exec", "echo before; sleep 60", "--timeout", 3)
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
    """Nothing is missing where it is shown as it comes; afterwards the newest is there."""
    done = box("exec", "head -c 3000000 /dev/zero | tr '\\0' x; echo end", "--name", "flood",
               text=False)
    assert done.returncode == 0
    assert done.stdout == b"x" * 3000000 + b"end\n"
    done = box("logs", "flood", text=False)
    assert done.stdout.endswith(b"xend\n")
    assert set(done.stdout[:-5]) == {ord("x")}
    assert b"bytes of stdout were not kept" in done.stderr
    dropped = int(done.stderr.split(b"first ")[1].split()[0])
    assert dropped + len(done.stdout) == 3000005 - 1


class Running:
    """The command line at work."""

    def __init__(self, server, sandbox, *args, **kwargs):
        # Not buffered: what came with a line that was read would be missing at the end.
        self.process = subprocess.Popen(
            [server.bin / "cella", "--data", server.data, "run", sandbox.name, "process",
             *map(str, args)], bufsize=0, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)

    def end(self, status, deadline=60):
        out, err = self.process.communicate(timeout=deadline)
        assert self.process.returncode == status, (out, err)
        return out, err


@pytest.fixture
def start(server, shared_sandbox):
    made = []

    def run(*args, **kwargs):
        made.append(Running(server, shared_sandbox, *args, **kwargs))
        return made[-1]

    yield run
    for running in made:
        if running.process.poll() is None:
            running.process.kill()
            running.process.communicate()


def test_output_comes_before_the_end(box, start):
    live = start("exec", "echo first; until [ -e /tmp/cli-go ]; do sleep 0.01; done; echo second")
    assert live.process.stdout.readline() == b"first\n"
    box.sandbox.run("touch /tmp/cli-go")
    assert live.end(0)[0] == b"second\n"


def test_input_is_passed_on(box, start):
    data = bytes(range(256)) * 10000
    live = start("exec", "cat", "-i", stdin=subprocess.PIPE)
    out, err = live.process.communicate(data, timeout=60)
    assert (out, err, live.process.returncode) == (data, b"", 0)
    # From a file, and to a command that does not read it.
    with open("/etc/passwd", "rb") as file:
        live = start("exec", "wc -l", "--stdin", stdin=file)
        out = live.end(0)[0]
    with open("/etc/passwd", "rb") as file:
        assert int(out) == len(file.readlines())
    live = start("exec", "exit 4", "-i", stdin=subprocess.PIPE)
    live.end(4)
    assert box("exec", "cat", "-i", "--detach").returncode == 2


@pytest.mark.parametrize("interrupts, status", [(1, 143), (2, 137)])
def test_an_interrupt_ends_the_command(box, start, interrupts, status):
    command = "echo up; exec sleep 1000" if interrupts == 1 else \
        "trap 'echo no' TERM; echo up; while :; do sleep 0.05; done"
    live = start("exec", command, "--name", f"interrupted-{interrupts}")
    assert live.process.stdout.readline() == b"up\n"
    live.process.send_signal(signal.SIGINT)
    if interrupts == 2:
        assert live.process.stdout.readline() == b"no\n"
        live.process.send_signal(signal.SIGINT)
    live.end(status)
    process = box.sandbox.request("GET", f"/process/interrupted-{interrupts}").json()
    assert process["status"] in ("stopped", "killed")


def test_attach_and_follow(box, start):
    box.sandbox.spawn("echo early; read line; echo $line >&2; exit 6", name="joined", stdin=True)
    follower = start("logs", "joined", "-f")
    assert follower.process.stdout.readline() == b"early\n"
    live = start("attach", "joined", "-i", stdin=subprocess.PIPE)
    assert live.process.stdout.readline() == b"early\n"
    out, err = live.process.communicate(b"late\n", timeout=60)
    assert (out, err, live.process.returncode) == (b"", b"late\n", 6)
    assert follower.end(0) == (b"", b"late\n")
    assert start("attach", "joined", "--from", 3).end(6) == (b"ly\n", b"late\n")
    assert start("attach", "nobody").end(3)[0] == b""


def test_leaving_an_attached_process(box, start):
    box.sandbox.spawn("echo here; exec sleep 1000", name="stays")
    live = start("attach", "stays")
    assert live.process.stdout.readline() == b"here\n"
    live.process.send_signal(signal.SIGINT)
    live.end(-signal.SIGINT)
    assert box.sandbox.request("GET", "/process/stays").json()["status"] == "running"
    assert box("kill", "stays").returncode == 0


def test_a_restart_of_the_server_goes_unnoticed(server_factory):
    server = server_factory()
    sandbox = server.create()
    command = "i=0; while [ $i -lt 300 ]; do echo line $i; i=$((i+1)); sleep 0.005; done; exit 9"
    live = Running(server, sandbox, "exec", command)
    try:
        assert live.process.stdout.readline() == b"line 0\n"
        before = server.kill("cellad")
        server.wait_recovered(before, "cellad")
        out, _ = live.end(9)
        assert out == b"".join(b"line %d\n" % i for i in range(1, 300))
    finally:
        if live.process.poll() is None:
            live.process.kill()
            live.process.communicate()


def test_ports(box):
    box.sandbox.write("/tmp/listen.py", "import socket, time\n"
                      "s = socket.socket(); s.bind(('0.0.0.0', 4711)); s.listen(); time.sleep(1000)\n")
    answer = box.sandbox.request("POST", "/process", {"command": "python3 /tmp/listen.py",
                                                      "name": "listener", "waitForPorts": [4711]})
    assert answer.status == 200 and answer.json()["status"] == "running"
    lines = [line.split() for line in box("ports", "listener").stdout.splitlines()]
    assert lines == [["PORT", "PROTOCOL", "ADDRESS"], ["4711", "tcp", "0.0.0.0"]]
    assert json.loads(box("ports", "listener", "-o", "json").stdout)["ports"][0]["localPort"] == 4711
    assert box("kill", "listener").returncode == 0


def test_detached(box):
    pid = box("exec", "echo started; exec sleep 300", "--detach").stdout.strip()
    assert pid.isdigit()
    end = time.monotonic() + 10
    while box("logs", pid).stdout != "started\n":
        assert time.monotonic() < end
    rows = {line.split()[0]: line.split() for line in box("list").stdout.splitlines()}
    assert rows["PID"] == ["PID", "NAME", "STATUS", "EXIT", "STARTED", "COMMAND"]
    assert rows[pid][2:4] == ["running", "-"]
    assert any(str(process["pid"]) == pid
               for process in json.loads(box("list", "-o", "json").stdout))
    assert box("kill", pid).stdout == "Process killed successfully\n"
    ended = {line.split()[0]: line.split() for line in box("list").stdout.splitlines()}[pid]
    assert ended[2:4] == ["killed", "137"]


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
