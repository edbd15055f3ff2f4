# SPDX-License-Identifier: Apache-2.0
"""Rules that can be changed while a sandbox runs, hold for what is open, and outlive everything."""

import os
import signal
import time

import pytest

from cella_server import wait_until
from network_inside import Box
from world import ECHO, OTHER, WEB

# Says something over one connection again and again, for as long as it is answered.
HOLD = """
import sys, time
sys.path.insert(0, '/var/tmp/probe')
from network_inside import *
count = 0
with socket.create_connection((sys.argv[1], int(sys.argv[2])), timeout=PATIENT) as sock:
    if len(sys.argv) > 3:
        sock.sendall(f'GET /drip HTTP/1.1\\r\\nHost: {sys.argv[3]}\\r\\n\\r\\n'.encode())
    sock.settimeout(PATIENT)  # a machine that stands still for a while has not hung up
    try:
        while True:
            if len(sys.argv) == 3:
                sock.sendall(b'x')
            if not sock.recv(1000):
                break
            count += 1
            if count == 3:
                print('open', flush=True)
            time.sleep(0.05)
    except OSError:
        pass
print('dead', flush=True)
"""


def hold(box, address, port, host=""):
    """A connection that is kept in use; gives what it has said so far."""
    box.write("/tmp/hold.py", HOLD)
    pid = box.spawn(f"exec python3 -B /tmp/hold.py {address} {port} {host}")
    wait_until(lambda: "open" in box.logs(pid)["stdout"], 30, lambda: box.logs(pid))
    return lambda: box.logs(pid)["stdout"]


def change(box, **network):
    answer = box.request("PUT", "/network", network)
    assert answer.status in (200, 202), answer
    return answer.json()


def reaches(box, name=None, patience=20):
    """Whether it gets an answer from there: a name through HTTP, else an echo."""
    if name:
        return box.do("http(web, name, timeout=patience)['status'] == 200", web=WEB, name=name, patience=patience)
    return box.do("echo(other, port, timeout=patience)['got'] == 'hello'", other=OTHER, port=ECHO, patience=patience)


def test_tightening_ends_what_is_open(world, boxes):
    box = boxes("full")
    held = hold(box, OTHER, ECHO)
    change(box, mode="allowlist", allow=[world.name(WEB)])
    wait_until(lambda: "dead" in held(), 60, held)
    assert not reaches(box, patience=2)


def test_tightening_ends_what_is_proxied(world, boxes):
    good, kept = world.name(WEB), world.name(WEB)
    box = boxes("allowlist", allow=[good, kept])
    gone, stays = hold(box, WEB, 80, good), hold(box, WEB, 80, kept)
    change(box, mode="allowlist", allow=[kept])
    wait_until(lambda: "dead" in gone(), 60, gone)
    assert not reaches(box, good) and reaches(box, kept)
    assert "dead" not in stays(), "what is still allowed goes on"


def test_what_went_to_the_web_directly_is_judged_by_its_name(world, boxes):
    """Where no name decides, nobody reads which host a connection is for. Once one does, it has to say it."""
    bad = world.name(WEB)
    box = boxes("isolated")
    held, elsewhere = hold(box, WEB, 80, bad), hold(box, OTHER, ECHO)
    change(box, mode="isolated", deny=[bad])
    wait_until(lambda: "dead" in held(), 60, held)
    assert not reaches(box, bad) and reaches(box, world.name(WEB))
    assert "dead" not in elsewhere(), "no name decides about other ports"


def test_an_address_that_was_admitted_is_not_any_more(world, boxes):
    name = world.name(OTHER, ttl=600)
    box = boxes("allowlist", allow=[f"{name}:{ECHO}"])
    assert box.do("addresses(name)", name=name) == [OTHER]
    held = hold(box, OTHER, ECHO)
    change(box, mode="allowlist", allow=[world.name(WEB)])
    wait_until(lambda: "dead" in held(), 60, held)
    assert not reaches(box, patience=2)


def test_loosening_needs_no_restart(world, boxes):
    name = world.name(WEB)
    box = boxes("allowlist", allow=[world.name(WEB)])
    assert not reaches(box, name) and not reaches(box, patience=2)
    change(box, mode="allowlist", allow=[name, f"{OTHER}:{ECHO}"])
    assert reaches(box, name) and reaches(box)
    change(box, mode="full")
    assert reaches(box, world.name(WEB)) and reaches(box)
    change(box, mode="none")
    assert not reaches(box, name, patience=2) and not reaches(box, patience=2.5)


def assert_limited(box, good, bad):
    assert box.get()["spec"]["network"]["allow"] == [good]
    assert reaches(box, good) and not reaches(box, bad) and not reaches(box, patience=2)


@pytest.fixture
def pair(world):
    return world.name(WEB), world.name(WEB)


def test_rules_hold_after_stop_and_start(boxes, pair):
    box = boxes("allowlist", allow=[pair[0], pair[1]])
    change(box, mode="allowlist", allow=[pair[0]])
    box.stop()
    box.start()
    assert_limited(box, *pair)


def test_rules_can_be_changed_while_it_is_stopped(boxes, pair):
    box = boxes("full")
    box.stop()
    change(box, mode="allowlist", allow=[pair[0]])
    box.start()
    assert_limited(box, *pair)


def test_a_clone_has_them(boxes, pair, world_server):
    box = boxes("allowlist", allow=[pair[0]])
    answer = box.request("POST", "/clone", {})
    assert answer.status in (200, 202), answer
    twin = world_server.sandbox(answer.json()["metadata"]["name"])
    try:
        twin.wait_status("running")
        assert_limited(Box(twin), *pair)
    finally:
        twin.delete()


def egress_pid(server):
    """The egress process of a server: the supervisor's child of that name."""
    supervisor = server.pids().supervisor
    for task in os.listdir("/proc"):
        if task.isdigit():
            try:
                with open(f"/proc/{task}/stat", encoding="latin-1") as stat:
                    name, rest = stat.read().split("(", 1)[1].rsplit(")", 1)
                if int(rest.split()[1]) == supervisor and "egress" in name:
                    return int(task)
            except OSError:
                pass
    return None


@pytest.mark.timeout(240)
def test_rules_hold_whoever_dies(world_factory, boxes, pair):
    """One after the other and all at once: refused meanwhile, and as before afterwards."""
    server = world_factory()
    box = boxes("allowlist", server=server, allow=[pair[0]])
    assert_limited(box, *pair)
    killed = wait_until(lambda: egress_pid(server), 20, "an egress process")
    os.kill(killed, signal.SIGKILL)
    wait_until(lambda: egress_pid(server) not in (None, killed), 30, "another egress process")
    wait_until(lambda: reaches(box, pair[0], patience=5), 30, "the allowed name")
    assert_limited(box, *pair)
    for who in ("cellad", "warden"):
        server.wait_recovered(server.kill(who), who)
        assert not reaches(box, pair[1], patience=5)
        wait_until(lambda: reaches(box, pair[0], patience=5), 30, "the allowed name")
        assert_limited(box, *pair)
    server.kill("supervisor")
    server.start()
    assert not reaches(box, pair[1], patience=5)
    wait_until(lambda: reaches(box, pair[0], patience=5), 30, "the allowed name")
    assert_limited(box, *pair)
    change(box, mode="full")
    assert reaches(box, pair[1]) and reaches(box)
    wait_until(lambda: server.leaks() == "", 30, server.leaks)


@pytest.mark.timeout(180)
def test_addresses_of_names_are_admitted_again(world, world_factory, boxes):
    """Whenever the kernel forgot which ones were: after another size, and after the warden's end."""
    server, name = world_factory(), world.name(WEB, ttl=300)
    one, two = (boxes("allowlist", server=server, allow=[f"{name}:{ECHO}"]) for _ in range(2))

    def reached(box):
        return box.do("[addresses(name), echo(web, port, timeout=5)['got']]", name=name, web=WEB, port=ECHO)

    time.sleep(10.5)  # from then on the egress process remembers what it had admitted (egress/admitted.h)
    assert reached(one) == reached(two) == [[WEB], "hello"]
    answer = one.request("POST", "/resize", {"memory": "700Mi"})
    assert answer.status == 200, answer
    assert reached(one) == [[WEB], "hello"]
    server.wait_recovered(server.kill("warden"), "warden")
    wait_until(lambda: reached(two) == [[WEB], "hello"], 60, "the name's address")


@pytest.mark.timeout(180)
def test_rules_hold_after_a_restart_of_the_server(world_factory, boxes, pair):
    server = world_factory()
    box = boxes("allowlist", server=server, allow=[pair[0]])
    server.stop()
    assert server.network_remains() == []
    server.start()
    box.start()
    assert_limited(box, *pair)


# --- what was allowed and what was refused ---


def entries(box, **wanted):
    answer = box.request("GET", "/network/log")
    assert answer.status == 200, answer
    return [each for each in answer.json()["entries"]
            if all(each.get(name) == value for name, value in wanted.items())]


def test_the_log(world, boxes, world_server, pair):
    """Name, address, port and bytes, of what was allowed and of what was not, with the reason."""
    box = boxes("allowlist", allow=[pair[0]])
    assert reaches(box, pair[0]) and not reaches(box, pair[1])
    wait_until(lambda: [each for each in entries(box, name=pair[0]) if each.get("address") == WEB], 30,
               lambda: entries(box))
    refused = entries(box, name=pair[1])
    assert refused and all(each["verdict"] != "ALLOWED" for each in refused), entries(box)
    done = world_server.cli("network", "log", box.name)
    assert done.returncode == 0 and pair[0] in done.stdout and pair[1] in done.stdout, done
