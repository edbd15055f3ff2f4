# SPDX-License-Identifier: Apache-2.0
"""Who may speak to an interpreter: the server, and nobody in the sandbox, whoever he is there."""

import json
import platform
import threading

import pytest

KNOCK = """
import os, socket, struct, sys
os.setuid(int(sys.argv[1]))
s = socket.socket(socket.AF_UNIX)
s.connect("\\0code.python.default-python")
code = b"open('/tmp/taken', 'w')"
s.settimeout(20)
try:
    s.sendall(b"A" + struct.pack("<cIII", b"R", 8 + len(code), 1, 0) + code)
    print("answered" if s.recv(100) else "hung up")
except OSError:
    print("hung up")
"""


def run(box, code):
    answer = box.request("POST", "/code", {"code": code}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def test_nobody_inside_is_taken_for_the_server(sandbox):
    run(sandbox, "secret = 1")
    sandbox.write("/tmp/knock.py", KNOCK)
    for uid in (0, 1000, 65534):
        assert sandbox.run(f"python3 /tmp/knock.py {uid}") == "hung up"
    assert sandbox.exec("test -e /tmp/taken").exit_code == 1
    assert run(sandbox, "secret")["text"] == "1"


def test_a_sandbox_finds_no_interpreter_of_another(server, sandbox):
    run(sandbox, "1")
    other = server.create()
    try:
        other.write("/tmp/knock.py", KNOCK)
        assert "ConnectionRefusedError" in other.exec("python3 /tmp/knock.py 0").stderr
    finally:
        other.delete()


# Straight into the kernel's own channel, as fast as it goes, deaf to interrupts.
FLOOD = """
import os, signal, struct
fd = display.__globals__["channel"].conn.fileno()
frames = (struct.pack("<cI", b"O", 1) + b"x") * 100000
print("here it comes")
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    os.write(fd, frames)
"""


# Results that no kernel of ours sends: JSON with line breaks, broken JSON, a name that is one of the event's.
LIES = """
import struct
def part(name, value):
    return bytes((len(name),)) + name + struct.pack("<I", len(value)) + value
result = b"\\0" + part(b"*json", b'{"a":\\n\\n1}') + part(b"*data", b'{"a"') + part(b"type", b"end") + part(b"*chart", b"[" * 100000)
print("first")
display.__globals__["channel"].conn.sendall(struct.pack("<cI", b"R", len(result)) + result)
"""


def test_a_lie_stays_in_its_event(sandbox):
    for kind, prefix in (("application/x-ndjson", ""), ("text/event-stream", "data: ")):
        answer = sandbox.request("POST", "/code", {"code": LIES}, {"Accept": kind}, timeout=60)
        lines = [line for line in answer.text.split("\n") if line and not line.startswith("event: ")]
        assert all(line.startswith(prefix) for line in lines), answer.text[:1000]
        events = [json.loads(line[len(prefix):]) for line in lines]
        assert [event["type"] for event in events] == ["stdout", "result", "end"]
        assert events[1]["json"] == {"a": 1} and events[1]["data"] == '{"a"'
        assert events[1]["extra"] == {"type": "end"} and events[1]["chart"] == "[" * 100000


def test_a_flood_holds_nobody_up_and_ends_in_time(server, sandbox):
    answers = []
    runner = threading.Thread(target=lambda: answers.append(
        sandbox.request("POST", "/code", {"code": FLOOD, "timeout": 1}, timeout=120)))
    runner.start()
    while runner.is_alive():
        assert server.request("GET", "/v0/sandbox", timeout=60).status == 200
        runner.join(0.2)
    done = answers[0].json()
    assert done["error"]["name"] == "TimeoutError" and done["stdout"].startswith("here it comes\nxxx"), done["error"]
    assert run(sandbox, "1 + 1")["text"] == "2"


# Whoever closes this connection last waits for what nobody reads.
LINGER = """
import os, socket, struct
channel = socket.socket(fileno=os.dup(display.__globals__["channel"].conn.fileno()))
door = socket.create_server(("127.0.0.1", 0))
late = socket.create_connection(door.getsockname())
late.setblocking(False)
try:
    while True:
        late.send(bytes(65536))
except BlockingIOError:
    pass
late.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 3600))
try:
    socket.send_fds(channel, [struct.pack("<cI", b"O", 1) + b"x"], [late.fileno()])
    said = "taken"
except PermissionError:
    said = "refused"
    late.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
late.close()
channel.close()
said
"""


def test_descriptors_are_not_taken(server, sandbox):
    if tuple(map(int, platform.release().split(".")[:2])) < (6, 16):
        pytest.skip("this kernel cannot refuse descriptors (Linux 6.16 and later can)")
    assert run(sandbox, LINGER)["text"] == "'refused'"
    assert server.request("GET", "/health").status == 200
    assert run(sandbox, "1 + 1")["text"] == "2"
