# SPDX-License-Identifier: Apache-2.0
"""Code in a sandbox's interpreters: next to a plain `python3 -c`, a Jupyter kernel (ipykernel, driven
by jupyter_client), the barest exec() loop there is, and `docker exec python3 -c`.

All of them run Debian's python3. Ours is asked over HTTP on a kept connection and with as little code on
this side as the floor's client has, so that what is measured is the server's.
"""

import contextlib
import json
import os
import socket
import subprocess
import sys
import threading
import time

from . import memory
from .clones import Api
from .docker import Unavailable
from .program import Failed, Program
from .report import median

PYTHON = "/usr/bin/python3"
HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
MODULES = os.path.join(HERE, "python_modules")  # scripts/install-deps bench
ONE = "1 + 1"
LINES = 131072
OUTPUT_BYTES = LINES * 80
OUTPUT = "for i in range(%d): print('x' * 79)" % LINES
FIGURE = "import matplotlib.pyplot as plt\nplt.plot(range(100))\nplt.title('one')\nplt.show()"
PLAIN_FIGURE = ("import io, matplotlib; matplotlib.use('agg')\n" +
                FIGURE.replace("plt.show()", "plt.savefig(io.BytesIO(), format='png')"))
CROWD = 20
POOL = 8
SETTLE_SECONDS = 2


class _Connection:
    """One kept connection; requests are bytes that were made before."""

    def __init__(self, api, address, name):
        host, port = address.rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=300)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.key = api.headers["Authorization"]
        self.path = "/v0/sandbox/%s/code" % name

    def request(self, body, path="", accept=""):
        body = json.dumps(body).encode()
        return ("POST %s%s HTTP/1.1\r\nHost: bench\r\nAuthorization: %s\r\nContent-Type: application/json\r\n%s"
                "Content-Length: %d\r\n\r\n" % (self.path, path, self.key, accept, len(body))).encode() + body

    def exchange(self, request):
        """The answer's body; it has to be one that says its length."""
        self.socket.sendall(request)
        data = self.socket.recv(65536)
        while (head := data.find(b"\r\n\r\n")) < 0:
            data += self._more()
        at = data.find(b"Content-Length:", 0, head)
        if not data.startswith(b"HTTP/1.1 20") or at < 0:
            raise Failed("code: %r" % data[:300])
        size = head + 4 + int(data[at + 15:data.index(b"\r\n", at)])
        parts, there = [data], len(data)
        while there < size:
            parts.append(self._more())
            there += len(parts[-1])
        return b"".join(parts)[head + 4:]

    def stream(self, request, end):
        """Reads on until the bytes that end it have come; how many there were."""
        self.socket.sendall(request)
        last, count = b"", 0
        while end not in last:
            data = self._more()
            count += len(data)
            last = last[-len(end):] + data
        while not last.endswith(b"0\r\n\r\n"):
            last = last[-8:] + self._more()
        return count

    def _more(self):
        data = self.socket.recv(1 << 18)
        if not data:
            raise Failed("code: the server hung up")
        return data

    def close(self):
        self.socket.close()


class _Loop:
    """The barest exec() loop, and its client."""

    def __init__(self, folder):
        self.path = os.path.join(folder, "exec-loop.sock")

    def __enter__(self):
        self.process = subprocess.Popen([PYTHON, os.path.join(HERE, "code", "exec_loop.py"), self.path],
                                        stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise Failed("the exec() loop does not start")
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(self.path)
        return self

    def one(self):
        self.socket.sendall(ONE.encode())
        self.socket.recv(16)

    def __exit__(self, *_):
        self.socket.close()
        self.process.wait(30)
        self.process.stdout.close()


def _time(what):
    start = time.monotonic_ns()
    what()
    return time.monotonic_ns() - start


def _plain(code):
    done = subprocess.run([PYTHON, "-c", code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, check=True)
    return len(done.stdout)


def _jupyter(stack):
    """None where it is not installed."""
    if not os.path.isdir(MODULES):
        return None
    return stack.enter_context(Program("jupyter", [
        "env", "PYTHONPATH=" + MODULES, PYTHON, "-B", os.path.join(HERE, "code", "jupyter.py"), ONE, OUTPUT, FIGURE,
        str(OUTPUT_BYTES)]))


def _make(api, name):
    api.call("POST", "/v0/sandbox", {"metadata": {"name": name}})
    api.run(name, "true")


def _first(bench, api, jupyter, found):
    """In a sandbox that runs and has no interpreter yet."""
    for number in range(bench.size["rounds"] + 1):
        name = "code-first"
        _make(api, name)
        ours = _Connection(api, bench.server.address, name)
        request = ours.request({"code": ONE})
        samples = {"first": _time(lambda: ours.exchange(request)), "first-plain": _time(lambda: _plain(ONE))}
        ours.close()
        api.delete(name)
        if number > 0:
            for key, value in samples.items():
                found.setdefault(key, []).append(value)
    if jupyter:
        found["first-jupyter"] = jupyter.run("first", 3)["first"]


def _descendants(root):
    children = {}
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % pid) as stat:
                children.setdefault(int(stat.read().rsplit(")", 1)[1].split()[1]), []).append(int(pid))
        except OSError:  # it has ended
            pass
    found = [root]
    for pid in found:  # grows as it goes
        found += children.get(pid, [])
    return found


@contextlib.contextmanager
def _one_core(*roots):
    """Those, what they have started and this program on one core: what is compared is work then, and not whether the
    scheduler put one of three beside the others or on a core that has to be woken each time."""
    cores = os.sched_getaffinity(0)

    def place(where):
        for pid in [os.getpid(), *(pid for root in roots for pid in _descendants(root))]:
            for thread in os.listdir("/proc/%d/task" % pid):
                os.sched_setaffinity(int(thread), where)

    place({min(cores)})
    try:
        yield
    finally:
        place(cores)


def _warm(bench, api, jupyter, found):
    """By turns; the first round warms up."""
    ours = _Connection(api, bench.server.address, "code")
    one = ours.request({"code": ONE})
    if json.loads(ours.exchange(one))["text"] != "2":
        raise Failed("code: 1 + 1 is not 2")
    with _Loop(bench.folder) as loop:
        for number in range(bench.size["rounds"] + 1):
            taken = {"warm": [_time(lambda: ours.exchange(one)) for _ in range(bench.size["exec"])],
                     "warm-loop": [_time(loop.one) for _ in range(bench.size["exec"])]}
            if jupyter:
                taken["warm-jupyter"] = jupyter.run("warm", bench.size["exec"])["warm"]
            with _one_core(bench.server.process.pid, loop.process.pid):
                taken["warm-core"] = [_time(lambda: ours.exchange(one)) for _ in range(bench.size["exec"])]
                taken["warm-core-loop"] = [_time(loop.one) for _ in range(bench.size["exec"])]
            if number > 0:
                for key, values in taken.items():
                    found.setdefault(key, []).extend(values)
    ours.close()


def _big(bench, api, jupyter, found):
    """10 MB of output as it comes, and a figure."""
    ours = _Connection(api, bench.server.address, "code")
    output = ours.request({"code": OUTPUT}, "", "Accept: application/x-ndjson\r\n")
    figure = ours.request({"code": FIGURE})

    def stream():
        if ours.stream(output, b'{"type":"end"') < OUTPUT_BYTES:
            raise Failed("code: output is missing")

    def draw():
        answer = ours.exchange(figure)
        if b'"png"' not in answer:
            raise Failed("code: no picture came (is python3-matplotlib installed?): %r" % answer[:600])

    for number in range(4):
        taken = {"output": _time(stream), "output-plain": _time(lambda: _plain(OUTPUT)), "figure": _time(draw),
                 "figure-plain": _time(lambda: _plain(PLAIN_FIGURE))}
        if jupyter:
            taken["output-jupyter"] = jupyter.run("output", 1)["output"][0]
            taken["figure-jupyter"] = jupyter.run("figure", 1)["figure"][0]
        if number > 0:
            for key, value in taken.items():
                found.setdefault(key, []).append(value)
    ours.close()


def _at_once(what):
    """From the first of so many to the last one's end."""
    failed = []

    def guarded(number):
        try:
            what(number)
        except (Failed, OSError, subprocess.SubprocessError) as error:
            failed.append(str(error))

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(CROWD)]
    start = time.monotonic_ns()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise Failed("%d at once: %s" % (CROWD, failed[0]))
    return time.monotonic_ns() - start


def _crowd(bench, api, jupyter, found):
    """As many contexts in one sandbox, all started at once, each with a run; and what they take idle."""
    _make(api, "code-crowd")

    def one(_):
        ours = _Connection(api, bench.server.address, "code-crowd")
        made = json.loads(ours.exchange(ours.request({"language": "python"}, "/contexts")))
        ours.exchange(ours.request({"code": ONE, "context": made["id"]}))
        ours.close()

    before = memory.meminfo()
    found["crowd"] = _at_once(one)
    time.sleep(SETTLE_SECONDS)
    found["idle"], _ = memory.growth(before, memory.meminfo(), CROWD)
    api.delete("code-crowd")
    time.sleep(SETTLE_SECONDS)
    _crowd_plain(found)
    if jupyter:
        before = memory.meminfo()
        found["crowd-jupyter"] = jupyter.run("crowd", CROWD)["crowd"][0]
        time.sleep(SETTLE_SECONDS)
        found["idle-jupyter"], _ = memory.growth(before, memory.meminfo(), CROWD)
        jupyter.run("disperse", CROWD)


def _crowd_plain(found):
    """So many python3 at once, that print and then wait for the end of their input."""
    started = []
    before = memory.meminfo()

    def one(_):
        process = subprocess.Popen([PYTHON, "-c", "import sys\nprint(%s, flush=True)\nsys.stdin.read()" % ONE],
                                   stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        started.append(process)
        process.stdout.readline()

    try:
        found["crowd-plain"] = _at_once(one)
        time.sleep(SETTLE_SECONDS)
        found["idle-plain"], _ = memory.growth(before, memory.meminfo(), CROWD)
    finally:
        for process in started:
            process.stdin.close()
            process.wait(30)
            process.stdout.close()


def _pooled(bench, api, found):
    """The first run in a sandbox of a pool whose spares have an interpreter up, against `docker exec`."""
    api.call("POST", "/v0/pools", {"name": "code", "image": "host", "size": POOL, "code": ["python"]})
    try:
        for number in range(bench.size["rounds"] + 1):
            _await_pool(api)
            api.call("POST", "/v0/sandbox", {"metadata": {"name": "code-pooled"}})
            ours = _Connection(api, bench.server.address, "code-pooled")
            request = ours.request({"code": ONE})
            taken = _time(lambda: ours.exchange(request))
            ours.close()
            api.delete("code-pooled")
            if number > 0:
                found.setdefault("pooled", []).append(taken)
        if api.call("GET", "/v0/pools/code")["status"]["claimed"] <= bench.size["rounds"]:
            raise Failed("the pool with interpreters was passed by")
    finally:
        api.call("DELETE", "/v0/pools/code")
    if bench.docker is not None:
        try:
            found["docker"] = bench.docker.python(ONE, 6)[1:]
        except (Unavailable, OSError) as error:
            print("docker exec python3: %s" % error, file=sys.stderr, flush=True)


def _await_pool(api):
    deadline = time.monotonic() + 60
    while api.call("GET", "/v0/pools/code")["status"]["ready"] < POOL:
        if time.monotonic() > deadline:
            raise Failed("the pool with interpreters does not fill")
        time.sleep(0.02)


def measure(bench, stack):
    """Samples in ns by what was done ("first", "warm", "output", "figure", "crowd", "pooled") and by whom
    ("-plain", "-jupyter", "-loop"); "idle", "idle-plain", "idle-jupyter": KiB each."""
    api = Api(bench.server)
    jupyter = _jupyter(stack)
    found = {}
    _make(api, "code")
    try:
        _first(bench, api, jupyter, found)
        _warm(bench, api, jupyter, found)
        _big(bench, api, jupyter, found)
        _crowd(bench, api, jupyter, found)
        _pooled(bench, api, found)
    finally:
        api.delete("code")
    return found


def _us(ns):
    return "%.0f µs" % (ns / 1e3) if ns < 1e6 else "%.1f ms" % (ns / 1e6)


def report(bench, out):
    """The rows, with their bars. Where another column says Docker, its name stands in front."""
    found = {key: median(value) if isinstance(value, list) else value for key, value in bench.code.items()}
    ours, loop, jupyter = found["warm"], found["warm-loop"], found.get("warm-jupyter")
    core, core_loop = found["warm-core"], found["warm-core-loop"]
    out.row("code: a one-liner in a warm context, over HTTP, against a bare exec() loop on a unix socket, all on one core",
            _us(core), _us(core_loop), "%.1f ×" % (core / core_loop), bar="≤ 4 × that", met=(core / core_loop <= 4,))
    out.row("… wherever the scheduler puts them", _us(ours), _us(loop), "%.1f ×" % (ours / loop))
    out.row("… against ipykernel by jupyter_client", _us(ours), "ipykernel: " + _us(jupyter) if jupyter else "–",
            "%.1f × faster" % (jupyter / ours) if jupyter else "–", bar="≥ 5 × faster",
            met=(jupyter / ours >= 5 if jupyter else None,))
    pooled, docker = found["pooled"], found.get("docker")
    out.row("code: first run in a sandbox of a pool with a kernel up, against `docker exec python3 -c`", _us(pooled),
            docker=_us(docker) if docker else bench.docker_missing,
            faster="%.0f ×" % (docker / pooled) if docker else "–", bar="≥ 10 × faster than Docker",
            met=(docker / pooled >= 10 if docker else None,))
    for key, what in (("first", "code: first run in a fresh sandbox, against `python3 -c`"),
                      ("output", "code: 10 MB of output, as it comes, against `python3 -c` and a pipe"),
                      ("figure", "code: a figure of matplotlib, against `python3 -c`"),
                      ("crowd", "code: %d contexts at once, against as many `python3 -c`" % CROWD)):
        plain, jupyter = found[key + "-plain"], found.get(key + "-jupyter")
        out.row(what, _us(found[key]), _us(plain), "%.2f ×" % (found[key] / plain))
        if jupyter:
            out.note("%s: ipykernel %s, %.1f × ours." % (what.split(", against")[0], _us(jupyter), jupyter / found[key]))
    out.row("code: memory of an idle context, against an idle `python3`", "%.1f MiB" % (found["idle"] / 1024),
            "%.1f MiB" % (found["idle-plain"] / 1024), "%.2f ×" % (found["idle"] / found["idle-plain"]))
    if "idle-jupyter" in found:
        out.note("An idle ipykernel takes %.1f MiB." % (found["idle-jupyter"] / 1024))
    else:
        out.note("ipykernel and jupyter_client are not installed (`scripts/install-deps bench`): skipped.")
