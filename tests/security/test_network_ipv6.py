# SPDX-License-Identifier: Apache-2.0
"""A second family of addresses is a second way around every rule. What no sandbox reaches is tried with
both in test_network_reach.py; here is what decides by name and by prefix, and what is IPv6's own."""

import contextlib
import os
import pathlib
import subprocess
import sys

import pytest

from cella_server import wait_until
from network_inside import Box
from world import CUT_OFF6, ECHO, HOST6, METADATA6, OTHER6, PRIVATE6, WEB, WEB6


@pytest.fixture(scope="module")
def listed(world, world_server):
    """(a sandbox that may reach one name, that name, another name on the same address)."""
    good, bad = world.name(WEB6), world.name(WEB6)
    made = world_server.create(network={"mode": "allowlist", "allow": [good], "ipv6": True})
    yield Box(made), good, bad
    made.delete()


def test_a_name_is_needed_and_it_decides(world, listed):
    box, good, bad = listed
    since = world.now()
    got = box.do("[http(web, good)['status'], https(web, good)['status'], http(web, bad)['status'], "
                 "https(web, bad)['error'], http(web, '[' + web + ']')['status'], https(web, None)['error']]",
                 web=WEB6, good=good, bad=bad)
    assert got[:3] == [200, 200, 403] and got[4] == 403 and got[3] and got[5], got
    met = world.met(since, kind="http")
    assert {each["host"] for each in met} == {good} and {each["address"] for each in met} == {WEB6}


def test_the_address_that_was_meant_does_not_count(world, listed):
    """The allowed name, sent to another address, ends where the name leads."""
    box, good, _ = listed
    since = world.now()
    assert box.do("[http(other, good)['json']['address'], https(other, good)['json']['address']]",
                  other=OTHER6, good=good) == [WEB6, WEB6]
    assert world.met(since, kind="tcp", address=OTHER6) == []


def test_raw_addresses_other_ports_and_quic(world, listed):
    box, good, _ = listed
    since = world.now()
    assert box.do("ask(good, 'AAAA')['answers'][0][2]", good=good) == WEB6
    got = box.do("together([lambda: echo(web, port, timeout=QUICK), lambda: udp(web, port, timeout=QUICK), "
                 "lambda: udp(web, 443, timeout=QUICK), lambda: tcp(web, 80, 'hello', QUICK), "
                 "lambda: tcp(web, 443, 'hello', QUICK), lambda: tcp(web, 8080, 'hello', QUICK)])",
                 web=WEB6, port=ECHO)
    answers = [each["got"] for each in got if each["got"]]
    assert [answer for answer in answers if "400" not in answer[:20] and answer[0] != "\x15"] == []  # an alert
    assert [met for met in world.met(since) if met["kind"] in ("tcp", "udp")] == []


def test_an_address_is_open_once_it_was_told(world, boxes):
    name = world.name(OTHER6)
    box = boxes("allowlist", ipv6=True, allow=[f"{name}:{ECHO}", f"{name}:5000-5500"])
    tried = "echo(other, port, timeout=patience)['got']"
    assert box.do(tried, other=OTHER6, port=ECHO, patience=2) == ""
    assert box.do("ask(name, 'AAAA')['answers'][0][2]", name=name) == OTHER6
    assert box.do(tried, other=OTHER6, port=ECHO, patience=30) == "hello"
    assert box.do(tried, other=OTHER6, port=5432, patience=30) == "hello"
    assert box.do("[echo(o, 22, timeout=QUICK)['got'], echo(w, port, timeout=QUICK)['got']]", o=OTHER6, w=WEB6,
                  port=ECHO) == ["", ""]


def test_answers_that_lead_inside(world, boxes):
    """Rebinding: an allowed name whose addresses are private, in every spelling that IPv6 has for that."""
    names = {world.name(AAAA=[address]): address for address in (*CUT_OFF6.values(), "::1", "::")}
    both = world.name(WEB6, PRIVATE6, METADATA6)
    box = boxes("allowlist", ipv6=True, allow=["*:*"])
    since = world.now()
    got = box.do("[ask(name, 'AAAA').get('answers') for name in names]", names=list(names))
    assert {names[name]: answers for name, answers in zip(names, got) if answers} == {}
    assert [answer[2] for answer in box.do("ask(name, 'AAAA')['answers']", name=both)] == [WEB6]
    statuses = box.do("[http(web, name, timeout=PATIENT)['status'] for name in names]", web=WEB6, names=list(names))
    assert 200 not in statuses
    assert [met for met in world.met(since, kind="tcp") if met["address"] != WEB6] == []


def test_rules_by_prefix(world, boxes):
    """In both lists, with ports; a rule of one family says nothing about the other."""
    tried = "[echo(a, port, timeout=QUICK)['got'] for a in addresses_]"
    targets = {"addresses_": [WEB6, OTHER6, WEB], "port": ECHO}
    allowed = boxes("allowlist", ipv6=True, allow=[f"[2a0b:91::]/124:{ECHO}", "[2a0b:91::10]:7000-8000/tcp"])
    assert allowed.do(tried, **targets) == ["hello", "", ""]
    denied = boxes("isolated", ipv6=True, deny=["2a0b:91::/124", "2a0b:91::10"])
    assert denied.do(tried, **targets) == ["", "hello", "hello"]
    four = boxes("allowlist", ipv6=True, allow=["0.0.0.0/0"])
    assert four.do(tried, **targets) == ["", "", "hello"]
    six = boxes("allowlist", ipv6=True, allow=["::/0"])
    assert six.do(tried, **targets) == ["hello", "hello", ""]


def test_what_the_operator_opens(world_factory, boxes):
    server = world_factory("--network-allow-private", "fd00::/8")
    tried = "[echo(a, port, timeout=QUICK)['got'] for a in addresses_]"
    targets = {"addresses_": [PRIVATE6, METADATA6, "fd20:ce::254", "fc00::5", HOST6], "port": ECHO}
    assert boxes("full", server=server, ipv6=True).do(tried, **targets) == ["hello", "", "", "", ""]
    assert boxes("isolated", server=server, ipv6=True).do(tried, **targets) == ["", "", "", "", ""]
    neighbour = boxes("full", server=server, ipv6=True)
    own = neighbour.do("own_address(6)")
    with neighbour.doing(f"s = socket.create_server(('::', {ECHO}), family=socket.AF_INET6)\nprint('ready', flush=True)"
                         "\nwhile True: s.accept()[0].sendall(b'NEIGHBOUR')"):
        assert boxes("full", server=server, ipv6=True).do("echo(a, port, timeout=QUICK)['got']", a=own,
                                                          port=ECHO) == ""
    answer = server.request("POST", "/v0/sandbox", {"spec": {"network": {"allow": [METADATA6]}}})
    assert (answer.status, answer.error()) == (403, "NETWORK_REFUSED"), answer


def test_limits_count_both_families(world, boxes):
    """A second family is no second helping of connections; and a neighbour has all of its own."""
    flooder, neighbour = boxes("full", ipv6=True), boxes("full", ipv6=True)
    held = flooder.do("""
kept = []
for number in range(700):
    sock = socket.socket(family_of(web6) if number % 2 else socket.AF_INET)
    sock.settimeout(QUICK)
    try:
        sock.connect((web6 if number % 2 else web, port))
        kept.append(sock)
    except OSError:
        if number > 512:
            break
    time.sleep(0.002)
result = len(kept)
""", web6=WEB6, web=WEB, port=ECHO)
    assert held <= 520, held
    assert neighbour.do("echo(web, port)['got']", web=WEB6, port=ECHO) == "hello"


# Sends packets made by hand from the sandbox's network, with the rights of the machine's root, who alone can:
# so that the rules, and not only the lack of rights, are seen to stop them.
BY_HAND = """
import socket, struct, sys
own, web, private = sys.argv[1:4]
six = lambda text: socket.inet_pton(socket.AF_INET6, text)
sock = socket.socket(socket.AF_INET6, socket.SOCK_RAW, socket.IPPROTO_RAW)
def send(source, target, kind, body, hops=255):
    if kind == 58 or kind == 17:  # with the sum over the header that it needs
        words = six(source) + six(target) + struct.pack('>2I', len(body), kind) + body + bytes(len(body) % 2)
        total = sum(struct.unpack(f'>{len(words) // 2}H', words))
        total = (total & 0xffff) + (total >> 16)
        total = (total & 0xffff) + (total >> 16)
        at = 2 if kind == 58 else 6
        body = body[:at] + struct.pack('>H', 0xffff - total) + body[at + 2:]
    try:
        sock.sendto(struct.pack('>IHBB', 6 << 28, len(body), kind, hops) + six(source) + six(target) + body, (target, 0))
    except OSError as error:
        print('unsent', target, error)
udp = struct.pack('>4H', 4000, 4001, 8, 0)
advert = struct.pack('>BBHBBHII', 134, 0, 0, 64, 0, 1800, 0, 0) + \\
    struct.pack('>BBBBIII', 3, 4, 64, 0xc0, 3600, 3600, 0) + six('2a0b:66::')
solicit = struct.pack('>BBHI', 135, 0, 0, 0) + six(private)
for source in (own, 'fe80::7'):
    for target in ('ff02::1', 'ff02::2', web, private):
        send(source, target, 58, advert)
        send(source, target, 58, solicit)
        send(source, target, 58, struct.pack('>BBHI', 133, 0, 0, 0))
        send(source, target, 58, struct.pack('>BBHI', 137, 0, 0, 0) + six(web) + six(private))
for source in ('fe80::7', '2a0b:66::66', private, '::1', '::'):
    send(source, web, 17, udp)
routed = bytes([17, 2, 0, 1]) + bytes(4) + six(private)  # a source route, type 0
options = bytes([17, 0, 1, 4, 0, 0, 0, 0])
for kind, head in ((43, routed), (0, options), (60, options)):
    send(own, web, kind, head + udp)
send(own, web, 17, struct.pack('>4H', 4000, 4002, 8, 0))
print('sent')
"""


def link_of(path):
    with contextlib.suppress(OSError):  # it may have ended
        return os.readlink(path)
    return None


def test_packets_made_by_hand(world, world_server, boxes):
    """Router advertisements, redirects, neighbours, source routes, options, foreign and local sources."""
    box = boxes("full", ipv6=True)
    router = ["nsenter", f"--net={world_server.data}/run/router", "sh", "-c", "ip -6 addr; ip -6 route; ip -6 neigh"]
    namespace, own = box.run("readlink /proc/self/ns/net"), box.do("own_address(6)")
    inside = next(path for path in pathlib.Path("/proc").glob("[0-9]*/ns/net") if link_of(path) == namespace)
    world.packets(forget=True)
    done = subprocess.run(["nsenter", f"--net={inside}", sys.executable, "-c", BY_HAND, own, WEB6, PRIVATE6],
                          check=True, text=True, stdout=subprocess.PIPE, timeout=60)
    assert "sent" in done.stdout.splitlines(), done.stdout
    assert box.do("udp(web, port)['got']", web=WEB6, port=ECHO) == "hello"  # after all of these
    wait_until(lambda: [packet for packet in world.packets() if packet[3] == 4002], 30, "what is made right")
    assert [packet for packet in world.packets() if packet[3] == 4001 or packet[2] == PRIVATE6
            or (packet[0] in (0, 43, 58, 60) and packet[2] == WEB6)] == []
    learned = subprocess.run(router, check=True, text=True, stdout=subprocess.PIPE).stdout
    assert [word for word in ("2a0b:66", "fe80::7", "proto ra", "proto redirect") if word in learned] == []
