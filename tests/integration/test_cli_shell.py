# SPDX-License-Identifier: Apache-2.0
"""`cella shell`, by somebody who sits at a real terminal."""

import contextlib
import fcntl
import hashlib
import os
import pty
import select
import signal
import socket
import struct
import subprocess
import termios
import threading
import time
import urllib.parse

import pytest

from cella_processes import JOB
from cella_server import PATIENCE, wait_until

DEADLINE = 30


class Seat:
    """A terminal with `cella shell` on it: what it shows is in .seen (bytes)."""

    def __init__(self, server, *args, cols=90, rows=30):
        self.master, tty = pty.openpty()
        self.tty = os.ttyname(tty)
        self.resize(cols, rows)
        self.before = termios.tcgetattr(tty)
        env = {k: v for k, v in os.environ.items() if not k.startswith("CELLA_")}
        self.process = subprocess.Popen(
            [server.bin / "cella", "--data", server.data, *map(str, args)], stdin=tty, stdout=tty,
            stderr=tty, env=env, start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0))
        self.slave = tty  # kept open: so its settings can be looked at afterwards
        self.seen = b""

    def resize(self, cols, rows):
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, cols, 0, 0))

    def type(self, text):
        data = text if isinstance(text, bytes) else text.encode()
        while data:
            data = data[os.write(self.master, data):]

    def look(self, timeout):
        ready, _, _ = select.select([self.master], [], [], timeout)
        if ready:
            self.seen += os.read(self.master, 65536)
        return bool(ready)

    def await_(self, text):
        end = time.monotonic() + DEADLINE * PATIENCE
        while text not in self.seen:
            assert time.monotonic() < end, f"{text!r} did not come: {self.seen[-2000:]!r}"
            self.look(0.1)

    def end(self):
        """Its exit status, at its end."""
        wait_until(lambda: self.look(0.01) or self.process.poll() is not None, DEADLINE,
                   lambda: f"its end: {self.seen[-500:]!r}")
        end = time.monotonic() + DEADLINE * PATIENCE
        while self.process.poll() is None:
            assert time.monotonic() < end, f"it does not end: {self.seen[-2000:]!r}"
            self.look(0.05)
        while self.look(0):
            pass
        return self.process.returncode

    def restored(self):
        return termios.tcgetattr(self.slave) == self.before

    def close(self):
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.slave)
        os.close(self.master)


@pytest.fixture
def seat(server, shared_sandbox):
    """seat(*args) runs `cella shell SANDBOX *args` at a terminal of its own."""
    made = []

    def make(*args, sandbox=shared_sandbox, of=server, verb=None, **kwargs):
        words = verb or ("shell", sandbox.name)
        made.append(Seat(of, *words, *args, **kwargs))
        return made[-1]

    yield make
    for one in made:
        one.close()
    for session in sessions(server, shared_sandbox):
        server.request("DELETE", f"/v0/sandbox/{shared_sandbox.name}/terminal/{session}")


def sessions(server, sandbox):
    answer = server.request("GET", f"/v0/sandbox/{sandbox.name}/terminal/sessions")
    return [item["sessionId"] for item in answer.json()["sessions"]]


def prompt(one):
    """Gives the shell a prompt that cannot be mistaken, and waits for it."""
    one.type("PS1='rea''dy> '\n")
    one.await_(b"ready> ")
    one.seen = b""


# --- a terminal ---

def test_a_terminal(seat):
    one = seat("--shell", "/bin/bash")
    prompt(one)
    one.type("tty; stty size; id -un; pwd\n")
    one.await_(b"30 90\r\nroot\r\n/workspace\r\n")
    assert b"/dev/pts/" in one.seen
    assert not one.restored()  # keys go through one by one
    one.resize(120, 40)
    one.type("\n")
    wait_until(lambda: one.type("stty size\n") or one.look(0.2) and b"40 120\r\n" in one.seen, 20,
               "the new size")
    one.type("exit 23\n")
    assert one.end() == 23
    assert one.restored()


def test_the_other_spelling_and_options(seat, shared_sandbox):
    one = seat("--user", "nobody", "--working-dir", "/tmp", "-e", "COLOUR=blue", "--", "sh", "-c",
               "echo $(id -un) $(pwd) $COLOUR '$0'; exit 4",
               verb=("run", shared_sandbox.name, "shell"))
    assert one.end() == 4
    assert b"nobody /tmp blue $0\r\n" in one.seen


def test_job_control(seat):
    one = seat("--shell", "/bin/bash")
    prompt(one)
    one.type("bash -c 'echo be\"\"gins; exec sleep 1000'\n")
    one.await_(b"begins\r\n")
    one.seen = b""
    one.type("\x03")
    one.await_(b"ready> ")
    one.seen = b""
    one.type(JOB)
    one.await_(b"second\r\n")
    one.type("\x1a")
    one.await_(b"Stopped")
    one.type("fg\n")
    one.await_(b"resumed\r\n")
    one.seen = b""
    one.type("\x03")
    one.await_(b"ready> ")
    one.type("echo sta''tus $?; exit\n")
    one.await_(b"status 130\r\n")
    assert one.end() == 0 and one.restored()


def test_full_screen_bytes(seat):
    """What an editor sends and gets: every byte as it is."""
    one = seat("--", "sh", "-c",
               "stty raw -echo; printf ready; head -c 256 | od -An -v -tx1 | tr -d ' \\n'; "
               "printf '\\033[?1049h\\033[2J\\033[1;1H\\000\\001\\377\\200\\r~\\tend'; stty sane")
    one.await_(b"ready")
    one.type(bytes(range(256)))
    one.await_(b"end")
    assert bytes(range(256)).hex().encode() in one.seen
    assert b"\033[?1049h\033[2J\033[1;1H\x00\x01\xff\x80\r~\tend" in one.seen
    assert one.end() == 0


def test_detach_and_come_back(seat, server, shared_sandbox):
    one = seat("--session", "desk")
    one.type("echo to be se''en again\n")
    one.await_(b"to be seen again\r\n")
    one.type("~?")
    one.await_(b"detach; the session goes on")
    one.type("~.")
    assert one.end() == 0 and one.restored()
    assert b"cella shell " in one.seen and b"--session desk" in one.seen
    assert sessions(server, shared_sandbox) == ["desk"]
    listed = server.cli("run", shared_sandbox.name, "terminal", "list")
    assert listed.returncode == 0 and "desk" in listed.stdout
    again = seat("--session", "desk")
    again.await_(b"to be seen again\r\n")
    again.type("echo ~~; exit\n")
    again.await_(b"~")
    assert again.end() == 0
    closed = server.cli("run", shared_sandbox.name, "terminal", "close", "nobodys")
    assert closed.returncode == 3, closed


def test_it_is_closed_elsewhere(seat, server, shared_sandbox):
    one = seat("--session", "brief", "--", "cat")
    one.type("here\n")
    one.await_(b"here\r\nhere\r\n")
    done = server.cli("run", shared_sandbox.name, "terminal", "close", "brief")
    assert done.returncode == 0, done
    assert one.end() == 128 + signal.SIGHUP
    assert b"the session was closed" in one.seen and one.restored()


@pytest.mark.parametrize("name", ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"])
def test_signals_restore_the_terminal(seat, server, shared_sandbox, name):
    number = getattr(signal, name)
    one = seat("--", "cat")
    one.type("here\n")
    one.await_(b"here\r\nhere\r\n")
    one.process.send_signal(number)
    assert one.end() == 128 + number
    assert one.restored()
    assert sessions(server, shared_sandbox) == []  # nobody gave it a name


def test_what_cannot_work(seat, server, shared_sandbox):
    for args, status, text in [
            (("shell", "no-such-sandbox"), 3, b"no-such-sandbox"),
            (("shell", shared_sandbox.name, "--shell", "/no/such"), 2, b"/no/such"),
            (("shell", shared_sandbox.name, "--user", "nobody-at-all"), 2, b"nobody-at-all"),
            (("shell", shared_sandbox.name, "--session", "a b"), 2, b"sessionId")]:
        one = seat(verb=args)
        assert one.end() == status and text in one.seen and one.restored(), one.seen


def test_without_a_terminal(server, shared_sandbox):
    """Input is typed as it comes, and Ctrl-D at its end."""
    done = server.cli("shell", shared_sandbox.name, "--shell", "/bin/sh",
                      input="stty size\necho $((6 * 7))\nexit 9\n")
    assert done.returncode == 9 and "42\n" in done.stdout and "24 80" in done.stdout, done
    done = server.cli("shell", shared_sandbox.name, "--", "cat", input="to the end\n")
    assert done.returncode == 0 and done.stdout.count("to the end") == 2, done
    with open(os.devnull) as nothing:
        env = {k: v for k, v in os.environ.items() if not k.startswith("CELLA_")}
        run = subprocess.run([server.bin / "cella", "--data", server.data, "shell",
                              shared_sandbox.name, "--", "echo", "no input"], stdin=nothing,
                             capture_output=True, timeout=60 * PATIENCE, env=env)
    assert run.returncode == 0 and run.stdout == b"no input\r\n", run


def test_a_lot_of_input(server, shared_sandbox):
    """A paste that is larger than everything on the way to a program that takes its time."""
    text = "".join(f"line {i}\n" for i in range(30000))
    done = server.cli("shell", shared_sandbox.name, "--",
                      "stty raw -echo; sleep 0.3; head -c %d | sha256sum" % len(text), input=text)
    assert hashlib.sha256(text.encode()).hexdigest() in done.stdout, done


# --- connections that are lost ---

def test_cellad_is_killed(seat, server_factory):
    """Nobody notices: no output is lost or comes twice, nor does any key."""
    server = server_factory()
    sandbox = server.create()
    one = seat("--", "sh", "-c",
               "stty -echo; echo ready; i=0; while read x; do i=$((i + 1)); echo $i: $x; done",
               sandbox=sandbox, of=server)
    one.await_(b"ready\r\n")
    for i in range(60):
        if i in (15, 40):
            killed = server.pids().cellad
            os.kill(killed, signal.SIGKILL)
            wait_until(lambda: server.pids().cellad not in (killed, None), 30, "a new cellad")
        one.type(f"word{i}\n")
        one.look(0.01)
    one.await_(b"60: word59\r\n")
    shown = [line for line in one.seen.split(b"\r\n") if b": word" in line]
    assert shown == [b"%d: word%d" % (i + 1, i) for i in range(60)], one.seen
    assert b"the connection was lost" in one.seen
    one.type("\x04")
    assert one.end() == 0 and one.restored()
    sandbox.delete()


class Between:
    """Stands between a client and a server: .url. hold() keeps back what the server says, cut() ends
    what is open and lets the next connections through."""

    def __init__(self, server):
        self.to = urllib.parse.urlsplit(server.url)
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.open, self.silent = [], threading.Event()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                pair = self.listener.accept()[0], socket.create_connection((self.to.hostname, self.to.port))
                self.open += pair
                for source, sink, silent in ((*pair, None), (*reversed(pair), self.silent)):
                    threading.Thread(target=self._pass, args=(source, sink, silent), daemon=True).start()

    @staticmethod
    def _pass(source, sink, silent):
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if silent and silent.is_set():
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def hold(self):
        self.silent.set()

    def cut(self):
        self.silent = threading.Event()  # for those that come; what is held stays so
        for sock in self.open:
            with contextlib.suppress(OSError):
                sock.shutdown(socket.SHUT_RDWR)

    def close(self):
        self.listener.close()
        self.cut()


def test_keys_that_arrived_unnoticed_are_not_typed_again(seat, server, shared_sandbox):
    """The session has them, but the connection breaks before it can say so."""
    with contextlib.closing(Between(server)) as between:
        one = seat("--url", between.url, "--api-key", server.key, "--", "sh", "-c",
                   "stty -echo; echo ready; while read x; do echo $x >> /tmp/typed; done")
        one.await_(b"ready\r\n")
        between.hold()
        one.type("once\n")
        wait_until(lambda: shared_sandbox.exec("cat /tmp/typed").stdout == "once\n", DEADLINE, "the word")
        between.cut()
        one.await_(b"the connection was lost")
        one.type("after\n\x04")
        assert one.end() == 0
        assert shared_sandbox.run("cat /tmp/typed") == "once\nafter"


def test_the_sandbox_stops(seat, server):
    sandbox = server.create()
    one = seat("--", "trap '' TERM HUP; echo ready; while :; do sleep 0.05; done", sandbox=sandbox)
    one.await_(b"ready\r\n")
    sandbox.stop()
    assert one.end() != 0
    assert one.restored()
    sandbox.delete()


def test_sigstop_and_back(seat):
    """Suspended from outside, the terminal is the other program's; back, it is raw again."""
    one = seat("--", "cat")
    wait_until(lambda: not one.restored(), DEADLINE, "raw")  # before, this terminal echoes too
    one.type("here\n")
    one.await_(b"here\r\nhere\r\n")
    one.process.send_signal(signal.SIGTSTP)
    wait_until(one.restored, DEADLINE, "restored")
    one.process.send_signal(signal.SIGCONT)
    wait_until(lambda: not one.restored(), DEADLINE, "raw again")
    one.type("back\n\x04")
    assert one.end() == 0 and b"back\r\nback\r\n" in one.seen
    with contextlib.suppress(ProcessLookupError):
        one.process.send_signal(signal.SIGCONT)
