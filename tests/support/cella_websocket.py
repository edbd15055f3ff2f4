# SPDX-License-Identifier: Apache-2.0
"""A WebSocket client of the standard library alone (RFC 6455), and a terminal on top of it."""

import base64
import json
import os
import socket
import struct
import time
import urllib.parse

from cella_server import PATIENCE

TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10


class Refused(Exception):
    """The server answered with something else than 101: .status, .body."""

    def __init__(self, status, body):
        super().__init__(f"{status}: {body[:300]!r}")
        self.status, self.body = status, body

    def code(self):
        return json.loads(self.body)["error"]["code"]


class WebSocket:
    """One connection; fields: further header fields of the request."""

    def __init__(self, url, path, fields=None, timeout=30, source=None):
        parts = urllib.parse.urlsplit(url)
        self.sock = socket.create_connection((parts.hostname, parts.port), timeout * PATIENCE,
                                             (source, 0) if source else None)
        self.buffer = b""
        self.close_code = None
        key = base64.b64encode(os.urandom(16)).decode()
        lines = [f"GET {path} HTTP/1.1", f"Host: {parts.netloc}", "Upgrade: websocket",
                 "Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
        lines += [f"{name}: {value}" for name, value in (fields or {}).items()]
        self.sock.sendall("\r\n".join(lines).encode() + b"\r\n\r\n")
        head = self._until(b"\r\n\r\n")
        status = int(head.split(b" ")[1])
        if status != 101:
            sizes = [line.split(b":")[1] for line in head.split(b"\r\n")
                     if line.lower().startswith(b"content-length:")]
            body = self._exactly(int(sizes[0])) if sizes else b""
            self.sock.close()
            raise Refused(status, body)

    def _more(self):
        piece = self.sock.recv(65536)
        if not piece:
            raise ConnectionError("the connection was closed")
        self.buffer += piece

    def _until(self, mark):
        while mark not in self.buffer:
            self._more()
        head, _, self.buffer = self.buffer.partition(mark)
        return head + mark

    def _exactly(self, count):
        while len(self.buffer) < count:
            self._more()
        data, self.buffer = self.buffer[:count], self.buffer[count:]
        return data

    def send(self, opcode, payload):
        mask = os.urandom(4)
        size = len(payload)
        head = bytes([0x80 | opcode])
        if size < 126:
            head += bytes([0x80 | size])
        elif size < 65536:
            head += struct.pack("!BH", 0x80 | 126, size)
        else:
            head += struct.pack("!BQ", 0x80 | 127, size)
        repeated = mask * (size // 4 + 1)
        masked = (int.from_bytes(payload, "big") ^
                  int.from_bytes(repeated[:size], "big")).to_bytes(size, "big")
        self.sock.sendall(head + mask + masked)

    def receive(self):
        """(opcode, payload) of the next message; None when it was closed. Pings are answered."""
        end = time.monotonic() + self.sock.gettimeout()
        while True:
            assert time.monotonic() < end, "no message, only pings"
            first, second = self._exactly(2)
            size = second & 0x7f
            if size == 126:
                size, = struct.unpack("!H", self._exactly(2))
            elif size == 127:
                size, = struct.unpack("!Q", self._exactly(8))
            payload = self._exactly(size)
            opcode = first & 0x0f
            if opcode == PING:
                self.send(PONG, payload)
            elif opcode == CLOSE:
                self.close_code = struct.unpack("!H", payload[:2])[0] if payload else None
                try:
                    self.send(CLOSE, payload[:2])
                except OSError:
                    pass
                return None
            elif opcode != PONG:
                return opcode, payload

    def close(self):
        """Without a word, as a lost connection."""
        self.sock.close()


class Terminal:
    """A terminal of a sandbox over a WebSocket: what came so far is in .seen (bytes)."""

    def __init__(self, server, name, base="/v0/sandbox", fields=None, timeout=30, source=None,
                 **query):
        if fields is None:
            fields = {"Authorization": f"Bearer {server.key}"} if server.key else {}
        path = f"{base}/{name}/terminal/ws"
        if query:
            path += "?" + urllib.parse.urlencode(query)
        self.ws = WebSocket(server.url, path, fields, timeout, source)
        self.seen = b""
        self.frames = []
        self.dropped = 0
        self.taken = None
        self.exit = None
        self.error = None
        self.closed = False
        self.session = None
        self.deadline = timeout * PATIENCE
        self.take()
        assert self.session is not None, self.frames
        self.offset = self.session["offset"]

    @property
    def id(self):
        return self.session["sessionId"]

    def take(self):
        """Takes one frame; False at the end."""
        message = self.ws.receive()
        if message is None:
            self.closed = True
            return False
        opcode, payload = message
        if opcode == BINARY:
            self._output(payload)
            return True
        frame = json.loads(payload)
        self.frames.append(frame)
        kind = frame["type"]
        if kind == "output":
            assert frame["offset"] == self.offset, (frame["offset"], self.offset)
            self._output(base64.b64decode(frame["dataBase64"]) if "dataBase64" in frame
                         else frame["data"].encode())
        elif kind == "session":
            self.session = frame
        elif kind == "dropped":
            self.dropped += frame["dropped"]
            self.offset += frame["dropped"]
            assert self.offset == frame["offset"]
        elif kind == "taken":
            self.taken = frame["taken"]
        elif kind == "exit":
            self.exit = frame
        elif kind == "error":
            self.error = frame
        return True

    def _output(self, data):
        self.seen += data
        self.offset += len(data)

    def type(self, text):
        self.ws.send(TEXT, json.dumps({"type": "input", "data": text}).encode())

    def type_bytes(self, data):
        self.ws.send(BINARY, data)

    def send(self, **frame):
        self.ws.send(TEXT, json.dumps(frame).encode())

    def await_(self, what):
        """Takes frames until `what` (bytes in .seen, or a function) is there."""
        check = what if callable(what) else lambda: what in self.seen
        end = time.monotonic() + self.deadline
        while not check():
            assert time.monotonic() < end and not self.closed and self.take(), \
                f"{what!r} did not come: {self.seen[-2000:]!r} {self.frames[-3:]}"

    def await_end(self):
        while not self.closed:
            self.take()
        return self.exit

    def close(self):
        self.ws.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()
