# SPDX-License-Identifier: Apache-2.0
"""What the world looks like from inside: a small machine of one's own."""

import os
import pathlib

from cella_server import wait_until


def test_root_inside_is_nobody_outside(shared_sandbox):
    assert shared_sandbox.run("id -u") == "0"
    inside, outside, count = map(int, shared_sandbox.run("cat /proc/self/uid_map").split())
    assert inside == 0 and outside >= 65536 and count == 65536
    assert shared_sandbox.run("cat /proc/self/gid_map").split() == [str(inside), str(outside),
                                                                    str(count)]


def test_host_sees_another_user(server, shared_sandbox):
    """The same process, looked at from the host."""
    pid = shared_sandbox.spawn("exec sleep 8123")
    base = int(shared_sandbox.run("cat /proc/self/uid_map").split()[1])
    # The answer comes when the shell runs; it may not have become `sleep` yet.
    found = wait_until(lambda: _processes_of(base, b"sleep\x008123\x00"), 10, "the sleep")
    assert len(found) == 1
    status = (found[0] / "status").read_text()
    assert f"Uid:\t{base}\t{base}\t{base}\t{base}" in status
    assert shared_sandbox.request("POST", f"/process/{pid}/kill").status == 200


def _processes_of(uid, cmdline):
    """The /proc folders of a user's processes with that command line; one may vanish meanwhile."""
    found = []
    for entry in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if (entry / "cmdline").read_bytes() == cmdline and entry.stat().st_uid == uid:
                found.append(entry)
        except OSError:
            pass
    return found


def test_ranges_do_not_overlap(server):
    boxes = [server.create() for _ in range(3)]
    bases = sorted(int(box.run("cat /proc/self/uid_map").split()[1]) for box in boxes)
    assert all(b - a >= 65536 for a, b in zip(bases, bases[1:]))
    for box in boxes:
        box.delete()


def test_own_namespaces(shared_sandbox):
    inside = shared_sandbox.run("cd /proc/self/ns && for n in cgroup ipc mnt net pid user uts;"
                                " do readlink $n; done").split()
    outside = [os.readlink(f"/proc/self/ns/{name}")
               for name in ("cgroup", "ipc", "mnt", "net", "pid", "user", "uts")]
    assert not set(inside) & set(outside)


def test_hostname_is_the_name(shared_sandbox):
    assert shared_sandbox.run("hostname") == shared_sandbox.name
    assert shared_sandbox.run("cat /etc/hostname") == shared_sandbox.name
    assert shared_sandbox.run(f"getent hosts {shared_sandbox.name}") != ""


def test_no_host_processes(shared_sandbox):
    seen = shared_sandbox.run("cat /proc/[0-9]*/comm").split("\n")
    assert len(seen) < 10, seen
    assert "cella-age" in seen[0]


def test_only_loopback(shared_sandbox):
    assert shared_sandbox.run("ls /sys/class/net") == "lo"
    assert shared_sandbox.run("cat /sys/class/net/lo/operstate") in ("unknown", "up")
    done = shared_sandbox.python(
        "import socket\n"
        "s = socket.create_server(('127.0.0.1', 0))\n"
        "c = socket.create_connection(s.getsockname())\n"
        "c.sendall(b'x'); print(s.accept()[0].recv(1))\n"
        "for address in ('192.0.2.1', '10.0.0.1', '169.254.169.254', '1.1.1.1'):\n"
        "    try:\n"
        "        socket.create_connection((address, 80), timeout=2)\n"
        "    except OSError as e:\n"
        "        print(e.errno)\n")
    assert done.stdout.split() == ["b'x'", "101", "101", "101", "101"], done


def test_the_hosts_loopback_is_another(server, shared_sandbox):
    port = server.url.rsplit(":", 1)[1]
    done = shared_sandbox.python(
        "import socket\n"
        f"try: socket.create_connection(('127.0.0.1', {port}), timeout=2)\n"
        "except OSError as e: print(e.errno)\n")
    assert done.stdout == "111\n", done


def test_abstract_unix_sockets_are_not_shared(server):
    """They belong to the network namespace: two sandboxes can take the same name."""
    a, b = server.create(), server.create()
    serve = ("import socket, time\n"
             "s = socket.socket(socket.AF_UNIX); s.bind('\\0cella-test'); s.listen()\n"
             "print('bound', flush=True)\n")
    assert a.python(serve).stdout == "bound\n"
    a.write("/tmp/hold.py", serve + "time.sleep(1000)\n")
    pid = a.spawn("exec python3 /tmp/hold.py")
    wait_until(lambda: "bound" in a.logs(pid)["stdout"], 10, lambda: a.logs(pid))
    assert b.python(serve).stdout == "bound\n"
    a.delete()
    b.delete()


def test_sandboxes_do_not_see_each_other(server):
    a, b = server.create(), server.create()
    a.write("/workspace/secret", "a")
    a.write("/tmp/secret", "a")
    a.write("/dev/shm/secret", "a")
    for path in ("/workspace/secret", "/tmp/secret", "/dev/shm/secret"):
        assert b.exec(f"cat {path}").exit_code == 1
        assert b.request("GET", f"/filesystem{path}").status == 404
    a.delete()
    b.delete()


def test_users(shared_sandbox):
    assert shared_sandbox.run("id -un") == "root"
    assert shared_sandbox.run("getent passwd user").split(":")[2:4] == ["1000", "1000"]
    assert shared_sandbox.run("stat -c %U /home/user") == "user"
    assert shared_sandbox.run("su user -c 'id -un; echo ~; cd ~ && touch mine && ls'").split() == \
        ["user", "/home/user", "mine"]


def test_sudo_works_without_a_password(shared_sandbox):
    if shared_sandbox.exec("command -v sudo").exit_code != 0:
        import pytest
        pytest.skip("the host has no sudo, so the host image has none")
    assert shared_sandbox.run("su user -c 'sudo -n id -u'") == "0"


def test_workspace_is_home(shared_sandbox):
    assert shared_sandbox.run("pwd") == "/workspace"
    shared_sandbox.run("touch /workspace/here && su user -c 'touch /workspace/there'")


def test_environment(server):
    box = server.create(env_vars={"MY_VAR": "my value", "EMPTY": ""})
    assert box.run('echo "$MY_VAR|${EMPTY-unset}|$HOME"') == "my value||/root"
    assert box.run('echo "$MY_VAR"', env={"MY_VAR": "other"}) == "other"
    assert "CELLA" not in box.run("env")
    box.delete()


def test_standard_streams(shared_sandbox):
    """No terminal, nothing to read, and nothing else open."""
    assert shared_sandbox.run("cat | wc -c") == "0"
    done = shared_sandbox.python("import os\n"
                                 "print(sorted(int(n) for n in os.listdir('/proc/self/fd'))[:4])\n")
    assert done.stdout == "[0, 1, 2, 3]\n"  # 3 is the listing's own
    assert shared_sandbox.run("ls -l /proc/self/fd | grep -vE 'pipe|/dev/null|/proc/|total' | wc -l") == "0"


def test_devices(shared_sandbox):
    for name in ("null", "zero", "full", "random", "urandom", "tty"):
        assert shared_sandbox.run(f"stat -c %F /dev/{name}") == "character special file"
    shared_sandbox.run("echo x > /dev/null && head -c 4 /dev/zero | wc -c && head -c4 /dev/urandom | wc -c")
    assert shared_sandbox.exec("echo x > /dev/full").exit_code != 0
    assert shared_sandbox.run("ls /dev").split() == shared_sandbox.run(
        "ls -d /dev/* | sed s,/dev/,,").split()
    present = set(shared_sandbox.run("ls /dev").split())
    assert not present & {"kmsg", "mem", "kvm", "fuse", "loop-control", "loop0", "vda", "sda", "btrfs-control"}


def test_a_terminal_can_be_had(shared_sandbox):
    assert shared_sandbox.python("import pty, os\nm, s = pty.openpty()\nprint(os.ttyname(s))\n"
                                 ).stdout.startswith("/dev/pts/")


def test_root_is_writable_and_survives_stop(server):
    box = server.create()
    box.run("echo one > /etc/mine && echo two > /usr/local/mine && rm /usr/bin/perl* ; mkdir /srv/d")
    box.stop()
    box.start()
    assert box.run("cat /etc/mine /usr/local/mine; ls -d /srv/d") == "one\ntwo\n/srv/d"
    assert box.exec("command -v perl").exit_code != 0
    assert os.path.exists("/usr/bin/env")
    box.delete()


def test_the_host_is_untouched(sandbox):
    sandbox.run("rm -rf /usr/share/doc/* /etc/cron* /home/* /tmp/* && : > /etc/passwd")
    assert os.path.getsize("/etc/passwd") > 0
    assert any(pathlib.Path("/usr/share").iterdir())


def test_zombies_are_reaped(sandbox):
    sandbox.run("for i in 1 2 3 4 5; do (sleep 0.01 &); done; sleep 0.2")
    states = "cat /proc/[0-9]*/stat | sed 's/.*) //' | cut -c1"
    wait_until(lambda: "Z" not in sandbox.run(states), 20, "no zombies")  # one may be ending right now
