# SPDX-License-Identifier: Apache-2.0
"""How much a sandbox may send and receive, and how much it has."""

import time

import pytest

from cella_server import wait_until
from world import ECHO, WEB

MEGABYTE = 1000 * 1000


@pytest.mark.parametrize("way", ["in", "out"])
def test_bandwidth(world, boxes, way):
    """Three megabytes at one per second take their time, however the machine feels."""
    box = boxes("full", bandwidth={way: "1M"})
    box.write("/tmp/data", b"x" * 3 * MEGABYTE)
    began = time.monotonic()
    if way == "in":
        assert box.run(f"curl -sS http://{WEB}/bytes/{3 * MEGABYTE} | wc -c", timeout=60) == str(3 * MEGABYTE)
    else:
        assert "200" in box.run(f"curl -sS -o /dev/null -w '%{{http_code}}' -T /tmp/data http://{WEB}/", timeout=60)
    assert time.monotonic() - began > 1.5


def test_traffic_is_counted(world, boxes):
    """Through the proxy and beside it."""
    name = world.name(WEB)
    box = boxes("allowlist", allow=[name, f"{WEB}:{ECHO}"])

    def figures():
        answer = box.server.request("GET", "/v0/metrics")
        assert answer.status == 200, answer
        [own] = [each for each in answer.json()["sandboxes"] if each["name"] == box.name]
        return own.get("network", {})

    box.run(f"curl -sS -o /dev/null http://{name}/bytes/{2 * MEGABYTE}")
    wait_until(lambda: figures().get("inBytes", 0) > 2 * MEGABYTE, 60, figures)
    before = figures()["outBytes"]
    assert box.do("len(tcp(web, port, 'x' * 300000, enough=b'x' * 300000)['got'])", web=WEB, port=ECHO) == 300000
    wait_until(lambda: figures().get("outBytes", 0) > before + 300000, 60, figures)
    assert figures()["inPackets"] > 0 and figures()["outPackets"] > 0


def test_traffic_over_time(world, boxes):
    """In the series of a sandbox, each way, and in `cella top`; a sandbox without a network has none."""
    box, plain = boxes("full"), boxes("none")

    def series():
        answer = box.request("GET", "/metrics?period=10m&resolution=10")
        assert answer.status == 200, answer
        return answer.json()["metrics"]

    def passed(name):
        return sum(point["value"] for point in series().get(name, [])) * 10

    box.run(f"curl -sS -o /dev/null http://{WEB}/bytes/{4 * MEGABYTE}")
    wait_until(lambda: passed("networkIn") > MEGABYTE, 60, series)
    assert passed("networkOut") > 0 and passed("networkInPackets") > 100 and passed("networkOutPackets") > 0
    assert list(plain.request("GET", "/metrics").json()["metrics"]) == ["cpu", "memory", "disk"]
    table = box.server.cli("sandbox", "metrics", box.name)
    assert table.stdout.split("\n")[0].split() == ["TIME", "CPU", "MEMORY", "DISK", "IN/S", "OUT/S"], table
    top = wait_until(lambda: [line for line in box.server.cli("top", "--once").stdout.splitlines()
                              if line.startswith(box.name + " ") and line.split()[-1].endswith("B")], 60, "its rates")
    assert "IN/S" in box.server.cli("top", "--once").stdout and top
