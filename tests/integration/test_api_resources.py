# SPDX-License-Identifier: Apache-2.0
"""Resources: what a sandbox can be given, what is promised, what is used, and new limits under what runs."""

import os
import pathlib
import uuid

import pytest

from cella_server import wait_until
from clones import deleting

MIB = 1 << 20
GIB = 1 << 30
OVERCOMMIT_ONE = ("--overcommit", "1000,cpu=1,memory=1,disk=1")


def unique(prefix="r"):
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def machine(server):
    answer = server.request("GET", "/v0/machine")
    assert answer.status == 200, answer
    return answer.json()


def resize(box, **body):
    return box.request("POST", "/resize", body)


def post(server, **spec):
    return server.request("POST", "/v0/sandbox", {"metadata": {"name": unique()}, "spec": spec})


def group_file(server, box, tree, name):
    group = f"cella-{server.instance}/{box.get()['metadata']['id']}"
    for top in (f"/sys/fs/cgroup/{tree}", "/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        path = pathlib.Path(top, group, name)
        if path.exists():
            return path.read_text()
    return None


# --- what can be asked for ---


def test_everything_is_kept_and_shown(server):
    resources = {"cpu": "500m", "memory": "128Mi", "disk": "1Gi", "pids": 100, "diskRead": "20M",
                 "diskWrite": "10M", "diskReadOps": 500, "diskWriteOps": 400, "networkIn": "1M",
                 "networkOut": "2M", "memoryBandwidth": "1G"}
    box = server.create(resources=resources)
    with deleting(box):
        shown = box.get()
        assert shown["spec"]["resources"] == resources
        usage = shown["usage"]
        assert usage["pids"]["limit"] == 100 and usage["diskRead"]["limit"] == 20_000_000
        assert usage["networkIn"]["limit"] == 1_000_000
        assert "network" in usage["networkIn"]["enforcement"]
        totals = machine(server)["resources"]
        assert usage["disk"]["enforcement"] == totals["disk"]["enforcement"] != ""
        assert usage["memoryBandwidth"]["limit"] == 1_000_000_000
        # What GET gives can be sent back.
        assert box.request("PUT", "", shown).status == 200
        copy = server.sandbox(box.request("POST", "/clone", {"pids": 50}).json()["metadata"]["name"])
        with deleting(copy):
            copy.wait_status("running")
            assert copy.get()["spec"]["resources"] == resources | {"pids": 50}


def test_shares_of_the_machine(server):
    box = server.create(resources={"cpu": "50%", "memory": "1%"})
    with deleting(box):
        totals = machine(server)["resources"]
        usage = box.get()["usage"]
        # What was promised stays the same, whatever becomes of the machine.
        millis = totals["cpu"]["total"] * 500
        assert box.get()["spec"]["resources"]["cpu"] == f"{millis:.0f}m"
        assert resize(box, cpu="10%").json()["spec"]["resources"]["cpu"] == f"{millis / 5:.0f}m"
        assert usage["cpu"]["limit"] == totals["cpu"]["total"] / 2
        assert usage["memory"]["limit"] == totals["memory"]["total"] // 100
        assert totals["cpu"]["total"] == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("resources, word", [
    ({"cpu": "101%"}, "cpu"), ({"memory": "0%"}, "memory"), ({"pids": 15}, "pids"),
    ({"pids": "many"}, "pids"), ({"diskRead": "1"}, "diskRead"), ({"networkIn": "-1M"}, "networkIn"),
    ({"memoryBandwidth": "5"}, "memoryBandwidth"), ({"diskWriteOps": "1.5Gi"}, "diskWriteOps")])
def test_what_is_wrong_is_named(server, resources, word):
    answer = post(server, resources=resources)
    assert (answer.status, answer.error()) == (400, "INVALID_QUANTITY"), answer
    assert f"spec.resources.{word}" in answer.json()["error"]["message"]


def test_an_unknown_resource_is_refused(server):
    answer = post(server, resources={"gpu": 1})
    assert (answer.status, answer.error()) == (400, "UNKNOWN_FIELD"), answer


def test_the_process_limit_is_enforced(server):
    box = server.create(resources={"pids": 20})
    with deleting(box):
        forks = "for i in $(seq 40); do sleep 100 & done 2>&1; echo; jobs -p | wc -l"
        answer = box.exec(forks)
        assert "fork" in answer.stdout.lower() or "resource" in answer.stdout.lower(), answer


# --- disk I/O ---


def test_rates_are_set_on_the_disks_below(server):
    rates = machine(server)["resources"]["diskRead"]
    if not rates["enforced"]:
        pytest.skip(rates["enforcement"])
    box = server.create(resources={"diskRead": "1M", "diskReadOps": 50})
    with deleting(box):
        v1 = group_file(server, box, "blkio", "blkio.throttle.read_bps_device")
        v2 = group_file(server, box, "io", "io.max")
        assert (v1 and "1000000" in v1) or (v2 and "rbps=1000000" in v2), (v1, v2)
        writes = machine(server)["resources"]["diskWrite"]
        assert writes["enforced"] is not bool(v1)  # v1 cannot limit what goes through the page cache
        if v1:
            assert "page cache" in writes["enforcement"]
        assert resize(box, diskRead="3M").status == 200
        v1 = group_file(server, box, "blkio", "blkio.throttle.read_bps_device")
        v2 = group_file(server, box, "io", "io.max")
        assert (v1 and "3000000" in v1) or (v2 and "rbps=3000000" in v2), (v1, v2)
    # One without limits has no group, and gets one when it is given a limit.
    box = server.create()
    with deleting(box):
        assert group_file(server, box, "blkio", "blkio.throttle.read_bps_device") is None or not v1
        pid = box.spawn("exec sleep 1000")
        assert resize(box, diskRead="1M").status == 200
        if v1:
            inside = group_file(server, box, "blkio", "cgroup.procs").split()
            assert len(inside) >= 2, inside
        assert box.request("GET", f"/process/{pid}").json()["status"] == "running"


def test_reading_takes_as_long_as_the_limit_says(server):
    if not machine(server)["resources"]["diskRead"]["enforced"]:
        pytest.skip("disk I/O cannot be limited here")
    if "btrfs" not in machine(server)["resources"]["disk"]["enforcement"]:
        pytest.skip("needs a volume that reads from a disk")
    box = server.create(resources={"diskRead": "1M"})
    with deleting(box):
        box.write("/workspace/read.py",
                  "import os, time, mmap\n"
                  "fd = os.open('/workspace/data', os.O_RDWR | os.O_CREAT)\n"
                  "os.write(fd, os.urandom(4 << 20)); os.fsync(fd)\n"
                  "os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)\n"
                  "start = time.monotonic(); n = 0\n"
                  "fd = os.open('/workspace/data', os.O_RDONLY | os.O_DIRECT)\n"
                  "buf = mmap.mmap(-1, 1 << 18)\n"
                  "while True:\n"
                  "    got = os.readv(fd, [buf])\n"
                  "    n += got\n"
                  "    if got == 0: break\n"
                  "print(n, time.monotonic() - start)\n")
        done = box.exec("python3 /workspace/read.py", timeout=90)
        assert done.exit_code == 0, done
        count, seconds = done.stdout.split()
        assert int(count) == 4 << 20
        assert float(seconds) >= 2, seconds  # a second per megabyte, less what is let through at first


# --- admission ---


def test_promises_stay_within_the_machine(server_factory):
    server = server_factory(*OVERCOMMIT_ONE, "--capacity", "cpu=2,memory=1Gi,disk=1Gi")
    small = {"cpu": "1", "memory": "256Mi", "disk": "256Mi"}
    first = server.create(resources=small)
    second = server.create(resources=small)
    answer = post(server, resources=small)
    assert (answer.status, answer.error()) == (409, "INSUFFICIENT_RESOURCES"), answer
    message = answer.json()["error"]["message"]
    assert "cpu: 1 cores asked for, 0 cores free" in message and "2 cores promised" in message
    assert "memory" not in message

    resources = machine(server)["resources"]
    assert resources["cpu"] | {"used": 0, "percent": 0} == {
        "total": 2.0, "source": "configured", "overcommit": 1.0, "allocated": 2.0, "free": 0.0, "used": 0,
        "percent": 0, "enforced": True, "enforcement": "cgroup cpu quota"}
    assert resources["memory"]["allocated"] == 512 * MIB and resources["memory"]["free"] == 512 * MIB

    # A stopped one keeps its disk alone, and starting it again may be refused.
    first.stop()
    resources = machine(server)["resources"]
    assert resources["cpu"]["allocated"] == 1 and resources["disk"]["allocated"] == 512 * MIB
    third = server.create(resources=small)
    answer = first.request("POST", "/start", {})
    assert (answer.status, answer.error()) == (409, "INSUFFICIENT_RESOURCES"), answer
    assert first.status() == "stopped"
    assert resize(second, cpu="1500m").error() == "INSUFFICIENT_RESOURCES"
    assert second.get()["spec"]["resources"]["cpu"] == "1"

    # Promises survive the server, and are given back at the end.
    server.stop()
    server.start()
    assert machine(server)["resources"]["cpu"]["allocated"] == 0  # a shutdown stops them all
    assert machine(server)["resources"]["disk"]["allocated"] == 768 * MIB
    for box in (first, second):
        assert box.request("POST", "/start", {}).status == 202
        box.wait_status("running")
    assert third.request("POST", "/start", {}).error() == "INSUFFICIENT_RESOURCES"
    for box in (first, second, third):
        box.delete()
    wait_until(lambda: machine(server)["resources"]["disk"]["allocated"] == 0, 30, "all is given back")
    assert machine(server)["resources"]["cpu"]["allocated"] == 0


def test_a_refused_one_leaves_nothing(server_factory):
    server = server_factory(*OVERCOMMIT_ONE, "--capacity", "cpu=1,memory=1Gi,disk=1Gi")
    name = unique()
    body = {"metadata": {"name": name}, "spec": {"resources": {"cpu": "2", "disk": "64Mi"}}}
    assert server.request("POST", "/v0/sandbox", body).error() == "INSUFFICIENT_RESOURCES"
    assert server.request("GET", f"/v0/sandbox/{name}").status == 404
    # So does one that cannot be recorded, and one whose name is taken.
    body["spec"]["resources"] = {"cpu": "500m", "memory": "64Mi", "disk": "64Mi"}
    assert server.request("POST", "/v0/sandbox", body).status == 202
    assert server.request("POST", "/v0/sandbox", body).error() == "ALREADY_EXISTS"
    assert machine(server)["resources"]["cpu"]["allocated"] == 0.5
    server.sandbox(name).wait_status("running").delete()


def test_a_crash_forgets_no_promise(server_factory):
    server = server_factory(*OVERCOMMIT_ONE, "--capacity", "cpu=1,memory=1Gi,disk=1Gi")
    box = server.create(resources={"cpu": "1", "memory": "64Mi", "disk": "64Mi"})
    server.wait_recovered(server.kill("cellad"), "cellad")
    assert machine(server)["resources"]["cpu"]["allocated"] == 1
    assert post(server, resources={"cpu": "10m"}).error() == "INSUFFICIENT_RESOURCES"
    box.delete()
    wait_until(lambda: machine(server)["resources"]["cpu"]["allocated"] == 0, 30, "it is given back")


def test_factors_without_an_option(server_factory):
    """As docs/operations.md says: what a small machine can live with."""
    server = server_factory("--overcommit", "", "--capacity", "cpu=2,memory=1Gi,disk=4Gi")
    rows = machine(server)["resources"]
    assert {name: row["overcommit"] for name, row in rows.items() if row["overcommit"] != 10} == {
        "cpu": 100, "memory": 4, "disk": 20}
    boxes = [server.create(wait=False) for _ in range(4)]
    answer = post(server)
    assert answer.error() == "INSUFFICIENT_RESOURCES" and "1 GiB asked for, 0 free" in answer.text, answer
    for box in boxes:
        box.delete()


@pytest.mark.parametrize("option, value", [
    ("--overcommit", "0"), ("--overcommit", "cpu"), ("--overcommit", "gpu=1"), ("--overcommit", "cpu=-1"),
    ("--capacity", "memory"), ("--capacity", "memory=much"), ("--capacity", "x=1")])
def test_options_that_make_no_sense(server, option, value):
    done = server.cli("server", option, value)
    assert done.returncode == 2 and option in done.stderr, done


# --- usage ---


def test_usage_is_in_per_cent_of_its_own_limits(server_factory):
    server = server_factory("--metrics-interval", "1")
    box = server.create(resources={"memory": "256Mi", "disk": "256Mi"})
    box.write("/tmp/hold.py", "import time\nb = bytearray(100 << 20)\n"
                              "open('/tmp/held', 'w').close()\ntime.sleep(1000)\n")
    box.spawn("exec python3 /tmp/hold.py")
    wait_until(lambda: box.request("GET", "/filesystem/tmp/held").status == 200, 30, "it holds")

    def used(box):
        return box.get()["usage"]["memory"].get("percent", 0)
    wait_until(lambda: 35 < used(box) <= 100, 30, "it is measured")
    usage = box.get()["usage"]
    assert usage["memory"]["limit"] == 256 * MIB and usage["memory"]["used"] > 90 * MIB
    item = server.request("GET", "/v0/metrics").json()["sandboxes"][0]
    assert 35 < item["percent"]["memory"] <= 100 and item["limits"]["pids"] == 1024
    shown = machine(server)
    assert shown["counts"] == {"sandboxes": 1, "running": 1}
    assert shown["resources"]["memory"]["used"] > 90 * MIB
    assert shown["sandboxes"][0]["percent"]["memory"] > 35
    assert shown["sandboxes"][0]["allocated"]["memory"] == 256 * MIB
    table = server.cli("machine").stdout
    assert "memoryBandwidth" in table and box.name in table
    assert "PERCENT" in server.cli("sandbox", "get", box.name).stdout
    box.delete()


# --- resizing ---


def test_resize_sets_and_multiplies(server):
    box = server.create(resources={"cpu": "1", "memory": "512Mi", "disk": "1Gi", "pids": 200})
    with deleting(box):
        answer = resize(box, memory="256Mi", pids=100)
        assert answer.status == 200, answer
        assert answer.json()["spec"]["resources"] == {"cpu": "1", "memory": "256Mi", "disk": "1Gi",
                                                      "pids": 100}
        answer = resize(box, factor=0.5)
        assert answer.json()["spec"]["resources"] == {"cpu": "500m", "memory": "128Mi", "disk": "512Mi",
                                                      "pids": 50}
        event = box.get()["events"][-1]
        assert (event["type"], event["status"]) == ("RESIZE", "SUCCESS")
        limit = group_file(server, box, "memory", "memory.limit_in_bytes") or \
            group_file(server, box, "memory", "memory.max")
        assert int(limit) == 128 * MIB
        done = server.cli("sandbox", "resize", box.name, "--factor", "2")
        assert done.returncode == 0 and "256Mi" in done.stdout, done
        done = server.cli("sandbox", "resize", box.name, "--cpu", "250m", "-o", "json")
        assert done.returncode == 0 and '"250m"' in done.stdout, done


@pytest.mark.parametrize("body, code", [
    ({}, "INVALID_ARGUMENT"), ({"factor": 0}, "INVALID_ARGUMENT"), ({"factor": -1}, "INVALID_ARGUMENT"),
    ({"factor": "x"}, "INVALID_ARGUMENT"), ({"factor": 1e9}, "INVALID_ARGUMENT"),
    ({"factor": 0.5, "cpu": "1"}, "INVALID_ARGUMENT"), ({"factor": 0.0001}, "INVALID_QUANTITY"),
    ({"cpu": "lots"}, "INVALID_QUANTITY"), ({"colour": "red"}, "UNKNOWN_FIELD")])
def test_resizes_that_make_no_sense(server, shared_sandbox, body, code):
    before = shared_sandbox.get()["spec"]
    answer = resize(shared_sandbox, **body)
    assert (answer.status, answer.error()) == (400, code), answer
    assert shared_sandbox.get()["spec"] == before


def test_never_below_what_is_in_use(server):
    box = server.create(resources={"memory": "512Mi", "pids": 200})
    with deleting(box):
        box.write("/tmp/hold.py", "import time\nb = bytearray(200 << 20)\n"
                                  "open('/tmp/held', 'w').close()\ntime.sleep(1000)\n")
        box.spawn("exec python3 /tmp/hold.py")
        box.spawn("for i in $(seq 40); do sleep 1000 & done; touch /tmp/many; wait")
        for name in ("held", "many"):
            wait_until(lambda: box.request("GET", f"/filesystem/tmp/{name}").status == 200, 30, name)
        before = box.get()["spec"]
        assert resize(box, factor=0.1).error() == "RESOURCE_IN_USE"
        answer = resize(box, pids=20)
        assert answer.error() == "RESOURCE_IN_USE" and "pids" in answer.json()["error"]["message"]
        assert box.get()["spec"] == before


# --- lowering by itself ---


def test_limits_follow_what_is_used(server_factory):
    server = server_factory("--metrics-interval", "1")
    box = server.create(resources={"cpu": "2", "memory": "1Gi", "disk": "1Gi"})
    lower = {"factor": 1.5, "minimum": {"cpu": "100m", "memory": "64Mi", "disk": "100Mi"}}
    assert "autoLower" not in box.get()["spec"]
    answer = box.request("PATCH", "", {"spec": {"autoLower": lower}})
    assert answer.status == 200 and answer.json()["spec"]["autoLower"] == lower, answer
    def lowered():
        resources = box.get()["spec"]["resources"]
        return (resources["memory"], resources["disk"]) == ("64Mi", "100Mi")
    wait_until(lowered, 60, lambda: f"it is lowered: {box.get()}")
    told = [e["message"] for e in box.get()["events"] if e["type"] == "RESIZE"]
    assert all("lowered automatically" in message for message in told), told
    assert any("memory from 1 GiB to 64 MiB" in message for message in told), told
    limit = group_file(server, box, "memory", "memory.limit_in_bytes") or \
        group_file(server, box, "memory", "memory.max")
    assert int(limit) == 64 * MIB
    assert box.run("echo alive") == "alive"
    # Kept over a crash, and switched off again.
    server.wait_recovered(server.kill("cellad"), "cellad")
    assert box.get()["spec"]["autoLower"] == lower
    answer = box.request("PATCH", "", {"spec": {"autoLower": False}})
    assert "autoLower" not in answer.json()["spec"]
    box.delete()


@pytest.mark.parametrize("value, word", [
    ({"factor": 1}, "above 1"), ({"factor": 0.5}, "above 1"), ({"factor": 1000}, "at most"),
    ({"minimum": {"cpu": "1"}}, "factor is missing"), ({"factor": 2, "minimum": {"pids": 20}}, "measured"),
    ({"factor": 2, "minimum": {"cpu": "x"}}, "minimum.cpu"), ("yes", "object")])
def test_lowering_that_makes_no_sense(server, value, word):
    answer = post(server, autoLower=value)
    assert answer.status == 400 and word in answer.json()["error"]["message"], answer
