# SPDX-License-Identifier: Apache-2.0
"""Connections that wake what is stopped, and the command that serves a port."""

import concurrent.futures
import contextlib
import socket
import time

import pytest

from cella_ports import APP, PORT, Published, open_stream

SERVE = f"exec python3 /tmp/port_app.py {PORT}"


@contextlib.contextmanager
def sandbox_with(server, **lifecycle):
    box = server.create(lifecycle=lifecycle)
    box.write("/tmp/port_app.py", APP.read_text())
    yield box
    box.delete()


def starts(box):
    return [event for event in box.get()["events"] if event["type"] == "RESUME"]


def test_a_command_serves_the_port(server):
    with sandbox_with(server) as box:
        port = Published(box, access="public", command=f"echo x >> /tmp/starts; {SERVE}")
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda way: way("/text"), [port.by_name, port.on_host] * 4))
        assert [answer.status for answer in answers] == [200] * 8
        assert box.read("/tmp/starts") == b"x\n"  # for all of them once
        names = [p["name"] for p in box.request("GET", "/process").json()]
        assert names.count(f"port-{PORT}") == 1
        assert box.request("GET", f"/port/{PORT}/text").status == 200


def test_a_command_that_fails(server):
    with sandbox_with(server) as box:
        port = Published(box, access="public", command="echo x >> /tmp/starts; exit 3")
        began = time.monotonic()
        answer = port.on_host()
        assert answer.status == 502 and answer.error() == "PORT_NOT_LISTENING"
        assert "ended with 3" in answer.text
        for _ in range(5):
            assert port.on_host().status == 502
        # Not once per visitor, but every 5 seconds at most.
        assert 1 <= box.read("/tmp/starts").count(b"x") <= 1 + (time.monotonic() - began) / 5
        port.patch(command=SERVE)
        assert port.on_host().status == 200


def test_woken_by_requests(server):
    with sandbox_with(server, wakeOnConnect=True) as box:
        assert box.get()["spec"]["lifecycle"] == {"wakeOnConnect": True}
        port = Published(box, access="public", command=SERVE)
        for reach in (port.by_name, port.on_host,
                      lambda path: box.request("GET", f"/port/{PORT}{path}", timeout=60)):
            box.stop()
            before = len(starts(box))
            answer = reach("/text")
            assert answer.status == 200 and answer.body == b"hello"
            assert box.status() == "running" and len(starts(box)) == before + 1


def test_woken_by_many_at_once(server):
    with sandbox_with(server, wakeOnConnect=True) as box:
        port = Published(box, access="public", command=SERVE)
        box.stop()
        with concurrent.futures.ThreadPoolExecutor(8) as pool:
            answers = list(pool.map(lambda _: port.on_host("/text").status, range(8)))
        assert answers == [200] * 8 and len(starts(box)) == 1


def test_woken_by_a_websocket_and_by_bytes(server):
    with sandbox_with(server, wakeOnConnect=True) as box:
        port = Published(box, access="public", command=SERVE)
        raw = Published(box, port=8001, access="public", protocol="tcp",
                        command="exec python3 /tmp/port_app.py 8001")
        box.stop()
        sock, head = open_stream(port.ways[0][0], [
            "GET /upgrade HTTP/1.1", f"Host: {port.name}", "Connection: Upgrade", "Upgrade: echo"])
        sock.close()
        assert " 101 " in head
        box.stop()
        with socket.create_connection(("127.0.0.1", raw.host_port), timeout=60) as sock:
            sock.sendall(b"GET /text HTTP/1.1\r\nHost: x\r\n\r\n")
            assert sock.recv(12, socket.MSG_WAITALL) == b"HTTP/1.1 200"


def test_woken_after_it_was_idle(server):
    with sandbox_with(server, wakeOnConnect=True, idleTimeout="1s") as box:
        port = Published(box, access="public", command=SERVE)
        for _ in range(2):
            assert port.on_host("/text").status == 200
            box.wait_status("stopped", deadline=60)
        assert port.by_name("/text").status == 200


@pytest.mark.parametrize("lifecycle", [{}, {"wakeOnConnect": False}, {"idleTimeout": "1h"}])
def test_not_woken_unless_asked_for(server, lifecycle):
    with sandbox_with(server, **lifecycle) as box:
        port = Published(box, access="public", command=SERVE)
        box.stop()
        for answer in port.everywhere():
            assert answer.status == 409 and answer.error() == "NOT_RUNNING"
        assert box.status() == "stopped"


def test_not_woken_when_it_is_switched_off(server):
    with sandbox_with(server, wakeOnConnect=True) as box:
        port = Published(box, access="public", command=SERVE)
        answer = server.request("PATCH", box.base, {"spec": {"enabled": False}})
        assert answer.status == 200, answer
        box.wait_status("stopped")
        assert port.on_host().error() == "NOT_RUNNING" and box.status() == "stopped"


def test_not_woken_by_those_who_may_not_come_in(server):
    with sandbox_with(server, wakeOnConnect=True) as box:
        port = Published(box, access="token", command=SERVE)
        box.stop()
        assert [answer.status for answer in port.everywhere()] == [401, 401]
        assert box.status() == "stopped"


def test_the_setting_can_be_changed_and_is_cloned(server):
    with sandbox_with(server) as box:
        for value in (True, False):
            answer = server.request("PATCH", box.base, {"spec": {"lifecycle": {"wakeOnConnect": value}}})
            assert answer.status == 200, answer
            assert box.get()["spec"].get("lifecycle", {}).get("wakeOnConnect", False) is value
        server.request("PATCH", box.base, {"spec": {"lifecycle": {"wakeOnConnect": True}}})
        answer = box.request("POST", "/clone", {"metadata": {"name": f"{box.name}-2"}})
        assert answer.json()["spec"]["lifecycle"]["wakeOnConnect"] is True
        other = server.sandbox(f"{box.name}-2").wait_status("running")
        other.delete()
        answer = server.request("PATCH", box.base, {"spec": {"lifecycle": {"wakeOnConnect": "yes"}}})
        assert answer.status == 400 and "wakeOnConnect" in answer.text
