# SPDX-License-Identifier: Apache-2.0
"""Metrics: what a sandbox really uses shows up, stays over restarts, and goes with the sandbox."""

import datetime

import pytest

from cella_server import wait_until

BUSY = "python3 -c 'while True: pass'"
HOLDS_100_MB = "python3 -c 'import time; b = bytearray(100 << 20); time.sleep(1000)'"


@pytest.fixture(scope="module")
def box(server):
    made = server.create(resources={"cpu": "1", "memory": "512Mi", "disk": "1Gi"})
    yield made
    made.delete()


def metrics(box, query=""):
    answer = box.request("GET", f"/metrics{query}")
    assert answer.status == 200, answer
    return answer.json()


def newest(box, series, query="?period=5m&resolution=1"):
    points = metrics(box, query)["metrics"][series]
    return points[-1]["value"] if points else None


def seconds(timestamp):
    return datetime.datetime.strptime(timestamp, "%Y-%m-%dT%H:%M:%S%z").timestamp()


def test_shape_is_the_seeds(box):
    wait_until(lambda: newest(box, "cpu") is not None, 30, "a figure of cpu")
    for answer in (metrics(box), metrics(box, "?period=1h&resolution=60")):
        assert list(answer) == ["period", "resolution", "metrics"]
        assert (answer["period"], answer["resolution"]) == ("1h", 60)
        assert list(answer["metrics"]) == ["cpu", "memory", "disk"]
        for points in answer["metrics"].values():
            assert points
            for point in points:
                assert list(point) == ["timestamp", "value"]
                assert point["timestamp"].endswith(":00Z")
        assert isinstance(answer["metrics"]["memory"][-1]["value"], int)
        assert isinstance(answer["metrics"]["disk"][-1]["value"], int)
        assert isinstance(answer["metrics"]["cpu"][-1]["value"], float)


def test_at_the_sandboxes_own_address(server, box):
    answer = server.request("GET", f"/default/sandbox/{box.name}/metrics?period=30s")
    assert answer.status == 200, answer
    assert (answer.json()["period"], answer.json()["resolution"]) == ("30s", 30)


@pytest.mark.parametrize("query, period, resolution", [
    ("?period=15m&resolution=60s", "15m", 60), ("?period=24h&resolution=5m", "24h", 300),
    ("?period=7d&resolution=1h", "7d", 3600), ("?period=90&resolution=1", "90", 1),
    ("?period=1h30m&resolution=1m", "1h30m", 60), ("?period=7d&resolution=60", "7d", 60),
])
def test_periods_and_resolutions(box, query, period, resolution):
    answer = metrics(box, query)
    assert (answer["period"], answer["resolution"]) == (period, resolution)
    for points in answer["metrics"].values():
        times = [seconds(point["timestamp"]) for point in points]
        assert times == sorted(set(times))
        assert all(time % resolution == 0 for time in times)


@pytest.mark.parametrize("query, word", [
    ("?period=yesterday", "period"), ("?period=", "period"), ("?period=0s", "period"),
    ("?period=8d", "7 days"), ("?period=-1h", "period"), ("?period=1.5h", "period"),
    ("?resolution=0", "resolution"), ("?resolution=x", "resolution"),
    ("?resolution=2d&period=7d", "resolution"), ("?period=1m&resolution=2m", "longer"),
    ("?period=7d&resolution=1", "11000"), ("?period=99999999999999999999s", "period"),
])
def test_bad_questions_are_told_what_is_wrong(box, query, word):
    answer = box.request("GET", f"/metrics{query}")
    assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT"), answer
    assert word in answer.json()["error"]["message"]


def test_unknown_sandbox(server):
    answer = server.request("GET", "/v0/sandbox/nobody/metrics")
    assert (answer.status, answer.error()) == (404, "SANDBOX_NOT_FOUND")


def test_a_busy_cpu_shows(box):
    pid = box.spawn(BUSY)
    # A whole core is asked for; on a busy machine it gets less.
    wait_until(lambda: (newest(box, "cpu") or 0) > 0.1, 60, lambda: f"load: {metrics(box)}")
    assert max(p["value"] for p in metrics(box)["metrics"]["cpu"]) < 2
    assert box.request("POST", f"/process/{pid}/kill").status == 200
    wait_until(lambda: newest(box, "cpu") < 0.1, 60, lambda: f"no load: {metrics(box)}")


def test_memory_shows(box):
    before = newest(box, "memory")
    pid = box.spawn(HOLDS_100_MB)
    wait_until(lambda: newest(box, "memory") > before + (90 << 20), 60, "100 MB more")
    assert newest(box, "memory") <= 512 << 20
    assert box.request("POST", f"/process/{pid}/kill").status == 200
    wait_until(lambda: newest(box, "memory") < before + (50 << 20), 60, "100 MB less")


def test_disk_shows(box):
    before = newest(box, "disk")
    box.run("head -c 40M /dev/urandom > /workspace/big")
    wait_until(lambda: newest(box, "disk") >= before + (40 << 20), 60, "40 MB more")
    box.run("rm /workspace/big")
    wait_until(lambda: newest(box, "disk") < before + (20 << 20), 90, "40 MB less")


def test_all_at_once(server, box):
    stopped = server.create(enabled=False)
    try:
        answer = server.request("GET", "/v0/metrics")
        assert answer.status == 200, answer
        items = {item["name"]: item for item in answer.json()["sandboxes"]}
        running = items[box.name]
        assert running["status"] == "running" and running["memory"] > 0 and running["disk"] >= 0
        assert running["limits"] == {"cpu": 1.0, "memory": 512 << 20, "disk": 1 << 30,
                                     "pids": 1024}
        assert 0 <= running["percent"]["memory"] <= 100
        assert items[stopped.name]["status"] == "stopped"
        assert "memory" not in items[stopped.name]
        box.spawn("sleep 1000 & sleep 1000 & wait")
        wait_until(lambda: {i["name"]: i for i in server.request("GET", "/v0/metrics").json()
                            ["sandboxes"]}[box.name]["processes"] >= 3, 30, "three processes")
        page = server.request("GET", "/v0/metrics?limit=1&offset=1").json()
        assert len(page["sandboxes"]) <= 1 and page["limit"] == 1 and page["offset"] == 1
        assert server.request("GET", "/v0/metrics?limit=0").error() == "INVALID_ARGUMENT"
    finally:
        stopped.delete()


def test_history_of_its_own(server_factory):
    """Stays over a stop, a kill and a restart; has gaps and no zeros; goes with the sandbox."""
    server = server_factory("--metrics-interval", "1")
    box = server.create()
    wait_until(lambda: len(metrics(box, "?period=5m&resolution=1")["metrics"]["memory"]) >= 3, 60,
               "some samples")
    seen = metrics(box, "?period=1h&resolution=1")["metrics"]["memory"]

    def still_there():
        # The interval that was under way may have been averaged anew since.
        kept = metrics(box, "?period=1h&resolution=1")["metrics"]["memory"]
        return all(point in kept for point in seen[:-1])

    before = server.kill("cellad")
    server.wait_recovered(before, "cellad")
    assert still_there()
    box.stop()
    assert still_there()
    assert all(p["value"] > 0 for p in metrics(box, "?resolution=1")["metrics"]["memory"])
    server.stop()
    server.start()
    assert box.status() == "stopped" and still_there()
    box.start()
    count = len(metrics(box, "?resolution=1")["metrics"]["memory"])
    wait_until(lambda: len(metrics(box, "?resolution=1")["metrics"]["memory"]) > count, 60,
               "it goes on")
    files = server.data / "db" / "metrics"
    assert [path.name for path in files.iterdir()] == [box.get()["metadata"]["id"]]
    box.delete()
    assert list(files.iterdir()) == []
    # One of the same name begins anew.
    again = server.create(name=box.name)
    assert len(metrics(again, "?period=1h&resolution=1h")["metrics"]["memory"]) <= 1


def test_plain_storage_is_measured(server_factory):
    server = server_factory("--storage", "plain", "--metrics-interval", "1")
    box = server.create()
    box.run("head -c 10M /dev/zero > /workspace/big")
    wait_until(lambda: newest(box, "disk") is not None, 60, "a first measurement")
    assert newest(box, "disk") >= 0


@pytest.mark.parametrize("interval", ["0", "61", "x", "-1", "2m"])
def test_bad_intervals(server, interval):
    done = server.cli("server", "--metrics-interval", interval)
    assert done.returncode == 2 and "--metrics-interval" in done.stderr, done


def test_another_workspace_sees_nothing(server, box):
    made = server.request("POST", "/v0/workspaces", {"name": "elsewhere"})
    assert made.status in (200, 201), made
    try:
        answer = server.request("GET", "/v0/metrics", headers={"X-Blaxel-Workspace": "elsewhere"})
        assert answer.status == 200 and answer.json()["sandboxes"] == [], answer
        for path in ("metrics", "logs"):
            answer = server.request("GET", f"/elsewhere/sandbox/{box.name}/{path}")
            assert answer.error() == "SANDBOX_NOT_FOUND", answer
    finally:
        server.request("DELETE", "/v0/workspaces/elsewhere")
