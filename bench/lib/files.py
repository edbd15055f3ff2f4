# SPDX-License-Identifier: Apache-2.0
"""Files: a tree of a thousand small files in one request and in a thousand; and how long it takes from
a change to its event, next to bare inotify on the host.

For the latter a program makes files whose names are the time; whoever hears of one compares. The
clock is the same inside and outside.
"""

import ctypes
import http.client
import json
import os
import struct
import subprocess
import tempfile
import time

from .clones import Api
from .program import Failed

FILES = 1000
ROUNDS = 3
CHANGES = 200
CONTENT = "x" * 200
NAME = "files"
IN_CREATE = 0x100
WRITER = """
import os, sys, time
for i in range(%d):
    os.close(os.open("%%s/%%d" %% (sys.argv[1], time.time_ns()), os.O_CREAT | os.O_WRONLY))
    time.sleep(0.002)
""" % CHANGES


def _timed(work):
    began = time.monotonic_ns()
    work()
    return time.monotonic_ns() - began


def _trees(api):
    """{"one": [ns …], "many": [ns …]}"""
    base = "/v0/sandbox/%s/filesystem" % NAME
    names = ["d%d/f%d" % (i % 20, i) for i in range(FILES)]
    taken = {"one": [], "many": []}

    def many():
        for name in names:
            api.call("PUT", "%s/srv/many/%s" % (base, name), {"content": CONTENT})

    def one():
        api.call("PUT", base + "/tree/srv/one", {"files": {name: CONTENT for name in names}})

    for _ in range(ROUNDS):
        taken["one"].append(_timed(one))
        taken["many"].append(_timed(many))
        api.run(NAME, "rm -rf /srv/one /srv/many")
    return taken


def _watched(api, server):
    """Nanoseconds from each change to its line."""
    api.run(NAME, "mkdir -p /srv/w")
    watch = http.client.HTTPConnection(server.address, timeout=60)
    watch.request("GET", "/v0/sandbox/%s/watch/filesystem/srv/w" % NAME, None, api.headers)
    answer = watch.getresponse()
    if answer.status != 200:
        raise Failed("watching: %d" % answer.status)
    answer.readline()
    api.call("PUT", "/v0/sandbox/%s/filesystem/srv/writer.py" % NAME, {"content": WRITER})
    api.call("POST", "/v0/sandbox/%s/process" % NAME, {"command": "python3 /srv/writer.py /srv/w"})
    taken = []
    while len(taken) < CHANGES:
        event = json.loads(answer.readline())
        if event["op"] == "CREATE":
            taken.append(time.time_ns() - int(event["name"]))
    watch.close()
    return taken


def _bare():
    """The same with inotify itself."""
    libc = ctypes.CDLL(None, use_errno=True)
    taken = []
    with tempfile.TemporaryDirectory() as folder:
        fd = libc.inotify_init1(os.O_CLOEXEC)
        if fd < 0 or libc.inotify_add_watch(fd, folder.encode(), IN_CREATE) < 0:
            raise Failed("inotify: %s" % os.strerror(ctypes.get_errno()))
        with subprocess.Popen(["python3", "-c", WRITER, folder]):
            while len(taken) < CHANGES:
                data, now, at = os.read(fd, 65536), time.time_ns(), 0
                while at < len(data):
                    length = struct.unpack_from("iIII", data, at)[3]
                    taken.append(now - int(data[at + 16:at + 16 + length].rstrip(b"\0")))
                    at += 16 + length
        os.close(fd)
    return taken


def measure(bench):
    """{"one", "many", "event", "bare"}: lists of nanoseconds."""
    api = Api(bench.server)
    api.call("POST", "/v0/sandbox", {"metadata": {"name": NAME}})
    try:
        api.run(NAME, "true")
        taken = _trees(api)
        taken["bare"] = _bare()
        taken["event"] = _watched(api, bench.server)
        return taken
    finally:
        api.delete(NAME)
        api.close()
