# SPDX-License-Identifier: Apache-2.0
"""Connections that hide where they go, or do not say it: an encrypted client hello (browsers send one with
every connection, most often an empty one), TLS without a name, an address instead of a host. Refused
wherever a name can be the reason to refuse something; let through where none is."""

import uuid

import pytest

from cella_server import wait_until
from world import METADATA, OTHER, WEB

# As a browser without a key for the server sends it: random bytes where a name could be.
ENCRYPTED = "extension(0xfe0d, b'\\0\\0\\x01\\0\\x01\\x07\\0\\x20' + b'k' * 32 + b'\\0\\x90' + b'p' * 144)"
TRIED = f"""
def hello_to(address, extensions):
    return served(tcp(address, 443, [client_hello(extensions)], timeout=PATIENT, enough=b'\\x16'))
encrypted = {ENCRYPTED}
"""


@pytest.fixture
def host(world):
    """Requests to it get a secret."""
    return world.name(WEB, label="api")


@pytest.fixture
def proxied(world_server, boxes, host):
    """A sandbox whose web traffic is proxied, but for no reason of names: requests to a host get a secret."""
    secret = f"s-{uuid.uuid4().hex[:8]}"
    answer = world_server.request("PUT", f"/v0/secrets/{secret}", {"value": "v4lue-of-it", "hosts": [host]})
    assert answer.status == 200, answer
    yield lambda mode, **more: boxes(
        mode, headers=[{"host": host, "header": "X-Key", "secret": secret}], **more)
    world_server.request("DELETE", f"/v0/secrets/{secret}")


@pytest.mark.parametrize("mode", ["isolated", "full"])
def test_a_browser_works_where_no_name_decides(world, proxied, mode):
    name, box, since = world.name(WEB), proxied(mode, deny=["45.97.0.0/16"]), world.now()
    got = box.do(TRIED + """
result = [hello_to(web, server_names([name]) + encrypted), hello_to(other, server_names([name]) + encrypted),
          hello_to(web, encrypted), hello_to(web, b''), http(web, web)['status'], https(web, name)['status']]
""", web=WEB, other=OTHER, name=name)
    assert got == [True, True, True, True, 200, 200]
    # Where the name is hidden, the address that was connected to is what counts.
    met = [(each["address"], each["sni"]) for each in world.met(since, service="tls")]
    assert met[:2] == [(WEB, name), (OTHER, name)]

    def entry():
        log = box.request("GET", "/network/log").json()["entries"]
        return [each for each in log if (each.get("name"), each.get("address")) == (name, OTHER)]

    assert wait_until(entry, 30, "the entry with its name")[0]["allowed"] is True


def test_a_browser_gets_to_the_host_with_the_secret(world, proxied, host):
    """There TLS ends in the egress process, under the sandbox's own authority; nobody reads the encrypted part."""
    box, since = proxied("isolated"), world.now()
    assert box.request("PUT", "/network/ca").status == 200
    assert box.do(TRIED + "result = hello_to(web, server_names([host]) + encrypted)", web=WEB, host=host) is True
    assert world.met(since, service="tls") == [], "there was no request yet"


def test_what_is_cut_off_stays_so(world, proxied):
    name, box, since, before = world.name(WEB), proxied("isolated", deny=["45.97.0.0/16"], allow=["a.example"]), \
        world.now(), world.host.now()
    got = box.do(TRIED + """
result = [each["got"] for each in together([
    lambda a=a, e=e: tcp(a, 443, [client_hello(e)], timeout=QUICK, enough=b"\\x16")
    for a in (metadata, host, "45.97.0.1", "10.77.0.5")
    for e in (encrypted, server_names(["a.example"]) + encrypted, b"")])]
""", metadata=METADATA, host="45.90.0.2", name=name)
    assert [each for each in got if each.startswith("\x16")] == []
    assert [met for met in world.met(since) if met["kind"] != "dns"] == []
    assert world.host.met(before) == []


@pytest.mark.parametrize("mode, lists", [("allowlist", "allow"), ("isolated", "deny"), ("full", "deny")])
def test_refused_where_a_name_decides(world, boxes, mode, lists):
    """The listed name's server is at the same address as the other's: what does not say which is refused."""
    listed, other = world.name(WEB), world.name(WEB)
    good = listed if lists == "allow" else other
    box, since = boxes(mode, **{lists: [listed]}), world.now()
    got = box.do(TRIED + """
result = [hello_to(web, server_names([good]) + encrypted), hello_to(web, encrypted), hello_to(web, b''),
          http(web, web)['status'], http(web, good)['status'], https(web, good)['status']]
""", web=WEB, good=good)
    assert got[:3] == [False] * 3 and got[3] in (400, 403) and got[4:] == [200, 200], got
    assert {met["host"] for met in world.met(since, kind="http")} == {good}
    reasons = {each["verdict"] for each in box.request("GET", "/network/log?refused=true").json()["entries"]}
    assert {"REFUSED_HIDDEN_NAME", "REFUSED_NO_NAME"} <= reasons
