# SPDX-License-Identifier: Apache-2.0
"""kill -9 in the middle of clones: what was promised is made in the end, with the right files, no
source stands still, and nothing leaks."""

import http.client
import random
import threading

import pytest

from cella_server import wait_until
from clones import clone, frozen_warden

VICTIMS = [("warden",), ("cellad",), ("cellad", "warden"), ("supervisor", "warden", "cellad")]


class Cloner:
    """Threads that clone, and remember what was promised."""

    def __init__(self, source):
        self.source, self.promised = source, []
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(n,)) for n in range(2)]

    def _work(self, number):
        count = 0
        while not self.stop.is_set() and count < 5:
            name = f"k{number}-{count}-{random.randrange(10 ** 6)}"
            count += 1
            try:
                if self.source.request("POST", "/clone", {"name": name}, timeout=10).status == 202:
                    self.promised.append(name)
            except (OSError, http.client.HTTPException):
                pass  # the crash, which is what we came for

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.stop.set()
        for thread in self.threads:
            thread.join()


@pytest.mark.parametrize("storage", ["btrfs", "plain"])
def test_kill_9_in_the_middle_of_clones(server_factory, storage):
    server = server_factory("--storage", storage)
    source = server.create()
    source.run("cd /workspace && seq 200 | split -l 1 -a 3 - f && "
               "dd if=/dev/urandom of=big bs=1M count=8 status=none")
    wanted = source.run("cd /workspace && cat f* big | sha256sum")
    beat = source.spawn("while :; do echo >> /tmp/beat; sleep 0.01; done")
    for victims in VICTIMS:
        with Cloner(source) as cloner:
            wait_until(lambda: len(cloner.promised) >= 2, 20, "clones under way")
            before = server.kill(*victims)
            if "supervisor" in victims:
                server.start()
            else:
                server.wait_recovered(before, *victims)
        for name in cloner.promised:
            box = server.sandbox(name).wait_status("running", deadline=60)
            assert box.run("cd /workspace && cat f* big | sha256sum") == wanted
        # The source goes on, and is the same.
        assert source.request("GET", f"/process/{beat}").json()["status"] == "running"
        last = source.run("stat -c %s /tmp/beat")
        wait_until(lambda: source.run("stat -c %s /tmp/beat") != last, 20, "the source goes on")
        # A clone that was not promised is there, whole, or not at all.
        for item in server.list():
            if item["metadata"]["name"] != source.name:
                box = server.sandbox(item["metadata"]["name"]).wait_status("running", deadline=60)
                box.delete()
        assert server.leaks() == ""
    source.delete()


def test_a_server_that_is_stopped_goes_on_with_them_later(server_factory):
    server = server_factory("--storage", "plain")
    source = server.create()
    source.run("cd /workspace && seq 600 | split -l 1 -a 3 - f")
    copies = [clone(source, wait=None) for _ in range(3)]
    server.stop()
    server.start()
    for copy in copies:
        wait_until(lambda box=copy: box.status() in ("running", "stopped"), 60, copy.get)
        if copy.status() == "stopped":
            copy.start()
        assert copy.run("ls /workspace | wc -l") == "600"
        copy.delete()
    source.delete()
    assert server.leaks() == ""


def test_kill_9_while_a_source_passes_its_clones_on(server_factory):
    """The deleted source's record still says where the files are, until its clone's record does."""
    server = server_factory()
    source = server.create()
    source.write("/workspace/f", "kept")
    for number in range(6):
        with frozen_warden(server):
            middle = clone(source, wait=None)
            last = clone(middle, wait=None)
            assert server.request("DELETE", middle.base).status == 202
            if number % 2 == 0:
                before = server.kill("cellad")
        if number % 2 == 1:
            before = server.kill("cellad")
        server.wait_recovered(before, "cellad")
        middle.wait_status("gone")
        assert last.wait_status("running").read("/workspace/f") == b"kept"
        last.delete()
    source.delete()
    assert server.leaks() == ""
