# SPDX-License-Identifier: Apache-2.0
"""kill -9 around pauses: what was acknowledged holds, and nothing stands still that should not."""

import contextlib
import http.client
import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wirelib  # noqa: E402
from cella_server import wait_until  # noqa: E402

BEAT = "while :; do echo >> /tmp/beat; sleep 0.02; done"
VICTIMS = [("warden",), ("cellad",), ("cellad", "warden"), ("supervisor", "warden", "cellad")]


def frozen(server, box_id):
    for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        path = pathlib.Path(top, f"cella-{server.instance}/{box_id}/cgroup.events")
        with contextlib.suppress(OSError):
            return "frozen 1" in path.read_text()
    return None


def crash(server, victims):
    before = server.kill(*victims)
    if "supervisor" in victims:
        server.start()
    else:
        server.wait_recovered(before, *victims)


def goes_on(box):
    beats = lambda: int(box.run("wc -l < /tmp/beat || echo 0"))  # noqa: E731
    last = beats()
    wait_until(lambda: beats() > last, 20, "it goes on")


def ask(box, verb):
    """Whether it was acknowledged."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        return box.request("POST", f"/{verb}", timeout=10).status == 202
    return False


def test_kill_9_while_it_is_paused_and_on_the_way(server_factory):
    server = server_factory()
    box = server.create()
    box_id = box.get()["metadata"]["id"]
    box.spawn(BEAT)
    answer = box.request("POST", "/code", {"code": "kept = 42"}, timeout=60)
    assert answer.status == 200, answer
    born = box.init_start_time()
    for victims in VICTIMS:
        # Paused, and acknowledged: so it stays, whoever dies.
        assert ask(box, "pause")
        box.wait_status("paused")
        crash(server, victims)
        box.wait_status("paused")
        wait_until(lambda: frozen(server, box_id), 10, "it still stands still")
        assert ask(box, "resume")
        box.wait_status("running")
        goes_on(box)
        # In the middle of pausing: paused in the end, if that was promised.
        promised = ask(box, "pause")
        crash(server, victims)
        if promised:
            box.wait_status("paused")
            wait_until(lambda: frozen(server, box_id), 10, "it stands still")
        wait_until(lambda: box.status() in ("paused", "running"), 30, box.status)
        # In the middle of going on: it runs in the end.
        if box.status() == "paused":
            promised = ask(box, "resume")
            crash(server, victims)
            wait_until(lambda: box.status() in ("paused", "running"), 30, box.status)
            if not promised and box.status() == "paused":
                assert ask(box, "resume")
            box.wait_status("running")
        goes_on(box)
        assert frozen(server, box_id) is False
    assert box.init_start_time() == born
    answer = box.request("POST", "/code", {"code": "kept"}, timeout=60)
    assert answer.json()["text"] == "42", answer
    box.delete()
    assert server.leaks() == ""


def test_its_memory_goes_with_the_server(server_factory):
    server = server_factory()
    box = server.create()
    other = server.create()
    box.write("/workspace/kept", "files")
    for one in (box, other):
        assert ask(one, "pause")
        one.wait_status("paused")
    server.stop()
    server.start()
    assert (box.status(), other.status()) == ("stopped", "stopped")
    box.start()
    assert box.read("/workspace/kept") == b"files"
    box.delete()
    other.delete()


def test_it_is_killed_while_it_stands_still(server_factory):
    server = server_factory()
    box = server.create()
    box_id = box.get()["metadata"]["id"]
    assert ask(box, "pause")
    box.wait_status("paused")
    top = next(path for path in server._cgroups() if (path / box_id / "cgroup.kill").exists())
    (top / box_id / "cgroup.kill").write_text("1")
    box.wait_status("failed")
    box.start()
    assert box.run("echo again") == "again"
    box.delete()
    assert server.leaks() == ""


def test_nothing_stands_still_that_should_not(server_factory):
    """The warden has been told things that cellad knows nothing of; both ways, and whoever is new."""
    server = server_factory()
    runs, stands = server.create(), server.create()
    ids = [box.get()["metadata"]["id"] for box in (runs, stands)]
    runs.spawn(BEAT)
    assert ask(stands, "pause")
    stands.wait_status("paused")
    for victim in ("cellad", "warden"):
        cellad = server.pids().cellad
        os.kill(cellad, signal.SIGSTOP)  # or it would take its connection back, and see to it at once
        with wirelib.Connection(f"{server.data}/run/warden.sock") as warden:
            warden.call("WARDEN_HELLO", epoch=wirelib.next_epoch())
            warden.call("WARDEN_PAUSE", id=ids[0])
            warden.call("WARDEN_RESUME", id=ids[1])
        assert frozen(server, ids[0])
        before = server.kill(victim)
        with contextlib.suppress(ProcessLookupError):
            os.kill(cellad, signal.SIGCONT)
        server.wait_recovered(before, victim)
        wait_until(lambda: frozen(server, ids[0]) is False, 30, "the one that runs goes on")
        wait_until(lambda: frozen(server, ids[1]), 30, "the one that is paused stands still")
        runs.wait_status("running")
        stands.wait_status("paused")
        goes_on(runs)
    for box in (runs, stands):
        box.delete()
