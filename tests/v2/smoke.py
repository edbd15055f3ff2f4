# SPDX-License-Identifier: Apache-2.0
"""A sandbox from beginning to end under cgroup v2 alone: what differs from v1 is the limits, how a
command's tree is killed, and who may write where. One line per check; see tests/v2/run."""

import os
import pathlib
import sys
import traceback

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

from cella_server import Server, wait_until  # noqa: E402  pylint: disable=wrong-import-position

SMALL = {"cpu": "500m", "memory": "128Mi", "disk": "64Mi"}


def check_hierarchy(server, box):
    """Where the kernel has put it, seen from outside."""
    assert pathlib.Path("/sys/fs/cgroup/cgroup.controllers").exists()
    tops = list(pathlib.Path("/sys/fs/cgroup").glob(f"cella-{server.instance}*"))
    assert tops, "no cgroup of this server"
    limits = {path.read_text().strip() for top in tops for path in top.glob("**/memory.max")}
    assert str(128 << 20) in limits, limits
    quotas = {path.read_text().strip() for top in tops for path in top.glob("**/cpu.max")}
    assert any(quota.split()[0] != "max" and
               abs(int(quota.split()[0]) / int(quota.split()[1]) - 0.5) < 0.01
               for quota in quotas), quotas


def check_exec(server, box):
    done = box.exec("echo out; echo err >&2; exit 3", timeout=60)
    assert (done.exit_code, done.stdout, done.stderr) == (3, "out\n", "err\n"), done
    assert box.run("id -u; pwd; hostname").split() == ["0", "/workspace", box.name]


def check_files(server, box):
    box.write("/workspace/f", bytes(range(256)) * 100)
    assert box.read("/workspace/f") == bytes(range(256)) * 100


def check_memory_limit(server, box):
    hog = box.python("b = []\nwhile True: b.append(b'x' * (4 << 20))\n", timeout=120)
    assert hog.exit_code == 137, hog
    assert box.exec("echo alive", timeout=60).stdout == "alive\n"


def check_process_limit(server, box):
    bomb = box.spawn("bomb() { bomb | bomb & }; bomb; sleep 1000")
    wait_until(lambda: server.request("GET", "/health", timeout=60).status == 200, 60, "health")
    assert box.request("POST", f"/process/{bomb}/kill", timeout=120).status == 200
    assert box.exec("echo over", timeout=60).stdout == "over\n"


def check_command_limits(server, box):
    hog = "b = []\nwhile True: b.append(b'x' * (1 << 20))\n"
    box.write("/tmp/hog.py", hog)

    def limited(command, **limits):
        body = {"command": command, "waitForCompletion": True, "limits": limits}
        answer = box.request("POST", "/process", body, timeout=120)
        assert answer.status == 200, answer
        return answer.json()

    plain = box.exec("echo plain", timeout=60)
    assert limited("python3 /tmp/hog.py; echo no", memory="32Mi")["reason"] == "MEMORY_LIMIT"
    assert limited("for i in 1 2 3 4 5 6; do sleep 4712 & done; wait",
                   processes=4)["reason"] == "PROCESS_LIMIT"
    done = limited("echo fits", memory="32Mi", processes=4, output=100, openFiles=32)
    assert (done["stdout"], done["reason"], done["exitCode"]) == ("fits\n", None, 0), done
    assert box.exec("pgrep -f '^sleep 4712'", timeout=60).exit_code == 1
    # What was killed for a command's own limit is not taken for the sandbox's.
    killed = box.request("POST", "/process", {"command": "kill -9 $$", "waitForCompletion": True},
                         timeout=60).json()
    assert "outOfMemory" not in killed and killed["reason"] is None, killed
    assert box.exec("echo plain", timeout=60).stdout == plain.stdout
    group = pathlib.Path(f"/sys/fs/cgroup/cella-{server.instance}", box.get()["metadata"]["id"])
    wait_until(lambda: len(list((group / "work").glob("e*"))) <= 3, 60,
               lambda: f"few groups: {list((group / 'work').glob('e*'))}")


def check_pause(server, box):
    group = pathlib.Path(f"/sys/fs/cgroup/cella-{server.instance}", box.get()["metadata"]["id"])
    born = box.init_start_time()
    box.run("head -c 32M /dev/urandom > /workspace/pages; sync; cat /workspace/pages > /dev/null", timeout=120)
    beats = lambda: int(box.run("wc -l < /tmp/beat || echo 0", timeout=60))  # noqa: E731
    pid = box.spawn("while :; do echo >> /tmp/beat; sleep 0.1; done")
    assert box.request("POST", "/pause", timeout=60).status == 202
    box.wait_status("paused", deadline=60)
    assert "frozen 1" in (group / "cgroup.events").read_text()
    wait_until(lambda: int((group / "memory.current").read_text()) < 24 << 20, 60, "memory taken back")
    assert box.request("POST", "/process", {"command": "true"}, timeout=60).error() == "NOT_RUNNING"
    assert box.request("POST", "/resume", timeout=60).status == 202
    box.wait_status("running", deadline=60)
    last = beats()
    wait_until(lambda: beats() > last, 60, "it goes on")
    assert box.init_start_time() == born
    assert box.request("POST", f"/process/{pid}/kill", timeout=60).status == 200
    box.run("rm /workspace/pages")


def check_metrics(server, box):
    box.run("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done", timeout=120)
    wait_until(lambda: all(box.request("GET", "/metrics", timeout=60).json()["metrics"].values()),
               60, "figures of cpu, memory and disk")
    points = box.request("GET", "/metrics?period=1h&resolution=1h", timeout=60).json()["metrics"]
    assert any(point["value"] > 0 for point in points["cpu"]), points  # an hour may just have begun
    assert 0 < points["memory"][-1]["value"] <= 128 << 20, points
    assert 0 <= points["disk"][-1]["value"] <= 64 << 20, points
    usage = server.request("GET", "/v0/metrics", timeout=60).json()["sandboxes"][0]
    assert usage["name"] == box.name and usage["memory"] > 0, usage


def check_logs(server, box):
    box.run("echo a line for the log", timeout=60)
    told = [entry["message"] for entry in
            box.request("GET", "/logs?tail=1000", timeout=60).json()["logs"]]
    assert {"Sandbox created successfully", "Sandbox started", "a line for the log"} <= set(told)


def check_kill_of_a_tree(server, box):
    pid = box.spawn("setsid sleep 4711 & (setsid sleep 4711 &) ; sleep 4711")
    wait_until(lambda: box.exec("pgrep -fc '^sleep 4711'", timeout=60).stdout.strip() == "3", 60,
               "three sleeps")
    assert box.request("POST", f"/process/{pid}/kill", timeout=60).status == 200
    assert box.exec("pgrep -f '^sleep 4711'", timeout=60).exit_code == 1


def check_disk_quota(server, box):
    done = box.exec("head -c 200M /dev/urandom > /workspace/big", timeout=120)
    assert done.exit_code != 0, done
    box.run("rm -f /workspace/big", timeout=60)


def check_cgroups_are_out_of_reach(server, box):
    done = box.exec("for f in $(find /sys/fs/cgroup -name cgroup.procs -o -name memory.max"
                    " -o -name pids.max 2>/dev/null); do echo max > $f && echo wrote $f;"
                    " echo $$ > $f && echo wrote $f; done 2>/dev/null", timeout=60)
    assert done.stdout == "", done


def check_kernel_memory(server, box):
    """What a process leaves in the kernel is charged, too: files without a byte, connections."""
    files = box.python("""
n = 0
try:
    while n < 100000:
        open('/dev/shm/%d' % n, 'w').close()
        n += 1
except OSError as full:
    print(full.errno, n)
""", timeout=120)
    number, made = map(int, files.stdout.split())
    assert number == 28 and made < 20000, files
    box.run("rm -rf /dev/shm/*", timeout=60)
    buffers = box.python("""
import socket
server = socket.create_server(('127.0.0.1', 0), backlog=300)
kept, total = [], 0
for _ in range(60):
    a = socket.create_connection(server.getsockname())
    kept += [a, server.accept()[0]]
    a.setblocking(False)
    try:
        while True: total += a.send(bytes(65536))
    except BlockingIOError: pass
print(total)
""", timeout=120)
    assert buffers.exit_code == 137 or int(buffers.stdout) < 128 << 20, buffers
    assert box.exec("echo well", timeout=60).stdout == "well\n"


def check_crash(server, box):
    pid = box.spawn("i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done")
    before = server.kill("cellad", "warden")
    server.wait_recovered(before, "cellad", "warden", deadline=90)
    wait_until(lambda: len(box.logs(pid)["stdout"].split()) > 5, 60, "more lines")
    numbers = box.logs(pid)["stdout"].split()
    assert numbers == [str(n) for n in range(len(numbers))]
    assert server.leaks() == ""


def check_stop_and_start(server, box):
    box.write("/workspace/kept", "kept")
    box.stop()
    box.start()
    assert box.read("/workspace/kept") == b"kept"


def check_update(server, box):
    before = box.init_start_time()
    answer = box.request("PATCH", "", {"spec": {"resources": {"cpu": "250m", "memory": "96Mi"}}}, timeout=60)
    assert answer.status == 200, answer
    group = pathlib.Path(f"/sys/fs/cgroup/cella-{server.instance}", box.get()["metadata"]["id"])
    assert (group / "memory.max").read_text().strip() == str(96 << 20)
    quota, period = (group / "cpu.max").read_text().split()
    assert int(quota) / int(period) == 0.25
    box.spawn("exec python3 -c 'import time; b = bytearray(60 << 20); time.sleep(1000)'")
    wait_until(lambda: int((group / "memory.current").read_text()) > 60 << 20, 60, "memory in use")
    answer = box.request("PATCH", "", {"spec": {"resources": {"memory": "32Mi"}}}, timeout=60)
    assert (answer.status, answer.error()) == (409, "RESOURCE_IN_USE"), answer
    assert (group / "memory.max").read_text().strip() == str(96 << 20)
    assert box.init_start_time() == before


def check_rates(server, box):
    """All disk I/O of a sandbox can be limited here, where the disks can."""
    rates = server.request("GET", "/v0/machine").json()["resources"]["diskRead"]
    answer = box.request("POST", "/resize", {"diskRead": "4M", "diskWriteOps": 500}, timeout=60)
    assert answer.status == 200, answer
    group = pathlib.Path(f"/sys/fs/cgroup/cella-{server.instance}", box.get()["metadata"]["id"])
    if rates["enforced"]:
        limits = (group / "io.max").read_text()
        assert "rbps=4000000" in limits and "wiops=500" in limits, limits
    else:
        assert "not enforced" in rates["enforcement"], rates
    assert box.run("echo alive") == "alive"


def check_clone(server, box):
    box.write("/workspace/cloned", "cloned")
    answer = box.request("POST", "/clone", {"name": "copy"}, timeout=60)
    assert answer.status == 202, answer
    copy = server.sandbox("copy").wait_status("running", deadline=60)
    assert copy.read("/workspace/cloned") == b"cloned"
    group = pathlib.Path(f"/sys/fs/cgroup/cella-{server.instance}", box.get()["metadata"]["id"])
    assert "frozen 0" in (group / "cgroup.events").read_text()
    done = copy.exec("head -c 200M /dev/urandom > /workspace/big", timeout=120)
    assert done.exit_code != 0, done
    copy.delete()


def check_untrusted(server, box):
    """Neither processes nor privileges, and memory to write to. Its kernel is another one, too."""
    guest = server.create(trustLevel="untrusted")
    try:
        done = guest.exec(["grep", "-E", "CapBnd|NoNewPrivs", "/proc/self/status"], timeout=60)
        assert done.stdout.split() == ["CapBnd:", "0" * 16, "NoNewPrivs:", "1"], done
        probe = ("import os\n"
                 "try: os.fork()\n"
                 "except OSError as error: print(error.errno)\n"
                 "try: open('/etc/x', 'w')\n"
                 "except OSError as error: print(error.errno)\n"
                 "print(os.statvfs('/tmp').f_blocks * os.statvfs('/tmp').f_frsize >> 20)\n")
        done = guest.exec(["python3", "-c", probe], timeout=60)
        assert done.stdout.split() == ["1", "30", "64"], done
        guest.write("/workspace/f", b"kept in memory")
        assert guest.read("/workspace/f") == b"kept in memory"
    finally:
        guest.delete()


def check_delete(server, box):
    box.delete()
    assert server.list() == []
    assert server.leaks() == ""


CHECKS = [check_hierarchy, check_exec, check_files, check_memory_limit, check_process_limit,
          check_command_limits, check_pause,
          check_metrics, check_logs, check_kill_of_a_tree, check_disk_quota,
          check_cgroups_are_out_of_reach, check_kernel_memory, check_crash, check_stop_and_start,
          check_update, check_rates, check_clone, check_untrusted, check_delete]


def attempt(name, run):
    try:
        run()
    except Exception:  # pylint: disable=broad-except
        print(f"not ok - {name}", flush=True)
        print("".join("# " + line + "\n" for line in traceback.format_exc().splitlines()), flush=True)
        return False
    print(f"ok - {name}", flush=True)
    return True


def main():
    made = {}

    def begin():
        made["server"] = Server()
        made["box"] = made["server"].create(resources=SMALL)

    good = attempt("server and sandbox", begin)
    if good:
        for check in CHECKS:
            good &= attempt(check.__name__[len("check_"):].replace("_", " "),
                            lambda: check(made["server"], made["box"]))
        if not good:
            print("".join("# " + line + "\n" for line in made["server"].log().splitlines()))
        good &= attempt("nothing is left", made["server"].close)
    elif "server" in made:
        print("".join("# " + line + "\n" for line in made["server"].log().splitlines()))
        made["server"].destroy()
    os.sync()
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
