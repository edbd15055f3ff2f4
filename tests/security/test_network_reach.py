# SPDX-License-Identifier: Apache-2.0
"""What no sandbox reaches, whatever its network is: the machine, its services, the control plane, other
sandboxes, metadata and private ranges. And what its root cannot do to its own network."""

import json

import pytest

from cella_server import wait_until
from network_inside import Box
from world import DATABASE, ECHO, EVIL, FAMILIES, METADATA, OTHER, PRIVATE, WEB, WEB6

EVERYTHING = [*(family.everything for family in FAMILIES.values()), "*:*"]
MODES = {"isolated": {}, "full": {}, "allowlist": {"allow": EVERYTHING}}
# Those mean the sandbox itself, inside.
ITS_OWN = ("127.0.0.1", "127.9.9.9", "0.0.0.0")
ICMPV6 = 58  # whose packets between neighbours the machine sends itself


@pytest.fixture(scope="module", params=[(mode, version) for version in FAMILIES for mode in MODES],
                ids=lambda param: f"{param[0]}-ipv{param[1]}")
def box(request, world_server):
    """A sandbox whose owner allows all that he can, in each mode, with the addresses of the family that is
    tried. For tests that only look."""
    mode, version = request.param
    made = world_server.create(network={"mode": mode, "ipv6": version == 6, **MODES[mode]})
    looked_at = Box(made)
    looked_at.family = FAMILIES[version]
    yield looked_at
    made.delete()


def assert_alive(world, box):
    """Whatever was refused was not refused because nothing works."""
    since, web = world.now(), getattr(box, "family", FAMILIES[4]).web
    assert box.do("echo(web, port)", web=web, port=ECHO)["got"] == "hello"
    assert len(world.met(since, kind="tcp", address=web, port=ECHO)) == 1


PROBE = """
result, pairs = {}, [(address, kind, port) for address in addresses_ for kind, port in ports]
for at in range(0, len(pairs), 100):
    batch = pairs[at:at + 100]
    for pair, got in zip(batch, together([
            (lambda a=a, k=k, p=p: (udp if k == 'udp' else tcp)(a, p, 'GET / HTTP/1.0\\r\\n\\r\\n', QUICK))
            for a, k, p in batch])):
        if got['got'] and '403' not in got['got'][:20]:
            result[' '.join(map(str, pair))] = got
"""


def probe(box, addresses, ports):
    """What came back from there, at those ports: {'address kind port': outcome}."""
    return box.do(PROBE, addresses_=list(addresses), ports=ports)


def test_ranges_that_are_cut_off(world, box):
    since, before = world.now(), world.host.now()
    world.packets(forget=True)
    targets = [address for address in box.family.cut_off.values() if address not in ITS_OWN]
    ports = [("tcp", 80), ("tcp", 443), ("tcp", ECHO), ("udp", ECHO), ("udp", 443)]
    assert probe(box, targets, ports) == {}
    assert_alive(world, box)
    assert [met for met in world.met(since) if met.get("address") in targets] == []
    assert [packet for packet in world.packets() if packet[2] in targets and packet[0] != ICMPV6] == []
    assert world.host.met(before) == []


def test_the_machines_services(world, world_server, box):
    """By every address that the machine has, and at every port that something listens on."""
    before = world.host.now()
    links = json.loads(world.host.run("ip", "-j", f"-{box.family.version}", "addr"))
    own = {info["local"] for link in links for info in link["addr_info"]} - {"127.0.0.1", "::1"}
    assert box.family.host in own
    ports = [("tcp", port) for port in (22, 80, 443, 8080, 8443, DATABASE, world_server.port())]
    assert probe(box, own, ports + [("udp", ECHO)]) == {}
    assert_alive(world, box)
    assert world.host.met(before) == []


def test_the_router_offers_names_and_nothing_else(world, world_server, box):
    """The proxies and the resolver behind the router's address are not to be spoken to directly."""
    before, since = world.host.now(), world.now()
    ports = [("tcp", port) for port in (22, 80, 443, 853, 5353, 8080, 8081, 8443, 8444, world_server.port())]
    router = box.do("[gateway(version), resolver()]", version=box.family.version)
    assert probe(box, set(router), ports + [("udp", ECHO), ("udp", 5353)]) == {}
    assert_alive(world, box)
    assert world.host.met(before) == [] and world.met(since, kind="http") == []


@pytest.mark.parametrize("version", FAMILIES)
def test_a_neighbour(world, boxes, version):
    """No mode reaches another sandbox: not by its address, not with its address."""
    family, six = FAMILIES[version], version == 6
    pair = [boxes("full", ipv6=six), boxes("isolated", ipv6=six), boxes("allowlist", ipv6=six, allow=EVERYTHING)]
    own = [each.do("own_address(version)", version=version) for each in pair]
    assert len(set(own)) == len(pair)
    for each in pair:
        each.write("/tmp/listen.py", """
import socket, threading
def serve(sock):
    while True:
        peer, where = sock.accept()
        print('MET', where, flush=True)
        peer.sendall(b'NEIGHBOUR')
def datagrams(sock):
    while True:
        print('MET', sock.recvfrom(100), flush=True)
for port in (80, 443, 9000):
    sock = socket.create_server(('::', port), family=socket.AF_INET6, dualstack_ipv6=True)
    threading.Thread(target=serve, args=(sock,)).start()
sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
sock.bind(('::', 9000))
threading.Thread(target=datagrams, args=(sock,)).start()
print('ready', flush=True)
""")
        each.pid = each.spawn("exec python3 /tmp/listen.py")
        wait_until(lambda: "ready" in each.logs(each.pid)["stdout"], 20, "the listeners")
    for each, address in zip(pair, own):
        others = [other for other in own if other != address]
        assert probe(each, others, [("tcp", 80), ("tcp", 443), ("tcp", 9000), ("udp", 9000)]) == {}
        spoofed = each.do("together([lambda o=o: udp_from(o, to, 9000) for o in others for to in others + [web]]"
                          " + [lambda o=o: tcp_from(o, web, echo_port) for o in others])",
                          others=others, web=family.web, echo_port=ECHO)
        assert [got for got in spoofed if got["got"]] == []
    for each in pair:
        assert each.logs(each.pid)["stdout"] == "ready\n"
        assert_alive(world, each)


def test_a_source_that_is_not_its_own(world, box):
    """Sockets can be bound to foreign addresses without any right; packets from them go nowhere."""
    world.packets(forget=True)
    family = box.family
    sources = [family.evil, family.web, family.host, family.router, family.metadata, family.private,
               box.do("gateway(version)", version=family.version)]
    got = box.do("together([lambda s=s: udp_from(s, web, port) for s in sources] + "
                 "[lambda s=s: tcp_from(s, web, port) for s in sources])", sources=sources, web=family.web, port=ECHO)
    assert [each for each in got if each["got"]] == []
    assert_alive(world, box)
    assert [packet for packet in world.packets()
            if family.owns(packet[1]) and packet[1] != family.host and packet[0] != ICMPV6] == []


def test_raw_packets(world, box):
    """Headers made by hand; refused altogether, or dropped where they lie about their source."""
    world.packets(forget=True)
    tried = box.do("""
result = {}
for name, family, kind, protocol in (('ip', socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_RAW),
                                     ('tcp', socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP),
                                     ('icmp', socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
                                     ('packet', 17, socket.SOCK_RAW, 0x0300)):
    def go(family=family, kind=kind, protocol=protocol, name=name):
        with socket.socket(family, kind, protocol) as sock:
            for source, target in ((evil, web), (own_address(), private), (own_address(), metadata)):
                head = struct.pack('>BBHHHBBH4s4s', 0x45, 0, 28, 1, 0, 64, 17, 0, socket.inet_aton(source),
                                   socket.inet_aton(target)) + struct.pack('>4H', 9, 9, 8, 0)
                try:
                    if name != 'packet':
                        sock.sendto(head if name == 'ip' else head[20:], (target, 0))
                except OSError:
                    pass
            return {'got': 'opened', 'error': None}
    result[name] = outcome(go)
""", web=WEB, evil=EVIL, private=PRIVATE, metadata=METADATA)
    assert tried["packet"]["error"], tried
    assert_alive(world, box)
    lies = [packet for packet in world.packets() if packet[1] == EVIL or packet[2] in (PRIVATE, METADATA)]
    assert lies == []


# Echo requests to all of them, until all have answered or the time is over; who did.
PING = """
import select
six = ':' in targets[0]
sock = socket.socket(socket.AF_INET6 if six else socket.AF_INET, socket.SOCK_DGRAM,
                     socket.IPPROTO_ICMPV6 if six else socket.IPPROTO_ICMP)
result, end = [], time.monotonic() + seconds
sock.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
while time.monotonic() < end and not set(targets) <= set(result):
    for target in targets:
        with contextlib.suppress(OSError):
            sock.sendto(struct.pack('>BBHHH', 128 if six else 8, 0, 0, 0, 1), (target, 0))
    while select.select([sock], [], [], 0.5)[0]:
        with contextlib.suppress(OSError):
            data, where = sock.recvfrom(2000)
            if data[0] == (129 if six else 0):
                result = sorted({*result, where[0]})
"""


def test_pings(world, box):
    """What is cut off is so for echo requests too, which have no port."""
    world.packets(forget=True)
    family = box.family
    own = box.do("own_address(version)", version=family.version)  # one of all nodes
    targets = [address for address in family.cut_off.values() if address not in ITS_OWN]
    assert set(box.do(PING, targets=targets, seconds=2)) <= {own}
    assert box.do(PING, targets=[family.web], seconds=30) == [family.web]
    seen = {packet[2] for packet in world.packets() if packet[0] in (1, ICMPV6)}
    assert {address for address in seen & {family.web, *targets} if not address.startswith("ff02::")
            and address != family.router} == {family.web}  # the machine and its neighbour speak to each other, too


def test_a_ping_is_no_port_of_a_name(world, boxes):
    """An allow list of names admits what its ports say, and nothing else, to the addresses behind them."""
    name = world.name(OTHER)
    box = boxes("allowlist", allow=[name, f"{name}:{ECHO}"])
    world.packets(forget=True)
    assert box.do("addresses(name)", name=name) == [OTHER]
    assert box.do("echo(other, port)", other=OTHER, port=ECHO)["got"] == "hello"
    assert box.do(PING, targets=[OTHER], seconds=2) == []
    assert [packet for packet in world.packets() if packet[0] == 1] == []


def test_names_are_asked_of_one_resolver_only(world, box):
    """Whoever the question is sent to, ours answers it, by UDP and by TCP."""
    family = box.family
    name, since = world.name(family.other), world.now()
    servers = [family.foreign_resolver, family.evil, family.metadata, family.private, family.host,
               box.do("gateway(version)", version=family.version)]
    got = box.do("together([lambda s=s, t=t: ask(name, kind, server=s, over_tcp=t) for s in servers "
                 "for t in (0, 1)])", servers=servers, name=name, kind=family.record)
    for each in got:
        assert [answer[2] for answer in each.get("answers", [])] in ([family.other], []), got
    assert got[0]["answers"] and got[1]["answers"], got
    asked = world.met(since, kind="dns", name=name)
    assert asked and {each["address"] for each in asked} == {"45.92.0.53"}


@pytest.mark.parametrize("mode", MODES)
def test_ipv6_is_off(world, boxes, mode):
    """Unless it is asked for."""
    box, name = boxes(mode, **MODES[mode]), world.name(WEB, WEB6)
    world.packets(forget=True)
    got = box.do("together([lambda: echo(six, port, timeout=QUICK), lambda: udp(six, port, timeout=QUICK), "
                 "lambda: echo('fe80::1%eth0', port, timeout=QUICK), lambda: echo('ff02::1', port, timeout=QUICK)])",
                 six=WEB6, port=ECHO)
    assert [each for each in got if each["got"]] == []
    assert [each for each in box.do("ask(name, 'AAAA')", name=name).get("answers", []) if each[0] == "AAAA"] == []
    assert "inet6" not in box.exec("cat /proc/net/if_inet6 | grep -v ' lo$'").stdout
    assert_alive(world, box)
    assert [packet for packet in world.packets() if packet[2] == WEB6] == []


CHANGES = ["ip addr add 45.66.66.66/32 dev eth0", "ip addr flush dev eth0", "ip link set eth0 down",
           "ip link set eth0 mtu 9000", "ip link set eth0 address 02:00:00:00:00:09", "ip link set eth0 arp on",
           "ip route replace default dev eth0", "ip route add 10.77.0.0/16 dev eth0", "ip rule add pref 1 table 7",
           "ip neigh replace 45.66.66.66 lladdr 02:00:00:00:00:09 dev eth0", "ip link add veth9 type veth",
           "tc qdisc del dev eth0 root", "tc qdisc replace dev eth0 root pfifo", "nft flush ruleset",
           "nft add table inet mine", "ip link set eth0 netns 1", "ip netns add other",
           "echo 1 > /proc/sys/net/ipv4/ip_forward", "echo 0 > /proc/sys/net/ipv6/conf/eth0/disable_ipv6"]


def test_its_root_cannot_change_its_network(world, box):
    """Its addresses, routes and limits belong to the machine's root, not to the sandbox's."""
    see = "cat /proc/net/route /proc/net/fib_trie /proc/net/dev_mcast; ip -o link show eth0"
    before = box.exec(f"bash -c '{see}'").stdout
    assert "eth0" in before
    for change in CHANGES:
        done = box.exec(change)
        assert done.exit_code != 0, (change, done)
    assert box.exec(f"bash -c '{see}'").stdout == before
    assert_alive(world, box)


def test_without_a_network_there_is_none(world, boxes):
    nowhere = "45.94.0.9"  # that nobody else speaks to: the last words of earlier tests may be on their way
    world.packets(forget=True)
    before = world.host.now()
    box = boxes("none")
    assert "eth0:" not in box.run("cat /proc/net/dev")
    got = box.do("together([lambda: echo(nowhere, port, timeout=QUICK), lambda: udp(nowhere, port, timeout=QUICK), "
                 "lambda: ask('x.example', server=nowhere, timeout=QUICK), lambda: udp(metadata, 80, timeout=QUICK)])",
                 nowhere=nowhere, port=ECHO, metadata=METADATA)
    assert [each for each in got if each["got"]] == []
    assert [packet for packet in world.packets() if packet[2] in (nowhere, METADATA)] == []
    assert world.host.met(before) == []
