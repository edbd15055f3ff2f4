# SPDX-License-Identifier: Apache-2.0
"""Who may speak to an interpreter: the server, and nobody in the sandbox, whoever he is there."""

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
