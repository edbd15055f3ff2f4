# SPDX-License-Identifier: Apache-2.0
"""A sandbox's network as the kernel enforces it: without the egress process, and as one inside would
try it. The Internet is one of our own (world.py), the warden's machine a namespace in it."""

import ipaddress
import json
import os
import pathlib
import socket
import struct
import subprocess
import sys
import time

import pytest

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT), str(ROOT / "support")]

import wardenlib  # noqa: E402
import wirelib  # noqa: E402
import world as worldlib  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

NONE, ISOLATED, ALLOWLIST, FULL = range(4)
DENY, ALLOW = 0, 1
TCP, UDP = 6, 17
OPENED = "10.77.0.0/16"  # by the operator; world.PRIVATE is in it

# Prints what became of a connection or a question: "open", "refused" or "silence", and what came back.
PROBE = r"""
import errno, socket, sys
kind, address, port = sys.argv[1], sys.argv[2], int(sys.argv[3])
sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
sock.settimeout(float(sys.argv[4]))
try:
    sock.connect((address, port))
    sock.sendall(b"hello\n")
    print("open", sock.recv(64).decode().strip())
except socket.timeout:
    print("silence")
except OSError as error:
    print("refused", errno.errorcode.get(error.errno, error))
"""


def rule(verdict, prefix, protocol=0, first=0, last=65535):
    network = ipaddress.ip_network(prefix)
    return struct.pack("=BBBBHH16s", 4, network.prefixlen, verdict, protocol, first, last,
                       network.network_address.packed)


class Box:
    def __init__(self, warden, name, **plan):
        self.warden, self.name = warden, name
        self.address = warden.start(name, **plan)["address"]

    def probe(self, address, port, kind="tcp", seconds=30):
        script = f"python3 -c '{PROBE}' {kind} {address} {port} {seconds}"
        return self.warden.output(self.name, script, timeout_ms=60000).strip()

    def reaches(self, address, port, kind="tcp"):
        return self.probe(address, port, kind).startswith("open")

    def connects(self, address, port):
        script = f"import socket; socket.create_connection((\"{address}\", {port}), 30)"
        return self.warden.run(self.name, f"python3 -c '{script}'", timeout_ms=60000)[0] == 0

    def refused(self, address, port, kind="tcp", seconds=2):
        """Refused, or never answered."""
        return not self.probe(address, port, kind, seconds).startswith("open")

    def set(self, network, **fields):
        self.warden.connection.call("WARDEN_NET_SET", id=self.name, network=network, **fields)

    def sample(self):
        return self.warden.connection.call_many("WARDEN_STATS", ids=[self.name])[0]


@pytest.fixture(scope="module")
def world():
    world = worldlib.World()
    yield world
    world.close()


def make_warden(world, *arguments, **how):
    return wardenlib.Warden(arguments=["--network", "on", "--network-open", OPENED, *arguments],
                            prefix=["nsenter", f"--net={world.host.namespace}", "--"], **how)


@pytest.fixture(scope="module")
def warden(world):
    with make_warden(world) as warden:
        assert warden.connection.call("WARDEN_HELLO")["network"] is None
        yield warden
    assert remains(world) == []


def remains(world):
    links = json.loads(world.host.run("ip", "-j", "link", "show"))
    tables = world.host.run("nft", "list", "tables").splitlines()
    return [link["ifname"] for link in links if link["ifname"] not in ("lo", "eth0")] + tables


@pytest.fixture
def clean(world):
    """Nothing is on the machine afterwards that was not before."""
    before = remains(world)
    yield
    assert remains(world) == before


@pytest.fixture
def box(warden, request):
    """Makes sandboxes that are removed again."""
    names = []

    def make(**plan):
        names.append(f"{request.node.name.replace('_', '').lower()[-20:].strip('[]')}{len(names)}".replace("[", ""))
        return Box(warden, "".join(c for c in names[-1] if c.isalnum()), **plan)

    yield make
    for entry in list(warden.list()):
        warden.remove(entry)


# ---- what passes ----


def test_it_reaches_the_internet_and_comes_from_the_machine(world, box):
    one, since = box(network=FULL), world.now()
    assert one.probe(worldlib.WEB, worldlib.ECHO) == "open hello"
    assert one.probe(worldlib.WEB, worldlib.ECHO, "udp") == "open hello"
    met = world.met(since, port=worldlib.ECHO)
    assert met and {event["source"] for event in met} == {worldlib.HOST}


def test_without_network_it_has_none(box):
    one = box()
    assert one.address is None
    assert one.probe(worldlib.WEB, worldlib.ECHO) == "refused ENETUNREACH"


@pytest.mark.parametrize("mode", [ISOLATED, FULL])
def test_what_is_always_cut_off(world, box, mode):
    one, other, since = box(network=mode), box(network=mode), world.now()
    targets = {**worldlib.CUT_OFF, "the other sandbox": other.address, "the gateway": "10.201.0.1"}
    del targets["private 10"]  # the operator has opened it
    del targets["loopback"], targets["loopback, another"], targets["this network"]  # its own
    other.warden.spawn(other.name, f"python3 -m http.server {worldlib.ECHO}")
    for name, address in targets.items():
        assert one.refused(address, worldlib.ECHO, seconds=1), name
    assert one.refused("10.201.0.1", 8080) and one.refused(worldlib.HOST, 22)
    assert not world.met(since, kind="tcp") and not world.met(since, kind="echo")


def test_the_operator_opens_a_private_range_for_some(box):
    full, isolated = box(network=FULL), box(network=ISOLATED)
    assert full.reaches(worldlib.PRIVATE, worldlib.ECHO)
    assert isolated.refused(worldlib.PRIVATE, worldlib.ECHO)


# ---- rules ----


def test_an_allow_list_admits_what_it_lists(box):
    one = box(network=ALLOWLIST, network_rules=rule(ALLOW, "45.91.0.0/24", TCP, 7000, 8000)
              + rule(ALLOW, worldlib.OTHER + "/32") + rule(ALLOW, "10.99.0.0/16"))
    assert one.reaches(worldlib.WEB, worldlib.ECHO)
    assert one.refused(worldlib.WEB, worldlib.DATABASE)
    assert one.refused(worldlib.WEB, worldlib.ECHO, "udp")
    assert one.reaches(worldlib.OTHER, worldlib.ECHO, "udp")
    assert one.connects(worldlib.OTHER, worldlib.HTTP)  # itself: no proxy is there
    assert not one.connects(worldlib.WEB, worldlib.HTTP)
    assert one.refused(worldlib.EVIL, worldlib.ECHO)
    assert one.refused("10.99.0.1", worldlib.ECHO)  # private: the owner alone cannot


def test_a_policy_as_long_as_it_may_be(box):
    """Of 256 rules, each of which is two of the kernel's: one transaction, in which the last one counts too."""
    many = b"".join(rule(ALLOW, f"45.{100 + i // 200}.{i % 200}.0/24", first=5000, last=6000) for i in range(255))
    one = box(network=ALLOWLIST, network_rules=many + rule(ALLOW, worldlib.WEB + "/32", first=7000, last=8000))
    assert one.reaches(worldlib.WEB, worldlib.ECHO) and one.refused(worldlib.OTHER, worldlib.ECHO)
    one.set(ALLOWLIST, network_rules=many + rule(ALLOW, worldlib.OTHER + "/32", first=7000, last=8000))
    assert one.reaches(worldlib.OTHER, worldlib.ECHO) and one.refused(worldlib.WEB, worldlib.ECHO)
    one.set(ISOLATED)
    assert one.reaches(worldlib.WEB, worldlib.ECHO)


def test_what_is_denied_is_denied(box):
    one = box(network=FULL, network_rules=rule(ALLOW, worldlib.WEB + "/32", TCP, 5432, 5432)
              + rule(DENY, worldlib.WEB + "/32", TCP) + rule(ALLOW, "45.91.0.0/16"))
    assert one.reaches(worldlib.WEB, worldlib.DATABASE)  # the first that fits decides
    assert one.refused(worldlib.WEB, worldlib.ECHO)
    assert one.reaches(worldlib.WEB, worldlib.ECHO, "udp")
    assert one.reaches(worldlib.OTHER, worldlib.ECHO)


def egress(warden):
    return wirelib.Connection(warden.egress_path)


def packed(address):
    return ipaddress.ip_address(address).packed


def test_the_egress_process_admits_an_address(warden, box):
    one, other = box(network=ALLOWLIST), box(network=ALLOWLIST)
    assert one.refused(worldlib.WEB, worldlib.ECHO)
    with egress(warden) as connection:
        for _ in range(2):
            connection.call("WARDEN_NET_ADMIT", id=one.name, sandbox=packed(one.address), address=packed(worldlib.WEB),
                            protocol=TCP, port=worldlib.ECHO, ttl_s=300)
        for _ in range(2):
            for address, first, last in [(worldlib.OTHER, 1, 65535), (worldlib.EVIL, 5000, 6000)]:
                connection.call("WARDEN_NET_ADMIT", id=one.name, sandbox=packed(one.address), address=packed(address),
                                protocol=TCP, port=first, last_port=last, ttl_s=300)
    assert one.reaches(worldlib.WEB, worldlib.ECHO) and one.reaches(worldlib.OTHER, worldlib.ECHO)
    assert one.refused(worldlib.WEB, worldlib.DATABASE) and one.refused(worldlib.OTHER, worldlib.ECHO, "udp")
    assert one.reaches(worldlib.EVIL, worldlib.DATABASE) and one.refused(worldlib.EVIL, worldlib.ECHO)
    assert other.refused(worldlib.WEB, worldlib.ECHO)


def test_an_admission_ends(warden, box):
    one = box(network=ALLOWLIST)
    with egress(warden) as connection:
        connection.call("WARDEN_NET_ADMIT", id=one.name, sandbox=packed(one.address), address=packed(worldlib.WEB),
                        protocol=TCP, port=worldlib.ECHO, ttl_s=1)
    wardenlib.wait_until(lambda: one.refused(worldlib.WEB, worldlib.ECHO), "the admission ends")


def test_nobody_fills_the_tables_of_admissions_alone(warden, box):
    """Ranges of ports cost the kernel most. One that has as many as it may have gets no more; others do."""
    one, other = box(network=ALLOWLIST), box(network=ALLOWLIST)

    def admit(connection, which, number):
        address = f"45.70.{number // 250}.{number % 250}"
        connection.call("WARDEN_NET_ADMIT", id=which.name, sandbox=packed(which.address), address=packed(address),
                        protocol=TCP, port=5000, last_port=6000, ttl_s=300)

    with egress(warden) as connection:
        for number in range(256):
            admit(connection, one, number)
        with pytest.raises(wirelib.WireError, match="admitted already"):
            admit(connection, one, 256)
        admit(connection, other, 256)
        # Single ports are another matter.
        connection.call("WARDEN_NET_ADMIT", id=one.name, sandbox=packed(one.address), address=packed(worldlib.WEB),
                        protocol=TCP, port=worldlib.ECHO, ttl_s=300)
    assert one.reaches(worldlib.WEB, worldlib.ECHO)


def test_an_admission_does_not_open_what_is_cut_off(warden, box):
    one = box(network=ALLOWLIST)
    with egress(warden) as connection:
        connection.call("WARDEN_NET_ADMIT", id=one.name, sandbox=packed(one.address), address=packed(worldlib.METADATA),
                        protocol=TCP, port=worldlib.ECHO, ttl_s=300)
    assert one.refused(worldlib.METADATA, worldlib.ECHO)


def test_each_socket_takes_its_own_messages(warden, box):
    one = box(network=ALLOWLIST)
    admit = {"id": one.name, "sandbox": packed(one.address), "address": packed(worldlib.WEB), "protocol": TCP, "port": 1,
             "ttl_s": 1}
    with wirelib.Connection(warden.socket_path) as connection, pytest.raises(ConnectionError):
        connection.call("WARDEN_NET_ADMIT", **admit)
    for name, fields in [("WARDEN_HELLO", {}), ("WARDEN_LIST", {}), ("WARDEN_REMOVE", {"id": one.name}),
                         ("WARDEN_NET_SET", {"id": one.name, "network": FULL})]:
        with egress(warden) as connection, pytest.raises(ConnectionError):
            connection.call(name, **fields)
    bad = [{"sandbox": b""}, {"address": b"\0" * 16}, {"protocol": 1}, {"port": 0}, {"port": 65536}, {"ttl_s": 0},
           {"sandbox": packed("10.201.0.1")}, {"id": "stranger"}]
    with egress(warden) as connection:
        for change in bad:
            with pytest.raises(wirelib.WireError):
                connection.call("WARDEN_NET_ADMIT", **{**admit, **change})


def listener(warden, which):
    with egress(warden) as connection:
        connection.send("WARDEN_NET_LISTEN", which=which)
        data, fds, _, _ = socket.recv_fds(connection.sock, 12, 1)
        number = struct.unpack("<IHHI", data)[1]
        assert number == wirelib.WIRE_OK and len(fds) == 1
        return socket.socket(fileno=fds[0])


def test_names_and_the_web_end_at_the_egress_process(warden, box):
    """Whatever server is asked, and wherever the connection was to go; and its source is the sandbox."""
    one = box(network=ALLOWLIST)
    with listener(warden, 1) as dns, listener(warden, 3) as http, listener(warden, 4) as tls:
        for sock in (dns, http, tls):
            sock.settimeout(30)
        warden.spawn(one.name, f"python3 -c '{PROBE}' udp {worldlib.FOREIGN_RESOLVER} 53 30 >/tmp/dns")
        question, peer = dns.recvfrom(100)
        assert (question, peer[0]) == (b"hello\n", one.address)
        dns.sendto(b"answer", peer)
        wardenlib.wait_until(lambda: warden.run(one.name, "cat /tmp/dns")[1] == "open answer\n", "the answer")
        for sock, port in ((http, 80), (tls, 443)):
            warden.spawn(one.name, f"python3 -c '{PROBE}' tcp {worldlib.EVIL} {port} 30")
            stream, peer = sock.accept()
            with stream:
                stream.settimeout(30)
                original = stream.getsockopt(socket.SOL_IP, 80, 16)
                assert peer[0] == one.address and stream.recv(100) == b"hello\n"
                assert struct.unpack("!2xH4s8x", original) == (port, packed(worldlib.EVIL))
        with pytest.raises(AssertionError):  # it is taken
            listener(warden, 3)
    with listener(warden, 3):
        pass


# ---- changes ----


def keep_talking(warden, box):
    """Opens a connection that talks all the time; gives what tells whether a word was said about it."""
    script = ("import socket; s = socket.create_connection((\"%s\", %d), 30)\n"
              "print(\"open\", flush=True)\n"
              "while s.sendall(b\"x\") is None and s.recv(1): __import__(\"time\").sleep(0.02)"
              % (worldlib.WEB, worldlib.ECHO))
    warden.spawn(box.name, f"python3 -uc '{script}' >/tmp/out 2>&1; echo ended >>/tmp/out")

    def says(word):
        return lambda: word in warden.run(box.name, "cat /tmp/out")[1]

    wardenlib.wait_until(says("open"), "a connection")
    return says


def test_a_change_counts_for_what_is_open(warden, box):
    one = box(network=FULL)
    says = keep_talking(warden, one)
    one.set(FULL, network_rules=rule(DENY, worldlib.OTHER + "/32"))  # another rule: it goes on
    assert one.refused(worldlib.OTHER, worldlib.ECHO) and one.reaches(worldlib.WEB, worldlib.ECHO)
    assert not says("ended")()
    one.set(ALLOWLIST)
    wardenlib.wait_until(says("ended"), "the end of the connection")
    assert "Reset" in warden.output(one.name, "cat /tmp/out")
    one.set(NONE)
    assert one.refused(worldlib.WEB, worldlib.ECHO)
    one.set(ISOLATED)
    assert one.reaches(worldlib.WEB, worldlib.ECHO)


def test_what_cannot_be_changed(warden, box):
    one, without = box(network=FULL), box()
    codes = {number: name for name, number in wardenlib.CODES.items()}
    for target, fields, code in [
            (without.name, {"network": FULL}, "CONFLICT"), ("nobody", {"network": FULL}, "NOT_RUNNING"),
            (one.name, {"network": 4}, "INVALID_ARGUMENT"),
            (one.name, {"network": FULL, "network_flags": 4}, "INVALID_ARGUMENT"),
            (one.name, {"network": FULL, "network_in_bytes": 10}, "INVALID_ARGUMENT"),
            (one.name, {"network": FULL, "network_rules": b"x" * 23}, "INVALID_ARGUMENT"),
            (one.name, {"network": FULL, "network_rules": b"x" * 24}, "INVALID_ARGUMENT")]:
        with pytest.raises(wirelib.WireError) as error:
            warden.connection.call("WARDEN_NET_SET", id=target, **fields)
        assert codes[error.value.code] == code
    assert one.reaches(worldlib.WEB, worldlib.ECHO)


# ---- what root inside can do about it ----


ATTEMPTS = [
    "ip addr add 10.201.0.9/32 dev eth0", "ip link set eth0 down", "ip link add v0 type veth",
    "ip route add 1.2.3.4 dev lo", "tc qdisc del dev eth0 root", "ip neigh add 10.201.9.9 lladdr 2:0:0:0:0:1 dev eth0",
    "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 255)'",
    "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 3)'",
    "unshare -n true", "echo 1 >/proc/sys/net/ipv4/ip_forward",
]


def test_root_inside_changes_nothing(warden, box):
    one = box(network=FULL, network_out_bytes=1 << 20)
    for attempt in ATTEMPTS:
        assert warden.run(one.name, attempt)[0] != 0, attempt
    assert "tbf" in warden.output(one.name, "tc qdisc show dev eth0")
    assert one.reaches(worldlib.WEB, worldlib.ECHO)


def test_it_may_do_what_it_could_without_network(warden, box):
    one = box(network=FULL)
    warden.output(one.name, "python3 -c 'import socket; s = socket.socket(); s.bind((\"\", 80))'")
    assert "eth0:" in warden.output(one.name, "cat /proc/net/dev")
    warden.output(one.name, "python3 -c 'import socket; socket.create_server((\"::1\", 81),"
                            " family=socket.AF_INET6)'")


# ---- limits and counters ----


def test_bandwidth_is_limited_both_ways_and_counted(warden, world, box):
    rate, size = 100 << 10, 300 << 10
    one = box(network=FULL, network_in_bytes=rate, network_out_bytes=rate)
    script = ("import socket, threading; s = socket.create_connection((\"%s\", %d), 60)\n"
              "threading.Thread(target=s.sendall, args=(b\"x\" * %d,)).start()\n"
              "n = 0\n"
              "while n < %d: n += len(s.recv(65536))" % (worldlib.WEB, worldlib.ECHO, size, size))
    begun = time.monotonic()
    warden.output(one.name, f"python3 -c '{script}'", timeout_ms=120000)
    assert time.monotonic() - begun > 1.5  # three seconds' worth, less what the bucket holds
    sample = one.sample()
    assert sample["known"] & 8
    assert size < sample["network_in_bytes"] < 3 * size and size < sample["network_out_bytes"] < 3 * size
    assert sample["network_in_packets"] > 0 and sample["network_out_packets"] > 0
    one.set(FULL)
    assert "tbf" not in warden.output(one.name, "tc qdisc show dev eth0")


def test_a_flood_of_connections_ends_at_its_limit(warden, box):
    one, neighbour = box(network=FULL), box(network=FULL)
    script = ("import socket, time\nheld, n = [], 0\n"
              "for i in range(650):\n"
              "  s = socket.socket(); s.setblocking(False); s.connect_ex((\"%s\", %d)); held.append(s)\n"
              "  time.sleep(0.002)\n"
              "for s in held:\n"
              "  try: s.getpeername(); n += 1\n"
              "  except OSError: pass\n"
              "print(n)\n"
              % (worldlib.WEB, worldlib.ECHO))
    alive = int(warden.output(one.name, f"ulimit -n 1000; python3 -c '{script}'", timeout_ms=120000))
    assert alive <= 512
    assert neighbour.reaches(worldlib.WEB, worldlib.ECHO)


# ---- crashes, leaks, neighbours ----


def test_a_killed_warden_changes_nothing_for_those_inside(world, clean):
    with make_warden(world) as warden:
        one = Box(warden, "one", network=FULL, network_rules=rule(DENY, worldlib.OTHER + "/32"))
        warden.restart_warden()
        assert warden.list()["one"]["address"] == one.address
        assert one.reaches(worldlib.WEB, worldlib.ECHO) and one.refused(worldlib.OTHER, worldlib.ECHO)
        one.set(ALLOWLIST, network_rules=rule(ALLOW, worldlib.OTHER + "/32"))
        warden.restart_warden()
        assert one.reaches(worldlib.OTHER, worldlib.ECHO) and one.refused(worldlib.WEB, worldlib.ECHO)
        two = Box(warden, "two", network=FULL)
        assert two.reaches(worldlib.WEB, worldlib.ECHO) and two.address != one.address
        assert warden.leaks(one="running", two="running") == []
        warden.remove("one")
        warden.remove("two")
        assert warden.leaks() == []


def test_a_warden_killed_within_a_change_leaves_nothing_open(world, clean):
    """As if it had written a change down and was killed before making it: the kernel has what no record has."""
    with make_warden(world) as warden:
        one = Box(warden, "one", network=FULL)
        says = keep_talking(warden, one)
        warden.kill_warden()
        record = pathlib.Path(warden.data, "run", "sandboxes", "one")
        lines = [line.split() for line in record.read_text(encoding="ascii").splitlines()]
        for line in lines:
            if line[0] == "net":
                line[2] = str((int(line[2]) + (5 << 8)) % (1 << 32))
        record.write_text("".join(" ".join(line) + "\n" for line in lines), encoding="ascii")
        warden.start_warden()
        one.set(ALLOWLIST)
        wardenlib.wait_until(says("ended"), "the end of the connection")
        assert one.refused(worldlib.WEB, worldlib.ECHO)
        warden.remove("one")
        assert warden.leaks() == []


def test_a_warden_with_other_settings_takes_over(world, clean):
    """After a crash: the router gets the rules that hold now, and no sandbox has any until it is told."""
    with make_warden(world) as warden:
        one = Box(warden, "one", network=FULL)
        assert one.refused("172.20.0.5", worldlib.ECHO) and one.reaches(worldlib.PRIVATE, worldlib.ECHO)
        warden.kill_warden()
        warden.arguments[warden.arguments.index(OPENED)] = "172.20.0.0/16"
        warden.start_warden()
        assert one.refused(worldlib.WEB, worldlib.ECHO)
        one.set(FULL)
        assert one.reaches("172.20.0.5", worldlib.ECHO) and one.refused(worldlib.PRIVATE, worldlib.ECHO)
        warden.kill_warden()
        warden.arguments += ["--network-range", "10.55.0.0/16"]
        warden.start_warden()
        assert "another range than 10.55.0.0/16" in warden.connection.call("WARDEN_HELLO")["network"]
        warden.remove("one")


def test_leaks_tell_of_a_network(world, clean):
    with make_warden(world) as warden:
        Box(warden, "one", network=FULL)
        warden.kill_warden()
        assert any("cv" in line for line in warden.leaks())


def test_two_servers_on_one_machine(world, clean):
    with make_warden(world) as first, make_warden(world) as second:
        one, two = Box(first, "one", network=FULL), Box(second, "one", network=FULL)
        assert one.reaches(worldlib.WEB, worldlib.ECHO) and two.reaches(worldlib.WEB, worldlib.ECHO)
        first.terminate_warden()
        assert two.reaches(worldlib.WEB, worldlib.ECHO)
        second.remove("one")


@pytest.mark.parametrize("step", ["rules", "running"])
def test_a_start_that_fails_leaves_nothing(world, clean, step):
    with make_warden(world, fail_at=step) as warden:
        with pytest.raises(wirelib.WireError):
            warden.start("one", network=FULL, network_rules=rule(DENY, worldlib.OTHER + "/32"))
        assert warden.leaks() == []
        rules = subprocess.run(["nsenter", f"--net={warden.data}/run/router", "nft", "list", "table", "inet", "cella"],
                               check=True, capture_output=True, text=True).stdout
        assert '"cv' not in rules.replace('"cv*"', "") and "chain cv" not in rules


def test_where_there_is_none(world, clean):
    with wardenlib.Warden(prefix=["nsenter", f"--net={world.host.namespace}", "--"]) as warden:
        assert "without" in warden.connection.call("WARDEN_HELLO")["network"]
        with pytest.raises(wirelib.WireError, match="without"):
            warden.start("one", network=FULL)
        assert warden.leaks() == []
