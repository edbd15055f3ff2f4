# SPDX-License-Identifier: Apache-2.0
"""kill -9 of each process of the server, and of all: sandboxes and what runs in them go on, and
whoever comes next finds them again."""

import os
import pathlib
import signal

import pytest

from cella_server import process_alive, wait_until

COUNTER = "i=0; while :; do echo $i; i=$((i+1)); sleep 0.02; done"

CHILDREN = [("cellad",), ("warden",), ("cellad", "warden")]
WITH_SUPERVISOR = [("supervisor",), ("supervisor", "warden", "cellad")]


class Witness:
    """A sandbox with a running counter and a file, and what they looked like before the crash."""

    def __init__(self, server):
        self.box = server.create()
        self.init = self.box.init_start_time()
        self.box.write("/workspace/kept", b"\x00kept\xff" * 1000)
        self.pid = self.box.spawn(COUNTER)
        self.seen = 0
        self.check_counter()

    def numbers(self):
        return [int(line) for line in self.box.logs(self.pid)["stdout"].split()]

    def check_counter(self):
        """It has gone on since the last look, and no line is missing or there twice."""
        wait_until(lambda: len(self.numbers()) > self.seen + 3, 10, "more lines of the counter")
        numbers = self.numbers()
        assert numbers == list(range(len(numbers)))
        self.seen = len(numbers)

    def check(self):
        assert self.box.status() == "running"
        assert self.box.init_start_time() == self.init
        assert self.box.read("/workspace/kept") == b"\x00kept\xff" * 1000
        self.check_counter()
        listed = {p["pid"]: p for p in self.box.request("GET", "/process").json()}
        assert listed[self.pid]["status"] == "running"

    def end(self):
        answer = self.box.request("POST", f"/process/{self.pid}/kill")
        assert answer.status == 200, answer
        assert self.box.exec("echo again").stdout == "again\n"
        self.box.delete()


def crash_and_recover(server, which):
    before = server.kill(*which)
    if "supervisor" in which:
        # Nobody is left to look after them: the other two go with the supervisor.
        for pid in before:
            wait_until(lambda: not process_alive(pid), 10, f"{before} gone")
        server.start()
    else:
        server.wait_recovered(before, *which)
        survivors = set(before._fields) - set(which)
        assert all(getattr(server.pids(), n) == getattr(before, n) for n in survivors)


@pytest.mark.parametrize("which", CHILDREN + WITH_SUPERVISOR, ids="+".join)
def test_running_sandboxes_survive(server_factory, which):
    server = server_factory()
    witnesses = [Witness(server) for _ in range(3)]
    stopped = server.create()
    stopped.write("/workspace/asleep", "zzz")
    stopped.stop()
    never_started = server.create(enabled=False)

    crash_and_recover(server, which)

    for witness in witnesses:
        witness.check()
    assert stopped.status() == "stopped"
    assert never_started.status() == "stopped"
    assert server.leaks() == ""

    stopped.start()
    assert stopped.read("/workspace/asleep") == b"zzz"
    fresh = server.create()
    assert fresh.exec("echo new").stdout == "new\n"
    for witness in witnesses:
        witness.end()
    for box in (stopped, never_started, fresh):
        box.delete()
    assert server.list() == []
    assert server.leaks() == ""


def test_crash_after_crash(server_factory):
    server = server_factory()
    witness = Witness(server)
    for which in CHILDREN + WITH_SUPERVISOR + CHILDREN:
        crash_and_recover(server, which)
        witness.check()
    witness.end()
    assert server.leaks() == ""


@pytest.mark.parametrize("which", [("cellad",), ("supervisor", "warden", "cellad")], ids="+".join)
def test_output_written_while_nobody_listens(server_factory, which):
    """A command that starts before the crash and ends during it leaves its output and status."""
    server = server_factory()
    box = server.create()
    pid = box.spawn("echo before; while [ ! -e /tmp/go ]; do sleep 0.01; done; sleep 0.3;"
                    " echo after; echo oops >&2; exit 7")
    box.write("/tmp/go", "")
    crash_and_recover(server, which)
    wait_until(lambda: box.request("GET", f"/process/{pid}").json()["status"] != "running", 10,
               "the end of the command")
    assert box.request("GET", f"/process/{pid}").json()["exitCode"] == 7
    logs = box.logs(pid)
    assert logs["stdout"] == "before\nafter\n"
    assert logs["stderr"] == "oops\n"
    box.delete()


def test_sandbox_that_ends_while_nobody_watches(server_factory):
    """Its pid 1 dies between two servers: the next one does not believe it is running."""
    server = server_factory()
    box = server.create()
    box.write("/workspace/f", "kept")
    init = host_pid_of_init(server, box)
    server.kill("supervisor", "warden", "cellad")
    os.kill(init, signal.SIGKILL)
    wait_until(lambda: not process_alive(init), 10, "pid 1 gone")
    server.start()
    wait_until(lambda: box.status() in ("stopped", "failed"), 20, lambda: box.get())
    assert server.leaks() == ""
    box.start()
    assert box.read("/workspace/f") == b"kept"
    box.delete()
    assert server.leaks() == ""


def test_pid_1_killed_from_outside(server_factory):
    """The server notices by itself, keeps the files, and starts it again when asked."""
    server = server_factory()
    box = server.create()
    box.write("/workspace/f", "kept")
    os.kill(host_pid_of_init(server, box), signal.SIGKILL)
    wait_until(lambda: box.status() in ("stopped", "failed"), 20, lambda: box.get())
    assert box.request("POST", "/process", {"command": "true"}).status == 409
    box.start()
    assert box.read("/workspace/f") == b"kept"
    box.delete()
    assert server.leaks() == ""


def host_pid_of_init(server, box):
    """Finds the sandbox's pid 1 outside, by its hostname's namespace: no one else has that UTS."""
    inside = box.run("readlink /proc/self/ns/pid")
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(entry / "ns/pid") != inside:
                continue
            status = (entry / "status").read_text()
        except OSError:
            continue
        if [line for line in status.splitlines() if line.startswith("NSpid:")][0].split()[-1] == "1":
            return int(entry.name)
    raise AssertionError("no pid 1 found")
