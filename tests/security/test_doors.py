# SPDX-License-Identifier: Apache-2.0
"""The kernel's other doors, tried with raw system calls as root and as user of a sandbox. What is
refused inside works outside, where that is cheap to show: or the test would prove nothing."""

import ctypes
import errno
import os
import pathlib
import platform
import socket

import pytest

from cella_inside import USERS, run_inside, spawn_inside
from cella_server import wait_until

pytestmark = pytest.mark.skipif(platform.machine() != "x86_64", reason="numbers of x86-64")

CLOSED = {errno.EPERM, errno.EACCES, errno.ENOSYS}

# name, number, arguments that are harmless but wrong: who is let in is told EINVAL, EFAULT or so.
DOORS = [
    ("bpf", 321, (-1, 0, 0)),
    ("userfaultfd", 323, (-1,)),
    ("io_uring_setup", 425, (0, 0)),
    ("io_uring_enter", 426, (-1, 0, 0, 0, 0, 0)),
    ("io_uring_register", 427, (-1, 0, 0, 0)),
    ("perf_event_open", 298, (0, 0, -1, -1, 0)),
    ("keyctl", 250, (-1, 0, 0)),
    ("add_key", 248, (0, 0, 0, 0, 0)),
    ("request_key", 249, (0, 0, 0, 0)),
    ("setns", 308, (-1, 0)),
    ("unshare", 272, (0x1,)),
    ("open_by_handle_at", 304, (-1, 0, 0)),
    ("mount", 165, (0, 0, 0, 0, 0)),
    ("umount2", 166, (0, 0)),
    ("pivot_root", 155, (0, 0)),
    ("fsopen", 430, (0, 0)),
    ("fsmount", 432, (-1, 0, 0)),
    ("open_tree", 428, (-1, 0, 0)),
    ("move_mount", 429, (-1, 0, -1, 0, -1)),
    ("mount_setattr", 442, (-1, 0, 0, 0, 0)),
    ("fanotify_init", 300, (-1, 0)),
    ("kcmp", 312, (-1, -1, 0, 0, 0)),
    ("move_pages", 279, (0, 1, 0, 0, 0, -1)),
    ("swapoff", 168, (0,)),
    ("reboot", 169, (0, 0, 0, 0)),
    ("init_module", 175, (0, 0, 0)),
    ("finit_module", 313, (-1, 0, -1)),
    ("delete_module", 176, (0, 0)),
    ("kexec_load", 246, (0, 0, 0, -1)),
    ("kexec_file_load", 320, (-1, -1, 0, 0, -1)),
    ("sethostname", 170, (0, -1)),
    ("setdomainname", 171, (0, -1)),
    ("settimeofday", 164, (0, 1)),
    ("clock_settime", 227, (-1, 0)),
    ("syslog", 103, (-1, 0, 0)),
    ("iopl", 172, (-1,)),
    ("acct", 163, (-4096,)),
    ("quotactl", 179, (-1, 0, 0, 0)),
    ("vhangup", 153, None),
    ("process_madvise", 440, (-1, 0, 0, 0, 0)),
    ("open_tree_attr", 467, (-1, 0, 0, 0, 0)),
]


def outside(number, arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    ctypes.set_errno(0)
    libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) for a in arguments))
    return ctypes.get_errno()


@pytest.fixture(scope="module")
def answers(shared_sandbox):
    found = {}
    for user in USERS:
        lines = run_inside(shared_sandbox, f"""
for name, number, arguments in {DOORS!r}:
    print(name, *call(number, *(arguments or ())))
""", user)
        for line in lines:
            name, result, number = line.split()
            found[user, name] = int(result), int(number)
    return found


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", [row[0] for row in DOORS])
def test_closed(answers, user, name):
    result, got = answers[user, name]
    assert result == -1 and got in CLOSED, (result, errno.errorcode.get(got))


def test_the_same_calls_are_not_refused_outside(answers):
    """The machine's root is told what is wrong with the arguments instead: so it is the sandbox that
    refuses. Not every one of them, since kernels and machines have rules of their own."""
    told = {name: outside(number, arguments) for name, number, arguments in DOORS
            if arguments is not None}
    assert all(told.values()), told
    open_outside = [name for name, number in told.items() if number not in CLOSED]
    assert len(open_outside) > len(told) / 2, told
    assert all(answers["root", name][1] in CLOSED for name in open_outside)


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("upper", (0, 1 << 32), ids=("plain", "with a bit that the kernel ignores"))
def test_socket_families(shared_sandbox, user, upper):
    """Loopback, local sockets and the routing table are there. The hypervisor's vsock, the crypto
    interface, packet rings (memory that no limit counts) and all the other protocols are not."""
    lines = run_inside(shared_sandbox, f"""
for family in range(0, 50):
    print(family, *call(41, family + {upper}, 3 if family == 16 else 1, 0))
    print(-family, *call(53, family + {upper}, 1, 0, ctypes.create_string_buffer(8)))
""", user)
    made = {int(family) for family, result, _ in map(str.split, lines) if int(result) >= 0}
    assert made <= {1, 2, 10, 16, -1}, made
    assert made >= {1, 2, 16, -1}
    refused = {int(number) for _, result, number in map(str.split, lines) if int(result) < 0}
    assert refused <= {errno.EPERM, errno.EAFNOSUPPORT}, refused


def test_raw_sockets_hear_their_own_loopback(sandbox):
    """Root has CAP_NET_RAW, as in any container; what is on the machine's loopback is not for it."""
    ear = """
import select, socket, time
ear = quiet(socket.socket, socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_UDP)
if isinstance(ear, str):
    sys.exit(print(ear))
socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'from inside', ('127.0.0.1', 9))
print(ear.recv(100)[28:].decode(), flush=True)
while not os.path.exists('/tmp/sent'):
    time.sleep(0.01)
print(len(select.select([ear], [], [], 0)[0]), flush=True)
"""
    assert run_inside(sandbox, ear, "user") == ["EPERM"]
    pid = spawn_inside(sandbox, ear)
    wait_until(lambda: sandbox.logs(pid)["stdout"] == "from inside\n", 60, lambda: sandbox.logs(pid))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as host:
        host.sendto(b"from outside", ("127.0.0.1", 9))
    sandbox.run("touch /tmp/sent")
    wait_until(lambda: sandbox.logs(pid)["stdout"] == "from inside\n0\n", 60,
               lambda: sandbox.logs(pid))


@pytest.mark.parametrize("user", USERS)
def test_abstract_sockets_of_the_machine(shared_sandbox, user):
    """They have no path that a mount could hide; the network namespace does."""
    name = f"cella-test-{os.getpid()}"
    knock = ("import socket\n"
             f"print(quiet(socket.socket(socket.AF_UNIX).connect, '\\0{name}'))\n")
    with socket.socket(socket.AF_UNIX) as host, socket.socket(socket.AF_UNIX) as control:
        host.bind("\0" + name)
        host.listen()
        control.connect("\0" + name)
        assert run_inside(shared_sandbox, knock, user) == ["ECONNREFUSED"]


@pytest.mark.parametrize("user", USERS)
def test_setns_into_anything(shared_sandbox, user):
    """By a file of /proc and by a pidfd, its own and those of pid 1."""
    lines = run_inside(shared_sandbox, """
for pid in ('self', '1'):
    for name in ('mnt', 'pid', 'net', 'ipc', 'uts', 'user', 'cgroup', 'time'):
        fd = quiet(os.open, f'/proc/{pid}/ns/{name}', os.O_RDONLY)
        print(fd if isinstance(fd, str) else errno.errorcode[call(308, fd, 0)[1]])
for pid in (1, os.getpid()):
    fd, _ = call(434, pid, 0)
    print(errno.errorcode[call(308, fd, 0x7e020000)[1]])
""", user)
    assert len(lines) == 18 and set(lines) <= {"EPERM", "EACCES", "ENOENT"}, lines
    assert "EPERM" in lines


@pytest.mark.parametrize("user", USERS)
def test_handles_of_files(shared_sandbox, user):
    """Asking for a handle is fine; opening by one looks past every mount, and is not."""
    lines = run_inside(shared_sandbox, """
handle = ctypes.create_string_buffer(136)
ctypes.memmove(handle, (128).to_bytes(4, 'little'), 4)
mount = ctypes.c_int()
print(*call(303, -100, b'/dev/shm', handle, ctypes.byref(mount), 0))
root = os.open('/', os.O_RDONLY)
print(*call(304, root, handle, 0))
# The root of most file systems, guessed, as in the escape that was called shocker.
guess = ctypes.create_string_buffer(b'\\x08\\0\\0\\0\\x01\\0\\0\\0\\x02' + b'\\0' * 127)
print(*call(304, root, guess, 0))
""", user)
    assert lines[0] == "0 0", lines
    assert lines[1:] == ["-1 1", "-1 1"], lines


@pytest.mark.parametrize("user", USERS)
def test_device_nodes(shared_sandbox, user):
    """None can be made, whatever it would be: disks, memory, kmsg, a whiteout of the root's layer."""
    lines = run_inside(shared_sandbox, """
import stat
for kind in (stat.S_IFBLK, stat.S_IFCHR):
    for major, minor in ((1, 1), (1, 3), (1, 11), (5, 1), (7, 0), (8, 0), (10, 237), (254, 0), (0, 0)):
        print(quiet(os.mknod, f'/tmp/n{kind}-{major}-{minor}', kind | 0o666, os.makedev(major, minor)))
print(quiet(os.mkfifo, '/tmp/a-fifo-' + str(os.getuid())))
""", user)
    assert lines[:-1] == ["EPERM"] * 18, lines
    assert lines[-1] == "None", lines
    for name in ("kmsg", "mem", "vsock", "vhost-vsock", "kvm", "fuse", "userfaultfd", "net/tun",
                 "loop-control", "btrfs-control", "cpu_dma_latency"):
        assert shared_sandbox.exec(f"test -e /dev/{name}").exit_code == 1, name


@pytest.mark.parametrize("user", USERS)
def test_clock_and_names_of_the_machine(shared_sandbox, user):
    before = (socket.gethostname(), os.uname().nodename)
    lines = run_inside(shared_sandbox, """
import time
moment = (ctypes.c_long * 2)(1000000000, 0)
for clock in (0, 1, 7):
    print(errno.errorcode[call(227, clock, moment)[1]])
print(errno.errorcode[call(164, moment, 0)[1]])
tick = ctypes.create_string_buffer(208)
print(call(159, tick)[0] >= 0)  # asking is fine
ctypes.memmove(tick, (0x4000).to_bytes(4, 'little'), 4)
print(errno.errorcode[call(159, tick)[1]], errno.errorcode[call(305, 0, tick)[1]])
print(errno.errorcode[call(170, b'mine', 4)[1]], errno.errorcode[call(171, b'mine', 4)[1]])
print(time.time() > 1500000000)
""", user)
    assert set(lines[:4]) <= {"EPERM", "EINVAL"} and "EPERM" in lines[:4], lines
    assert lines[4:] == ["True", "EPERM EPERM", "EPERM EPERM", "True"], lines
    assert (socket.gethostname(), os.uname().nodename) == before


@pytest.mark.parametrize("user", USERS)
def test_namespaces_do_not_nest(shared_sandbox, user):
    """Which also keeps cgroups (release_agent), overlays and nftables out of reach: a process would
    have every capability in a user namespace of its own."""
    lines = run_inside(shared_sandbox, """
for flag in (0x10000000, 0x02000000, 0x20000, 0x10000000 | 0x20000 | 0x02000000):
    print(errno.errorcode[call(272, flag)[1]])
    print(errno.errorcode[call(56, flag | 17 | 1 << 32, 0, 0, 0, 0)[1]])
print(open('/proc/sys/user/max_user_namespaces').read().strip())
print(quiet(lambda: open('/proc/sys/user/max_user_namespaces', 'w').write('1')))
""", user)
    assert lines[:8] == ["EPERM"] * 8, lines
    assert lines[8] == "0" and lines[9] in ("EROFS", "EACCES"), lines


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("way", ["/proc", "/proc/self/root/proc", "/proc/thread-self/root/proc",
                                 "/proc/self/cwd/proc"])
def test_switches_of_the_machine(shared_sandbox, user, way):
    """core_pattern, modprobe, sysrq and the rest, by every path there is to them."""
    switches = ["sys/kernel/core_pattern", "sys/kernel/modprobe", "sys/kernel/hotplug",
                "sys/fs/binfmt_misc/register", "sys/kernel/hostname", "sys/kernel/pid_max",
                "sys/kernel/shmall", "sys/kernel/ns_last_pid", "sys/vm/panic_on_oom",
                "sys/vm/drop_caches", "sys/kernel/unprivileged_bpf_disabled",
                "sys/net/ipv4/ip_forward", "sys/net/ipv4/ping_group_range", "sysrq-trigger",
                "irq/default_smp_affinity", "sys/kernel/yama/ptrace_scope", "1/oom_score_adj"]
    before = [text_of(f"/proc/{name}") for name in switches[:2]]
    lines = run_inside(shared_sandbox, f"""
os.chdir('/')
for name in {switches!r}:
    path = '{way}/' + name
    print(name, quiet(os.open, path, os.O_WRONLY))
    place = quiet(os.open, path, os.O_PATH)
    if not isinstance(place, str):
        print(name, quiet(os.open, f'/proc/self/fd/{{place}}', os.O_WRONLY))
""", user)
    assert len(lines) >= len(switches)
    for line in lines:
        assert line.split()[1] in ("EROFS", "EACCES", "ENOENT", "EPERM"), line
    assert [text_of(f"/proc/{name}") for name in switches[:2]] == before


def text_of(path):
    try:
        return pathlib.Path(path).read_text()
    except OSError as failure:
        return failure.errno


@pytest.mark.parametrize("user", USERS)
def test_a_crash_runs_nothing_on_the_machine(shared_sandbox, user):
    """Where cores are piped to a program, that program is the machine's root. A limit of one byte is
    how the kernel is told to leave it alone, and no core comes of it either way."""
    lines = run_inside(shared_sandbox, """
import resource, signal
print(*resource.getrlimit(resource.RLIMIT_CORE))
try:
    resource.setrlimit(resource.RLIMIT_CORE, (resource.RLIM_INFINITY,) * 2)
    print('raised')
except ValueError:  # what Python makes of EPERM
    print('not raised')
folder = f'/var/tmp/crash-{os.getuid()}'
os.makedirs(folder)
os.chdir(folder)
pid = os.fork()
if pid == 0:
    os.kill(os.getpid(), signal.SIGSEGV)
status = os.waitpid(pid, 0)[1]
print(os.WTERMSIG(status), os.WCOREDUMP(status), os.listdir('.'))
""", user)
    assert lines == ["1 1", "not raised", "11 False []"], lines


@pytest.mark.parametrize("user", USERS)
def test_foreign_tables_of_system_calls(shared_sandbox, user):
    """int 0x80 and x32 reach calls under other numbers: the process that tries does not go on."""
    source = """
import mmap
def run(code):
    page = mmap.mmap(-1, 4096, prot=7)
    page.write(bytes.fromhex(code))
    function = ctypes.CFUNCTYPE(ctypes.c_long)(ctypes.addressof(ctypes.c_char.from_buffer(page)))
    pid = os.fork()
    if pid == 0:
        function()
        os._exit(0)
    return os.waitpid(pid, 0)[1] & 127
print(run('b814000000cd80c3'))          # getpid by int 0x80
print(run('b827000040' '0f05' 'c3'))    # getpid of x32
print(run('b827000000' '0f05' 'c3'))    # getpid, as it should be
"""
    lines = run_inside(shared_sandbox, source, user)
    assert lines[0] in ("31", "11") and lines[1] == "31" and lines[2] == "0", lines
