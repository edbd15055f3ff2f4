# SPDX-License-Identifier: Apache-2.0
"""What tests of processes share: starting them, ending them, one that listens, one to stop and go on."""

# Listens where its arguments say ("tcp-0.0.0.0-8080", "udp-::-53") until it is killed.
LISTEN = """
import socket, sys, time
kept = []
for where in sys.argv[1:]:
    kind, host, port = where.rsplit("-", 2)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    s = socket.socket(family, socket.SOCK_STREAM if kind == "tcp" else socket.SOCK_DGRAM)
    if family == socket.AF_INET6:
        s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
    s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    s.bind((host, int(port)))
    if kind == "tcp":
        s.listen()
    kept.append(s)
print("listening", flush=True)
time.sleep(1000)
"""

# A line to type: says that it runs, and when it goes on after a stop; an interrupt ends it. No loop of a
# shell's: one that gets an interrupt just as a command in it ends takes it for the command's, and goes on.
JOB = ("python3 -c 'import os, signal, time; signal.signal(signal.SIGINT, signal.SIG_DFL); "
       "signal.signal(signal.SIGCONT, lambda *_: os.write(1, b\"resu\" + b\"med\\n\")); "
       "os.write(1, b\"sec\" + b\"ond\\n\"); any(time.sleep(0.05) for _ in iter(int, 1))'\n")


def post(sandbox, command, **fields):
    answer = sandbox.request("POST", "/process", {"command": command, **fields}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def get(sandbox, process):
    answer = sandbox.request("GET", f"/process/{process}")
    assert answer.status == 200, answer
    return answer.json()


def kill(sandbox, process):
    assert sandbox.request("POST", f"/process/{process}/kill").status == 200
