# SPDX-License-Identifier: Apache-2.0
"""A sandbox that does its worst, and what another's exec and the API take meanwhile. Quiet and noisy
take turns, so that whatever else the machine does falls on both; the noise has the limits of a sandbox
that nobody gave any."""

import time

from .clones import Api

QUIET = "quiet-neighbour"
ROUNDS = 4
CALLS = 60
SETTLE_SECONDS = 1

# Cores, processes, memory, the page cache, the disk, file names, sockets, and output without end.
NOISE = [
    "while :; do :; done", "while :; do :; done", "while :; do :; done", "while :; do :; done",
    "bomb() { while :; do (true | true) & wait; done; }; bomb & bomb & bomb",
    "exec python3 -c 'while True: b = bytearray(400 << 20); b[::4096] = bytes(len(b) // 4096)'",
    "while :; do cat /usr/bin/* /usr/lib/*/*.so* > /dev/null; done",
    "while :; do head -c 200M /dev/zero > /workspace/big; sync; rm /workspace/big; done",
    "while :; do mkdir -p /workspace/d; for i in 1 2 3 4 5 6 7 8 9; do : > /workspace/d/$i; done;"
    " rm -r /workspace/d; done",
    "exec python3 -c 'import socket\nwhile True:\n a, b = socket.socketpair()\n a.send(b\"x\" * 65536)'",
    "exec yes",
]


def _timed(work):
    began = time.monotonic_ns()
    work()
    return time.monotonic_ns() - began


def _create(api, name):
    api.call("POST", "/v0/sandbox", {"metadata": {"name": name}})
    api.run(name, "true")


def _sample(api, taken):
    exec_body = {"command": "true", "waitForCompletion": True, "timeout": 60}
    for _ in range(CALLS):
        taken["exec"].append(_timed(
            lambda: api.call("POST", "/v0/sandbox/%s/process" % QUIET, exec_body)))
        taken["list"].append(_timed(lambda: api.call("GET", "/v0/sandbox")))


def measure(bench):
    """{"quiet": {"exec": [ns …], "list": [ns …]}, "noisy": the same}"""
    api = Api(bench.server)
    taken = {state: {"exec": [], "list": []} for state in ("quiet", "noisy")}
    _create(api, QUIET)
    try:
        for number in range(ROUNDS + 1):  # the first warms up
            kept = taken if number else {state: {"exec": [], "list": []} for state in taken}
            _sample(api, kept["quiet"])
            noisy = "noisy-neighbour-%d" % number
            _create(api, noisy)
            for line in NOISE:
                api.call("POST", "/v0/sandbox/%s/process" % noisy,
                         {"command": line, "waitForCompletion": False})
            time.sleep(SETTLE_SECONDS)  # until all of it is under way
            _sample(api, kept["noisy"])
            api.delete(noisy)
    finally:
        api.delete(QUIET)
        api.close()
    return taken
