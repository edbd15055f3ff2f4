# SPDX-License-Identifier: Apache-2.0
"""SIGTERM: /ready says no at once, what is under way ends, and then the server does; sandboxes as it was told."""

import signal
import threading

import pytest

from cella_exec import ExecSocket
from cella_server import PATIENCE, Server, wait_until


@pytest.fixture
def made(request):
    def make(*args):
        server = Server(*args)
        request.addfinalizer(lambda: close(server, args))
        return server
    return make


def close(server, args):
    """An ordinary server cleans up after one that was told how to end."""
    server.process.kill()
    server.process.wait()
    server.args = [arg for arg in server.args if arg not in args]
    server.close()


def start_slow(server, box):
    """A request that ends when the file /tmp/go is there; [its answer] once there is one."""
    answers = []

    def ask():
        answers.append(server.request("POST", f"/v0/sandbox/{box.name}/process", {
            "command": "touch /tmp/begun; while [ ! -e /tmp/go ]; do sleep 0.05; done; echo whole",
            "waitForCompletion": True}, timeout=60 * PATIENCE))

    thread = threading.Thread(target=ask)
    thread.start()
    wait_until(lambda: box.exec("test -e /tmp/begun").exit_code == 0, 30, "the slow command")
    return thread, answers


def test_what_is_under_way_ends_and_ready_says_no(made):
    server = made("--drain-delay", "60s", "--drain-timeout", "60s")
    box = server.create()
    assert server.request("GET", "/ready").status == 200
    thread, answers = start_slow(server, box)
    server.process.send_signal(signal.SIGTERM)
    wait_until(lambda: server.request("GET", "/ready").status == 503, 30, "/ready says no")
    said = server.request("GET", "/ready")
    assert "drain" in said.text, said
    assert server.request("GET", "/health").status == 200
    assert box.exec("touch /tmp/go").exit_code == 0  # still served: the delay is for load balancers
    thread.join(60 * PATIENCE)
    assert answers and answers[0].status in (200, 201), answers
    assert "whole" in answers[0].text
    server.process.send_signal(signal.SIGTERM)  # a second one ends the waiting
    assert server.process.wait(60 * PATIENCE) == 0


def test_a_websocket_is_told_that_the_server_goes(made):
    server = made("--drain-timeout", "1s")
    box = server.create()
    socket = ExecSocket(server, box.name)
    socket.start("a", "echo on; sleep 1000")
    socket.await_("a", "stdout")
    server.process.send_signal(signal.SIGTERM)
    while socket.take() is not None:
        pass
    assert socket.ws.close_code == 1001
    assert server.process.wait(60 * PATIENCE) == 0


def test_sandboxes_can_be_kept(made):
    server = made("--keep-sandboxes")
    box = server.create()
    pid = box.exec("sleep 1000 & echo $!").stdout.strip()
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(60 * PATIENCE) == 0
    server.start()
    wait_until(lambda: box.status() == "running", 30, "it is running")
    assert box.exec(f"kill -0 {pid}").exit_code == 0
