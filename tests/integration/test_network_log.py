# SPDX-License-Identifier: Apache-2.0
"""The log of what a sandbox reached and was refused: past the proxies too, kept over the death of everybody."""

from cella_server import wait_until
from world import ECHO, METADATA, OTHER, WEB


def entries(box, query="", **wanted):
    answer = box.request("GET", f"/network/log{query}")
    assert answer.status == 200, answer
    return [entry for entry in answer.json()["entries"]
            if all(entry.get(key) == value for key, value in wanted.items())]


def entry(box, what, **wanted):
    """The one entry that is as wanted, as soon as there is one."""
    found = wait_until(lambda: entries(box, **wanted), 60, lambda: f"{what} in {entries(box)}")
    assert len(found) == 1, found
    return found[0]


def test_connections_past_the_proxies(world, boxes):
    """With the name that led there, the protocol, and what went each way, once it is over."""
    name, box = world.name(WEB), boxes("isolated")
    assert box.do("[addresses(name), len(tcp(web, port, 'x' * 50000, enough=b'x' * 50000)['got'])]",
                  name=name, web=WEB, port=ECHO) == [[WEB], 50000]
    over = entry(box, "the connection", kind="direct", protocol="tcp", address=WEB, open=False)
    assert (over["name"], over["port"], over["allowed"], over["verdict"]) == (name, ECHO, True, "ALLOWED"), over
    assert over["bytesIn"] > 50000 and over["bytesOut"] > 50000, over
    assert box.do("udp(other, port)['got']", other=OTHER, port=ECHO) == "hello"
    datagram = entry(box, "the datagram", kind="direct", protocol="udp", address=OTHER, port=ECHO)
    assert datagram["allowed"] and "name" not in datagram, datagram


def test_refusals_by_address(world, boxes):
    box = boxes("allowlist", allow=[f"{WEB}:{ECHO}"], deny=["45.97.0.0/16"])
    box.do("""together([
        lambda: echo(web, port), lambda: echo(web, 22, timeout=QUICK), lambda: udp(web, 123, timeout=QUICK),
        lambda: echo(metadata, port, timeout=QUICK), lambda: echo('45.97.1.1', 22, timeout=QUICK)])""",
           web=WEB, port=ECHO, metadata=METADATA)
    assert entry(box, "the allowed one", kind="direct", address=WEB, port=ECHO)["allowed"]
    for address, port, verdict in ((WEB, 22, "REFUSED_UNLISTED"), (WEB, 123, "REFUSED_UNLISTED"),
                                   (METADATA, ECHO, "REFUSED_FORBIDDEN"), ("45.97.1.1", 22, "REFUSED_DENIED")):
        refused = entry(box, f"{address}:{port}", kind="direct", address=address, port=port)
        assert (refused["allowed"], refused["verdict"]) == (False, verdict), refused
