# SPDX-License-Identifier: Apache-2.0
"""kill -9 while groups are made, resized and ended: a group is there with all its sandboxes or not at all, new
limits are those of all or of none, and an end that was acknowledged is finished by whoever comes next."""

import contextlib
import http.client
import json
import os
import pathlib
import sqlite3
import threading

import pytest

from cella_server import process_alive, wait_until
from clones import frozen_warden

SPEC = {"resources": {"cpu": "50m", "memory": "64Mi", "disk": "64Mi"}}


def make(server, name, count, **spec):
    answer = server.request("POST", "/v0/groups", {"name": name, "count": count, "spec": {**SPEC, **spec}})
    assert answer.status == 202, answer
    return answer.json()


def status_of(server, name):
    answer = server.request("GET", f"/v0/groups/{name}")
    return "gone" if answer.status == 404 else answer.json()["status"]


def wait_for(server, name, status):
    wait_until(lambda: status_of(server, name) == status, 60,
               lambda: f"{name} {status}: {server.request('GET', f'/v0/groups/{name}')}")


def crash(server, *which):
    before = server.kill(*which)
    if "supervisor" in which:
        for pid in before:
            wait_until(lambda: not process_alive(pid), 30, f"{before} gone")
        server.start()
    else:
        server.wait_recovered(before, *which)


def nothing_left(server):
    assert server.request("GET", "/v0/sandbox").json()["total"] == 0
    assert server.request("GET", "/v0/groups").json()["total"] == 0
    wait_until(lambda: server.leaks() == "", 30, server.leaks)


def written_commands(path):
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as db:
        return db.execute("SELECT sum(commands) FROM tally").fetchone()[0]


def test_groups_survive(server_factory):
    server = server_factory("--metrics-interval", "1")
    made = make(server, "team", 2, env_vars={"A": "1"})
    wait_for(server, "team", "running")
    for _ in range(2):
        assert server.request("POST", "/v0/groups/team/sandbox/sandbox-1/process",
                              {"command": "true", "waitForCompletion": True}).status == 200
    path = server.data / "db" / "cella.db"
    wait_until(lambda: written_commands(path) == 2, 60, "the tally on disk")
    crash(server, "supervisor", "warden", "cellad")
    told = server.request("GET", "/v0/groups/team/stats").json()
    assert told["total"]["history"]["commands"] == 2
    assert [box["history"]["starts"] for box in told["sandboxes"]] == [1, 1]
    again = server.request("GET", "/v0/groups/team").json()
    assert again["metadata"] == made["metadata"] and again["spec"] == made["spec"]
    assert [box["id"] for box in again["sandboxes"]] == [box["id"] for box in made["sandboxes"]]
    done = server.request("POST", "/v0/groups/team/sandbox/sandbox-2/process",
                          {"command": "hostname; echo $A", "waitForCompletion": True})
    assert done.json()["stdout"] == "sandbox-2\n1\n", done
    added = server.request("POST", "/v0/groups/team/sandbox", {"metadata": {"name": "later"}}).json()
    assert added["spec"]["env_vars"] == {"A": "1"}
    server.request("POST", "/v0/groups/team/end")
    wait_for(server, "team", "gone")
    nothing_left(server)


@pytest.mark.parametrize("which", [("cellad",), ("cellad", "warden"), ("supervisor", "warden", "cellad")],
                         ids="+".join)
def test_end_is_finished(server_factory, which):
    server = server_factory()
    make(server, "team", 8)
    wait_for(server, "team", "running")
    assert server.request("POST", "/v0/groups/team/end").status == 202
    crash(server, *which)
    wait_for(server, "team", "gone")
    nothing_left(server)
    make(server, "team", 1, enabled=False)
    server.request("DELETE", "/v0/groups/team")
    wait_for(server, "team", "gone")


def _ask(server, name, answers):
    with contextlib.suppress(OSError, http.client.HTTPException):
        answers.append(server.request("POST", "/v0/groups", {"name": name, "count": 20, "spec": SPEC}).status)


def test_made_as_a_whole_or_not_at_all(server_factory):
    """Killed at a moment that nobody chose, several times over."""
    server = server_factory()
    for number in range(4):
        name, answers = f"team-{number}", []
        asking = threading.Thread(target=_ask, args=(server, name, answers))
        before = server.pids()
        asking.start()
        if number % 2:
            wait_until(lambda: answers or server.request("GET", "/v0/sandbox").json()["total"], 30, "a beginning")
        server.kill("cellad")
        asking.join()
        server.wait_recovered(before, "cellad")
        found = server.request("GET", f"/v0/groups/{name}")
        assert found.status == 200 or not answers
        if found.status == 200:
            assert found.json()["count"] == 20
            wait_for(server, name, "running")
            server.request("DELETE", f"/v0/groups/{name}")
            wait_for(server, name, "gone")
        nothing_left(server)


def limits_of(server, name):
    """{memory as it is on record: {memory as the kernel has it}}"""
    found = {}
    for box in server.request("GET", f"/v0/groups/{name}/sandbox?limit=1000").json()["sandboxes"]:
        group = f"cella-{server.instance}/{box['metadata']['id']}"
        for path in (f"memory/{group}/memory.limit_in_bytes", f"{group}/memory.max"):
            if os.path.exists(f"/sys/fs/cgroup/{path}"):
                kernel = int(pathlib.Path(f"/sys/fs/cgroup/{path}").read_text())
                found.setdefault(box["spec"]["resources"]["memory"], set()).add(kernel)
    return found


def resized_so_far(server, before):
    """Whether one of the group's sandboxes has other limits than before already, by the kernel's word."""
    return {kernel for kernels in limits_of(server, "team").values() for kernel in kernels} != before


@pytest.mark.parametrize("which", [("cellad",), ("warden",), ("supervisor", "warden", "cellad")], ids="+".join)
def test_resized_as_a_whole_or_not_at_all(server_factory, which):
    server = server_factory()
    make(server, "team", 12)
    wait_for(server, "team", "running")
    sizes = {"64Mi": 64 << 20, "96Mi": 96 << 20}
    for wanted in ("96Mi", "64Mi"):
        answers = []

        def ask(wanted=wanted, answers=answers):
            with contextlib.suppress(OSError, http.client.HTTPException):
                answers.append(server.request("POST", "/v0/groups/team/resize", {"memory": wanted}, timeout=100))

        before = {kernel for kernels in limits_of(server, "team").values() for kernel in kernels}
        asking = threading.Thread(target=ask)
        asking.start()
        wait_until(lambda: answers or resized_so_far(server, before), 30, "a beginning")
        crash(server, *which)
        asking.join()
        wait_for(server, "team", "running")

        def settled():
            found = limits_of(server, "team")
            return len(found) == 1 and all(kernels == {sizes[text]} for text, kernels in found.items())
        wait_until(settled, 60, lambda: f"limits that agree: {limits_of(server, 'team')}\n{server.log()}")
        if answers and answers[0].status == 200:
            assert list(limits_of(server, "team")) == [wanted]
    server.request("DELETE", "/v0/groups/team")
    wait_for(server, "team", "gone")
    nothing_left(server)


def test_a_caller_who_leaves_does_not_halve_a_resize(server_factory):
    server = server_factory()
    make(server, "team", 12)
    wait_for(server, "team", "running")
    connection = server.connection()
    connection.request("POST", "/v0/groups/team/resize", json.dumps({"memory": "96Mi"}),
                       {"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"})
    wait_until(lambda: resized_so_far(server, {64 << 20}), 30, "a beginning")
    connection.close()
    wait_until(lambda: limits_of(server, "team") == {"96Mi": {96 << 20}}, 60,
               lambda: f"the rest of it: {limits_of(server, 'team')}")
    server.request("DELETE", "/v0/groups/team")
    wait_for(server, "team", "gone")
    nothing_left(server)


def test_a_sandbox_that_is_deleted_when_its_group_ends(server_factory):
    """Its deletion was under way before the group's end and the crash, and is finished after them."""
    server = server_factory()
    make(server, "team", 2)
    wait_for(server, "team", "running")
    with frozen_warden(server):
        assert server.request("DELETE", "/v0/groups/team/sandbox/sandbox-1").status == 202
        assert server.request("DELETE", "/v0/groups/team").status == 202
        before = server.kill("cellad")
    server.wait_recovered(before, "cellad")
    wait_for(server, "team", "gone")
    nothing_left(server)
