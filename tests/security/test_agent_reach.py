# SPDX-License-Identifier: Apache-2.0
"""Getting at the agent, its program, its descriptors and what it does for others: from inside, while
it works."""

import hashlib
import os
import pathlib
import stat

import pytest

from cella_inside import USERS, run_inside, spawn_inside
from cella_server import bin_dir, wait_until


def outside_pid(server, sandbox):
    """The agent's pid on the machine: the first in its pid namespace, in its sandbox's cgroup."""
    name = sandbox.get()["metadata"]["id"]
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            ids = [line.split()[1:] for line in (entry / "status").read_text().splitlines()
                   if line.startswith("NSpid:")][0]
            if len(ids) > 1 and ids[-1] == "1" and f"{server.instance}/{name}" in \
                    (entry / "cgroup").read_text():
                return int(entry.name)
        except (OSError, IndexError):
            pass
    raise AssertionError("no agent")


def digest(path):
    return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


OVERWRITE = """
import glob, time
def attack(pid):
    path = f'/proc/{pid}/exe'
    for flags in (os.O_WRONLY, os.O_RDWR, os.O_WRONLY | os.O_TRUNC, os.O_RDONLY, os.O_PATH):
        fd = quiet(os.open, path, flags)
        if isinstance(fd, str):
            continue
        if 'memfd' not in os.readlink(f'/proc/self/fd/{fd}'):  # it has become a command meanwhile
            os.close(fd)
            continue
        print('opened', flags, flush=True)
        again = quiet(os.open, f'/proc/self/fd/{fd}', os.O_WRONLY)
        if not isinstance(again, str):
            print('wrote', quiet(os.write, again, b'#!/bin/sh'), flush=True)
"""


@pytest.mark.parametrize("user", USERS)
def test_the_agents_program_cannot_be_overwritten(server, sandbox, user):
    """/proc/1/exe, and the trick with a script whose interpreter is /proc/self/exe: for a moment it
    names the program of whoever executes it."""
    agent = outside_pid(server, sandbox)
    assert digest(f"/proc/{agent}/exe") == digest(bin_dir() / "cella-agent")
    assert run_inside(sandbox, OVERWRITE + "attack(1)\n", user) == []
    sandbox.run("printf '#!/proc/self/exe\\n' > /usr/local/bin/again && chmod 755 /usr/local/bin/again")
    pid = spawn_inside(sandbox, OVERWRITE + """
own = os.getpid()
print('ready', flush=True)
while not os.path.exists('/tmp/stop'):
    for path in glob.glob('/proc/[0-9]*/comm'):
        try:
            if open(path).read().strip() not in ('again', 'exe', open('/proc/1/comm').read().strip()):
                continue
        except OSError:
            continue
        attack(path.split('/')[2])
print('done', flush=True)
""", user)
    wait_until(lambda: "ready" in sandbox.logs(pid)["stdout"], 60, lambda: sandbox.logs(pid))
    for _ in range(20):
        done = sandbox.request("POST", "/process", {"command": "/usr/local/bin/again 0",
                                                    "waitForCompletion": True, "timeout": 10})
        assert done.status == 200, done
    sandbox.run("touch /tmp/stop")
    wait_until(lambda: "done" in sandbox.logs(pid)["stdout"], 60, lambda: sandbox.logs(pid))
    assert sandbox.logs(pid)["stdout"] == "ready\ndone\n"
    assert digest(f"/proc/{agent}/exe") == digest(bin_dir() / "cella-agent")
    assert stat.S_IMODE(os.stat(f"/proc/{agent}/exe").st_mode) == 0o111


HUNTER = """
import glob
PTRACE_SEIZE = 0x4206
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
AGENT = open('/proc/1/comm').read()
seen, caught = set(), set()
def is_agent(path):
    # Names change a moment after the program: who shows another program is a command by now.
    program = quiet(os.readlink, path + '/exe')
    return 'memfd' in program or program == 'EACCES'
def hunt(path):
    for name in ('exe', 'root', 'cwd', 'ns/mnt'):
        if '/' in quiet(os.readlink, f'{path}/{name}') and is_agent(path):
            caught.add(name)
    for number in (range(0, 20)):
        target = quiet(os.readlink, f'{path}/fd/{number}')
        # A command that has just begun loads its libraries.
        if not target.startswith(('E', 'pipe:', '/dev/')) and is_agent(path):
            caught.add(target)
    for name in ('mem', 'environ', 'maps', 'auxv', 'stack', 'syscall'):
        fd = quiet(os.open, f'{path}/{name}', os.O_RDONLY)
        if not isinstance(fd, str):
            got = quiet(os.read, fd, 1)  # nothing, of one that has ended
            if isinstance(got, bytes) and got and is_agent(path):
                caught.add(name)
            os.close(fd)
    tracer = os.fork()  # which lets go by ending
    if tracer == 0:
        os._exit(libc.ptrace(PTRACE_SEIZE, int(path[6:]), None, None) == 0 and is_agent(path))
    if os.waitpid(tracer, 0)[1] != 0:
        caught.add('ptrace')
print('ready', flush=True)
while not os.path.exists('/tmp/stop'):
    for path in glob.glob('/proc/[0-9]*'):
        if quiet(lambda: open(path + '/comm').read()) == AGENT:
            seen.add(path)
            hunt(path)
print('seen', '/proc/1' in seen, 'caught', sorted(caught), flush=True)
"""


@pytest.mark.parametrize("user", USERS)
def test_the_agent_and_its_workers_are_hunted(sandbox, user):
    """Each command and each file has a process of the agent's for a moment, with its descriptors."""
    sandbox.write("/workspace/file", "x" * 100000)
    pid = spawn_inside(sandbox, HUNTER, user)
    wait_until(lambda: "ready" in sandbox.logs(pid)["stdout"], 60, lambda: sandbox.logs(pid))
    for number in range(30):
        assert sandbox.read("/workspace/file") == b"x" * 100000
        sandbox.write(f"/workspace/file{number}", "y")
        assert sandbox.run("echo fine", timeout=60) == "fine"
    sandbox.run("touch /tmp/stop")
    wait_until(lambda: "seen" in sandbox.logs(pid)["stdout"], 30, lambda: sandbox.logs(pid))
    assert "seen True caught []" in sandbox.logs(pid)["stdout"], sandbox.logs(pid)


WALK = """
import re
own = quiet(os.listdir, '/proc/self/fd')
for pid in filter(str.isdigit, os.listdir('/proc')):
    for number in (lambda found: found if isinstance(found, list) else [])(
            quiet(os.listdir, f'/proc/{pid}/fd')):
        target = quiet(os.readlink, f'/proc/{pid}/fd/{number}')
        if re.match(r'pipe:|/dev/|/proc/|/var/tmp/t\\d+.py|E[A-Z]+$|anon_inode:', target):
            continue
        print(pid, number, target)
"""


@pytest.mark.parametrize("user", USERS)
def test_no_descriptor_leads_anywhere(sandbox, user):
    """All that can be seen in /proc of all processes, and what was left open in one's own. A program that
    begins has files open for a moment; what it was given, it keeps."""
    def walk_finds_nothing():
        return run_inside(sandbox, WALK, user) == []

    sandbox.spawn("exec sleep 1000")
    wait_until(lambda: sandbox.exec("pgrep -f '^sleep 1000'").exit_code == 0, 60, "the first sleep")
    wait_until(walk_finds_nothing, 60, lambda: run_inside(sandbox, WALK, user))
    # In a terminal, too, which starts in another way.
    answer = sandbox.request("POST", "/terminal/sessions", {"command": "exec sleep 1001", "user": user})
    assert answer.status in (200, 201), answer
    wait_until(lambda: sandbox.exec("pgrep -f '^sleep 1001'").exit_code == 0, 60, "the sleep")

    def numbers():
        return sandbox.run("ls /proc/$(pgrep -f '^sleep 1001')/fd" if user == "root" else
                           "su user -c 'ls /proc/$(pgrep -f \"^sleep 1001\")/fd'").split()
    wait_until(lambda: set(numbers()) <= {"0", "1", "2"}, 60, numbers)
    wait_until(walk_finds_nothing, 60, lambda: run_inside(sandbox, WALK, user))


@pytest.mark.parametrize("user", USERS)
def test_descriptors_seen_from_the_machine(server, sandbox, user):
    """What the kernel says that commands hold: nothing of the machine, no socket, no cgroup."""
    command = "exec sleep 1002" if user == "root" else "exec su user -c 'exec sleep 1002'"
    sandbox.spawn(command)
    name = sandbox.get()["metadata"]["id"]

    def sleeping():
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                if (entry / "cmdline").read_bytes() == b"sleep\x001002\x00" and \
                        name in (entry / "cgroup").read_text():
                    found.append(entry)
            except OSError:
                pass
        return found

    process = wait_until(sleeping, 60, "the sleep")[0]

    def links():
        try:
            return {entry.name: os.readlink(entry) for entry in (process / "fd").iterdir()}
        except FileNotFoundError:  # closed meanwhile: it loads its libraries
            return {}
    wait_until(lambda: set(links()) == {"0", "1", "2"}, 60, links)
    for target in links().values():
        assert target.startswith("pipe:") or target == "/dev/null", links()


@pytest.mark.parametrize("user", USERS)
def test_a_tracer_cannot_keep_an_end_to_itself(sandbox, user):
    """A traced process stays a zombie for as long as its tracer likes, and its parent is not told. Whoever
    waits for the command is: at its time-out, and when it is killed."""
    pid = spawn_inside(sandbox, """
import glob, time
libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
seized = set()
print('ready', flush=True)
while True:
    for path in glob.glob('/proc/[0-9]*/cmdline'):
        pid = int(path.split('/')[2])
        if pid not in seized and quiet(lambda: open(path).read()) == 'sleep\\x001003\\x00':
            if libc.ptrace(0x4206, pid, None, None) == 0:
                seized.add(pid)
                print('seized', flush=True)
    time.sleep(0.01)
""", user)
    wait_until(lambda: "ready" in sandbox.logs(pid)["stdout"], 60, lambda: sandbox.logs(pid))
    command = "exec sleep 1003" if user == "root" else "exec su user -c 'exec sleep 1003'"
    held = sandbox.spawn(command)
    wait_until(lambda: "seized" in sandbox.logs(pid)["stdout"], 60, lambda: sandbox.logs(pid))
    assert sandbox.request("POST", f"/process/{held}/kill", timeout=60).status == 200
    wait_until(lambda: sandbox.request("GET", f"/process/{held}").json()["status"] == "killed", 60,
               lambda: sandbox.request("GET", f"/process/{held}").json())
    answer = sandbox.request("POST", "/process", {"command": command, "waitForCompletion": True,
                                                  "timeout": 3}, timeout=60)
    assert answer.status == 200 and answer.json()["status"] == "timeout", answer
    assert sandbox.logs(pid)["stdout"].count("seized") >= 1
