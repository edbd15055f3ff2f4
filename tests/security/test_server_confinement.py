# SPDX-License-Identifier: Apache-2.0
"""What cellad, the egress process and git could do if they were taken over: confine-attempts is confined as each of
them, and tries. The running processes are seen to be confined, too, also after they were killed."""

import ctypes
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile

import pytest

from cella_server import bin_dir, wait_until
from fake_server import FakeServer

EPERM, ENOENT, EACCES, EROFS, ENOSYS = 1, 2, 13, 30, 38
ATTEMPTS = bin_dir() / "tests/unit/confine/confine-attempts"
LANDLOCK_CREATE_RULESET = 444

# What every process of the server does without: the errno is EPERM unless another one is named.
REFUSED = """mount umount2 pivot_root chroot unshare-user unshare-mount unshare-net setns clone-user clone-mount ptrace
process_vm_readv process_vm_writev kcmp bpf perf_event_open userfaultfd io_uring_setup io_setup keyctl add_key request_key
kexec_load init_module finit_module name_to_handle_at open_by_handle_at fanotify_init fsopen open_tree mknodat fchownat
setresuid setgroups capset personality quotactl swapon reboot syslog sethostname shmget memfd_secret packet-socket
vsock-socket alg-socket kill-others""".split()
EVERYBODY = {**dict.fromkeys(REFUSED, {EPERM}), "clone3": {ENOSYS}, "newer": {ENOSYS}, "getpid": {0},
             **dict.fromkeys("read-etc read-zone read-proc-self read-urandom write-null thread localhost timezone".split(), {0}),
             **dict.fromkeys("list-home list-var list-sys read-neighbour".split(), {ENOENT}),
             **dict.fromkeys("write-etc write-root write-proc write-oom".split(), {EROFS, EACCES})}
ONE = {
    "cellad": {"tcp-socket": {0}, "unix-socket": {0}, "run-git": {0}, "run-true": {EACCES}, "read-database": {0},
               "write-database": {0}, "write-history": {0}, "move-history": {0}, "remove-history": {0},
               "write-data": {EROFS}, "write-proc": {0}, "write-oom": {0}, "new-group": {0}},
    "egress": {"tcp-socket": {0}, "unix-socket": {0}, "run-git": {EPERM}, "run-true": {EPERM},
               "read-database": {ENOENT}, "write-database": {ENOENT}, "write-history": {ENOENT},
               "move-history": {EPERM}, "remove-history": {EPERM}, "write-data": {ENOENT}, "new-group": {EPERM}},
    "git": {"tcp-socket": {EPERM}, "unix-socket": {EPERM}, "run-git": {0}, "run-true": {EACCES},
            "read-database": {EACCES}, "write-database": {EACCES}, "write-history": {0}, "move-history": {0},
            "remove-history": {0}, "write-data": {EROFS, EACCES}, "new-group": {0}},
}
LANDLOCKS = {"run-true", "read-database", "write-database", "write-proc", "write-oom"}  # that depend on it


def has_landlock():
    return ctypes.CDLL(None).syscall(LANDLOCK_CREATE_RULESET, None, 0, 1) >= 2


@pytest.fixture
def folder():
    """A data folder, as far as the processes may change it, and a file beside it."""
    if os.geteuid() != 0:
        pytest.skip("needs root: a view of the file system is a mount namespace")
    if not ATTEMPTS.exists():
        pytest.skip(f"{ATTEMPTS} is not built")
    user = pwd.getpwnam("cella")
    top = pathlib.Path(tempfile.mkdtemp(prefix="cella-test-", dir="/tmp"))
    top.chmod(0o755)
    data = top / "data"
    for part in ("db", "history/deep", "audit"):
        (data / part).mkdir(parents=True)
    (data / "db/file").touch()
    (top / "data-neighbour").touch()
    for path in (*data.glob("*"), *data.glob("*/*")):
        os.chown(path, user.pw_uid, user.pw_gid)
    yield data
    shutil.rmtree(top)


@pytest.mark.parametrize("process", sorted(ONE))
def test_what_is_tried_is_refused(folder, process):
    done = subprocess.run([ATTEMPTS, process, folder, str(pwd.getpwnam("cella").pw_uid)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == 0, done
    got = {name: int(error) for name, error in (line.split() for line in done.stdout.splitlines())}
    expected = {**EVERYBODY, **ONE[process]}
    if not has_landlock():
        expected = {name: errors for name, errors in expected.items() if name not in LANDLOCKS}
    assert {name: got.get(name) for name, errors in expected.items() if got.get(name) not in errors} == {}


def fields(pid):
    lines = pathlib.Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value.strip() for name, value in (line.split(":", 1) for line in lines)}


def assert_confined(pid, root=True):
    status = fields(pid)
    assert status["Seccomp"] == "2" and status["NoNewPrivs"] == "1", status
    assert int(status["CapEff"], 16) == int(status["CapPrm"], 16) == 0
    if root:
        assert os.readlink(f"/proc/{pid}/ns/mnt") != os.readlink("/proc/self/ns/mnt")
        names = set(os.listdir(f"/proc/{pid}/root"))
        assert {"usr", "etc", "proc"} <= names and not names & {"root", "home", "sys", "boot", "srv"}, names


def test_running_processes_are_confined(server):
    cellad = server.pids().cellad
    assert_confined(cellad)
    assert_confined(wait_until(server.egress_pid, 30, "an egress process"))
    data = pathlib.Path(f"/proc/{cellad}/root{server.data}")
    assert os.listdir(data / "run/agents") == os.listdir(server.data / "run/agents")
    assert os.listdir(data / "volume") == []  # what is mounted there is the warden's


def test_the_log_and_the_doctor_say_what_is_in_force(server):
    found = server.cli("doctor").stdout
    line = next(line for line in found.splitlines() if "confinement" in line)
    assert ("Landlock" in line) and ("version" in line) == has_landlock(), found


def test_confined_again_after_a_crash(server_factory):
    server = server_factory()
    box = server.create()
    before = server.kill("cellad")
    server.kill_egress()
    server.wait_recovered(before, "cellad")
    assert_confined(server.pids().cellad)
    assert_confined(wait_until(server.egress_pid, 30, "an egress process"))
    assert box.run("echo still here") == "still here"
    # A warden that ends in order takes along what it has mounted in the data folder.
    before = server.kill("warden", sig=signal.SIGTERM)
    server.wait_recovered(before, "warden", "cellad")
    box.wait_status("stopped", "failed", "running")
    assert server.create().run("echo works") == "works"
    log = server.log_path.read_text()
    assert "confined by a system call filter" in log


def test_without_root_there_is_all_but_the_view():
    server = FakeServer()
    try:
        assert_confined(server.pids().cellad, root=False)
    finally:
        server.close()
