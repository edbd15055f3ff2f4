# SPDX-License-Identifier: Apache-2.0
"""`cella sandbox metrics` and `cella top`, into pipes and on terminals."""

import contextlib
import fcntl
import json
import os
import pty
import re
import signal
import struct
import termios

import pytest

from cella_server import wait_until

CLEAN = {k: v for k, v in os.environ.items() if not k.startswith(("CELLA_", "LC_", "LANG"))}


@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    wait_until(lambda: made.request("GET", "/metrics").json()["metrics"]["cpu"], 30, "a figure")
    yield made
    made.delete()


class Terminal:
    """A command on a terminal of its own, 100 columns wide."""

    def __init__(self, server, *args, rows=24, **env):
        self.shown = b""
        self.master, slave = pty.openpty()
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, 100, 0, 0))
        self.before = termios.tcgetattr(slave)
        self.slave = slave
        self.pid = os.posix_spawn(server.bin / "cella", ["cella", "--data", server.data, *args],
                                  {**CLEAN, **env}, setsid=True,
                                  file_actions=[(os.POSIX_SPAWN_DUP2, slave, fd) for fd in range(3)])
        os.set_blocking(self.master, False)

    def read(self):
        with contextlib.suppress(BlockingIOError, OSError):
            while chunk := os.read(self.master, 65536):
                self.shown += chunk
        return self.shown.decode()

    def type(self, keys):
        os.write(self.master, keys)

    def shows(self, text, what=None):
        wait_until(lambda: text in self.read(), 30, lambda: f"{what or text} in {self.shown!r}")

    def end(self):
        """Its exit status, once everything it wrote was read."""
        status = []

        def ended():
            self.read()
            pid, code = os.waitpid(self.pid, os.WNOHANG)
            status.append(code)
            return pid == self.pid

        try:
            wait_until(ended, 30, lambda: f"its end: {self.shown!r}")
        except AssertionError:
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            raise
        self.read()
        assert termios.tcgetattr(self.slave) == self.before, "the terminal is as it was"
        os.close(self.slave)
        os.close(self.master)
        return os.waitstatus_to_exitcode(status[-1])


def test_plain_numbers_into_a_pipe(server, box):
    done = server.cli("sandbox", "metrics", box.name, "--period", "1h", "--resolution", "60")
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].split() == ["TIME", "CPU", "MEMORY", "DISK"]
    assert len(lines) >= 2
    for line in lines[1:]:
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:00Z +(-|[0-9.e-]+) +\d+ +\d+", line), line


def test_json_is_the_servers(server, box):
    done = server.cli("sandbox", "metrics", box.name, "--resolution", "60", "--output", "json")
    answer = json.loads(done.stdout)
    assert (answer["period"], answer["resolution"]) == ("1h", 60)
    assert set(answer["metrics"]) == {"cpu", "memory", "disk"}


def test_mistakes(server, box):
    assert server.cli("sandbox", "metrics", "nobody").returncode == 3
    done = server.cli("sandbox", "metrics", box.name, "--period", "soon")
    assert done.returncode == 2 and "soon" in done.stderr


def test_a_chart_on_a_terminal(server, box):
    terminal = Terminal(server, "sandbox", "metrics", box.name, LANG="C.UTF-8")
    assert terminal.end() == 0
    text = terminal.shown.decode()
    for name in ("cpu", "memory", "disk"):
        line = next(line for line in text.splitlines() if line.startswith(name + " "))
        assert re.search("[▁▂▃▄▅▆▇█]", line) and len(line) <= 100
    assert "KiB" in text or "MiB" in text


def test_no_chart_where_it_would_not_show(server, box):
    terminal = Terminal(server, "sandbox", "metrics", box.name, LANG="C")
    assert terminal.end() == 0
    assert terminal.shown.isascii()


def test_top_into_a_pipe(server, box):
    for extra in ((), ("--once",), ("--sort", "name")):
        done = server.cli("top", *extra)
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert lines[0].split() == ["NAME", "STATUS", "CPU", "MEMORY", "DISK", "PROCESSES"]
        mine = next(line for line in lines if line.startswith(box.name + " "))
        assert "running" in mine and "%" in mine and "/ 1.0 GiB" in mine
    items = json.loads(server.cli("top", "-o", "json").stdout)["sandboxes"]
    assert box.name in [item["name"] for item in items]
    assert server.cli("top", "--interval", "0").returncode == 2


def test_top_on_a_terminal(server, box):
    terminal = Terminal(server, "top", "--interval", "1", LANG="C.UTF-8")
    terminal.shows(box.name)
    terminal.shows("by cpu")
    terminal.type(b"m")
    terminal.shows("by memory")
    count = terminal.read().count("\x1b[H")
    wait_until(lambda: terminal.read().count("\x1b[H") > count, 30, "drawn anew by itself")
    terminal.type(b"q")
    assert terminal.end() == 0
    assert terminal.shown.endswith(b"\x1b[?25h\x1b[?1049l")


@pytest.mark.parametrize("how", [b"\x03", signal.SIGTERM])
def test_top_puts_the_terminal_right(server, box, how):
    terminal = Terminal(server, "top")
    terminal.shows("\x1b[?1049h")
    terminal.shows(box.name)
    if isinstance(how, bytes):
        terminal.type(how)
    else:
        os.kill(terminal.pid, how)
    assert terminal.end() == 0
    assert terminal.shown.endswith(b"\x1b[?1049l")


def test_top_without_a_server(server, tmp_path):
    done = server.cli("top", env={"CELLA_URL": "http://127.0.0.1:1"})
    assert done.returncode == 0  # --data counts more
    done = server.cli("top", "--url", "http://127.0.0.1:1")
    assert done.returncode == 6, done
