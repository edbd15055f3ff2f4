# SPDX-License-Identifier: Apache-2.0
"""Terminals over the API: what a program on one sees, what a client gets, and what outlives what."""

import hashlib
import os
import pathlib
import signal
import time

import pytest

from cella_processes import JOB
from cella_server import wait_until
from cella_websocket import TEXT, Refused, Terminal


@pytest.fixture
def terminal(server, shared_sandbox):
    """terminal(**query) attaches; sessions are closed and connections cut afterwards."""
    made = []

    def make(**query):
        made.append(Terminal(server, shared_sandbox.name, **query))
        return made[-1]

    yield make
    for one in made:
        one.close()
    for one in {one.id for one in made}:
        server.request("DELETE", f"/v0/sandbox/{shared_sandbox.name}/terminal/{one}")


def sessions(server, sandbox):
    answer = server.request("GET", f"/v0/sandbox/{sandbox.name}/terminal/sessions")
    assert answer.status == 200, answer.text
    return {item["sessionId"]: item for item in answer.json()["sessions"]}


def inside_pids(sandbox, pattern):
    """Pids inside of what matches; [] when nothing does."""
    return sandbox.exec(f"pgrep -f '{pattern}' || true")[1].split()


# --- what a program sees ---

def test_a_shell(terminal):
    t = terminal(cols=132, rows=43)
    assert t.session["created"] and t.session["cols"] == 132 and t.session["pid"] > 1
    t.type("tty; stty size; echo $TERM $HOME $USER; pwd; exit 5\n")
    exit_frame = t.await_end()
    assert b"/dev/pts/" in t.seen and b"43 132\r\n" in t.seen
    assert b"xterm-256color /root root\r\n/workspace\r\n" in t.seen
    assert exit_frame == {"type": "exit", "exitCode": 5, "reason": "exited"}
    assert t.ws.close_code == 1000


def test_shell_directory_user_and_command(terminal):
    t = terminal(shell="sh", workingDir="/tmp", user="nobody",
                 command="echo $0 $(pwd) $(id -un); echo again > $(tty) && echo mine")
    t.await_end()
    assert b"sh /tmp nobody\r\nagain\r\nmine\r\n" in t.seen


def test_resize(terminal):
    t = terminal(command="trap 'stty size' WINCH; echo ready; while :; do sleep 0.05; done")
    t.await_(b"ready\r\n")
    t.send(type="resize", cols=90, rows=33)
    t.await_(b"33 90\r\n")


def test_job_control(terminal):
    t = terminal(shell="/bin/bash")
    t.type("PS1='pro''mpt> '\n")
    t.await_(b"prompt> ")
    t.type("bash -c 'echo be\"\"gins; exec sleep 1000'\n")
    t.await_(b"begins\r\n")
    t.seen = b""
    t.type("\x03")
    t.await_(b"prompt> ")
    t.type("echo inter''rupted $?\n")
    t.await_(b"interrupted 130\r\n")
    t.type(JOB)
    t.await_(b"second\r\n")
    t.seen = b""
    t.type("\x1a")
    t.await_(b"Stopped")
    t.type("fg\n")
    t.await_(b"resumed\r\n")
    t.seen = b""
    t.type("\x03")
    t.await_(b"prompt> ")
    t.type("echo ba''ck $?\n")
    t.await_(b"back 130\r\n")


def test_exact_bytes_both_ways(terminal):
    """Whatever a full-screen program writes, and whatever is typed to it."""
    data = bytes(range(256)) * 200 + os.urandom(100_000)
    t = terminal(binary="true",
                 command=f"stty raw -echo; echo ready; head -c {len(data)} | tee /tmp/got")
    t.await_(b"ready\n")
    t.seen = b""
    for at in range(0, len(data), 10_000):
        t.type_bytes(data[at:at + 10_000])
        # Echoed by tee: not reading here would be a deadlock of our own making.
    t.await_(lambda: len(t.seen) >= len(data))
    assert t.seen == data and t.dropped == 0


def test_text_that_is_none(terminal):
    """Characters that are cut, and bytes that are no characters."""
    t = terminal(command="stty -echo; printf 'a\\303'; sleep 0.3; printf '\\251b'; printf '\\377\\n'; "
                         "printf '\\342\\202'; sleep 0.3; read x")
    t.await_(b"\xff\r\n\xe2\x82")
    assert t.seen == b"a\xc3\xa9b\xff\r\n\xe2\x82"
    lossy = [f for f in t.frames if "dataBase64" in f]
    assert lossy and all("\ufffd" in f["data"] for f in lossy)


def test_input_in_every_form(terminal):
    t = terminal(command="stty raw -echo; echo ready; head -c 8 | od -An -tx1 -v")
    t.await_(b"ready")
    t.send(type="input", data="é\x00")
    t.send(type="input", dataBase64="/wA=")
    t.type_bytes(b"\x80\x81\x82")
    t.await_end()
    assert b"c3 a9 00 ff 00 80 81 82" in t.seen


def test_frames_that_make_no_sense(terminal):
    t = terminal(command="cat")
    rows = [(b"no json", "INVALID_JSON"), (b"[]", "INVALID_ARGUMENT"),
            (b'{"type":"dance"}', "INVALID_ARGUMENT"), (b'{"data":"x"}', "INVALID_ARGUMENT"),
            (b'{"type":"input"}', "INVALID_ARGUMENT"),
            (b'{"type":"input","data":"x","dataBase64":"eA=="}', "INVALID_ARGUMENT"),
            (b'{"type":"input","dataBase64":"%%"}', "INVALID_ARGUMENT"),
            (b'{"type":"resize"}', "INVALID_ARGUMENT"),
            (b'{"type":"resize","cols":0,"rows":1}', "INVALID_ARGUMENT"),
            (b'{"type":"resize","cols":100000,"rows":1}', "INVALID_ARGUMENT"),
            (b'{"type":"input","data":"x","more":1}', "UNKNOWN_FIELD")]
    for text, code in rows:
        t.error = None
        t.ws.send(TEXT, text)
        t.await_(lambda: t.error)
        assert t.error["code"] == code, (text, t.error)
    t.send(type="ping")
    t.await_(lambda: {"type": "pong"} in t.frames)
    t.type("still there\n")
    t.await_(b"still there\r\nstill there\r\n")


# --- sessions ---

def test_reattach_and_replay(terminal):
    t = terminal(sessionId="work", command="stty -echo; while read x; do echo got $x; done")
    assert t.id == "work" and t.session["created"]
    t.type("one\n")
    t.await_(b"got one\r\n")
    at = t.offset
    t.close()
    again = terminal(sessionId="work")
    assert not again.session["created"] and again.session["pid"] == t.session["pid"]
    again.await_(b"got one\r\n")
    again.type("two\n")
    again.await_(b"got two\r\n")
    rest = terminal(sessionId="work", offset=at)
    rest.await_(b"got two\r\n")
    assert b"got one" not in rest.seen and rest.dropped == 0


def test_two_clients(terminal):
    a = terminal(sessionId="both", command="stty -echo; while read x; do echo got $x; done")
    b = terminal(sessionId="both")
    a.type("from a\n")
    b.type("from b\n")
    for t in (a, b):
        t.await_(b"got from a\r\n")
        t.await_(b"got from b\r\n")


def test_input_is_counted(terminal):
    t = terminal(client="me", sessionId="counted", command="cat")
    assert t.session["taken"] == 0
    t.type("12345\n")
    t.await_(lambda: t.taken == 6)
    t.close()
    again = terminal(client="me", sessionId="counted", create="false")
    assert again.session["taken"] == 6


def test_the_rest_api(server, shared_sandbox, terminal):
    base = f"/v0/sandbox/{shared_sandbox.name}/terminal"
    answer = server.request("POST", f"{base}/sessions", {
        "sessionId": "made", "command": "echo $COLOUR; cat", "env": {"COLOUR": "blue"},
        "cols": 100, "rows": 40, "workingDir": "/tmp"})
    assert answer.status == 201, answer.text
    made = answer.json()
    assert made["sessionId"] == "made" and made["cols"] == 100 and made["workingDir"] == "/tmp"
    assert server.request("POST", f"{base}/sessions", {"sessionId": "made"}).status == 409
    t = terminal(sessionId="made", create="false")
    t.await_(b"blue\r\n")
    assert sessions(server, shared_sandbox)["made"]["attached"] == 1
    answer = server.request("DELETE", f"{base}/made")
    assert answer.status == 200 and answer.json()["sessionId"] == "made"
    assert t.await_end()["reason"] == "closed"
    assert "made" not in sessions(server, shared_sandbox)
    wait_until(lambda: server.request("DELETE", f"{base}/made").status == 404, 10, "forgotten")
    # A name is made up when none is given.
    name = server.request("POST", f"{base}/sessions", {"command": "cat"}).json()["sessionId"]
    assert name in sessions(server, shared_sandbox)
    assert server.request("DELETE", f"{base}/{name}").status == 200


def test_the_other_address(server, shared_sandbox):
    with Terminal(server, shared_sandbox.name, base="/default-workspace/sandbox",
                  command="echo hi") as t:
        t.await_end()
        assert b"hi\r\n" in t.seen


def test_idle_sessions_go(server, shared_sandbox):
    base = f"/v0/sandbox/{shared_sandbox.name}/terminal/sessions"
    made = server.request("POST", base, {"sessionId": "brief", "idleTimeout": 1,
                                         "command": "exec sleep 98765"})
    assert made.status == 201, made.text
    wait_until(lambda: "brief" not in sessions(server, shared_sandbox), 20, "gone")
    wait_until(lambda: not inside_pids(shared_sandbox, "^sleep 98765"), 20, "with its process")


def test_closing_ends_the_whole_tree(server, shared_sandbox, terminal):
    t = terminal(command="(setsid sleep 87654 &) ; nohup sleep 87654 >/dev/null 2>&1 & "
                         "trap '' HUP TERM; echo ready; while :; do sleep 0.05; done")
    t.await_(b"ready\r\n")
    wait_until(lambda: len(inside_pids(shared_sandbox, "^sleep 87654")) == 2, 10, "both run")
    answer = server.request("DELETE", f"/v0/sandbox/{shared_sandbox.name}/terminal/{t.id}")
    assert answer.status == 200, answer.text
    assert not inside_pids(shared_sandbox, "^sleep 87654")


def test_what_is_refused(server, shared_sandbox):
    rows = [
        ({"cols": "0"}, 400, "INVALID_ARGUMENT"), ({"cols": "x"}, 400, "INVALID_ARGUMENT"),
        ({"rows": "99999"}, 400, "INVALID_ARGUMENT"),
        ({"sessionId": "a/b"}, 400, "INVALID_ARGUMENT"),
        ({"sessionId": "x" * 65}, 400, "INVALID_ARGUMENT"),
        ({"client": "a b"}, 400, "INVALID_ARGUMENT"),
        ({"create": "false"}, 400, "INVALID_ARGUMENT"),
        ({"create": "false", "sessionId": "nobodys"}, 404, "TERMINAL_NOT_FOUND"),
        ({"shell": "/no/such/shell"}, 400, "INVALID_ARGUMENT"),
        ({"user": "no-such-user"}, 400, "INVALID_ARGUMENT"),
        ({"workingDir": "relative"}, 400, "INVALID_PATH"),
        ({"workingDir": "/no/such/place"}, 404, "FILE_NOT_FOUND"),
        ({"binary": "perhaps"}, 400, "INVALID_ARGUMENT"),
    ]
    for query, status, code in rows:
        with pytest.raises(Refused) as refused:
            Terminal(server, shared_sandbox.name, **query)
        assert (refused.value.status, refused.value.code()) == (status, code), query
    with pytest.raises(Refused) as refused:
        Terminal(server, "no-such-sandbox")
    assert refused.value.status == 404
    answer = server.request("GET", f"/v0/sandbox/{shared_sandbox.name}/terminal/ws")
    assert answer.status == 426, answer.text
    base = f"/v0/sandbox/{shared_sandbox.name}/terminal"
    for body in ({"cols": 0}, {"shell": 5}, {"nonsense": 1}, {"idleTimeout": 0},
                 {"sessionId": ""}, {"env": {"A": 1}}):
        assert server.request("POST", f"{base}/sessions", body).status == 400, body
    assert server.request("DELETE", f"{base}/nobodys").status == 404
    assert sessions(server, shared_sandbox) == {}


def test_there_is_a_limit(server, sandbox):
    base = f"/v0/sandbox/{sandbox.name}/terminal/sessions"
    for _ in range(16):
        assert server.request("POST", base, {"command": "cat"}).status == 201
    answer = server.request("POST", base, {"command": "cat"})
    assert answer.status == 429 and answer.json()["error"]["code"] == "LIMIT_EXCEEDED"


# --- floods, and ends ---

def resident(pid):
    for line in pathlib.Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


def test_a_flood_and_a_reader_that_does_not_read(server, sandbox):
    """Nobody's memory grows, and the sandbox goes on answering."""
    with Terminal(server, sandbox.name, command="stty raw -echo; exec yes") as flood:
        flood.await_(b"y\ny\n")
        before = resident(server.pids().cellad)
        end = time.monotonic() + 2
        while time.monotonic() < end:
            assert sandbox.exec("echo alive")[1] == "alive\n"
        assert resident(server.pids().cellad) - before < 20_000
        # The programs of the sandbox wait for this reader; it has missed nothing.
        for _ in range(200):
            flood.take()
        assert flood.dropped == 0
        assert set(flood.seen) == {ord("y"), ord("\n")}
        flood.type("\x03")  # raw: no signal
    listed = sessions(server, sandbox)
    assert list(listed) == [flood.id]
    # With nobody attached `yes` runs free, and the newest bytes are kept.
    wait_until(lambda: sessions(server, sandbox)[flood.id]["attached"] == 0, 10, "detached")
    with Terminal(server, sandbox.name, sessionId=flood.id) as late:
        late.await_(lambda: late.dropped > 0 and len(late.seen) > 100_000)
        late.seen = b""
    assert server.request("DELETE", f"/v0/sandbox/{sandbox.name}/terminal/{flood.id}").status == 200


def test_everything_that_was_written_comes(terminal):
    """Two megabytes through a reader that takes its time."""
    t = terminal(binary="true", command="stty raw -echo; echo ready; read go; seq 1 300000; exit 3")
    t.await_(b"ready\n")
    t.seen = b""
    t.type("go\n")
    for _ in range(5):
        t.take()
        time.sleep(0.02)
    assert t.await_end()["exitCode"] == 3
    expected = "".join(f"{i}\n" for i in range(1, 300001)).encode()
    assert hashlib.sha256(t.seen).digest() == hashlib.sha256(expected).digest()


def test_stopping_the_sandbox_ends_it(server):
    sandbox = server.create()
    t = Terminal(server, sandbox.name, command="cat")
    sandbox.stop()
    t.await_end()
    # Its shell may have had the time to end first.
    assert t.error or t.exit
    with pytest.raises(Refused) as refused:
        Terminal(server, sandbox.name, sessionId=t.id, create="false")
    assert (refused.value.status, refused.value.code()) == (409, "NOT_RUNNING")
    sandbox.delete()


def test_cellad_is_killed(server_factory):
    """The session is the agent's: what was written meanwhile is there, and nothing comes twice."""
    server = server_factory()
    sandbox = server.create()
    t = Terminal(server, sandbox.name, sessionId="kept", client="me",
                 command="stty raw -echo; i=0; while :; do i=$((i + 1)); echo $i; sleep 0.01; done")
    t.await_(b"20\n")
    killed = server.pids().cellad
    os.kill(killed, signal.SIGKILL)
    with pytest.raises((ConnectionError, OSError)):
        while t.take():
            pass
        raise ConnectionError
    wait_until(lambda: server.pids().cellad != killed, 30, "a new cellad")
    wait_until(lambda: server.request("GET", "/health").status == 200, 30, "it answers")
    again = Terminal(server, sandbox.name, sessionId="kept", client="me", create="false",
                     offset=t.offset)
    again.await_(lambda: len(again.seen) > 500)
    lines = (t.seen + again.seen).split(b"\n")[:-1]
    assert lines == [b"%d" % i for i in range(1, len(lines) + 1)] and again.dropped == 0
    again.close()
    sandbox.delete()


# --- the page ---

def test_the_page(server, shared_sandbox):
    path = f"/v0/sandbox/{shared_sandbox.name}/terminal"
    answer = server.request("GET", f"{path}?token={server.key}", headers={"Authorization": None})
    assert answer.status == 200 and answer.headers["Content-Type"].startswith("text/html")
    assert "new WebSocket(" in answer.text
    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert server.request("GET", path, headers={"Authorization": None}).status == 401
