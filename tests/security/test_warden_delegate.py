# SPDX-License-Identifier: Apache-2.0
"""WARDEN_DELEGATE: what an agent limits single commands with lets nobody touch anything else."""

import contextlib
import os
import pathlib
import socket
import struct
import subprocess
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wardenlib  # noqa: E402
import wirelib  # noqa: E402

V1 = pathlib.Path("/sys/fs/cgroup/memory/memory.limit_in_bytes").exists()
MEMORY, PIDS = 1, 2

pytestmark = [pytest.mark.skipif(os.geteuid() != 0, reason="needs root"),
              pytest.mark.skipif(not V1, reason="cgroup v2 hands no folders over")]


@pytest.fixture(scope="module")
def warden():
    with wardenlib.Warden() as warden:
        warden.start("box")
        yield warden
        warden.remove("box")
        assert warden.leaks() == []


def ask(warden, name, controller):
    """The folder's descriptor, or the name of the error."""
    with wirelib.Connection(warden.socket_path) as connection:
        request = connection.send("WARDEN_DELEGATE", id=name, controller=controller)
        data, fds, _, _ = socket.recv_fds(connection.sock, 12, 4)
        length, number, _, answered = struct.unpack("<IHHI", data)
        assert answered == request
        if number == wirelib.WIRE_OK:
            assert len(fds) == 1 and length == 0
            return fds[0]
        assert not fds
        _, message = wirelib.decode(number, connection._read(length))
        return {number: name for name, number in wardenlib.CODES.items()}[message["code"]]


def owner(folder):
    return os.stat(".", dir_fd=folder).st_uid


@contextlib.contextmanager
def folder_of(warden, controller):
    folder = ask(warden, "box", controller)
    assert isinstance(folder, int), folder
    try:
        yield folder
    finally:
        os.close(folder)


# As the sandbox's root, with its descriptor: what it can do to the folder and beyond.
ATTEMPT = """
import os, sys
folder = int(sys.argv[3])
os.setgroups([])
os.setgid(int(sys.argv[1]))
os.setuid(int(sys.argv[1]))
def can(what):
    try:
        what()
        return True
    except OSError:
        return False
def write(path, text):
    fd = os.open(path, os.O_WRONLY, dir_fd=folder)
    os.write(fd, text.encode())
os.mkdir("e1", dir_fd=folder)
limit = sys.argv[2]
assert can(lambda: write("e1/" + limit, "65536"))
for path in os.listdir(os.open('.', os.O_RDONLY, dir_fd=folder)):
    if path not in ("e1", "cgroup.event_control"):
        assert not can(lambda: write(path, "1")), path
assert os.path.samestat(os.stat("..", dir_fd=folder), os.stat(".", dir_fd=folder)), "it leaves the mount"
os.rmdir("e1", dir_fd=folder)
print("as it should be")
"""


@pytest.mark.parametrize("controller, limit", [(MEMORY, "memory.limit_in_bytes"), (PIDS, "pids.max")])
def test_only_groups_below_it(warden, controller, limit):
    with folder_of(warden, controller) as folder:
        assert owner(folder) > 65535
        done = subprocess.run(
            ["/usr/bin/python3", "-c", ATTEMPT, str(owner(folder)), limit, str(folder)],
            pass_fds=[folder], capture_output=True, text=True, timeout=60, check=False)
        assert done.stdout == "as it should be\n", done


def test_again_and_again(warden):
    with folder_of(warden, MEMORY) as one, folder_of(warden, MEMORY) as same, \
            folder_of(warden, PIDS) as other:
        assert os.stat(".", dir_fd=one).st_ino == os.stat(".", dir_fd=same).st_ino
        assert os.stat(".", dir_fd=one).st_dev != os.stat(".", dir_fd=other).st_dev


@pytest.mark.parametrize("name, controller, code", [
    ("box", 0, "INVALID_ARGUMENT"), ("box", 3, "INVALID_ARGUMENT"),
    ("box", 2 ** 63, "INVALID_ARGUMENT"), ("nobody", MEMORY, "NOT_RUNNING"),
    ("../box", MEMORY, "NOT_RUNNING"), (".", PIDS, "NOT_RUNNING"),
])
def test_bad_requests(warden, name, controller, code):
    assert ask(warden, name, controller) == code
