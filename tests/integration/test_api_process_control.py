# SPDX-License-Identifier: Apache-2.0
"""Names, starting again, ports, and waits that somebody gives up."""

import json
import re
import socket
import threading
import urllib.parse

from cella_processes import LISTEN, get, kill, post
from cella_server import wait_until

def ports(sandbox, process):
    answer = sandbox.request("GET", f"/network/process/{process}/ports")
    assert answer.status == 200, answer
    return [(p["protocol"], p["localPort"], p["address"]) for p in answer.json()["ports"]]


# --- names ---


def test_names(shared_sandbox):
    one = post(shared_sandbox, "exec sleep 1000", name="web.1:a@b+c-d_e")
    assert one["name"] == "web.1:a@b+c-d_e"
    answer = shared_sandbox.request("POST", "/process", {"command": "true", "name": one["name"]})
    assert (answer.status, answer.error()) == (409, "ALREADY_EXISTS")
    by_name = get(shared_sandbox, urllib.parse.quote(one["name"]))
    assert by_name == get(shared_sandbox, one["pid"])
    kill(shared_sandbox, urllib.parse.quote(one["name"]))
    two = post(shared_sandbox, "true", name=one["name"], waitForCompletion=True)
    assert two["pid"] != one["pid"]
    assert get(shared_sandbox, urllib.parse.quote(one["name"]))["pid"] == two["pid"]
    made_up = post(shared_sandbox, "true", waitForCompletion=True)["name"]
    assert re.fullmatch(r"proc-[a-z0-9]{8}", made_up)


def test_thousands_of_short_commands_with_names(sandbox):
    """One name at a time, many times over, from several clients: each finds its own."""
    failures = []

    def run(worker):
        for i in range(250):
            name = f"w{worker}-{i % 10}"
            done = post(sandbox, f"echo {worker}-{i}", name=name, waitForCompletion=True)
            if (done["stdout"], done["name"]) != (f"{worker}-{i}\n", name):
                failures.append(done)

    workers = [threading.Thread(target=run, args=(n,)) for n in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not failures
    listed = sandbox.request("GET", "/process").json()
    assert len(listed) <= 256 + 8


# --- starting again ---


def test_started_again_until_it_succeeds(shared_sandbox):
    done = post(shared_sandbox,
                "echo x >> /tmp/tries; echo try; echo no >&2; [ $(wc -l < /tmp/tries) -ge 3 ]",
                restartOnFailure=True, waitForCompletion=True, timeout=60)
    assert (done["status"], done["exitCode"], done["restartCount"]) == ("completed", 0, 2)
    assert (done["restartOnFailure"], done["maxRestarts"]) == (True, -1)
    assert (done["stdout"], done["stderr"]) == ("try\n" * 3, "no\n" * 3)


def test_started_again_so_often_and_no_more(shared_sandbox):
    done = post(shared_sandbox, "exit 7", restartOnFailure=True, maxRestarts=2,
                waitForCompletion=True)
    assert (done["exitCode"], done["restartCount"], done["maxRestarts"]) == (7, 2, 2)
    done = post(shared_sandbox, "exit 7", restartOnFailure=True, maxRestarts=0,
                waitForCompletion=True)
    assert done["restartCount"] == 0
    done = post(shared_sandbox, "true", restartOnFailure=True, waitForCompletion=True)
    assert done["restartCount"] == 0


def test_started_again_after_a_kill_from_inside_and_with_its_children(sandbox):
    """It keeps its pid and name; what was left of it does not come back."""
    first = post(sandbox, "echo start; sleep 1000 & echo $! > /tmp/child; wait", name="phoenix",
                 restartOnFailure=True)
    child = wait_until(lambda: sandbox.exec("cat /tmp/child").stdout.strip(), 20, "its child")
    sandbox.run(f"rm /tmp/child; kill -9 $(awk '/PPid/ {{print $2}}' /proc/{child}/status)")
    again = wait_until(lambda: (p := get(sandbox, "phoenix"))["restartCount"] == 1 and p, 20,
                       "its second start")
    assert (again["pid"], again["status"]) == (first["pid"], "running")
    assert sandbox.exec(f"kill -0 {child}").exit_code != 0
    wait_until(lambda: sandbox.logs("phoenix")["stdout"] == "start\nstart\n", 20, "its log")
    answer = sandbox.request("DELETE", "/process/phoenix")
    assert (answer.status, answer.json()["pid"]) == (200, first["pid"])
    assert get(sandbox, "phoenix")["status"] in ("stopped", "killed")


def test_a_timeout_ends_it_between_two_starts(shared_sandbox):
    done = post(shared_sandbox, "exit 1", restartOnFailure=True, waitForCompletion=True, timeout=5)
    assert done["status"] == "timeout" and done["restartCount"] >= 2


def test_keep_alive_is_shown(shared_sandbox):
    assert post(shared_sandbox, "true", keepAlive=True, waitForCompletion=True)["keepAlive"] is True


# --- ports ---


def test_ports_of_a_process_and_its_children(sandbox):
    sandbox.write("/tmp/listen.py", LISTEN)
    web = post(sandbox, "setsid python3 /tmp/listen.py tcp-0.0.0.0-8080 tcp-127.0.0.1-9090 "
                        "tcp-::-8081 udp-0.0.0.0-5353; true", name="web",
               waitForPorts=[8080, 9090, 8081])
    assert web["status"] == "running"
    expected = [("tcp", 8080, "0.0.0.0"), ("tcp", 8081, "::"), ("tcp", 9090, "127.0.0.1"),
                ("udp", 5353, "0.0.0.0")]
    wait_until(lambda: ports(sandbox, "web") == expected, 20, lambda: ports(sandbox, "web"))
    other = post(sandbox, "exec sleep 1000")
    assert ports(sandbox, other["pid"]) == []
    # Another user's sockets are its own, too.
    sandbox.exec("useradd -m somebody")
    post(sandbox, "su somebody -c 'python3 /tmp/listen.py tcp-0.0.0.0-8082'", name="su",
         waitForPorts=[8082])
    assert ports(sandbox, "su") == [("tcp", 8082, "0.0.0.0")]
    kill(sandbox, "web")
    assert ports(sandbox, "web") == []
    answer = sandbox.request("GET", "/network/process/nobody/ports")
    assert (answer.status, answer.error()) == (404, "PROCESS_NOT_FOUND")


def test_waiting_for_ports_of_what_ends(shared_sandbox):
    done = post(shared_sandbox, "sleep 0.1; exit 3", waitForPorts=[4])
    assert (done["status"], done["exitCode"]) == ("failed", 3)
    done = post(shared_sandbox, "sleep 1000", waitForPorts=[4], timeout=1)
    assert done["status"] == "timeout"
    done = post(shared_sandbox, "echo out", waitForPorts=[4], waitForCompletion=True)
    assert done["stdout"] == "out\n"


# --- waits that are given up ---


def test_a_wait_that_is_given_up_leaves_nothing(server, sandbox):
    """Clients that go away while they wait: the agent keeps neither waiters nor memory for them."""
    post(sandbox, "exec sleep 1000", name="long")
    url = urllib.parse.urlsplit(server.url)
    body = json.dumps({"command": "cat", "stdin": True, "waitForCompletion": True}).encode()
    for i in range(30):
        with socket.create_connection((url.hostname, url.port)) as connection:
            connection.sendall((f"POST {sandbox.base}/process HTTP/1.1\r\nHost: x\r\n"
                                f"Authorization: Bearer {server.key}\r\n"
                                f"Content-Length: {len(body)}\r\n\r\n").encode() + body)
            wait_until(lambda i=i: len(cats(sandbox)) == i + 1, 20, "the command")
    # Everything is still there and answers; the commands go on without their clients.
    assert len(cats(sandbox)) == 30
    for process in cats(sandbox):
        assert sandbox.request("DELETE", f"/process/{process['pid']}/stdin").status == 200
    wait_until(lambda: not cats(sandbox), 20, "their end")
    assert sandbox.run("echo fine") == "fine"


def cats(sandbox):
    return [p for p in sandbox.request("GET", "/process").json()
            if p["command"] == "cat" and p["status"] == "running"]
