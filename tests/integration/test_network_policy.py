# SPDX-License-Identifier: Apache-2.0
"""What a sandbox may reach, as the API and the command line have it: what can be said, what is
refused, what is shown, and that it stays. What comes of it in packets is tested in the world."""

import json
from contextlib import contextmanager

import pytest

from cella_auth import Workspace, call, fresh
from cella_server import wait_until


@contextmanager
def made(server, **spec):
    sandbox = server.create(wait=False, enabled=False, **spec)
    try:
        yield sandbox
    finally:
        sandbox.delete()


@pytest.fixture(scope="module")
def networks(server):
    """Skips where sandboxes have no network, and says why."""
    answer = server.request("POST", "/v0/sandbox", {"spec": {"enabled": False,
                                                             "network": {"mode": "isolated"}}})
    if answer.status == 503 and answer.error() == "NETWORK_UNAVAILABLE":
        pytest.skip(answer.text)
    assert answer.status == 202, answer
    server.sandbox(answer.json()["metadata"]["name"]).delete()


def network_of(sandbox):
    answer = sandbox.request("GET", "/network")
    assert answer.status == 200, answer
    shown = answer.json()
    assert answer.headers["ETag"] == f'"{shown.pop("revision")}"'
    if shown["mode"] != "none":
        assert shown.pop("name") == f"sandbox_network_{sandbox.get()['metadata']['id']}"
    assert sandbox.get()["spec"]["network"] == shown
    return shown


def refuse(answer, status, code, word):
    assert (answer.status, answer.error()) == (status, code) and word in answer.text, answer


# --- what is refused ---

BAD_RULES = [("", "empty"), ("*x.example", "a star"), ("http://a.example/", "not a URL"),
             ("a.example:0", "port"), ("a.example:9-1", "upwards"), ("127.1", "127.0.0.1"),
             ("0x7f000001", "127.0.0.1"), ("10.0.0.1/8", "10.0.0.0/8"), ("b\u00fccher.example", "xn--"),
             ("a b", "space"), ("a..b", "empty"), ("1.2.3.4.5", "number"), ("a.example:1/icmp", "/tcp")]


@pytest.mark.parametrize("rule,word", BAD_RULES)
def test_bad_rules_are_named(server, rule, word):
    for field in ("allow", "deny"):
        answer = server.request("POST", "/v0/sandbox", {"spec": {"network": {
            "mode": "allowlist", field: ["good.example", rule]}}})
        refuse(answer, 400, "INVALID_ARGUMENT", word)
        assert f"spec.network.{field}" in answer.text


@pytest.mark.parametrize("mode", ["isolated", "full"])
def test_a_name_is_denied_at_ports_that_it_can_be(server, mode):
    answer = server.request("POST", "/v0/sandbox", {"spec": {"network": {"mode": mode, "deny": ["a.example", "*:25"]}}})
    refuse(answer, 400, "INVALID_ARGUMENT", "0.0.0.0/0:25")


CUT_OFF = ["10.0.0.0/8", "192.168.1.1", "172.16.0.0/12:22", "169.254.169.254", "127.0.0.1:80",
           "100.64.0.1", "224.0.0.1", "fe80::1", "::1", "fd00::/8"]


@pytest.mark.parametrize("rule", CUT_OFF)
def test_what_is_always_cut_off_cannot_be_allowed(server, rule):
    answer = server.request("POST", "/v0/sandbox", {"spec": {"network": {"allow": [rule]}}})
    refuse(answer, 403, "NETWORK_REFUSED", rule.split(":2")[0].split(":8")[0])


def test_lists_have_an_end(server):
    rules = [f"h{i}.example" for i in range(257)]
    answer = server.request("POST", "/v0/sandbox", {"spec": {"network": {"allow": rules}}})
    refuse(answer, 429, "LIMIT_EXCEEDED", "256")


BAD_HEADERS = [({"host": "a.example", "header": "Host", "secret": "s"}, "connection's own"),
               ({"host": "203.0.113.7", "header": "X-Key", "secret": "s"}, "host name"),
               ({"host": "a.example", "header": "X Key", "secret": "s"}, "letters"),
               ({"host": "a.example", "header": "X-Key", "secret": "s", "format": "a\r\nb: {}"}, "ASCII"),
               ({"host": "a.example", "header": "X-Key", "secret": "s", "format": "none"}, "{}"),
               ({"host": "a.example", "header": "X-Key"}, "secret")]


@pytest.mark.parametrize("header,word", BAD_HEADERS)
def test_bad_headers_are_named(server, header, word):
    answer = server.request("POST", "/v0/sandbox", {"spec": {"network": {
        "mode": "allowlist", "allow": ["a.example"], "headers": [header]}}})
    refuse(answer, 400, "INVALID_ARGUMENT", word)


# --- headers and their secrets ---


def header(secret, host="api.a.example"):
    return {"host": host, "header": "X-Key", "secret": secret}


@pytest.fixture
def secret(server):
    """A secret for api.a.example and what is below b.example."""
    name = fresh("s")
    answer = server.request("PUT", f"/v0/secrets/{name}",
                            {"value": "v4lue-of-it", "hosts": ["api.a.example", "*.b.example"]})
    assert answer.status == 200, answer
    yield name
    server.request("DELETE", f"/v0/secrets/{name}")


def test_a_header_names_a_secret_that_there_is(server, networks, secret):
    def create(*headers):
        return server.request("POST", "/v0/sandbox", {"spec": {"enabled": False, "network": {
            "mode": "isolated", "headers": list(headers)}}})

    refuse(create(header("nobody-s")), 404, "SECRET_NOT_FOUND", "nobody-s")
    refuse(create(header(secret), header("nobody-s")), 404, "SECRET_NOT_FOUND", "headers[1]")
    refuse(create(header(secret, "other.example")), 403, "FORBIDDEN", "other.example")
    refuse(create(header(secret, "*.a.example")), 403, "FORBIDDEN", "*.a.example")
    good = [header(secret), header(secret, "*.b.example"), header(secret, "x.b.example")]
    with made(server, network={"mode": "isolated", "headers": good}) as sandbox:
        assert [each["host"] for each in network_of(sandbox)["headers"]] == [each["host"] for each in good]
        refuse(sandbox.request("PATCH", "/network", {"headers": [header("nobody-s")]}), 404, "SECRET_NOT_FOUND", "nobody")
        refuse(sandbox.request("PATCH", "", {"spec": {"network": {"headers": [header("nobody-s")]}}}), 404,
               "SECRET_NOT_FOUND", "nobody")
        refuse(sandbox.request("POST", "/clone", {"spec": {"network": {"headers": [header("nobody-s")]}}}), 404,
               "SECRET_NOT_FOUND", "nobody")
        assert len(network_of(sandbox)["headers"]) == 3


def test_a_secret_that_is_deleted_leaves_the_policy_as_it_is(server, networks, secret):
    """What comes of it is in tests/security/test_network_secrets.py: requests fail until it is back."""
    with made(server, network={"mode": "isolated", "headers": [header(secret)]}) as sandbox:
        shown = network_of(sandbox)
        assert server.request("DELETE", f"/v0/secrets/{secret}").status == 200
        assert network_of(sandbox) == shown
        # What was read can be written back, and other things changed; what is new is looked at.
        assert sandbox.request("PUT", "", sandbox.get()).status == 200
        assert sandbox.request("PATCH", "/network", {"deny": ["x.example"]}).status == 200
        copy = sandbox.request("POST", "/clone", {})
        assert copy.status == 202, copy
        server.sandbox(copy.json()["metadata"]["name"]).delete()
        refuse(sandbox.request("PATCH", "/network", {"headers": [header(secret), header(secret, "c.b.example")]}),
               404, "SECRET_NOT_FOUND", "headers[1]")
        assert network_of(sandbox) == {**shown, "deny": ["x.example"]}


def test_without_a_network(server):
    with made(server) as sandbox:
        assert network_of(sandbox) == {"mode": "none"}
        assert sandbox.request("GET", "/network/log").json() == {"entries": [], "last": 0}
        assert sandbox.request("PUT", "/network", {}).status == 200
        assert sandbox.request("PUT", "/network", {"mode": "none"}).status == 200
        refuse(sandbox.request("PATCH", "/network", {"mode": "none", "deny": ["a.example"]}), 400,
               "INVALID_ARGUMENT", "mode none")
        refuse(sandbox.request("GET", "/network/log?limit=0"), 400, "INVALID_ARGUMENT", "limit")
    refuse(server.request("GET", "/v0/sandbox/no-such-box/network"), 404, "SANDBOX_NOT_FOUND", "no-such-box")
    refuse(server.request("PUT", "/v0/sandbox/no-such-box/network", {}), 404, "SANDBOX_NOT_FOUND", "no-such")


# --- what is kept and shown ---


def test_rules_are_shown_as_they_are_understood(server, networks):
    given = {"mode": "allowlist", "allow": ["Example.COM.", "*.Example.com:443", "45.91.113.7/32:5432",
                                            "example.com"],
             "deny": ["bad.example.com:80-80"], "bandwidth": {"in": "10M", "out": "5M"}}
    with made(server, network=given) as sandbox:
        spec = sandbox.get()["spec"]
        assert network_of(sandbox) == {
            "mode": "allowlist", "allow": ["example.com", "*.example.com:443", "45.91.113.7:5432"],
            "deny": ["bad.example.com:80"], "ipv6": False, "bandwidth": {"in": "10M", "out": "5M"}}
        assert spec["resources"]["networkIn"] == "10M" and spec["resources"]["networkOut"] == "5M"
        assert spec["security"]["network_enabled"] is True
        assert spec["security"]["allowed_hosts"] == spec["network"]["allow"]


def test_hosts_alone_are_an_allow_list(server, networks):
    with made(server, network={"allow": ["a.example"]}) as sandbox:
        assert network_of(sandbox)["mode"] == "allowlist"
    with made(server, security={"allowed_hosts": ["a.example"]}) as sandbox:
        assert network_of(sandbox)["allow"] == ["a.example"]
    with made(server, network={"deny": ["a.example"]}) as sandbox:
        assert network_of(sandbox)["mode"] == "isolated"
    with made(server, security={"network_enabled": True}) as sandbox:
        assert network_of(sandbox)["mode"] == "isolated"


def test_put_replaces_and_patch_changes(server, networks):
    with made(server, network={"mode": "allowlist", "allow": ["a.example"], "deny": ["b.example"]}) as sandbox:
        assert sandbox.request("PATCH", "/network", {"allow": ["c.example"]}).status == 200
        shown = network_of(sandbox)
        assert (shown["allow"], shown["deny"]) == (["c.example"], ["b.example"])
        assert sandbox.request("PUT", "/network", {"mode": "full", "deny": ["d.example"]}).status == 200
        shown = network_of(sandbox)
        assert (shown["mode"], shown["allow"], shown["deny"]) == ("full", [], ["d.example"])
        before = sandbox.get()["metadata"]["revision"]
        refuse(sandbox.request("PATCH", "/network", {"allow": ["*x"]}), 400, "INVALID_ARGUMENT", "star")
        refuse(sandbox.request("PUT", "/network", {"mode": "none"}, {"If-Match": '"rev-1"'}), 412,
               "REVISION_MISMATCH", "rev")
        assert sandbox.get()["metadata"]["revision"] == before
        assert sandbox.request("PATCH", "/network", {}, {"If-Match": f'"{before}"'}).status == 200
        whole = sandbox.get()
        whole["spec"]["network"]["deny"] = ["e.example"]
        assert sandbox.request("PUT", "", whole).status == 200
        assert network_of(sandbox)["deny"] == ["e.example"]
        assert sandbox.request("PATCH", "", {"spec": {"network": {"mode": "none"}}}).status == 200
        assert network_of(sandbox) == {"mode": "none"}


def revision(sandbox):
    return int(sandbox.get()["metadata"]["revision"].removeprefix("rev-"))


def test_a_change_of_the_sandbox_is_one(server, networks):
    """The network and the rest together, in one step: or none of it."""
    with made(server, network={"mode": "allowlist", "allow": ["a.example"]}) as sandbox:
        before, was = sandbox.get(), revision(sandbox)
        labels, network = {"step": "1"}, {"allow": ["b.example"]}
        for body, status, code in (
                ({"metadata": {"labels": labels}, "spec": {"network": {"allow": ["10.0.0.0/8"]}}}, 403, "NETWORK_REFUSED"),
                ({"metadata": {"labels": labels}, "spec": {"network": {"headers": [header("nobody-s")]}}}, 404,
                 "SECRET_NOT_FOUND"),
                ({"spec": {"network": network, "resources": {"memory": "1"}}}, 400, "INVALID_QUANTITY"),
                ({"spec": {"network": network, "image": "another"}}, 400, "INVALID_ARGUMENT")):
            refuse(sandbox.request("PATCH", "", body), status, code, "")
            assert sandbox.get() == before
        answer = sandbox.request("PATCH", "", {"metadata": {"labels": labels},
                                               "spec": {"network": network, "resources": {"pids": "77"}}})
        assert answer.status == 200, answer
        after = sandbox.get()
        assert revision(sandbox) == was + 1
        assert (after["metadata"]["labels"], after["spec"]["network"]["allow"]) == (labels, ["b.example"])
        # The same again is no change of the network.
        assert sandbox.request("PUT", "/network", {"mode": "allowlist", **network}).status == 200
        assert revision(sandbox) == was + 1


def test_what_was_read_can_be_written_back(server, networks):
    with made(server, network={"mode": "allowlist", "allow": ["a.example"], "bandwidth": {"in": "10M"}}) as sandbox:
        shown = sandbox.request("GET", "/network").json()
        was = revision(sandbox)
        assert sandbox.request("PUT", "/network", shown).status == 200
        assert network_of(sandbox)["bandwidth"] == {"in": "10M"}
        assert sandbox.request("PATCH", "/network", {"deny": ["b.example"], "bandwidth": {"out": "5M"}}).status == 200
        assert network_of(sandbox) == {"mode": "allowlist", "allow": ["a.example"], "deny": ["b.example"], "ipv6": False,
                                       "bandwidth": {"in": "10M", "out": "5M"}}
        assert revision(sandbox) == was + 2
        refuse(sandbox.request("PATCH", "/network", {"allow": ["c.example"], "bandwidth": {"in": "x"}}), 400,
               "INVALID_QUANTITY", "x")
        assert network_of(sandbox)["allow"] == ["a.example"]


def test_it_stays_with_clones_and_after_a_restart(server_factory, networks):
    server = server_factory()
    box = server.create(wait=False, enabled=False, network={"mode": "allowlist", "allow": ["a.example"]})
    shown = network_of(box)
    copy = server.sandbox(box.request("POST", "/clone", {}).json()["metadata"]["name"])
    other = server.sandbox(box.request("POST", "/clone", {"spec": {"network": {"allow": ["b.example"]}}})
                           .json()["metadata"]["name"])
    assert network_of(copy) == shown and network_of(other)["allow"] == ["b.example"]
    answer = box.request("PUT", "/network", {"mode": "allowlist", "allow": ["c.example:22"]})
    assert answer.status == 200, answer
    before = server.pids()
    server.kill("cellad")
    server.wait_recovered(before, "cellad")
    assert network_of(box)["allow"] == ["c.example:22"] and network_of(copy) == shown


def test_a_level_is_the_most_without_the_scope(server, networks):
    workspace = Workspace(server)
    key = workspace.key("write")

    def create(level, mode):
        return call(server, "POST", "/v0/sandbox", key, {"spec": {
            "enabled": False, "trustLevel": level, "network": {"mode": mode}}})

    try:
        refuse(create("untrusted", "allowlist"), 403, "FORBIDDEN", "admin")
        refuse(create("sandboxed", "isolated"), 403, "FORBIDDEN", "sandboxed")
        for level, mode in (("sandboxed", "allowlist"), ("standard", "full"), ("trusted", "isolated")):
            assert create(level, mode).status == 202
    finally:
        workspace.delete()


# --- the command line ---


def test_the_command_line(server, networks):
    out = server.cli("sandbox", "create", "--disabled", "--network", "allowlist", "--allow", "a.example",
                     "--allow", "*.b.example:443", "--deny", "x.b.example", "-o", "json")
    assert out.returncode == 0, out.stderr
    name = json.loads(out.stdout)["metadata"]["name"]
    sandbox = server.sandbox(name)
    try:
        shown = server.cli("network", "get", name).stdout.split()
        assert shown == ["Name", f"sandbox_network_{sandbox.get()['metadata']['id']}", "Mode", "allowlist", "Allow", "a.example", "*.b.example:443", "Deny", "x.b.example"]
        assert server.cli("network", "set", name, "--allow", "c.example").returncode == 0
        assert network_of(sandbox)["allow"] == ["c.example"]
        assert network_of(sandbox)["deny"] == ["x.b.example"]
        assert server.cli("network", "set", name, "--deny", "none").returncode == 0
        assert network_of(sandbox)["deny"] == []
        assert server.cli("network", "set", name, "--network", "full", "--replace").returncode == 0
        assert network_of(sandbox)["mode"] == "full" and network_of(sandbox)["allow"] == []
        log = server.cli("network", "log", name)
        assert log.returncode == 0 and log.stdout.split()[:2] == ["TIME", "KIND"]
        assert json.loads(server.cli("network", "log", name, "-o", "json").stdout)["entries"] == []
        wrong = server.cli("network", "set", name, "--allow", "10.0.0.0/8")
        assert wrong.returncode == 5 and "--network-allow-private" in wrong.stderr
        assert server.cli("network", "set", name).returncode == 2
    finally:
        sandbox.delete()


def test_the_operator_opens_private_ranges(server_factory, networks):
    server = server_factory("--network-allow-private", "10.1.0.0/16,192.168.7.0/24")
    box = server.create(wait=False, enabled=False, network={"allow": ["10.1.2.0/24:5432"]})
    assert network_of(box)["allow"] == ["10.1.2.0/24:5432"]
    refuse(box.request("PATCH", "/network", {"allow": ["10.2.0.0/16"]}), 403, "NETWORK_REFUSED", "10.2.0.0/16")


# --- sandboxes that run ---


def has_network(box):
    return "eth0:" in box.run("cat /proc/net/dev")


@pytest.fixture
def running(server, networks):
    box = server.create(network={"mode": "allowlist", "allow": ["a.example"]})
    yield box
    box.delete()


def test_a_running_sandbox_is_changed_and_keeps_it(running):
    assert has_network(running)
    for policy in ({"mode": "full", "deny": ["45.91.113.0/24"]}, {"mode": "none"},
                   {"mode": "allowlist", "allow": ["b.example", "45.91.113.7:5432"]}):
        answer = running.request("PUT", "/network", policy)
        assert answer.status == 200, answer
        assert network_of(running)["mode"] == policy["mode"]
    running.stop()
    running.start()
    assert has_network(running)
    assert network_of(running)["allow"] == ["b.example", "45.91.113.7:5432"]


def test_one_without_a_network_has_to_be_stopped_first(server, networks):
    box = server.create()
    try:
        assert not has_network(box)
        refuse(box.request("PUT", "/network", {"mode": "isolated"}), 409, "CONFLICT", "without a network: stop it")
        refuse(box.request("PATCH", "", {"metadata": {"labels": {"a": "b"}}, "spec": {"network": {"mode": "full"}}}),
               409, "CONFLICT", "without a network: stop it")
        wrong = server.cli("network", "set", box.name, "--network", "isolated")
        assert wrong.returncode != 0 and "without a network: stop it" in wrong.stderr, wrong
        assert network_of(box) == {"mode": "none"} and not box.get()["metadata"].get("labels")
        box.stop()
        assert box.request("PUT", "/network", {"mode": "isolated"}).status == 200
        box.start()
        assert has_network(box)
    finally:
        box.delete()


def test_what_is_refused_is_in_the_log(server, running):
    def ask(name):
        running.run(f"getent ahostsv4 {name} || true")
        return [entry for entry in running.request("GET", "/network/log?refused=true").json()["entries"]
                if entry.get("name") == name]

    seen = wait_until(lambda: ask("other.example"), 60, "the refusal in the log")
    assert seen[0]["kind"] == "dns" and seen[0]["verdict"] == "REFUSED_UNLISTED"
    assert seen[0]["allowed"] is False and seen[0]["type"] in ("A", "AAAA")
    table = server.cli("network", "log", running.name, "--refused").stdout
    assert "other.example" in table and "REFUSED" in table
    answer = running.request("PATCH", "/network", {"allow": ["third.example"]})
    assert answer.status == 200, answer
    assert wait_until(lambda: ask("a.example"), 60, "the name that was allowed, refused")
