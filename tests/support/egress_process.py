# SPDX-License-Identifier: Apache-2.0
"""The egress process alone, on the machine of tests/support/world.py: what it makes of questions and
connections, without sandboxes around it. This run plays the two who talk to it: cellad (policies, the
log) and the warden (it hands sockets over and is told whom to let through). A guest is an address of
the machine's loopback; the real thing is tried in test_network_*.py."""

import array
import pathlib
import socket
import struct
import subprocess
import sys
import tempfile
import threading

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import wardenlib  # noqa: E402  pylint: disable=wrong-import-position
import wirelib  # noqa: E402  pylint: disable=wrong-import-position
import world_dns  # noqa: E402  pylint: disable=wrong-import-position
from cella_server import PATIENCE, bin_dir  # noqa: E402  pylint: disable=wrong-import-position
from world import RESOLVER  # noqa: E402  pylint: disable=wrong-import-position

UDP, TCP, HTTP, TLS = 1, 2, 3, 4
VERDICTS = ("ALLOWED REFUSED_MODE REFUSED_UNLISTED REFUSED_DENIED REFUSED_FORBIDDEN REFUSED_QUIC REFUSED_IPV6 "
            "REFUSED_REBINDING REFUSED_NO_NAME REFUSED_MALFORMED REFUSED_HIDDEN_NAME REFUSED_TYPE "
            "REFUSED_LIMIT REFUSED_CHANGED FAILED_LOOKUP FAILED_CONNECT").split()
KINDS = {1: "dns", 2: "http", 3: "tls", 4: "direct"}


class Router:
    """The warden's end: hands the listeners over, writes admissions down."""

    def __init__(self, path, sockets):
        self.sockets, self.admitted = sockets, []
        self.may_answer = threading.Event()  # cleared: admissions are left unanswered
        self.may_answer.set()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(sock,), daemon=True).start()

    def _serve(self, sock):
        with sock:
            while True:
                head = sock.recv(12, socket.MSG_WAITALL)
                if len(head) < 12:
                    return
                length, number, _, request_id = struct.unpack("<IHHI", head)
                payload = sock.recv(length, socket.MSG_WAITALL) if length else b""
                name, message = wirelib.decode(number, payload)
                answer, extra = wirelib.encode("OK", request_id), []
                if name == "WARDEN_NET_LISTEN" and message["which"] not in self.sockets:  # of IPv6
                    answer = wirelib.encode("ERROR", request_id, message="IPv4 only",
                                            code=wardenlib.CODES["NETWORK_UNAVAILABLE"])
                elif name == "WARDEN_NET_LISTEN":
                    fds = array.array("i", [self.sockets[message["which"]].fileno()])
                    extra = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, fds)]
                else:
                    self.admitted.append(message)
                    self.may_answer.wait()
                sock.sendmsg([answer], extra)

    def close(self):
        self.may_answer.set()
        self.listener.close()


class Egress:
    """The process, and how guests reach it."""

    def __init__(self, world, *args):
        self.world = world
        self.folder = tempfile.TemporaryDirectory(prefix="cella-egress-")
        folder = pathlib.Path(self.folder.name)
        with world.host.entered():
            self.sockets = {UDP: socket.socket(socket.AF_INET, socket.SOCK_DGRAM),
                            **{which: socket.socket() for which in (TCP, HTTP, TLS)}}
        for which, sock in self.sockets.items():
            sock.bind(("127.0.0.1", 0))
            if which != UDP:
                sock.listen(128)
            sock.setblocking(False)
        self.ports = {which: sock.getsockname()[1] for which, sock in self.sockets.items()}
        self.router = Router(folder / "router", self.sockets)
        control = socket.socket(socket.AF_UNIX)
        control.bind(str(folder / "control"))
        control.listen(8)
        self.process = subprocess.Popen(
            ["nsenter", f"--net={world.host.namespace}", bin_dir() / "cella-egress", "--control-fd",
             str(control.fileno()), "--warden", folder / "router", "--resolver", RESOLVER, *args],
            pass_fds=[control.fileno()])
        control.close()
        self.control = self.connect()
        self.guests = 1

    def connect(self):
        return wirelib.Connection(f"{self.folder.name}/control", timeout=30 * PATIENCE)

    def guest(self, *rules, mode="allowlist", **fields):
        """A new guest with these rules ("allow=…", "deny=…")."""
        self.guests += 1
        guest = Guest(self, f"guest{self.guests}", f"127.0.{self.guests // 250}.{self.guests % 250 + 2}")
        guest.set(*rules, mode=mode, **fields)
        return guest

    def close(self):
        self.control.close()
        self.process.kill()
        self.process.wait()
        self.router.close()
        for sock in self.sockets.values():
            sock.close()
        self.folder.cleanup()


class Guest:
    def __init__(self, egress, name, address):
        self.egress, self.id, self.address = egress, name, address

    def set(self, *rules, mode="allowlist", **fields):
        self.egress.control.call("EGRESS_SET", id=self.id, address=self.address,
                                 policy=[f"mode={mode}", *rules], **fields)

    def drop(self):
        self.egress.control.call("EGRESS_DROP", id=self.id)

    def log(self, **wanted):
        """Its log, with words for numbers, as far as it is as wanted."""
        entries = self.egress.control.call_many("EGRESS_LOG_READ", id=self.id)
        for entry in entries:
            entry["verdict"], entry["kind"] = VERDICTS[entry["verdict"]], KINDS[entry["kind"]]
        return [entry for entry in entries if all(entry[name] == value for name, value in wanted.items())]

    def _socket(self, kind, which):
        with self.egress.world.host.entered():
            sock = socket.socket(socket.AF_INET, kind)
        sock.settimeout(30 * PATIENCE)
        sock.bind((self.address, 0))
        sock.connect(("127.0.0.1", self.egress.ports[which]))
        return sock

    def connect(self, which):
        return self._socket(socket.SOCK_STREAM, which)

    def send(self, message, patience=30):
        """A datagram to the resolver; what comes back, or None."""
        with self._socket(socket.SOCK_DGRAM, UDP) as sock:
            sock.settimeout(patience)
            sock.send(message)
            try:
                return sock.recv(65536)
            except TimeoutError:
                return None

    def resolve(self, name, kind="A"):
        return world_dns.parse(self.send(world_dns.query(name, kind)))

    def resolve_tcp(self, name, kind="A"):
        message = world_dns.query(name, kind)
        with self.connect(TCP) as sock:
            sock.sendall(struct.pack(">H", len(message)) + message)
            length = struct.unpack(">H", sock.recv(2, socket.MSG_WAITALL))[0]
            return world_dns.parse(sock.recv(length, socket.MSG_WAITALL))

    def http(self, data):
        """Sends bytes to port 80; all that comes back until the end."""
        with self.connect(HTTP) as sock:
            sock.sendall(data)
            return read_all(sock)


def read_all(sock):
    data = b""
    try:
        while piece := sock.recv(65536):
            data += piece
    except ConnectionResetError:
        pass
    return data
