# SPDX-License-Identifier: Apache-2.0
"""`cella run NAME code` with files and pictures, and `cella code`, by somebody who sits at a real terminal."""

import fcntl
import os
import pty
import select
import subprocess
import termios
import time

import pytest

from cella_server import PATIENCE, wait_until

DEADLINE = 60


class Seat:
    """A terminal with `cella code` on it: what it shows is in .seen (bytes)."""

    def __init__(self, server, home, *args):
        self.master, self.slave = pty.openpty()
        fcntl.ioctl(self.slave, termios.TIOCSWINSZ, b"\x1e\0\x50\0\0\0\0\0")
        self.before = termios.tcgetattr(self.slave)
        env = {k: v for k, v in os.environ.items() if not k.startswith(("CELLA_", "XDG_"))}
        self.process = subprocess.Popen(
            [server.bin / "cella", "--data", server.data, *args], stdin=self.slave, stdout=self.slave, stderr=self.slave,
            env={**env, "HOME": str(home)}, start_new_session=True, preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.seen = b""

    def look(self, timeout):
        ready, _, _ = select.select([self.master], [], [], timeout)
        if ready:
            self.seen += os.read(self.master, 65536)
        return bool(ready)

    def await_(self, text):
        """Waits for it, and forgets what came before."""
        end = time.monotonic() + DEADLINE * PATIENCE
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} did not come: {self.seen[-2000:]!r}"
            self.look(0.1)
        self.seen = self.seen.split(text, 1)[1]

    def type(self, keys):
        os.write(self.master, keys)

    def end(self):
        """Its exit status. Somebody has to read what it shows, or it waits for that."""
        wait_until(lambda: self.look(0.01) or self.process.poll() is not None, DEADLINE, "its end")
        end = time.monotonic() + DEADLINE * PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end: {self.seen[-2000:]!r}"
            self.look(0.05)
        return self.process.returncode

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def seat(server, shared_sandbox, tmp_path):
    made = []

    def make(*args):
        made.append(Seat(server, tmp_path, "code", shared_sandbox.name, *args))
        return made[-1]

    yield make
    for one in made:
        one.close()


def test_a_conversation(seat):
    one = seat()
    one.await_(b">>> ")
    one.type(b"x = 20\r")
    one.await_(b">>> ")
    one.type(b"x * 2 + 3\x7f2\r")
    one.await_(b"\r\n42\r\n")
    one.type(b"def f(n):\r    return n + 1\r\r")
    one.await_(b"... ")
    one.type(b"f(\r5)\r")
    one.await_(b"\r\n6\r\n")
    one.type(b"1/0\r")
    one.await_(b"ZeroDivisionError")
    one.type(b"'one'\rprint('two')\r")  # as if pasted
    one.await_(b"'one'\r\n")
    one.await_(b"\r\ntwo\r\n")
    one.type(b"\x1b[A\x1b[D\x1b[D\x7f\x7f\x7ffour\r")  # the line before, changed
    one.await_(b"\r\nfour\r\n")
    one.await_(b">>> ")  # before, ^C is for what runs
    one.type(b"gone\x03")  # a line that is given up
    one.await_(b"^C\r\n")
    one.type(b"x\r")
    one.await_(b"\r\n20\r\n")
    one.type(b"\x04")
    assert one.end() == 0
    assert termios.tcgetattr(one.slave) == one.before


def test_ctrl_c_interrupts_what_runs_and_keeps_its_variables(seat):
    one = seat()
    one.await_(b">>> ")
    one.type(b"kept = 'kept'; import time\rprint('begun', flush=True); time.sleep(600)\r")
    one.await_(b"\r\nbegun\r\n")
    one.type(b"\x03")
    one.await_(b"KeyboardInterrupt")
    one.await_(b">>> ")
    one.type(b"kept\r")
    one.await_(b"\r\n'kept'\r\n")
    one.type(b"exit()\r")
    assert one.end() == 0


def test_lines_of_another_day(seat, tmp_path):
    one = seat("--language", "bash")
    one.await_(b"$ ")
    one.type(b"for i in 1 2; do\recho \"n$i\"\rdone\r")
    one.await_(b"\r\nn1\r\nn2\r\n")
    one.type(b"exit\r")
    assert one.end() == 0
    kept = tmp_path / ".local/state/cella/code-history"
    assert kept.read_text().splitlines() == ["for i in 1 2; do", "echo \"n$i\"", "done", "exit"]
    assert kept.stat().st_mode & 0o777 == 0o600
    again = seat("--language", "bash")
    again.await_(b"$ ")
    again.type(b"i=5\r")
    again.await_(b"$ ")
    again.type(b"\x10\x10\x10\x10\r")  # up to the echo
    again.await_(b"\r\nn5\r\n")
    again.type(b"\x04")
    assert again.end() == 0


def test_a_signal_leaves_the_terminal_as_it_was(seat):
    one = seat()
    one.await_(b">>> ")
    assert termios.tcgetattr(one.slave) != one.before
    one.process.terminate()
    assert one.end() == 143
    assert termios.tcgetattr(one.slave) == one.before


def test_files_and_pictures(server, shared_sandbox, tmp_path):
    def cli(*args, **kwargs):
        return server.cli("run", shared_sandbox.name, "code", *args, **kwargs)

    script = tmp_path / "script.js"
    script.write_text("const from = 'a file'; console.log(from, typeof require)")
    assert cli("--from-file", script).stdout == "a file function\n"
    script = tmp_path / "script.txt"
    script.write_text("echo $0 | wc -l; exit_with() { return 5; }; exit_with")
    done = cli("--from-file", script, "--language", "bash")
    assert (done.stdout, done.returncode) == ("1\n", 5)
    assert cli("--from-file", "-", input="40 + 2").stdout == "42\n"
    picture = "class P:\n  def _repr_png_(self): return b'\\x89PNG'\n  def _repr_svg_(self): return '<svg/>'\n  def __repr__(self): return 'P'\nP()"
    done = cli("--images", tmp_path, picture)
    assert done.stdout == f"P [png: {tmp_path}/image-1.png] [svg: {tmp_path}/image-1.svg]\n"
    assert (tmp_path / "image-1.png").read_bytes() == b"\x89PNG" and (tmp_path / "image-1.svg").read_text() == "<svg/>"
    cli("--images", tmp_path, picture)
    assert (tmp_path / "image-2.png").exists()
    assert cli(picture).stdout == "P [png] [svg]\n"
    assert "given twice" in cli("1", "--from-file", script).stderr
    assert cli("--from-file", tmp_path / "nowhere").returncode != 0
    assert cli("--images", tmp_path / "nowhere", picture).returncode != 0
    assert cli("import sys; sys.exit(7)").returncode == 7
