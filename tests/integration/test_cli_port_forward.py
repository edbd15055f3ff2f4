# SPDX-License-Identifier: Apache-2.0
"""`cella port-forward`: ports of this machine that lead into a sandbox."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import threading

import pytest

from cella_server import PATIENCE, wait_until

ECHO = """
import socketserver, sys
class Echo(socketserver.BaseRequestHandler):
    def handle(self):
        while data := self.request.recv(65536):
            self.request.sendall(data.upper())
        self.request.sendall(b"END")
socketserver.ThreadingTCPServer.allow_reuse_address = True
socketserver.ThreadingTCPServer.request_queue_size = 200
socketserver.ThreadingTCPServer(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()
"""


@pytest.fixture(scope="module")
def echo(server):
    box = server.create()
    box.write("/tmp/echo.py", ECHO)
    box.spawn("exec python3 /tmp/echo.py 7000")
    probe = "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 7000))\""
    wait_until(lambda: box.exec(probe).exit_code == 0, 20, "the echo program")
    yield box
    box.delete()


@contextlib.contextmanager
def forward(server, *args):
    """The command at work: .ports (local ports), .stop() → (exit status, stderr)."""
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CELLA_")}
    process = subprocess.Popen([server.bin / "cella", "--data", server.data, "port-forward", *args],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=clean)

    def stop(sig=signal.SIGINT):
        process.send_signal(sig)
        _, errors = process.communicate(timeout=30 * PATIENCE)
        return process.returncode, errors

    try:
        process.ports = []
        for line in process.stdout:
            if match := re.match(r"Forwarding \S+:(\d+) to port", line):
                process.ports.append(int(match.group(1)))
            else:
                break
        process.stop = stop
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def talk(port, data, host="127.0.0.1"):
    """Sends everything, ends its direction, and reads to the end."""
    with socket.create_connection((host, port), timeout=30) as sock:
        got = []

        def read():
            with contextlib.suppress(OSError):  # what is missing is seen by what was got
                got.extend(iter(lambda: sock.recv(65536), b""))

        reader = threading.Thread(target=read)
        reader.start()
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)
        reader.join()
    return b"".join(got)


def test_both_ways_with_half_close(server, echo):
    with forward(server, echo.name, "0:7000") as at_work:
        assert talk(at_work.ports[0], b"hello") == b"HELLOEND"
        big = b"x" * (5 << 20)
        assert talk(at_work.ports[0], big) == big.upper() + b"END"
        assert at_work.stop() == (0, "")


def test_many_at_once(server, echo):
    with forward(server, echo.name, "0:7000") as at_work:
        socks = [socket.create_connection(("127.0.0.1", at_work.ports[0]), timeout=30)
                 for _ in range(60)]
        for i, sock in enumerate(socks):
            sock.sendall(b"n%d" % i)
        for i, sock in enumerate(socks):
            assert sock.recv(100) == b"N%d" % i
        assert at_work.stop()[0] == 0  # with all of them open
        for sock in socks:
            with contextlib.suppress(ConnectionResetError):
                while sock.recv(100):
                    pass
            sock.close()


def test_several_ports_and_sigterm(server, echo):
    with forward(server, echo.name, "0:7000", "0:7000") as at_work:
        assert len(set(at_work.ports)) == 2
        assert {talk(port, b"x") for port in at_work.ports} == {b"XEND"}
        assert at_work.stop(signal.SIGTERM)[0] == 0


def test_nothing_listens_there(server, echo):
    with forward(server, echo.name, "0:7999") as at_work:
        assert talk_quietly(at_work.ports[0]) == b""
        status, errors = at_work.stop()
    assert status == 0
    assert "nothing listens on port 7999" in errors and echo.name in errors


def talk_quietly(port):
    """As talk(), to somebody who may hang up at any moment."""
    with contextlib.suppress(OSError):
        return talk(port, b"x")
    return b""


def test_ipv6_and_json(server, echo):
    clean = {k: v for k, v in os.environ.items() if not k.startswith("CELLA_")}
    with subprocess.Popen([server.bin / "cella", "--data", server.data, "-o", "json", "port-forward",
                           echo.name, "0:7000", "--address", "::1"],
                          stdout=subprocess.PIPE, text=True, env=clean) as process:
        try:
            told = json.loads(process.stdout.readline())["forwards"][0]
            assert (told["address"], told["port"]) == ("::1", 7000)
            assert talk(told["localPort"], b"six", "::1") == b"SIXEND"
        finally:
            process.send_signal(signal.SIGINT)
        assert process.wait(30 * PATIENCE) == 0


@pytest.mark.parametrize("spec", ["x", "0", "70000", "1:0", "1:2:3", ":80", "80:", "-1", "1:70000", ""])
def test_bad_ports(server, echo, spec):
    done = server.cli("port-forward", "--", echo.name, spec)
    assert done.returncode == 2, done
    assert "[LOCAL:]REMOTE" in done.stderr or "PORT" in done.stderr


def test_no_such_sandbox(server):
    done = server.cli("port-forward", "nobody", "0:80")
    assert done.returncode == 3 and "nobody" in done.stderr


def test_port_in_use(server, echo):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        done = server.cli("port-forward", echo.name, f"{taken.getsockname()[1]}:7000")
    assert done.returncode == 4 and "in use" in done.stderr
