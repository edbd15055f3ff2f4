# SPDX-License-Identifier: Apache-2.0
"""Commands over a WebSocket (…/exec/ws), as a program would use it: on cella_websocket's client."""

import base64
import json
import time
import urllib.parse

from cella_server import PATIENCE
from cella_websocket import TEXT, WebSocket


class ExecSocket:
    """One connection: .send(type=…, id=…, …), and what came back by stream in .messages[id]."""

    def __init__(self, server, name, base="/v0/sandbox", fields=None, timeout=30, source=None, **query):
        if fields is None:
            fields = {"Authorization": f"Bearer {server.key}"} if server.key else {}
        path = f"{base}/{name}/exec/ws"
        if query:
            path += "?" + urllib.parse.urlencode(query)
        self.ws = WebSocket(server.url, path, fields, timeout, source)
        self.deadline = timeout * PATIENCE
        self.messages = {}
        self.closed = False
        self.ready = self.take()
        assert self.ready["type"] == "ready", self.ready

    def send(self, **message):
        self.ws.send(TEXT, json.dumps(message).encode())

    def start(self, stream, command, **fields):
        self.send(type="start", id=stream, command=command, **fields)

    def take(self):
        """The next message; None when the connection was closed."""
        got = self.ws.receive()
        if got is None:
            self.closed = True
            return None
        opcode, payload = got
        assert opcode == TEXT
        message = json.loads(payload)
        self.messages.setdefault(message.get("id"), []).append(message)
        return message

    def await_(self, stream, check):
        """Takes messages until one of the stream (of the past, too) satisfies `check`: a type or a function."""
        wanted = check if callable(check) else lambda message: message["type"] == check
        end = time.monotonic() + self.deadline
        while True:
            for message in self.messages.get(stream, []):
                if wanted(message):
                    return message
            assert time.monotonic() < end and not self.closed and self.take() is not None, \
                (stream, check, self.messages.get(stream, [])[-5:], self.ws.close_code)

    def bytes(self, stream, kind="stdout"):
        """What came of one stream so far, exactly; offsets have to fit without a hole that was not told."""
        return b"".join(data(message) for message in self.messages.get(stream, []) if message["type"] == kind)

    def text(self, stream, kind="stdout"):
        return "".join(message["data"] for message in self.messages.get(stream, []) if message["type"] == kind)

    def run(self, stream, command, **fields):
        """To the end: (exit message, stdout, stderr)."""
        self.start(stream, command, **fields)
        end = self.await_(stream, "exit")
        return end, self.bytes(stream), self.bytes(stream, "stderr")

    def close(self):
        self.ws.close()


def data(message):
    if "dataBase64" in message:
        return base64.b64decode(message["dataBase64"])
    return message["data"].encode()
