# SPDX-License-Identifier: Apache-2.0
"""IPv6 for those that ask for it: given and taken while a sandbox runs, kept over everything, limited and
counted like IPv4, and refused with a reason where the machine has none."""

import json
import subprocess

import pytest

from cella_server import bin_dir, wait_until
from network_inside import Box
from world import ECHO, OTHER6, WEB, WEB6, World, WorldServer

HOLD = """
with socket.create_connection((web, port), timeout=PATIENT) as sock:
    print('ready', flush=True)
    try:
        while sock.sendall(b'x') is None and sock.recv(10):
            time.sleep(0.05)
    except OSError:
        pass
print('dead', flush=True)
"""


def reaches(box, address=WEB6, patience=30):
    return box.do("echo(address, port, timeout=patience)['got'] == 'hello'", address=address, port=ECHO,
                  patience=patience)


def change(box, **network):
    answer = box.request("PATCH", "/network", network)
    assert answer.status == 200, answer
    assert answer.json()["ipv6"] is network.get("ipv6", answer.json()["ipv6"])


def global_addresses(box):
    """Inside, without the loopback's."""
    lines = box.run("cat /proc/net/if_inet6").splitlines()
    return [line.split()[0] for line in lines if not line.endswith(" lo")]


def test_it_comes_and_goes_while_it_runs(world, boxes):
    box = boxes("full")
    assert global_addresses(box) == [] and not reaches(box, patience=2)
    change(box, ipv6=True)
    since = world.now()
    [own] = global_addresses(box)
    assert own.startswith("fd") and reaches(box) and reaches(box, WEB)
    assert {met["source"] for met in world.met(since, kind="tcp", address=WEB6)} == {"2a0b:90::2"}
    with box.doing(HOLD, web=WEB6, port=ECHO) as said:
        change(box, ipv6=True, deny=[OTHER6])  # another rule: it goes on
        assert reaches(box) and not reaches(box, OTHER6, patience=2) and "dead" not in said()
        change(box, ipv6=False)
        assert global_addresses(box) == [] and not reaches(box, patience=2) and reaches(box, WEB)
    change(box, ipv6=True)
    assert global_addresses(box) == [own] and reaches(box)
    assert box.server.leaks() == ""


def test_datagrams_and_pings(world, boxes):
    box = boxes("isolated", ipv6=True)
    ping = """
def ping(target):
    with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM, socket.IPPROTO_ICMPV6) as sock:
        sock.settimeout(PATIENT)
        sock.connect((target, 0))
        sock.send(struct.pack('>BBHHH', 128, 0, 0, 0, 1) + b'hello')
        return {'got': sock.recv(100)[8:].decode(), 'error': None}
result = [outcome(lambda: ping(web)), udp(web, port)]
"""
    assert [each["got"] for each in box.do(ping, web=WEB6, port=ECHO)] == ["hello", "hello"]


@pytest.mark.timeout(240)
def test_it_stays_whoever_dies(world_factory, boxes):
    server = world_factory()
    box = boxes("allowlist", server=server, ipv6=True, allow=[f"[{WEB6}]:{ECHO}"])

    def assert_as_before():
        assert reaches(box) and not reaches(box, OTHER6, patience=2)

    assert_as_before()
    with box.doing(HOLD, web=WEB6, port=ECHO) as said:
        for who in ("cellad", "warden"):
            server.wait_recovered(server.kill(who), who)
            assert_as_before()
        assert "dead" not in said(), "what was open goes on"
    box.stop()
    box.start()
    assert_as_before()
    copy = server.sandbox(box.request("POST", "/clone", {}).json()["metadata"]["name"])
    copy.wait_status("running")
    assert reaches(Box(copy)) and global_addresses(copy) != global_addresses(box)
    copy.delete()
    server.stop()
    assert server.network_remains() == []
    server.start()
    box.start()
    assert_as_before()
    box.delete()
    wait_until(lambda: server.leaks() == "", 30, server.leaks)


def test_from_a_pool(world_factory):
    server = world_factory()
    made = server.request("POST", "/v0/pools", {"name": "net", "size": 1, "network": True})
    assert made.status == 201, made

    def pool():
        return server.request("GET", "/v0/pools/net").json()["status"]

    wait_until(lambda: pool()["ready"] == 1, 60, lambda: f"a spare: {pool()}")
    box = Box(server.create(network={"mode": "full", "ipv6": True}))
    assert pool()["claimed"] == 1 and reaches(box)


def test_bandwidth_and_counters(world, boxes):
    """One limit and one counter for both families."""
    box = boxes("full", ipv6=True, bandwidth={"in": "1M"})
    took = box.do("""
began = time.monotonic()
got = len(tcp(web, 80, 'GET /bytes/900000 HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n', enough=b'x' * 900000)['got'])
result = [got, time.monotonic() - began]
""", web=WEB6)
    assert took[0] > 900000 and took[1] > 0.4, took

    def counted():
        rows = box.server.request("GET", "/v0/metrics").json()["sandboxes"]
        return next(row for row in rows if row["name"] == box.name).get("network", {}).get("inBytes", 0)

    wait_until(lambda: counted() > 900000, 60, counted)


def test_the_command_line(world_server):
    out = world_server.cli("sandbox", "create", "--network", "full", "--ipv6", "-o", "json")
    assert out.returncode == 0, out.stderr
    sandbox = world_server.sandbox(json.loads(out.stdout)["metadata"]["name"])
    try:
        assert world_server.cli("network", "get", sandbox.name).stdout.split()[-2:] == ["IPv6", "on"]
        assert world_server.cli("network", "set", sandbox.name, "--no-ipv6").returncode == 0
        assert sandbox.get()["spec"]["network"]["ipv6"] is False
    finally:
        sandbox.delete()
    wrong = world_server.cli("server", "--network-range6", "2a0b::/32")
    assert wrong.returncode == 2 and "fc00::/7" in wrong.stderr


@pytest.fixture
def bare_world():
    """One whose machine has no way to the IPv6 Internet."""
    made = World()
    made.host.run("ip", "-6", "route", "del", "default")
    yield made
    made.close()


def test_a_machine_without_it_says_so(bare_world):
    host = bare_world.host
    server = WorldServer(bare_world, "--network-range6", "fd99:7::/64")

    def asked():
        return server.request("POST", "/v0/sandbox", {"spec": {"enabled": False, "network": {
            "mode": "full", "ipv6": True}}})

    def refused(word):
        answer = asked()
        assert (answer.status, answer.error()) == (503, "NETWORK_UNAVAILABLE") and word in answer.text, answer

    try:
        refused("no IPv6 route")
        doctor = subprocess.run(["nsenter", f"--net={host.namespace}", bin_dir() / "cella", "doctor"], text=True,
                                stdout=subprocess.PIPE, check=False).stdout  # which may miss other things here
        assert "no IPv6 route" in doctor
        box = Box(server.create(network={"mode": "full"}))
        assert reaches(box, WEB)
        answer = box.request("PATCH", "/network", {"ipv6": True})
        assert (answer.status, answer.error()) == (503, "NETWORK_UNAVAILABLE"), answer
        # A route from a router's advertisement, which forwarding would lose.
        host.run("sysctl", "-qw", "net.ipv6.conf.eth0.accept_ra=1")
        host.run("ip", "-6", "route", "add", "default", "via", "2a0b:90::1", "dev", "eth0", "proto", "ra")
        refused("net.ipv6.conf.eth0.accept_ra=2")
        assert host.run("sysctl", "-n", "net.ipv6.conf.all.forwarding").strip() == "0"
        host.run("sysctl", "-qw", "net.ipv6.conf.eth0.accept_ra=2")
        assert asked().status == 202
        assert host.run("sysctl", "-n", "net.ipv6.conf.all.forwarding").strip() == "0", "nobody uses it yet"
        change(box, ipv6=True)
        assert host.run("sysctl", "-n", "net.ipv6.conf.all.forwarding").strip() == "1"
        assert reaches(box) and global_addresses(box)[0].startswith("fd990007")
    finally:
        server.close()
