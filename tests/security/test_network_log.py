# SPDX-License-Identifier: Apache-2.0
"""The log of a network under attack: what is refused without end fills nothing, and pushes nobody else out."""

import pathlib

from cella_server import wait_until
from world import ECHO, WEB

KEPT_BYTES = 300 * 1000  # of one sandbox, on disk


def entries(box, **wanted):
    answer = box.request("GET", "/network/log")
    assert answer.status == 200, answer
    return [entry for entry in answer.json()["entries"]
            if all(entry.get(key) == value for key, value in wanted.items())]


def kept(box):
    folder = pathlib.Path(box.server.data, "db", "network")
    return sum(path.stat().st_size for path in folder.glob(box.get()["metadata"]["id"]))


def test_refusals_without_end(world, boxes):
    box, other = boxes("allowlist", allow=["good.example"]), boxes("allowlist", allow=["good.example"])
    with box.doing("scan(20000)"):
        other.do("echo(web, port, timeout=QUICK)", web=WEB, port=ECHO)
        wait_until(lambda: entries(other, kind="direct", address=WEB, port=ECHO), 60, lambda: entries(other))
        found = wait_until(lambda: entries(box, kind="direct", port=9, protocol="udp"), 60, lambda: entries(box))
        assert len(entries(box)) <= 512 and all(entry["verdict"] == "REFUSED_UNLISTED" for entry in found)
    assert {entry["address"] for entry in entries(other)} == {WEB}
    wait_until(lambda: 0 < kept(box) <= KEPT_BYTES, 60, lambda: kept(box))


def test_connections_without_end(world, boxes):
    """A new one each time, all of which are allowed: as many are written down as there is room for."""
    box, other = boxes("isolated"), boxes("isolated")
    with box.doing("scan(20000)"):
        assert other.do("echo(web, port)['got']", web=WEB, port=ECHO) == "hello"
        wait_until(lambda: entries(other, kind="direct", address=WEB, port=ECHO), 60, lambda: entries(other))
        wait_until(lambda: len(entries(box, kind="direct", port=9)) > 100, 60, lambda: len(entries(box)))
        assert len(entries(box)) <= 512
        # Too many are refused, and that is written down, too.
        wait_until(lambda: entries(box, verdict="REFUSED_LIMIT"), 60, lambda: entries(box)[-3:])
    wait_until(lambda: 0 < kept(box) <= KEPT_BYTES, 60, lambda: kept(box))


def test_in_anothers_name(world, boxes):
    """Packets with a neighbour's source are nobody's, and not in his log."""
    box, other = boxes("isolated"), boxes("isolated")
    victim = other.do("own_address()")
    box.do("together([lambda: udp_from(victim, web, port), lambda: udp_from(victim, '10.77.0.5', 9), "
           "lambda: tcp_from(victim, web, port)])", victim=victim, web=WEB, port=ECHO)
    box.do("echo(web, 22, timeout=QUICK)", web=WEB)
    wait_until(lambda: entries(box, kind="direct", port=22), 60, lambda: entries(box))
    assert entries(other) == []
    assert {entry["port"] for entry in entries(box)} == {22}


def test_words_of_a_stranger(boxes, world_server):
    """What a sandbox writes into its log is no command to a terminal, and no line of its own."""
    box = boxes("allowlist", allow=["good.example"])
    box.do(r"tcp(web, 80, 'GET / HTTP/1.1\r\nHost: evil\x9b31m\xe2\x80\xae.example\r\n\r\n', timeout=QUICK)", web=WEB)
    wait_until(lambda: entries(box, kind="http"), 60, lambda: entries(box))
    table = world_server.cli("network", "log", box.name).stdout
    assert len(table.splitlines()) == 2 and "evil" in table, table
    assert not any(word in table for word in ("\x9b", "\u202e", "\x1b")), table
