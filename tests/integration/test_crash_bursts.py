# SPDX-License-Identifier: Apache-2.0
"""kill -9 at random moments of a burst of creates, starts, stops and deletes: what was promised is
there, what was half made is finished or removed, and nothing leaks."""

import http.client
import os
import random
import threading
import time

import pytest

from cella_server import wait_until

ROUNDS = 6
WORKERS = 4
VICTIMS = [("cellad",), ("warden",), ("cellad", "warden"), ("supervisor",),
           ("supervisor", "warden", "cellad")]
UNSETTLED = {"creating", "starting", "stopping", "deleting"}


class Burst:
    """Threads that create and delete, and remember which promises the server made."""

    def __init__(self, server, seed):
        self.server, self.seed = server, seed
        self.created, self.delete_tried, self.deleted = set(), set(), set()
        self.stop = threading.Event()
        self.threads = [threading.Thread(target=self._work, args=(n,)) for n in range(WORKERS)]

    def __enter__(self):
        for thread in self.threads:
            thread.start()
        return self

    def __exit__(self, *unused):
        self.stop.set()
        for thread in self.threads:
            thread.join()

    def _work(self, number):
        rng = random.Random(self.seed * 100 + number)
        count = 0
        while not self.stop.is_set():
            name = f"b{self.seed % 100000}-{number}-{count}"
            count += 1
            try:
                self._one(rng, name)
            except (OSError, http.client.HTTPException, AssertionError):
                time.sleep(0.02)  # the crash, which is what we came for

    def _one(self, rng, name):
        answer = self.server.request("POST", "/v0/sandbox", {"metadata": {"name": name}}, timeout=10)
        if answer.status != 202:
            return
        self.created.add(name)
        fate = rng.random()
        if fate < 0.3:
            return
        if fate < 0.6:
            time.sleep(rng.random() * 0.02)
        if fate > 0.9:
            self.server.request("PUT", f"/v0/sandbox/{name}/stop", timeout=10)
        self.delete_tried.add(name)
        answer = self.server.request("DELETE", f"/v0/sandbox/{name}", timeout=10)
        if answer.status == 202:
            self.deleted.add(name)


def settle(server):
    def check():
        return not any(item["status"] in UNSETTLED for item in server.list())

    wait_until(check, 30, lambda: [(i["metadata"]["name"], i["status"]) for i in server.list()])


def check_promises(server, burst):
    listed = {item["metadata"]["name"]: item for item in server.list()}
    assert burst.deleted & set(listed) == set(), "deleted, and back again"
    lost = (burst.created - burst.delete_tried) - set(listed)
    assert lost == set(), "acknowledged, and gone"
    for name, item in listed.items():
        if item["status"] not in ("running", "stopped"):
            print(server.log())
        assert item["status"] in ("running", "stopped"), item["events"]
        if item["status"] == "running":
            assert server.sandbox(name).exec("echo $((6*7))").stdout == "42\n"
    return listed


@pytest.mark.timeout(300)
def test_kills_during_a_burst(server_factory):
    seed = int(os.environ.get("CELLA_TEST_SEED", "0")) or random.SystemRandom().randrange(1, 10**6)
    print(f"CELLA_TEST_SEED={seed} repeats this")
    rng = random.Random(seed)
    server = server_factory()
    for round_number in range(ROUNDS):
        which = VICTIMS[round_number % len(VICTIMS)]
        with Burst(server, seed + round_number) as burst:
            time.sleep(0.05 + rng.random() * 0.6)
            before = server.kill(*which)
            if "supervisor" in which:
                burst.stop.set()
            else:
                time.sleep(rng.random() * 0.3)
        if "supervisor" in which:
            server.start()
        else:
            server.wait_recovered(before, *which)
        settle(server)
        listed = check_promises(server, burst)
        found = server.leaks()
        assert found == "", f"round {round_number}: {which}: {found}"
        for name in listed:
            server.request("DELETE", f"/v0/sandbox/{name}")
        wait_until(lambda: server.list() == [], 30, lambda: server.list())
        assert server.leaks() == "", f"round {round_number}, emptied"


def test_kill_in_the_middle_of_an_upload(server_factory):
    """A file appears whole or not at all."""
    server = server_factory()
    box = server.create()
    box.write("/workspace/f", "old")
    connection = server.connection()
    connection.putrequest("PUT", f"{box.base}/filesystem/workspace/f")
    connection.putheader("Authorization", f"Bearer {server.key}")
    connection.putheader("Content-Type", "application/octet-stream")
    connection.putheader("Content-Length", str(8 << 20))
    connection.endheaders()
    connection.send(b"n" * (4 << 20))
    before = server.kill("cellad")
    connection.close()
    server.wait_recovered(before, "cellad")
    assert box.read("/workspace/f") == b"old"
    wait_until(lambda: box.run("ls -A /workspace") == "f", 10, "the half file removed")
    box.delete()
    assert server.leaks() == ""
