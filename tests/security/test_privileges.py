# SPDX-License-Identifier: Apache-2.0
"""What root inside may ask the kernel for, and what it is refused."""

import os

import pytest

# Docker's default: chown dac_override fowner fsetid kill setgid setuid setpcap net_bind_service
# net_raw sys_chroot mknod audit_write setfcap
DOCKER_DEFAULT = 0x00000000A80425FB

EPERM, EBADF, EACCES, ENOSYS, EPROTONOSUPPORT = 1, 9, 13, 38, 93

# name, number on x86-64, arguments as Python source. Each must fail with EPERM (EACCES, ENOSYS).
REFUSED = [
    ("mount", 165, "b'none', b'/mnt', b'tmpfs', 0, 0"),
    ("umount2", 166, "b'/proc', 2"),
    ("pivot_root", 155, "b'/', b'/'"),
    ("unshare(user)", 272, "0x10000000"),
    ("unshare(mount)", 272, "0x00020000"),
    ("unshare(net)", 272, "0x40000000"),
    ("clone(user)", 56, "0x10000011, 0, 0, 0, 0"),
    ("clone(mount)", 56, "0x00020011, 0, 0, 0, 0"),
    ("clone3", 435, "0, 0"),
    ("setns", 308, "0, 0"),
    ("keyctl", 250, "0, 0, 0"),
    ("add_key", 248, "b'user', b'x', b'x', 1, -2"),
    ("request_key", 249, "b'user', b'x', 0, 0"),
    ("bpf", 321, "0, 0, 0"),
    ("perf_event_open", 298, "0, 0, -1, -1, 0"),
    ("userfaultfd", 323, "0"),
    ("init_module", 175, "0, 0, b''"),
    ("finit_module", 313, "0, b'', 0"),
    ("delete_module", 176, "b'x', 0"),
    ("kexec_load", 246, "0, 0, 0, 0"),
    ("reboot", 169, "0xfee1dead, 672274793, 0, 0"),
    ("swapon", 167, "b'/x', 0"),
    ("sethostname", 170, "b'x', 1"),
    ("setdomainname", 171, "b'x', 1"),
    ("settimeofday", 164, "0, 0"),
    ("clock_settime", 227, "0, (ctypes.c_long * 2)(0, 0)"),
    ("adjtimex", 159, "ctypes.create_string_buffer(b'\\x02' + b'\\0' * 300)"),
    ("iopl", 172, "3"),
    ("ioperm", 173, "0, 1, 1"),
    ("acct", 163, "b'/x'"),
    ("quotactl", 179, "0, 0, 0, 0"),
    ("syslog", 103, "3, 0, 0"),
    ("open_by_handle_at", 304, "0, 0, 0"),
    ("fsopen", 430, "b'tmpfs', 0"),
    ("fspick", 433, "-100, b'/', 0"),
    ("open_tree", 428, "-100, b'/', 1"),
    ("move_mount", 429, "-100, b'/', -100, b'/', 0"),
    ("mount_setattr", 442, "-100, b'/', 0, 0, 0"),
    ("io_uring_setup", 425, "1, ctypes.create_string_buffer(200)"),
    ("lookup_dcookie", 212, "0, 0, 0"),
    ("vhangup", 153, ""),
    ("nfsservctl", 180, "0, 0, 0"),
    ("vm86", 1073741823, ""),
    ("mknod(block)", 133, "b'/tmp/dev', 0o060600, 0x0700"),
    ("mknod(char)", 133, "b'/tmp/dev', 0o020600, 0x0101"),
    ("setxattr(trusted)", 188, "b'/tmp', b'trusted.x', b'x', 1, 0"),
    ("setpriority", 141, "0, 0, -20"),
    ("pidfd_getfd", 438, "0, 0, 0"),
]

PROBE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
for name, number, call in {rows!r}:
    ctypes.set_errno(0)
    result = eval('libc.syscall(ctypes.c_long(number), ' + call + ')')
    if name.startswith('clone') and result == 0:
        os._exit(0)
    print(name, result, ctypes.get_errno())
"""


@pytest.fixture(scope="module")
def refusals(shared_sandbox):
    done = shared_sandbox.python(PROBE.format(rows=REFUSED))
    assert done.exit_code == 0, done
    return {name: (int(result), int(number)) for name, result, number in
            (line.rsplit(" ", 2) for line in done.stdout.splitlines())}


@pytest.mark.parametrize("name", [row[0] for row in REFUSED])
def test_refused(refusals, name):
    result, number = refusals[name]
    accepted = {EPERM, EACCES, ENOSYS}
    if name == "pidfd_getfd":
        accepted |= {EBADF}  # allowed by name; there is nobody it could be used on
    assert result == -1 and number in accepted, (result, number)


def status(sandbox, field, command="cat /proc/self/status"):
    lines = dict(line.split(":\t", 1) for line in sandbox.run(command).splitlines() if ":\t" in line)
    return lines[field]


def test_capabilities(shared_sandbox):
    assert int(status(shared_sandbox, "CapBnd"), 16) == DOCKER_DEFAULT
    assert int(status(shared_sandbox, "CapPrm"), 16) == DOCKER_DEFAULT
    assert int(status(shared_sandbox, "CapEff"), 16) == DOCKER_DEFAULT
    assert int(status(shared_sandbox, "CapAmb"), 16) == 0
    assert int(status(shared_sandbox, "CapInh"), 16) == 0


def test_capabilities_of_user(shared_sandbox):
    by_user = "su user -c 'cat /proc/self/status'"
    assert int(status(shared_sandbox, "CapEff", by_user), 16) == 0
    assert int(status(shared_sandbox, "CapBnd", by_user), 16) == DOCKER_DEFAULT


def test_seccomp_is_on(shared_sandbox):
    assert status(shared_sandbox, "Seccomp") == "2"
    assert status(shared_sandbox, "Seccomp", "cat /proc/1/status") == "2"
    assert status(shared_sandbox, "Seccomp", "su user -c 'cat /proc/self/status'") == "2"


def test_a_setuid_program_gains_no_more_than_root_inside(shared_sandbox):
    shared_sandbox.run("cp /usr/bin/cat /usr/local/bin/suidcat && chmod 4755 /usr/local/bin/suidcat")
    caps = status(shared_sandbox, "CapEff", "su user -c '/usr/local/bin/suidcat /proc/self/status'")
    assert int(caps, 16) == DOCKER_DEFAULT


def test_pid_1_cannot_be_traced(shared_sandbox):
    done = shared_sandbox.python(
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "for request in (16, 0x4206):\n"  # PTRACE_ATTACH, PTRACE_SEIZE
        "    print(libc.ptrace(request, 1, 0, 0), ctypes.get_errno())\n"
        "buf = ctypes.create_string_buffer(8)\n"
        "iov = (ctypes.c_size_t * 2)(ctypes.addressof(buf), 8)\n"
        "print(libc.process_vm_readv(1, iov, 1, iov, 1, 0), ctypes.get_errno())\n"
        "for path in ('/proc/1/mem', '/proc/1/environ', '/proc/1/maps'):\n"
        "    try: open(path, 'rb').read(1); print(path)\n"
        "    except OSError as e: print(-1, e.errno)\n")
    assert set(done.stdout.split("\n")[:-1]) <= {"-1 1", "-1 13"}, done


def test_children_can_be_traced(shared_sandbox):
    """strace and debuggers work on one's own processes."""
    if shared_sandbox.exec("command -v strace").exit_code != 0:
        pytest.skip("no strace on this machine")
    done = shared_sandbox.exec("strace -f -o /tmp/trace true && grep -c exit_group /tmp/trace")
    assert done.exit_code == 0 and done.stdout.strip() == "1", done


def test_pid_1_cannot_be_killed(shared_sandbox):
    before = shared_sandbox.init_start_time()
    shared_sandbox.exec("kill -9 1; kill -TERM 1; kill -STOP 1; kill -INT 1; kill -HUP 1")
    assert shared_sandbox.init_start_time() == before


def test_the_agents_descriptors_are_out_of_reach(shared_sandbox):
    done = shared_sandbox.exec("ls /proc/1/fd /proc/1/cwd/ /proc/1/root/ 2>&1")
    assert done.exit_code != 0 and "denied" in done.stdout, done


def test_32_bit_calls_do_not_pass_the_filter(shared_sandbox):
    """int 0x80 reaches other system calls by other numbers: 21 is mount there."""
    done = shared_sandbox.python(
        "import ctypes, mmap\n"
        "code = bytes.fromhex('5331c9bbffffffffb815000000cd805bc3')\n"  # mov eax,21; int 0x80
        "m = mmap.mmap(-1, 4096, prot=7)\n"
        "m.write(code)\n"
        "f = ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(m)))\n"
        "print(f())\n")
    if done.exit_code == 0:
        assert int(done.stdout) in (-EPERM, -ENOSYS), done
    else:
        assert done.exit_code in (159, 139), done  # SIGSYS, or no 32-bit entry in this kernel


def test_no_new_user_namespace_through_programs(shared_sandbox):
    assert shared_sandbox.exec("unshare -U true").exit_code != 0
    assert shared_sandbox.exec("unshare -r id").exit_code != 0
    assert shared_sandbox.exec("su user -c 'unshare -Ur id'").exit_code != 0


CLONE3_PROBE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
NAMESPACES = dict(user=0x10000000, mount=0x20000, net=0x40000000, pid=0x20000000, uts=0x4000000,
                  ipc=0x8000000, cgroup=0x2000000, time=0x80)
for size in (64, 80, 88, 96, 128, 256, 4096):
    for name, flag in NAMESPACES.items():
        for extra in (0, 0x10000000):
            args = (ctypes.c_uint64 * 512)()
            args[0], args[4] = flag | extra, 17
            pid = libc.syscall(435, args, ctypes.c_size_t(size))
            if pid == 0:
                os._exit(0)
            if pid > 0:
                os.waitpid(pid, 0)
                print('made', name, 'with', size)
"""


def test_clone3_makes_no_namespace(shared_sandbox):
    """Its flags are in memory, where the filter cannot look: whatever size it is called with, no new
    namespace may come of it."""
    done = shared_sandbox.python(CLONE3_PROBE)
    assert (done.exit_code, done.stdout) == (0, ""), done
    shared_sandbox.write("/tmp/probe.py", CLONE3_PROBE)
    done = shared_sandbox.exec("su user -c 'python3 /tmp/probe.py'")
    assert (done.exit_code, done.stdout) == (0, ""), done


# family, type, protocol of sockets, and whether sandboxes have them.
SOCKETS = [("AF_INET", "SOCK_STREAM", 6, True), ("AF_INET", "SOCK_DGRAM", 17, True), ("AF_INET", "SOCK_RAW", 1, True),
           ("AF_INET6", "SOCK_RAW", 58, True), ("AF_NETLINK", "SOCK_RAW", 0, True), ("AF_NETLINK", "SOCK_RAW", 4, True),
           ("AF_INET", "SOCK_STREAM", 262, False),  # MPTCP
           ("AF_INET", "SOCK_STREAM", 132, False),  # SCTP
           ("AF_INET6", "SOCK_DGRAM", 136, False),  # UDP-Lite
           ("AF_INET", "SOCK_RAW", 255, False),
           ("AF_NETLINK", "SOCK_RAW", 9, False),    # audit
           ("AF_NETLINK", "SOCK_RAW", 12, False),   # netfilter
           ("AF_NETLINK", "SOCK_RAW", 16, False)]   # generic


def test_socket_protocols(shared_sandbox):
    """Those that are refused fail as on a kernel without them, which is what useradd and PAM expect of audit."""
    done = shared_sandbox.python(
        f"import socket\nfor family, kind, protocol, _ in {SOCKETS}:\n"
        "    try: socket.socket(getattr(socket, family), getattr(socket, kind), protocol).close(); print(0)\n"
        "    except OSError as error: print(error.errno)\n")
    assert [int(line) for line in done.stdout.split()] == [0 if row[3] else EPROTONOSUPPORT for row in SOCKETS], done


def test_users_can_be_made(shared_sandbox):
    """useradd and PAM ask for the audit interface first."""
    done = shared_sandbox.exec("useradd -M somebody && su somebody -c 'id -un' && userdel somebody")
    assert done.exit_code == 0 and done.stdout.strip() == "somebody", done


def test_nobody_has_the_kernel_watch_the_machines_load(shared_sandbox):
    if not os.path.exists("/proc/pressure/cpu"):
        pytest.skip("this kernel does not count pressure")
    done = shared_sandbox.exec("for f in /proc/pressure/*; do printf 'some 150000 2000000' > $f && echo written; done")
    assert "written" not in done.stdout, done


def test_sys_tells_no_paths_of_the_host(shared_sandbox):
    assert shared_sandbox.run("ls /sys/devices/virtual/block") == ""
    assert shared_sandbox.exec("cat /sys/block/*/loop/backing_file /sys/dev/block/*/loop/backing_file").stdout == ""
