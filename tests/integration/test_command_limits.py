# SPDX-License-Identifier: Apache-2.0
"""Limits of one command: hitting one ends it whole, says which, and leaves the sandbox well."""

import json
import pathlib

import pytest

from cella_processes import get, kill, post
from cella_server import wait_until

MIB = 1 << 20
HOG = "import time\nb = []\nwhile True:\n    b.append(bytearray(b'x' * (1 << 20)))\n"
# Holds argv[1] MiB, says so, and stays.
HOLD = ("import sys, time\nb = bytearray(b'x') * (int(sys.argv[1]) << 20)\nprint('held', flush=True)\n"
        "time.sleep(4321)\n")
# Tries to have argv[1] children (or threads) at once, and stays whatever came of it.
CHILDREN = """
import os, sys, time
made = 0
try:
    for _ in range(int(sys.argv[1])):
        if os.fork() == 0:
            time.sleep(4321)
        made += 1
except BlockingIOError:
    pass
print(made, flush=True)
time.sleep(4321)
"""


@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    made.write("/tmp/hog.py", HOG)
    made.write("/tmp/hold.py", HOLD)
    made.write("/tmp/children.py", CHILDREN)
    yield made
    made.delete()


def limited(box, command, limits, **fields):
    """Runs it to its end, which has to come by itself or by a limit."""
    return post(box, command, limits=limits, waitForCompletion=True, **fields)


def groups(box):
    """Groups of single commands that the kernel has of this sandbox (cgroup v1 only)."""
    name = box.get()["metadata"]["id"]
    top = pathlib.Path("/sys/fs/cgroup")
    return sorted(top.glob(f"*/cella-{box.server.instance}/{name}/limits/e*"))


def sleepers(box):
    return int(box.run("grep -lz '^4321$' /proc/[0-9]*/cmdline 2>/dev/null | wc -l"))


def check_well(box):
    """Nothing of a command is left, and the sandbox goes on."""
    wait_until(lambda: not groups(box), 30, lambda: f"no groups: {groups(box)}")
    wait_until(lambda: sleepers(box) == 0, 30, "no process of the command's tree")
    assert box.status() == "running"


def check_ended(box, ended, reason):
    status, code = ("timeout", 124) if reason == "TIMEOUT" else ("failed", 137)
    assert (ended["reason"], ended["status"], ended["exitCode"]) == (reason, status, code), ended
    check_well(box)


# --- memory ---


def test_memory(box):
    bystander = box.spawn("exec sleep 54321")
    ended = limited(box, "echo before; python3 /tmp/hog.py", {"memory": "32Mi"})
    check_ended(box, ended, "MEMORY_LIMIT")
    assert ended["stdout"] == "before\n"
    assert "outOfMemory" not in ended
    assert get(box, bystander)["status"] == "running"
    kill(box, bystander)


def test_memory_ends_the_whole_tree(box):
    """The kernel kills one process; the others, wherever they are, go with it."""
    ended = limited(box, "setsid sleep 4321 & (setsid sleep 4321 &); python3 /tmp/hog.py; sleep 4321",
                    {"memory": "32Mi"})
    check_ended(box, ended, "MEMORY_LIMIT")


def test_memory_of_all_processes_counts_together(box):
    ended = limited(box, "for i in 1 2 3 4; do python3 /tmp/hold.py 24 & done; wait",
                    {"memory": "64Mi"})
    check_ended(box, ended, "MEMORY_LIMIT")


def test_memory_that_fits(box):
    done = limited(box, "python3 -c 'print(len(bytearray(b\"x\") * (24 << 20)))'",
                   {"memory": "64Mi", "processes": 8, "output": "1Ki", "openFiles": 64,
                    "timeout": 60})
    assert (done["stdout"], done["exitCode"], done["reason"]) == (f"{24 * MIB}\n", 0, None), done
    check_well(box)


def test_running_out_of_the_sandboxes_memory_is_something_else(server):
    box = server.create(resources={"memory": "128Mi"})
    box.write("/tmp/hog.py", HOG)
    box.write("/tmp/hold.py", HOLD)
    holder = box.spawn("exec python3 /tmp/hold.py 48")
    wait_until(lambda: box.logs(holder)["stdout"] == "held\n", 30, "48 MiB held")
    ended = limited(box, "exec python3 /tmp/hog.py", {"memory": "120Mi"})
    assert (ended["status"], ended["exitCode"], ended["reason"]) == ("failed", 137, None), ended
    assert ended["outOfMemory"] is True
    assert get(box, holder)["status"] == "running"
    kill(box, holder)
    ended = limited(box, "exec python3 /tmp/hog.py", {"memory": "64Mi"})
    check_ended(box, ended, "MEMORY_LIMIT")
    box.delete()


# --- processes ---


def test_processes(box):
    ended = limited(box, "exec python3 /tmp/children.py 20", {"processes": 6})
    check_ended(box, ended, "PROCESS_LIMIT")


def test_as_many_processes_as_allowed(box):
    pid = box.spawn("exec python3 /tmp/children.py 5", limits={"processes": 6})
    wait_until(lambda: box.logs(pid)["stdout"] == "5\n", 30, "five children")
    assert get(box, pid)["reason"] is None
    kill(box, pid)
    assert (get(box, pid)["status"], get(box, pid)["reason"]) == ("killed", None)
    check_well(box)


def test_a_fork_bomb(box):
    ended = limited(box, "bomb() { bomb | bomb & }; bomb; sleep 4321", {"processes": 20})
    check_ended(box, ended, "PROCESS_LIMIT")


def test_a_leader_that_ends_before_anybody_looks(box):
    """A shell gives up at once when it cannot fork."""
    ended = limited(box, "sleep 4321 & sleep 4321 & echo no", {"processes": 2})
    check_ended(box, ended, "PROCESS_LIMIT")


def test_threads_count(box):
    source = ("import threading, time\nfor _ in range(20):\n"
              "    threading.Thread(target=time.sleep, args=(4321,), daemon=True).start()\n")
    box.write("/tmp/threads.py", source)
    check_ended(box, limited(box, "python3 /tmp/threads.py", {"processes": 8}), "PROCESS_LIMIT")


# --- output ---


def test_output(box):
    ended = limited(box, "yes", {"output": "100Ki"})
    check_ended(box, ended, "OUTPUT_LIMIT")
    assert ended["stdout"] == "y\n" * (50 * 1024)


@pytest.mark.parametrize("size, reason", [(999, None), (1000, None), (1001, "OUTPUT_LIMIT")])
def test_output_to_the_byte(box, size, reason):
    done = limited(box, f"head -c 500 /dev/zero | tr '\\0' e >&2; head -c {size - 500} /dev/zero |"
                   " tr '\\0' o", {"output": 1000})
    assert done["reason"] == reason, done
    assert len(done["stdout"]) + len(done["stderr"]) == min(size, 1000)
    assert done["exitCode"] == (0 if reason is None else 137)
    check_well(box)


def test_output_of_what_the_leader_left_behind(box):
    done = limited(box, "(until [ -e /tmp/flood ]; do sleep 0.1; done; touch /tmp/flooding; exec yes) & echo first",
                   {"output": "8Ki"})
    assert (done["exitCode"], done["reason"]) == (0, None)
    box.write("/tmp/flood", "")  # its leader has ended
    wait_until(lambda: box.request("GET", "/filesystem/tmp/flooding").status == 200, 30, "it begins")
    check_well(box)
    wait_until(lambda: box.run("pgrep -f '[f]looding' || pgrep -x yes || echo none") == "none", 30,
               "nobody writes any more")
    assert get(box, done["pid"])["reason"] is None


def test_streamed_output(box):
    answer = box.request("POST", "/process", {"command": "yes", "limits": {"output": "300Ki"}},
                         {"Accept": "application/x-ndjson"}, timeout=60)
    assert answer.status == 200, answer
    *pieces, last = map(json.loads, answer.text.splitlines())
    assert sum(len(p["data"]) for p in pieces if p["type"] == "stdout") == 300 << 10
    check_ended(box, json.loads(last["data"]), "OUTPUT_LIMIT")


# --- open files, time ---


def test_open_files(box):
    assert limited(box, "ulimit -Sn; ulimit -Hn; ulimit -Hn 100", {"openFiles": 64})["stdout"] == \
        "64\n64\n"
    source = ("import errno, os\ntry:\n    while True:\n        os.open('/', os.O_RDONLY)\n"
              "except OSError as e:\n    print(errno.errorcode[e.errno])\n")
    box.write("/tmp/files.py", source)
    done = limited(box, "python3 /tmp/files.py", {"openFiles": 16})
    assert (done["stdout"], done["reason"], done["exitCode"]) == ("EMFILE\n", None, 0)


def test_time(box):
    ended = limited(box, "echo before; setsid sleep 4321 & sleep 4321", {"timeout": 1})
    check_ended(box, ended, "TIMEOUT")


def test_time_is_over_for_what_the_leader_left_behind(box):
    # Long enough for the leader to end by itself on a busy machine.
    done = limited(box, "setsid sleep 4321 & echo done", {"timeout": 5, "processes": 5})
    assert (done["exitCode"], done["reason"]) == (0, None)
    check_well(box)


def test_the_old_timeout_has_the_same_reason(box):
    ended = post(box, "sleep 4321", timeout=1, waitForCompletion=True)
    check_ended(box, ended, "TIMEOUT")


# --- all of them ---


def test_a_process_that_nobody_waits_for(box):
    pid = post(box, "python3 /tmp/hog.py", limits={"memory": "32Mi"})["pid"]
    wait_until(lambda: get(box, pid)["status"] != "running", 30, "its end")
    check_ended(box, get(box, pid), "MEMORY_LIMIT")


def test_a_limit_is_no_failure_to_start_again_after(box):
    pid = post(box, "python3 /tmp/hog.py", limits={"memory": "32Mi"}, restartOnFailure=True)["pid"]
    wait_until(lambda: get(box, pid)["status"] != "running", 30, "its end")
    check_ended(box, get(box, pid), "MEMORY_LIMIT")
    assert get(box, pid)["restartCount"] == 0


def test_each_start_has_a_group(box):
    pid = post(box, "exit 3", limits={"memory": "32Mi", "processes": 4}, restartOnFailure=True,
               maxRestarts=2)["pid"]
    wait_until(lambda: get(box, pid)["status"] != "running", 30, "the last start")
    assert (get(box, pid)["restartCount"], get(box, pid)["exitCode"]) == (2, 3)
    check_well(box)


def test_many_at_once(box):
    pids = [post(box, "python3 /tmp/hog.py", limits={"memory": "24Mi", "processes": 4})["pid"]
            for _ in range(6)]
    for pid in pids:
        wait_until(lambda: get(box, pid)["status"] != "running", 60, "its end")
        assert get(box, pid)["reason"] == "MEMORY_LIMIT"
    check_well(box)


def test_groups_go_with_the_sandbox(server):
    box = server.create()
    box.spawn("sleep 4321", limits={"memory": "32Mi", "processes": 4})
    box.stop()
    box.start()
    assert limited(box, "echo new agent", {"memory": "32Mi"})["stdout"] == "new agent\n"
    box.spawn("sleep 4321", limits={"memory": "32Mi", "processes": 4})
    box.delete()
    assert server.leaks() == ""


@pytest.mark.parametrize("limits, code, words", [
    ({"memory": "1Mi"}, "INVALID_QUANTITY", "limits.memory"),
    ({"memory": "lots"}, "INVALID_QUANTITY", "limits.memory"),
    ({"memory": "100Gi"}, "INVALID_ARGUMENT", "more than the sandbox's own"),
    ({"processes": 100000}, "INVALID_ARGUMENT", "more than the sandbox's own"),
    ({"processes": 0}, "INVALID_ARGUMENT", "limits.processes"),
    ({"openFiles": 100000000}, "INVALID_ARGUMENT", "limits.openFiles"),
    ({"openFiles": 2}, "INVALID_ARGUMENT", "limits.openFiles"),
    ({"output": 0}, "INVALID_QUANTITY", "limits.output"),
    ({"timeout": -1}, "INVALID_ARGUMENT", "limits.timeout"),
    ({"timeout": "soon"}, "INVALID_ARGUMENT", "limits.timeout"),
    ({"memroy": "1Gi"}, "UNKNOWN_FIELD", "memroy"),
    ([], "INVALID_ARGUMENT", "limits"),
])
def test_bad_limits(box, limits, code, words):
    answer = box.request("POST", "/process", {"command": "true", "limits": limits})
    assert (answer.status, answer.error()) == (400, code), answer
    assert words in answer.json()["error"]["message"], answer


# --- crashes ---


def hit_after_a_crash(server, box, which):
    waiting = f"while [ ! -e /tmp/go-{len(which)}-{which[0]} ]; do sleep 0.05; done; "
    pids = {
        "MEMORY_LIMIT": box.spawn(waiting + "python3 /tmp/hog.py", limits={"memory": "32Mi"}),
        "TIMEOUT": box.spawn("sleep 4321", limits={"timeout": 2, "processes": 4}),
        "OUTPUT_LIMIT": box.spawn(waiting + "yes", limits={"output": "64Ki", "memory": "64Mi"}),
    }
    before = server.kill(*which)
    server.wait_recovered(before, *which)
    box.write(f"/tmp/go-{len(which)}-{which[0]}", "")
    for reason, pid in pids.items():
        wait_until(lambda: get(box, pid)["status"] != "running", 30, f"{reason} after {which}")
        assert get(box, pid)["reason"] == reason
    check_well(box)


def test_limits_hold_without_the_server(server_factory):
    """Whoever was killed: the limit holds, its reason is told, its group goes, and the next command
    can be limited, too."""
    server = server_factory()
    box = server.create()
    box.write("/tmp/hog.py", HOG)
    for which in (("cellad",), ("warden",), ("cellad", "warden")):
        hit_after_a_crash(server, box, which)
        ended = limited(box, "python3 /tmp/hog.py", {"memory": "32Mi"})
        check_ended(box, ended, "MEMORY_LIMIT")
    box.delete()
    assert server.leaks() == ""


# --- other ways to ask ---


@pytest.mark.parametrize("options, command, reason", [
    (("--memory", "32Mi"), "python3 /tmp/hog.py", "MEMORY_LIMIT"),
    (("--processes", "3"), "python3 /tmp/children.py 9", "PROCESS_LIMIT"),
    (("--max-output", "1Ki"), "yes", "OUTPUT_LIMIT"),
])
def test_cli(server, box, options, command, reason):
    done = server.cli("run", box.name, "process", "exec", command, *options)
    assert done.returncode == 137, done
    assert reason in done.stderr
    check_well(box)


def test_cli_open_files_and_json(server, box):
    done = server.cli("run", box.name, "process", "exec", "ulimit -n", "--open-files", "32")
    assert (done.stdout, done.returncode) == ("32\n", 0)
    done = server.cli("run", box.name, "process", "exec", "yes", "--max-output", "1Ki", "--timeout",
                      "60", "--output", "json")
    assert json.loads(done.stdout)["reason"] == "OUTPUT_LIMIT"
    done = server.cli("run", box.name, "process", "exec", "true", "--memory", "1Ti")
    assert done.returncode == 2
    assert "sandbox's own" in done.stderr
