# SPDX-License-Identifier: Apache-2.0
"""Ways around what the trust levels promise: no other process, no right to gain, nothing to write to.
Each is tried at the strictest level, and shown to work at the standard one."""

import platform

import pytest

from cella_inside import PRELUDE

STANDARD_CAPABILITIES = 0xA80425FB


@pytest.fixture(scope="module")
def untrusted(server):
    made = server.create(trustLevel="untrusted")
    yield made
    made.delete()


def run_program(sandbox, *words, timeout=30):
    """Without a shell, which there is none of: a program with its arguments."""
    answer = sandbox.request("POST", "/process", {"command": list(words), "waitForCompletion": True,
                                                  "timeout": timeout}, timeout=timeout + 15)
    assert answer.status == 200, answer
    done = answer.json()
    if "stdout" not in done:
        done.update(sandbox.logs(done["pid"]))
    return done


def run_source(sandbox, source):
    sandbox.write("/workspace/attempt.py", PRELUDE + source)
    return run_program(sandbox, "python3", "/workspace/attempt.py")


def fields_of(text):
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


def test_what_the_kernel_says(untrusted, shared_sandbox):
    strict = fields_of(run_program(untrusted, "cat", "/proc/self/status")["stdout"])
    assert strict["NoNewPrivs"].strip() == "1" and strict["Seccomp"].strip() == "2"
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(strict[name], 16) == 0, (name, strict[name])
    usual = fields_of(run_program(shared_sandbox, "cat", "/proc/self/status")["stdout"])
    assert int(usual["CapBnd"], 16) == STANDARD_CAPABILITIES
    assert int(strict.get("Seccomp_filters", "2")) > int(usual.get("Seccomp_filters", "1"))


# Calls into other processes, and others that hardly a program makes.
RARE_CALLS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
for name, number, args in (("ptrace", 101, (0x7fff, 0, 0, 0)), ("process_vm_readv", 310, (0, 0, 0, 0, 0, 0)),
                           ("process_vm_writev", 311, (0, 0, 0, 0, 0, 0)), ("modify_ldt", 154, (0, 0, 0)),
                           ("memfd_secret", 447, (0xffff,))):
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), *args)
    print(name, ctypes.get_errno())
"""


def errors_of(done):
    assert done["exitCode"] == 0, done
    return {name: int(number) for name, number in (line.split() for line in done["stdout"].splitlines())}


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the numbers are x86-64's")
def test_no_calls_into_other_processes(untrusted, shared_sandbox):
    strict = errors_of(run_source(untrusted, RARE_CALLS))
    assert set(strict.values()) == {1} and len(strict) == 5, strict
    shared_sandbox.write("/tmp/rare.py", RARE_CALLS)
    usual = errors_of(run_program(shared_sandbox, "python3", "/tmp/rare.py"))
    assert 1 not in usual.values(), usual


# Every call that can make a process, in every dress; who succeeds says so.
FORKS = """
import mmap, subprocess, threading
def attempt(name, make):
    try:
        pid = make()
    except (OSError, RuntimeError) as refused:
        print(name, 'refused', flush=True)
        return
    if pid == 0:
        os._exit(0)
    if isinstance(pid, int) and pid > 0:
        quiet(os.waitpid, pid, 0x40000000)
    print(name, 'made' if pid is None or pid > 0 else 'refused', flush=True)
VM, VFORK, PIDFD, PARENT, IO, UNTRACED = 0x100, 0x4000, 0x1000, 0x8000, 0x80000000, 0x800000
attempt('fork', os.fork)
attempt('raw-fork', lambda: call(57)[0])
for flags in (17, 0, VFORK | 17, IO | 17, UNTRACED | 17, 17 | 1 << 32, 17 | 0x10000 << 32):
    attempt(f'clone-{flags:x}', lambda: call(56, flags, 0, 0, 0, 0)[0])
for size in (64, 80, 88, 96, 128, 136, 4096):
    args = (ctypes.c_uint64 * 512)()
    args[4] = 17
    attempt(f'clone3-{size}', lambda: call(435, args, size)[0])
attempt('posix_spawn', lambda: os.posix_spawn('/bin/true', ['true'], {}))
attempt('subprocess', lambda: subprocess.run(['/bin/true'], check=True) and None)
attempt('shell', lambda: os.system('true') and -1 or None)
print('io_uring', call(425, 1, ctypes.create_string_buffer(200)), flush=True)
done = []
thread = threading.Thread(target=lambda: done.append(1))
thread.start()
thread.join()
print('thread', done, flush=True)
"""


def outcomes(done):
    return dict(line.split(" ", 1) for line in done["stdout"].splitlines())


@pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")
def test_no_way_to_another_process(untrusted, shared_sandbox):
    usual = outcomes(run_source(shared_sandbox, FORKS))
    for name in ("fork", "raw-fork", "clone-11", "posix_spawn", "subprocess", "shell"):
        assert usual[name] == "made", usual
    strict = outcomes(run_source(untrusted, FORKS))
    for name, outcome in strict.items():
        if name == "thread":
            assert outcome == "[1]"
        elif name == "io_uring":
            assert outcome in ("(-1, 1)", "(-1, 38)"), outcome
        else:
            assert outcome == "refused", (name, outcome)
    assert set(strict) == set(usual)


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86-64")
@pytest.mark.parametrize("name, code", [
    ("int 0x80", "b802000000cd80c3"),                # fork of i386
    ("int 0x80 clone", "b878000000bb1100000031c9cd80c3"),
    ("x32", "b8390000400f05c3"),                     # fork of x32
    ("vfork", "b83a0000000f05c3"),                   # answered; the child would return twice
])
def test_no_way_by_another_table(untrusted, name, code):
    done = run_source(untrusted, f"""
import mmap
page = mmap.mmap(-1, 4096, prot=7)
page.write(bytes.fromhex({code!r}))
before = os.getpid()
result = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))()
print('came back', result, os.getpid() == before, flush=True)
""")
    if done["exitCode"] == 0:
        assert done["stdout"] in ("came back -1 True\n", "came back -38 True\n"), done
    else:
        assert done["exitCode"] in (159, 139) and done["stdout"] == "", done


def test_no_way_back_to_rights(untrusted):
    """No filter, no_new_privs and no capability can be taken off again; setuid programs give none."""
    done = run_source(untrusted, """
print(call(157, 38, 0, 0, 0, 0)[1])                       # no_new_privs to 0
print(call(157, 22, 0, 0, 0, 0)[1])                       # seccomp mode 0
header = (ctypes.c_uint32 * 2)(0x20080522, 0)
print(call(126, header, (ctypes.c_uint32 * 6)(*(0xffffffff,) * 6))[1])  # capset
print(call(157, 47, 2, 10, 0, 0)[1])                      # an ambient capability
print(quiet(os.setuid, 1000), quiet(os.setgroups, [0]), quiet(os.chroot, '/tmp'))
print(quiet(os.chown, '/workspace/attempt.py', 1000, 1000))
""")
    lines = done["stdout"].splitlines()
    assert lines == ["22", "22", "1", "1", "EPERM EPERM EPERM", "EPERM"], done
    for program in ("su", "sudo", "mount", "passwd"):
        answer = untrusted.request("POST", "/process", {"command": [program, "--version"],
                                                        "waitForCompletion": True, "timeout": 20})
        assert answer.status == 200, answer  # it runs, or is not there: without rights either way
    untrusted.write("/workspace/own", "#!/usr/bin/cat\n")
    done = run_source(untrusted, "print(quiet(os.chmod, '/workspace/own', 0o4755),"
                                 " quiet(os.setxattr, '/workspace/own', 'security.capability', b'x'))")
    assert done["stdout"].split()[1] in ("EPERM", "EOPNOTSUPP", "EINVAL"), done


def test_nothing_to_write_to(untrusted):
    done = run_source(untrusted, """
for path in ('/', '/etc', '/usr', '/usr/local/bin', '/root', '/home/user', '/var/tmp', '/run', '/opt',
             '/dev', '/proc', '/sys', '/.cella'):
    print(path, quiet(lambda: open(path + '/new', 'w').close()))
for way in ('/proc/self/root/etc/new', '/proc/self/cwd/../etc/new', '/workspace/../etc/new'):
    print(way, quiet(lambda: open(way, 'w').close()))
print('remount', call(165, b'none', b'/', b'', 32, 0)[1])
print('hosts', quiet(lambda: open('/etc/hosts', 'a').close()))
print('link', quiet(os.link, '/etc/hosts', '/workspace/hosts'))
""")
    lines = dict(line.rsplit(" ", 1) for line in done["stdout"].splitlines())
    assert lines.pop("remount") == "1" and lines.pop("link") in ("EXDEV", "EPERM")
    assert len(lines) == 17, done
    for path, outcome in lines.items():
        assert outcome in ("EROFS", "EACCES", "ENOENT", "EPERM"), (path, outcome)
    for path in ("/etc/new", "/usr/new", "/root/new"):
        answer = untrusted.request("PUT", f"/filesystem{path}", {"content": "x"})
        assert answer.status >= 400 and answer.status < 500, (path, answer)


@pytest.mark.parametrize("what", ["bytes", "files"])
def test_scratch_is_bounded(server, what):
    """What may be written to is memory: not more of it than a share, in bytes and in files, so that
    filling it to the brim leaves a sandbox that works."""
    box = server.create(trustLevel="untrusted")
    done = run_source(box, f"""
for folder in ('/tmp', '/workspace', '/dev/shm'):
    n = 0
    try:
        with open(folder + '/full', 'wb') as file:
            while n < 4096:
                if {what!r} == 'bytes':
                    file.write(bytes(1 << 20))
                    file.flush()
                else:
                    for i in range(256):
                        open(f'{{folder}}/{{n}}-{{i}}', 'w').close()
                n += 1
        print(folder, 'never full')
    except OSError as full:
        print(folder, errno.errorcode[full.errno], flush=True)
""")
    assert done["stdout"].splitlines() == ["/tmp ENOSPC", "/workspace ENOSPC", "/dev/shm ENOSPC"], done
    assert run_program(box, "echo", "well")["stdout"] == "well\n"
    assert box.status() == "running"
    box.stop()
    box.start()
    assert run_program(box, "ls", "-A", "/tmp", "/dev/shm")["stdout"].split() == ["/dev/shm:", "/tmp:"]
    box.delete()
