# SPDX-License-Identifier: Apache-2.0
"""Processes of the machine, as a test of crashes needs them: whose child does what, and pid 1 of a sandbox."""

import contextlib
import os
import pathlib
import time

from cella_server import wait_until


def _stat(pid):
    """(name, state, parent), or None when it is gone."""
    with contextlib.suppress(OSError):
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(errors="replace")
        state, parent = text.rsplit(")", 1)[1].split()[:2]
        return text.split("(", 1)[1].rsplit(")", 1)[0], state, int(parent)
    return None


def words(pid):
    """Its command line; [] when it is gone."""
    with contextlib.suppress(OSError):
        return pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    return []


def children(parent):
    """Those that are not zombies."""
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and (stat := _stat(name)) and stat[2] == parent and stat[1] not in "ZX":
            found.append(int(name))
    return found


def state(pid):
    """One letter of proc(5); None when it is gone."""
    return (_stat(pid) or (None, None))[1]


def catch(parent, wanted, deadline=30):
    """The first child of a process that wanted(pid) says yes to: looked for without a pause."""
    end = time.monotonic() + deadline
    while time.monotonic() < end:
        for pid in children(parent):
            if wanted(pid):
                return pid
    return None


def init_of(box):
    """The pid, on the host, of the sandbox's pid 1."""
    mark = f"1000.{time.monotonic_ns()}"
    inside = box.spawn(f"exec sleep {mark}")

    def find():
        for name in os.listdir("/proc"):
            if name.isdigit() and mark in words(name)[1:2]:
                return int(name)
        return None

    pid = wait_until(find, 30, "a process of the sandbox's")
    while not pathlib.Path(f"/proc/{pid}/status").read_text().split("NSpid:", 1)[1].splitlines()[0].split()[-1] == "1":
        pid = _stat(pid)[2]
    assert box.request("POST", f"/process/{inside}/kill").status == 200
    return pid
