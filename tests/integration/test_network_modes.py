# SPDX-License-Identifier: Apache-2.0
"""What a sandbox reaches in each mode, as a program inside sees it and as the other side does."""

import pytest

from world import DATABASE, ECHO, METADATA, OTHER, PRIVATE, WEB


@pytest.mark.parametrize("mode", ["isolated", "full"])
def test_the_internet(world, boxes, mode):
    name, box = world.name(WEB), boxes(mode)
    box.write("/tmp/world.crt", world.ca.read_text())
    assert f'"host": "{name}"' in box.run(f"curl -sS http://{name}/")
    assert f'"sni": "{name}"' in box.run(f"curl -sS --cacert /tmp/world.crt https://{name}/")
    assert box.run(f"curl -sS http://{name}:8080/bytes/3000000 | wc -c") == "3000000"
    got = box.do("[echo(web, port)['got'], udp(web, port)['got'], addresses(name, over_tcp=1), "
                 "socket.gethostbyname(name), echo(web, 22)['got'], udp(web, 443)['got']]",
                 web=WEB, port=ECHO, name=name)
    assert got == ["hello", "hello", [WEB], WEB, "hello", "hello"]


def test_big_datagrams(world, boxes):
    """Those that travel in fragments."""
    box = boxes("full")
    assert box.do("len(udp(web, port, 'x' * 8000)['got'])", web=WEB, port=ECHO) == 8000


def test_a_name_of_nobody(boxes):
    box = boxes("full")
    assert box.do("ask('nowhere.example')['rcode']") == 3
    assert "Could not resolve" in box.exec("curl -sS http://nowhere.example/").stderr


def test_the_source_is_the_machine(world, boxes):
    """Nobody out there learns an address of a sandbox."""
    box, since = boxes("full"), world.now()
    name = world.name(WEB)
    assert box.do("[echo(web, port)['got'], http(web, name)['status'], udp(web, port)['got']]", web=WEB, port=ECHO,
                  name=name) == ["hello", 200, "hello"]
    assert {met["source"] for met in world.met(since) if "source" in met} == {"45.90.0.2"}


def test_an_allow_list(world, boxes):
    """Names, wildcards, ports, addresses and prefixes; and everything beside them is refused."""
    good, other = world.name(WEB), world.name(WEB)
    below, port = world.zone("deep.below.wild.test", A=[WEB]), world.name(OTHER)
    world.zone("wild.test", A=[WEB])
    box = boxes("allowlist", allow=[good, "*.wild.test", f"{port}:{ECHO}", "45.94.0.0/24", f"45.95.0.1:{DATABASE}",
                                    "45.96.0.1:8000-8100/tcp"])
    box.write("/tmp/world.crt", world.ca.read_text())
    for name in (good, below):
        assert f'"host": "{name}"' in box.run(f"curl -sS http://{name}/")
        assert f'"sni": "{name}"' in box.run(f"curl -sS --cacert /tmp/world.crt https://{name}/")
    assert box.do("[addresses(name), echo(address, port)['got']]", name=port, address=OTHER, port=ECHO) == [
        [OTHER], "hello"]
    got = box.do("""[
        echo('45.94.0.9', port)['got'], http('45.94.0.9', '45.94.0.9')['status'], udp('45.94.0.9', port)['got'],
        echo('45.95.0.1', database)['got'], http('45.96.0.1', 'x', port=8080)['status']]""",
                 port=ECHO, database=DATABASE)
    assert got == ["hello", 200, "hello", "hello", 200]
    since = world.now()
    refused = box.do("""together([
        lambda: http(web, other), lambda: http(web, 'wild.test'), lambda: https(web, other),
        lambda: http(web, port, timeout=QUICK), lambda: echo('45.95.0.1', echo_port, timeout=QUICK),
        lambda: udp('45.96.0.1', 8080, timeout=QUICK), lambda: echo('45.94.1.1', echo_port, timeout=QUICK),
        lambda: echo('45.96.0.1', 8443, timeout=QUICK)])""", web=WEB, other=other, port=port,
                     echo_port=ECHO)
    assert [each for each in refused if each.get("status") == 200 or each["got"].startswith("hello")] == []
    assert [met for met in world.met(since) if met["kind"] != "dns"] == []


def test_a_deny_list(world, boxes):
    """Isolated, without what is named: by name through the proxies, by address at any port."""
    good, bad = world.name(WEB), world.name(WEB)
    box = boxes("isolated", deny=[bad, "*.bad.test", "45.97.0.0/16"])
    world.zone("x.bad.test", A=[WEB])
    assert f'"host": "{good}"' in box.run(f"curl -sS http://{good}/")
    since = world.now()
    got = box.do("""together([
        lambda: http(web, bad), lambda: https(web, bad), lambda: http(web, 'x.bad.test'),
        lambda: echo('45.97.1.1', port, timeout=QUICK), lambda: http('45.97.1.1', good, timeout=QUICK),
        lambda: udp('45.97.1.1', port, timeout=QUICK)])""", web=WEB, bad=bad, good=good, port=ECHO)
    assert [each for each in got[:3] if each.get("status") == 200] == [], got
    assert [met for met in world.met(since) if met.get("host") in (bad, "x.bad.test")
            or met.get("address", "").startswith("45.97.")] == []
    assert box.do("[addresses(bad), addresses('x.bad.test')]", bad=bad) == [[], []]


@pytest.mark.timeout(180)
def test_private_ranges_that_the_operator_opens(world, world_factory, boxes):
    """Open to full, and to an allow list that names them; not to isolated, and never metadata."""
    server = world_factory("--network-allow-private", "10.77.0.0/16")
    inner = world.name(PRIVATE)
    listed = boxes("allowlist", server=server, allow=[f"{PRIVATE}:{ECHO}", inner])
    full, isolated = boxes("full", server=server), boxes("isolated", server=server)
    tried = "[echo(inner, port, timeout=QUICK)['got'], echo(metadata, port, timeout=QUICK)['got'], " \
            "echo('10.78.0.5', port, timeout=QUICK)['got']]"
    got = {name: box.do(tried, inner=PRIVATE, metadata=METADATA, port=ECHO)
           for name, box in (("listed", listed), ("full", full), ("isolated", isolated))}
    assert got == {"listed": ["hello", "", ""], "full": ["hello", "", ""], "isolated": ["", "", ""]}
    assert f'"address": "{PRIVATE}"' in listed.run(f"curl -sS http://{inner}/")
    assert f'"address": "{PRIVATE}"' in full.run(f"curl -sS http://{inner}/")
    answer = server.request("POST", "/v0/sandbox", {"metadata": {}, "spec": {"network": {
        "mode": "allowlist", "allow": ["10.78.0.5"]}}})
    assert (answer.status, answer.error()) == (403, "NETWORK_REFUSED"), answer


def test_what_nobody_may_list(world_server):
    for rule in (METADATA, PRIVATE, "127.0.0.0/8", "192.168.0.0/16", "[::1]", "[fd00:ec2::254]"):
        answer = world_server.request("POST", "/v0/sandbox", {"metadata": {}, "spec": {"network": {
            "mode": "allowlist", "allow": [rule]}}})
        assert (answer.status, answer.error()) == (403, "NETWORK_REFUSED"), (rule, answer)


def test_what_is_in_force_is_shown(boxes):
    box = boxes("allowlist", allow=["Example.COM.", "*.test:22"], deny=["x.test"])
    shown = box.get()["spec"]["network"]
    assert (shown["mode"], shown["allow"], shown["deny"]) == ("allowlist", ["example.com", "*.test:22"], ["x.test"])
    assert boxes("none").get()["spec"].get("network", {"mode": "none"})["mode"] == "none"
