# SPDX-License-Identifier: Apache-2.0
"""The program that plays the servers of tests/support/world.py, in a network namespace that it makes
for itself and that ends with it. It takes orders as lines of JSON on its standard input and answers
each with one on its standard output. Whoever connects, to whatever address, is written down: that
nothing was met is what most tests of the network prove.

A thread per connection and blocking code: there are few connections, and it is to be read."""

import base64
import collections
import contextlib
import ctypes
import html
import json
import os
import pathlib
import re
import select
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import urllib.parse

from world_dns import Zone, parse

CLONE_NEWNET = 0x40000000
PR_SET_PDEATHSIG = 1
IPV6_RECVPKTINFO, IPV6_PKTINFO, IPV6_FREEBIND = 49, 50, 78
KEPT = 20000  # events; a flood must not fill the memory
PACKETS_WAITING = 100000  # more than the buffer of the sniffer holds
HEAD_MAX = 256 * 1024


def plain(address):
    """IPv4 in IPv6 as IPv4."""
    return address[7:] if address.startswith("::ffff:") else address


class Diary:
    """What was met, in order, with a number each; the oldest are forgotten."""

    def __init__(self):
        self.events, self.next, self.lock = collections.deque(maxlen=KEPT), 0, threading.Lock()
        self.packets = collections.Counter()

    def add(self, kind, **fields):
        with self.lock:
            event = {"n": self.next, "kind": kind, **fields}
            self.events.append(event)
            self.next += 1
            return event

    def since(self, number):
        with self.lock:
            return [dict(event) for event in self.events if event["n"] >= number]


class Certificates:
    """A CA of our own, and a certificate for whatever name is asked for. Names that begin with
    "badcert" get one for another name, with "selfsigned" one that nobody signed."""

    def __init__(self, folder):
        self.folder, self.made, self.lock = pathlib.Path(folder), {}, threading.Lock()

    def context(self, name):
        with self.lock:
            if name not in self.made:
                self.made[name] = self._make(name)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.set_alpn_protocols(["http/1.1"])
        context.load_cert_chain(*self.made[name])
        return context

    def _make(self, name):
        safe = re.sub(r"[^A-Za-z0-9.-]", "_", name)[:60]
        subject = "elsewhere.example" if name.startswith("badcert") else safe
        crt, key = self.folder / f"{safe}.crt", self.folder / f"{safe}.key"
        command = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
                   "-nodes", "-keyout", key, "-out", crt, "-subj", f"/CN={subject}", "-days", "2",
                   "-addext", f"subjectAltName=DNS:{subject}", "-addext", "basicConstraints=CA:FALSE"]
        if not name.startswith("selfsigned"):
            command += ["-CA", self.folder / "ca.crt", "-CAkey", self.folder / "ca.key"]
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        return crt, key


class Peer:
    """A connection with a buffer."""

    def __init__(self, sock):
        self.sock, self.rest = sock, b""

    def until(self, mark, most=HEAD_MAX):
        while mark not in self.rest:
            piece = self.sock.recv(65536)
            if not piece or len(self.rest) > most:
                raise ConnectionError("ended early")
            self.rest += piece
        head, _, self.rest = self.rest.partition(mark)
        return head

    def exactly(self, count):
        while len(self.rest) < count:
            piece = self.sock.recv(65536)
            if not piece:
                raise ConnectionError("ended early")
            self.rest += piece
        body, self.rest = self.rest[:count], self.rest[count:]
        return body


def echoed_as(form, text):
    """What a host may make of a header's value without meaning any harm."""
    data = text.encode("latin-1")
    return {
        "plain": lambda: text,
        "json": lambda: json.dumps({"seen": text}).replace("/", "\\/").replace("-", "\\u002d"),
        "percent": lambda: urllib.parse.quote(text, safe="").replace("-", "%2d"),
        "html": lambda: f"<p>{html.escape(text)}</p>".replace("-", "&#45;"),
        "hex": data.hex,
        "HEX": lambda: data.hex().upper(),
        "base64": lambda: base64.b64encode(data).decode(),
        "base64-1": lambda: base64.b64encode(b"x" + data + b"yz").decode(),
        "base64-2": lambda: base64.urlsafe_b64encode(b"xx" + data + b"z").decode(),
    }[form]()


class Services:
    """Every server of one namespace."""

    def __init__(self, folder):
        self.diary, self.zone, self.certificates = Diary(), Zone(), Certificates(folder)
        self.connections, self.lock = set(), threading.Lock()
        self.sniffer = None

    # --- listening ---

    def listen(self, kind, port, address="::"):
        serve = {"http": self.http, "tls": self.tls, "echo": self.echo, "dns": self.dns_tcp}[kind]
        listener = socket.socket(socket.AF_INET6)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        listener.bind((address, port))
        listener.listen(512)
        threading.Thread(target=self._accept, args=(listener, kind, serve), daemon=True).start()

    def _accept(self, listener, kind, serve):
        while True:
            sock, source = listener.accept()
            here = sock.getsockname()
            event = {"service": kind, "address": plain(here[0]), "port": here[1], "source": plain(source[0]),
                     "bytes": 0}
            if kind != "dns":  # whose questions are noted one by one
                event = self.diary.add("tcp", **event)
            threading.Thread(target=self._serve, args=(sock, event, serve), daemon=True).start()

    def _serve(self, sock, event, serve):
        with self.lock:
            self.connections.add(sock)
        try:
            with sock, contextlib.suppress(OSError, ssl.SSLError, ValueError, IndexError, struct.error):
                sock.settimeout(120)
                sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                serve(sock, event)
        finally:
            event["closed"] = True
            with self.lock:
                self.connections.discard(sock)

    def listen_udp(self, kind, port):
        sock = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
        sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_RECVPKTINFO, 1)
        sock.setsockopt(socket.IPPROTO_IPV6, IPV6_FREEBIND, 1)  # answers come from any address
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 20)
        sock.bind(("::", port))
        threading.Thread(target=self._udp, args=(sock, kind, port), daemon=True).start()

    def _udp(self, sock, kind, port):
        while True:
            data, extra, _, source = sock.recvmsg(65536, 256)
            info = next((value for level, number, value in extra
                         if level == socket.IPPROTO_IPV6 and number == IPV6_PKTINFO), None)
            here = plain(socket.inet_ntop(socket.AF_INET6, info[:16])) if info else "?"
            if kind != "dns":
                self.diary.add("udp", service=kind, address=here, port=port, source=plain(source[0]),
                               bytes=len(data))
            # The answer comes from the address that was asked, whichever it was.
            back = [(socket.IPPROTO_IPV6, IPV6_PKTINFO, info[:16] + b"\0" * 4)] if info else []

            def answer(data=data, source=source, back=back, here=here):
                with contextlib.suppress(OSError, ValueError, IndexError, struct.error):
                    for message in (self.dns(data, here, plain(source[0]), False) if kind == "dns" else [data]):
                        sock.sendmsg([message], back, 0, source)

            if kind == "dns":
                threading.Thread(target=answer, daemon=True).start()
            else:
                answer()

    def sniff(self, interface):
        """Counts what arrives at the wire, whoever listens for it."""
        sock = socket.socket(socket.AF_PACKET, socket.SOCK_DGRAM, socket.htons(3))
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
        sock.bind((interface, 3))
        sock.setblocking(False)
        self.sniffer = sock
        threading.Thread(target=self._sniff, daemon=True).start()

    def _sniff(self):
        while True:
            select.select([self.sniffer], [], [])
            with self.diary.lock:
                self._count(1000)

    def _count(self, most):
        """Takes so many packets from the kernel, or all that it has; whoever calls has the diary's lock."""
        for _ in range(most):
            try:
                data, where = self.sniffer.recvfrom(200)
            except BlockingIOError:
                break
            if where[2] == socket.PACKET_OUTGOING or where[1] not in (0x0800, 0x86DD) or len(data) < 20:
                continue
            if where[1] == 0x0800:
                family, size, proto = socket.AF_INET, (data[0] & 15) * 4, data[9]
                source, target = data[12:16], data[16:20]
            else:
                family, size, proto = socket.AF_INET6, 40, data[6]
                source, target = data[8:24], data[24:40]
            port = struct.unpack(">H", data[size + 2:size + 4])[0] if proto in (6, 17) else 0
            key = (proto, socket.inet_ntop(family, source), socket.inet_ntop(family, target), port)
            if len(self.diary.packets) < KEPT or key in self.diary.packets:
                self.diary.packets[key] += 1

    # --- protocols ---

    def echo(self, sock, event):
        while data := sock.recv(65536):
            event["bytes"] += len(data)
            sock.sendall(data)

    def tls(self, sock, event):
        def choose(tls, name, _):
            event["sni"] = name
            tls.context = self.certificates.context(name or "nobody")

        hello = sock.recv(1, socket.MSG_PEEK)
        if hello != b"\x16":
            event["raw"] = sock.recv(2000, socket.MSG_PEEK).decode("latin-1")
            sock.sendall(b"NOT TLS")
            return
        context = self.certificates.context("nobody")
        context.sni_callback = choose
        with context.wrap_socket(sock, server_side=True) as wrapped:
            self.http(wrapped, event)

    def http(self, sock, event):
        peer, asked = Peer(sock), 0
        while True:
            head = peer.until(b"\r\n\r\n")
            asked += 1
            lines = head.decode("latin-1").split("\r\n")
            fields = [line.partition(":")[::2] for line in lines[1:]]
            fields = [(name.strip().lower(), value.strip()) for name, value in fields]
            values = dict(fields)
            request = {"line": lines[0], "fields": fields, "number": asked}
            noted = self.diary.add("http", address=event["address"], port=event["port"],
                                   sni=event.get("sni"), host=values.get("host"), **request)
            if lines[0].startswith("PRI * HTTP/2"):
                sock.sendall(b"H2 REACHED")
                return
            body = self._body(peer, values)
            noted["body"] = body[:100000].decode("latin-1")
            event["bytes"] += len(head) + len(body)
            if not self._answer(sock, peer, event, noted, values):
                return

    @staticmethod
    def _body(peer, values):
        if "chunked" in values.get("transfer-encoding", ""):
            body = b""
            while size := int(peer.until(b"\r\n").split(b";")[0], 16):
                body += peer.exactly(size)
                peer.exactly(2)
            peer.until(b"\r\n")
            return body
        return peer.exactly(int(values.get("content-length", "0")))

    def _answer(self, sock, peer, event, noted, values):
        """False when the connection ends with it."""
        target = noted["line"].split(" ")[1] if " " in noted["line"] else "/"
        path, _, query = target.partition("?")
        path = re.sub(r"^https?://[^/]*", "", path)
        asked = dict(urllib.parse.parse_qsl(query))
        if path == "/drip":
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            while True:
                sock.sendall(b"5\r\ntick\n\r\n")
                time.sleep(0.05)
        if path == "/mirror":  # the body, in the pieces that NULs in it make, the last one after a while
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            pieces = noted["body"].encode("latin-1").split(b"\0")
            for number, piece in enumerate(pieces):
                if number == len(pieces) - 1:
                    time.sleep(float(asked.get("wait", "0")))
                sock.sendall(b"%x\r\n%b\r\n" % (len(piece), piece) if piece else b"")
            sock.sendall(b"0\r\n\r\n")
            return True
        if path == "/upgrade":
            sock.sendall(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "
                         + values.get("upgrade", "echo").encode() + b"\r\n\r\n" + peer.rest)
            self.echo(sock, event)
            return False
        if path.startswith("/bytes/"):
            count = int(path[7:])
            sock.sendall(f"HTTP/1.1 200 OK\r\nContent-Length: {count}\r\n\r\n".encode())
            piece = b"x" * 65536
            while count:
                sock.sendall(piece[:min(count, len(piece))])
                count -= min(count, len(piece))
            return True
        status, more = "200 OK", ""
        if path == "/redirect":
            status, more = "302 Found", f"Location: {asked.get('to', '/')}\r\n"
        if path.startswith("/status/"):
            status = f"{path[8:11]} Status"
        text = json.dumps({"address": event["address"], "port": event["port"], "sni": event.get("sni"),
                           "host": values.get("host"), "line": noted["line"], "fields": noted["fields"],
                           "body": noted["body"], "number": noted["number"]}).encode()
        if path.startswith("/as/"):
            text = echoed_as(path[4:], values.get("authorization", "")).encode()
        if path == "/partial" or (path == "/ranged" and "range" in values):
            first, _, last = values.get("range", "bytes=0-9")[6:].partition("-")
            status, more = "206 Partial Content", f"Content-Range: bytes {first}-{last}/{len(text)}\r\n"
            text = text[int(first):int(last) + 1]
        if path == "/chunked":
            sock.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
            for at in range(0, len(text), 50):
                sock.sendall(b"%x\r\n" % len(text[at:at + 50]) + text[at:at + 50] + b"\r\n")
            sock.sendall(b"0\r\n\r\n")
            return True
        sock.sendall(f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\n{more}"
                     f"Content-Length: {len(text)}\r\n\r\n".encode() + text)
        return "close" not in values.get("connection", "") and not noted["line"].endswith("HTTP/1.0")

    def dns(self, data, address, source, tcp):
        asked = parse(data)
        self.diary.add("dns", address=address, source=source, name=asked["name"], type=asked["type"], tcp=tcp,
                       id=asked["id"], bytes=len(data))
        return [message for message in self.zone.answers(data, tcp) if message]

    def dns_tcp(self, sock, event):
        peer = Peer(sock)
        while True:
            data = peer.exactly(struct.unpack(">H", peer.exactly(2))[0])
            for message in self.dns(data, event["address"], event["source"], True):
                sock.sendall(struct.pack(">H", len(message)) + message)

    # --- orders ---

    def order(self, what, fields):
        if what == "listen":
            for kind, port in fields["tcp"]:
                self.listen(kind, port)
            for kind, port in fields["udp"]:
                self.listen_udp(kind, port)
            if fields.get("sniff"):
                self.sniff(fields["sniff"])
        elif what == "zone":
            self.zone.set(fields["name"], fields["entry"])
        elif what == "now":
            return self.diary.next
        elif what == "met":
            return self.diary.since(fields["since"])
        elif what == "packets":
            with self.diary.lock:
                self._count(PACKETS_WAITING)  # whatever came before the order is in its answer
                found = [[*key, count] for key, count in self.diary.packets.items()]
                if fields.get("forget"):
                    self.diary.packets.clear()
            return found
        elif what == "hang up":
            with self.lock:
                for sock in self.connections:
                    with contextlib.suppress(OSError):
                        sock.shutdown(socket.SHUT_RDWR)
        else:
            raise ValueError(what)
        return True


def main():
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if libc.unshare(CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    services = Services(sys.argv[1])
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    print(json.dumps({"ready": os.getpid()}), file=answers)
    for line in sys.stdin:
        fields = json.loads(line)
        try:
            answer = {"is": services.order(fields.pop("do"), fields)}
        except Exception as failure:  # pylint: disable=broad-except
            answer = {"failure": repr(failure)}
        print(json.dumps(answer), file=answers)


if __name__ == "__main__":
    main()
