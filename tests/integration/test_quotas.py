# SPDX-License-Identifier: Apache-2.0
"""Quotas of a workspace: one table of kinds, told by the API, the command line and the docs, and
held against whatever asks for more."""

import pathlib
import re

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
                           ("disk", int(total["disk"]["total"]) + MIB)):
        answer = create(space, fresh("big"), resources={**SMALL, member: amount}, enabled=False)
        assert answer.status == 409 and answer.error() == "INSUFFICIENT_RESOURCES", answer
        assert "the machine has" in answer.json()["error"]["message"]
    assert create(space, "small").status == 202
    answer = ask(space, "PATCH", "/v0/sandbox/small", {"spec": {"resources": {"memory": int(total["memory"]["total"]) + MIB}}})
    assert answer.status == 409 and answer.error() == "INSUFFICIENT_RESOURCES", answer
