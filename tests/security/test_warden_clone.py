# SPDX-License-Identifier: Apache-2.0
"""The warden's copies and new limits, asked for as a cellad that was taken over might ask, and with
its processes killed at the worst moment."""

import os
import pathlib
import signal
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wardenlib  # noqa: E402
import wirelib  # noqa: E402
from wardenlib import CODES, wait_until  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

DISK = 64 << 20
UPDATE = {"memory_bytes": 256 << 20, "cpu_millis": 1000, "pids_max": 128, "disk_bytes": DISK}


@pytest.fixture(params=["btrfs", "plain"])
def own(request):
    with wardenlib.Warden(arguments=["--storage", request.param]) as warden:
        yield warden


@pytest.fixture
def hanging():
    """A warden whose copies hang when their source stands still."""
    with wardenlib.Warden(fail_at="copy-hang") as warden:
        yield warden


def refused(call, code):
    with pytest.raises(wirelib.WireError) as caught:
        call()
    assert caught.value.code == CODES[code], caught.value.message
    return caught.value.message


def clone(warden, source, target, **changes):
    return warden.connection.call("WARDEN_CLONE", **{
        "id": target, "source": source, "hostname": "copy", "disk_bytes": DISK, **changes})


def group(warden, name):
    for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        path = pathlib.Path(top, f"cella-{warden.instance()}", name)
        if (path / "cgroup.freeze").exists():
            return path
    raise AssertionError("no cgroup2 tree")


def frozen(warden, name):
    return "frozen 1" in (group(warden, name) / "cgroup.events").read_text()


def copiers(warden):
    """Pids of children that copy for this warden, wherever they are in the tree."""
    found = []
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (path / "comm").read_text() != "cella-copy\n":
                continue
            if warden.data in (path / "cmdline").read_text():
                found.append(int(path.name))
        except OSError:
            continue
    return found


def test_a_file_that_is_missed_is_no_source_without_files():
    """FILE_NOT_FOUND is for a source that has none: its clone starts from the image then."""
    with wardenlib.Warden(fail_at="copy-lost") as warden:
        warden.start("source")
        refused(lambda: clone(warden, "source", "copy"), "CONFLICT")
        refused(lambda: clone(warden, "nobody", "copy"), "FILE_NOT_FOUND")


def test_requests_are_checked(own):
    own.start("source")
    for changes, code in (({"target": "../x"}, "INVALID_NAME"), ({"target": ".clones"}, "INVALID_NAME"),
                          ({"target": ""}, "INVALID_NAME"), ({"target": "source"}, "INVALID_NAME"),
                          ({"source": ".."}, "INVALID_NAME"), ({"source": "source/root"}, "INVALID_NAME"),
                          ({"hostname": "a/b"}, "INVALID_NAME"), ({"hostname": "a\nb"}, "INVALID_NAME"),
                          ({"disk_bytes": 0}, "INVALID_ARGUMENT"),
                          ({"disk_bytes": 1 << 62}, "INVALID_ARGUMENT"),
                          ({"source": "nobody"}, "FILE_NOT_FOUND")):
        arguments = {"source": "source", "target": "copy", **changes}
        refused(lambda: clone(own, **arguments), code)
    for changes in ({"id": "../source"}, {"memory_bytes": 1}, {"cpu_millis": 0}, {"pids_max": 0},
                    {"disk_bytes": 0}, {"memory_bytes": 1 << 63}):
        with pytest.raises(wirelib.WireError):
            own.connection.call("WARDEN_UPDATE", **{"id": "source", **UPDATE, **changes})
    refused(lambda: own.connection.call("WARDEN_FITS", id="..", disk_bytes=1), "INVALID_NAME")
    own.remove("source")
    assert own.leaks() == []


def test_asked_again_it_is_there(own):
    own.start("source")
    own.output("source", "echo one > /root/f")
    clone(own, "source", "copy")
    own.output("source", "echo two > /root/f")
    clone(own, "source", "copy")
    own.start("copy")
    assert own.output("copy", "cat /root/f") == "one\n"
    refused(lambda: clone(own, "source", "copy"), "CONFLICT")
    own.remove("source")
    own.remove("copy")
    assert own.leaks() == []


@pytest.mark.parametrize("step", ["copy-finish", "copy-commit"])
@pytest.mark.parametrize("storage", ["btrfs", "plain"])
def test_a_copy_that_fails_leaves_nothing(step, storage):
    with wardenlib.Warden(arguments=["--storage", storage], fail_at=step) as warden:
        warden.start("source")
        refused(lambda: clone(warden, "source", "copy"), "INTERNAL")
        assert not frozen(warden, "source")
        assert warden.output("source", "echo fine") == "fine\n"
        wait_until(lambda: warden.leaks(source="running") == [], "nothing is left")
        warden.remove("source")


def begin_hanging(warden):
    warden.start("source")
    warden.connection.send("WARDEN_CLONE", id="copy", source="source", hostname="copy", disk_bytes=DISK)
    wait_until(lambda: copiers(warden) and frozen(warden, "source"), "it stands still")
    return copiers(warden)


def test_whoever_comes_next_sees_a_copy_under_way(hanging):
    """Whoever asked for it was killed before it had been recorded: it must not become a layer that
    nobody knows of."""
    begin_hanging(hanging)
    assert sorted(hanging.list()) == ["copy", "source"]
    hanging.remove("copy")
    assert sorted(hanging.list()) == ["source"]
    wait_until(lambda: hanging.leaks(source="running") == [], "nothing is left")
    hanging.remove("source")
    assert hanging.leaks() == []


def test_others_start_while_a_copy_takes_long(hanging):
    [pid] = begin_hanging(hanging)
    hanging.start("other")
    assert hanging.output("other", "echo fine") == "fine\n"
    refused(lambda: hanging.start("copy"), "CONFLICT")
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not frozen(hanging, "source"), "the source goes on")
    assert hanging.output("source", "echo fine") == "fine\n"
    for name in ("source", "other", "copy"):
        hanging.remove(name)
    assert hanging.leaks() == []


def test_a_new_warden_thaws(hanging):
    [pid] = begin_hanging(hanging)
    hanging.kill_warden()
    assert frozen(hanging, "source")
    os.kill(pid, signal.SIGKILL)
    hanging.start_warden()
    wait_until(lambda: not frozen(hanging, "source"), "the source goes on")
    assert hanging.output("source", "echo fine") == "fine\n"
    wait_until(lambda: hanging.leaks(source="running") == [], "the clearing")
    hanging.remove("source")


def test_the_child_of_a_killed_warden_thaws_and_gives_up(own):
    """A child whose warden is gone finishes its step, and nothing of it counts."""
    own.start("source")
    own.output("source", "cd /root; seq 2000 | split -l 1 -a 3 - f; sync")
    for number in range(5):
        own.connection.send("WARDEN_CLONE", id=f"copy{number}", source="source", hostname="copy",
                            disk_bytes=DISK)
        own.restart_warden()
        wait_until(lambda: not frozen(own, "source"), "the source goes on")
        assert own.output("source", "echo fine") == "fine\n"

    def nothing_else():
        known = {name: "stopped" for name in own.list() if name != "source"}
        return own.leaks(source="running", **known) == []

    wait_until(nothing_else, "the clearing")
    for name in own.list():
        own.remove(name)


def test_removing_a_copy_that_is_being_made(hanging):
    begin_hanging(hanging)
    hanging.remove("copy")
    assert not frozen(hanging, "source")
    assert hanging.output("source", "echo fine") == "fine\n"
    assert hanging.leaks(source="running") == []
    hanging.remove("source")


def test_a_source_stays_until_the_copy_is_there(hanging):
    [pid] = begin_hanging(hanging)
    request = hanging.connection.send("WARDEN_REMOVE", id="source")
    wait_until(lambda: not (hanging.layer("source").parent / "source.del").exists()
               and hanging.layer("source").exists(), "its files are still there")
    os.kill(pid, signal.SIGKILL)
    assert hanging.connection.wait(request)[0] == "OK"
    assert not hanging.layer("source").exists()
    assert hanging.leaks() == []


def test_stopping_a_server_in_the_middle_of_a_copy(hanging):
    begin_hanging(hanging)
    assert hanging.terminate_warden() == 0
    hanging.start_warden()
    assert set(hanging.list()) == {"source"}
    hanging.remove("source")
    assert hanging.leaks() == []
