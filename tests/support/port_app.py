# SPDX-License-Identifier: Apache-2.0
"""A web program that runs inside a sandbox, behind the port proxy: well-behaved and otherwise.

    python3 port_app.py PORT [ADDRESS]

What it does is in the path. It speaks HTTP from the bare socket, so that it sees exactly the bytes
that reach a sandbox, and can send exactly the wrong ones."""

import base64
import hashlib
import json
import socket
import socketserver
import struct
import sys
import time
import urllib.parse

BLOCK = bytes(range(256)) * 256


class Gone(Exception):
    """The peer closed the connection."""


def digest(data):
    return hashlib.sha256(data).hexdigest()


class Connection(socketserver.StreamRequestHandler):
    disable_nagle_algorithm = True

    def setup(self):
        super().setup()
        self.server.connections += 1
        self.requests = 0

    def handle(self):
        try:
            while self.serve():
                pass
        except (Gone, OSError):
            pass

    # --- requests ---

    def serve(self):
        line = self.rfile.readline()
        if not line:
            return False
        self.requests += 1
        self.head = [line]
        self.fields = []
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            self.head.append(line)
            name, value = line.decode("latin-1").split(":", 1)
            self.fields.append((name, value.strip()))
        self.method, self.target, _ = self.head[0].decode("latin-1").split(" ")
        url = urllib.parse.urlsplit(self.target)
        self.query = dict(urllib.parse.parse_qsl(url.query))
        what = getattr(self, "do_" + url.path.strip("/").split("/")[0].replace("-", "_"), self.do_echo)
        return what() is not False

    def field(self, name, default=None):
        for key, value in self.fields:
            if key.lower() == name.lower():
                return value
        return default

    def exactly(self, count):
        data = self.rfile.read(count)
        if len(data) < count:
            raise Gone
        return data

    def body(self):
        """The body, piece by piece."""
        if self.field("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline() or b"x", 16):
                yield self.exactly(size)
                self.exactly(2)
            self.rfile.readline()
            return
        left = int(self.field("Content-Length", "0"))
        while left > 0:
            piece = self.exactly(min(left, 65536))
            left -= len(piece)
            yield piece

    # --- answers ---

    def send(self, data):
        self.request.sendall(data)

    def answer(self, status, body, *fields):
        if isinstance(body, str):
            body = body.encode()
        head = f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n"
        head += "".join(f"{field}\r\n" for field in fields)
        self.send(head.encode("latin-1") + b"\r\n" + (b"" if self.method == "HEAD" else body))

    def do_echo(self):
        """What came in, as JSON."""
        total = hashlib.sha256()
        length = 0
        for piece in self.body():
            total.update(piece)
            length += len(piece)
        self.answer(200, json.dumps({
            "method": self.method, "target": self.target, "fields": self.fields,
            "head": b"".join(self.head).decode("latin-1"), "length": length,
            "sha256": total.hexdigest(), "nth": self.requests, "peer": self.client_address[0]}),
            "Content-Type: application/json")

    def do_text(self):
        fields = [base64.b64decode(f).decode("latin-1") for f in self.query.get("f", "").split(",") if f]
        self.answer(int(self.query.get("status", "200")), self.query.get("body", "hello"), *fields)

    def do_big(self):
        """n bytes with a length."""
        left = int(self.query["n"])
        self.send(f"HTTP/1.1 200 OK\r\nContent-Length: {left}\r\n\r\n".encode())
        while left > 0:
            piece = BLOCK[:min(left, len(BLOCK))]
            self.send(piece)
            left -= len(piece)

    def do_chunked(self):
        """n bytes in chunks of size s, with an extension, and a trailer at the end."""
        left, size = int(self.query["n"]), int(self.query.get("s", "1000"))
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTrailer: X-After\r\n\r\n")
        while left > 0:
            piece = (BLOCK * (1 + size // len(BLOCK)))[:min(left, size)]
            self.send(f"{len(piece):x};ext=1\r\n".encode() + piece + b"\r\n")
            left -= len(piece)
        self.send(b"0\r\nX-After: 1\r\n\r\n")

    def do_until_close(self):
        self.send(b"HTTP/1.0 200 OK\r\n\r\n" + BLOCK[:int(self.query["n"])])
        return False

    def do_duplex(self):
        """Sends each piece of the body back as it comes."""
        self.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for piece in self.body():
            self.send(f"{len(piece):x}\r\n".encode() + piece + b"\r\n")
        self.send(b"0\r\n\r\n")

    def do_early(self):
        """Refuses without reading, and closes."""
        self.answer(413, "too much", "Connection: close")
        self.request.shutdown(socket.SHUT_WR)
        time.sleep(0.2)
        return False

    def do_late(self):
        """Reads nothing for a while, then everything."""
        time.sleep(0.3)
        self.answer(200, str(sum(len(piece) for piece in self.body())))

    def do_interim(self):
        for _ in range(int(self.query.get("n", "1"))):
            self.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")
        self.answer(200, "done")

    def do_raw(self):
        """Exactly the body's bytes, then the end."""
        self.send(b"".join(self.body()))
        self.request.shutdown(socket.SHUT_WR)
        self.rfile.read()
        return False

    def do_stale(self):
        """Answers, and closes the connection without having said so."""
        self.answer(200, str(self.requests))
        return False

    def do_hang(self):
        self.rfile.read()
        return False

    def do_drip(self):
        """A server-sent event, then silence until the client goes."""
        self.server.dripping += 1
        self.send(b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n"
                  b"Transfer-Encoding: chunked\r\n\r\n9\r\ndata: 1\n\n\r\n")
        try:
            self.rfile.read()
        finally:
            self.server.dripping -= 1
        return False

    def do_stats(self):
        self.answer(200, json.dumps({"dripping": self.server.dripping,
                                     "connections": self.server.connections}))

    # --- other protocols ---

    def do_upgrade(self):
        """Switches to `echo`: bytes come back in upper case until the client ends."""
        self.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: " +
                  self.query.get("to", "echo").encode() + b"\r\nX-Kept: 1\r\n\r\nWELCOME ")
        while data := self.request.recv(65536):
            self.send(data.upper())
        self.send(b"END")
        return False

    def do_ws(self):
        """A WebSocket that sends back what it gets, text and binary, and answers Close."""
        accept = hashlib.sha1(self.field("Sec-WebSocket-Key").encode() +
                              b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest()
        self.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n"
                  b"Upgrade: websocket\r\nSec-WebSocket-Accept: " + base64.b64encode(accept) +
                  b"\r\nSec-WebSocket-Protocol: chat\r\n\r\n")
        while True:
            first, second = self.exactly(2)
            length = second & 127
            if length > 125:
                length = int.from_bytes(self.exactly(2 if length == 126 else 8), "big")
            mask = self.exactly(4)
            data = bytes(c ^ mask[i % 4] for i, c in enumerate(self.exactly(length)))
            size = (bytes([length]) if length < 126 else
                    struct.pack(">BH", 126, length) if length < 65536 else
                    struct.pack(">BQ", 127, length))
            self.send(bytes([first]) + size + data)
            if first & 15 == 8:
                return False


class Program(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 512
    connections = dripping = 0


def main():
    port = int(sys.argv[1])
    address = sys.argv[2] if len(sys.argv) > 2 else "127.0.0.1"
    Program.address_family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with Program((address, port), Connection) as program:
        print("ready", flush=True)
        program.serve_forever()


if __name__ == "__main__":
    main()
