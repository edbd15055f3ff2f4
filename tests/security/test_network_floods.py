# SPDX-License-Identifier: Apache-2.0
"""A sandbox that floods packets, connections or half requests: bounded, and its neighbours are served."""

import pytest

from cella_server import wait_until
from world import ECHO, OTHER, WEB


def assert_served(world, box, name):
    got = box.do("[http(web, name)['status'], echo(other, port)['got'], addresses(name)]", web=WEB, other=OTHER,
                 name=name, port=ECHO)
    assert got == [200, "hello", [WEB]]


CONNECTIONS = """
import resource
resource.setrlimit(resource.RLIMIT_NOFILE, (resource.getrlimit(resource.RLIMIT_NOFILE)[1],) * 2)
kept, refused = [], 0
while len(kept) + refused < 900:
    sock = socket.socket()
    sock.settimeout(0.2)
    try:
        sock.connect((target, port))
        sock.sendall(b'GET / HT')
        kept.append(sock)
    except OSError:
        refused += 1
        sock.close()
def is_open(sock):
    sock.setblocking(False)
    try:
        return bool(sock.recv(1000))
    except BlockingIOError:
        return True
    except OSError:
        return False
for _ in range(100):  # the proxies accept first, and then hang up on whoever has enough
    still = sum(map(is_open, kept))
    if still <= most:
        break
    time.sleep(0.1)
print('ready', still, flush=True)
time.sleep(1000)
"""


@pytest.mark.timeout(240)
@pytest.mark.parametrize("port", [ECHO, 80, 443])
def test_connections_without_end(world, boxes, port):
    """Direct ones, and those that the proxies hold: some hundreds each, then no more; the neighbour has his own."""
    name = world.name(WEB)
    network = {"mode": "allowlist", "allow": [name, f"{name}:{ECHO}", f"{OTHER}:{ECHO}", f"{WEB}:{ECHO}"]}
    if port == ECHO:
        network = {"mode": "isolated"}
    box, other, since = boxes(**network), boxes(**network), world.now()
    with box.doing(CONNECTIONS, target=WEB, port=port, most=600) as output:
        assert_served(world, other, name)
        still = int(output().split()[1])
    assert still <= 600, "as many as it likes"
    assert len(world.met(since, kind="tcp", port=port, address=WEB)) <= 700
    wait_until(lambda: box.do("http(web, name, timeout=5)", web=WEB, name=name)["status"] == 200, 60, "its own again")


PACKETS = """
sock = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
sock.setblocking(False)
sent = 0
while True:
    for number in range(1000):
        try:
            sock.sendto(b'x' * size, (target, port))
        except OSError:
            pass
    sent += 1000
    if sent == 5000:
        print('ready', flush=True)
"""


@pytest.mark.parametrize("target,port", [(WEB, ECHO), ("45.66.66.66", 9), ("10.77.0.5", 9)])
def test_packets_without_end(world, boxes, target, port):
    """To somebody who echoes, to nobody, to where it may not."""
    name = world.name(WEB)
    box, other = boxes("isolated"), boxes("isolated")
    with box.doing(PACKETS, target=target, port=port, size=64):
        assert_served(world, other, name)
    assert_served(world, box, name)


def test_sockets_to_many_places(world, boxes):
    """A scan: a new connection per address, each of which the kernel would have to remember."""
    name = world.name(WEB)
    box, other = boxes("isolated"), boxes("isolated")
    with box.doing("scan(5000)"):
        assert_served(world, other, name)
