# SPDX-License-Identifier: Apache-2.0
"""Whoever is killed while a sandbox's network is being changed: what was acknowledged holds, together with what was
changed in the same request, and what holds is what is shown."""

import contextlib
import http.client
import threading

import pytest

from cella_server import wait_until
from network_inside import Box
from world import WEB

VICTIMS = ("cellad", "warden", "egress") * 2


class Changer:
    """Gives a sandbox one network after the other, each with a label that has the same number, until it is told
    to end."""

    def __init__(self, box, names):
        self.box, self.names = box, names
        self.sent = self.acknowledged = 0
        self.end = threading.Event()
        self.thread = threading.Thread(target=self.run)
        self.thread.start()

    def run(self):
        while not self.end.is_set():
            number = self.sent + 1
            body = {"metadata": {"labels": {"step": str(number)}},
                    "spec": {"network": {"allow": [self.names[number % len(self.names)]]}}}
            with contextlib.suppress(OSError, http.client.HTTPException):
                self.sent = number
                if self.box.request("PATCH", "", body, timeout=60).status == 200:
                    self.acknowledged = number

    def wait_for_more(self):
        before = self.acknowledged
        wait_until(lambda: self.acknowledged > before + 1, 60, "a change that is acknowledged")

    def close(self):
        self.end.set()
        self.thread.join()


@pytest.mark.timeout(300)
def test_killed_during_changes(world, world_factory):
    server = world_factory()
    names = [world.name(WEB) for _ in range(3)]
    box = Box(server.create(network={"mode": "allowlist", "allow": [names[0]]}))
    changer = Changer(box.sandbox, names)
    try:
        for who in VICTIMS:
            changer.wait_for_more()
            if who == "egress":
                server.kill_egress()
            else:
                server.wait_recovered(server.kill(who), who)
        changer.wait_for_more()
    finally:
        changer.close()
    shown = box.get()
    step, allowed = int(shown["metadata"]["labels"]["step"]), shown["spec"]["network"]["allow"]
    assert changer.acknowledged <= step <= changer.sent
    assert allowed == [names[step % len(names)]], "the labels and the network of one request"
    wait_until(lambda: box.do("http(web, name, timeout=5)['status']", web=WEB, name=allowed[0]) == 200, 60,
               "the name that is shown")
    for name in set(names) - set(allowed):
        assert box.do("http(web, name)['status']", web=WEB, name=name) == 403
    box.delete()
    wait_until(lambda: server.leaks() == "", 30, server.leaks)
