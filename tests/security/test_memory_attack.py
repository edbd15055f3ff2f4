# SPDX-License-Identifier: Apache-2.0
"""One key tries to take all of cellad's memory: many requests at a time whose answers are large and are not read,
bodies that are large and slow. What its requests hold is bounded, the rest is refused with 429 or 503 and
Retry-After, others are served meanwhile, and afterwards the memory goes back to the system."""

import contextlib
import pathlib
import select
import socket
import struct
import threading

import pytest

from cella_server import wait_until
from cella_websocket import WebSocket

UNREAD = 48  # connections at a time
PEAK = 200 << 20
AFTER = 50 << 20
FILES = 30000


def held(pid):
    """Anonymous memory of a process that is resident, in bytes."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(text.split("RssAnon:")[1].split()[0]) << 10


class Watch:
    """Samples the memory of cellad while a block runs; .peak is the most that was seen."""

    def __init__(self, server):
        self.pid = server.pids().cellad
        self.peak = held(self.pid)
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run)

    def _run(self):
        while not self._end.wait(0.01):
            self.peak = max(self.peak, held(self.pid))

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        self._end.set()
        self._thread.join()
        self.peak = max(self.peak, held(self.pid))


FILL = f"""
import os
os.makedirs("/tmp/many")
for i in range({FILES}):
    os.close(os.open("/tmp/many/" + "n" * 200 + "%06d" % i, os.O_CREAT | os.O_WRONLY))
for i in range(200):
    os.makedirs("/tmp/tree/" + "d" * 200 + "%04d" % i)
    for j in range(50):
        os.close(os.open("/tmp/tree/" + "d" * 200 + "%04d/" % i + "f" * 200 + "%d" % j, os.O_CREAT | os.O_WRONLY))
open("/tmp/large", "w").write("x" * (15 << 20))
"""


@pytest.fixture(scope="module")
def victim():
    """A server with a sandbox that holds much, and a key of an attacker beside the server's own."""
    from cella_server import Server  # pylint: disable=import-outside-toplevel
    server = Server("--server-memory", "600Mi")
    try:
        server.box = server.create("box", resources={"disk": "2Gi"})
        assert server.box.python(FILL, timeout=120).exit_code == 0
        padding = "#" * (100 << 10)
        for i in range(120):
            server.box.spawn(f"true {padding}{i}")
        for i in range(8):
            server.box.exec("yes 'a line of the log, and then the next one' | head -c 2000000")
        spec = {"enabled": False, "env_vars": {f"E{n}": "e" * 900 for n in range(60)}}
        for i in range(100):
            labels = {f"label-{n}": "v" * 200 for n in range(60)}
            answer = server.request("POST", "/v0/sandbox", {"metadata": {"name": f"idle-{i}", "labels": labels}, "spec": spec})
            assert answer.status == 202, answer
        answer = server.request("POST", "/v0/workspaces/default/api-keys", {"name": "attacker", "scopes": ["read", "write"]})
        assert answer.status == 201, answer
        server.attacker = answer.json()["secret"]
        yield server
    finally:
        server.close()


def unread(server, stack, target, method="GET", body=b"", fields=()):
    """A connection that asks, and reads nothing; its receive buffer is as small as the kernel lets it be."""
    sock = stack.enter_context(contextlib.closing(socket.socket()))
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    host, port = server.url.split("//")[1].split(":")
    sock.connect((host, int(port)))
    lines = [f"{method} {target} HTTP/1.1", "Host: x", f"Authorization: Bearer {server.attacker}", *fields]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    with contextlib.suppress(BlockingIOError):
        sock.setblocking(False)
        sock.sendall("\r\n".join([*lines, "", ""]).encode() + body)
    return sock


def answered(socks, deadline=120):
    """Waits until each of them has the beginning of an answer; gives status and head of each."""
    def heads():
        found = []
        for sock in socks:
            if not select.select([sock], [], [], 0)[0]:
                return None
            try:
                found.append(sock.recv(1024, socket.MSG_PEEK))
            except ConnectionError:
                found.append(b"")
        return found

    got = wait_until(heads, deadline, "an answer on each connection")
    return [(int(head[9:12] or 0), head) for head in got]


def check_refusals(heads):
    for status, head in heads:
        assert status in (200, 429, 503), head
        if status != 200 and b"LIMIT_EXCEEDED" not in head:  # 32 operations on one sandbox's files at a time
            assert b"Retry-After: " in head, head


def check_calm(server):
    """The others are served, and the memory comes back."""
    pid = server.pids().cellad
    wait_until(lambda: held(pid) < AFTER, 60, lambda: f"less than {AFTER >> 20} MiB, it is {held(pid) >> 20} MiB")


def check_others(server):
    assert server.request("GET", "/v0/whoami").status == 200
    assert server.request("GET", server.box.base).status == 200
    assert server.box.exec("echo served").stdout == "served\n"


LISTS = {
    "list": "/v0/sandbox/box/filesystem/tmp/many",
    "find": "/v0/sandbox/box/filesystem-find/tmp/many?maxResults=10000",
    "tree": "/v0/sandbox/box/filesystem/tree/tmp",
    "processes": "/v0/sandbox/box/process",
    "file": "/v0/sandbox/box/filesystem/tmp/large",
    "sandboxes": "/v0/sandbox?limit=1000",
    "logs": "/v0/sandbox/box/logs?tail=10000",
}


@pytest.mark.parametrize("kind", LISTS)
def test_answers_that_nobody_reads(victim, kind):
    with contextlib.ExitStack() as stack, Watch(victim) as watch:
        socks = [unread(victim, stack, LISTS[kind]) for _ in range(UNREAD)]
        check_refusals(answered(socks))
        check_others(victim)
    print(f"{kind}: {watch.peak >> 20} MiB")
    assert watch.peak < PEAK
    check_calm(victim)


def test_all_kinds_of_answers_at_once(victim):
    with contextlib.ExitStack() as stack, Watch(victim) as watch:
        targets = list(LISTS.values())
        socks = [unread(victim, stack, targets[i % len(targets)]) for i in range(2 * UNREAD)]
        check_refusals(answered(socks))
        check_others(victim)
    print(f"all: {watch.peak >> 20} MiB")
    assert watch.peak < PEAK
    check_calm(victim)


def test_bodies_that_come_slowly(victim):
    """Large JSON bodies of which the last byte does not come: what is promised counts."""
    fields = ("Content-Type: application/json", f"Content-Length: {20 << 20}")
    with contextlib.ExitStack() as stack, Watch(victim) as watch:
        socks = [unread(victim, stack, "/v0/sandbox/box/filesystem/tmp/slow", "PUT", fields=fields) for _ in range(UNREAD)]
        piece = b'{"content":"' + b"x" * (1 << 20)

        def push():
            for sock in socks:
                with contextlib.suppress(BlockingIOError, ConnectionError):
                    sock.send(piece)
            return sum(bool(select.select([sock], [], [], 0)[0]) for sock in socks) >= UNREAD - 4

        wait_until(push, 60, "a refusal on most connections")
        check_refusals(answered([sock for sock in socks if select.select([sock], [], [], 0)[0]]))
        check_others(victim)
    assert watch.peak < PEAK
    check_calm(victim)


def test_json_of_many_values(victim):
    """Each value takes 16 bytes, however short it is."""
    body = b'{"content":[' + b"1," * (8 << 20) + b"1]}"
    with Watch(victim) as watch:
        answer = victim.request("POST", "/v0/sandbox/box/process", body,
                                headers={"Content-Type": "application/json"})
        assert answer.error() == "PAYLOAD_TOO_LARGE" and "values" in answer.text
    assert watch.peak < PEAK
    check_calm(victim)


def test_websockets_that_never_end_their_message(victim):
    begun = struct.pack("!BBQ", 0x81, 0x80 | 127, 1 << 20) + bytes(4) + b" " * ((1 << 20) - 1)
    with contextlib.ExitStack() as stack, Watch(victim) as watch:
        sockets = []
        for _ in range(300):
            sockets.append(WebSocket(victim.url, "/v0/sandbox/box/exec/ws",
                                     {"Authorization": f"Bearer {victim.attacker}"}))
            stack.callback(sockets[-1].sock.close)
            with contextlib.suppress(ConnectionError):
                sockets[-1].sock.sendall(begun)
        check_others(victim)
        metrics = victim.request("GET", "/metrics").text
        held_now = float(metrics.split("\ncella_request_memory_bytes ")[1].split()[0])
        assert held_now < 70 << 20
    assert watch.peak < PEAK
    check_calm(victim)


# --- the kernel's limit ---

def groups_of(pid):
    return pathlib.Path(f"/proc/{pid}/cgroup").read_text()


def test_own_processes_have_a_memory_cgroup_each(victim):
    limits = [path.read_text().strip()
              for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/memory")
              for name in ("memory.max", "memory.limit_in_bytes")
              for path in pathlib.Path(top).glob(f"cella-{victim.instance}-*/{name}")]
    if not limits:
        assert "the server's memory has no limit" in victim.log()
        pytest.skip("this machine lets nobody make memory cgroups")
    assert set(limits) == {str(600 << 20)}
    assert f"cella-{victim.instance}-server" in groups_of(victim.pids().cellad)
    before = victim.pids()
    victim.kill("cellad")
    victim.wait_recovered(before, "cellad")
    assert f"cella-{victim.instance}-server" in groups_of(victim.pids().cellad)
    check_others(victim)
