# SPDX-License-Identifier: Apache-2.0
"""Being told of ports: delivered at least once, with retries, across restarts; and never to where a
stranger could not go himself."""

import contextlib
import http.server
import json
import socket
import sqlite3
import threading

import pytest

from cella_processes import LISTEN, kill, post
from cella_server import Server, wait_until


class Receiver:
    """A local receiver of callbacks that refuses the first `failures` of them."""

    def __init__(self, failures=0):
        self.failures, self.got, self.refused = failures, [], 0
        receiver = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if receiver.failures > 0:
                    receiver.failures -= 1
                    receiver.refused += 1
                    self.send_response(503)
                else:
                    receiver.got.append((self.path, self.headers["Content-Type"], json.loads(body)))
                    self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def ports(self):
        return sorted(body["port"] for _, _, body in self.got)

    def close(self):
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def receiver():
    made = Receiver()
    with contextlib.closing(made):
        yield made


@pytest.fixture(scope="module")
def open_server():
    made = Server("--allow-private-callbacks")
    yield made
    made.close()


@pytest.fixture
def box(open_server):
    made = open_server.create()
    made.write("/tmp/listen.py", LISTEN)
    yield made
    if made.status() is not None:
        made.delete()


def monitor(sandbox, process, callback):
    return sandbox.request("POST", f"/network/process/{process}/monitor", {"callback": callback})


def stored(server, port):
    """What the store has of a port: True when it was told of, None when it is not known."""
    with contextlib.closing(sqlite3.connect(f"file:{server.data}/db/cella.db?mode=ro", uri=True,
                                            timeout=30)) as db:
        row = db.execute("SELECT told FROM monitor_port WHERE port = ?", (port,)).fetchone()
        return None if row is None else row[0] == 1


# Listens on one port after the other, each once a file of its name is there.
STEPS = """
import os, socket, time
kept = {}
while True:
    for port in (7001, 7002, 7003):
        wanted = os.path.exists(f"/tmp/port-{port}")
        if wanted and port not in kept:
            kept[port] = socket.socket()
            kept[port].setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            kept[port].bind(("0.0.0.0", port))
            kept[port].listen()
        if not wanted and port in kept:
            kept.pop(port).close()
    time.sleep(0.05)
"""


def test_each_new_port_is_told(open_server, box, receiver):
    box.write("/tmp/steps.py", STEPS)
    box.run("touch /tmp/port-7001")
    pid = post(box, "python3 /tmp/steps.py; true", waitForPorts=[7001])["pid"]
    answer = monitor(box, pid, receiver.url + "/hook?x=1")
    assert answer.json() == {"pid": pid, "message": "Port monitoring started"}
    wait_until(lambda: receiver.got == [("/hook?x=1", "application/json",
                                         {"pid": pid, "port": 7001})], 30, "the first port")
    box.run("touch /tmp/port-7002")
    wait_until(lambda: receiver.ports() == [7001, 7002], 30, "the second port")
    # One that goes and comes again is news.
    box.run("rm /tmp/port-7001")
    wait_until(lambda: box.request("GET", f"/network/process/{pid}/ports").json()["ports"] ==
               [{"localPort": 7002, "protocol": "tcp", "address": "0.0.0.0"}], 30, "it is closed")
    wait_until(lambda: stored(open_server, 7001) is None, 30, "the monitor has seen it")
    box.run("touch /tmp/port-7001")
    wait_until(lambda: receiver.ports() == [7001, 7001, 7002], 30, "the first port again")
    answer = box.request("DELETE", f"/network/process/{pid}/monitor")
    assert answer.json() == {"pid": pid, "message": "Port monitoring stopped"}
    answer = box.request("DELETE", f"/network/process/{pid}/monitor")
    assert (answer.status, answer.error()) == (404, "MONITOR_NOT_FOUND")
    kill(box, pid)


def test_retries(box):
    with contextlib.closing(Receiver(failures=3)) as receiver:
        post(box, "python3 /tmp/listen.py tcp-0.0.0.0-7010", name="late", waitForPorts=[7010])
        assert monitor(box, "late", receiver.url).status == 200
        wait_until(lambda: receiver.ports() == [7010], 60, "the port, at last")
        assert receiver.refused == 3
        kill(box, "late")


def test_what_is_owed_is_delivered_after_a_restart(open_server, box):
    """cellad dies between seeing a port and being able to tell: the next one tells."""
    with contextlib.closing(Receiver(failures=10**6)) as receiver:
        post(box, "python3 /tmp/listen.py tcp-0.0.0.0-7020", name="owed", waitForPorts=[7020])
        assert monitor(box, "owed", receiver.url).status == 200
        wait_until(lambda: receiver.refused >= 1, 30, "the first attempt")
        before = open_server.kill("cellad")
        kill_at = receiver.refused
        open_server.wait_recovered(before, "cellad")
        wait_until(lambda: receiver.refused > kill_at, 60, "an attempt of the new one")
        # The process ends; what was seen of it is told all the same.
        kill(box, "owed")
        receiver.failures = 0
        wait_until(lambda: receiver.ports() == [7020], 60, "the port")
        # And then the monitor is gone, with its process.
        answer = box.request("DELETE", "/network/process/owed/monitor")
        wait_until(lambda: box.request("DELETE", "/network/process/owed/monitor").error() ==
                   "MONITOR_NOT_FOUND", 30, f"the end of it: {answer}")


def test_what_was_told_is_not_told_again_by_the_next_cellad(open_server, box, receiver):
    post(box, "python3 /tmp/listen.py tcp-0.0.0.0-7030", name="told", waitForPorts=[7030])
    assert monitor(box, "told", receiver.url).status == 200
    wait_until(lambda: receiver.ports() == [7030], 30, "the port")
    # It is stored after the delivery: look at the store before the kill.
    wait_until(lambda: stored(open_server, 7030), 30, "its row")
    before = open_server.kill("cellad")
    open_server.wait_recovered(before, "cellad")
    with contextlib.closing(Receiver()) as other:
        post(box, "python3 /tmp/listen.py tcp-0.0.0.0-7031", name="after", waitForPorts=[7031])
        assert monitor(box, "after", other.url).status == 200
        wait_until(lambda: other.ports() == [7031], 30, "a later port, of another process")
    assert receiver.ports() == [7030]
    # Stopping the sandbox ends its processes, and the monitors with them.
    box.stop()


def test_replaced(box, receiver):
    post(box, "python3 /tmp/listen.py tcp-0.0.0.0-7040", name="two", waitForPorts=[7040])
    with contextlib.closing(Receiver(failures=10**6)) as first:
        assert monitor(box, "two", first.url).status == 200
        assert monitor(box, "two", receiver.url).status == 200
        wait_until(lambda: receiver.ports() == [7040], 30, "the port, at the second receiver")
        assert first.got == []
    kill(box, "two")


def test_limits_and_ends(box, receiver):
    done = post(box, "true", waitForCompletion=True)
    answer = monitor(box, done["pid"], receiver.url)
    assert (answer.status, answer.error()) == (409, "NOT_RUNNING")
    answer = monitor(box, "nobody", receiver.url)
    assert (answer.status, answer.error()) == (404, "PROCESS_NOT_FOUND")
    for i in range(17):
        post(box, "exec sleep 1000", name=f"m{i}")
        answer = monitor(box, f"m{i}", receiver.url)
        assert answer.status == (200 if i < 16 else 429), answer
    assert answer.error() == "LIMIT_EXCEEDED"


@pytest.mark.parametrize("callback, code", [
    ("http://127.0.0.1:1/", "CALLBACK_REFUSED"), ("http://localhost/", "CALLBACK_REFUSED"),
    ("http://[::1]/", "CALLBACK_REFUSED"), ("http://0/", "CALLBACK_REFUSED"),
    ("http://169.254.169.254/latest/", "CALLBACK_REFUSED"),
    ("http://10.0.0.1/", "CALLBACK_REFUSED"), ("http://[::ffff:10.0.0.1]/", "CALLBACK_REFUSED"),
    ("http://100.64.1.1/", "CALLBACK_REFUSED"), ("ftp://example.com/", "INVALID_ARGUMENT"),
    ("http://a:b@example.com/", "INVALID_ARGUMENT"), ("not a url", "INVALID_ARGUMENT"),
    ("", "INVALID_ARGUMENT"), (None, "INVALID_ARGUMENT"), (7, "INVALID_ARGUMENT"),
])
def test_refused_at_once(shared_sandbox, callback, code):
    pid = post(shared_sandbox, "exec sleep 1000")["pid"]
    answer = monitor(shared_sandbox, pid, callback)
    assert answer.error() == code and "callback" in answer.json()["error"]["message"], answer
    kill(shared_sandbox, pid)


def test_a_name_that_leads_home_is_never_called(server, sandbox):
    """It passes for a name, and means this machine when it is called."""
    with contextlib.closing(Receiver()) as receiver:
        port = receiver.server.server_port
        sandbox.write("/tmp/listen.py", LISTEN)
        post(sandbox, "python3 /tmp/listen.py tcp-0.0.0.0-7050", name="home", waitForPorts=[7050])
        answer = monitor(sandbox, "home", f"http://{socket.gethostname()}:{port}/")
        assert answer.status == 200, answer

        def given_up():
            log = server.request("GET", f"{sandbox.base}/logs")
            return receiver.got or "given up" in log.text or log.status != 200

        wait_until(given_up, 30, "its end")
        assert receiver.got == [] and receiver.refused == 0
        kill(sandbox, "home")
