# SPDX-License-Identifier: Apache-2.0
"""A command that does not want to be limited. It is root in its sandbox, and tries."""

import pytest

from cella_server import wait_until

TRIES = r"""
import ctypes, os, resource, subprocess, sys
def attempt(name, what):
    try:
        what()
    except (OSError, ValueError, subprocess.SubprocessError):
        return
    print(name)
def write(path, text):
    with open(path, "w") as file:
        file.write(text)
libc = ctypes.CDLL(None, use_errno=True)
def call(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), "refused")
os.makedirs("/tmp/m", exist_ok=True)
for kind, options in ((b"cgroup", b"memory"), (b"cgroup", b"pids"), (b"cgroup2", b"")):
    attempt("mounted " + kind.decode(), lambda: call(libc.mount(b"x", b"/tmp/m", kind, 0, options)))
attempt("left the cgroup namespace", lambda: call(libc.unshare(0x02000000)))
attempt("made a user namespace", lambda: call(libc.unshare(0x10000000)))
attempt("looked into the agent", lambda: os.listdir("/proc/1/fd"))
attempt("entered the agent", lambda: os.open("/proc/1/root/etc", os.O_RDONLY))
attempt("more files", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 128)))
attempt("more files by prlimit", lambda: resource.prlimit(0, resource.RLIMIT_NOFILE, (64, 128)))
for top, _, names in os.walk("/sys/fs/cgroup"):
    for name in names:
        attempt("wrote " + name, lambda: write(os.path.join(top, name), "max"))
print("tried", flush=True)
"""

LIMITS = {"memory": "48Mi", "processes": 8, "openFiles": 64, "output": "64Ki", "timeout": 30}

ENDS = [
    ("MEMORY_LIMIT", "b = []\nwhile True:\n    b.append(bytearray(b'x' * (1 << 20)))\n"),
    # In a session of its own, as an orphan, under another name.
    ("MEMORY_LIMIT", "import ctypes\nif os.fork() == 0:\n    os.setsid()\n    if os.fork() == 0:\n"
                     "        b = []\n        while True:\n"
                     "            b.append(bytearray(b'x' * (1 << 20)))\n    os._exit(0)\n"
                     "import time\ntime.sleep(4321)\n"),
    # Memory that is no process's own.
    ("MEMORY_LIMIT", "with open('/dev/shm/big', 'wb') as file:\n    while True:\n"
                     "        file.write(b'x' * (1 << 20))\n"),
    ("PROCESS_LIMIT", "while True:\n    if os.fork() == 0:\n        os.setsid()\n"),
    # What ignores every signal that can be ignored, and stands still besides.
    ("TIMEOUT", "import signal\nfor n in range(1, 32):\n    try:\n"
                "        signal.signal(n, signal.SIG_IGN)\n    except OSError:\n        pass\n"
                "os.kill(os.getpid(), signal.SIGSTOP)\n"),
    # By a descriptor that was opened anew.
    ("OUTPUT_LIMIT", "out = open('/proc/self/fd/1', 'wb')\nwhile True:\n    out.write(b'x' * 4096)\n"),
]


@pytest.mark.parametrize("reason, end", ENDS, ids=[f"{reason}-{i}" for i, (reason, _) in enumerate(ENDS)])
def test_nothing_inside_lifts_a_limit(sandbox, reason, end):
    sandbox.write("/tmp/try.py", TRIES + end)
    limits = {**LIMITS, "timeout": 10} if reason == "TIMEOUT" else LIMITS
    answer = sandbox.request("POST", "/process", {"command": "exec python3 /tmp/try.py", "limits": limits,
                                                  "waitForCompletion": True}, timeout=90)
    assert answer.status == 200, answer
    ended = answer.json()
    assert ended["reason"] == reason, ended
    assert ended["stdout"].split("x")[0] == "tried\n", ended["stdout"][:1000]
    sandbox.run("rm -f /dev/shm/big")
    wait_until(lambda: sandbox.run('grep -l "[t]ry.py" /proc/[0-9]*/cmdline || true') == "", 30,
               "nothing of it is left")


def test_other_commands_are_not_limited(sandbox):
    pid = sandbox.spawn("sleep 1000", limits={"memory": "16Mi", "processes": 2, "openFiles": 16})
    done = sandbox.python("import os\nb = bytearray(b'x') * (64 << 20)\n"
                          "pids = [os.posix_spawn('/bin/true', ['true'], {}) for _ in range(20)]\n"
                          "f = [open('/dev/null') for _ in range(100)]\nprint('fine')\n")
    assert done.stdout == "fine\n", done
    assert sandbox.request("POST", f"/process/{pid}/kill").status == 200
