# SPDX-License-Identifier: Apache-2.0
"""An idle server uses no CPU time: the check that runs after every module (support/cella_idle.py), and the
exchange between cellad and egress that once went round in a loop."""

import contextlib
import pathlib
import socket
import struct
import subprocess
import sys
import threading
import time

import pytest

import cella_idle
from cella_server import wait_until
from world import WEB

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

import wirelib  # noqa: E402  pylint: disable=wrong-import-position


def test_the_check_finds_a_busy_process_and_names_it():
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as spinning:
        try:
            with pytest.raises(AssertionError, match=rf"spinning \(pid {spinning.pid}\): .* ms of CPU time, .* switches"):
                cella_idle.check_idle(lambda: {"spinning": spinning.pid}, deadline=0)
        finally:
            spinning.kill()


def test_the_check_waits_for_background_work_to_end():
    with subprocess.Popen([sys.executable, "-c", "import time\nwhile time.process_time() < .5: pass\ntime.sleep(1000)"]) as working:
        try:
            cella_idle.check_idle(lambda: {"working": working.pid}, deadline=30)
        finally:
            working.kill()


def test_deleting_sandboxes_leaves_the_server_idle(world, boxes, world_server):
    """Also when the newest events of the network's log went with a sandbox before they were collected."""
    for _ in range(3):
        box = boxes("isolated")
        assert box.do("[addresses(name) for name in names]", names=[world.name(WEB), world.name(WEB)])
        assert box.request("PUT", "/stop").status == 202  # in the pause before the next pull
        box.sandbox.delete()
    world_server.check_idle()


class EagerEgress:
    """Stands in for the egress process, and answers everything at once with nothing."""

    def __init__(self, path):
        self.pulls = 0
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        path.chmod(0o666)
        self.listener.listen(8)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                threading.Thread(target=self._serve, args=(self.listener.accept()[0],), daemon=True).start()

    def _serve(self, sock):
        with sock, contextlib.suppress(OSError):
            while len(head := sock.recv(12, socket.MSG_WAITALL)) == 12:
                length, number, _, request_id = struct.unpack("<IHHI", head)
                name, _ = wirelib.decode(number, sock.recv(length, socket.MSG_WAITALL) if length else b"")
                self.pulls += name == "EGRESS_LOG_PULL"
                about = {"version": 1, "started_ms": 1, "resolvers": "", "sandboxes": 0, "connections": 0}
                sock.sendall(wirelib.encode("EGRESS_ABOUT", request_id, **about) if name == "EGRESS_HELLO"
                             else wirelib.encode("OK", request_id))


def test_cellad_asks_no_more_often_when_answers_come_at_once(server_factory):
    server = server_factory()
    door = server.data / "run" / "egress.sock"
    server.egress_pid()
    door.rename(door.with_name("away"))
    eager = EagerEgress(door)
    server.kill_egress()
    wait_until(lambda: eager.pulls > 0, 30, "a pull")
    before, start = eager.pulls, time.monotonic()
    server.check_idle()
    wait_until(lambda: eager.pulls > before + 2, 30, "more pulls")
    assert eager.pulls - before < 50 * (time.monotonic() - start), "without a pause there are thousands each second"
    eager.listener.close()
    door.unlink()
    door.with_name("away").rename(door)
