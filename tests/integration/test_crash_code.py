# SPDX-License-Identifier: Apache-2.0
"""kill -9 of the server's processes under code contexts: variables stay, runs go on."""

import json
import threading

import pytest

from cella_server import wait_until


def run(box, code, **fields):
    answer = box.request("POST", "/code", {"code": code, **fields}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


@pytest.mark.parametrize("which", [("cellad",), ("warden",), ("cellad", "warden")])
def test_variables_survive(server_factory, which):
    server = server_factory()
    box = server.create()
    made = box.request("POST", "/code/contexts", {"workingDir": "/tmp"}, timeout=60).json()
    run(box, "x = 'default'")
    run(box, "y = 'own'", context=made["id"])
    before = server.pids()
    server.kill(*which)
    server.wait_recovered(before, *which)
    assert run(box, "x")["text"] == "'default'"
    assert run(box, "y", context=made["id"])["text"] == "'own'"
    assert sorted(c["id"] for c in box.request("GET", "/code/contexts").json()["contexts"]) == \
        sorted(["default-python", made["id"]])


def test_a_run_goes_on_and_can_be_followed(server_factory):
    server = server_factory()
    box = server.create()
    run(box, "1")

    def lose():
        try:
            run(box, "print('begins', flush=True)\nopen('/tmp/began', 'w')\nimport os, time\n"
                     "while not os.path.exists('/tmp/go'): time.sleep(0.01)\nprint('ends')\nz = 5\nz")
        except OSError:
            pass  # the connection is cut: that is what this is about

    thread = threading.Thread(target=lose)
    thread.start()
    wait_until(lambda: box.exec("test -e /tmp/began").exit_code == 0, 60, "the run")
    before = server.pids()
    server.kill("cellad")
    server.wait_recovered(before, "cellad")
    thread.join(60)
    box.exec("touch /tmp/go")
    followed = box.request("GET", "/code/contexts/default-python/run", timeout=60).json()
    assert followed["stdout"] == "begins\nends\n" and followed["text"] == "5" and followed["executionCount"] == 2
    assert run(box, "z")["text"] == "5"
    again = box.request("GET", "/code/contexts/default-python/run", timeout=60).json()
    assert again["text"] == "5" and again["executionCount"] == 3


def test_a_run_that_stands_still_holds_no_end_up(server_factory):
    """Nobody listens to it any more, and it cannot be interrupted: the server ends all the same."""
    server = server_factory()
    box = server.create()
    connection = server.connection()
    connection.request("POST", box.base + "/code", json.dumps({"code": "open('/tmp/began', 'w')\nwhile True: pass"}),
                       {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"})
    wait_until(lambda: box.exec("test -e /tmp/began").exit_code == 0, 60, "the run")
    assert box.request("PUT", "/pause").status == 202
    box.wait_status("paused")
    connection.close()
    server.stop()


@pytest.mark.parametrize("language,code,text", [
    ("python", "import os\nprint(os.getcwd(), os.environ['WHO'], os.environ['EMPTY'])", "/tmp it's me \n"),
    ("bash", "echo \"$PWD $WHO $EMPTY\"", "/tmp it's me \n"),
])
def test_a_context_is_what_it_was_made_as(server_factory, language, code, text):
    """Its interpreter dies: between two runs, and after the server that has made it."""
    server = server_factory()
    box = server.create()
    body = {"language": language, "workingDir": "/tmp", "env": {"WHO": "it's me", "EMPTY": ""}}
    made = box.request("POST", "/code/contexts", body, timeout=60).json()
    assert run(box, code, context=made["id"])["stdout"] == text
    box.exec(f"kill -9 {made['pid']}")
    wait_until(lambda: box.exec(f"test -e /proc/{made['pid']}").exit_code != 0, 60, "its end")
    assert run(box, code, context=made["id"])["stdout"] == text
    before = server.pids()
    server.kill("cellad")
    server.wait_recovered(before, "cellad")
    again = box.request("POST", f"/code/contexts/{made['id']}/restart", timeout=60).json()
    assert again["language"] == language and again["workingDir"] == "/tmp"
    assert run(box, code, context=made["id"])["stdout"] == text
