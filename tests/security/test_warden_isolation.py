# SPDX-License-Identifier: Apache-2.0
"""What a sandbox can and cannot do, seen from inside and from outside."""

import os
import pathlib
import re
import stat
import sys

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wardenlib  # noqa: E402
from wardenlib import NO_NEW_PRIVS, READ_ONLY_ROOT  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

DOCKER_CAPABILITIES = 0xA80425FB


@pytest.fixture(scope="module")
def warden():
    with wardenlib.Warden() as warden:
        yield warden
        known = {name: "stopped" for name in warden.list()}
        for name in known:
            warden.remove(name)
        assert warden.leaks() == []


@pytest.fixture(scope="module")
def box(warden):
    pid = warden.start("box")["pid"]

    class Box:
        outside_pid = pid

        @staticmethod
        def run(command, **how):
            return warden.run("box", command, **how)

        @staticmethod
        def output(command, **how):
            return warden.output("box", command, **how)

    return Box


def status_fields(text):
    return dict(line.split(":\t", 1) for line in text.splitlines() if ":\t" in line)


# identity


def test_root_is_nobody_outside(warden, box):
    uid_map = box.output("cat /proc/self/uid_map").split()
    base = int(uid_map[1])
    assert uid_map[0] == "0" and uid_map[2] == "65536"
    assert base >= 0x30000000
    assert os.stat(f"/proc/{box.outside_pid}").st_uid in (0, base)  # 0: not dumpable
    fields = status_fields(pathlib.Path(f"/proc/{box.outside_pid}/status").read_text())
    assert fields["Uid"].split() == [str(base)] * 4
    assert fields["Gid"].split() == [str(base)] * 4
    assert fields["Groups"].strip() == ""


def test_ids_on_disk_are_canonical(warden, box):
    box.output("touch /workspace/by-root")
    box.output("touch /workspace/by-user", user="user")
    upper = warden.layer("box") / "root/upper/workspace"
    assert (upper / "by-root").stat().st_uid == 0
    assert (upper / "by-user").stat().st_uid == 1000
    assert box.run("chown 70000 /workspace/by-root")[0] != 0


def test_users_and_sudo(box):
    assert box.output("id", user="user").startswith("uid=1000(user) gid=1000(user)")
    assert box.output("cd && pwd", user="user") == "/home/user\n"
    if not os.path.exists("/usr/bin/sudo") or not os.path.exists("/etc/pam.d/common-auth"):
        pytest.skip("this machine has no sudo that works")
    assert box.output("sudo id -u", user="user") == "0\n"


def test_names(box):
    assert box.output("hostname; cat /etc/hostname") == "box\nbox\n"
    assert "127.0.1.1 box\n" in box.output("cat /etc/hosts")
    assert box.output("python3 -c 'import socket; print(socket.gethostbyname(\"box\"))'") \
        == "127.0.1.1\n"


def test_namespaces_are_its_own(box):
    for name in ("user", "mnt", "pid", "uts", "ipc", "cgroup", "net"):
        outside = os.readlink(f"/proc/self/ns/{name}")
        assert os.readlink(f"/proc/{box.outside_pid}/ns/{name}") != outside
        assert box.output(f"readlink /proc/self/ns/{name}").strip() != outside


def test_network_is_loopback_alone(box):
    names = box.output("cat /proc/net/dev").splitlines()[2:]
    assert [line.split(":")[0].strip() for line in names] == ["lo"]
    assert box.output("python3 -c 'import socket; s = socket.create_server((\"127.0.0.1\", 0));"
                      " c = socket.create_connection(s.getsockname()); print(1)'") == "1\n"


def test_cgroup_namespace_shows_nothing_of_the_machine(box):
    for line in box.output("cat /proc/self/cgroup").splitlines():
        assert re.fullmatch(r"\d+:[^:]*:/(work/e\d+)?", line), line


# privileges


@pytest.mark.parametrize("pid", ["self", "1"])
def test_capabilities(box, pid):
    fields = status_fields(box.output(f"cat /proc/{pid}/status"))
    assert int(fields["CapBnd"], 16) == DOCKER_CAPABILITIES
    assert int(fields["CapPrm"], 16) == DOCKER_CAPABILITIES
    assert int(fields["CapInh"], 16) == 0
    assert int(fields["CapAmb"], 16) == 0
    assert fields["Seccomp"].strip() == "2"


def test_no_new_privs_follows_the_plan(warden, box):
    assert status_fields(box.output("cat /proc/1/status"))["NoNewPrivs"].strip() == "0"
    warden.start("strict", flags=NO_NEW_PRIVS)
    fields = status_fields(warden.output("strict", "cat /proc/self/status", user="user"))
    assert fields["NoNewPrivs"].strip() == "1"
    assert warden.run("strict", "sudo -n id", user="user")[0] != 0
    assert status_fields(warden.output("strict", "cat /proc/self/status"))["CapEff"].strip() \
        == f"{DOCKER_CAPABILITIES:016x}"
    warden.remove("strict")


@pytest.mark.parametrize("command", [
    "unshare -U true",
    "unshare -m true",
    "mount -t tmpfs x /mnt",
    "mount --bind /etc /mnt",
    "umount /proc/sys",
    "mount -o remount,rw /proc/sys",
    "mount -o remount,rw /dev",
    "mknod /tmp/null c 1 3 && head -c1 /tmp/null",
    "mknod /tmp/disk b 254 0",
    "hostname other",
    "dmesg",
    "swapoff -a && swapon /dev/null",
    "chroot /proc/1/root /bin/true",
    "nsenter -t 1 -m true",
    "echo 1 > /proc/sys/kernel/panic",
    "echo 1 > /proc/sys/vm/drop_caches",
    "echo b > /proc/sysrq-trigger",
    "echo x > /dev/file",
    "rm /dev/null",
    "ls /sys/fs/cgroup/cgroup.procs",
    "touch /sys/x",
    "date -s 2001-01-01",
    "setfattr -n trusted.x -v y /tmp || true; getfattr -n trusted.x /tmp",
])
def test_forbidden(box, command):
    status, out, err = box.run(command)
    assert status != 0, out + err


CLONE3 = """
import ctypes, os, signal
libc = ctypes.CDLL(None, use_errno=True)
for flags in (0x10000000, 0x20000, 0x40000000):  # user, mount, net
    for size in (88, 128):
        args = (ctypes.c_uint64 * 16)(flags, 0, 0, 0, signal.SIGCHLD)
        pid = libc.syscall(435, args, size)
        if pid == 0:
            os._exit(0)
        assert pid == -1, (flags, size)
        print(os.strerror(ctypes.get_errno()))
"""


def test_no_namespaces_even_as_the_agent_asks(box):
    """The filter lets clone3 through for the agent; who imitates it has nothing of it."""
    for user in ("root", "user"):
        answers = set(box.output(f"python3 -c '{CLONE3}'", user=user).splitlines())
        assert answers <= {"Function not implemented", "No space left on device",
                           "Operation not permitted"}


PTRACE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
assert libc.ptrace(16, 1, 0, 0) == -1, "attached to the agent"
print(os.strerror(ctypes.get_errno()))
"""


def test_the_agent_is_out_of_reach(box):
    for name in ("exe", "root", "cwd"):
        assert box.run(f"readlink /proc/1/{name}")[0] != 0
    for name in ("mem", "environ", "maps", "auxv"):
        assert box.run(f"cat /proc/1/{name}")[0] != 0
    assert box.run("ls /proc/1/fd/")[0] != 0
    assert "not permitted" in box.output(f"python3 -c '{PTRACE}'")
    box.run("kill -9 1; kill -TERM 1")
    assert box.output("echo alive") == "alive\n"


def test_the_agents_program_cannot_be_changed(warden, box):
    path = f"/proc/{box.outside_pid}/exe"
    assert "memfd" in os.readlink(path)
    mode = os.stat(path).st_mode
    assert stat.S_IMODE(mode) == 0o111


def test_core_dumps_are_off_and_files_limited(box):
    assert box.output("ulimit -c; ulimit -n") == "0\n1024\n"


# files


def test_root_is_writable(box):
    box.output("echo 1 > /a && echo 2 > /usr/b && echo 3 > /etc/c && mkdir /opt/d && "
               "echo 4 > /home/user/e && echo 5 > /root/f && touch /usr/bin/true")
    assert box.output("cat /a /usr/b /etc/c") == "1\n2\n3\n"
    assert not os.path.exists("/usr/b") and not os.path.exists("/a")


def test_user_can_write_where_it_should(box):
    box.output("touch /workspace/u ~/u /tmp/u /dev/shm/u", user="user")
    assert box.run("touch /etc/u", user="user")[0] != 0
    assert box.run("touch /usr/u", user="user")[0] != 0


def test_directories_of_the_image_can_be_renamed_and_removed(box):
    path = next(entry.path for entry in os.scandir("/usr/share")
                if entry.is_dir(follow_symlinks=False) and os.listdir(entry.path))
    box.output(f"mv {path} {path}-moved && ls {path}-moved && rm -r {path}-moved")
    assert box.run(f"ls {path} {path}-moved")[0] != 0
    assert os.path.isdir(path)


def test_programs_of_the_machine_run(box):
    assert box.output("python3 -c 'print(6 * 7)'") == "42\n"
    assert box.output("bash -c 'echo $((1 + 1))' | sed s/2/two/") == "two\n"


def test_pty(box):
    assert box.output("python3 -c 'import os, pty; m, s = os.openpty(); print(os.ttyname(s))'") \
        .startswith("/dev/pts/")


def test_nothing_of_the_machines_root(warden, box):
    listing = set(box.output("ls -A /").split())
    assert listing <= {"bin", "sbin", "lib", "lib32", "lib64", "libx32", "boot", "dev", "etc",
                       "home", "media", "mnt", "opt", "proc", "root", "run", "srv", "sys", "tmp",
                       "usr", "var", "workspace", "a"}
    assert box.output("ls -A /run /mnt /home").count("user") == 1
    mounts = box.output("cat /proc/self/mountinfo")
    assert warden.data not in mounts
    assert "/dev/" not in "".join(line.split(" - ")[1] for line in mounts.splitlines())


def test_secrets_of_the_machines_etc_stay_out(box):
    assert box.output("cat /etc/shadow") != pathlib.Path("/etc/shadow").read_text()
    for path in ("/etc/ssl/private", "/etc/ssh", "/etc/machine-id", "/etc/apt/auth.conf"):
        assert box.run(f"ls {path}")[0] != 0


def hidden_in_usr():
    """Some things below /usr that not everybody may read."""
    for top in ("/usr/lib", "/usr/libexec", "/usr/bin", "/usr/share"):
        for folder, folders, files in os.walk(top):
            for name in list(folders):
                path = os.path.join(folder, name)
                mode = os.lstat(path).st_mode
                if stat.S_ISDIR(mode) and mode & 5 != 5:
                    folders.remove(name)
                    yield path
            for name in files:
                path = os.path.join(folder, name)
                mode = os.lstat(path).st_mode
                if stat.S_ISREG(mode) and not mode & 4:
                    yield path


def test_what_is_not_world_readable_is_masked(box):
    hidden = [path for _, path in zip(range(20), hidden_in_usr())]
    if not hidden:
        pytest.skip("this machine has nothing to hide in /usr")
    for path in hidden:
        assert box.run(f"ls -d '{path}'")[0] != 0, path


@pytest.mark.parametrize("path", ["/proc/acpi", "/proc/scsi", "/sys/firmware",
                                  "/sys/devices/virtual/powercap"])
def test_masked_folders_are_empty(box, path):
    if not os.path.isdir(path):
        pytest.skip(f"no {path} on this kernel")
    assert box.output(f"ls -A {path}") == ""
    assert box.run(f"touch {path}/x")[0] != 0


@pytest.mark.parametrize("path", ["/proc/kcore", "/proc/keys", "/proc/timer_list",
                                  "/proc/interrupts", "/proc/sched_debug"])
def test_masked_files_are_empty(box, path):
    if not os.path.exists(path):
        pytest.skip(f"no {path} on this kernel")
    assert box.output(f"head -c 100 {path}") == ""


def test_devices(box):
    names = set(box.output("ls /dev").split())
    assert names == {"null", "zero", "full", "random", "urandom", "tty", "fd", "stdin", "stdout",
                     "stderr", "ptmx", "pts", "shm", "mqueue", "core"}
    assert box.output("head -c 4 /dev/zero | wc -c; echo x > /dev/null; test -c /dev/null") \
        == "4\n"


def test_read_only_root(warden):
    warden.start("ro", flags=READ_ONLY_ROOT | NO_NEW_PRIVS)
    for path in ("/x", "/usr/x", "/etc/x", "/home/user/x", "/var/tmp/x"):
        assert warden.run("ro", f"touch {path}")[0] != 0, path
    assert warden.output("ro", "cat /etc/hostname") == "box\n"
    warden.output("ro", "echo 1 > /tmp/x && echo 2 > /workspace/x", user="user")
    assert not (warden.layer("ro") / "root/upper/workspace").exists()
    warden.remove("ro")


def test_a_link_instead_of_a_mount_point_leads_nowhere(warden):
    """What a sandbox did to its root must not bend the mounts of its next start."""
    warden.start("bent")
    warden.output("bent", "rmdir /workspace && ln -s /etc /workspace && "
                          "rm -rf /tmp && ln -s /proc/1/root /tmp")
    warden.stop("bent")
    try:
        warden.start("bent", flags=READ_ONLY_ROOT)
    except wardenlib.wirelib.WireError:
        pass  # refusing is fine; starting is, too, if the links were not followed
    else:
        mounts = warden.output("bent", "cat /proc/mounts")
        assert " /etc tmpfs" not in mounts
    warden.remove("bent")
    assert os.path.exists("/etc/passwd")


def test_mount_points_are_made_again(warden):
    """/proc and the like cannot be removed while mounted, but the layer may have come so."""
    warden.start("odd")
    warden.stop("odd")
    upper = warden.layer("odd") / "root/upper"
    os.symlink("/etc", upper / "proc")
    os.mknod(upper / "sys", stat.S_IFCHR, os.makedev(0, 0))  # a whiteout: it is not there
    warden.start("odd")
    assert warden.output("odd", "ls -d /proc/1 /sys/kernel") == "/proc/1\n/sys/kernel\n"
    warden.remove("odd")


# limits


def test_disk_quota(warden):
    warden.start("disk", disk_bytes=16 << 20)
    about = warden.connection.call("WARDEN_HELLO")
    if "not enforced" in about["storage"]:
        pytest.skip(about["storage"])
    status, _, err = warden.run("disk", "dd if=/dev/zero of=/workspace/big bs=1M count=64")
    assert status != 0 and "quota exceeded" in err.lower()
    size = int(warden.output("disk", "stat -c %s /workspace/big"))
    assert 12 << 20 <= size <= 16 << 20
    warden.output("disk", "rm /workspace/big && sync")
    warden.output("disk", "head -c 4M /dev/zero > /usr/other")
    warden.stop("disk")
    warden.start("disk", disk_bytes=48 << 20)  # a bigger plan counts from then on
    warden.output("disk", "head -c 32M /dev/zero > /workspace/big && sync")
    warden.remove("disk")


def test_memory_limit(warden):
    warden.start("mem", memory_bytes=64 << 20)
    status, _, _ = warden.run("mem", "python3 -c 'x = bytearray(200 << 20); print(len(x))'")
    assert status == 137
    assert warden.output("mem", "echo alive") == "alive\n"  # the agent has survived it
    status, _, _ = warden.run("mem", "head -c 100M /dev/zero > /dev/shm/x")
    assert status != 0
    warden.remove("mem")


FORKS = """
import os, sys
n = 0
try:
    while True:
        if os.fork() == 0:
            import time; time.sleep(60); os._exit(0)
        n += 1
except BlockingIOError:
    print(n)
"""


def test_process_limit(warden):
    warden.start("pids", pids_max=32)
    count = int(warden.output("pids", f"python3 -c '{FORKS}'"))
    assert 20 <= count <= 32
    assert warden.output("pids", "true; echo ok") == "ok\n"  # the tree went with its command
    warden.remove("pids")


def cpu_share(warden, sandbox_id):
    """Quota over period, as the kernel has it."""
    name = f"cella-{warden.instance()}/{sandbox_id}"
    v1, v2 = pathlib.Path("/sys/fs/cgroup/cpu", name), pathlib.Path("/sys/fs/cgroup", name)
    if v1.exists():
        quota, period = ((v1 / file).read_text() for file in ("cpu.cfs_quota_us",
                                                              "cpu.cfs_period_us"))
    else:
        quota, period = (v2 / "cpu.max").read_text().split()
    return int(quota) / int(period)


def test_cpu_limit(warden):
    warden.start("cpu", cpu_millis=250)
    assert cpu_share(warden, "cpu") == 0.25
    used = warden.output("cpu", "python3 -c '\n"
                                "import time\n"
                                "end, used = time.monotonic() + 1, time.process_time()\n"
                                "while time.monotonic() < end: pass\n"
                                "print(time.process_time() - used)'")
    assert float(used) < 0.6
    warden.remove("cpu")


def test_shm_size(box):
    assert box.output("df --output=size -B1 /dev/shm | tail -1").strip() == str(16 << 20)


INOTIFY = """
import ctypes
libc = ctypes.CDLL(None)
print(sum(libc.inotify_init() >= 0 for _ in range(120)))
"""


def test_kernel_counters_are_per_sandbox(warden):
    """Root's 128 inotify instances are not shared by all sandboxes."""
    for number in range(3):
        warden.start(f"watch{number}")
        warden.spawn(f"watch{number}", f"python3 -c '{INOTIFY}import time; time.sleep(60)'")
    for number in range(3):
        assert int(warden.output(f"watch{number}", f"python3 -c '{INOTIFY}'")) > 5
        warden.remove(f"watch{number}")


def test_sandboxes_do_not_meet(warden):
    for name in ("left", "right"):
        warden.start(name)
    ranges = [warden.output(name, "cat /proc/self/uid_map").split()[1]
              for name in ("left", "right")]
    assert ranges[0] != ranges[1]
    warden.output("left", "echo 1 > /tmp/secret; echo 1 > /dev/shm/secret")
    assert warden.run("right", "cat /tmp/secret /dev/shm/secret")[0] != 0
    assert warden.output("right", "ls /proc | grep -c '^[0-9]'") != "0\n"
    assert warden.run("right", "touch /dev/x")[0] != 0  # /dev is shared, and so read-only
    for name in ("left", "right"):
        warden.remove(name)
