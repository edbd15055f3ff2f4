# SPDX-License-Identifier: Apache-2.0
"""Requests that the warden has not read yet are dropped once a later client has taken over, and a second START of a
sandbox joins the one that is under way."""

import contextlib
import os
import pathlib
import signal
import struct
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wardenlib  # noqa: E402
import wirelib  # noqa: E402
from wardenlib import CODES, PLAN  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

STARTS = 40
# A plan with 250 rules on addresses takes 6 kB, so that a few fill the socket.
RULE = struct.pack("<BBBBHH16s", 4, 32, 1, 6, 0, 65535, bytes([93, 184, 216, 34]))
LARGE = {**PLAN, "network_rules": RULE * 250}


@pytest.fixture
def own():
    with wardenlib.Warden() as warden:
        yield warden


@contextlib.contextmanager
def stopped(warden):
    os.kill(warden.process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(warden.process.pid, signal.SIGCONT)


def client(warden, epoch=None):
    connection = wirelib.Connection(warden.socket_path)
    if epoch is not None:
        connection.call("WARDEN_HELLO", epoch=epoch)
    return connection


def refused(call, code):
    with pytest.raises(wirelib.WireError) as caught:
        call()
    assert caught.value.code == CODES[code], caught.value.message
    return caught.value.message


def ids(connection):
    return {entry["id"] for entry in connection.call_many("WARDEN_LIST")}


def test_unread_requests_of_an_earlier_client_are_dropped(own):
    """A cellad is killed while the warden is busy. Nothing of what it has asked for is begun after the next one has
    asked what there is."""
    earlier = client(own, epoch=1)
    later = client(own)
    earlier.call("WARDEN_START", id="first", **LARGE)
    earlier.call("WARDEN_REMOVE", id="first")
    earlier.sock.setblocking(False)
    sent = 0
    with stopped(own):
        with contextlib.suppress(BlockingIOError):
            for number in range(STARTS):
                earlier.send("WARDEN_START", id=f"s{number}", **LARGE)
                sent += 1
        assert sent > 10
        earlier.close()
        hello = later.send("WARDEN_HELLO", epoch=2)
        listing = later.send("WARDEN_LIST")
    later.wait(hello)
    found = set()
    while True:
        kind, entry = later.wait(listing)
        if kind == "OK":
            break
        found.add(entry["id"])
    assert len(found) < sent, "the test is about those that were not read"
    for name in sorted(found):
        later.call("WARDEN_REMOVE", id=name)
    for _ in range(3):  # whatever is still to be read of the first one is read by now
        later.call_many("WARDEN_LIST")
    assert ids(later) == set()
    assert own.leaks() == []


def test_an_earlier_client_is_refused(own):
    early, late, silent = client(own, 5), client(own, 7), client(own)
    with pytest.raises(ConnectionError):
        early.call_many("WARDEN_LIST")
    assert "taken over" in refused(lambda: client(own, 6), "UNAVAILABLE")
    assert "taken over" in refused(lambda: silent.call("WARDEN_START", id="a", **PLAN), "UNAVAILABLE")
    silent.call("WARDEN_HELLO", epoch=7)
    assert ids(silent) == ids(late) == set()


def test_those_of_one_epoch_work_side_by_side(own):
    one, two = client(own, 3), client(own, 3)
    one.call("WARDEN_START", id="a", **PLAN)
    assert ids(two) == {"a"}
    two.call("WARDEN_REMOVE", id="a")
    assert ids(one) == set()


def test_what_an_earlier_client_has_begun_goes_on(own):
    """The sandbox may be recorded: the next client decides what becomes of it."""
    early = client(own, 1)
    early.send("WARDEN_START", id="a", **PLAN)
    wardenlib.wait_until(lambda: "a" in ids(early), "its start")
    late = client(own, 2)
    assert ids(late) == {"a"}
    wardenlib.wait_until(lambda: late.call_many("WARDEN_LIST")[0]["running"], "a running sandbox")
    late.call("WARDEN_REMOVE", id="a")


def test_a_second_start_waits_for_the_first(own):
    with stopped(own):
        requests = [own.connection.send("WARDEN_START", id="a", **PLAN) for _ in range(4)]
    started = {}
    while len(started) < len(requests):
        kind, request, message = own.connection.receive()
        assert kind == "WARDEN_STARTED", message
        started[request] = message
    assert len({message["pid"] for message in started.values()}) == 1
    assert [started[request]["joined"] for request in requests] == [0, 1, 1, 1]
    refused(lambda: own.start("a"), "ALREADY_RUNNING")


def test_a_second_start_fails_with_the_first():
    with wardenlib.Warden(fail_at="running") as own:
        with stopped(own):
            for _ in range(3):
                own.connection.send("WARDEN_START", id="a", **PLAN)
        for _ in range(3):
            kind, _, message = own.connection.receive()
            assert kind == "ERROR" and message["code"] != CODES["ALREADY_RUNNING"]
        assert own.list() == {} and own.leaks() == []


def children(pid, name):
    with contextlib.suppress(FileNotFoundError):
        found = pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return [int(child) for child in found if pathlib.Path(f"/proc/{child}/comm").read_text().strip() == name]
    return []


def test_new_limits_are_not_set_by_a_child_of_a_dead_warden():
    """Those that the next one sets would be undone."""
    with wardenlib.Warden(fail_at="resize-hang") as own:
        own.start("a")
        own.connection.send("WARDEN_UPDATE", id="a", memory_bytes=512 << 20, cpu_millis=500, pids_max=64,
                            disk_bytes=64 << 20)
        wardenlib.wait_until(lambda: children(own.process.pid, "cella-resize"), "the child at work")
        child, = children(own.process.pid, "cella-resize")
        own.restart_warden()
        wardenlib.wait_until(lambda: (own.reap_orphans() or True) and not pathlib.Path(f"/proc/{child}").exists(),
                             "the child gone")
        own.remove("a")


def heard(connection):
    """Whether a request was answered; here there is no network, so by an error."""
    with pytest.raises(wirelib.WireError):
        connection.call("WARDEN_NET_LISTEN", which=99)
    return True


def test_the_egress_process_has_one_connection(own):
    """One that was killed leaves admissions behind, by rules that may not hold any more."""
    with wirelib.Connection(own.egress_path) as early:
        assert heard(early)
        with wirelib.Connection(own.egress_path) as late:
            assert heard(late)
            with pytest.raises(ConnectionError):
                heard(early)
