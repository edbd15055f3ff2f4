# SPDX-License-Identifier: Apache-2.0
"""Starting, stopping, dying and coming back; and that nothing is left behind, whatever happens."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wardenlib  # noqa: E402
import wirelib  # noqa: E402
from wardenlib import CODES, wait_until  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@pytest.fixture(scope="module")
def shared():
    with wardenlib.Warden() as warden:
        yield warden


@pytest.fixture
def warden(shared):
    """The module's warden, which every test has to leave as clean as it was."""
    yield shared
    for name in shared.list():
        shared.remove(name)
    assert shared.leaks() == []


@pytest.fixture
def own():
    """A warden for tests that kill it."""
    with wardenlib.Warden() as warden:
        yield warden


def refused(call, code):
    with pytest.raises(wirelib.WireError) as caught:
        call()
    assert caught.value.code == CODES[code], caught.value.message
    return caught.value.message


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


# ordinary life


def test_about(warden):
    about = warden.connection.call("WARDEN_HELLO")
    assert about["version"] == 2
    assert about["instance"] == warden.instance()
    assert about["cgroups"] in ("v1", "v2")
    assert "btrfs" in about["storage"]


def test_files_survive_a_stop(warden):
    first = warden.start("a")
    assert first["fresh"] == 1 and alive(first["pid"])
    warden.output("a", "echo kept > /workspace/f; echo also > /usr/f; rm /etc/issue")
    warden.stop("a")
    assert not alive(first["pid"])
    assert warden.leaks(a="stopped") == []
    second = warden.start("a")
    assert second["fresh"] == 0 and second["pid"] != first["pid"]
    assert warden.output("a", "cat /workspace/f /usr/f; ls /etc/issue || true") == "kept\nalso\n"
    assert warden.leaks(a="running") == []
    warden.remove("a")
    assert not warden.layer("a").exists()
    assert warden.leaks() == []


def test_start_time_names_the_process(warden):
    started = warden.start("a")
    fields = pathlib.Path(f"/proc/{started['pid']}/stat").read_text().rsplit(")", 1)[1].split()
    assert int(fields[19]) == started["start_time"]


def test_list(warden):
    warden.start("a")
    warden.start("b")
    warden.stop("b")
    entries = warden.list()
    assert {name: entry["running"] for name, entry in entries.items()} == {"a": 1, "b": 0}
    assert entries["a"]["pid"] > 0 and entries["b"]["pid"] == 0


def samples(warden, *ids):
    return {item["id"]: item for item in warden.connection.call_many("WARDEN_STATS", ids=ids)}


def test_what_they_use(warden):
    warden.start("a")
    warden.start("b")
    warden.stop("b")
    first = samples(warden, "a")["a"]
    assert first["known"] == 7 and first["oom_kills"] == 0
    warden.output("a", "head -c 8M /dev/urandom > /workspace/f; i=0;"
                       " while [ $i -lt 100000 ]; do i=$((i+1)); done")
    second = samples(warden, "a", "b", "nobody")
    assert set(second) == {"a"}, "only what runs"
    assert second["a"]["cpu_usec"] > first["cpu_usec"]
    assert second["a"]["time_usec"] > first["time_usec"]
    # What is reserved for a small file is given back when it is written: into a block of the tree.
    assert first["disk_bytes"] < 1 << 20 and second["a"]["disk_bytes"] >= 8 << 20
    assert 0 < second["a"]["memory_bytes"] <= wardenlib.PLAN["memory_bytes"]


def test_use_of_strange_ids(warden):
    warden.start("a")
    assert samples(warden) == {}
    assert samples(warden, "..", "../a", "a/work", "/", "", "a" * 32) == {}
    assert set(samples(warden, *["a"] * 3, "b")) == {"a"}
    refused(lambda: samples(warden, *["x" * 32] * 17), "INVALID_ARGUMENT")
    many = warden.connection.call_many("WARDEN_STATS", ids=["a"] * 100)
    assert len(many) == 16, "no more than is read in one go"
    assert warden.output("a", "echo fine") == "fine\n"


def test_refusals(warden):
    warden.start("a")
    refused(lambda: warden.start("a"), "ALREADY_RUNNING")
    refused(lambda: warden.start("b", image="nope"), "IMAGE_NOT_FOUND")
    refused(lambda: warden.start("b", image="../../etc"), "IMAGE_NOT_FOUND")
    refused(lambda: warden.start("b", image="/"), "IMAGE_NOT_FOUND")
    refused(lambda: warden.start("../b"), "INVALID_NAME")
    refused(lambda: warden.start("b", hostname="a b"), "INVALID_NAME")
    refused(lambda: warden.start("b", memory_bytes=0), "INVALID_ARGUMENT")
    refused(lambda: warden.start("b", flags=64), "INVALID_ARGUMENT")
    refused(lambda: warden.remove("../a"), "INVALID_NAME")
    refused(lambda: warden.connection.call("WARDEN_START", id="b"), "INVALID_ARGUMENT")
    assert set(warden.list()) == {"a"}
    assert warden.output("a", "echo fine") == "fine\n"


def test_stopping_and_removing_twice_is_fine(warden):
    warden.stop("nobody")
    warden.remove("nobody")
    warden.start("a")
    first = warden.connection.send("WARDEN_STOP", id="a", grace_ms=0)
    second = warden.connection.send("WARDEN_STOP", id="a", grace_ms=0)
    answers = {warden.connection.receive()[1] for _ in range(2)}
    assert answers == {first, second}
    warden.remove("a")
    warden.remove("a")


def test_removing_what_runs(warden):
    pid = warden.start("a")["pid"]
    warden.spawn("a", "sleep 1000")
    warden.remove("a")
    assert not alive(pid)
    assert warden.leaks() == []


def spawn_ready(warden, sandbox_id, trap):
    """A process that has set its trap for SIGTERM."""
    ready = warden.layer(sandbox_id) / "root/upper/workspace/ready"
    warden.spawn(sandbox_id, f"trap '{trap}' TERM; echo > /workspace/ready; "
                             "while :; do sleep 0.05; done")
    wait_until(ready.exists, "the trap")


def test_grace_lets_processes_finish(warden):
    warden.start("a")
    spawn_ready(warden, "a", "echo bye > /workspace/bye; exit")
    begin = time.monotonic()
    warden.stop("a", grace_ms=20000)
    assert time.monotonic() - begin < 10  # not the whole grace
    assert (warden.layer("a") / "root/upper/workspace/bye").read_text() == "bye\n"


def test_grace_ends(warden):
    pid = warden.start("a")["pid"]
    spawn_ready(warden, "a", "")
    begin = time.monotonic()
    warden.stop("a", grace_ms=300)
    assert 0.25 < time.monotonic() - begin < 10
    assert not alive(pid)


def test_a_second_stop_shortens_the_grace(warden):
    warden.start("a")
    spawn_ready(warden, "a", "")
    begin = time.monotonic()
    warden.connection.send("WARDEN_STOP", id="a", grace_ms=60000)
    warden.stop("a", grace_ms=0)
    assert time.monotonic() - begin < 30


def test_the_warden_answers_others_during_a_grace(warden):
    warden.start("a")
    spawn_ready(warden, "a", "")
    begin = time.monotonic()
    request = warden.connection.send("WARDEN_STOP", id="a", grace_ms=60000)
    with wirelib.Connection(warden.socket_path) as other:
        other.call("WARDEN_HELLO")
        refused(lambda: other.call("WARDEN_START", id="a", **wardenlib.PLAN), "CONFLICT")
        assert time.monotonic() - begin < 30
        other.call("WARDEN_STOP", id="a", grace_ms=0)
    warden.connection.wait(request)


def test_daemons_die_with_the_sandbox(warden):
    warden.start("a")
    line = f"^sleep {time.monotonic_ns()}"  # the whole machine's processes are looked at
    warden.output("a", f"setsid nohup {line[1:]} > /dev/null 2>&1 & sleep 0.1")
    wait_until(lambda: subprocess.run(["pgrep", "-f", line], capture_output=True).stdout, "the daemon")
    warden.stop("a")
    assert subprocess.run(["pgrep", "-f", line], capture_output=True).stdout == b""


def test_pid_1_dying_is_announced_and_cleared(warden):
    with wirelib.Connection(warden.socket_path) as other:
        other.call("WARDEN_HELLO")
        pid = warden.start("a")["pid"]
        warden.spawn("a", "sleep 1000")
        os.kill(pid, signal.SIGKILL)
        for connection in (warden.connection, other):
            assert connection.wait_event() == ("WARDEN_EXITED", {"id": "a", "oom": 0})
    assert warden.leaks(a="stopped") == []
    assert warden.list()["a"]["running"] == 0
    assert warden.start("a")["fresh"] == 0


def test_a_stop_does_not_wait_for_a_neighbours_data(warden):
    """Unmounting an overlay writes back the whole volume; nobody may have to wait for that."""
    if os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE") < 3 << 30:
        pytest.skip("not enough memory to have much of it dirty")
    warden.start("busy", disk_bytes=2 << 30, memory_bytes=2 << 30)
    times = []
    while len(times) < 12 and min(times, default=1) >= 0.05:  # once is enough: others are busy, too
        warden.start("a")
        warden.output("busy", f"head -c 300M /dev/zero > /workspace/f{len(times) % 3}")
        begin = time.monotonic()
        warden.remove("a")
        times.append(time.monotonic() - begin)
    assert min(times) < 0.05, times


def test_many_at_once(warden):
    names = [f"m{number}" for number in range(20)]
    requests = [warden.connection.send("WARDEN_START", id=name, **wardenlib.PLAN)
                for name in names]
    answered = set()
    while len(answered) < len(names):
        kind, request, _ = warden.connection.receive()
        assert kind == "WARDEN_STARTED"
        answered.add(request)
    assert answered == set(requests)
    for name in names:
        warden.connection.send("WARDEN_REMOVE", id=name)
    for _ in names:
        assert warden.connection.receive()[0] == "OK"
    assert warden.leaks() == []


def test_stop_while_being_made(warden):
    begun = warden.connection.send("WARDEN_START", id="a", **wardenlib.PLAN)
    stopped = warden.connection.send("WARDEN_REMOVE", id="a")
    answers = {}
    while len(answers) < 2:
        kind, request, _ = warden.connection.receive()
        answers[request] = kind
    assert answers[stopped] == "OK"
    assert answers[begun] in ("ERROR", "WARDEN_STARTED")
    assert warden.leaks() == []


# strangers


def test_other_users_are_refused(warden):
    os.chmod(warden.data, 0o755)
    os.chmod(f"{warden.data}/run", 0o755)
    os.chmod(warden.socket_path, 0o666)
    script = ("import socket, sys; s = socket.socket(socket.AF_UNIX); s.connect(sys.argv[1]);"
              "s.settimeout(10); print(len(s.recv(1)))")
    done = subprocess.run(["/usr/bin/python3", "-c", script, warden.socket_path], user=65534,
                          group=65534, extra_groups=[], capture_output=True, text=True,
                          timeout=30)
    os.chmod(f"{warden.data}/run", 0o750)
    assert done.stdout == "0\n", done.stderr  # the connection was closed at once


@pytest.mark.parametrize("data", [
    b"GET / HTTP/1.1\r\n\r\n",
    b"\xff" * 64,
    wirelib.struct.pack("<IHHI", 0, 9999, 0, 1),
    wirelib.struct.pack("<IHHI", 1 << 19, 18, 0, 1) + b"x" * (1 << 17),
], ids=["http", "ones", "unknown", "large"])
def test_nonsense_closes_the_connection_only(warden, data):
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(10)
        sock.connect(warden.socket_path)
        try:
            sock.sendall(data)
            assert sock.recv(1) == b""
        except (ConnectionResetError, BrokenPipeError):
            pass
    assert warden.connection.call("WARDEN_HELLO")["version"] == 2


def test_the_agents_socket_is_cellads(warden):
    warden.start("a")
    info = os.stat(f"{warden.data}/run/agents/a")
    assert info.st_mode & 0o777 == 0o600
    assert info.st_uid == warden.user[0]


# the warden dies


def test_adoption(own):
    pid = own.start("a")["pid"]
    inside = own.spawn("a", "while :; do date >> /workspace/log; sleep 0.05; done")
    own.restart_warden()
    entry = own.list()["a"]
    assert entry["running"] == 1 and entry["pid"] == pid
    assert own.run("a", f"kill -0 {inside}")[0] == 0
    refused(lambda: own.start("a"), "ALREADY_RUNNING")
    own.start("b")
    assert own.leaks(a="running", b="running") == []
    begin = time.monotonic()
    own.stop("a", grace_ms=20000)
    assert time.monotonic() - begin < 10 and not alive(pid)
    assert own.leaks(a="stopped", b="running") == []
    own.start("a")
    own.remove("a")
    own.remove("b")
    assert own.leaks() == []


def test_adopted_ones_are_announced_too(own):
    pid = own.start("a")["pid"]
    own.restart_warden()
    os.kill(pid, signal.SIGKILL)
    name, event = own.connection.wait_event()
    assert name == "WARDEN_EXITED" and event["id"] == "a"
    assert own.leaks(a="stopped") == []


def test_one_that_died_without_a_warden(own):
    pid = own.start("a")["pid"]
    own.output("a", "echo 1 > /workspace/f")
    own.kill_warden()
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not alive(pid), "the sandbox's death")
    own.start_warden()
    wait_until(lambda: own.list()["a"]["running"] == 0 and own.leaks(a="stopped") == [],
               "the clearing")
    assert own.start("a")["fresh"] == 0
    assert own.output("a", "cat /workspace/f") == "1\n"


def test_records_of_another_boot_or_a_stranger(own):
    own.start("a")
    own.kill_warden()
    record = pathlib.Path(own.data, "run/sandboxes/a")
    text = record.read_text()
    (record.parent / "b").write_text(text.replace("boot ", "boot x"))
    (record.parent / "c").write_text("rubbish")
    (record.parent / ".d.new").write_text("half")
    own.start_warden()
    wait_until(lambda: own.leaks(a="running") == [], "the clearing")
    assert own.list()["a"]["running"] == 1


def test_killed_at_random(own):
    """kill -9 at any moment of starts and stops; the next warden clears all that is half made."""
    for round_number in range(12):
        for number in range(4):
            own.connection.send("WARDEN_START", id=f"r{number}", **wardenlib.PLAN)
        if round_number % 3 == 0:
            own.connection.send("WARDEN_REMOVE", id="r1")
        time.sleep(random.uniform(0, 0.02))
        own.restart_warden()

        def settled():
            return own.leaks(**{name: "running" if entry["running"] else "stopped"
                                for name, entry in own.list().items()}) == []

        wait_until(settled, f"round {round_number}: {own.leaks()}")
    for name in own.list():
        own.remove(name)
    assert own.leaks() == []


def test_sigterm_leaves_nothing(own):
    pids = [own.start(name)["pid"] for name in ("a", "b")]
    own.spawn("a", "sleep 1000")
    assert own.terminate_warden() == 0
    assert not any(map(alive, pids))
    assert own.leaks(a="stopped", b="stopped") == []
    mounts = pathlib.Path("/proc/self/mountinfo").read_text()
    assert own.data not in mounts
    own.start_warden()
    assert set(own.list()) == {"a", "b"}
    assert own.start("a")["fresh"] == 0


def test_dies_with_its_supervisor(own, tmp_path):
    """Changing ids, as every start does, makes the kernel forget the parent-death signal."""
    own.kill_warden()
    pid_file = tmp_path / "pid"
    own.prefix = ["/bin/bash", "-c", 'setpriv --pdeathsig KILL "$@" & echo $! > "$0"; wait',
                  str(pid_file)]
    own.start_warden()
    own.start("a")
    warden_pid = int(pid_file.read_text())
    assert alive(warden_pid)
    own.process.kill()  # the shell: its parent
    wait_until(lambda: not alive(warden_pid), "the warden's death")
    own.prefix = []
    own.restart_warden()
    assert own.list()["a"]["running"] == 1


def test_a_folder_that_others_can_write_is_refused(tmp_path):
    tmp_path.chmod(0o777)
    done = subprocess.run([wardenlib.program("cella-warden"), "--data", str(tmp_path), "--agent",
                           "/bin/true"], capture_output=True, text=True, timeout=30)
    assert done.returncode == 2 and "nobody else" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_the_volume_is_never_attached_twice(own):
    def attached():
        out = subprocess.run(["losetup", "-j", f"{own.data}/volume.img"], capture_output=True,
                             text=True, check=True).stdout
        return len(out.splitlines())

    assert attached() == 1
    own.restart_warden()
    assert attached() == 1
    own.terminate_warden()
    wait_until(lambda: attached() == 0, "the loop device")


# failing on purpose


def steps():
    done = subprocess.run([wardenlib.program("cella-warden"), "--list-steps"],
                          capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_fail_at_needs_the_environment(tmp_path):
    done = subprocess.run([wardenlib.program("cella-warden"), "--data", str(tmp_path),
                           "--fail-at", "slot"], capture_output=True, env={})
    assert done.returncode == 2


def test_every_step_can_fail(own):
    own.start("old")
    own.output("old", "echo 1 > /workspace/f")
    own.stop("old")
    assert len(steps()) >= 20
    for step in steps():
        own.restart_warden(fail_at=step)
        for name in ("new", "old"):
            with pytest.raises(wirelib.WireError) as caught:
                own.start(name)
            assert f'"{step}"' in caught.value.message
        assert own.leaks(old="stopped") == [], step
        assert set(own.list()) == {"old"}, step  # the new one's layer is gone, the old one's is not
    own.restart_warden()
    own.start("old")
    assert own.output("old", "cat /workspace/f") == "1\n"


def test_an_agent_that_cannot_be_run(own, tmp_path):
    own.kill_warden()
    rubbish = tmp_path / "agent"
    rubbish.write_text("not a program")
    rubbish.chmod(0o755)
    own.arguments = ["--agent", str(rubbish)]
    own.start_warden()
    message = refused(lambda: own.start("a"), "INTERNAL")
    assert "agent" in message
    assert own.leaks() == []


def test_an_agent_that_exits_at_once(own):
    own.kill_warden()
    own.arguments = ["--agent", "/bin/true"]  # and its loader is not needed to fail
    own.start_warden()
    try:
        own.start("a")
        wait_until(lambda: own.list()["a"]["running"] == 0, "its end")
        own.remove("a")
    except wirelib.WireError:
        pass
    assert own.leaks() == []


# leaks are found


def test_leaks_are_found(own):
    own.start("a")
    instance = own.instance()
    planted = {
        "file volume/stranger": (pathlib.Path(own.data, "volume/stranger"), "mkdir"),
        "file run/agents/ghost": (pathlib.Path(own.data, "run/agents/ghost"), "touch"),
        "file run/sandboxes/ghost": (pathlib.Path(own.data, "run/sandboxes/ghost"), "touch"),
        "cgroup memory:ghost": (pathlib.Path("/sys/fs/cgroup/memory", f"cella-{instance}/ghost"),
                                "mkdir"),
        "id-range 16000:ghost": (pathlib.Path("/run/cella/ids/16000"), "link"),
    }
    assert own.leaks(a="running") == []
    for line, (path, how) in planted.items():
        if not path.parent.exists():
            continue
        if how == "mkdir":
            path.mkdir()
        elif how == "touch":
            path.touch()
        else:
            path.symlink_to(f"{own.data}:ghost")
        assert own.leaks(a="running") == [line]
        path.rmdir() if how == "mkdir" else path.unlink()
    found = own.leaks(a="stopped")
    for kind in ("cgroup", "process", "id-range", "file run/agents/a", "file run/sandboxes/a"):
        assert any(line.startswith(kind) for line in found), (kind, found)
    assert "file volume/a" in own.leaks()


# other storage


def test_plain_storage():
    with wardenlib.Warden(arguments=["--storage", "plain"]) as warden:
        assert "plain" in warden.connection.call("WARDEN_HELLO")["storage"]
        assert not os.path.exists(f"{warden.data}/volume.img")
        warden.start("a")
        warden.output("a", "cp -r /usr/share/perl5 /workspace/; echo 1 > /usr/f")
        warden.stop("a")
        warden.start("a")
        assert warden.output("a", "cat /usr/f") == "1\n"
        warden.remove("a")
        assert warden.leaks() == []
        assert os.listdir(f"{warden.data}/volume") == []
