# SPDX-License-Identifier: Apache-2.0
"""The log of what a sandbox reached and was refused: past the proxies too, kept over the death of everybody."""

import json
import os
import pathlib
import signal
import threading

import pytest

from cella_server import process_alive, wait_until
from world import ECHO, HOST, METADATA, OTHER, WEB


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


def test_the_machine_itself(boxes):
    """What the router lets pass, because it cannot know better, and the machine refuses."""
    box = boxes("full")
    box.do("echo(host, 22, timeout=QUICK)", host=HOST)
    refused = entry(box, "the refusal", kind="direct", address=HOST, port=22)
    assert (refused["allowed"], refused["verdict"]) == (False, "REFUSED_FORBIDDEN"), refused


def test_nobody_there(world, boxes):
    """Allowed, and nothing came of it: no more is known at the end."""
    box = boxes("isolated")
    box.do("echo(web, 9, timeout=QUICK)", web=WEB)
    failed = entry(box, "the failure", kind="direct", address=WEB, port=9, open=False)
    assert failed["verdict"] == "FAILED_CONNECT", failed


def test_what_can_be_asked_for(world, boxes, world_server):
    box, name = boxes("allowlist", allow=[f"{WEB}:{ECHO}"]), world.name(WEB)
    box.do("[echo(web, port), echo(web, 22, timeout=QUICK), addresses(name)]", web=WEB, port=ECHO, name=name)
    entry(box, "the allowed one", address=WEB, port=ECHO)
    entry(box, "the refused one", address=WEB, port=22)
    entry(box, "the question", kind="dns", name=name)
    assert {each["port"] for each in entries(box, "?verdict=allowed")} == {ECHO}
    assert {each["kind"] for each in entries(box, "?verdict=refused")} == {"direct", "dns"}
    assert {each["kind"] for each in entries(box, "?verdict=REFUSED_UNLISTED&kind=dns")} == {"dns"}
    assert entries(box, "?verdict=failed") == [] == entries(box, "?since=2100-01-01T00:00:00Z")
    assert len(entries(box, "?limit=1&since=1h")) == 1
    assert entries(box, "?refused=true&limit=1") == entries(box, "?refused=true")[-1:]
    last = box.request("GET", "/network/log?verdict=failed").json()["last"]
    assert last >= 3 and entries(box, f"?after={last}") == []
    for wrong, word in (("verdict=maybe", "verdict"), ("kind=smtp", "kind"), ("since=yesterday", "since"),
                        ("limit=0", "limit"), ("verdict=allowed&refused=true", "refused"), ("follow=2", "follow")):
        answer = box.request("GET", f"/network/log?{wrong}")
        assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT") and word in answer.text, answer
    table = world_server.cli("network", "log", box.name, "--verdict", "refused", "--kind", "direct", "--since", "1h")
    assert table.returncode == 0 and f"{WEB}:22" in table.stdout and str(ECHO) not in table.stdout, table


def test_following(world, boxes):
    """What was there, what comes, and what changes, as it does; until the sandbox is deleted."""
    box, name = boxes("isolated"), world.name(WEB)
    box.do("addresses(name)", name=name)
    entry(box, "the question", kind="dns", name=name)
    lines, connection = [], box.server.connection()

    def read():
        connection.request("GET", f"/v0/sandbox/{box.name}/network/log?follow=true", headers={
            "Authorization": f"Bearer {box.server.key}"})
        for line in connection.getresponse():
            lines.append(json.loads(line))

    def seen(**wanted):
        return [line for line in list(lines) if all(line.get(key) == value for key, value in wanted.items())]

    reader = threading.Thread(target=read)
    reader.start()
    wait_until(lambda: seen(kind="dns", name=name), 60, lambda: lines)
    box.do("echo(web, port)", web=WEB, port=ECHO)
    wait_until(lambda: seen(kind="direct", open=False, port=ECHO), 60, lambda: lines)
    assert seen(kind="direct", open=False)[0]["bytesOut"] > 0
    box.delete()
    reader.join(60)
    assert not reader.is_alive()


def egress_pid(server):
    return int((server.data / "run" / "server").read_text(encoding="ascii").split()[4])


def kill_egress(server):
    old = egress_pid(server)
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not process_alive(old), 30, "the egress process gone")
    wait_until(lambda: egress_pid(server) not in (0, old), 60, "another egress process")


def kept(server, box):
    path = pathlib.Path(server.data, "db", "network", box.get()["metadata"]["id"])
    return path.read_bytes() if path.exists() else b""


@pytest.mark.parametrize("who", ["egress", "cellad", "all"])
def test_it_outlives(world, world_factory, boxes, who):
    """The death of who collects it, of who keeps it, and of the server; numbers go on."""
    server = world_factory()
    box, name = boxes("isolated", server=server), world.name(WEB)
    box.do("[addresses(name), echo(web, port)]", name=name, web=WEB, port=ECHO)
    before = [entry(box, "the question", kind="dns", name=name),
              entry(box, "the connection", kind="direct", port=ECHO, open=False)]
    wait_until(lambda: kept(server, box).count(name.encode()) == 2, 60, "both on disk")
    if who == "egress":
        kill_egress(server)
    elif who == "cellad":
        server.wait_recovered(server.kill("cellad"), "cellad")
    else:
        server.stop()
        server.start()
        box.start()
    wait_until(lambda: box.do("echo(web, 22)['got']", web=WEB) == "hello", 60, "a connection")
    after = entry(box, "what came later", kind="direct", port=22, open=False)
    assert [each for each in entries(box) if each["sequence"] <= before[-1]["sequence"]] == before
    assert after["sequence"] > before[-1]["sequence"]
    box.delete()
    folder = pathlib.Path(server.data, "db", "network")
    wait_until(lambda: [path.name for path in folder.iterdir()] in ([".position"], []), 30,
               lambda: list(folder.iterdir()))
