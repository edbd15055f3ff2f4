# SPDX-License-Identifier: Apache-2.0
"""A server that asks nobody for a key is for programs of its own machine: it starts nowhere else, and neither a
name that leads to it, nor a page in a browser, nor a proxy, nor a port on another address lets others in."""

import contextlib
import http.client
import socket
import subprocess

import pytest

from cella_ports import Published, start_app
from cella_server import PATIENCE

# Names are not looked up at all: they could mean something else a moment later.
ELSEWHERE = ["0.0.0.0:0", "[::]:0", "192.0.2.1:0", "10.0.0.1:0", "[2001:db8::1]:0", "[::ffff:127.0.0.1]:0",
             "[::ffff:0.0.0.0]:0", "0:0", "127.evil.example:0", "localhost.example:0", "localhost.:0", "127.1:0",
             "127.0.0.1.nip.io:0", "2130706433:0", ":0", "*:0", "unix:/tmp/x", "[::1%lo]:0", " 127.0.0.1:0"]


@pytest.mark.parametrize("address", ELSEWHERE)
def test_it_starts_on_loopback_only(server, tmp_path, address):
    done = subprocess.run([server.bin / "cella", "server", "--data", tmp_path / "none", "--no-auth", "--network", "off",
                           "--listen", address], capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
    assert done.returncode == 2 and "loopback" in done.stderr, done
    assert not (tmp_path / "none").exists()


@pytest.fixture(scope="module")
def open_server():
    from cella_fixtures import _requirements
    from cella_server import Server
    _requirements()
    made = Server("--no-auth", "--network", "off", "--trusted-proxy", "127.0.0.9", "--ports", "0.0.0.0:30000-32767")
    made.key = None
    yield made
    made.close()


def send(address, path="/v0/sandbox", source="127.0.0.1", method="GET", body=None, **fields):
    connection = http.client.HTTPConnection(*address, timeout=30 * PATIENCE, source_address=(source, 0))
    with contextlib.closing(connection):
        connection.request(method, path, body, {name.replace("_", "-"): value for name, value in fields.items()})
        return connection.getresponse().status


def address_of(server):
    host, port = server.url.removeprefix("http://").split(":")
    return host, int(port)


def test_pages_and_names(open_server):
    """A page that is not ours, and a stranger's name that leads here (DNS rebinding), with any door that there is."""
    address = address_of(open_server)
    port = address[1]
    box = open_server.create()
    e2b = open_server.request("POST", "/sandboxes", {"templateID": "base"}).json()["sandboxID"]
    try:
        for path, more in (("/v0/sandbox", {}), ("/health", {}), ("/docs", {}), ("/metrics", {}),
                           ("/", {"E2b-Sandbox-Id": e2b, "E2b-Sandbox-Port": "3000"}),
                           ("/files?path=/etc/hostname", {"E2b-Sandbox-Id": e2b}),
                           (f"/v0/sandbox/{box.name}/terminal", {"Connection": "Upgrade", "Upgrade": "websocket"})):
            for host, origin in ((f"evil.example:{port}", None), (f"evil.example:{port}", f"http://evil.example:{port}"),
                                 (f"127.0.0.1.evil.example:{port}", None), (f"localhost.evil.example:{port}", None),
                                 (f"127.0.0.1:{port}", "http://evil.example"), (f"127.0.0.1:{port}", "null"),
                                 (f"localhost:{port}", f"http://127.0.0.1:{port + 1}")):
                fields = {"Host": host, **({"Origin": origin} if origin else {}), **more}
                assert send(address, path, **fields) == 403, (path, fields)
        assert send(address, Host=f"localhost:{port}", Origin=f"http://localhost:{port}") == 200
        # At a name of its own: nothing listens there, so whom it lets in gets 502.
        own = f"3000-{e2b}.localhost:{port}"
        assert send(address, "/", Host=own) == 502
        for fields in ({"Origin": "http://evil.example"}, {"Origin": "null"}, {"Via": "1.1 x"}, {"X-Real-IP": "192.0.2.7"}):
            assert send(address, "/", Host=own, **fields) == 403, fields
        assert send(address, "/", source="127.0.0.9", Host=own, X_Forwarded_For="192.0.2.7") == 403
    finally:
        open_server.request("DELETE", f"/sandboxes/{e2b}")
        box.delete()


def fetched(site, mode="no-cors", dest="image"):
    """What a browser adds to a request of a page's element."""
    return {"Sec-Fetch-Site": site, "Sec-Fetch-Mode": mode, "Sec-Fetch-Dest": dest}


def test_elements_of_pages(open_server):
    """An image, a frame or a script of a page elsewhere is asked for without an Origin."""
    address = address_of(open_server)
    e2b = open_server.request("POST", "/sandboxes", {"templateID": "base"}).json()["sandboxID"]
    own = {"Host": f"3000-{e2b}.localhost:{address[1]}"}
    try:
        for site in ("cross-site", "same-site", "Cross-Site", ""):
            for more in (fetched(site), fetched(site, "navigate", "iframe"), fetched(site, "navigate", "object"),
                         {"Sec-Fetch-Site": site}):
                for path in ("/v0/sandbox", "/docs", "/health", "/preview/x/"):
                    assert send(address, path, **more) == 403, (path, more)
                assert send(address, "/", **own, **more) == 403, more
                assert send(address, "/", E2b_Sandbox_Id=e2b, E2b_Sandbox_Port="3000", **more) == 403, more
            link = fetched(site, "navigate", "document")
            assert send(address, "/v0/sandbox", **link) == 403
            assert send(address, "/docs", method="POST", **link) == 403
            assert send(address, "/docs", **link) == 200
            assert send(address, "/preview/x/", **link) == 404
            assert send(address, "/", **own, **link) == 502
        for site in ("none", "same-origin"):
            assert send(address, **fetched(site, "cors", "empty")) == 200
            assert send(address, "/", **own, **fetched(site)) == 502
    finally:
        open_server.request("DELETE", f"/sandboxes/{e2b}")


def test_strangers_behind_a_proxy(open_server):
    """A proxy of the machine stands for whom it names, whatever Host it passes on."""
    address = address_of(open_server)
    host = f"localhost:{address[1]}"
    assert send(address, source="127.0.0.9", Host=host) == 200
    for shown in ("192.0.2.7", "127.0.0.1, 192.0.2.7", "127.0.0.1", "::1", "unix", "unknown", "x"):
        assert send(address, source="127.0.0.9", Host=host, X_Forwarded_For=shown) == 403, shown
    assert send(address, source="127.0.0.9", Host=host, Forwarded="for=192.0.2.7") == 403
    # One that was not named is known by what it adds (nginx adds nothing by default, but most are told to).
    for field in ("X_Forwarded_For", "Forwarded", "Via", "X_Real_IP"):
        for source in ("127.0.0.1", "127.0.0.9"):
            assert send(address, source=source, Host=host, **{field: "127.0.0.1"}) == 403, (field, source)
    assert send(address, Host=host) == 200


def own_address():
    """An address of this machine that is not loopback; None: it has none."""
    with contextlib.closing(socket.socket(socket.AF_INET, socket.SOCK_DGRAM)) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return None
        return probe.getsockname()[0]


def test_ports_on_other_addresses(open_server):
    """A private port on the host's own address is not open to whoever writes localhost into Host."""
    address = own_address()
    if address is None or address.startswith("127."):
        pytest.skip("this machine has no other address than loopback")
    box = start_app(open_server.create())
    try:
        port = Published(box).host_port
        assert send(("127.0.0.1", port), "/echo", Host=f"localhost:{port}") == 200
        for host in (f"localhost:{port}", f"127.0.0.1:{port}", f"{address}:{port}"):
            assert send((address, port), "/echo", source=address, Host=host) == 403, host
    finally:
        box.delete()
