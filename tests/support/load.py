# SPDX-License-Identifier: Apache-2.0
"""Mixed traffic against one server, by several clients at once: each is a process of its own with one
connection, does one kind of thing over and over, and measures every request. A kind is a class of routes.

Clients are processes because their own waiting must not be measured: threads of one Python share a lock,
and one that is late would make the server look so. Each is a session of its own for the same reason: the
kernel shares a core out among sessions first, and ten clients in one would get no more than the server."""

import collections
import contextlib
import http.client
import json
import multiprocessing
import os
import pathlib
import random
import time
import urllib.parse

from cella_exec import ExecSocket
from cella_server import PATIENCE

# Clients per kind: more of what is cheap.
MIX = {"read": 2, "list": 1, "exec": 2, "file": 2, "stream": 1, "websocket": 1, "life": 1}
FIRST = 0.2  # s in which connections are made and caches filled, and nothing is measured

Row = collections.namedtuple("Row", "kind count p50 p90 p99 worst limited errors")
Memory = collections.namedtuple("Memory", "name third end")


class Failed(Exception):
    """An answer that is neither right nor a 429."""


class Limited(Exception):
    """A 429; how long it asks to be left alone."""

    def __init__(self, seconds):
        super().__init__(seconds)
        self.seconds = seconds


class Client:
    """One connection that is kept, as a program's is."""

    def __init__(self, server):
        self.server = server
        self.parts = urllib.parse.urlsplit(server.url)
        self.connection = None

    def request(self, method, path, body=None, accept=None, wanted=(200,), content="application/json"):
        fields = {"Authorization": f"Bearer {self.server.key}"}
        if body is not None:
            fields["Content-Type"] = content
            body = body if isinstance(body, bytes) else json.dumps(body).encode()
        if accept:
            fields["Accept"] = accept
        if self.connection is None:
            self.connection = http.client.HTTPConnection(self.parts.hostname, self.parts.port, timeout=60 * PATIENCE)
        self.connection.request(method, path, body, fields)
        answer = self.connection.getresponse()
        data = answer.read()
        if answer.status == 429:
            raise Limited(float(answer.headers.get("Retry-After", "1")))
        if answer.status not in wanted:
            raise Failed(f"{method} {path}: {answer.status} {data[:300]!r}")
        return data


# --- kinds: each gives a function that does one thing, and a name of what it measures ---

def reading(server, box, _):
    client = Client(server)
    return lambda: client.request("GET", f"/v0/sandbox/{box}")


def listing(server, _, __):
    client = Client(server)
    return lambda: client.request("GET", "/v0/sandbox?limit=100")


def executing(server, box, number):
    client = Client(server)

    def once():
        answer = json.loads(client.request("POST", f"/v0/sandbox/{box}/process", {
            "command": ["echo", str(number)], "waitForCompletion": True, "timeout": 60}))
        if answer["stdout"] != f"{number}\n" or answer["exitCode"] != 0:
            raise Failed(f"exec: {answer}")

    return once


def filing(server, box, number):
    client, turn = Client(server), [0]
    content = random.Random(number).randbytes(8192)

    def once():
        path = f"/v0/sandbox/{box}/filesystem/tmp/load/{number}-{turn[0] % 50}"
        what = turn[0] // 50 % 3  # written, read, removed, fifty at a time
        turn[0] += 1
        if what == 0:
            client.request("PUT", path, content, content="application/octet-stream")
        elif what == 1:
            if client.request("GET", path, accept="application/octet-stream") != content:
                raise Failed(f"{path}: other bytes")
        else:
            client.request("DELETE", path, wanted=(200, 404))

    return once


def streaming(server, box, _):
    client = Client(server)

    def once():
        data = client.request("POST", f"/v0/sandbox/{box}/process", {"command": ["seq", "1", "2000"], "timeout": 60},
                              accept="application/x-ndjson")
        lines = [json.loads(line) for line in data.splitlines()]
        out = "".join(line["data"] for line in lines if line["type"] == "stdout")
        if not out.endswith("\n2000\n") or lines[-1]["type"] != "result":
            raise Failed(f"stream: {lines[-1]}")

    return once


def talking(server, box, _):
    socket, turn = ExecSocket(server, box), [0]

    def once():
        turn[0] += 1
        socket.messages.clear()
        end, out, _ = socket.run(f"s{turn[0]}", ["seq", "1", "500"])
        if not out.endswith(b"\n500\n") or end["exitCode"] != 0:
            raise Failed(f"WebSocket: {end}")

    return once


def remove(client, name):
    """Whatever the limits are: nothing may be left."""
    while True:
        try:
            client.request("DELETE", f"/v0/sandbox/{name}", wanted=(202,))
            return
        except Limited as told:
            time.sleep(min(told.seconds, 1))


def living(server, _, number):
    client, turn = Client(server), [0]

    def once():
        turn[0] += 1
        name = f"load-{number}-{turn[0]}"
        client.request("POST", "/v0/sandbox", {"metadata": {"name": name}}, wanted=(202,))
        try:
            client.request("POST", f"/v0/sandbox/{name}/process", {"command": ["true"], "waitForCompletion": True})
        finally:
            remove(client, name)

    return once


KINDS = {"read": reading, "list": listing, "exec": executing, "file": filing, "stream": streaming,
         "websocket": talking, "life": living}


# --- clients ---

def client_main(server, box, kind, number, begin, end, results):
    """In a process of its own. What it found goes through the pipe as one piece."""
    os.setsid()
    times, limited, errors, once = [], 0, [], None
    while time.monotonic() < end and len(errors) < 20:
        try:
            if once is None:
                once = KINDS[kind](server, box, number)
            before = time.monotonic()
            once()
            if before > begin:
                times.append(time.monotonic() - before)
        except Limited as told:
            limited += 1
            time.sleep(min(told.seconds, 1))
        except (Failed, AssertionError) as wrong:
            errors.append(str(wrong)[:300])
        except (OSError, http.client.HTTPException) as lost:
            errors.append(f"the connection was lost: {lost!r}")
            once = None
    results.send((kind, times, limited, errors))
    results.close()
    os._exit(0)  # not through what the parent has open


def resident(server):
    """{"cellad": bytes, "warden": bytes}: what is theirs alone, so that a library's pages do not count."""
    found = {}
    for name, pid in (("cellad", server.pids().cellad), ("warden", server.pids().warden)):
        with contextlib.suppress(OSError):
            for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith("RssAnon:"):
                    found[name] = int(line.split()[1]) * 1024
    return found


def quantile(ordered, part):
    return ordered[min(len(ordered) - 1, int(len(ordered) * part))] if ordered else 0.0


def run(server, box, seconds):
    """([Row], [Memory]). The sandbox has to run; nothing is left behind in it that matters."""
    start = time.monotonic()
    clients, number = [], 0
    context = multiprocessing.get_context("fork")
    for kind, count in MIX.items():
        for _ in range(count):
            number += 1
            mine, theirs = context.Pipe(duplex=False)
            process = context.Process(target=client_main, args=(
                server, box, kind, number, start + FIRST, start + seconds, theirs), daemon=True)
            process.start()
            theirs.close()
            clients.append((process, mine))
    time.sleep(max(0, start + seconds / 3 - time.monotonic()))
    third = resident(server)
    time.sleep(max(0, start + seconds * 0.98 - time.monotonic()))
    last = resident(server)
    found = {kind: ([], [0], []) for kind in MIX}
    for process, results in clients:
        kind, times, limited, errors = results.recv()
        found[kind][0].extend(times)
        found[kind][1][0] += limited
        found[kind][2].extend(errors)
        process.join()
    rows = []
    for kind, (times, limited, errors) in found.items():
        times.sort()
        rows.append(Row(kind, len(times), quantile(times, 0.5), quantile(times, 0.9), quantile(times, 0.99),
                        times[-1] if times else 0.0, limited[0], errors))
    return rows, [Memory(name, third.get(name, 0), last.get(name, 0)) for name in ("cellad", "warden")]


def table(rows, memory, seconds):
    """As Markdown."""
    lines = [f"{seconds:.0f} s, {sum(MIX.values())} clients", "",
             "| class | requests | per s | p50 ms | p90 ms | p99 ms | worst ms | p99 / p50 | 429 | errors |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        ratio = row.p99 / row.p50 if row.p50 else 0
        lines.append(f"| {row.kind} | {row.count} | {row.count / seconds:.0f} | {row.p50 * 1000:.2f} | "
                     f"{row.p90 * 1000:.2f} | {row.p99 * 1000:.2f} | {row.worst * 1000:.1f} | {ratio:.1f} | "
                     f"{row.limited} | {len(row.errors)} |")
    lines += ["", "| process | own memory at a third, MiB | at the end, MiB |", "|---|---|---|"]
    for one in memory:
        lines.append(f"| {one.name} | {one.third / 2**20:.1f} | {one.end / 2**20:.1f} |")
    return "\n".join(lines)


# Memory may still settle a little (spare stacks and buffers are kept); a leak goes on.
FLAT = 1.10
FLAT_MORE = 4 << 20
TAIL = 10  # × the median


def problems(rows, memory, timing=True):
    """What is not as it has to be, a line each."""
    found = [f"{row.kind}: {error}" for row in rows for error in row.errors[:3]]
    found += [f"{row.kind}: nothing was done" for row in rows if row.count == 0]
    if timing:
        found += [f"{one.name} grew from {one.third >> 10} KiB to {one.end >> 10} KiB" for one in memory
                  if one.end > one.third * FLAT + FLAT_MORE]
        found += [f"{row.kind}: p99 {row.p99 * 1000:.1f} ms is more than {TAIL} × p50 ({row.p50 * 1000:.2f} ms)"
                  for row in rows if row.p99 > TAIL * row.p50]
    return found
