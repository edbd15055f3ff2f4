# SPDX-License-Identifier: Apache-2.0
"""Histories and the worst moments: whoever writes one, or tells of files for it, is killed in the middle; the disk
is full; the repository is as large as it may be. Nothing that was acknowledged is lost, and history goes on."""

import contextlib
import http.client
import itertools
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import threading
import time

import pytest

import cella_procs
from cella_server import Server, process_alive, wait_until

LARGE = "for i in 1 2 3; do head -c 9000000 /dev/urandom > large-$i; done"  # git works on it for a second
MEDIUM = "for i in 1 2; do head -c 4000000 /dev/urandom > large-$i; done"


@pytest.fixture(scope="module")
def server():
    made = Server()
    yield made
    made.close()


@pytest.fixture
def box(server):
    made = server.create()
    yield made
    made.delete()


def run(box, command):
    answer = box.request("POST", "/process", {"command": command, "waitForCompletion": True}, timeout=120)
    assert answer.status == 200, answer
    assert answer.json()["exitCode"] == 0, answer
    return answer.json()["executionId"]


def history(box):
    answer = box.request("GET", "/history", timeout=120)
    assert answer.status == 200, answer
    return answer.json()["history"]


def only_folder(server):
    found, = (path for path in (server.data / "history").iterdir() if path.is_dir() and not path.name.startswith("."))
    return found


def flaws(server):
    """What git finds wrong with the repository, or what is half done in it."""
    folder = only_folder(server)
    left = [str(path.relative_to(folder)) for path in folder.rglob("*")
            if re.search(r"\.lock$|\.new$|/tmp_|/\.tmp|fast_import_crash_|\.torn", str(path))]
    done = subprocess.run(["git", "-c", "safe.directory=*", "--git-dir", folder / "repository", "fsck", "--no-dangling"],
                          capture_output=True, text=True, timeout=60)
    return left + [done.stderr] * (done.returncode != 0)


def assert_whole(server):
    """In the end: packs are made one beside commits, and may be just now."""
    wait_until(lambda: not flaws(server), 30, lambda: flaws(server))


class Lost(threading.Thread):
    """A request whose answer may never come."""

    def __init__(self, function, *args):
        super().__init__(daemon=True)
        self.function, self.args, self.result = function, args, None
        self.start()

    def run(self):
        with contextlib.suppress(OSError, http.client.HTTPException, AssertionError):
            self.result = self.function(*self.args)

    def wait(self):
        self.join(60)
        return self.result


def looks(server, result):
    text = server.request("GET", "/metrics").text
    return int(re.search(rf'cella_history_looks_total{{result="{result}"}} (\d+)', text).group(1))


def gits(server, verb):
    return [pid for pid in cella_procs.children(server.pids().cellad) if verb in cella_procs.words(pid)]


def stop_git(server, verb, begin):
    """Has begin() make git do something, and stops it in the middle."""
    for _ in range(20):
        lost = Lost(begin)
        pid = cella_procs.catch(server.pids().cellad, lambda pid: verb in cella_procs.words(pid), 10)
        with contextlib.suppress(ProcessLookupError, TypeError):
            os.kill(pid, signal.SIGSTOP)
            wait_until(lambda: cella_procs.state(pid) in "TZX", 30, "a git that stands still")
        if pid is not None and cella_procs.state(pid) == "T":
            return pid, lost
        lost.join(60)
    raise AssertionError(f"no git that does {verb} was caught")


def test_the_server_is_killed_while_git_writes(server, box):
    kept = run(box, "echo 1 > a")
    assert [commit["id"] for commit in history(box)] == [kept, "unknown"]
    git, lost = stop_git(server, "fast-import", lambda: run(box, LARGE))
    server.wait_recovered(server.kill("cellad"), "cellad")
    wait_until(lambda: not process_alive(git), 30, "what the killed server had begun to end")
    lost.join(30)
    assert lost.result is None, "nobody was told of its end"
    after = run(box, "echo 2 > b")
    commits = history(box)
    assert [commit["id"] for commit in commits] == [after, kept, "unknown"], commits
    assert set(commits[0]["files"]) == {"b", *(f"large-{i}" for i in range(1, 4))}
    assert box.request("GET", f"/diff?from=unknown&to={kept}").json()["diff"].keys() == {"a"}
    assert_whole(server)


def test_git_is_killed(server, box):
    kept = run(box, "echo 1 > a")
    assert len(history(box)) == 2
    failures = looks(server, "failure")
    git, lost = stop_git(server, "fast-import", lambda: run(box, LARGE))
    os.kill(git, signal.SIGKILL)
    lost.join(60)
    assert lost.result is not None, "a command is not worse for it"
    assert looks(server, "failure") > failures
    assert "history: git: ended with signal 9" in server.log_path.read_text(errors="replace")
    commits = history(box)  # asking has it looked at again, for the command that it was lost of
    assert [commit["id"] for commit in commits] == [lost.result, kept, "unknown"], commits
    after = run(box, "echo 2 > b")
    assert history(box)[0]["id"] == after
    assert_whole(server)


def test_what_was_acknowledged_before_anybody_looked(server, box):
    """The first execution is answered before its files are looked at; the server is killed in between."""
    first = run(box, "echo 1 > a")
    server.wait_recovered(server.kill("cellad"), "cellad")
    assert [commit["id"] for commit in history(box)] == [first, "unknown"]
    run(box, "echo 2 > a")
    assert box.request("POST", "/rollback", {"executionId": first}).status == 200
    assert box.read("/workspace/a") == b"1\n"
    assert_whole(server)


def test_files_from_before_the_first_execution_are_its(server, box):
    """Asking for a history does not make them the image's."""
    box.write("/workspace/a", "1\n")
    assert [commit["id"] for commit in history(box)] == ["unknown"]
    first = run(box, "true")
    commits = history(box)
    assert [(commit["id"], commit["files"]) for commit in commits] == [(first, ["a"]), ("unknown", ["README.md"])]


def io_of(pid, field):
    with contextlib.suppress(OSError):
        for line in pathlib.Path(f"/proc/{pid}/io").read_text().splitlines():
            if line.startswith(f"{field}:"):
                return int(line.split()[1])
    return 0


def kill_worker(box, init, begin, far_enough):
    """Kills the process that tells of files, or writes them, when it has got far enough."""
    def is_worker(pid):
        """It holds the queue of changes, and nothing else of pid 1's."""
        with contextlib.suppress(OSError):
            held = {os.readlink(path) for path in pathlib.Path(f"/proc/{pid}/fd").iterdir()}
            return "anon_inode:inotify" in held and "anon_inode:[eventpoll]" not in held and far_enough(pid)
        return False

    for _ in range(20):
        lost = Lost(begin)
        pid = cella_procs.catch(init, is_worker, 10)
        if pid is not None:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        lost.join(60)
        if pid is not None and lost.result is not None:
            return lost.result
    raise AssertionError("it was never caught")


def test_who_tells_of_the_files_is_killed(server, box):
    """While it lists, reads and applies: the next look makes it good."""
    first = run(box, "echo 1 > a && " + MEDIUM)
    history(box)
    init = cella_procs.init_of(box)
    for what in (lambda pid: True, lambda pid: io_of(pid, "rchar") > 1 << 20):
        lost = kill_worker(box, init, lambda: run(box, "rm -f large-*; " + MEDIUM), what)
        commits = history(box)
        assert lost in [commit["id"] for commit in commits], "it was acknowledged"
        assert commits[-2]["id"] == first
    newest = history(box)[0]["id"]

    def go_back():
        box.request("POST", "/rollback", {"executionId": newest}, timeout=120)
        return box.request("POST", "/rollback", {"executionId": first}, timeout=120)

    answer = kill_worker(box, init, go_back, lambda pid: io_of(pid, "wchar") > 1 << 20)
    assert answer.status in (200, 503), answer
    for target in (newest, first):  # whatever came of it, both ways are open
        answer = box.request("POST", "/rollback", {"executionId": target}, timeout=120)
        assert answer.status == 200, answer
    assert box.read("/workspace/a") == b"1\n"
    diff = box.request("POST", "/diff", {"fromExecId": first, "toExecId": answer.json()["id"]})
    assert diff.status == 200 and diff.json()["diff"] == {}, diff
    assert_whole(server)


def test_the_server_is_killed_while_it_rolls_back(server, box):
    """In the middle of the files: what was there before is in a commit, and all ways are open."""
    ids = [run(box, f"echo {i} > a; echo {i} > b-$(seq -s - 20); rm -f large-*; " + MEDIUM) for i in (1, 2)]
    targets = itertools.cycle(ids)

    written = []

    def go_back():
        written.append(b"%d" % time.monotonic_ns())
        box.write("/workspace/notes", written[-1])
        return box.request("POST", "/rollback", {"executionId": next(targets)}, timeout=120).json()

    git, lost = stop_git(server, "--batch", go_back)
    server.wait_recovered(server.kill("cellad"), "cellad")
    wait_until(lambda: not process_alive(git), 30, "what the killed server had begun to end")
    assert lost.wait() is None, "nobody was told of its end"
    commits = history(box)
    assert {*ids, "unknown"} < {commit["id"] for commit in commits}
    assert "notes" in commits[0]["files"], "what was not committed was, before anything was touched"
    assert box.request("POST", "/rollback", {"executionId": commits[0]["id"]}, timeout=120).status == 200
    assert box.read("/workspace/notes") == written[-1]
    for i, target in ((1, ids[0]), (2, ids[1])):
        answer = box.request("POST", "/rollback", {"executionId": target}, timeout=120)
        assert answer.status == 200 and answer.json()["status"] == "success", answer
        assert box.run("cat a b-*") == f"{i}\n{i}"
        diff = box.request("POST", "/diff", {"fromExecId": target, "toExecId": answer.json()["id"]})
        assert diff.json()["diff"] == {}, diff
    assert_whole(server)


def test_the_git_of_a_rollbacks_own_commit_is_killed(server, box):
    """The files have changed by then: that is said, and made good under the id that is said."""
    # Not so large that git is told of them before it is known whether they have changed.
    ids = [run(box, "for i in $(seq 9); do head -c 900000 /dev/urandom > part-$i; done") for _ in range(2)]
    targets = itertools.cycle(ids)
    git, lost = stop_git(server, "fast-import", lambda: box.request("POST", "/rollback", {"executionId": next(targets)}))
    os.kill(git, signal.SIGKILL)
    answer = lost.wait()
    assert answer.status == 503 and "the files were rolled back" in answer.text, answer
    made = re.search("exec_[0-9a-f]{8}", answer.text).group()
    newest = history(box)[0]
    assert newest["id"] == made and set(newest["files"]) == {f"part-{i}" for i in range(1, 10)}
    assert box.request("POST", "/rollback", {"executionId": made}).json()["files"] == []
    assert_whole(server)


def test_what_is_written_during_a_rollback_is_not_lost(server, box):
    """After what was not committed has been, and before the file's turn has come."""
    ids = [run(box, f"echo {i} > a; echo {i} > b; rm -f large-*; " + MEDIUM) for i in (1, 2)]
    targets = itertools.cycle(ids)

    def go_back():
        answer = box.request("POST", "/rollback", {"executionId": next(targets)}, timeout=120)
        assert answer.status == 200, answer
        return answer.json()

    git, lost = stop_git(server, "--batch", go_back)
    box.write("/workspace/large-2", "mine")
    os.kill(git, signal.SIGCONT)
    answer = lost.wait()
    assert answer is not None and answer["status"] == "partial" and answer["leftAloneCount"] == 1, answer
    assert answer["leftAlone"] == [{"path": "large-2", "reason": "left alone, since it was changed meanwhile"}]
    assert box.read("/workspace/large-2") == b"mine"
    assert box.run("cat a b").split() in (["1", "1"], ["2", "2"])
    assert "large-2" in history(box)[0]["files"], "it is in the rollback's commit"
    assert_whole(server)


def test_the_sandbox_dies_while_its_files_are_told_of(server, box):
    kept = run(box, "echo 1 > a")
    assert history(box)[0]["id"] == kept
    init = cella_procs.init_of(box)
    git, lost = stop_git(server, "fast-import", lambda: run(box, LARGE))
    os.kill(init, signal.SIGKILL)
    os.kill(git, signal.SIGCONT)
    lost.join(60)

    def goes_on():
        if box.status() in ("stopped", "failed"):
            box.start()
        return not process_alive(init) and Lost(run, box, "echo 2 > b").wait()

    after = wait_until(goes_on, 30, "a command that runs")
    commits = history(box)
    assert [commit["id"] for commit in commits][-2:] == [kept, "unknown"] and after in [c["id"] for c in commits], commits
    assert box.run("cat a") == "1"
    assert_whole(server)


# ---- no room ----

@pytest.fixture
def small_disk():
    """A server whose histories are on a disk of two megabytes."""
    data = pathlib.Path(tempfile.mkdtemp(prefix="cella-test-", dir="/tmp"))
    disk = data / "history"
    disk.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m,mode=0777", "cella-test", disk], check=True)
    made = None
    try:
        made = Server(data=data)
        yield made, disk
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
        if made is not None:
            made.close()


def test_a_full_disk(small_disk):
    server, disk = small_disk
    box = server.create()
    first = run(box, "echo 1 > a")
    assert history(box)[0]["id"] == first
    with open(disk / "ballast", "wb", buffering=0) as ballast, contextlib.suppress(OSError):
        while True:
            ballast.write(b"x" * 4096)
    back = box.request("POST", "/rollback", {"executionId": "unknown"})
    assert back.error() == "QUOTA_EXCEEDED", back
    assert box.read("/workspace/a") == b"1\n", "though there was nothing to commit first"
    failures = looks(server, "failure")
    assert box.run("echo 2 > b && head -c 300000 /dev/urandom > c && echo done") == "done", "its result is delivered"
    wait_until(lambda: looks(server, "failure") > failures, 30, "the loss to be counted")
    assert re.search("history: git: .*(Out of diskspace|No space left)", server.log_path.read_text(errors="replace"))
    assert history(box)[0]["id"] == first, "what there is can be asked for"
    back = box.request("POST", "/rollback", {"executionId": first})
    assert back.error() == "QUOTA_EXCEEDED", back
    assert box.run("cat a b") == "1\n2", "nothing was undone that could not have been saved before"
    (disk / "ballast").unlink()

    def goes_on():
        run(box, "true")
        return {"b", "c"} <= {file for commit in history(box) for file in commit["files"]}

    wait_until(goes_on, 30, "history to go on")
    assert box.request("POST", "/rollback", {"executionId": first}).status == 200
    assert_whole(server)
    box.delete()


def test_the_largest_that_a_history_may_be(server_factory):
    """Then its older half goes; and files that are too much for it are not kept."""
    server = server_factory("--history-size", "1Mi")
    box = server.create()
    ids = []
    for _ in range(20):  # not faster than they are packed: at twice the size nothing would be added
        ids.append(run(box, "head -c 200000 /dev/urandom > f"))
        wait_until(lambda: not gits(server, "pack-objects"), 30, "the packing")
    wait_until(lambda: len(history(box)) < 16 and not gits(server, "pack-objects"), 30, "the older half to go")
    kept = [commit["id"] for commit in history(box)]
    assert kept == ids[::-1][:len(kept)], "from the newest on, without a gap"
    gone = box.request("POST", "/rollback", {"executionId": ids[0]})
    assert gone.status == 404 and gone.error() == "EXECUTION_NOT_FOUND", gone
    assert box.request("GET", f"/diff?from={kept[-1]}&to={kept[0]}").json()["diff"].keys() == {"f"}
    assert box.request("POST", "/rollback", {"executionId": kept[-1]}).status == 200
    packs = sum(path.stat().st_size for path in only_folder(server).glob("repository/objects/pack/*.pack"))
    assert packs < 4 << 20
    # The server dies while it packs, which happens again with every few commits.
    git, lost = stop_git(server, "pack-objects", lambda: [run(box, "head -c 200000 /dev/urandom > f") for _ in range(8)])
    server.wait_recovered(server.kill("cellad"), "cellad")
    wait_until(lambda: not process_alive(git), 30, "what the killed server had begun to end")
    lost.join(60)

    def goes_on():
        """When it has been packed, should it have grown too large meanwhile."""
        made = run(box, "date +%N > g")
        return made if history(box)[0]["id"] == made else None

    after = wait_until(goes_on, 30, "history to go on")
    content = box.read("/workspace/g")
    wait_until(lambda: not gits(server, "pack-objects"), 30, "the packing")
    assert_whole(server)
    # More than may be kept: told in the log, and nothing of it is.
    run(box, "head -c 1200000 /dev/urandom > much")
    run(box, "true")
    wait_until(lambda: "too much for a history" in server.log_path.read_text(errors="replace"), 30, "the log")
    assert history(box)[0]["id"] == after
    run(box, "rm much && echo 2 > g")
    assert box.request("POST", "/rollback", {"executionId": after}).status == 200
    assert box.read("/workspace/g") == content
    box.delete()


def test_the_first_execution_before_a_crash_is_not_lost(server_factory):
    """Its files were not looked at before the crash, and another command ran after it: going back to it keeps them."""
    server = server_factory()
    for _ in range(4):
        box = server.create()
        first = box.request("POST", "/process", {"command": "echo 1 > /workspace/f", "waitForCompletion": True}).json()
        before = server.kill("cellad")
        server.wait_recovered(before, "cellad")
        box.run("echo 2 > /workspace/f")
        answer = box.request("POST", "/rollback", {"executionId": first["executionId"]})
        assert answer.status == 200, answer
        assert box.read("/workspace/f") in (b"1\n", b"2\n")
        box.delete()
