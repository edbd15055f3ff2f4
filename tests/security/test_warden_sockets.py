# SPDX-License-Identifier: Apache-2.0
"""WARDEN_SOCKET: sockets that live in a sandbox's network, and in no other."""

import os
import pathlib
import socket
import struct
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wardenlib  # noqa: E402
import wirelib  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

SO_NETNS_COOKIE = 71


@pytest.fixture(scope="module")
def warden():
    with wardenlib.Warden() as warden:
        warden.start("box")
        warden.start("other")
        yield warden
        for name in ("box", "other"):
            warden.remove(name)
        assert warden.leaks() == []


def ask(warden, name, family=4):
    """The socket, or the name of the error."""
    with wirelib.Connection(warden.socket_path) as connection:
        request = connection.send("WARDEN_SOCKET", id=name, family=family)
        data, fds, _, _ = socket.recv_fds(connection.sock, 12, 4)
        length, number, _, answered = struct.unpack("<IHHI", data)
        assert answered == request
        if number == wirelib.WIRE_OK:
            assert len(fds) == 1 and length == 0
            return socket.socket(fileno=fds[0])
        assert not fds
        _, message = wirelib.decode(number, connection._read(length))
        return {number: name for name, number in wardenlib.CODES.items()}[message["code"]]


def cookie(sock):
    return struct.unpack("Q", sock.getsockopt(socket.SOL_SOCKET, SO_NETNS_COOKIE, 8))[0]


@pytest.mark.parametrize("family", [4, 6])
def test_it_lives_in_the_sandbox(warden, family):
    with ask(warden, "box", family) as one, ask(warden, "box", family) as same, \
            ask(warden, "other", family) as other, socket.socket() as ours:
        assert one.family == (socket.AF_INET if family == 4 else socket.AF_INET6)
        assert one.type & socket.SOCK_STREAM
        assert cookie(one) == cookie(same)
        assert len({cookie(one), cookie(other), cookie(ours)}) == 3


def test_it_does_not_reach_the_host(warden):
    with socket.socket() as listener, ask(warden, "box") as sock:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        sock.settimeout(10)
        with pytest.raises(ConnectionRefusedError):
            sock.connect(listener.getsockname())


def test_it_reaches_what_listens_inside(warden):
    server = ("import socket; s = socket.create_server(('127.0.0.1', 7777)); c, _ = s.accept(); "
              "c.sendall(b'inside')")
    warden.spawn("box", f'exec python3 -c "{server}"')

    def reached():
        with ask(warden, "box") as sock:
            sock.settimeout(10)
            try:
                sock.connect(("127.0.0.1", 7777))
            except ConnectionRefusedError:
                return False
            assert sock.recv(100) == b"inside"
            return True

    wardenlib.wait_until(reached, "the program inside")


@pytest.mark.parametrize("name, family, error", [
    ("nobody", 4, "NOT_RUNNING"), ("../box", 4, "NOT_RUNNING"), ("box", 0, "INVALID_ARGUMENT"),
    ("box", 5, "INVALID_ARGUMENT"), ("box", 1 << 40, "INVALID_ARGUMENT"),
])
def test_what_cannot_be(warden, name, family, error):
    assert ask(warden, name, family) == error


def test_the_warden_stays_at_home(warden):
    """After many trips it is in its own namespace, and a sandbox that it starts has one of its own."""
    own = os.readlink(f"/proc/{warden.process.pid}/ns/net")
    for _ in range(200):
        ask(warden, "box").close()
    assert os.readlink(f"/proc/{warden.process.pid}/ns/net") == own == os.readlink("/proc/self/ns/net")
    pid = warden.start("third")["pid"]
    assert os.readlink(f"/proc/{pid}/ns/net") != own
    warden.remove("third")
