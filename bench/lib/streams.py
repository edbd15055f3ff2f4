# SPDX-License-Identifier: Apache-2.0
"""Streaming exec: how fast the output of a command arrives here over HTTP while it runs, next to the
same command at the end of a pipe. Both are read into one buffer and counted, by the same reader.

A pipe is two copies. Ours is five (pipe, the process's log, the agent's socket, HTTP's socket, twice),
three processes, and nothing is lost on the way when the reader is slow.
"""

import json
import os
import socket
import subprocess
import time

from .clones import Api
from .program import Failed

BYTES = 8192 * 64 * 1024
ROUNDS = 5
READ = 256 * 1024
COMMAND = "dd if=/dev/zero bs=64k count=8192 status=none"


def _count(fill, at_least):
    """Nanoseconds until so many bytes have come."""
    buffer = bytearray(READ)
    began, seen = time.monotonic_ns(), 0
    while seen < at_least:
        count = fill(buffer)
        if count == 0:
            raise Failed("a stream ended after %d of %d bytes" % (seen, at_least))
        seen += count
    return time.monotonic_ns() - began


def _pipe():
    with subprocess.Popen(["sh", "-c", COMMAND], stdout=subprocess.PIPE) as process:
        fd = process.stdout.fileno()
        return _count(lambda buffer: os.readv(fd, [buffer]), BYTES)


def _stream(server, key, name):
    body = json.dumps({"command": COMMAND}).encode()
    host, port = server.address.rsplit(":", 1)
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        connection.sendall(("POST /v0/sandbox/%s/process HTTP/1.1\r\nHost: bench\r\n"
                            "Authorization: %s\r\nAccept: application/vnd.cella.stream\r\n"
                            "Content-Length: %d\r\n\r\n" % (name, key, len(body))).encode() + body)
        return _count(connection.recv_into, BYTES)


def measure(bench):
    """{"ours": [ns …], "pipe": [ns …]}, taken by turns; the first of each warms up."""
    api = Api(bench.server)
    name = "streams"
    api.call("POST", "/v0/sandbox", {"metadata": {"name": name}})
    taken = {"ours": [], "pipe": []}
    try:
        api.run(name, "true")
        for _ in range(ROUNDS + 1):
            taken["pipe"].append(_pipe())
            taken["ours"].append(_stream(bench.server, api.headers["Authorization"], name))
    finally:
        api.delete(name)
    return {who: times[1:] for who, times in taken.items()}
