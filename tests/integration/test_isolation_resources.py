# SPDX-License-Identifier: Apache-2.0
"""What a sandbox may use up, and that it is its own share that it uses up."""

import pathlib
import re
import resource
import time

import pytest

from cella_server import wait_until


@pytest.fixture
def small(server):
    """128 MiB of memory, half a core, 64 MiB of disk."""
    made = server.create(resources={"cpu": "500m", "memory": "128Mi", "disk": "64Mi"})
    yield made
    if made.status() is not None:
        made.delete()


@pytest.fixture
def neighbour(server):
    made = server.create()
    yield made
    made.delete()


def test_memory_limit_ends_the_hog_alone(small, neighbour):
    bystander = small.spawn("sleep 1000")
    hog = small.python("b = []\nwhile True:\n    b.append(bytearray(b'x' * (4 << 20)))\n")
    assert hog.exit_code == 137, hog
    assert small.exec("echo still here").stdout == "still here\n"
    assert small.request("GET", f"/process/{bystander}").json()["status"] == "running"
    assert small.status() == "running"
    assert neighbour.exec("echo fine").stdout == "fine\n"


def test_commands_go_before_the_agent_when_memory_runs_out(small):
    """Whatever their size: what the kernel looks at is put above the agent's for each of them. The
    agent's own is raised while a command is on its way, and comes back."""
    for _ in range(3):
        done = small.exec("until grep -qx 0 /proc/1/oom_score_adj; do :; done;"
                          " cat /proc/self/oom_score_adj", timeout=20)
        assert done.stdout == "200\n", done


def test_memory_that_fits_is_given(small):
    done = small.python("b = b'x' * (80 << 20)\nprint(len(b))\n")
    assert done.exit_code == 0, done


def test_files_on_tmpfs_count_as_memory(small):
    """Writing to /dev/shm is no way around the limit."""
    done = small.exec("head -c 512M /dev/zero > /dev/shm/big; status=$?; rm -f /dev/shm/big;"
                      " exit $status", timeout=60)
    assert done.exit_code != 0, done
    assert small.exec("echo alive").stdout == "alive\n"


def test_uploads_count_as_the_sandboxes_own(small):
    """As do bytes that come through the file API."""
    answer = small.request("PUT", "/filesystem/dev/shm/big", b"x" * (200 << 20),
                           {"Content-Type": "application/octet-stream"}, timeout=60)
    assert answer.status >= 400, answer
    assert small.exec("echo alive").stdout == "alive\n"


@pytest.mark.timeout(180)
def test_fork_bomb(server, small, neighbour):
    bomb = small.spawn("bomb() { bomb | bomb & }; bomb; sleep 1000")
    time.sleep(1)  # let it grow to its limit: there is no event to wait for
    began = time.monotonic()
    assert server.request("GET", "/health").status == 200
    assert neighbour.exec("echo fine").stdout == "fine\n"
    assert time.monotonic() - began < 10
    answer = small.request("POST", f"/process/{bomb}/kill", timeout=60)
    assert answer.status == 200, answer
    assert small.run("ls -d /proc/[0-9]* | wc -l") < "9"
    assert small.exec("echo over").stdout == "over\n"


def test_setsid_is_no_escape_from_kill(small):
    pid = small.spawn("setsid sh -c 'setsid sleep 4711 & sleep 4711' & "
                      "(setsid setsid sleep 4711 &) ; sleep 4711")
    wait_until(lambda: small.exec("pgrep -fc '^sleep 4711'").stdout.strip() == "4", 10, "four sleeps")
    assert small.request("POST", f"/process/{pid}/kill").status == 200
    assert small.exec("pgrep -f '^sleep 4711'").exit_code == 1


def test_timeout_ends_the_whole_tree(small):
    began = time.monotonic()
    done = small.exec("setsid sleep 4712 & sleep 4712", timeout=1)
    assert time.monotonic() - began < 10
    assert done.exit_code != 0
    assert small.exec("pgrep -f '^sleep 4712'").exit_code == 1


def test_disk_quota(server, small, neighbour):
    done = small.exec("head -c 200M /dev/urandom > /workspace/big", timeout=60)
    assert done.exit_code != 0, done
    assert "quota" in done.stderr.lower() or "space" in done.stderr.lower(), done
    assert int(small.run("stat -c %s /workspace/big")) <= 64 << 20
    # The API says it in one word, whatever the file system calls it.
    answer = small.request("PUT", "/filesystem/workspace/more", b"x" * (80 << 20),
                           {"Content-Type": "application/octet-stream"}, timeout=60)
    assert (answer.status, answer.error()) == (507, "QUOTA_EXCEEDED"), answer
    assert neighbour.exec("head -c 80M /dev/urandom > /workspace/big && sync -f /workspace/big",
                          timeout=60).exit_code == 0
    # And it can be cleaned up from inside.
    small.run("rm /workspace/big && head -c 10M /dev/urandom > /workspace/fits")


def test_disk_quota_covers_usr(small):
    """/usr is a mount of its own; its changes are charged all the same."""
    done = small.exec("head -c 200M /dev/urandom > /usr/local/big", timeout=60)
    assert done.exit_code != 0, done


def test_cpu_limit(small):
    """Half a core: a busy second of wall time is about half a second of cpu time."""
    done = small.python(
        "import os, time\n"
        "end = time.monotonic() + 3\n"
        "while time.monotonic() < end: pass\n"
        "t = os.times()\n"
        "print(t.user + t.system)\n")
    assert done.exit_code == 0, done
    assert float(done.stdout) < 2.2, done


def test_process_limit_is_the_sandboxes_own(server):
    """With memory to spare: one that is short of it spends its time looking for some."""
    roomy = server.create(resources={"cpu": "2", "memory": "4Gi"})
    done = roomy.python(
        "import os, time\n"
        "children = []\n"
        "try:\n"
        "    while len(children) < 100000:\n"
        "        pid = os.fork()\n"
        "        if pid == 0:\n"
        "            time.sleep(1000)\n"
        "        children.append(pid)\n"
        "except OSError as full:\n"
        "    print(full.errno, len(children))\n"
        "for pid in children:\n"
        "    os.kill(pid, 9)\n", timeout=90)
    assert done.exit_code == 0, done
    number, made = map(int, done.stdout.split())
    assert number == 11 and made < 5000, done
    roomy.delete()


def test_output_is_bounded(sandbox):
    pid = sandbox.spawn("yes 0123456789 | head -c 20M; echo; echo the end")
    wait_until(lambda: sandbox.request("GET", f"/process/{pid}").json()["status"] != "running", 60,
               "the end")
    out = sandbox.logs(pid)["stdout"]
    assert len(out) < 4 << 20
    assert out.endswith("the end\n")


def test_open_files_are_limited(sandbox):
    done = sandbox.python(
        "import os, resource\n"
        "print(resource.getrlimit(resource.RLIMIT_NOFILE)[1])\n")
    assert 256 <= int(done.stdout) <= 1 << 20, done


def test_inotify_instances_are_not_shared(server):
    """Each sandbox has the kernel's counters to itself: the first one cannot use them up."""
    boxes = [server.create() for _ in range(3)]
    source = ("import ctypes\n"
              "libc = ctypes.CDLL(None)\n"
              "n = 0\n"
              "while n < 100 and libc.inotify_init1(0) >= 0: n += 1\n"
              "print(n, flush=True)\n"
              "import time; time.sleep(1000)\n")
    pids = []
    for box in boxes:
        box.write("/tmp/watch.py", source)
        pids.append(box.spawn("exec python3 /tmp/watch.py"))
    for box, pid in zip(boxes, pids):
        wait_until(lambda: box.logs(pid)["stdout"] == "100\n", 10, lambda: box.logs(pid))
    for box in boxes:
        box.delete()


@pytest.mark.timeout(240)
def test_many_sandboxes_at_once(server_factory):
    """More descriptors in the warden's hands than one command may have: starts go on, and the limit
    of a command is still its own."""
    server = server_factory()
    small = {"cpu": "100m", "memory": "64Mi", "disk": "64Mi"}  # so that a small machine admits them all
    boxes = [server.create(wait=False, resources=small) for _ in range(1100)]
    for box in boxes:
        box.wait_status("running", deadline=60)
    assert boxes[-1].run("ulimit -Sn") == "1024"
    assert boxes[0].exec("echo still").stdout == "still\n"
    assert server.leaks() == ""


def test_sandboxes_are_not_as_few_as_a_shells_files(server_factory):
    """A login starts with 1024 files, and could have more; each sandbox takes one of the warden's."""
    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (128, before[1]))
    try:
        server = server_factory()
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)
    pids = server.pids()
    for pid in (pids.warden, pids.cellad):
        limits = pathlib.Path("/proc/%d/limits" % pid).read_text(encoding="ascii")
        soft, hard = re.search(r"Max open files +(\d+) +(\d+)", limits).groups()
        assert soft == hard == str(before[1]), limits
    box = server.create()
    assert box.run("ulimit -Sn") == str(min(1024, before[1]))
