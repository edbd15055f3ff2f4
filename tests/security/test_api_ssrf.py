# SPDX-License-Identifier: Apache-2.0
"""Addresses that a caller gives and the server would have to call: none of them leads to the server's own
machine, its network or a cloud's metadata, however it is written down. (What an address is, to the last form
of it, is a unit test: http/address_policy. What a sandbox may reach is test_network_reach.)"""

import contextlib
import socket
import threading

import pytest

from cella_processes import kill, post

PLACES = [
    "http://169.254.169.254/latest/meta-data/", "http://169.254.169.254.:80/", "http://[fd00:ec2::254]/",
    "http://[::ffff:169.254.169.254]/", "http://[::ffff:a9fe:a9fe]/", "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[64:ff9b::a9fe:a9fe]/", "http://[2002:7f00:1::]/", "http://2852039166/", "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/", "http://169.254.43518/", "http://127.1/", "http://0x7f.1/", "http://017700000001/",
    "http://127.0.0.1:{port}/", "http://localhost:{port}/", "http://LOCALHOST:{port}/", "http://localhost.:{port}/",
    "http://[::1]:{port}/", "http://[::]:{port}/", "http://0.0.0.0:{port}/", "http://0:{port}/",
    "http://127.127.127.127:{port}/", "http://10.0.0.1/", "http://172.16.0.1/", "http://192.168.0.1/",
    "http://100.100.100.200/", "http://168.63.129.16/", "http://2822734096/", "http://198.18.0.1/", "http://224.0.0.1/", "http://255.255.255.255/",
    "http://[fe80::1]/", "http://[fc00::1]/", "http://[ff02::1]/", "https://127.0.0.1:{port}/",
]
FORMS = [
    "file:///etc/passwd", "gopher://127.0.0.1:{port}/_x", "dict://127.0.0.1:{port}/x", "ftp://127.0.0.1:{port}/",
    "unix:///run/x", "//127.0.0.1:{port}/", "http:127.0.0.1:{port}", "http://",
    "http://user@127.0.0.1:{port}/", "http://a.example@127.0.0.1:{port}/", "http://a.example:80@127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@a.example/", "http://a.example:99999/", "http://a.example\r\nHost: x/",
    "http://a.example/ HTTP/1.1\r\nX: y", "http://a.example/\x00", "HTTP:\\\\127.0.0.1:{port}",
]


@pytest.fixture(scope="module")
def listener():
    """Something on this machine that must never hear of anybody."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        class Heard:
            port, count = listening.getsockname()[1], 0

        def serve():
            with contextlib.suppress(OSError):
                while True:
                    peer, _ = listening.accept()
                    peer.close()
                    Heard.count += 1

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        yield Heard
        listening.shutdown(socket.SHUT_RDWR)
        thread.join()


def test_callbacks(server, shared_sandbox, listener):
    pid = post(shared_sandbox, "exec sleep 1000")["pid"]
    wrong = []
    for place in PLACES + FORMS:
        answer = shared_sandbox.request("POST", f"/network/process/{pid}/monitor",
                                        {"callback": place.format(port=listener.port)})
        if answer.error() not in ("CALLBACK_REFUSED", "INVALID_ARGUMENT", "INVALID_JSON"):
            wrong.append((place, answer))
    kill(shared_sandbox, pid)
    assert not wrong and listener.count == 0


def test_names_of_hosts_lead_nowhere_else(server, shared_sandbox, listener):
    """A request that names another machine is answered by this one: nothing is fetched."""
    for host in (f"127.0.0.1:{listener.port}", "169.254.169.254", "metadata.google.internal",
                 f"{listener.port}-{shared_sandbox.get()['metadata']['id']}.evil.example"):
        answer = server.request("GET", "/v0/whoami", None, {
            "Host": host, "X-Forwarded-Host": host, "Forwarded": f"host={host}", "X-Original-URL": f"http://{host}/",
            "X-Rewrite-URL": f"http://{host}/"})
        assert answer.status in (200, 400, 404), answer
    assert listener.count == 0


def test_ports_and_tunnels_stay_inside(shared_sandbox, listener):
    for path in (f"/port/{listener.port}/", f"/port/{listener.port}/http://127.0.0.1:{listener.port}/",
                 f"/port/127.0.0.1:{listener.port}/", f"/port/{listener.port}@127.0.0.1/", f"/port/+{listener.port}/",
                 f"/port/0{listener.port}/", "/port/0/", "/port/65536/", "/port/-1/"):
        answer = shared_sandbox.request("GET", path)
        assert answer.status in (400, 404, 502), (path, answer)
    assert listener.count == 0
