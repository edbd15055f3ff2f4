# SPDX-License-Identifier: Apache-2.0
"""The Internet that tests of the network use is one: were it not, they would prove nothing."""

import contextlib
import socket
import ssl

import pytest

import world_dns
from cella_server import wait_until
from world import CUT_OFF, ECHO, FOREIGN_RESOLVER, HOST, METADATA, OTHER, RESOLVER, WEB, WEB6, World


def get(place, address, port=80, host="x", tls=None):
    with place.connect(address, port) as sock:
        sock = tls.wrap_socket(sock, server_hostname=host) if tls else sock
        sock.sendall(f"GET / HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode())
        data = b""
        while piece := sock.recv(65536):
            data += piece
        sock.close()
    return data.decode()


def resolve(place, name, kind="A", server=RESOLVER):
    with place.entered():
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sock:
        sock.settimeout(20)
        sock.sendto(world_dns.query(name, kind), (server, 53))
        return world_dns.parse(sock.recv(65536))


@pytest.mark.parametrize("address", [WEB, OTHER, METADATA, CUT_OFF["private 10"], WEB6])
def test_every_address_is_there_and_knows_who_came(world, address):
    since = world.now()
    assert f'"address": "{address}"' in get(world.host, address)
    [met] = world.met(since, kind="http")
    assert (met["address"], met["host"], met["port"]) == (address, "x", 80)


def test_a_certificate_for_every_name(world):
    trusting = ssl.create_default_context(cafile=str(world.ca))
    assert '"sni": "one.example"' in get(world.host, WEB, 443, "one.example", trusting)
    for name in ("badcert.example", "selfsigned.example"):
        with pytest.raises(ssl.SSLCertVerificationError):
            get(world.host, WEB, 443, name, trusting)


def test_names_mean_what_they_are_told(world):
    name = world.name(WEB, WEB6, ttl=7)
    assert resolve(world.host, name)["answers"] == [("A", 7, WEB)]
    assert resolve(world.host, name.upper(), "AAAA", FOREIGN_RESOLVER)["answers"] == [("AAAA", 7, WEB6)]
    turning = world.name(sequence=[[WEB], [METADATA]])
    assert [resolve(world.host, turning)["answers"][0][2] for _ in range(3)] == [WEB, METADATA, METADATA]
    assert resolve(world.host, world.name(cname=name))["answers"][-1] == ("A", 7, WEB)
    assert resolve(world.host, "nowhere.example")["rcode"] == world_dns.NXDOMAIN


def test_packets_are_seen_on_the_wire(world):
    world.packets(forget=True)
    with world.host.entered():
        sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with sock:
        sock.sendto(b"x", (OTHER, 9))
    wait_until(lambda: (17, HOST, OTHER, 9) in world.packets(), 20, "the packet")


def test_two_worlds_do_not_meet(world):
    with contextlib.closing(World()) as second:
        since = world.now()
        with second.host.connect(WEB, ECHO) as sock:
            sock.sendall(b"x")
            assert sock.recv(1) == b"x"
        assert world.met(since, kind="tcp") == [] and len(second.met(kind="tcp")) == 1
    assert not second.folder.exists()
