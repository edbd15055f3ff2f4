# SPDX-License-Identifier: Apache-2.0
"""Sandboxes whose first process dies as soon as it is there: whatever was being recorded just then,
none of them goes on being called running."""

import os
import pathlib
import signal
import time

from cella_server import wait_until


def _children(pid):
    try:
        return set(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    except OSError:
        return set()


def _is_first_process(pid):
    """A sandbox's pid 1: a child of the warden that is 1 in a namespace of its own."""
    try:
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return False
    return status.partition("NSpid:")[2].split("\n")[0].split()[1:] == ["1"]


def _kill_newborn(warden, before, pause):
    """Ends the next first process that the warden makes, a moment after it was seen."""
    def newborn():
        return next((int(pid) for pid in _children(warden) - before if _is_first_process(pid)), None)
    pid = wait_until(newborn, 30, "a sandbox's first process")
    time.sleep(pause)
    os.kill(pid, signal.SIGKILL)


def _is_honest(box):
    status = box.status()
    if status != "running":
        return status == "failed"
    answer = box.request("POST", "/process", {"command": "true", "waitForCompletion": True})
    return answer.status == 200 and box.status() == "running"


def test_first_processes_killed_at_birth(server_factory):
    server = server_factory()
    warden = server.pids().warden
    boxes = []
    for round_number in range(100):
        before = _children(warden)
        box = server.create(wait=False)
        _kill_newborn(warden, before, round_number % 20 * 0.0002)
        boxes.append(box)
    # One that died before the warden knew of it may have been made a second time.
    for box in boxes:
        wait_until(lambda: _is_honest(box), 30, lambda: f"{box.name} is {box.status()}")
    failed = [box for box in boxes if box.status() == "failed"]
    for box in failed[:3]:
        box.start()
        assert box.run("echo again") == "again"
    for box in boxes:
        box.delete()
