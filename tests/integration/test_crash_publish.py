# SPDX-License-Identifier: Apache-2.0
"""Published ports outlive the processes that serve them, and a port of the host that somebody else
has taken meanwhile is had back when it is free."""

import socket

from cella_ports import Published, is_closed, own_range, start_app
from cella_server import wait_until


def test_after_crashes_and_restarts(server_factory):
    server = server_factory(*own_range())
    box = start_app(server.create())
    port = Published(box, access="token")
    fields = {"X-Cella-Port-Token": port.token()}
    assert [a.status for a in port.everywhere("/text", headers=fields)] == [200, 200]
    server.wait_recovered(server.kill("cellad"), "cellad")
    wait_until(lambda: not is_closed(server, port.host_port), 20, "the port, through a new cellad")
    assert [a.status for a in port.everywhere("/text", headers=fields)] == [200, 200]
    server.wait_recovered(server.kill("warden"), "warden")
    assert [a.status for a in port.everywhere("/text", headers=fields)] == [200, 200]
    before = port.get()
    server.kill("supervisor", "warden", "cellad")
    server.start()
    wait_until(lambda: not is_closed(server, port.host_port), 20, "the port, through a new server")
    assert {**port.get(), "urls": None} == {**before, "urls": None}
    server.stop()
    assert is_closed(server, port.host_port)
    with socket.create_server(("127.0.0.1", port.host_port)):
        server.start()
        assert "another program" in port.get()["hostError"]
    wait_until(lambda: "hostError" not in port.get(), 20, "the port of the host, free again")
    assert port.on_host("/text").status == 401
    box.delete()
    assert is_closed(server, port.host_port)
    assert server.leaks() == ""


def test_unpublished_stays_unpublished(server_factory):
    server = server_factory(*own_range())
    box = server.create(enabled=False)
    port = Published(box, access="public")
    port.delete()
    server.wait_recovered(server.kill("cellad"), "cellad")
    assert box.request("GET", "/ports").json()["total"] == 0 and is_closed(server, port.host_port)
    box.delete()
