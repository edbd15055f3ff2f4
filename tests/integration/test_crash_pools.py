# SPDX-License-Identifier: Apache-2.0
"""Processes of a server with a pool die at any moment: what was acknowledged is there, what was not
is gone, and the pool is full again."""

import random
import threading
import time

import pytest

from cella_server import wait_until


def wait_full(server):
    def full():
        pool = server.request("GET", "/v0/pools/host").json()
        return pool["status"]["ready"] == pool["size"] and pool["status"]["making"] == 0
    wait_until(full, 60, lambda: f"a full pool\n{server.log()}")


class Creator(threading.Thread):
    """Makes sandboxes, and writes into each of them, for as long as it is let."""

    def __init__(self, server, prefix):
        super().__init__()
        self.server, self.prefix = server, prefix
        self.acknowledged, self.written, self.failures = [], [], []
        self.stop = threading.Event()

    def run(self):
        number = 0
        while not self.stop.is_set():
            name = f"{self.prefix}-{number}"
            number += 1
            try:
                answer = self.server.request("POST", "/v0/sandbox", {"metadata": {"name": name}}, timeout=60)
                if answer.status != 202:
                    time.sleep(0.01)
                    continue
                self.acknowledged.append(name)
                box = self.server.sandbox(name)
                answer = box.request("POST", "/process", {
                    "command": "echo $HOSTNAME-kept > /workspace/kept; echo edited >> /etc/hosts",
                    "waitForCompletion": True}, timeout=60)
                if answer.status == 200 and answer.json()["exitCode"] == 0:
                    self.written.append(name)
            except OSError:  # a connection that a killed cellad left
                time.sleep(0.01)
            except Exception as failure:  # pylint: disable=broad-except
                if "http.client" not in type(failure).__module__:
                    self.failures.append(failure)


def check(server, creator):
    for name in creator.acknowledged:
        box = server.sandbox(name)
        wait_until(lambda: box.status() in ("running", "stopped", "failed"), 60, lambda: box.status())
        status = box.status()
        assert status != "failed", box.get()
        if status == "stopped":
            box.start()
        wanted = name in creator.written
        assert box.run("hostname; cat /etc/hostname").split() == [name, name]
        hosts = box.run("cat /etc/hosts")
        assert f"127.0.1.1 {name}\n" in hosts + "\n"
        if wanted:
            assert "kept" in box.run("cat /workspace/kept") and "edited" in hosts


@pytest.mark.parametrize("which", [("cellad",), ("warden",), ("cellad", "warden"), ("supervisor",)])
def test_deaths_in_the_middle_of_claims(server_factory, which):
    server = server_factory("--pool", "image=host,size=3,refill=2")
    wait_full(server)
    creator = Creator(server, "-".join(which))
    creator.start()
    try:
        for _ in range(3):
            done = len(creator.written)
            wait_until(lambda: len(creator.written) > done, 60, "a sandbox in use")
            time.sleep(random.random() * 0.02)
            before = server.kill(*which)
            if "supervisor" in which:
                server.start()
            else:
                server.wait_recovered(before, *which)
    finally:
        creator.stop.set()
        creator.join()
    assert not creator.failures, creator.failures
    check(server, creator)
    wait_full(server)
    wait_until(lambda: server.leaks() == "", 30, server.leaks)
    shown = {made["metadata"]["id"] for made in server.list()}

    def spares():
        return {path.name for path in (server.data / "run" / "sandboxes").iterdir()} - shown
    wait_until(lambda: len(spares()) == 3, 30, lambda: f"three spares, and none on its way out: {spares()}")
