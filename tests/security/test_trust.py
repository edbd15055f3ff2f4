# SPDX-License-Identifier: Apache-2.0
"""What the kernel keeps from commands of the stricter trust levels: processes, privileges, files, memory."""

import hashlib
import os
import urllib.parse

import pytest

from cella_server import wait_until
from cella_websocket import Terminal

RAW = {"Content-Type": "application/octet-stream"}
MIB = 1 << 20
EPERM, ENOSYS, SIGSYS = 1, 38, 31

# Every way to another process, as errno (0: it worked), one per line; then two threads.
PROCESSES = r"""
import ctypes, os, sys, threading
libc = ctypes.CDLL(None, use_errno=True)
CLONE_VFORK, SIGCHLD = 0x4000, 17
def call(name, number, *args):
    if sys.argv[1:] == ["carefully"]:  # a vfork that worked would not come back in one piece
        return
    ctypes.set_errno(0)
    result = libc.syscall(ctypes.c_long(number), *args)
    if result == 0:
        os._exit(0)
    print(name, ctypes.get_errno() if result < 0 else 0, flush=True)
    if result > 0:
        os.waitpid(result, 0)
call("fork", 57)
call("vfork", 58)
call("clone", 56, SIGCHLD, 0, 0, 0, 0)
call("clone-vfork", 56, ctypes.c_long(CLONE_VFORK | SIGCHLD), 0, 0, 0, 0)
for size in (64, 88, 128):
    args = (ctypes.c_uint64 * 16)(*[0] * 4, SIGCHLD)
    call(f"clone3-{size}", 435, args, ctypes.c_long(size))
for name, start in (("os.fork", os.fork), ("spawn", lambda: os.posix_spawn("/bin/true", ["true"], {}))):
    try:
        pid = start()
        if pid == 0:
            os._exit(0)
        os.waitpid(pid, 0)
        print(name, 0, flush=True)
    except OSError as error:
        print(name, error.errno, flush=True)
done = []
threads = [threading.Thread(target=lambda n=n: done.append(n)) for n in range(2)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("threads", len(done), flush=True)
"""

REFUSED = {"fork": EPERM, "vfork": EPERM, "clone": EPERM, "clone-vfork": EPERM, "clone3-64": ENOSYS,
           "clone3-88": ENOSYS, "clone3-128": ENOSYS, "os.fork": EPERM, "spawn": EPERM, "threads": 2}

# A system call by another ABI's door: machine code, called as a function.
FOREIGN = r"""
import ctypes, mmap
page = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
page.write(bytes.fromhex({code!r}))
address = ctypes.addressof(ctypes.c_char.from_buffer(page))
print("before", flush=True)
print(ctypes.CFUNCTYPE(ctypes.c_long)(address)(), flush=True)
"""
DOORS = {"i386": "b802000000cd80c3",  # mov $2 (fork), %eax; int $0x80; ret
         "x32": "b8390000400f05c3"}   # mov $0x40000039 (fork), %eax; syscall; ret


def results(text):
    return {name: int(value) for name, value in (line.split() for line in text.split("\n") if line)}


def status(sandbox, *fields, pid="self"):
    done = sandbox.exec(["cat", f"/proc/{pid}/status"])
    assert done.exit_code == 0, done
    lines = dict(line.split(":\t", 1) for line in done.stdout.splitlines() if ":\t" in line)
    return [lines[field] for field in fields]


@pytest.fixture(scope="module")
def guest(server):
    made = server.create(trustLevel="untrusted")
    yield made
    made.delete()


@pytest.fixture(scope="module")
def sandboxed(server):
    made = server.create(trustLevel="sandboxed")
    yield made
    made.delete()


@pytest.fixture(scope="module")
def alone(server):
    """Standard, but for its commands' processes."""
    made = server.create(security={"allow_subprocess": False})
    yield made
    made.delete()


# --- privileges ---

def test_untrusted_has_no_privileges(guest):
    assert status(guest, "NoNewPrivs", "CapBnd", "CapPrm", "CapEff", "CapInh", "CapAmb") == \
        ["1", *["0" * 16] * 5]
    assert status(guest, "Uid") == ["0\t0\t0\t0"]
    assert status(guest, "NoNewPrivs", "CapBnd", pid=1) == ["1", "0" * 16]


def test_sandboxed_gains_no_privileges(sandboxed):
    assert status(sandboxed, "NoNewPrivs") == ["1"]


def test_standard_and_trusted_can_gain_some(server, shared_sandbox):
    assert status(shared_sandbox, "NoNewPrivs", "Seccomp_filters") == ["0", "1"]
    trusted = server.create(trustLevel="trusted")
    try:
        assert status(trusted, "NoNewPrivs", "Seccomp_filters") == ["0", "1"]
    finally:
        trusted.delete()


def test_untrusted_root_cannot_act_as_root(guest):
    probe = ("import os\n"
             "os.close(os.open('/tmp/probe', os.O_CREAT))\n"
             "for act in (lambda: os.chown('/tmp/probe', 1000, 1000), lambda: os.setuid(1000),\n"
             "            lambda: os.setgroups([5]), lambda: os.chroot('/tmp'), lambda: os.kill(1, 9)):\n"
             "    try: act(); print(0)\n"
             "    except OSError as error: print(error.errno)\n")
    done = guest.exec(["python3", "-c", probe])
    # A signal from inside that pid 1 has no handler for is dropped by the kernel, whoever sends it.
    assert done.stdout.split() == ["1", "1", "1", "1", "0"], done
    assert guest.exec(["true"]).exit_code == 0


# --- processes ---

@pytest.mark.parametrize("level", ["guest", "sandboxed", "alone"])
def test_no_subprocess(request, level):
    done = request.getfixturevalue(level).exec(["python3", "-c", PROCESSES])
    assert results(done.stdout) == REFUSED, done


def test_where_they_are_allowed_they_work(shared_sandbox):
    done = shared_sandbox.exec(["python3", "-c", PROCESSES, "carefully"])
    assert results(done.stdout) == {"os.fork": 0, "spawn": 0, "threads": 2}, done


def test_it_outlives_exec(guest):
    again = "import os, sys; os.execv('/usr/bin/python3', ['python3', '-c', sys.argv[1]])"
    done = guest.exec(["python3", "-c", again, PROCESSES])
    assert results(done.stdout) == REFUSED, done


def test_it_holds_for_processes_and_their_restarts(guest):
    body = {"command": ["python3", "-c", PROCESSES + "\nraise SystemExit(3)"], "restartOnFailure": True,
            "maxRestarts": 1}
    answer = guest.request("POST", "/process", body)
    assert answer.status == 200, answer
    pid = answer.json()["pid"]
    wait_until(lambda: guest.request("GET", f"/process/{pid}").json()["status"] != "running", 60, "its end")
    assert guest.request("GET", f"/process/{pid}").json()["restartCount"] == 1
    lines = guest.logs(pid)["stdout"].splitlines()
    assert len(lines) == 2 * len(REFUSED)
    for half in (lines[:len(REFUSED)], lines[len(REFUSED):]):
        assert results("\n".join(half)) == REFUSED


def test_it_holds_for_a_stream(guest):
    answer = guest.request("POST", "/process", {"command": ["python3", "-c", PROCESSES]},
                           {"Accept": "text/event-stream"}, timeout=60)
    assert answer.status == 200 and "os.fork 1" in answer.text and "threads 2" in answer.text, answer


def test_it_holds_for_terminals(server, alone):
    alone.write("/tmp/processes.py", PROCESSES)
    terminal = Terminal(server, alone.name, command="python3 /tmp/processes.py")
    try:
        terminal.await_end()
        assert results(terminal.seen.decode().replace("\r", "")) == REFUSED
    finally:
        terminal.close()


def test_a_shell_without_subprocesses_has_its_own_commands(alone):
    done = alone.exec("echo one; cat /dev/null; echo two")
    assert done.stdout == "one\n" and done.exit_code != 0 and "fork" in done.stderr, done
    assert alone.exec("X=1; echo $X").stdout == "1\n"


@pytest.mark.parametrize("door", DOORS)
def test_foreign_doors_are_shut(alone, door):
    done = alone.exec(["python3", "-c", FOREIGN.format(code=DOORS[door])])
    assert (done.exit_code, done.stdout) == (128 + SIGSYS, "before\n"), done


def test_the_agent_goes_on(guest):
    """File work and commands come from pid 1, which has no filter of that kind."""
    guest.write("/workspace/agent", "still there")
    assert guest.exec(["cat", "/workspace/agent"]).stdout == "still there"
    assert status(guest, "Seccomp_filters", pid=1) == ["1"]
    assert status(guest, "Seccomp_filters") == ["2"]


# --- the root, and what can be written ---

READ_ONLY = ["/", "/etc", "/usr", "/usr/bin", "/root", "/home", "/var", "/var/tmp", "/opt", "/dev", "/run", "/srv"]


@pytest.mark.parametrize("level", ["guest", "sandboxed"])
def test_the_root_is_read_only(request, level):
    sandbox = request.getfixturevalue(level)
    probe = ("import os, sys\n"
             "for path in sys.argv[1:]:\n"
             "    try: open(path + '/probe', 'w'); print(path)\n"
             "    except OSError as error: assert error.errno in (13, 30), (path, error)\n"
             "try: os.utime('/etc/passwd'); print('utime')\n"
             "except OSError as error: assert error.errno == 30, error\n")
    done = sandbox.exec(["python3", "-c", probe, *READ_ONLY])
    assert (done.exit_code, done.stdout) == (0, ""), done
    answer = sandbox.request("PUT", "/filesystem/etc/probe", b"x", RAW)
    assert answer.status == 403 and answer.error() == "PERMISSION_DENIED", answer


def test_mounts_cannot_be_changed(guest):
    probe = ("import ctypes\n"
             "libc = ctypes.CDLL(None, use_errno=True)\n"
             "for args in ((b'none', b'/', b'', 32, None), (b'x', b'/tmp', b'tmpfs', 0, None),\n"
             "             (b'/tmp', b'/etc', b'', 4096, None)):\n"
             "    print(libc.mount(*args), ctypes.get_errno())\n"
             "print(libc.umount2(b'/tmp', 2), ctypes.get_errno())\n")
    assert set(guest.exec(["python3", "-c", probe]).stdout.splitlines()) == {"-1 1"}


def test_the_file_api_works_in_scratch(guest):
    for top in ("/workspace", "/tmp"):
        path = f"{top}/deep/er/file.bin"
        data = os.urandom(300_000)
        guest.write(path, data)
        assert guest.read(path) == data
        tree = {"files": {"a.txt": "one", "sub/b.txt": "two"}}
        answer = guest.request("PUT", f"/filesystem/tree{top}/tree", tree)
        assert answer.status == 200, answer
        answer = guest.request("PUT", f"/filesystem/tree{top}/tree", tree)  # over what is there
        assert answer.status == 200, answer
        assert guest.read(f"{top}/tree/sub/b.txt") == b"two"
        found = guest.request("GET", f"/filesystem-content-search{top}?query=two")
        assert found.status == 200 and "b.txt" in found.text, found
        for name in ("deep", "tree"):
            gone = guest.request("DELETE", f"/filesystem{top}/{name}?recursive=true")
            assert gone.status == 200, gone


def test_uploads_in_parts_work_in_scratch(guest):
    data = os.urandom(7 * MIB)
    answer = guest.request("POST", "/filesystem-multipart/initiate/workspace/big.bin", {})
    assert answer.status == 200, answer
    upload = answer.json()["uploadId"]
    for number, at in enumerate(range(0, len(data), 5 * MIB), 1):
        part = guest.request("PUT", f"/filesystem-multipart/{upload}/part?partNumber={number}",
                             data[at:at + 5 * MIB], RAW, timeout=60)
        assert part.status == 200, part
    # Not for others to see while it is under way.
    listed = guest.exec(["stat", "-c", "%a %u", "/tmp/.cella"]).stdout
    assert listed == "700 0\n"
    answer = guest.request("POST", f"/filesystem-multipart/{upload}/complete", {}, timeout=60)
    assert answer.status == 200, answer
    done = guest.exec(["md5sum", "/workspace/big.bin"]).stdout.split()[0]
    assert done == hashlib.md5(data).hexdigest()
    assert guest.exec(["ls", "-A", "/tmp/.cella"]).exit_code != 0
    guest.request("DELETE", "/filesystem/workspace/big.bin")


FILL = r"""
import os, sys
written = 0
with open(sys.argv[1], "wb", buffering=0) as file:
    try:
        while written < 1 << 30:
            written += file.write(bytes(1 << 20))
    except OSError as error:
        print(error.errno)
print(written >> 20)
"""


def test_scratch_is_bounded_and_memory_of_the_sandbox(server):
    guest = server.create(trustLevel="untrusted")
    try:
        hold = ["python3", "-c", "x = bytearray(180 << 20); print(len(x) >> 20)"]
        assert guest.exec(hold).stdout == "180\n"
        for top in ("/tmp", "/workspace"):
            done = guest.exec(["python3", "-c", FILL, f"{top}/fill"])
            assert done.stdout.split() == ["28", "64"], done  # ENOSPC at a quarter of 256 MiB
        # Now half of its memory is gone, and what fitted before does not.
        assert guest.exec(hold).exit_code == 137
        answer = guest.request("PUT", "/filesystem" + urllib.parse.quote("/tmp/more"), b"x" * MIB, RAW)
        assert answer.error() == "QUOTA_EXCEEDED", answer
        for top in ("/tmp", "/workspace"):
            assert guest.exec(["rm", f"{top}/fill"]).exit_code == 0
        assert guest.exec(hold).stdout == "180\n"
    finally:
        guest.delete()


def test_files_without_content_are_bounded_too(guest):
    probe = ("import os\n"
             "os.mkdir('/tmp/many')\n"
             "n = 0\n"
             "try:\n"
             "    while n < 100_000: os.close(os.open(f'/tmp/many/{n}', os.O_CREAT)); n += 1\n"
             "except OSError as error: print(error.errno)\n"
             "for i in range(n): os.unlink(f'/tmp/many/{i}')\n"
             "os.rmdir('/tmp/many')\n"
             "print(n < 20_000)\n")
    assert guest.exec(["python3", "-c", probe]).stdout.split() == ["28", "True"]


def test_scratch_is_empty_after_a_start(server):
    sandbox = server.create(trustLevel="sandboxed")
    try:
        sandbox.write("/workspace/x", "1")
        sandbox.stop()
        sandbox.start()
        assert sandbox.exec(["ls", "-A", "/workspace", "/tmp"]).stdout.split() == ["/tmp:", "/workspace:"]
    finally:
        sandbox.delete()
