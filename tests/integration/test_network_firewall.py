# SPDX-License-Identifier: Apache-2.0
"""Another program's firewall on the machine drops what is forwarded, as Docker's does: what still works, and that what
the doctor advises helps."""

import json

from cella_server import bin_dir
from world import ECHO, WEB

DROP = "table ip other { chain pass { type filter hook forward priority 0; policy drop; }; }"


def doctor(world):
    found = json.loads(world.host.run(bin_dir() / "cella", "doctor", "-o", "json"))
    return next(check for check in found["checks"] if check["name"] == "other firewalls")


def test_what_helps_when_forwarding_is_dropped(world, boxes):
    name = world.name(WEB)
    direct, listed = boxes("full"), boxes("allowlist", allow=[name])
    world.host.run("nft", DROP)
    try:
        assert direct.do("echo(web, port, timeout=QUICK)['got']", web=WEB, port=ECHO) == ""
        assert listed.do("http(web, name)['status']", web=WEB, name=name) == 200
        found = doctor(world)
        assert found["status"] == "warning" and "ip other pass" in found["message"], found
        world.host.run("sh", "-c", found["fix"])
        assert doctor(world)["status"] == "ok"
        assert direct.do("echo(web, port)['got']", web=WEB, port=ECHO) == "hello"
    finally:
        world.host.run("nft", "delete table ip other")
