# SPDX-License-Identifier: Apache-2.0
"""The warden's pauses, asked for as a cellad that was taken over might ask, and with its processes
killed at the worst moment."""

import os
import pathlib
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wardenlib  # noqa: E402
import wirelib  # noqa: E402
from wardenlib import CODES, wait_until  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

DISK = 64 << 20


@pytest.fixture(scope="module")
def warden():
    with wardenlib.Warden() as made:
        yield made


def group(warden, name):
    for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        path = pathlib.Path(top, f"cella-{warden.instance()}", name)
        if (path / "cgroup.freeze").exists():
            return path
    raise AssertionError("no cgroup2 tree")


def frozen(warden, name):
    return "frozen 1" in (group(warden, name) / "cgroup.events").read_text()


def pause(warden, name):
    return warden.connection.call("WARDEN_PAUSE", id=name)


def resume(warden, name):
    return warden.connection.call("WARDEN_RESUME", id=name)


def refused(call, code):
    with pytest.raises(wirelib.WireError) as caught:
        call()
    assert caught.value.code == CODES[code], caught.value.message


def test_what_is_not_there_is_refused(warden):
    for name in ("nobody", "../x", "a" * 30):
        refused(lambda: pause(warden, name), "NOT_RUNNING")
        refused(lambda: resume(warden, name), "NOT_RUNNING")


def test_again_and_again(warden):
    warden.start("again")
    for _ in range(3):
        for _ in range(2):
            pause(warden, "again")
            assert frozen(warden, "again") and warden.list()["again"]["paused"] == 1
        for _ in range(2):
            resume(warden, "again")
            assert warden.list()["again"]["paused"] == 0
    assert warden.output("again", "echo here") == "here\n"
    warden.remove("again")


def test_a_copy_of_it_leaves_it_standing(warden):
    warden.start("still")
    warden.output("still", "echo kept > /workspace/file")
    pause(warden, "still")
    warden.connection.call("WARDEN_CLONE", id="copy", source="still", hostname="copy", disk_bytes=DISK)
    assert frozen(warden, "still")
    warden.start("copy")
    assert warden.output("copy", "cat /workspace/file") == "kept\n"
    resume(warden, "still")
    assert warden.output("still", "echo here") == "here\n"
    for name in ("still", "copy"):
        warden.remove(name)


def test_ended_with_and_without_grace(warden):
    for grace_ms in (0, 5000):
        warden.start("ends")
        warden.spawn("ends", "sleep 1000")
        pause(warden, "ends")
        warden.stop("ends", grace_ms=grace_ms)
        assert "running" not in warden.list() and warden.list()["ends"]["running"] == 0
        warden.remove("ends")
    warden.start("goes")
    pause(warden, "goes")
    warden.remove("goes")
    assert "goes" not in warden.list()


def test_what_lives_in_a_sandbox_cannot_thaw_it(warden):
    """The group that its root owns is below the one that is frozen."""
    warden.start("rebel")
    warden.spawn("rebel", "while :; do for f in $(find /sys/fs/cgroup -name cgroup.freeze 2>/dev/null); "
                          "do echo 0 > $f; done; date +%s%N > /tmp/beat; done")
    wait_until(lambda: warden.run("rebel", "cat /tmp/beat")[0] == 0, "a beat")
    for _ in range(10):
        pause(warden, "rebel")
        assert frozen(warden, "rebel")
        resume(warden, "rebel")
    warden.remove("rebel")


RELUCTANT = """
import os, signal, threading, time
def spin():
    while True: pass
threading.Thread(target=spin, daemon=True).start()      # never sleeps
stopped = os.fork()
if stopped == 0:
    os.kill(os.getpid(), signal.SIGSTOP)                # stands already, and not by us
    os._exit(0)
if os.fork() == 0:
    signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))  # takes no signal
    while True: time.sleep(0.01)
if os.fork() == 0:
    os.posix_spawn('/bin/sh', ['sh', '-c', 'while :; do (exit); done'], {})  # comes and goes
    os.setsid()                                         # is in a session of its own
    while True: os.sync()
open('/tmp/ready', 'w').close()
while True: time.sleep(0.01)
"""


def test_those_who_would_rather_not_stand_still(warden):
    warden.start("busy", cpu_millis=500)
    warden.output("busy", f"cat > /tmp/reluctant.py <<'EOF'\n{RELUCTANT}\nEOF")
    warden.spawn("busy", "python3 /tmp/reluctant.py")
    wait_until(lambda: warden.run("busy", "test -e /tmp/ready")[0] == 0, "all of them")
    for _ in range(5):
        pause(warden, "busy")
        assert frozen(warden, "busy")
        resume(warden, "busy")
    pause(warden, "busy")
    warden.remove("busy")
    assert "busy" not in warden.list()


def test_killed_between_the_record_and_the_freezing():
    with wardenlib.Warden(fail_at="pause-record") as warden:
        warden.start("half")
        with pytest.raises((wirelib.WireError, OSError, EOFError)):
            pause(warden, "half")
        warden.process.wait(30)
        warden.connection.close()
        assert not frozen(warden, "half")
        warden.start_warden()
        # What was meant is done; whoever asked asks again.
        wait_until(lambda: frozen(warden, "half"), "it stands still")
        assert warden.list()["half"]["paused"] == 1
        pause(warden, "half")
        resume(warden, "half")
        assert warden.output("half", "echo here") == "here\n"
        # What was not recorded as paused goes on.
        (group(warden, "half") / "cgroup.freeze").write_text("1")
        warden.restart_warden()
        assert warden.output("half", "echo here") == "here\n"


def memory(warden, name):
    for path in (pathlib.Path("/sys/fs/cgroup/memory", f"cella-{warden.instance()}", name, "memory.usage_in_bytes"),
                 group(warden, name) / "memory.current"):
        if path.exists():
            return int(path.read_text())
    raise AssertionError("no memory controller")


def test_memory_is_taken_back(warden):
    warden.start("full")
    warden.output("full", "dd if=/dev/zero of=/workspace/pages bs=1M count=32 status=none; sync")

    def is_cached():
        warden.output("full", "cat /workspace/pages > /dev/null")
        return memory(warden, "full") > 16 << 20

    wait_until(is_cached, "pages of a file in memory")
    pause(warden, "full")
    wait_until(lambda: memory(warden, "full") < 16 << 20, "the pages given back")
    resume(warden, "full")
    assert warden.output("full", "wc -c < /workspace/pages").strip() == str(32 << 20)
    warden.remove("full")
