# SPDX-License-Identifier: Apache-2.0
"""Checks that a server to which nobody talks uses no CPU time: a busy loop shows in no answer, and so in
no other test."""

import collections
import contextlib
import pathlib
import time

GLANCE = 0.12  # seconds: enough to see a process that is busy all the time
WINDOW = 1.0  # seconds: what counts
SHARE_MAX = 0.01  # of a core
SETTLE_DEADLINE = 20  # seconds: what was deleted is cleaned up in the background

Usage = collections.namedtuple("Usage", "cpu switches")


def usage(pid):
    """CPU seconds of all threads, ended ones too, and context switches of those that live. None when it is gone."""
    switches = 0
    with contextlib.suppress(OSError, ValueError, IndexError):
        for status in pathlib.Path(f"/proc/{pid}/task").glob("*/status"):
            switches += sum(int(line.split()[1]) for line in status.read_text().splitlines()
                            if "ctxt_switches" in line)
        return Usage(time.clock_gettime(~pid << 3 | 2), switches)  # 2: CPUCLOCK_SCHED, in nanoseconds
    return None


def busy(processes, seconds, share=SHARE_MAX):
    """Which of {name: pid} used more than this share of a core meanwhile, in words."""
    before, start = {name: usage(pid) for name, pid in processes.items()}, time.monotonic()
    time.sleep(seconds)
    found, passed = [], time.monotonic() - start
    for name, pid in processes.items():
        old, new = before[name], usage(pid)
        if old and new and new.cpu - old.cpu > share * passed:
            found.append(f"{name} (pid {pid}): {(new.cpu - old.cpu) * 1000:.1f} ms of CPU time, "
                         f"{new.switches - old.switches} context switches in {passed:.2f} s")
    return found


def check_idle(list_processes, deadline=SETTLE_DEADLINE):
    """Fails when a process of an idle server stays busy. list_processes() gives {name: pid}."""
    processes = list_processes()
    if not busy(processes, GLANCE):
        return
    end = time.monotonic() + deadline
    while found := busy(processes, WINDOW):
        if time.monotonic() > end:
            raise AssertionError(f"a server that nobody uses is still busy after {deadline} s:\n" + "\n".join(found))
        processes = list_processes()
