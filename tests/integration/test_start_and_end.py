# SPDX-License-Identifier: Apache-2.0
"""A server that cannot start, and one that is told to end before it is ready: what an earlier one has left running."""

import os
import pathlib
import shutil
import signal
import subprocess
import tempfile

import pytest

from cella_server import PATIENCE, bin_dir, process_alive, wait_until


class Runner:
    """A sandbox with a command in it that goes on for as long as the sandbox does."""

    def __init__(self, server):
        self.box = server.create()
        self.init = self.box.init_start_time()
        self.pid = self.box.spawn("sleep 100000")

    def check(self):
        wait_until(lambda: self.box.status() == "running", 30, "it is running")
        assert self.box.init_start_time() == self.init
        assert self.box.exec(f"kill -0 {self.pid}").exit_code == 0


def crash(server):
    """Nobody is left but the sandboxes."""
    before = server.kill("supervisor")
    for pid in before:
        wait_until(lambda: not process_alive(pid), 10, f"{before} gone")


def start_in_vain(server, env=None):
    """`cella server` on the folder, which has to say that it could not start."""
    done = subprocess.run([server.bin / "cella", "server", "--data", server.data, "--listen", "127.0.0.1:0",
                           "--volume-size", "20G"], env={**os.environ, **(env or {})}, capture_output=True,
                          text=True, timeout=90 * PATIENCE, check=False)
    assert done.returncode not in (0, -signal.SIGKILL) and "could not start" in done.stderr, done
    return done.stderr


def cellad_refuses(server):
    assert "OTEL_EXPORTER_OTLP_PROTOCOL" in start_in_vain(
        server, {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", "OTEL_EXPORTER_OTLP_PROTOCOL": "pigeon"})


def warden_refuses(server):
    mode = server.data.stat().st_mode & 0o7777
    server.data.chmod(mode | 0o020)
    try:
        assert "writable by nobody else" in start_in_vain(server)
    finally:
        server.data.chmod(mode)


@pytest.mark.parametrize("fail", [cellad_refuses, warden_refuses])
def test_a_start_that_fails_leaves_sandboxes_alone(server_factory, fail):
    server = server_factory()
    runners = [Runner(server) for _ in range(2)]
    paused = server.create()
    assert paused.request("PUT", "/pause").status == 202
    paused.wait_status("paused")
    crash(server)
    fail(server)
    server.start()
    for runner in runners:
        runner.check()
    assert paused.status() == "paused"


def test_a_start_that_fails_leaves_nothing_behind(server_factory):
    server = server_factory()
    stopped = server.create().stop()
    server.stop()
    cellad_refuses(server)
    wait_until(lambda: not server.remains(), 30, lambda: f"{server.remains()} gone")
    server.start()
    assert stopped.start().exec("true").exit_code == 0
    stopped.delete()
    crash(server)  # what it has left is nobody's
    cellad_refuses(server)
    wait_until(lambda: not server.remains(), 30, lambda: f"{server.remains()} gone")


class HeldPrograms:
    """The programs, with a warden that does not begin until it is let go."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cella-held-", dir="/tmp"))
        self.folder.chmod(0o755)
        for name in ("cella", "cella-agent", "cella-egress"):
            shutil.copy2(bin_dir() / name, self.folder / name)
        self.gate = self.folder / "gate"
        os.mkfifo(self.gate)
        warden = self.folder / "cella-warden"
        warden.write_text(f'#!/bin/sh\nread -r go <"{self.gate}"\nexec "{bin_dir()}/cella-warden" "$@"\n')
        warden.chmod(0o755)

    def let_go(self):
        self.gate.write_text("go\n")

    def remove(self):
        shutil.rmtree(self.folder)


@pytest.fixture
def held():
    made = HeldPrograms()
    yield made
    made.remove()


def cellad_of(supervisor):
    """Its pid, once it would notice a SIGTERM; None before."""
    for pid in pathlib.Path(f"/proc/{supervisor}/task/{supervisor}/children").read_text().split():
        status = dict(line.split(":\t", 1) for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines())
        if status["Name"] == "cellad" and int(status["SigBlk"], 16) & 1 << (signal.SIGTERM - 1):
            return int(pid)
    return None


def end_before_ready(server, held, *args):
    """Starts it again, and has it end while it waits for its warden."""
    server.log_path.write_text("")
    with open(server.log_path, "ab") as log:
        process = subprocess.Popen([held.folder / "cella", "server", "--data", server.data, "--listen", "127.0.0.1:0",
                                    "--volume-size", "20G", *args], stdout=log, stderr=log, start_new_session=True)
    try:
        wait_until(lambda: cellad_of(process.pid), 30, "cellad")
        process.send_signal(signal.SIGTERM)
        wait_until(lambda: "stopping: sandboxes" in server.log(), 30, "the end begins")
        held.let_go()
        assert process.wait(60 * PATIENCE) == 0, server.log()
        assert "Cella is listening" not in server.log()
    finally:
        process.kill()
        process.wait()


def test_an_end_before_it_is_ready_keeps_sandboxes_if_it_is_to(server_factory, held):
    server = server_factory()
    runner = Runner(server)
    crash(server)
    end_before_ready(server, held, "--keep-sandboxes")
    server.start()
    runner.check()


def test_an_end_before_it_is_ready_stops_sandboxes(server_factory, held):
    server = server_factory()
    runner = Runner(server)
    crash(server)
    end_before_ready(server, held)
    wait_until(lambda: not server.remains(), 30, lambda: f"{server.remains()} gone")
    server.start()
    assert runner.box.status() == "stopped"
    said = [event["message"] for event in runner.box.get()["events"]]
    assert "Sandbox stopped because the server was shut down" in said, said


def test_an_option_that_does_not_fit_is_named():
    """Instead of starting without it, or with half of it."""
    with tempfile.TemporaryDirectory(prefix="cella-test-") as folder:
        os.chmod(folder, 0o755)
        done = subprocess.run([bin_dir() / "cella", "server", "--data", f"{folder}/data", "--listen", "127.0.0.1:0",
                               "--otlp-endpoint", "http://collector.example/" + 100000 * "x"],
                              capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    assert done.returncode == 2, done.stderr[-500:]
    assert "--otlp-endpoint does not fit" in done.stderr and "98304 bytes" in done.stderr
