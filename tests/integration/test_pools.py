# SPDX-License-Identifier: Apache-2.0
"""Sandboxes that were made ahead: a claimed one is like any other, and none is ever lost or left."""

import json
import os
import pathlib
import re
import signal
import time
import uuid

import pytest

from cella_server import Server, process_alive, wait_until


def unique(prefix="p"):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def pool_of(server, name="host"):
    answer = server.request("GET", f"/v0/pools/{name}")
    assert answer.status == 200, answer
    return answer.json()


def status_of(server, name="host"):
    return pool_of(server, name)["status"]


def wait_full(server, name="host"):
    """Every spare is there, and none is on its way."""
    def full():
        pool = pool_of(server, name)
        return pool["status"]["ready"] == pool["size"] and pool["status"]["making"] == 0
    wait_until(full, 60, lambda: f"a full pool: {pool_of(server, name)}\n{server.log()}")


def resize(server, size, name="host"):
    answer = server.request("PATCH", f"/v0/pools/{name}", {"size": size})
    assert answer.status == 200, answer
    wait_full(server, name)


def spares_of(server, count=2):
    """The ids of the spares, once those that were replaced are gone."""
    shown = {made["metadata"]["id"] for made in server.list()}

    def found():
        return {path.name for path in (server.data / "run" / "sandboxes").iterdir()} - shown
    wait_full(server)
    wait_until(lambda: len(found()) == count, 30, lambda: f"{count} spares: {found()}")
    return found()


def no_leaks(server):
    """What is on its way out is gone in a moment; what leaks stays."""
    wait_until(lambda: server.leaks() == "", 30, server.leaks)


def claim(server, name=None, **spec):
    """A sandbox from the pool, and proof that it came from there."""
    wait_full(server)
    before = status_of(server)["claimed"]
    box = server.create(name, **spec)
    assert status_of(server)["claimed"] == before + 1
    return box


def id_of(box):
    return box.get()["metadata"]["id"]


def cgroup_file(server, box, v1, v2):
    """What a limit of the sandbox says, wherever it is."""
    group = f"cella-{server.instance}/{id_of(box)}"
    for path in (f"/sys/fs/cgroup/{v1.split('.')[0]}/{group}/{v1}", f"/sys/fs/cgroup/{group}/{v2}"):
        if os.path.exists(path):
            return pathlib.Path(path).read_text().strip()
    pytest.skip("the cgroups of this machine are elsewhere")


@pytest.fixture(name="pooled", scope="module")
def _pooled():
    if os.geteuid() != 0:
        pytest.skip("needs root: a server makes namespaces, mounts and cgroups")
    instance = Server("--pool", "image=host,size=2")
    yield instance
    instance.close()


# --- like any other ---

# Everything that a program inside could tell two sandboxes apart by, but times.
LOOK = r"""
import json, os, resource, subprocess
def text(path):
    try:
        return open(path, errors="replace").read()
    except OSError as error:
        return error.strerror
def shell(line):
    return subprocess.run(line, shell=True, capture_output=True, text=True).stdout
print(json.dumps({
    "hostname": os.uname().nodename,
    "files": {path: text(path) for path in ("/etc/hostname", "/etc/hosts", "/etc/passwd", "/etc/group")},
    "env": {key: value for key, value in os.environ.items() if key != "_"},
    "pid": os.getpid(), "parent": os.getppid(), "session": os.getsid(0),
    "status": {pid: [line for line in text(f"/proc/{pid}/status").splitlines() if line.split(":")[0] in
                     ("Umask", "Uid", "Gid", "Groups", "CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb",
                      "NoNewPrivs", "Seccomp", "Seccomp_filters", "Threads", "SigBlk", "SigIgn", "SigCgt")]
               for pid in ("1", "self")},
    "limits": text("/proc/self/limits"),
    "cgroup": text("/proc/self/cgroup"),
    "oom": text("/proc/self/oom_score_adj"),
    "fds": sorted(os.listdir("/proc/self/fd")),
    "mounts": [line.split()[3:] for line in text("/proc/self/mountinfo").splitlines()],
    "trees": shell("find / -xdev \\( -path /proc -o -path /sys \\) -prune -o -printf '%p %M %U %G %s %l\\n' 2>/dev/null"
                   " | grep -v '^/tmp/\\|^/usr/' | sort"),
    "shm": shell("df -B1 --output=size /dev/shm"),
    "ids": text("/proc/self/uid_map").split()[2:] + text("/proc/self/gid_map").split()[2:],
    "sysctl": {name: text("/proc/sys/" + name) for name in
               ("kernel/hostname", "user/max_user_namespaces", "kernel/shmall")},
    "ipc": shell("ipcs"), "network": shell("cat /proc/net/dev | cut -d: -f1; cat /proc/net/tcp"),
}))
"""

# Files that a start makes: they are as old as the sandbox.
BORN = ("/", "/etc", "/usr", "/etc/hostname", "/etc/hosts")


def look(box):
    """Through one file and one command, so that pids are the same in each."""
    box.write("/tmp/look.py", LOOK)
    seen = json.loads(box.run("exec python3 /tmp/look.py"))
    mounts = json.dumps(seen["mounts"])
    # The kernel lists them by numbers that it uses again.
    seen["mounts"] = sorted(json.loads(re.sub(r"(fd/|[ug]id=)\d+", r"\1N", mounts)))
    return seen


def comparable(value, name):
    """Without what may differ: the name, and sizes that hold it."""
    return json.loads(json.dumps(value).replace(name, "NAME"))


def about(box):
    made = box.get()
    logs = box.request("GET", "/logs").json()
    return {
        "keys": sorted(made["metadata"]),
        "spec": made["spec"], "status": made["status"],
        "events": [(event["type"], event["status"], event["message"]) for event in made["events"]],
        "processes": [(p["pid"], p["command"]) for p in box.request("GET", "/process").json()],
        "log": [line["message"] for line in logs["logs"] if line.get("source", "sandbox") == "sandbox"],
    }


@pytest.mark.parametrize("spec", [
    {},
    {"resources": {"cpu": "700m", "memory": "160Mi", "disk": "64Mi"}, "env_vars": {"COLOUR": "blue"}},
])
def test_a_claimed_one_is_like_a_cold_one(pooled, spec):
    name, other = unique(), unique()
    claimed = claim(pooled, name, **spec)
    resize(pooled, 0)
    cold = pooled.create(other, **spec)
    try:
        assert comparable(about(claimed), name) == comparable(about(cold), other)
        assert comparable(look(claimed), name) == comparable(look(cold), other)
    finally:
        resize(pooled, 2)
        claimed.delete()
        cold.delete()


def test_files_are_as_young_as_the_sandbox(pooled):
    wait_full(pooled)
    wait_until(lambda: status_of(pooled)["oldestAge"] > 3, 30, "spares of some age")
    now = int(time.time() - 1)  # the kernel's clock of files is a little behind
    box = claim(pooled)
    try:
        times = box.run("stat -c '%Y %Z' " + " ".join(BORN)).split()
        assert len(times) == 2 * len(BORN) and all(int(at) >= now for at in times), (now, times)
    finally:
        box.delete()


def test_limits_are_those_that_were_asked_for(pooled):
    box = claim(pooled, resources={"cpu": "250m", "memory": "180Mi", "disk": "48Mi"})
    try:
        assert cgroup_file(pooled, box, "memory.limit_in_bytes", "memory.max") == str(180 << 20)
        full = box.exec("head -c 100M /dev/zero > /workspace/big")
        assert full.exit_code != 0 and "quota" in full.stderr.lower(), full
        assert box.run("rm /workspace/big; echo fine > /workspace/small; cat /workspace/small") == "fine"
        box.stop()
        box.start()
        assert box.run("hostname; cat /etc/hostname /workspace/small") == f"{box.name}\n{box.name}\nfine"
        assert cgroup_file(pooled, box, "memory.limit_in_bytes", "memory.max") == str(180 << 20)
    finally:
        box.delete()


def test_what_a_claim_cannot_change_is_made_cold(pooled):
    """/dev/shm is at most half of the memory, and a trust level is for life."""
    wait_full(pooled)
    before = status_of(pooled)
    box = pooled.create(resources={"memory": "80Mi"})
    other = pooled.create(trustLevel="untrusted")
    try:
        assert box.run("df -B1 --output=size /dev/shm | tail -1").strip() == str(40 << 20)
        seen = other.request("POST", "/process", {"command": ["cat", "/proc/self/status"],
                                                  "waitForCompletion": True}).json()
        assert "NoNewPrivs:\t1" in seen["stdout"]
        after = status_of(pooled)
        assert (after["claimed"], after["misses"]) == (before["claimed"], before["misses"])
    finally:
        box.delete()
        other.delete()


def test_pools_of_other_trust_levels(pooled):
    answer = pooled.request("POST", "/v0/pools", {"trustLevel": "untrusted", "size": 1})
    assert answer.status == 201, answer
    name = answer.json()["name"]
    assert (name, answer.json()["trustLevel"]) == ("host-untrusted", "untrusted")
    try:
        wait_full(pooled, name)
        standard = status_of(pooled)["claimed"]
        claimed = pooled.create(trustLevel="untrusted")
        assert (status_of(pooled, name)["claimed"], status_of(pooled)["claimed"]) == (1, standard)
        resize(pooled, 0, name)
        cold = pooled.create(trustLevel="untrusted")
        script = ["cat", "/proc/self/status", "/proc/self/mountinfo", "/etc/hosts", "/proc/1/limits"]
        seen = []
        for box in (claimed, cold):
            answer = box.request("POST", "/process", {"command": script, "waitForCompletion": True})
            assert answer.status == 200, answer
            lines = re.sub(r"(fd/|[ug]id=)\d+", r"\1N", answer.json()["stdout"]).replace(box.name, "NAME")
            seen.append(sorted(line for line in lines.splitlines() if re.match(
                r"(NoNewPrivs|Cap|Seccomp|Uid|Gid|Groups|127|Max)", line) or " - " in line))
            seen[-1] = [line.partition("/")[2] if " - " in line else line for line in seen[-1]]
            box.delete()
        assert sorted(seen[0]) == sorted(seen[1])
        assert "NoNewPrivs:\t1" in seen[0]
    finally:
        pooled.request("DELETE", f"/v0/pools/{name}")


# --- serving creates ---


def test_spares_are_on_no_list_and_found_by_no_id(pooled):
    for spare in spares_of(pooled):
        answer = pooled.request("GET", f"/v0/sandbox/{spare}")
        assert (answer.status, answer.error()) == (404, "SANDBOX_NOT_FOUND")
        answer = pooled.request("POST", f"/v0/sandbox/{spare}/process", {"command": "true"})
        assert (answer.status, answer.error()) == (404, "SANDBOX_NOT_FOUND")
    no_leaks(pooled)


def test_an_empty_pool_is_a_miss_and_no_failure(pooled):
    wait_full(pooled)
    before = status_of(pooled)
    boxes = [pooled.create(wait=False) for _ in range(8)]
    for box in boxes:
        box.wait_status("running")
        assert box.run("hostname") == box.name
    after = status_of(pooled)
    assert after["claimed"] + after["misses"] == before["claimed"] + before["misses"] + 8
    assert len({id_of(box) for box in boxes}) == 8
    for box in boxes:
        box.delete()
    wait_full(pooled)
    no_leaks(pooled)


def test_a_sandbox_that_is_not_enabled_takes_none(pooled):
    wait_full(pooled)
    before = status_of(pooled)["claimed"]
    box = pooled.create(enabled=False)
    assert (box.status(), status_of(pooled)["claimed"]) == ("stopped", before)
    box.delete()


def test_a_name_that_is_taken_takes_no_spare(pooled):
    box = claim(pooled, unique())
    wait_full(pooled)
    before = status_of(pooled)["claimed"]
    answer = pooled.request("POST", "/v0/sandbox", {"metadata": {"name": box.name}})
    assert (answer.status, answer.error()) == (409, "ALREADY_EXISTS")
    assert status_of(pooled)["claimed"] == before
    box.delete()


def test_released_means_gone_and_another_one_made(pooled):
    for way in ("release", "delete"):
        box = claim(pooled)
        first = id_of(box)
        box.run("echo secret > /workspace/secret; echo secret > /dev/shm/secret")
        box.spawn("sleep 1000")
        before = status_of(pooled)["returned"]
        if way == "release":
            answer = box.request("POST", "/release")
        else:
            answer = box.request("DELETE", "?returnToPool=true")
        assert answer.status == 202, answer
        box.wait_status("gone")
        assert status_of(pooled)["returned"] == before + 1
        for _ in range(3):
            box = claim(pooled)
            assert id_of(box) != first
            assert box.exec("ls /workspace/secret /dev/shm/secret").exit_code != 0
            assert "sleep" not in box.run("cat /proc/[0-9]*/comm 2>/dev/null; true")
            box.delete()
    wait_full(pooled)
    no_leaks(pooled)


def test_release_without_a_pool_deletes(pooled):
    box = claim(pooled)
    before = status_of(pooled)["returned"]
    answer = box.request("POST", "/release", {"returnToPool": False})
    assert answer.status == 202, answer
    box.wait_status("gone")
    assert status_of(pooled)["returned"] == before
    answer = pooled.request("POST", f"/v0/sandbox/{unique()}/release")
    assert (answer.status, answer.error()) == (404, "SANDBOX_NOT_FOUND")


# --- keeping it full ---


def test_what_nobody_takes_is_replaced(server_factory):
    server = server_factory("--pool", "image=host,size=2,name=short")
    wait_full(server, "short")
    first = {path.name for path in (server.data / "run" / "sandboxes").iterdir()}
    assert server.request("PATCH", "/v0/pools/short", {"ttl": 1}).status == 200
    wait_until(lambda: status_of(server, "short")["expired"] >= 2, 60,
               lambda: f"both replaced: {pool_of(server, 'short')}")
    wait_until(lambda: not first & {path.name for path in (server.data / "run" / "sandboxes").iterdir()},
               30, "the first ones gone")
    assert status_of(server, "short")["ready"] >= 2
    box = server.create()
    assert box.run("hostname") == box.name
    server.request("PATCH", "/v0/pools/short", {"ttl": "1h"})
    wait_full(server, "short")
    no_leaks(server)


SMALL = {"cpu": "100m", "memory": "128Mi", "disk": "64Mi"}


def test_spares_give_way_to_those_who_ask(server_factory):
    """What a spare is promised is there for whoever asks, by a create, a start or a resize; a wish that could not be
    granted without all of them costs none."""
    server = server_factory("--capacity", "memory=1Gi", "--overcommit", "1000,memory=1")
    body = {"image": "host", "size": 4, "resources": SMALL}
    assert server.request("POST", "/v0/pools", body).status == 201
    wait_full(server)
    allocated = server.request("GET", "/v0/machine").json()["resources"]["memory"]["allocated"]
    assert allocated == 4 * (128 << 20)

    too_much = server.request("POST", "/v0/sandbox", {"spec": {"resources": {**SMALL, "memory": "1025Mi"}}})
    assert too_much.error() == "INSUFFICIENT_RESOURCES", too_much
    assert status_of(server)["ready"] == 4

    # Not from the pool, whose sandboxes are of another level: it needs more than the spares have left.
    large = {**SMALL, "memory": "700Mi"}
    first = server.create(trustLevel="untrusted", security={"memory_limit_mb": 700}, resources=large)
    assert status_of(server)["ready"] < 4
    first.stop()
    wait_full(server)
    assert first.request("POST", "/start").status == 202
    first.wait_status("running")
    assert status_of(server)["ready"] < 4
    first.delete()

    wait_full(server)
    second = server.create(trustLevel="untrusted", security={"memory_limit_mb": 900}, resources=SMALL)
    wait_full(server)
    answer = second.request("POST", "/resize", {"memory": "900Mi"})
    assert answer.status == 200, answer
    second.delete()
    wait_full(server)


def test_a_spare_that_dies_is_replaced(pooled):
    record = pooled.data / "run" / "sandboxes" / min(spares_of(pooled))
    pid = int(re.search(r"^pid (\d+)$", record.read_text(), re.M).group(1))
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not record.exists(), 30, "nothing left of it")
    assert not process_alive(pid)
    wait_full(pooled)
    box = claim(pooled)
    assert box.run("hostname") == box.name
    box.delete()
    no_leaks(pooled)


# --- pools as a resource ---


def test_life_of_a_pool(server_factory):
    server = server_factory()
    answer = server.request("GET", "/v0/pools")
    assert answer.json() == {"pools": [], "total": 0}
    body = {"image": "host", "size": 1, "ttl": "10m", "refill": {"concurrency": 2},
            "resources": {"memory": "256Mi"}}
    answer = server.request("POST", "/v0/pools", body)
    assert answer.status == 201, answer
    made = answer.json()
    assert (made["name"], made["size"], made["ttl"]) == ("host", 1, 600)
    assert made["refill"] == {"concurrency": 2} and made["resources"]["memory"] == "256Mi"
    answer = server.request("POST", "/v0/pools", {"name": "twin", "image": "host"})
    assert (answer.status, answer.error()) == (409, "ALREADY_EXISTS")
    wait_full(server)
    box = claim(server)
    assert box.get()["spec"]["resources"]["memory"] == "1Gi"
    assert cgroup_file(server, box, "memory.limit_in_bytes", "memory.max") == str(1 << 30)

    server.stop()
    server.start()
    wait_full(server)
    assert (pool_of(server)["size"], pool_of(server)["ttl"]) == (1, 600)
    claim(server).delete()
    answer = server.request("PUT", "/v0/pools/host", {"size": 3})
    assert answer.status == 200 and answer.json()["size"] == 3
    wait_full(server)

    answer = server.request("DELETE", "/v0/pools/host")
    assert answer.status == 200, answer
    for method, path in (("GET", "/v0/pools/host"), ("DELETE", "/v0/pools/host"),
                         ("PATCH", "/v0/pools/host")):
        answer = server.request(method, path, {} if method == "PATCH" else None)
        assert (answer.status, answer.error()) == (404, "POOL_NOT_FOUND")
    wait_until(lambda: len(list((server.data / "volume").iterdir())) <= 2, 30, "no spares")
    assert server.sandbox(box.name).status() in ("running", "stopped")
    no_leaks(server)


@pytest.mark.parametrize("body, code, words", [
    ({"size": -1}, "INVALID_ARGUMENT", "size: -1 is not between 0 and 1000"),
    ({"size": 1001}, "INVALID_ARGUMENT", "size: 1001"),
    ({"size": "many"}, "INVALID_ARGUMENT", "size has to be a whole number"),
    ({"size": 1.5}, "INVALID_ARGUMENT", "size has to be a whole number"),
    ({"ttl": "soon"}, "INVALID_ARGUMENT", "ttl"),
    ({"ttl": 0}, "INVALID_ARGUMENT", "ttl: 0 is not between 1 and"),
    ({"ttl": "1000d"}, "INVALID_ARGUMENT", "ttl"),
    ({"refill": {"concurrency": 0}}, "INVALID_ARGUMENT", "refill.concurrency: 0"),
    ({"refill": {"speed": 1}}, "UNKNOWN_FIELD", "speed"),
    ({"image": "no/such:image"}, "IMAGE_NOT_FOUND", "no/such"),
    ({"name": "Not A Label"}, "INVALID_NAME", "name"),
    ({"colour": "blue"}, "UNKNOWN_FIELD", "colour"),
    ({"resources": {"memory": "1Ki"}}, "INVALID_QUANTITY", "memory"),
])
def test_bad_pools(pooled, body, code, words):
    answer = pooled.request("POST", "/v0/pools", {"name": "bad", **body})
    assert answer.error() == code, answer
    assert words in answer.json()["error"]["message"]


def test_what_a_pool_is_for_cannot_be_changed(pooled):
    for body in ({"image": "host"}, {"name": "other"}, {"resources": {"cpu": 1}}):
        answer = pooled.request("PATCH", "/v0/pools/host", body)
        assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT"), answer


def test_the_command_line(pooled):
    wait_full(pooled)
    listed = pooled.cli("pool", "list")
    assert listed.returncode == 0 and re.match(r"host +host +(standard )? *2 +2 ", listed.stdout.splitlines()[1])
    shown = pooled.cli("pool", "get", "host")
    assert shown.returncode == 0 and re.search(r"^made at once +1$", shown.stdout, re.M)
    assert json.loads(pooled.cli("pool", "get", "host", "-o", "json").stdout)["size"] == 2
    strict = pooled.cli("pool", "create", "--trust", "untrusted", "--size", "0", "--memory", "64Mi")
    assert strict.returncode == 0 and pool_of(pooled, "host-untrusted")["resources"]["memory"] == "64Mi"
    assert pooled.cli("pool", "delete", "host-untrusted").returncode == 0
    again = pooled.cli("pool", "create", "twin")
    assert again.returncode == 4 and "change its size" in again.stderr
    changed = pooled.cli("pool", "update", "host", "--ttl", "20m")
    assert changed.returncode == 0 and pool_of(pooled)["ttl"] == 1200
    assert pooled.cli("pool", "update", "host").returncode == 2
    assert pooled.cli("pool", "get", "nowhere").returncode == 3
    box = claim(pooled)
    assert pooled.cli("sandbox", "release", box.name, "--wait").returncode == 0
    assert box.status() is None


def test_bad_options_of_the_server(pooled):
    for text, words in (("size=3", "names no image"), ("image=host,size=x", "size=x is no number"),
                        ("image=host,sise=3", "sise=3"), ("image=host,ttl=soon", "ttl")):
        done = pooled.cli("server", "--pool", text, "--listen", "127.0.0.1:0")
        assert done.returncode != 0 and words in done.stderr, done
