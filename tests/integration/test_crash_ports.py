# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the server's processes while streams lead into a sandbox: the program inside goes on, a
stream lives as long as cellad does, and nothing of a dead one is left."""

import contextlib
import json
import pathlib
import socket
import urllib.parse

from cella_server import wait_until

APP = pathlib.Path(__file__).resolve().parents[1] / "support/port_app.py"
PORT = 8000


def get(box, path):
    with contextlib.suppress(OSError):
        answer = box.request("GET", f"/port/{PORT}{path}")
        return answer if answer.status == 200 else None
    return None


def open_stream(box):
    """An upgraded connection to a program that answers in upper case."""
    url = urllib.parse.urlsplit(box.server.url)
    sock = socket.create_connection((url.hostname, url.port), timeout=30)
    sock.sendall(f"GET {box.base}/port/{PORT}/upgrade HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\n"
                 f"Upgrade: echo\r\nAuthorization: Bearer {box.server.key}\r\n\r\n".encode())
    data = b""
    while not data.endswith(b"WELCOME "):
        piece = sock.recv(4096)
        assert piece, data
        data += piece
    return sock


def talks(sock, text):
    sock.sendall(text)
    got = b""
    while len(got) < len(text):
        piece = sock.recv(4096)
        assert piece
        got += piece
    return got == text.upper()


def test_streams_and_crashes(server_factory):
    server = server_factory()
    box = server.create()
    box.write("/tmp/port_app.py", APP.read_text())
    box.spawn(f"exec python3 /tmp/port_app.py {PORT}")
    wait_until(lambda: get(box, "/text"), 20, "the program")
    with open_stream(box) as sock:
        before = server.kill("warden")
        assert talks(sock, b"the warden is dead")  # nobody needs it for what is open
        server.wait_recovered(before, "warden")
        assert talks(sock, b"and back")
        with open_stream(box) as second:  # made by the new one, in a namespace that it adopted
            assert talks(second, b"again")
        before = server.kill("cellad")
        with contextlib.suppress(ConnectionResetError):
            assert sock.recv(100) in (b"", b"END")
    server.wait_recovered(before, "cellad")
    wait_until(lambda: get(box, "/text"), 20, "the port, through a new cellad")
    with open_stream(box) as sock:
        assert talks(sock, b"new")
    stats = json.loads(get(box, "/stats").body)
    assert stats["connections"] >= 4  # the same program all the time
    box.delete()
