# SPDX-License-Identifier: Apache-2.0
"""Sandboxes with a network: what one costs at create, what passes through it, and a thousand of them.

The machine is a namespace of its own, so that nothing of the real one's firewall is in the way, and the
Internet another one behind it. Beside the sandboxes stand a plain namespace with a veth and NAT, and, on a
machine of its own, Docker with its bridge.
"""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import time

from . import memory
from .docker import Docker, Unavailable
from .program import Failed, Program
from .report import median

HOST, PEER, PLAIN = "45.90.0.2", "45.90.0.1", "172.31.255.2"
DOCKER_HOST, DOCKER_PEER = "45.91.0.2", "45.91.0.1"
BYTES = 512 << 20
PINGS = 2000
POOL = 8
SETTLE_SECONDS = 2
NAME = "bench.example"

_PING = ("import socket; s = socket.create_connection(('%%s', %%d)); s.setsockopt(6, 1, 1)\n"
         "s.sendall(b'GET /pings HTTP/1.1\\r\\nHost: %s\\r\\nContent-Length: %d\\r\\n\\r\\n')\n"
         "import time; t = time.monotonic_ns()\n"
         "for i in range(%d): s.sendall(b'x'); s.recv(1)\n"
         "print((time.monotonic_ns() - t) // %d)" % (NAME, PINGS, PINGS, PINGS))
_GET = "curl -s -o /dev/null -w '%%{speed_download}' http://%s/"


class _Place:
    """A network namespace, for as long as a process is in it."""

    def __init__(self, *command):
        self.process = subprocess.Popen(["unshare", "-n", *(command or ("sh", "-c", "echo ready; cat"))],
                                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        if self.process.stdout.readline() != "ready\n":
            raise Failed("no network namespace")
        self.enter = _enter("/proc/%d/ns/net" % self.process.pid)

    def run(self, *command):
        return _run([*self.enter, *command])

    def ip(self, line):
        self.run("ip", *line.split())

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait(30)


def _enter(path):
    return ["nsenter", "--net=" + path, "--"]


def _run(command):
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, timeout=300).stdout


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
        self.call("POST", "/v0/sandbox", {"metadata": {"name": name}, "spec": {"network": network}})

    def drop(self, name):
        self.call("DELETE", "/v0/sandbox/" + name)


def _join(near, other, name, far, mine, theirs):
    near.ip("link add %s type veth peer name %s netns %d" % (name, far, other.process.pid))
    near.ip("addr add %s/24 dev %s" % (mine, name))
    near.ip("link set %s up" % name)
    other.ip("addr add %s/24 dev %s" % (theirs, far))
    other.ip("link set %s up" % far)


def _wire(host, peer, plain, dock):
    for place in (host, peer, plain, dock):
        place.ip("link set lo up")
    _join(host, peer, "eth0", "eth0", HOST, PEER)
    _join(dock, peer, "eth0", "eth1", DOCKER_HOST, DOCKER_PEER)
    _join(host, plain, "plain", "eth0", "172.31.255.1", PLAIN)
    plain.ip("route add default via 172.31.255.1")
    host.ip("route add default via " + PEER)
    dock.ip("route add default via " + DOCKER_PEER)
    host.run("sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward")
    host.run("nft", "add table ip plain; add chain ip plain post { type nat hook postrouting priority srcnat; };"
             " add rule ip plain post ip saddr %s masquerade" % PLAIN)


@contextlib.contextmanager
def _server(bench, host, data):
    program = os.path.join(bench.options.build, "cella")
    with open(data + ".log", "wb") as log:
        server = subprocess.Popen([*host.enter, program, "server", "--data", data, "--listen", "127.0.0.1:7070",
                                   "--resolver", PEER, "--overcommit", "100000"], stdin=subprocess.DEVNULL,
                                  stdout=log, stderr=log, start_new_session=True)
    try:
        deadline = time.monotonic() + 60
        while not os.path.exists(os.path.join(data, "run", "server")):
            if server.poll() is not None or time.monotonic() > deadline:
                raise Failed("the server does not start: see %s.log" % data)
            time.sleep(0.05)
        yield program
    finally:
        server.terminate()
        server.wait(120)


def _client(bench, host, data, *network):
    return Program("client", [*host.enter, bench.binary("client"), "127.0.0.1:7070", os.path.join(data, "api-key"),
                              bench.binary("floor-true"), bench.busybox, *network])


def _creates(bench, api, clients, found):
    """With and without, in turns: cold, then from pools."""
    for kind, verb in (("cold", "create"), ("pool", "claim")):
        if kind == "pool":
            for name, network in (("host-network", True), ("host", False)):
                api.call("POST", "/v0/pools", {"name": name, "image": "host", "size": POOL, "network": network})
        for number in range(bench.size["rounds"] + 1):
            for name, client in clients.items():
                samples = client.run(verb, bench.size["many-create"])[verb]
                if number > 0:  # the first round warms up
                    found.setdefault("%s-%s" % (kind, name), []).extend(samples)
    for name in ("host-network", "host"):
        api.call("DELETE", "/v0/pools/" + name)


def _bursts(bench, client, docker, found):
    bursts = []
    for _ in range(3):
        time.sleep(SETTLE_SECONDS)  # what the kernel still takes apart is not the next one's
        bursts.append(client.run("burst", bench.size["burst"])["burst"][0])
    found["burst"] = median(bursts)
    if docker is not None:
        found["docker-burst"] = docker.burst(bench.size["burst"])


def _traffic(bench, api, plain, docker, found):
    api.make("direct", {"mode": "full"})
    api.make("proxied", {"mode": "allowlist", "allow": [NAME]})
    ways = {"plain": (lambda line: plain.run("sh", "-c", line), PEER, 8000),
            "direct": (lambda line: api.exec("direct", line), PEER, 8000),
            "proxied": (lambda line: api.exec("proxied", line), NAME, 80)}
    if docker is not None:
        inside = _enter(docker.place())
        ways["docker"] = (lambda line: _run([*inside, "sh", "-c", line]), DOCKER_PEER, 8000)
    for _ in range(bench.size["hop-rounds"]):
        for way, (run, to, port) in ways.items():
            found.setdefault("speed-" + way, []).append(float(run(_GET % ("%s:%d" % (to, port)))))
            found.setdefault("ping-" + way, []).append(int(run('python3 -c "%s"' % (_PING % (to, port)))))
    api.drop("direct")
    api.drop("proxied")


def _alive(client, count):
    """Memory of that many idle ones, in MB all told."""
    before = memory.meminfo()
    client.run("grow", count, 3600)
    time.sleep(SETTLE_SECONDS)
    each, _ = memory.growth(before, memory.meminfo(), count)
    client.run("shrink", count, 3600)
    return each * 1024 * count / 1e6


def _docker(bench, stack, dock):
    if bench.docker is None:
        return None
    try:
        return stack.enter_context(Docker(os.path.join(bench.folder, "docker-bridge"), bench.docker.files, dock.enter))
    except (Unavailable, OSError) as error:
        print("docker with a bridge: %s" % error, file=sys.stderr, flush=True)
        return None


def measure(bench):
    """{"cold-with", "cold-without", "pool-with", "pool-without": ns, "burst", "docker-burst": ns,
    "speed-WAY": bytes per second, "ping-WAY": ns, "count", "alive": MB, "leaks": text}"""
    data = os.path.join(bench.folder, "network")
    here = os.path.dirname(os.path.abspath(__file__))
    os.makedirs(data, mode=0o755)
    found = {"docker-burst": None}
    try:
        with contextlib.ExitStack() as stack:
            host, plain, dock = (stack.enter_context(_Place()) for _ in range(3))
            peer = stack.enter_context(_Place(sys.executable, os.path.join(here, "network_peer.py"), PEER, str(BYTES)))
            _wire(host, peer, plain, dock)
            program = stack.enter_context(_server(bench, host, data))
            docker = _docker(bench, stack, dock)
            clients = {"without": stack.enter_context(_client(bench, host, data)),
                       "with": stack.enter_context(_client(bench, host, data, "full"))}
            api = _Api(data)
            _creates(bench, api, clients, found)
            _bursts(bench, clients["with"], docker, found)
            _traffic(bench, api, plain, docker, found)
            found["count"] = min(1000, bench.size["alive"][-1])
            found["alive"] = _alive(clients["with"], found["count"])
            done = subprocess.run([*host.enter, program, "doctor", "--leaks", "--data", data], check=False,
                                  stdout=subprocess.PIPE, text=True, timeout=120)
            found["leaks"] = "" if done.returncode == 0 else done.stdout.strip()
    except (subprocess.SubprocessError, http.client.HTTPException, Unavailable) as error:
        raise Failed(str(error)) from error
    return found


def report(bench, out, ms):
    """The rows, with their bars."""
    found = bench.network
    for kind, text, most in (("cold", "create with a network → first output, against one without", 2),
                             ("pool", "… both from pools", 1.1)):
        ours, bare = median(found[kind + "-with"]), median(found[kind + "-without"])
        out.row(text, ms(ours), ms(bare), "%.2f ×" % (ours / bare), bar="≤ %g × that" % most,
                met=(ours / bare <= most,))
    docker = found["docker-burst"]
    faster = docker / found["burst"] if docker else None
    out.row("%d with a network at once → the last one's first output" % bench.size["burst"],
            ms(found["burst"]), docker=ms(docker) if docker else bench.docker_missing,
            faster="%.0f ×" % faster if faster else "–", bar="≥ 40 × faster than Docker",
            met=(None if faster is None else faster >= 40,))
    plain = median(found["speed-plain"])
    bridge = "%.0f MB/s" % (median(found["speed-docker"]) / 1e6) if "speed-docker" in found else bench.docker_missing
    for way, text, least in (("direct", "from the network, beside the proxy, against a veth with NAT", 0.9),
                             ("proxied", "… through the proxy", 0.5)):
        speed = median(found["speed-" + way])
        out.row(text, "%.0f MB/s" % (speed / 1e6), "%.0f MB/s" % (plain / 1e6), "%.0f %%" % (100 * speed / plain),
                docker=bridge, bar="≥ %d %%" % (100 * least), met=(speed / plain >= least,))
    bare = median(found["ping-plain"])
    bridge = ms(median(found["ping-docker"])) if "ping-docker" in found else bench.docker_missing
    for way, text in (("direct", "a byte there and back, against a veth with NAT"), ("proxied", "… through the proxy")):
        ours = median(found["ping-" + way])
        out.row(text, ms(ours), ms(bare), "%.2f ×" % (ours / bare), docker=bridge)
    out.row("%d idle with a network, all memory" % found["count"], "%.0f MB" % found["alive"],
            bar="≤ 900 MB" if found["count"] == 1000 else "",
            met=(found["alive"] <= 900,) if found["count"] == 1000 else ())
    out.row("… and what is left of them", found["leaks"] or "nothing", bar="no leak", met=(not found["leaks"],))
