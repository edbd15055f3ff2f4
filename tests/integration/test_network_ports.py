# SPDX-License-Identifier: Apache-2.0
"""Ports lead into a sandbox whatever its network lets out: by path, by name and on the host, with requests, events
and WebSockets, to one that runs and to one that has to be woken."""

import contextlib
import socket

import pytest

from cella_auth import call
from cella_ports import APP, PORT, Published, open_stream

SERVE = f"exec python3 /tmp/port_app.py {PORT}"
NETWORKS = {"none": {}, "allowlist": {"allow": ["a.example"]}, "full": {}}


@pytest.fixture(scope="module", params=NETWORKS)
def port(request, server):
    network = {"mode": request.param, **NETWORKS[request.param]}
    answer = server.request("POST", "/v0/sandbox", {"spec": {"network": network,
                                                             "lifecycle": {"wakeOnConnect": True}}})
    if answer.status == 503 and answer.error() == "NETWORK_UNAVAILABLE":
        pytest.skip(answer.text)
    box = server.sandbox(answer.json()["metadata"]["name"])
    box.wait_status("running")
    box.write("/tmp/port_app.py", APP.read_text())
    yield Published(box, access="token", command=SERVE)
    box.delete()


def ways(port):
    """(where to connect, what to call it, what the path begins with, the field that opens it), of all three."""
    (api, name), (address, host) = port.ways
    token = f"X-Cella-Port-Token: {port.token()}"
    return {"name": (api, name, "", token), "host": (address, host, "", token),
            "path": (api, api, f"/v0/sandbox/{port.sandbox.name}/port/{PORT}",
                     f"Authorization: Bearer {(port.server.data / 'api-key').read_text().strip()}")}


def stream(way, path, *fields):
    address, host, before, key = way
    return open_stream(address, [f"GET {before}{path} HTTP/1.1", f"Host: {host}", key, *fields])


def assert_events(way):
    sock, head = stream(way, "/drip")
    with contextlib.closing(sock):
        assert "200" in head.split("\r\n")[0] and "text/event-stream" in head, head
        data = b""
        while b"data: 1\n\n" not in data:
            piece = sock.recv(100)
            assert piece, data
            data += piece


def assert_websocket(way):
    sock, head = stream(way, "/ws", "Connection: Upgrade", "Upgrade: websocket",
                        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13")
    with contextlib.closing(sock):
        assert " 101 " in head and "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head, head
        sock.sendall(b"\x81\x82\0\0\0\0hi")
        assert sock.recv(4, socket.MSG_WAITALL) == b"\x81\x02hi"


@pytest.mark.parametrize("tried", [assert_events, assert_websocket])
@pytest.mark.parametrize("by", ["name", "host", "path"])
def test_running_and_woken(port, by, tried):
    way = ways(port)[by]
    tried(way)
    port.sandbox.stop()
    tried(way)
    assert port.sandbox.status() == "running"


def test_not_without_its_token(port):
    """Nor is it woken by somebody who may not come in."""
    port.sandbox.stop()
    for by in ("name", "host"):
        for key in ("X-Nothing: x", "X-Cella-Port-Token: wrong"):
            address, host, _, _ = ways(port)[by]
            sock, head = open_stream(address, ["GET /drip HTTP/1.1", f"Host: {host}", key])
            sock.close()
            assert " 401 " in head.split("\r\n")[0], head
    assert port.sandbox.status() == "stopped"
    port.sandbox.start()


def test_not_by_path_without_a_key(port):
    assert call(port.server, "GET", f"/v0/sandbox/{port.sandbox.name}/port/{PORT}/text", "cella_wrong").status == 401
