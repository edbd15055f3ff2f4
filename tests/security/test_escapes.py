# SPDX-License-Identifier: Apache-2.0
"""Ways out that were ways out somewhere once."""

import os
import pathlib

import pytest

MASKED = ["/proc/kcore", "/proc/keys", "/proc/timer_list", "/proc/sched_debug", "/proc/acpi",
          "/proc/scsi", "/sys/firmware", "/sys/devices/virtual/block"]
READ_ONLY = ["/proc/sys/kernel/hostname", "/proc/sys/kernel/core_pattern", "/proc/sys/vm/swappiness",
             "/proc/sys/net/ipv4/ip_forward", "/proc/sysrq-trigger", "/proc/irq/default_smp_affinity",
             "/proc/bus", "/proc/fs", "/sys/kernel/uevent_helper", "/sys/power/state",
             "/sys/fs/cgroup/cgroup.procs"]


@pytest.mark.parametrize("path", MASKED)
def test_masked(shared_sandbox, path):
    """Not there, empty, or unreadable: never its content."""
    done = shared_sandbox.exec(f"if [ -d {path} ]; then ls -A {path}; else head -c 64 {path}; fi")
    assert done.stdout == "", done


@pytest.mark.parametrize("path", READ_ONLY)
def test_read_only(shared_sandbox, path):
    done = shared_sandbox.exec(
        f"if [ -d {path} ]; then touch {path}/x; else echo 1 > {path}; fi")
    assert done.exit_code != 0, done


def test_proc_cannot_be_uncovered(shared_sandbox):
    assert shared_sandbox.exec("umount /proc/kcore; umount /proc/sys; mount -o remount,rw /proc/sys"
                               ).exit_code != 0
    assert shared_sandbox.exec("mount -t proc proc /mnt").exit_code != 0


def test_mount_table_tells_nothing_of_the_host(server, shared_sandbox):
    table = shared_sandbox.run("cat /proc/self/mountinfo")
    assert str(server.data) not in table
    assert "volume.img" not in table


@pytest.fixture
def canary(tmp_path):
    """A file on the host that must be neither read nor changed."""
    path = tmp_path / "canary"
    path.write_text("host secret")
    tmp_path.chmod(0o755)
    path.chmod(0o666)
    yield path
    assert path.read_text() == "host secret"


def test_symlinks_end_inside(sandbox, canary):
    """A link's target is looked up in the sandbox's own root, whatever it says."""
    sandbox.run(f"ln -s {canary} /workspace/abs; ln -s ../../../../../..{canary} /workspace/rel;"
                " ln -s /etc/shadow /workspace/shadow; ln -s / /workspace/root")
    paths = ("abs", "rel", f"root{canary}")
    for path in paths:
        answer = sandbox.request("GET", f"/filesystem/workspace/{path}")
        assert answer.status == 404, answer
    for path in paths:
        answer = sandbox.request("PUT", f"/filesystem/workspace/{path}", {"content": "changed"})
        assert answer.status in (200, 404, 409), answer  # inside it may well be made
    host = pathlib.Path("/etc/shadow").read_text().splitlines()[0]
    assert host.split(":")[1] in ("*", "!", "") or \
        host not in sandbox.request("GET", "/filesystem/workspace/shadow").text


@pytest.mark.parametrize("path", [
    "/proc/1/root/etc/shadow", "/proc/1/cwd/etc/shadow", "/proc/1/fd/3", "/proc/1/fd/4",
    "/proc/1/mem", "/proc/1/environ"])
def test_file_api_through_proc_of_pid_1(sandbox, canary, path):
    """The file worker is the agent's child: its view of /proc/1 must not reach out either."""
    answer = sandbox.request("GET", f"/filesystem{path}")
    assert answer.status >= 400 or "host secret" not in answer.text
    if "shadow" in path and answer.status == 200:
        inside = sandbox.request("GET", "/filesystem/etc/shadow").json()["content"]
        assert answer.json()["content"] == inside  # the sandbox's own root, at worst


@pytest.mark.parametrize("number", range(0, 12))
def test_file_api_through_the_workers_own_descriptors(server, sandbox, number):
    """/proc/self/fd of whoever serves the file: no socket, no cgroup, no directory of the host."""
    for path in (f"/proc/self/fd/{number}", f"/proc/thread-self/fd/{number}", f"/dev/fd/{number}"):
        answer = sandbox.request("GET", f"/filesystem{path}", timeout=10)
        assert answer.status >= 400 or str(server.data) not in answer.text, answer
        answer = sandbox.request("GET", f"/filesystem{path}/..", timeout=10)
        assert answer.status >= 400 or "volume" not in answer.text, answer


@pytest.mark.parametrize("path", [
    "/../../../../etc/hostname", "/%2e%2e/%2e%2e/etc/hostname", "/..%2f..%2fetc/hostname",
    "/workspace/../../../etc/hostname"])
def test_dots_do_not_climb(sandbox, path):
    answer = sandbox.request("GET", f"/filesystem{path}")
    assert answer.status == 400 or answer.json()["content"].strip() == sandbox.name, answer


def test_special_files_do_not_hang_the_api(sandbox):
    """A FIFO without a writer, a socket, a device without end: answered, not waited for."""
    sandbox.run("mkfifo /workspace/fifo; ln -s /dev/zero /workspace/zero;"
                " python3 -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"/workspace/s\")'")
    for name in ("fifo", "zero", "s"):
        answer = sandbox.request("GET", f"/filesystem/workspace/{name}", timeout=10)
        assert answer.status in (400, 403, 409), (name, answer)


def test_symlink_race_during_writes(sandbox, canary):
    """A directory that turns into a link and back while files are written through it."""
    sandbox.run("mkdir -p /workspace/d /workspace/real")
    pid = sandbox.spawn(f"while :; do mv /workspace/d /workspace/e; ln -s {canary.parent} /workspace/d;"
                        " rm /workspace/d; mv /workspace/e /workspace/d; done")
    for _ in range(100):
        sandbox.request("PUT", "/filesystem/workspace/d/canary", {"content": "changed"})
        sandbox.request("DELETE", "/filesystem/workspace/d/canary")
    assert canary.exists()
    sandbox.request("POST", f"/process/{pid}/kill")


def test_recursive_delete_does_not_follow_links(sandbox, canary):
    sandbox.run(f"mkdir /workspace/d && ln -s {canary.parent} /workspace/d/out && mkdir /keep &&"
                " touch /keep/f && ln -s /keep /workspace/d/in")
    answer = sandbox.request("DELETE", "/filesystem/workspace/d", {"recursive": True})
    assert answer.status == 200, answer
    assert sandbox.run("ls /keep") == "f"


def test_cgroup_files_are_out_of_reach(sandbox):
    """Limits cannot be raised, and a process cannot move out from under them."""
    done = sandbox.exec(
        "found=0; for f in $(find /sys/fs/cgroup \\( -name cgroup.procs -o -name tasks -o -name"
        " 'memory.max' -o -name 'memory.limit_in_bytes' -o -name pids.max -o -name cpu.max -o -name"
        " release_agent -o -name 'cpu.cfs_quota_us' \\) 2>/dev/null);"
        " do if echo $$ > $f; then echo wrote $f; fi; done 2>/dev/null")
    assert done.stdout == "", done
    assert sandbox.exec("mkdir /tmp/cg && mount -t cgroup2 none /tmp/cg").exit_code != 0
    assert sandbox.exec("mount -t cgroup -o memory none /tmp/cg").exit_code != 0


def test_own_cgroup_path_hides_the_hosts(server, sandbox):
    assert server.instance not in sandbox.run("cat /proc/self/cgroup")


def test_core_pattern_and_modules(sandbox):
    assert sandbox.exec("echo '|/tmp/x' > /proc/sys/kernel/core_pattern").exit_code != 0
    assert sandbox.exec("modprobe loop").exit_code != 0


def test_hard_links_and_handles(sandbox):
    """open_by_handle_at was the way out of Docker once (shocker)."""
    done = sandbox.python(
        "import ctypes\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "h = ctypes.create_string_buffer(b'\\x08\\0\\0\\0\\x01\\0\\0\\0\\x02' + b'\\0' * 32)\n"
        "print(libc.syscall(304, libc.open(b'/', 0), h, 0), ctypes.get_errno())\n")
    assert done.stdout.strip() in ("-1 1", "-1 38"), done


def test_chroot_escape_stays_inside(sandbox, canary):
    """The classic: chroot with a directory held open. It ends at the sandbox's root, not the host's."""
    done = sandbox.python(
        "import os\n"
        "os.makedirs('/tmp/jail', exist_ok=True)\n"
        "fd = os.open('/', os.O_RDONLY)\n"
        "os.chroot('/tmp/jail'); os.fchdir(fd)\n"
        "for _ in range(64): os.chdir('..')\n"
        "os.chroot('.')\n"
        f"print(os.path.exists({str(canary)!r}), open('/etc/hostname').read().strip())\n")
    assert done.stdout.split() == ["False", sandbox.name], done


def test_raw_disk_is_not_there(sandbox):
    done = sandbox.python(
        "import os\n"
        "for kind, number in ((0o060600, os.makedev(7, 0)), (0o060600, os.makedev(254, 0)),"
        " (0o020600, os.makedev(1, 1))):\n"
        "    try: os.mknod('/tmp/node', kind, number); print('made')\n"
        "    except OSError as e: print(e.errno)\n")
    assert done.stdout.split() == ["1", "1", "1"], done


def test_data_folder_is_closed(server):
    """Setuid files inside are real root's on disk, so nobody else may walk in."""
    for name in ("volume", "images"):
        path = server.data / name
        if path.exists():
            assert path.stat().st_mode & 0o007 == 0 or server.data.stat().st_mode & 0o007 == 0
    key = server.data / "api-key"
    assert key.stat().st_mode & 0o077 == 0
    flags = [line.split()[5] for line in pathlib.Path("/proc/self/mountinfo").read_text().splitlines()
             if line.split()[4] == str(server.data / "volume")]
    for options in flags:
        assert {"nosuid", "nodev", "noexec"} <= set(options.split(","))


def test_who_runs_as_what(server):
    """What faces the network is not root; what is root does not face the network."""
    import pwd
    pids = server.pids()
    cella = pwd.getpwnam("cella").pw_uid
    uid = {name: os.stat(f"/proc/{pid}").st_uid for name, pid in pids._asdict().items()}
    assert uid["cellad"] == cella
    caps = [line for line in pathlib.Path(f"/proc/{pids.cellad}/status").read_text().splitlines()
            if line.startswith(("CapEff", "CapPrm"))]
    assert all(int(line.split()[1], 16) == 0 for line in caps), caps
    inodes = {os.readlink(link) for link in pathlib.Path(f"/proc/{pids.warden}/fd").iterdir()
              if os.path.islink(link)}
    port = int(server.url.rsplit(":", 1)[1])
    listening = {f"socket:[{fields[9]}]" for fields in
                 (line.split() for line in pathlib.Path("/proc/net/tcp").read_text().splitlines()[1:])
                 if fields[1].endswith(f":{port:04X}") and fields[3] == "0A"}
    assert listening and not inodes & listening


def test_unauthorized_is_told_nothing(server, sandbox):
    for headers in ({"Authorization": None}, {"Authorization": "Bearer wrong"},
                    {"Authorization": "Basic Zm9vOmJhcg=="}, {"Authorization": "Bearer "}):
        for method, path in (("GET", "/v0/sandbox"), ("GET", f"/v0/sandbox/{sandbox.name}"),
                             ("GET", "/v0/sandbox/no-such-sandbox"),
                             ("POST", f"/v0/sandbox/{sandbox.name}/process"),
                             ("GET", f"/default/sandbox/{sandbox.name}/filesystem/etc/passwd")):
            answer = server.request(method, path, headers=headers)
            assert (answer.status, answer.error()) == (401, "UNAUTHORIZED"), (method, path, answer)
    assert server.request("GET", "/health", headers={"Authorization": None}).status == 200
