# SPDX-License-Identifier: Apache-2.0
"""cellad is killed while the warden is busy. What it has asked for, and the warden has not read yet, is not carried
out any more once the next cellad has looked what runs. CELLA_TEST_FENCING_ROUNDS asks for more than a few rounds."""

import contextlib
import http.client
import os
import signal
import subprocess
import threading

import pytest

from cella_server import wait_until

ROUNDS = int(os.environ.get("CELLA_TEST_FENCING_ROUNDS", "2"))
CREATES, KEPT = 60, 4
# Rules on addresses make the requests large, so that they fill the socket to the warden.
NETWORK = {"mode": "allowlist", "allow": [f"45.{number // 250}.{number % 250}.7:443" for number in range(240)]}


@contextlib.contextmanager
def standing_still(pid):
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def create_and_delete(server, name):
    """As far as it goes: the server is killed meanwhile."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        server.request("POST", "/v0/sandbox", {"metadata": {"name": name}, "spec": {"network": NETWORK}}, timeout=20)
        server.request("DELETE", f"/v0/sandbox/{name}", timeout=20)


def create(server, name, promised):
    with contextlib.suppress(OSError, http.client.HTTPException):
        if server.request("POST", "/v0/sandbox", {"metadata": {"name": name}}, timeout=20).status == 202:
            promised.append(name)


def in_parallel(work):
    threads = [threading.Thread(target=call, args=args) for call, *args in work]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def queue_at_the_warden(warden):
    """How many connections it has not accepted yet."""
    listener = os.readlink(f"/proc/{warden}/fd/3").removeprefix("socket:[").removesuffix("]")
    lines = subprocess.run(["ss", "-xlH"], capture_output=True, text=True, check=True).stdout.splitlines()
    return next(int(line.split()[2]) for line in lines if listener in line.split())


def what_runs(server):
    """Ids of the sandboxes that have processes."""
    tree = next(path for path in server._cgroups() if (path / "cgroup.procs").exists())
    return {path.name for path in tree.iterdir() if path.is_dir()}


@pytest.mark.timeout(120 + 20 * ROUNDS)
def test_late_starts(server_factory):
    server = server_factory()
    server.create("before").delete()
    nothing = what_runs(server)
    for number in range(ROUNDS):
        before = server.pids()
        with standing_still(before.warden):
            promised = []
            in_parallel([(create, server, f"kept-{number}-{n}", promised) for n in range(KEPT)]
                        + [(create_and_delete, server, f"late-{number}-{n}") for n in range(CREATES)])
            server.kill("cellad")
            wait_until(lambda: server.pids().cellad != before.cellad, 30, "a new cellad")
            wait_until(lambda: queue_at_the_warden(before.warden) > 0, 30, "it asks for the warden")
        server.wait_healthy()
        for name in promised:
            box = server.sandbox(name).wait_status("running")
            assert box.run("echo there") == "there"
            box.delete()
        for item in server.list():  # what nobody got to delete before the kill
            server.request("DELETE", f"/v0/sandbox/{item['metadata']['id']}")
        wait_until(lambda: server.list() == [], 30, lambda: server.list())
        wait_until(lambda: what_runs(server) == nothing, 5, lambda: f"round {number}: {what_runs(server)}\n{server.log()}")
        assert server.leaks() == "", f"round {number}"
        print(f"round {number + 1} of {ROUNDS}")
    assert "nobody knows" not in server.log_path.read_text(), "found by chance, later"
