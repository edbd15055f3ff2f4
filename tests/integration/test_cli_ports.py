# SPDX-License-Identifier: Apache-2.0
"""`cella port …`, as somebody types it."""

import json

import pytest

from cella_ports import APP, PORT, send


@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    made.write("/tmp/port_app.py", APP.read_text())
    yield made
    made.delete()


def cella(server, *args, status=0):
    done = server.cli(*args)
    assert done.returncode == status, done
    return done.stdout if status == 0 else done.stderr


def test_a_port_and_its_life(server, box):
    made = cella(server, "port", "publish", box.name, PORT, "--access", "token", "--command",
                 f"exec python3 /tmp/port_app.py {PORT}").splitlines()
    assert made[0].split() == ["PORT", "ACCESS", "PROTOCOL", "HOST", "PORT", "URL"]
    number, access, protocol, host_port, url = made[1].split()
    assert (number, access, protocol) == (str(PORT), "token", "http") and f"{PORT}-" in url
    assert cella(server, "port", "list", box.name).splitlines() == made
    token = cella(server, "port", "token", box.name, PORT, "--expires-in", "1h").strip()
    address = f"127.0.0.1:{host_port}"
    assert send(address, "GET", "/text", {"X-Cella-Port-Token": token}).status == 200
    shown = cella(server, "port", "token", box.name, PORT, "--link").strip()
    assert shown.startswith(f"{url}?cella_token=")
    assert "worthless" in cella(server, "port", "revoke", box.name, PORT)
    assert send(address, "GET", "/text", {"X-Cella-Port-Token": token}).status == 401
    assert "public" in cella(server, "port", "update", box.name, PORT, "--access", "public")
    assert send(address, "GET", "/text").status == 200
    cella(server, "port", "unpublish", box.name, PORT)
    assert "not published" in cella(server, "port", "unpublish", box.name, PORT, status=3)


def test_json(server, box):
    made = json.loads(cella(server, "-o", "json", "port", "publish", box.name, 9000, "--host-port",
                            "none"))
    assert made["hostPort"] is None and made["access"] == "private"
    assert json.loads(cella(server, "-o", "json", "port", "list", box.name))["ports"] == [made]
    cella(server, "port", "unpublish", box.name, 9000)


@pytest.mark.parametrize("args", [
    ("publish", "{}", "0"), ("publish", "{}", "x"), ("publish", "{}", "1", "--host-port", "x"),
    ("publish", "{}", "1", "--host-port", "80"), ("publish", "{}", "1", "--access", "x"),
    ("publish", "{}", "1", "--protocol", "tcp"), ("update", "{}", "1"), ("publish", "{}"),
])
def test_bad_lines(server, box, args):
    cella(server, "port", *(arg.format(box.name) for arg in args), status=2)


def test_wake_on_connect(server):
    cella(server, "sandbox", "create", "--name", "cli-wake", "--wake-on-connect", "yes", "--idle-timeout", "1h")
    box = server.sandbox("cli-wake").wait_status("running")
    assert box.get()["spec"]["lifecycle"] == {"idleTimeout": "1h", "wakeOnConnect": True}
    cella(server, "sandbox", "update", "cli-wake", "--wake-on-connect", "no")
    assert box.get()["spec"]["lifecycle"] == {"idleTimeout": "1h"}
    box.delete()
