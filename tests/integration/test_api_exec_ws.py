# SPDX-License-Identifier: Apache-2.0
"""Commands over a WebSocket: what a client asks for, what it is told, and what it goes on from."""

import asyncio
import base64
import json
import os
import random
import subprocess
import urllib.parse

import pytest

import node_tests
from cella_exec import ExecSocket, data
from cella_processes import get
from cella_server import PATIENCE, wait_until
from cella_websocket import BINARY, TEXT, Refused, WebSocket


@pytest.fixture
def connect(server, shared_sandbox):
    made = []

    def make(**fields):
        made.append(ExecSocket(server, shared_sandbox.name, **fields))
        return made[-1]

    yield make
    for one in made:
        one.close()


# --- one command ---

def test_a_command(connect, shared_sandbox):
    s = connect()
    assert s.ready["sandbox"] == shared_sandbox.name and s.ready["streamsMax"] >= 8
    end, out, errors = s.run("a", "echo out; sleep 0.1; echo err >&2; exit 3", workingDir="/tmp", env={"A": "1"})
    assert (out, errors) == (b"out\n", b"err\n")
    assert end["exitCode"] == 3 and end["status"] == "failed" and end["offset"] == 8
    started, *middle, last = s.messages["a"]
    assert started["type"] == "started" and started["offset"] == 0 and started["pid"] == end["pid"]
    assert started["workingDir"] == "/tmp" and started["status"] == "running"
    assert [message["type"] for message in middle] == ["stdout", "stderr"] and last is end
    assert get(shared_sandbox, end["pid"])["exitCode"] == 3


def test_program_and_arguments(connect):
    _, out, _ = connect().run("a", ["printf", "%s|", "a b", "$HOME"])
    assert out == b"a b|$HOME|"


def test_several_at_once_and_ids_anew(connect):
    s = connect()
    s.start("slow", "read x; echo slow $x", stdin=True)
    for turn in range(3):
        assert s.run(f"fast{turn}", f"echo {turn}")[1] == f"{turn}\n".encode()
    s.start("slow", "true")
    assert s.await_("slow", "error")["code"] == "ALREADY_EXISTS"
    s.send(type="stdin", id="slow", data="done\n")
    assert s.await_("slow", "exit")["exitCode"] == 0 and s.bytes("slow") == b"slow done\n"
    s.messages.clear()
    assert s.run("slow", "echo again")[1] == b"again\n"  # an id is free once its exit was told


def test_the_end_of_a_connection_is_none_of_the_command(connect, shared_sandbox):
    first = connect()
    first.start("a", "echo begin; read x; echo $x", stdin=True, name="outlives")
    first.await_("a", "stdout")
    first.close()
    second = connect()
    second.send(type="attach", id="b", process="outlives")
    second.send(type="stdin", id="b", data="end\n")
    assert second.await_("b", "exit")["exitCode"] == 0
    assert second.messages["b"][0]["type"] == "attached" and second.bytes("b") == b"begin\nend\n"


# --- text and bytes ---

def test_characters_are_never_cut(connect):
    # One byte at a time, with the other stream in the middle of a character.
    source = ("import os, time\n"
              "for b in 'h\u00e4 \u20ac \U0001f600!'.encode():\n"
              "    os.write(1, bytes([b])); time.sleep(0.01)\n"
              "    os.write(2, b'.')\n")
    s = connect()
    end, out, errors = s.run("a", ["python3", "-c", source])
    assert s.text("a") == "h\u00e4 \u20ac \U0001f600!" and out.decode() == s.text("a")
    assert errors == b"." * len(out) and end["offset"] == 2 * len(out)
    assert all("dataBase64" not in message for message in s.messages["a"])


def test_bytes_that_are_no_text(connect):
    s = connect()
    # Neither the lone byte nor the character that never ends is lost.
    end, out, _ = s.run("a", r"printf 'a\377b\342\202'")
    assert out == b"a\xffb\xe2\x82" and s.text("a") == "a\ufffdb\ufffd" and end["offset"] == 5
    end, out, _ = s.run("b", "head -c 100000 /dev/urandom | tee /tmp/noise; printf '\\342'", encoding="base64")
    assert all(set(message) >= {"dataBase64"} and "data" not in message
               for message in s.messages["b"] if message["type"] == "stdout")
    assert len(out) == 100001 and end["offset"] == 100001


def test_a_lot_of_it(connect, shared_sandbox):
    s = connect()
    end, out, _ = s.run("a", "seq 1 300000; seq 1 1000 >&2")
    assert out == "".join(f"{i}\n" for i in range(1, 300001)).encode() and end["exitCode"] == 0
    assert len(s.bytes("a", "stderr").splitlines()) == 1000
    assert not any(message["type"] == "gap" for message in s.messages["a"])


# --- input, signals, ends ---

def test_stdin(connect):
    s = connect()
    s.start("a", "cat", stdin=True)
    s.send(type="stdin", id="a", data="h\u00e4llo ")  # it has hardly started: it waits
    s.send(type="stdin", id="a", dataBase64=base64.b64encode(b"\xff\x00").decode(), end=True)
    assert s.await_("a", "exit")["exitCode"] == 0
    assert s.bytes("a") == "h\u00e4llo ".encode() + b"\xff\x00"
    taken = [message for message in s.messages["a"] if message["type"] == "stdin"]
    assert all(one["taken"] <= 9 for one in taken)
    assert s.run("b", "cat; echo over", stdin="all of it\n")[1] == b"all of it\nover\n"


def test_stdin_that_nobody_reads(connect):
    s = connect()
    s.start("a", "sleep 1000", stdin=True)
    s.await_("a", "started")
    piece = "x" * 200000
    s.send(type="stdin", id="a", data=piece)  # some of it fits into the pipe
    s.send(type="stdin", id="a", data=piece)
    full = s.await_("a", "error")
    assert full["code"] == "LIMIT_EXCEEDED" and not full["ended"]
    assert s.run("b", "echo meanwhile")[1] == b"meanwhile\n"
    s.send(type="cancel", id="a")
    assert s.await_("a", "exit")["status"] == "killed"


def test_no_stdin(connect):
    s = connect()
    s.start("a", "sleep 1000")
    s.await_("a", "started")
    s.send(type="stdin", id="a", data="x")
    assert s.await_("a", "error")["code"] == "NO_STDIN"
    s.send(type="signal", id="a", signal="KILL")
    s.await_("a", "exit")


def test_signals_and_cancelling(connect):
    s = connect()
    s.start("a", "trap 'echo hup' HUP; trap 'exit 7' INT; echo ready; while :; do sleep 0.02; done")
    s.await_("a", "stdout")
    s.send(type="signal", id="a", signal="SIGHUP")
    s.await_("a", lambda message: message.get("data", "").endswith("hup\n"))
    s.send(type="signal", id="a", signal=2)
    assert s.await_("a", "exit")["exitCode"] == 7
    s.start("b", "trap 'echo bye; exit 5' TERM; echo ready; while :; do sleep 0.02; done")
    s.await_("b", "stdout")
    s.send(type="cancel", id="b", grace=60)
    end = s.await_("b", "exit")
    assert end["status"] == "stopped" and b"bye" in s.bytes("b")
    s.start("c", "trap '' TERM; echo ready; while :; do sleep 0.02; done")
    s.await_("c", "stdout")
    s.send(type="cancel", id="c", grace=600)
    s.send(type="cancel", id="c")  # who does not want to wait after all
    assert s.await_("c", "exit")["exitCode"] == 137


def test_detaching(connect, shared_sandbox):
    s = connect()
    s.start("a", "echo one; read x; echo two", stdin=True)
    s.await_("a", "stdout")
    s.send(type="detach", id="a")
    left = s.await_("a", "detached")
    pid = s.messages["a"][0]["pid"]
    assert get(shared_sandbox, pid)["status"] == "running"
    s.messages.clear()
    s.send(type="attach", id="a", process=pid, resume=left["resume"])
    s.send(type="stdin", id="a", data="\n")
    s.await_("a", "exit")
    assert s.bytes("a") == b"two\n"


def test_detaching_from_a_flood(connect, shared_sandbox):
    s = connect()
    s.start("a", "yes")
    s.await_("a", "stdout")
    s.send(type="detach", id="a")
    s.await_("a", "detached")
    assert s.run("b", "echo the connection is whole")[1] == b"the connection is whole\n"
    s.send(type="attach", id="a2", process=s.messages["a"][0]["pid"], hold=False)
    s.await_("a2", "stdout")
    s.send(type="cancel", id="a2")
    s.await_("a2", "exit")


def test_detaching_before_it_has_started(connect, shared_sandbox):
    """Either it has not, and goes on as if nothing had been said, or the client is told that it hears no more."""
    s, followed = connect(), []
    for turn in range(20):
        name = f"a{turn}"
        s.send(type="start", id=name, command=f"touch /tmp/early-{turn}; while [ ! -e /tmp/early ]; do sleep 0.1; done")
        s.send(type="detach", id=name)
        last = s.await_(name, lambda message: message["type"] in ("detached", "error"))
        if last["type"] == "error":
            assert last["code"] == "CONFLICT" and not last.get("ended"), last
            followed.append(name)
    wait_until(lambda: shared_sandbox.run("ls /tmp/early-* | wc -l") == "20", 30, "the commands")
    shared_sandbox.run("touch /tmp/early")
    for name in followed:
        assert s.await_(name, "exit")["exitCode"] == 0


# --- going on, and many readers ---

def test_going_on_after_a_lost_connection(connect):
    """Cut at random places; put together it is what one reader would have seen, to the byte."""
    source = ("import os, random, time\n"
              "random.seed(7)\n"
              "text = '\u20ac\u00e4\U0001f600x' * 3000\n"
              "data = text.encode()\n"
              "while data:\n"
              "    n = random.randint(1, 900); os.write(1, data[:n]); data = data[n:]\n"
              "    os.write(2, b'e')\n"
              "    time.sleep(0.002)\n")
    first = connect()
    first.start("a", ["python3", "-c", source], name="long")
    first.await_("a", "started")
    out, resume, reader, stream, turns = [], "0", first, "a", 0
    choose = random.Random(3)
    while True:
        for _ in range(choose.randint(1, 40)):
            message = reader.take()
            if message["type"] in ("stdout", "stderr"):
                out.append(message)
                resume = message["resume"]
            if message["type"] == "exit":
                break
        if message["type"] == "exit":
            break
        reader.close()
        reader, stream, turns = connect(), "again", turns + 1
        reader.send(type="attach", id=stream, process="long", resume=resume)
    assert turns > 0
    text = "".join(message["data"] for message in out if message["type"] == "stdout")
    assert text == "\u20ac\u00e4\U0001f600x" * 3000
    assert not any("dataBase64" in message for message in out)


def test_many_readers_of_one_process(connect, server, shared_sandbox):
    count = 100
    first = connect()
    first.start("a", "read x; seq 1 2000; read y", stdin=True)
    pid = first.await_("a", "started")["pid"]
    readers = [connect() for _ in range(count)]
    for reader in readers:
        reader.send(type="attach", id="r", process=pid)
    for reader in readers:
        reader.await_("r", "attached")
    first.send(type="stdin", id="a", data="\n")
    wanted = "".join(f"{i}\n" for i in range(1, 2001)).encode()
    for reader in readers:
        reader.await_("r", lambda message: message.get("data", "").endswith("2000\n"))
        assert reader.bytes("r") == wanted
    first.send(type="stdin", id="a", data="\n")
    for reader in readers:
        assert reader.await_("r", "exit")["exitCode"] == 0


def test_a_gap_is_told(connect, shared_sandbox):
    """More than the log keeps, written before anybody reads: the bytes that are gone are counted."""
    pid = shared_sandbox.spawn("seq 1 700000; echo end >&2; sleep 1000")
    wait_until(lambda: shared_sandbox.logs(pid)["stderr"] == "end\n", 30, "all is written")
    total = sum(len(str(i)) + 1 for i in range(1, 700001)) + 4
    s = connect()
    s.send(type="attach", id="c", process=pid)
    s.await_("c", lambda message: message.get("offset") == total)
    got, gap, place = s.bytes("c"), 0, 0
    for message in s.messages["c"][1:]:
        if message["type"] == "gap":
            gap += message["bytes"]
            place += message["bytes"]
        else:
            place += len(data(message))
        assert message["offset"] == place
    assert gap > 0 and gap + len(got) + 4 == total and got.endswith(b"\n700000\n")
    s.send(type="cancel", id="c")
    s.await_("c", "exit")


def test_a_slow_reader_loses_nothing(connect):
    """Its process waits for it, and other connections do not."""
    slow, quick = connect(), connect()
    slow.start("a", "seq 1 1500000")
    slow.await_("a", "started")
    for _ in range(5):
        assert quick.run(f"q{_}", "echo x")[1] == b"x\n"
    end = slow.await_("a", "exit")
    got = slow.bytes("a")
    assert end["offset"] == len(got) and got.endswith(b"\n1500000\n") and got.count(b"\n") == 1500000
    assert not any(message["type"] == "gap" for message in slow.messages["a"])


# --- the server's death ---

def test_after_a_crash(server_factory):
    server = server_factory()
    sandbox = server.create()
    s = ExecSocket(server, sandbox.name)
    s.start("a", "i=0; while read x; do i=$((i+1)); echo $i; done", stdin=True, name="counter")
    s.send(type="stdin", id="a", data="\n")
    s.await_("a", lambda message: message.get("data") == "1\n")
    resume = s.messages["a"][-1].get("resume", "2")
    before = server.kill("cellad")
    server.wait_recovered(before, "cellad")
    s.close()
    s = ExecSocket(server, sandbox.name)
    s.send(type="attach", id="b", process="counter", resume=resume)
    s.send(type="stdin", id="b", data="\n", end=True)
    assert s.await_("b", "exit")["exitCode"] == 0
    assert s.bytes("b") == b"2\n"
    s.close()


def test_a_sandbox_that_goes(server, sandbox):
    s = ExecSocket(server, sandbox.name)
    s.start("a", "echo x; sleep 1000")
    s.await_("a", "stdout")
    sandbox.delete()
    gone = s.await_("a", lambda message: message["type"] in ("error", "exit"))
    assert gone["type"] == "exit" or (gone["ended"] and gone["resume"] == "2"), gone
    s.start("b", "true")
    assert s.await_("b", "error")["code"] == "SANDBOX_NOT_FOUND"
    s.close()


# --- wrong messages ---

WRONG = [
    ("{", "INVALID_JSON"),
    ("[]", "INVALID_ARGUMENT"),
    ({"type": "dance", "id": "a"}, "INVALID_ARGUMENT"),
    ({"id": "a"}, "INVALID_ARGUMENT"),
    ({"type": "start", "command": "true"}, "INVALID_ARGUMENT"),
    ({"type": "start", "id": "a b", "command": "true"}, "INVALID_ARGUMENT"),
    ({"type": "start", "id": "a\0", "command": "true"}, "INVALID_ARGUMENT"),
    ({"type": "start", "id": "x" * 65, "command": "true"}, "INVALID_ARGUMENT"),
    ({"type": "start", "id": "a"}, "INVALID_ARGUMENT"),
    ({"type": "start", "id": "a", "command": "true", "comand": 1}, "UNKNOWN_FIELD"),
    ({"type": "start", "id": "a", "command": "true", "tty": True}, "INVALID_ARGUMENT"),
    ({"type": "start", "id": "a", "command": "true", "encoding": "latin1"}, "INVALID_ARGUMENT"),
    ({"type": "start", "id": "a", "command": "true", "encoding": 1}, "INVALID_ARGUMENT"),
    ({"type": "start", "id": "a", "command": "true", "waitForPorts": [1]}, "INVALID_ARGUMENT"),
    ({"type": "start", "id": "a", "command": "true", "workingDir": "x"}, "INVALID_PATH"),
    ({"type": "start", "id": "a", "command": "true", "workingDir": "/no/such"}, "FILE_NOT_FOUND"),
    ({"type": "attach", "id": "a"}, "INVALID_ARGUMENT"),
    ({"type": "attach", "id": "a", "process": 999999}, "PROCESS_NOT_FOUND"),
    ({"type": "attach", "id": "a", "process": "1", "offset": -1}, "INVALID_ARGUMENT"),
    ({"type": "attach", "id": "a", "process": "1", "resume": "x"}, "INVALID_ARGUMENT"),
    ({"type": "attach", "id": "a", "process": "1", "resume": "1:e28282e2:"}, "INVALID_ARGUMENT"),
    ({"type": "stdin", "id": "none", "data": "x"}, "PROCESS_NOT_FOUND"),
    ({"type": "stdin", "id": "none"}, "INVALID_ARGUMENT"),
    ({"type": "stdin", "id": "none", "data": "x", "dataBase64": "eA=="}, "INVALID_ARGUMENT"),
    ({"type": "stdin", "id": "none", "dataBase64": "!"}, "INVALID_ARGUMENT"),
    ({"type": "stdin", "id": "none", "data": "x" * 300000}, "PAYLOAD_TOO_LARGE"),
    ({"type": "signal", "id": "none", "signal": "SIGSTOP"}, "INVALID_ARGUMENT"),
    ({"type": "signal", "id": "none", "signal": "INT"}, "PROCESS_NOT_FOUND"),
    ({"type": "resize", "id": "none", "cols": 80, "rows": 24}, "INVALID_ARGUMENT"),
    ({"type": "cancel", "id": "none", "grace": -1}, "INVALID_ARGUMENT"),
    ({"type": "detach", "id": "none"}, "PROCESS_NOT_FOUND"),
]


def test_wrong_messages(connect):
    s = connect()
    for message, code in WRONG:
        s.messages.clear()
        s.ws.send(TEXT, (message if isinstance(message, str) else json.dumps(message)).encode())
        told = s.take()
        assert told["type"] == "error" and told["code"] == code, (message, told)
        assert told["message"], message
    s.send(type="ping")
    assert s.take()["type"] == "pong"
    assert s.run("fine", "echo fine")[1] == b"fine\n"


def test_too_many_streams(connect):
    s = connect()
    most = s.ready["streamsMax"]
    for i in range(most):
        s.start(f"s{i}", "sleep 1000")
    for i in range(most):
        s.await_(f"s{i}", "started")
    s.start("more", "true")
    assert s.await_("more", "error")["code"] == "LIMIT_EXCEEDED"
    for i in range(most):
        s.send(type="cancel", id=f"s{i}")
    for i in range(most):
        s.await_(f"s{i}", "exit")
    assert s.run("more2", "echo room")[1] == b"room\n"


def test_before_the_handshake(server, shared_sandbox):
    path = f"/v0/sandbox/{shared_sandbox.name}/exec/ws"
    assert server.request("GET", path).status == 426
    for fields, status in (({}, 401), ({"Authorization": "Bearer cella_wrong"}, 401)):
        with pytest.raises(Refused) as refused:
            WebSocket(server.url, path, fields)
        assert refused.value.status == status
    with pytest.raises(Refused) as refused:
        ExecSocket(server, "no-such")
    assert refused.value.code() == "SANDBOX_NOT_FOUND"
    s = ExecSocket(server, shared_sandbox.name, fields={}, token=server.key)  # as browsers do
    assert s.run("a", "echo in")[1] == b"in\n"
    s.close()


def test_a_container(server, sandbox):
    """The address of /api/sandbox: the same, as the ordinary user."""
    fields = {"Authorization": f"Bearer {server.key}"}
    ws = WebSocket(server.url, f"/api/sandbox/{sandbox.name}/ws", fields)
    assert json.loads(ws.receive()[1])["type"] == "ready"
    ws.send(TEXT, json.dumps({"type": "start", "id": "a", "command": "id -un; pwd"}).encode())
    out = ""
    while (message := json.loads(ws.receive()[1]))["type"] != "exit":
        out += message.get("data", "")
    assert out == "user\n/workspace\n" and message["exitCode"] == 0
    ws.close()


def test_binary_messages_are_refused(connect):
    s = connect()
    s.ws.send(BINARY, b"x")
    assert s.take() is None and s.ws.close_code == 1003


# --- others' clients ---

def test_websockets_of_python(server, shared_sandbox):
    websockets = pytest.importorskip("websockets")
    url = server.url.replace("http", "ws") + f"/v0/sandbox/{shared_sandbox.name}/exec/ws"

    async def talk():
        async with websockets.connect(url, subprotocols=["other", "cella.exec.v1"],
                                      extra_headers={"Authorization": f"Bearer {server.key}"}) as ws:
            assert ws.subprotocol == "cella.exec.v1"
            assert json.loads(await ws.recv())["type"] == "ready"
            await ws.send(json.dumps({"type": "start", "id": "1", "command": "seq 1 100000"}))
            out = ""
            while (message := json.loads(await ws.recv()))["type"] != "exit":
                out += message.get("data", "")
            await (await ws.ping())
            # In fragments, as a library may send it.
            await ws.send(iter(['{"type": "start", ', '"id": "2", "command"', ': "echo pieces"}']))
            while (message := json.loads(await ws.recv()))["type"] != "stdout":
                pass
            return out, message["data"], message["id"]

    out, pieces, stream = asyncio.run(asyncio.wait_for(talk(), 60 * PATIENCE))
    assert out == "".join(f"{i}\n" for i in range(1, 100001)) and (pieces, stream) == ("pieces\n", "2")


NODE = """
const ws = new WebSocket(process.argv[1], "cella.exec.v1");
let out = "";
ws.onmessage = ({data}) => {
  const message = JSON.parse(data);
  if (message.type === "ready")
    ws.send(JSON.stringify({type: "start", id: "1", command: "echo h\\u00e4llo; cat", stdin: true}));
  if (message.type === "started")
    ws.send(JSON.stringify({type: "stdin", id: "1", data: "from node\\n", end: true}));
  if (message.type === "stdout") out += message.data;
  if (message.type === "exit") { ws.close(1000); }
};
ws.onclose = ({code, wasClean}) => console.log(JSON.stringify({protocol: ws.protocol, code, wasClean, out}));
"""


def test_websocket_of_node(server, shared_sandbox):
    program = node_tests.node()
    if program is None:
        pytest.skip("no Node with a WebSocket of its own")
    url = (server.url.replace("http", "ws") + f"/v0/sandbox/{shared_sandbox.name}/exec/ws?" +
           urllib.parse.urlencode({"token": server.key}))
    done = subprocess.run([program, "-e", NODE, url], capture_output=True, text=True, timeout=60 * PATIENCE,
                          env={"PATH": os.environ["PATH"]})
    assert done.returncode == 0, done
    assert json.loads(done.stdout) == {"protocol": "cella.exec.v1", "code": 1000, "wasClean": True,
                                       "out": "h\u00e4llo\nfrom node\n"}
