# SPDX-License-Identifier: Apache-2.0
"""A clone of a sandbox with a gigabyte in it, from the request to the output of its first command;
next to it `cp -a` of the same files, and Docker's way: commit the container, run the image.

What a clone costs must not grow with what it does not touch, so there are two shapes: ten big files,
and ten thousand small ones. The first clone is made while everything is still dirty in memory, and has
to wait for the disk; the others afterwards.
"""

import http.client
import json
import os
import shutil
import subprocess
import sys
import time

from .docker import Unavailable
from .program import Failed

GIGABYTE = 1000 * 1000 * 1000
SHAPES = {"10 files": 10, "10 000 files": 10000}
CLONES = 5
TIMEOUT = 300

_FILL = """
import os
data = os.urandom({size})
os.makedirs("{folder}")
for number in range({count}):
    with open("{folder}/%d" % number, "wb") as file:
        file.write(data)
"""


class Api:
    """Just enough of the API, on one kept connection."""

    def __init__(self, server):
        self.connection = http.client.HTTPConnection(server.address, timeout=TIMEOUT)
        with open(server.key_file, encoding="ascii") as file:
            self.headers = {"Authorization": "Bearer " + file.read().strip(),
                            "Content-Type": "application/json"}

    def call(self, method, path, body=None):
        self.connection.request(method, path, None if body is None else json.dumps(body), self.headers)
        return json.loads(self._answer(method, path))

    def get(self, path):
        """What is there, as its bytes."""
        self.connection.request("GET", path, None, self.headers)
        return self._answer("GET", path)

    def _answer(self, method, path):
        answer = self.connection.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise Failed("%s %s: %d %s" % (method, path, answer.status, text.decode()[:300]))
        return text

    def run(self, name, command):
        done = self.call("POST", "/v0/sandbox/%s/process" % name,
                         {"command": command, "waitForCompletion": True, "timeout": TIMEOUT})
        if done["exitCode"] != 0:
            raise Failed("%s: exit status %s: %s" % (command, done["exitCode"], done["stderr"][:300]))
        return done["stdout"]

    def delete(self, name):
        self.call("DELETE", "/v0/sandbox/" + name)

    def close(self):
        self.connection.close()


def _timed(work):
    start = time.monotonic_ns()
    work()
    return time.monotonic_ns() - start


def _clone_once(api, number):
    name = "clone-%d" % number

    def work():
        api.call("POST", "/v0/sandbox/clone-source/clone", {"name": name})
        if api.run(name, "echo hi") != "hi\n":
            raise Failed("a clone's first command did not answer")

    taken = _timed(work)
    api.delete(name)
    return taken


def _ours(server, count):
    """(with dirty data, [afterwards])"""
    api = Api(server)
    try:
        api.call("POST", "/v0/sandbox", {"metadata": {"name": "clone-source"}})
        fill = _FILL.format(folder="/workspace/data", size=GIGABYTE // count, count=count)
        api.run("clone-source", "python3 - <<'END'%sEND" % fill)
        dirty = _clone_once(api, 0)
        api.run("clone-source", "sync")
        clean = [_clone_once(api, 1 + number) for number in range(CLONES)]
        api.delete("clone-source")
        return dirty, clean
    finally:
        api.close()


def measure(bench, shape):
    """Samples of one shape: {"dirty", "clean", "cp", "docker"}, without those that could not be."""
    count, taken = SHAPES[shape], {}
    folder = os.path.join(bench.folder, "clones")
    source, copy = os.path.join(folder, "source"), os.path.join(folder, "copy")
    if bench.server is not None:
        taken["dirty"], taken["clean"] = _ours(bench.server, count)
    os.makedirs(folder)
    try:
        fill = _FILL.format(folder=source, size=GIGABYTE // count, count=count)
        subprocess.run([sys.executable, "-"], input=fill.encode(), check=True)
        os.sync()
        taken["cp"] = _timed(lambda: subprocess.run(["cp", "-a", source, copy], check=True))
        if bench.docker is not None and not bench.options.quick:
            taken["docker"] = bench.docker.clone(source)
    except (Unavailable, OSError, subprocess.CalledProcessError) as error:
        bench.clone_notes.append("%s: %s" % (shape, error))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return taken
