# SPDX-License-Identifier: Apache-2.0
"""Sandboxes with a network: what one costs at create, what passes through it, and a thousand of them.

The machine is a namespace of its own, so that nothing of the real one's firewall is in the way, and the
Internet another one behind it. Beside the sandboxes stands a plain namespace with a veth and NAT.
"""

import concurrent.futures
import http.client
import json
import os
import socket
import subprocess
import sys
import time

from . import memory
from .program import Failed
from .report import median

HOST, PEER, PLAIN = "45.90.0.2", "45.90.0.1", "172.31.255.2"
BYTES = 512 << 20
PINGS = 2000
NAME = "bench.example"

_PING = ("import socket; s = socket.create_connection(('%s', 8000)); s.setsockopt(6, 1, 1)\n"
         "s.sendall(b'GET /pings HTTP/1.1\\r\\n\\r\\n'); import time; t = time.monotonic_ns()\n"
         "for i in range(%d): s.sendall(b'x'); s.recv(1)\n"
         "print((time.monotonic_ns() - t) // %d)" % (PEER, PINGS, PINGS))
_GET = "curl -s -o /dev/null -w '%%{speed_download}' http://%s/"


class _Place:
    """A network namespace, for as long as a process is in it."""

    def __init__(self, *command):
        self.process = subprocess.Popen(["unshare", "-n", *(command or ("sh", "-c", "echo ready; cat"))],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise Failed("no network namespace")
        self.enter = ["nsenter", "--net=/proc/%d/ns/net" % self.process.pid, "--"]

    def run(self, *command):
        return subprocess.run([*self.enter, *command], check=True, stdout=subprocess.PIPE, text=True,
                              timeout=300).stdout

    def ip(self, line):
        self.run("ip", *line.split())

    def close(self):
        self.process.stdin.close()
        self.process.wait(30)


class _Api(http.client.HTTPConnection):
    """Just enough of the API, over the server's unix socket."""

    def __init__(self, data):
        super().__init__("localhost", timeout=300)
        self.path = os.path.join(data, "run", "api.sock")
        with open(os.path.join(data, "api-key"), encoding="ascii") as file:
            self.fields = {"Authorization": "Bearer " + file.read().strip(), "Content-Type": "application/json"}

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)

    def call(self, method, path, body=None):
        self.request(method, path, None if body is None else json.dumps(body), self.fields)
        answer = self.getresponse()
        text = answer.read()
        if answer.status >= 400:
            raise Failed("%s %s: %d %s" % (method, path, answer.status, text[:200]))
        return json.loads(text or b"null")

    def exec(self, name, command):
        done = self.call("POST", "/v0/sandbox/%s/process" % name,
                         {"command": command, "waitForCompletion": True, "timeout": 300})
        if done["exitCode"] != 0:
            raise Failed("%s: %s" % (command[:60], done["stderr"][:200]))
        return done["stdout"]

    def make(self, name, network):
        """From the request to the first output, in ns."""
        spec = {"network": network} if network else {}
        start = time.monotonic_ns()
        self.call("POST", "/v0/sandbox", {"metadata": {"name": name}, "spec": spec})
        if self.exec(name, "echo hi") != "hi\n":
            raise Failed("no output")
        return time.monotonic_ns() - start

    def drop(self, name):
        self.call("DELETE", "/v0/sandbox/" + name)


def _wire(host, peer, plain):
    for place in (host, peer, plain):
        place.ip("link set lo up")
    for other, near, far, mine, theirs in ((peer, "eth0", "eth0", HOST, PEER),
                                           (plain, "plain", "eth0", "172.31.255.1", PLAIN)):
        host.ip("link add %s type veth peer name %s netns %d" % (near, far, other.process.pid))
        host.ip("addr add %s/24 dev %s" % (mine, near))
        host.ip("link set %s up" % near)
        other.ip("addr add %s/24 dev %s" % (theirs, far))
        other.ip("link set %s up" % far)
    plain.ip("route add default via 172.31.255.1")
    host.ip("route add default via " + PEER)
    host.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    host.run("nft", "add table ip plain; add chain ip plain post { type nat hook postrouting priority srcnat; };"
             " add rule ip plain post ip saddr %s masquerade" % PLAIN)


def _creates(bench, api, found):
    """With and without, in turns; then both again from pools."""
    full = {"mode": "full"}
    rounds = bench.size["rounds"]
    for kind in ("cold", "pool"):
        if kind == "pool":
            for name, network in (("with", True), ("without", False)):
                api.call("POST", "/v0/pools", {"name": name, "image": "host", "size": 8, "network": network})
        for number in range(rounds + 1):
            for name, network in (("without", None), ("with", full)):
                if kind == "pool":
                    deadline = time.monotonic() + 60
                    while api.call("GET", "/v0/pools/" + name)["status"]["ready"] < 8 and time.monotonic() < deadline:
                        time.sleep(0.05)
                taken = []
                for box in range(8):
                    taken.append(api.make("box-%d" % box, network))
                for box in range(8):
                    api.drop("box-%d" % box)
                if number > 0:
                    found.setdefault("%s-%s" % (kind, name), []).extend(taken)
    for name in ("with", "without"):
        api.call("DELETE", "/v0/pools/" + name)


def _burst(data, count):
    apis = [_Api(data) for _ in range(count)]
    with concurrent.futures.ThreadPoolExecutor(count) as pool:
        start = time.monotonic_ns()
        list(pool.map(lambda pair: pair[1].make("burst-%d" % pair[0], {"mode": "full"}), enumerate(apis)))
        taken = time.monotonic_ns() - start
        list(pool.map(lambda pair: pair[1].drop("burst-%d" % pair[0]), enumerate(apis)))
    return taken


def _traffic(bench, api, plain, found):
    api.make("direct", {"mode": "full"})
    api.make("proxied", {"mode": "allowlist", "allow": [NAME]})
    ways = {"plain": lambda command: plain.run("sh", "-c", command),
            "direct": lambda command: api.exec("direct", command)}
    for _ in range(bench.size["hop-rounds"]):
        for way, run in ways.items():
            found.setdefault("speed-" + way, []).append(float(run(_GET % (PEER + ":8000"))))
            found.setdefault("ping-" + way, []).append(int(run('python3 -c "%s"' % _PING)))
        found.setdefault("speed-proxied", []).append(float(api.exec("proxied", _GET % NAME)))
    api.drop("direct")
    api.drop("proxied")


def _alive(api, count):
    """Memory of that many idle ones, in MB all told."""
    before = memory.meminfo()
    for number in range(count):
        api.call("POST", "/v0/sandbox", {"metadata": {"name": "idle-%d" % number}, "spec": {"network": {"mode": "full"}}})
    api.exec("idle-%d" % (count - 1), "true")
    time.sleep(2)
    each, _ = memory.growth(before, memory.meminfo(), count)
    for number in range(count):
        api.drop("idle-%d" % number)
    return each * 1024 * count / 1e6


def measure(bench):
    data = os.path.join(bench.folder, "network")
    here = os.path.dirname(os.path.abspath(__file__))
    os.makedirs(data, mode=0o755)
    places, found, server = [], {}, None
    try:
        host, plain = _Place(), _Place()
        peer = _Place(sys.executable, os.path.join(here, "network_peer.py"), PEER, str(BYTES))
        places += [host, plain, peer]
        _wire(host, peer, plain)
        program = os.path.join(bench.options.build, "cella")
        with open(data + ".log", "wb") as log:
            server = subprocess.Popen([*host.enter, program, "server", "--data", data, "--listen", "127.0.0.1:7070",
                                       "--resolver", PEER], stdin=subprocess.DEVNULL, stdout=log, stderr=log,
                                      start_new_session=True)
        deadline = time.monotonic() + 60
        while not os.path.exists(os.path.join(data, "run", "server")):
            if server.poll() is not None or time.monotonic() > deadline:
                raise Failed("the server does not start: see %s.log" % data)
            time.sleep(0.05)
        api = _Api(data)
        _creates(bench, api, found)
        found["burst"] = median([_burst(data, bench.size["burst"]) for _ in range(3)])
        _traffic(bench, api, plain, found)
        found["count"] = min(1000, bench.size["alive"][-1])
        found["alive"] = _alive(api, found["count"])
        done = subprocess.run([*host.enter, program, "doctor", "--leaks", "--data", data], check=False,
                              stdout=subprocess.PIPE, text=True, timeout=120)
        found["leaks"] = "" if done.returncode == 0 else done.stdout.strip()
    except (subprocess.SubprocessError, http.client.HTTPException) as error:
        raise Failed(str(error)) from error
    finally:
        if server is not None:
            server.terminate()
            server.wait(120)
        for place in places:
            place.close()
    return found


def report(bench, out, ms):
    """The rows, with their bars."""
    found = bench.network
    for kind, text, most in (("cold", "create with a network → first output, against one without", 2),
                             ("pool", "… both from pools", 1.2)):
        ours, bare = median(found[kind + "-with"]), median(found[kind + "-without"])
        out.row(text, ms(ours), ms(bare), "%.2f ×" % (ours / bare), bar="≤ %g × that" % most,
                met=(ours / bare <= most,))
    docker = (bench.many or {}).get("docker-burst")
    faster = docker / found["burst"] if docker else None
    out.row("%d with a network at once → the last one's first output (Docker's have none)" % bench.size["burst"],
            ms(found["burst"]), docker=ms(docker) if docker else bench.docker_missing,
            faster="%.0f ×" % faster if faster else "–", bar="≥ 40 × faster than Docker",
            met=(None if faster is None else faster >= 40,))
    plain = median(found["speed-plain"])
    for way, text, least in (("direct", "from the network, beside the proxy, against a veth with NAT", 0.9),
                             ("proxied", "… through the proxy", 0.5)):
        speed = median(found["speed-" + way])
        out.row(text, "%.0f MB/s" % (speed / 1e6), "%.0f MB/s" % (plain / 1e6), "%.0f %%" % (100 * speed / plain),
                bar="≥ %d %%" % (100 * least), met=(speed / plain >= least,))
    ours, bare = median(found["ping-direct"]), median(found["ping-plain"])
    out.row("a byte there and back, against a veth with NAT", ms(ours), ms(bare), "%.2f ×" % (ours / bare))
    out.row("%d idle with a network, all memory" % found["count"], "%.0f MB" % found["alive"],
            bar="≤ 900 MB" if found["count"] == 1000 else "",
            met=(found["alive"] <= 900,) if found["count"] == 1000 else ())
    out.row("… and what is left of them", found["leaks"] or "nothing", bar="no leak", met=(not found["leaks"],))
