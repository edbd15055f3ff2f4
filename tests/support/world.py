# SPDX-License-Identifier: Apache-2.0
"""An Internet of our own, for tests of the network:

    host namespace                                  internet namespace
    the whole server is started here,     eth0      plays every address there is (a local route for
    beside services of the "machine"   ◀────────▶   everything), writes down who came, for what and from
    that no sandbox may reach            veth       where; answers HTTP, TLS, DNS and echoes

Both are namespaces of processes of this run, without names: two runs do not meet, and when the
processes end, however they end, nothing is left. No packet gets to the real network, so real-looking
public addresses can be used; those set aside for documentation would be refused by the server."""

import contextlib
import ctypes
import dataclasses
import http.client
import json
import os
import pathlib
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import uuid

from cella_server import PATIENCE, Server

CLONE_NEWNET = 0x40000000

# The machine that the server runs on, and its neighbour on the wire.
HOST, HOST6 = "45.90.0.2", "2a0b:90::2"
ROUTER, ROUTER6 = "45.90.0.1", "2a0b:90::1"
# One address with many names, another one, and what stands for the bad part of the Internet.
WEB, OTHER, EVIL = "45.91.0.10", "45.91.0.20", "45.66.66.66"
WEB6, OTHER6, EVIL6 = "2a0b:91::10", "2a0b:91::20", "2a0b:66::66"
# The operator's resolver, and one that a program inside might want to talk to instead.
RESOLVER, FOREIGN_RESOLVER, FOREIGN_RESOLVER6 = "45.92.0.53", "45.92.0.66", "2a0b:92::66"
METADATA, METADATA6 = "169.254.169.254", "fd00:ec2::254"
PRIVATE, PRIVATE6 = "10.77.0.5", "fd77::5"
# What no sandbox may reach, however it asks: one of each range, with the reason.
CUT_OFF = {
    "metadata": METADATA, "link-local": "169.254.7.7", "private 10": PRIVATE, "private 172": "172.20.0.5",
    "private 192": "192.168.77.5", "shared": "100.64.7.7", "loopback": "127.0.0.1",
    "loopback, another": "127.9.9.9", "this network": "0.0.0.0", "benchmark": "198.18.0.5",
    "protocol assignments": "192.0.0.9", "multicast": "224.0.0.1", "reserved": "240.0.0.5",
    "broadcast": "255.255.255.255", "the host": HOST, "documentation": "192.0.2.5",
    "documentation 2": "198.51.100.5", "documentation 3": "203.0.113.5",
}
CUT_OFF6 = {
    "metadata": METADATA6, "metadata 2": "fd20:ce::254", "private": PRIVATE6, "private fc": "fc00::5",
    "mapped private": "::ffff:10.77.0.5", "mapped metadata": "::ffff:169.254.169.254",
    "compatible": "::45.91.0.10",
    "translated": "64:ff9b::10.77.0.5", "translated, local": "64:ff9b:1::10.77.0.5",
    "6to4 of a private address": "2002:a4d:5::1", "Teredo": "2001:0:4136:e378:8000:63bf:f2b2:fffa",
    "protocol assignments": "2001:20::5", "site-local": "fec0::5", "discard": "100::5",
    "unassigned": "4000::5", "unassigned 2": "a000::5", "multicast": "ff0e::5", "all nodes": "ff02::1",
    "all routers": "ff02::2", "documentation": "2001:db8::5", "documentation 2": "3fff::5", "the host": HOST6,
}


@dataclasses.dataclass(frozen=True)
class Family:
    """The same world in IPv4 or in IPv6, for tests of both."""

    version: int
    web: str
    other: str
    evil: str
    host: str
    router: str
    metadata: str
    private: str
    foreign_resolver: str
    cut_off: dict
    everything: str  # as a rule
    record: str  # that has its addresses

    def owns(self, address):
        return (":" in address) == (self.version == 6)


FAMILIES = {
    4: Family(4, WEB, OTHER, EVIL, HOST, ROUTER, METADATA, PRIVATE, FOREIGN_RESOLVER, CUT_OFF, "0.0.0.0/0", "A"),
    6: Family(6, WEB6, OTHER6, EVIL6, HOST6, ROUTER6, METADATA6, PRIVATE6, FOREIGN_RESOLVER6, CUT_OFF6, "::/0",
              "AAAA"),
}

HTTP, HTTPS, ALT_HTTP, ECHO, DATABASE = 80, 443, 8080, 7777, 5432
TCP_SERVICES = [("http", HTTP), ("tls", HTTPS), ("http", ALT_HTTP), ("tls", 8443), ("echo", ECHO),
                ("echo", DATABASE), ("echo", 22), ("echo", 25), ("dns", 53), ("echo", 853)]
UDP_SERVICES = [("dns", 53), ("echo", HTTPS), ("echo", ECHO), ("echo", 123)]
# What listens on the machine itself: on every address of it, and on every one of our router's.
HOST_TCP = [("http", HTTP), ("echo", 22), ("http", ALT_HTTP), ("echo", DATABASE), ("dns", 53)]
HOST_UDP = [("dns", 53), ("echo", ECHO)]

_libc = ctypes.CDLL(None, use_errno=True)


def _ip(pid, *lines, family="-4"):
    """Commands of ip(8) in the network namespace of a process."""
    subprocess.run(["nsenter", f"--net=/proc/{pid}/ns/net", "ip", family, "-batch", "-"], check=True,
                   text=True, input="\n".join(lines) + "\n")


class Place:
    """A namespace with services in it, and the process that they are."""

    def __init__(self, folder):
        program = pathlib.Path(__file__).with_name("world_services.py")
        self.process = subprocess.Popen([sys.executable, "-B", program, folder], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True, start_new_session=True)
        self.lock = threading.Lock()
        self.pid = json.loads(self.process.stdout.readline())["ready"]
        self.namespace = f"/proc/{self.pid}/ns/net"

    def order(self, what, **fields):
        with self.lock:
            self.process.stdin.write(json.dumps({"do": what, **fields}) + "\n")
            self.process.stdin.flush()
            answer = json.loads(self.process.stdout.readline())
        assert "is" in answer, answer
        return answer["is"]

    @contextlib.contextmanager
    def entered(self):
        """The calling thread is in the namespace meanwhile: sockets it makes stay there."""
        with open("/proc/thread-self/ns/net", encoding="ascii") as back, \
                open(self.namespace, encoding="ascii") as there:
            if _libc.setns(there.fileno(), CLONE_NEWNET) != 0:
                raise OSError(ctypes.get_errno(), "setns")
            try:
                yield
            finally:
                if _libc.setns(back.fileno(), CLONE_NEWNET) != 0:
                    os.abort()  # nothing that follows could be right

    def connect(self, address, port, timeout=30):
        with self.entered():
            return socket.create_connection((address, port), timeout=timeout * PATIENCE)

    def run(self, *command, **kwargs):
        """A program in the namespace; gives what it prints."""
        return subprocess.run(["nsenter", f"--net={self.namespace}", *map(str, command)], check=True,
                              text=True, stdout=subprocess.PIPE, **kwargs).stdout

    def now(self):
        return self.order("now")

    def met(self, since=0, **wanted):
        """What was met since then, and is as wanted (kind=…, address=…, port=…, sni=…, host=…)."""
        return [event for event in self.order("met", since=since)
                if all(event.get(name) == value for name, value in wanted.items())]

    def close(self):
        self.process.kill()
        self.process.wait()
        self.process.stdin.close()
        self.process.stdout.close()


class World:
    """Both places. `zone()` says what a name means, `met()` what came out of the machine."""

    def __init__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="cella-world-", dir="/tmp"))
        self.places = []
        try:
            self._make_ca()
            self.internet, self.host = self._place(), self._place()
            self._wire()
            self.internet.order("listen", tcp=TCP_SERVICES, udp=UDP_SERVICES, sniff="eth0")
            self.host.order("listen", tcp=HOST_TCP, udp=HOST_UDP)
        except BaseException:
            self.close()
            raise

    def _place(self):
        self.places.append(Place(self.folder))
        return self.places[-1]

    def _make_ca(self):
        self.ca = self.folder / "ca.crt"
        subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                        "-nodes", "-keyout", self.folder / "ca.key", "-out", self.ca, "-days", "30",
                        "-subj", "/CN=World CA", "-addext", "keyUsage=critical,keyCertSign,cRLSign"],
                       check=True, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def _wire(self):
        internet, host = self.internet.pid, self.host.pid
        _ip(internet, "link set lo up", f"link add eth0 type veth peer name eth0 netns {host}",
            f"addr add {ROUTER}/24 dev eth0", "link set eth0 up")
        _ip(host, "link set lo up", f"addr add {HOST}/24 dev eth0", "link set eth0 up",
            f"route add default via {ROUTER}")
        _ip(internet, f"addr add {ROUTER6}/64 dev eth0 nodad", family="-6")
        _ip(host, f"addr add {HOST6}/64 dev eth0 nodad", f"route add default via {ROUTER6}", family="-6")
        # All there is is here, private ranges too, but for the machine. (TCP answers only from addresses
        # that the table "local" knows.)
        _ip(internet, f"route add {HOST} dev eth0 table local", "route add local 0.0.0.0/0 dev lo table local")
        _ip(internet, f"route add {HOST6} dev eth0 table local", "route add local ::/0 dev lo table local",
            family="-6")

    def zone(self, name, **entry):
        """What the resolver says about a name (world_dns.Zone has the words); nothing: no such name."""
        self.internet.order("zone", name=name, entry=entry or None)
        return name

    def name(self, *addresses, label="site", under="example", **entry):
        """A new name that nobody has used, for these addresses."""
        name = f"{label}-{uuid.uuid4().hex[:10]}.{under}"
        four = [address for address in addresses if ":" not in address]
        six = [address for address in addresses if ":" in address]
        return self.zone(name, **{"A": four, "AAAA": six, **entry})

    def now(self):
        return self.internet.now()

    def met(self, since=0, **wanted):
        return self.internet.met(since, **wanted)

    def packets(self, forget=False):
        """{(protocol, source, destination, port): count} of what came over the wire."""
        return {tuple(row[:4]): row[4] for row in self.internet.order("packets", forget=forget)}

    def close(self):
        for place in self.places:
            place.close()
        shutil.rmtree(self.folder, ignore_errors=True)


class UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class WorldServer(Server):
    """A server whose machine is the host namespace. Tests reach it by its unix socket; it listens on
    every address of the machine, so that what keeps sandboxes away from it is not where it listens."""

    def __init__(self, world, *args, **kwargs):
        self.world = world
        super().__init__("--listen", "0.0.0.0:0", "--resolver", RESOLVER, *args,
                         prefix=["nsenter", f"--net={world.host.namespace}", "--"], **kwargs)

    def connection(self, timeout=30):
        return UnixConnection(self.data / "run" / "api.sock", timeout * PATIENCE)

    def port(self):
        return int(self.url.rsplit(":", 1)[1])

    def remains(self):
        return super().remains() + self.network_remains()

    def network_remains(self):
        """What the machine's own namespace, and its list of namespaces, hold of this server."""
        if not self.instance:
            return []
        links = json.loads(self.world.host.run("ip", "-j", "link", "show"))
        tables = self.world.host.run("nft", "list", "tables").splitlines()
        found = [f"interface {link['ifname']}" for link in links] + [f"firewall {line}" for line in tables] + \
            [f"namespace {path}" for path in pathlib.Path("/run/netns").glob("*")]
        return [item for item in found if self.instance in item]
