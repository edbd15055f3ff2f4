# SPDX-License-Identifier: Apache-2.0
"""What history costs: an exec that changes one file among many, next to `git add -A && git commit` by
hand in the same files; and an exec that changes nothing, next to the same without history.

A sandbox of the server's keeps history, one of a second server's (--no-history) does not; they and git take
turns, and the difference of the two is what a commit costs.
"""

import os
import shutil
import subprocess
import time

from .clones import Api
from .program import Failed
from .report import median, ms
from .server import Server

SHAPES = (10, 1000, 10000)
COMMITS = 15
NAME = "history"
# As a project has them: some folders, small files that differ.
_FILL = """
import os
os.chdir("{folder}")
for number in range({count}):
    os.makedirs("d%d" % (number % 100), exist_ok=True)
    with open("d%d/f%d" % (number % 100, number), "w") as file:
        file.write("line %d\\n" % number * 10)
"""


def _timed(work):
    began = time.monotonic_ns()
    work()
    return time.monotonic_ns() - began


class ByHand:
    """The same files in a repository of their own, and who commits there."""

    def __init__(self, folder, count):
        self.folder = folder
        os.mkdir(folder)
        subprocess.run(["python3", "-c", _FILL.format(folder=folder, count=count)], check=True)
        self._git("init", "-q")
        self.commit(0)

    def _git(self, *arguments):
        subprocess.run(["git", "-c", "user.name=bench", "-c", "user.email=bench@localhost", *arguments],
                       cwd=self.folder, check=True, stdin=subprocess.DEVNULL,
                       env={"PATH": os.environ["PATH"], "HOME": self.folder, "GIT_CONFIG_NOSYSTEM": "1"})

    def commit(self, number):
        with open(os.path.join(self.folder, "d0/f0"), "w", encoding="ascii") as file:
            file.write("change %d\n" % number)
        self._git("add", "-A")
        self._git("commit", "-q", "-m", "change")


def _commits(on, off, folder, count):
    """{"on", "off", "git"}: nanoseconds of each change."""
    taken = {"on": [], "off": [], "git": []}
    git = ByHand(folder, count)
    try:
        for number in range(1, COMMITS + 2):
            change = "echo change %d > /workspace/d0/f0" % number
            once = {"on": _timed(lambda: on.run(NAME, change)), "off": _timed(lambda: off.run(NAME, change)),
                    "git": _timed(lambda: git.commit(number))}
            for who, spent in once.items():
                if number > 1:  # the first one warms up
                    taken[who].append(spent)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    _check(on, COMMITS)
    return taken


def _check(api, least):
    """That was history, and not an error that nobody saw."""
    found = len(api.call("GET", "/v0/sandbox/%s/history?limit=100" % NAME)["history"])
    if found < least:
        raise Failed("%d commits of at least %d" % (found, least))


def _quiet(on, off, count):
    """An exec that changes nothing, in turns."""
    taken = {"on": [], "off": []}
    for api in (on, off):
        api.run(NAME, "true")
    for _ in range(count):
        taken["on"].append(_timed(lambda: on.run(NAME, "true")))
        taken["off"].append(_timed(lambda: off.run(NAME, "true")))
    return taken


def _measure(bench, on, off):
    taken = {}
    for count in SHAPES:
        for api in (on, off):
            api.call("POST", "/v0/sandbox", {"metadata": {"name": NAME}})
            api.run(NAME, "python3 -c '%s'" % _FILL.format(folder="/workspace", count=count))
        taken[count] = _commits(on, off, os.path.join(bench.folder, "by-hand"), count)
        if count == SHAPES[-1]:
            taken["quiet"] = _quiet(on, off, 5 * bench.size["exec"])
        for api in (on, off):
            api.delete(NAME)
    return taken


def measure(bench):
    """{number of files: {"on", "off", "git"}}, and under "quiet" {"on", "off"} with the most files."""
    if shutil.which("git") is None:
        raise Failed("git is not installed, and history needs it")
    with Server(bench.server.program, os.path.join(bench.folder, "no-history"), "--no-history") as without:
        on, off = Api(bench.server), Api(without)
        try:
            return _measure(bench, on, off)
        finally:
            on.close()
            off.close()


def report(taken, out):
    for count in SHAPES:
        spent = {who: median(values) for who, values in taken[count].items()}
        cost = spent["on"] - spent["off"]
        out.row("history: what a commit adds to an exec, one of %d files changed; `git add -A && git commit`" % count,
                ms(cost), ms(spent["git"]), ratio="%.2f ×" % (cost / spent["git"]))
    on, off = median(taken["quiet"]["on"]), median(taken["quiet"]["off"])
    out.row("history: exec `true` with %d files and nothing changed; without history" % SHAPES[-1],
            "%s; %s" % (ms(on), ms(off)), ratio="%.2f ×" % (on / off), bar="≤ 1.3 ×", met=(on / off <= 1.3,))
