# SPDX-License-Identifier: Apache-2.0
"""HTTP as bytes, for requests that no library would send, and answers read the way a strict proxy reads them."""

import contextlib
import socket
import urllib.parse

from cella_server import PATIENCE


def connect(server, timeout=30, source=None):
    url = urllib.parse.urlsplit(server.url)
    return socket.create_connection((url.hostname, url.port), timeout * PATIENCE, (source, 0) if source else None)


def head(server, line, *fields, key=True):
    own = [f"Authorization: Bearer {server.key}"] if key else []
    return "\r\n".join([line, *own, *fields, "", ""]).encode("latin-1")


def exchange(server, data, timeout=30, source=None):
    """Sends it all; everything that comes back until the server closes the connection: so the last request
    has to say "Connection: close", or to be one that is refused. (Who closes his own side has gone, here.)"""
    with connect(server, timeout, source) as sock:
        got = b""
        with contextlib.suppress(ConnectionError):
            sock.sendall(data)
        with contextlib.suppress(ConnectionError):
            while piece := sock.recv(65536):
                got += piece
    return got


def answers(data):
    """[(status, body)], by Content-Length and chunks; what is left over is an answer that nobody asked for."""
    found = []
    while data:
        top, mark, data = data.partition(b"\r\n\r\n")
        assert mark and top.startswith(b"HTTP/1.1 "), (found, top[:200])
        fields = {name.strip().lower(): value.strip() for name, _, value in
                  (line.partition(b":") for line in top.split(b"\r\n")[1:])}
        body = b""
        if fields.get(b"transfer-encoding") == b"chunked":
            while True:
                size, _, data = data.partition(b"\r\n")
                count = int(size, 16)
                body, data = body + data[:count], data[count + 2:]
                if count == 0:
                    break
        else:
            count = int(fields.get(b"content-length", b"0"))
            body, data = data[:count], data[count:]
        found.append((int(top[9:12]), body))
    return found
