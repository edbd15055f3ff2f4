# SPDX-License-Identifier: Apache-2.0
"""Many sandboxes: from a pool, at once, one after the other, and thousands alive. On a server of its own,
whose pool stands still while others are measured."""

import http.client
import json
import os
import time

from . import memory
from .docker import Unavailable
from .program import Program
from .report import median
from .server import Server

POOL = 8
SETTLE_SECONDS = 2


def _resize(server, size):
    with open(server.key_file, encoding="ascii") as file:
        key = file.read().strip()
    connection = http.client.HTTPConnection(server.address, timeout=60)
    connection.request("PATCH", "/v0/pools/host", json.dumps({"size": size}),
                       {"Authorization": "Bearer " + key, "Content-Type": "application/json"})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    if answer.status != 200:
        raise OSError("the pool's size: %d %s" % (answer.status, text[:200]))


def _idle(bench, client, found):
    """Memory of idle ones: the floor's, then ours on top of them. So what the kernel still had at hand of
    earlier ones is the floor's gain."""
    count = bench.size["idle-all"]
    before = memory.meminfo()
    if bench.floor is not None:
        bench.floor.run("hold", count, 3600)
        time.sleep(SETTLE_SECONDS)
        between = memory.meminfo()
        found["floor-idle"], _ = memory.growth(before, between, count)
        before = between
    client.run("grow", count, 3600)
    time.sleep(SETTLE_SECONDS)
    found["idle"], _ = memory.growth(before, memory.meminfo(), count)
    client.run("shrink", count, 3600)
    if bench.floor is not None:
        bench.floor.run("drop", count, 3600)
    time.sleep(SETTLE_SECONDS)


def _alive(bench, client, found):
    """Create latency and memory with more and more of them: of some that stay, and of as many that are
    each deleted before the next."""
    there = 0
    before = memory.meminfo()
    for count in bench.size["alive"]:
        client.run("grow", count - there, 3600)
        there = count
        time.sleep(SETTLE_SECONDS)
        total, _ = memory.growth(before, memory.meminfo(), count)
        added = client.run("add", bench.size["many-create"])
        client.run("shrink", bench.size["many-create"])
        time.sleep(SETTLE_SECONDS)
        churned = client.run("create", bench.size["many-create"])
        found["alive"][count] = {"create": median(added["add"]), "each": total,
                                 "churned": median(churned["create"])}
    client.run("shrink", there, 3600)


def measure(bench):
    """{"claim", "echo": samples, "burst": ns, "docker-burst": ns or None, "rate": per second, "idle",
    "floor-idle": KiB or None, "alive": {count: {"create", "churned": ns, "each": KiB}}, "leaks": text}"""
    found = {"claim": [], "echo": [], "alive": {}, "docker-burst": None, "floor-idle": None}
    server = Server(os.path.join(bench.options.build, "cella"), os.path.join(bench.folder, "many"),
                    "--pool", "image=host,size=%d" % POOL)
    with server:
        with Program("client", [bench.binary("client"), server.address, server.key_file,
                                bench.binary("floor-true"), bench.busybox]) as client:
            for number in range(bench.size["rounds"] + 1):
                echo = client.run("echo", bench.size["many-create"])
                claim = client.run("claim", bench.size["many-create"])
                if number > 0:  # the first round warms up
                    found["echo"] += echo["echo"]
                    found["claim"] += claim["claim"]
            _resize(server, 0)
            bursts = []
            for _ in range(3):
                time.sleep(SETTLE_SECONDS)  # what the kernel still takes apart is not the next one's
                bursts.append(client.run("burst", bench.size["burst"])["burst"][0])
            found["burst"] = median(bursts)
            if bench.docker is not None:
                try:
                    found["docker-burst"] = bench.docker.burst(bench.size["burst"])
                except (Unavailable, OSError) as error:
                    print("docker, many at once: %s" % error, flush=True)
            start = time.monotonic()
            client.run("churn", bench.size["churn"])
            found["rate"] = bench.size["churn"] / (time.monotonic() - start)
            _idle(bench, client, found)
            _alive(bench, client, found)
        found["leaks"] = server.leaks()
    return found


def report(bench, out, ms):
    """The rows, with their bars."""
    found = bench.many
    claim, echo = median(found["claim"]), median(found["echo"])
    out.row("create from a pool → first output, against the same command in a running sandbox",
            ms(claim), ms(echo), "%.2f ×" % (claim / echo), bar="≤ 2 × that", met=(claim / echo <= 2,))
    docker, burst = found["docker-burst"], found["burst"]
    faster = docker / burst if docker else None
    out.row("%d created at once → the last one's first output" % bench.size["burst"], ms(burst),
            docker=ms(docker) if docker else bench.docker_missing,
            faster="%.0f ×" % faster if faster else "–", bar="≥ 40 × faster than Docker",
            met=(None if faster is None else faster >= 40,))
    out.row("created and deleted, 8 at a time, with a command in each", "%.0f /s" % found["rate"])
    bare = found["floor-idle"]
    out.row("memory of each of %d idle, all told" % bench.size["idle-all"], "%.0f KiB" % found["idle"],
            "%.0f KiB" % bare if bare else "", "%.2f ×" % (found["idle"] / bare) if bare else "",
            bar="≤ 400 kB", met=(found["idle"] * 1024 <= 400e3,))
    first = min(found["alive"])
    for count, taken in sorted(found["alive"].items()):
        ratio = taken["create"] / found["alive"][first]["create"]
        # What a few take is lost in what the kernel keeps at hand.
        each = "; %.0f KiB" % taken["each"] if count >= 1000 else "; –"
        out.row("create → first output with %d alive; memory of each" % count, ms(taken["create"]) + each,
                ratio="%.2f × that at %d" % (ratio, first),
                bar={5000: "≤ 3 ×"}.get(count, ""), met={5000: (ratio <= 3,)}.get(count, ()))
    out.row("… and what is left of them", found["leaks"] or "nothing", bar="no leak",
            met=(not found["leaks"],))
    out.note("Create when each is deleted before the next, so that the kernel still takes the last one apart: %s."
             % ", ".join("%s with %d alive" % (ms(taken["churned"]), count)
                         for count, taken in sorted(found["alive"].items())))
