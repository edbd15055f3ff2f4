# SPDX-License-Identifier: Apache-2.0
"""Ways around the limits of a single command: by others that it starts, by memory that is counted
elsewhere, by what it would have to write to."""

import pathlib

import pytest

from cella_inside import USERS, command_of
from cella_server import wait_until


@pytest.fixture(scope="module")
def box(server):
    made = server.create(resources={"memory": "256Mi", "disk": "64Mi"})
    yield made
    made.delete()


def run_limited(box, source, user="root", timeout=60, **limits):
    answer = box.request("POST", "/process", {
        "command": command_of(box, source, user), "waitForCompletion": True, "timeout": timeout,
        "limits": limits}, timeout=timeout + 30)
    assert answer.status == 200, answer
    done = answer.json()
    if "stdout" not in done:
        done.update(box.logs(done["pid"]))
    return done


def is_well(box):
    assert box.exec("echo well", timeout=60).stdout == "well\n"
    assert box.status() == "running"


# A child of a child in a session of its own, whose parents are gone: an orphan of pid 1.
ORPHAN = """
import time
def orphan(work):
    r, w = os.pipe()
    if os.fork() == 0:
        os.setsid()
        if os.fork() == 0:
            os.close(r)
            work()
            os._exit(0)
        os._exit(0)
    os.wait()
    os.close(w)
    return r
"""


@pytest.mark.parametrize("user", USERS)
def test_memory_of_orphans_counts(box, user):
    done = run_limited(box, ORPHAN + """
def eat():
    kept = []
    while True:
        kept.append(bytearray(b'x' * (1 << 20)))
os.read(orphan(eat), 1)  # its end
print('alone')
time.sleep(60)
""", user, memory="48Mi")
    assert done["reason"] == "MEMORY_LIMIT", done
    is_well(box)


@pytest.mark.parametrize("user", USERS)
def test_processes_of_orphans_count(box, user):
    done = run_limited(box, ORPHAN + """
def multiply():
    while True:
        if quiet(os.fork) == 'EAGAIN':
            print('full', flush=True)
            time.sleep(60)
orphan(multiply)
time.sleep(60)
""", user, processes=12)
    assert done["reason"] == "PROCESS_LIMIT", done
    wait_until(lambda: int(box.run("ls -d /proc/[0-9]* | wc -l")) < 12, 30, "few processes")
    is_well(box)


@pytest.mark.parametrize("user", USERS)
def test_buffers_of_connections_count(server, box, user):
    """With v1 they are counted apart, in each group on its own."""
    done = run_limited(box, """
import socket
server = socket.create_server(('127.0.0.1', 0), backlog=1000)
kept, total = [], 0
try:
    for _ in range(200):
        a = socket.create_connection(server.getsockname())
        kept += [a, server.accept()[0]]
        a.setblocking(False)
        try:
            while True:
                total += a.send(bytes(65536))
        except BlockingIOError:
            pass
except OSError:
    pass
print(total, flush=True)
""", user, memory="64Mi")
    assert done["reason"] == "MEMORY_LIMIT" or int(done["stdout"].split()[-1]) < 120 << 20, done
    is_well(box)


@pytest.mark.parametrize("user", USERS)
def test_limits_are_not_within_reach(box, user):
    """There is no file to write to, and no limit of open files that could be raised again."""
    done = run_limited(box, """
import resource
def raised(limit):
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
        return True
    except (ValueError, OSError):
        return False
print(raised(4096), raised(65), raised(64))
print(any(name in ('tasks', 'cgroup.procs', 'memory.max', 'memory.limit_in_bytes')
          for folder, _, names in os.walk('/sys/fs/cgroup') for name in names))
print(open('/proc/self/cgroup').read().count('..'))
""", user, memory="64Mi", processes=20, openFiles=64)
    assert done["stdout"].splitlines() == ["False False True", "False", "0"], done


def test_output_of_everybody_counts(box):
    """By both streams, by orphans, and through /proc: it is the same pipe."""
    done = run_limited(box, ORPHAN + """
def write():
    fd = os.open('/proc/self/fd/1', os.O_WRONLY)
    while True:
        os.write(fd, b'x' * 1000)
orphan(write)
while True:
    os.write(2, b'y' * 1000)
""", output=20000)
    assert done["reason"] == "OUTPUT_LIMIT", {**done, "stdout": "", "stderr": ""}
    assert len(done["stdout"]) + len(done["stderr"]) <= 20000
    is_well(box)


def test_nothing_is_left_of_many(server, box):
    """Groups go with their commands, however those ended."""
    for number in range(12):
        run_limited(box, "os._exit(3)" if number % 2 else "os.kill(os.getpid(), 9)",
                    memory="32Mi", processes=8)
    name = f"cella-{server.instance}/{box.get()['metadata']['id']}"

    def groups():
        return [str(path) for tree in ("memory", "pids")
                for path in pathlib.Path("/sys/fs/cgroup", tree, name, "limits").glob("*/")]

    wait_until(lambda: len(groups()) <= 2, 60, groups)
