# SPDX-License-Identifier: Apache-2.0
"""Network policies and the death of those who enforce them: what was acknowledged holds afterwards,
also when it was changed while somebody was away. And sandboxes with a network from a pool."""

import os
import signal
from pathlib import Path

import pytest

from cella_server import process_alive, wait_until


@pytest.fixture
def server(server_factory):
    made = server_factory()
    answer = made.request("POST", "/v0/sandbox", {"spec": {"enabled": False, "network": {"mode": "isolated"}}})
    if answer.status == 503 and answer.error() == "NETWORK_UNAVAILABLE":
        pytest.skip(answer.text)
    return made


def egress_pid(server):
    for status in Path("/proc").glob("[0-9]*/status"):
        try:
            lines = dict(line.split(":\t", 1) for line in status.read_text().splitlines() if ":\t" in line)
        except OSError:
            continue
        if int(lines["PPid"]) == server.pids().supervisor and lines["Name"].strip() == "cella-egress":
            return int(status.parent.name)
    return None


def refused(box, name):
    """Asks for a name inside; whether the log has it as refused by the allow list."""
    box.run(f"getent ahostsv4 {name} || true")
    answer = box.request("GET", "/network/log?refused=true")
    return answer.status == 200 and any(entry.get("name") == name and entry["verdict"] == "REFUSED_UNLISTED"
                                        for entry in answer.json()["entries"])


def test_policies_outlive_everybody(server):
    box = server.create(network={"mode": "allowlist", "allow": ["a.example"]})
    wait_until(lambda: refused(box, "first.example"), 60, "a refusal")
    for who in ("cellad", "warden"):
        before = server.kill(who)
        server.wait_recovered(before, who)
        wait_until(lambda: refused(box, f"after-{who}.example"), 60, f"a refusal after {who} was killed")
    old = wait_until(lambda: egress_pid(server), 30, "the egress process")
    os.kill(old, signal.SIGKILL)
    wait_until(lambda: not process_alive(old), 30, "the egress process gone")
    # While nobody is there: acknowledged only once it holds.
    answer = box.request("PUT", "/network", {"mode": "allowlist", "allow": ["b.example"]}, timeout=120)
    assert answer.status == 200, answer
    wait_until(lambda: refused(box, "a.example"), 60, "the name that was allowed, refused")
    box.delete()
    assert server.leaks() == ""


def test_a_network_from_a_pool(server):
    made = server.request("POST", "/v0/pools", {"name": "net", "size": 1, "network": True})
    assert made.status == 201 and made.json()["network"] is True, made

    def pool():
        return server.request("GET", "/v0/pools/net").json()["status"]

    wait_until(lambda: pool()["ready"] == 1, 60, lambda: f"a spare: {pool()}")
    box = server.create(network={"mode": "allowlist", "allow": ["a.example"]})
    assert pool()["claimed"] == 1
    assert "eth0:" in box.run("cat /proc/net/dev")
    wait_until(lambda: refused(box, "other.example"), 60, "its own policy")
    plain = server.create()
    assert pool()["claimed"] == 1 and "eth0:" not in plain.run("cat /proc/net/dev")
