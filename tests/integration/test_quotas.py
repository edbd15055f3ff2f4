# SPDX-License-Identifier: Apache-2.0
"""Quotas of a workspace: one table of kinds, told by the API, the command line and the docs, and
held against whatever asks for more."""

import concurrent.futures
import contextlib
import os
import pathlib
import re
import signal
import threading

import pytest
import yaml

from cella_auth import Workspace, fresh
from cella_server import wait_until

ROOT = pathlib.Path(__file__).resolve().parents[2]
SMALL = {"cpu": "100m", "memory": "64Mi", "disk": "64Mi", "pids": 32}
MIB = 1 << 20

# kind: (quota that two small sandboxes fill, member of resources, a larger value of it, use of one)
PROMISED = {
    "cpu": ("200m", "cpu", "150m", 0.1),
    "memory": ("128Mi", "memory", "65Mi", 64 * MIB),
    "disk": ("128Mi", "disk", "65Mi", 64 * MIB),
    "processes": ("64", "pids", 33, 32),
}


@pytest.fixture
def space(server):
    made = Workspace(server)
    yield made
    made.delete()


def limit(space, quota):
    answer = space.server.request("PUT", f"/v0/workspaces/{space.name}/limits", {"quota": quota})
    assert answer.status == 200, answer


def quotas(space):
    answer = space.server.request("GET", f"/v0/workspaces/{space.name}")
    assert answer.status == 200, answer
    return {row["name"]: row for row in answer.json()["quotas"]}


def ask(space, method, path, body=None):
    return space.server.request(method, path, body, {"X-Cella-Workspace": space.name})


def create(space, name, **spec):
    return ask(space, "POST", "/v0/sandbox", {"metadata": {"name": name}, "spec": {"resources": SMALL, **spec}})


def refused(answer, kind, space):
    assert answer.status == 429 and answer.error() == "LIMIT_EXCEEDED", answer
    message = answer.json()["error"]["message"]
    for part in (f'quota "{kind}"', space.name, "the limit is", "in use", "asked for"):
        assert part in message, message
    return message


def test_every_kind_is_told_everywhere(server, space):
    kinds = list(quotas(space))
    spec = yaml.safe_load((ROOT / "api/openapi.yaml").read_text())
    assert kinds == spec["components"]["schemas"]["Quota"]["properties"]["name"]["enum"]
    documented = re.findall(r"^\| `([a-z-]+)` \|.*\| (\S+) \|$",
                            (ROOT / "docs/operations.md").read_text().split("## Quotas of a workspace")[1].split("\n## ")[0], re.M)
    assert [name for name, _ in documented] == kinds
    for verb in ("server", "workspace limits"):
        told = " ".join(server.cli(*verb.split(), "--help").stdout.split())
        for name, value in documented:
            assert f"{name}={value}" in told, (name, told)
    shown = server.cli("workspace", "get", space.name)
    assert shown.returncode == 0, shown
    assert [line.split()[0] for line in shown.stdout.splitlines()[1:]] == kinds


def test_what_is_no_quota_is_refused(space):
    for quota in ("memory=0", "memory=lots", "cpu=1m", "ram=1Gi", "processes=-1", "audit=1"):
        answer = space.server.request("PUT", f"/v0/workspaces/{space.name}/limits", {"quota": quota})
        assert answer.status == 400 and answer.error() == "INVALID_ARGUMENT", answer
    assert "memory" in answer.json()["error"]["message"] or "audit" in answer.json()["error"]["message"]


@pytest.mark.parametrize("kind", PROMISED)
def test_what_is_promised_stays_in_its_quota(server, space, kind):
    quota, member, larger, one = PROMISED[kind]
    assert quotas(space)[kind]["used"] == 0 and quotas(space)[kind]["source"] == "server"
    limit(space, f"{kind}={quota}")
    assert create(space, "a").status == 202
    row = quotas(space)[kind]
    assert row["used"] == one and row["limit"] == 2 * one and row["source"] == "workspace", row
    # A group gets all its sandboxes or none.
    answer = ask(space, "POST", "/v0/groups", {"name": "g", "count": 2, "spec": {"resources": SMALL}})
    refused(answer, kind, space)
    assert create(space, "b").status == 202
    refused(create(space, "c"), kind, space)
    refused(ask(space, "POST", "/v0/sandbox/a/clone", {"name": "c"}), kind, space)
    refused(ask(space, "PATCH", "/v0/sandbox/a", {"spec": {"resources": {member: larger}}}), kind, space)
    assert quotas(space)[kind]["used"] == 2 * one
    # What is stopped keeps its disk alone, and another may have the rest.
    wait_until(lambda: ask(space, "GET", "/v0/sandbox/a").json()["status"] == "running", 30, "a")
    assert ask(space, "PUT", "/v0/sandbox/a/stop").status == 202
    wait_until(lambda: ask(space, "GET", "/v0/sandbox/a").json()["status"] == "stopped", 30, "a stopped")
    if kind == "disk":
        assert quotas(space)[kind]["used"] == 2 * one
        return
    assert create(space, "c").status == 202
    refused(ask(space, "PUT", "/v0/sandbox/a/start"), kind, space)
    # Other workspaces are not concerned.
    other = Workspace(server)
    assert create(other, "d").status == 202
    other.delete()


def test_a_lower_quota_takes_nothing_away(space):
    for name in ("a", "b"):
        assert create(space, name, enabled=False).status == 202
    limit(space, "disk=64Mi")
    assert quotas(space)["disk"]["used"] == 128 * MIB
    message = refused(create(space, "c", enabled=False), "disk", space)
    assert "64 MiB" in message and "128 MiB" in message, message
    # A change that asks for no more of it goes through.
    assert ask(space, "PATCH", "/v0/sandbox/a", {"spec": {"resources": {"memory": "96Mi"}}}).status == 200
    assert ask(space, "PATCH", "/v0/sandbox/a", {"spec": {"resources": {"disk": "48Mi"}}}).status == 200
    assert quotas(space)["disk"]["used"] == 112 * MIB


def test_use_is_counted_again_after_a_crash(server_factory):
    own_server = server_factory()
    space = Workspace(own_server)
    assert create(space, "a").status == 202 and create(space, "b", enabled=False).status == 202
    limit(space, "memory=64Mi")
    before = quotas(space)
    before_pids = own_server.pids()
    own_server.kill("cellad")
    own_server.wait_recovered(before_pids, "cellad")
    assert quotas(space) == before
    refused(ask(space, "PUT", "/v0/sandbox/b/start"), "memory", space)


def test_a_sandbox_is_never_promised_more_than_the_machine(server, space):
    """The tests' servers promise a thousand times what there is."""
    total = server.request("GET", "/v0/machine").json()["resources"]
    for member, amount in (("cpu", total["cpu"]["total"] + 1), ("memory", int(total["memory"]["total"]) + MIB),
                           ("disk", 4 * int(total["disk"]["total"]))):
        answer = create(space, fresh("big"), resources={**SMALL, member: amount}, enabled=False)
        assert answer.status == 409 and answer.error() == "INSUFFICIENT_RESOURCES", answer
        assert "the machine has" in answer.json()["error"]["message"]
    assert create(space, "small").status == 202
    answer = ask(space, "PATCH", "/v0/sandbox/small", {"spec": {"resources": {"memory": int(total["memory"]["total"]) + MIB}}})
    assert answer.status == 409 and answer.error() == "INSUFFICIENT_RESOURCES", answer


# ---- histories ----


def run(space, name, command):
    answer = ask(space, "POST", f"/v0/sandbox/{name}/process", {"command": command, "waitForCompletion": True, "timeout": 60})
    assert answer.status == 200 and answer.json()["exitCode"] == 0, answer
    return answer.json()["executionId"]


def gits_of(server, sandbox_id):
    """The git processes at work on a sandbox's history."""
    found = []
    for proc in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            if (proc / "comm").read_text() == "git\n" and os.readlink(proc / "cwd").startswith(f"{server.data}/history/{sandbox_id}/"):
                found.append(int(proc.name))
    return found


def test_slow_diffs_of_one_workspace_are_its_own_trouble(server_factory):
    """Diffs that never end take the workspace's slots, then its queue; others are not kept waiting."""
    server = server_factory()
    slow, quick = Workspace(server), Workspace(server)
    ids = {}
    for space in (slow, quick):
        assert create(space, "box", resources={**SMALL, "memory": "128Mi", "disk": "256Mi", "cpu": "1"}).status == 202
        ids[space.name] = (run(space, "box", "seq 1 300000 | shuf > /workspace/a"), run(space, "box", "seq 1 300000 | shuf > /workspace/a"))
    quick_ids = (run(quick, "box", "echo 1 > /workspace/b"), run(quick, "box", "echo 2 > /workspace/b"))
    box_id = ask(slow, "GET", "/v0/sandbox/box").json()["metadata"]["id"]

    def diff(space, pair, timeout=120):
        return server.request("POST", "/v0/sandbox/box/diff", {"fromExecId": pair[0], "toExecId": pair[1]},
                              {"X-Cella-Workspace": space.name}, timeout=timeout)

    stopped, answers, over = set(), [], threading.Event()

    def keep_stopping():
        while not over.wait(0.005):
            for pid in set(gits_of(server, box_id)) - stopped:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGSTOP)
                    stopped.add(pid)

    stopper = threading.Thread(target=keep_stopping)
    stopper.start()
    try:
        with concurrent.futures.ThreadPoolExecutor(40) as crowd:
            asked = [crowd.submit(lambda: answers.append(diff(slow, ids[slow.name]))) for _ in range(40)]
            try:
                # All have come: the queue is full (or, without quotas, all slots of the server are taken).
                wait_until(lambda: answers or len(stopped) >= 4, 60, "the slow ones")
                made = diff(quick, quick_ids, timeout=20)
                assert made.status == 200 and "-1\n+2" in made.json()["diff"]["b"], made
                assert ask(quick, "GET", "/v0/sandbox/box/history").status == 200
                assert ask(slow, "GET", "/v0/sandbox/box").status == 200
                refusal = answers[0]
                assert refusal.status == 429 and refusal.error() == "LIMIT_EXCEEDED", refusal
                assert refusal.headers["Retry-After"] == "1" and slow.name in refusal.text, refusal
            finally:
                over.set()
                stopper.join()
                server.kill("cellad", sig=signal.SIGKILL)
            concurrent.futures.wait(asked)
    finally:
        over.set()
        for pid in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def history_bytes(server, sandbox_id):
    return sum(path.stat().st_size for path in (server.data / "history" / sandbox_id).rglob("*") if path.is_file())


def churn(space, name, mib, times):
    """New content each time, which nothing compresses."""
    for _ in range(times):
        run(space, name, f"head -c {mib}M /dev/urandom > /workspace/churn")


def make_box(space, disk):
    answer = create(space, "box", resources={**SMALL, "memory": "256Mi", "disk": disk, "cpu": "1"}, history={"maxFileSize": "64Mi"})
    assert answer.status == 202, answer
    run(space, "box", "true")
    return ask(space, "GET", "/v0/sandbox/box").json()["metadata"]["id"]


def test_history_counts_towards_the_disk(server, space):
    """Content that is written again and again does not pile up outside of the sandbox's disk limit."""
    box = make_box(space, "64Mi")
    churn(space, "box", 12, 8)
    assert ask(space, "GET", "/v0/sandbox/box/history").status in (200, 507)

    def kept():
        return history_bytes(server, box) + 12 * MIB <= 65 * MIB
    # Packing, which makes a copy while it lasts, goes on beside.
    wait_until(kept, 60, lambda: f"{history_bytes(server, box)} bytes of history")
    used = quotas(space)["history"]["used"]
    assert 0 < used <= 53 * MIB, used
    # It goes on: what is written next is in the history.
    last = run(space, "box", "echo small > /workspace/small; rm -f /workspace/churn")
    wait_until(lambda: ask(space, "GET", "/v0/sandbox/box/history").json().get("history", [{}])[0].get("id") == last, 60, "the last commit")


def test_histories_have_a_quota_of_their_workspace(server, space):
    limit(space, "history=2Mi")
    box = make_box(space, "128Mi")
    first = run(space, "box", "echo 1 > /workspace/a")
    churn(space, "box", 6, 2)
    assert history_bytes(server, box) <= 3 * MIB
    row = quotas(space)["history"]
    assert row["limit"] == 2 * MIB and 0 < row["used"] <= 2 * MIB, row
    answer = ask(space, "POST", "/v0/sandbox/box/rollback", {"executionId": first})
    assert answer.status == 507 and answer.error() == "QUOTA_EXCEEDED", answer
    # It is no other workspace's trouble, and a larger quota lets it go on.
    limit(space, "history=64Mi")
    assert ask(space, "POST", "/v0/sandbox/box/rollback", {"executionId": first}).status == 200
    assert run(space, "box", "cat /workspace/a")
    ask(space, "DELETE", "/v0/sandbox/box")
    wait_until(lambda: quotas(space)["history"]["used"] == 0, 30, "it is given back")


def test_git_runs_in_a_control_group_of_its_workspace(server):
    """Not in the server's own, where a workspace's diffs would use up what everybody needs."""
    spaces = [Workspace(server), Workspace(server)]
    groups = []
    for space in spaces:
        box = make_box(space, "256Mi")
        pair = [run(space, "box", "seq 1 300000 | shuf > /workspace/a") for _ in range(2)]
        with concurrent.futures.ThreadPoolExecutor(1) as asker:
            asked = asker.submit(ask, space, "POST", "/v0/sandbox/box/diff", {"fromExecId": pair[0], "toExecId": pair[1]})

            def group():
                if asked.done():  # too quick to be seen: once more
                    return asked.result() and "missed"
                for pid in gits_of(server, box):
                    with contextlib.suppress(OSError):
                        found = re.findall(r"/cella-[a-z0-9]+/(git-\d+)", pathlib.Path(f"/proc/{pid}/cgroup").read_text())
                        if found:
                            return found[0]
                return None
            groups.append(wait_until(group, 30, "a git in a group"))
            assert asked.result().status == 200
    assert all(group.startswith("git-") for group in groups) and len(set(groups)) == 2, groups
    for space in spaces:
        space.delete()
