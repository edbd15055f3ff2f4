# SPDX-License-Identifier: Apache-2.0
"""Published ports in tests: a program behind one, and the ways to reach it."""

import contextlib
import http.client
import os
import pathlib
import random
import socket
import urllib.parse

from cella_server import PATIENCE, Answer, wait_until

APP = pathlib.Path(__file__).resolve().parent / "port_app.py"
PORT = 8000


def start_app(sandbox, port=PORT):
    """The program of port_app.py, listening."""
    sandbox.write("/tmp/port_app.py", APP.read_text())
    sandbox.spawn(f"exec python3 /tmp/port_app.py {port}")
    wait_until(lambda: sandbox.request("GET", f"/port/{port}/text").status == 200, 20, "the program")
    return sandbox


def send(address, method, path, headers=None, body=None, source=None):
    """One request to HOST:PORT, with exactly these fields (and a Host, unless they have one)."""
    host, port = address.rsplit(":", 1)
    connection = http.client.HTTPConnection(host, int(port), timeout=60 * PATIENCE,
                                            source_address=(source or "127.0.0.1", 0))
    with contextlib.closing(connection):
        connection.request(method, path, body, headers or {})
        answer = connection.getresponse()
        return Answer(answer.status, answer.headers, answer.read())


class Published:
    """A published port of a sandbox, and what comes back from it."""

    def __init__(self, sandbox, port=PORT, **fields):
        self.sandbox, self.server, self.port = sandbox, sandbox.server, port
        answer = sandbox.request("POST", "/ports", {"port": port, **fields})
        assert answer.status == 201, answer
        self.json = answer.json()
        self.host_port = self.json["hostPort"]
        self.name = urllib.parse.urlsplit(self.json["urls"]["name"]).netloc

    def get(self):
        return self.sandbox.request("GET", f"/ports/{self.port}").json()

    def patch(self, **fields):
        answer = self.sandbox.request("PATCH", f"/ports/{self.port}", fields)
        assert answer.status == 200, answer
        return answer.json()

    def token(self, **fields):
        answer = self.sandbox.request("POST", f"/ports/{self.port}/tokens", fields)
        assert answer.status == 201, answer
        return answer.json()["token"]

    def delete(self):
        answer = self.sandbox.request("DELETE", f"/ports/{self.port}")
        assert answer.status == 200, answer

    @property
    def ways(self):
        """The two origins: (where to connect, what to call it)."""
        api = urllib.parse.urlsplit(self.server.url).netloc
        return [(api, self.name), (f"127.0.0.1:{self.host_port}", f"127.0.0.1:{self.host_port}")]

    def by_name(self, path="/echo", method="GET", headers=None, **more):
        address, host = self.ways[0]
        return send(address, method, path, {"Host": host, **(headers or {})}, **more)

    def on_host(self, path="/echo", method="GET", headers=None, **more):
        return send(self.ways[1][0], method, path, headers, **more)

    def everywhere(self, path="/echo", method="GET", headers=None, **more):
        return [self.by_name(path, method, headers, **more),
                self.on_host(path, method, headers, **more)]


def open_stream(address, head):
    """A connection on which these lines were sent, and what came up to the end of the answer's head."""
    host, port = address.rsplit(":", 1)
    sock = socket.create_connection((host, int(port)), timeout=60 * PATIENCE)
    sock.sendall("\r\n".join([*head, "", ""]).encode())
    data = b""
    while b"\r\n\r\n" not in data:
        piece = sock.recv(1)
        assert piece, data
        data += piece
    return sock, data.decode("latin-1")


def is_closed(server, host_port):
    """The server does not listen there. Who else does is not ours to say: another run may be faster than
    a connection that would prove it."""
    inodes = set()
    for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:]:
        fields = line.split()
        if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == host_port:
            inodes.add(f"socket:[{fields[9]}]")
    with contextlib.suppress(FileNotFoundError, ProcessLookupError, TypeError):
        for link in pathlib.Path(f"/proc/{server.pids().cellad}/fd").iterdir():
            with contextlib.suppress(OSError):
                if os.readlink(link) in inodes:
                    return False
    return True


def own_range():
    """Ports of the host for a server that nobody shares its range with: it can stop, and have them again."""
    first = random.randrange(20000, 29990)
    return ("--ports", f"127.0.0.1:{first}-{first + 9}")
