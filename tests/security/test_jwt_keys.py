# SPDX-License-Identifier: Apache-2.0
"""Keys of issuers that come from a URL: over TLS and from nobody else, fetched again in time, kept while the
issuer is away but not for ever, and never fetched as often as strangers like."""

import concurrent.futures
import json
import socket
import threading
import time

import pytest

jwt = pytest.importorskip("jwt")

from cella_auth import call, fresh, fresh_address  # noqa: E402
from cella_processes import LISTEN, post  # noqa: E402
from cella_server import Server, wait_until  # noqa: E402
from jwt_issuer import AUDIENCE, Authority, Key, KeyServer  # noqa: E402


RETRY_S = 30  # JWKS_RETRY_S


class Silence:
    """Takes connections and says nothing: receivers of callbacks that are slow."""

    def __init__(self):
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listening.getsockname()[1]}/"
        self.held = []
        threading.Thread(target=self._serve, daemon=True).start()

    def _serve(self):
        while True:
            try:
                self.held.append(self.listening.accept()[0])
            except OSError:
                return

    def waiting(self):
        """How many are there that have not given up."""
        count = 0
        for peer in self.held:
            try:
                peer.setblocking(False)
                while data := peer.recv(65536):
                    assert data
            except BlockingIOError:
                count += 1
            except OSError:
                pass
        return count

    def close(self):
        self.listening.shutdown(socket.SHUT_RDWR)
        self.listening.close()
        for peer in self.held:
            peer.close()


class World:
    """A server with many issuers, whose keys are on two servers: one with TLS, one without."""

    def __init__(self, folder):
        self.authority, stranger = Authority(folder, "authority"), Authority(folder, "stranger")
        self.tls, self.plain = KeyServer(self.authority.context()), KeyServer()
        self.key = Key("ES256")
        for server in (self.tls, self.plain):
            server.serve(self.key)
        own, url, port = str(self.authority.path), self.tls.url, self.tls.port
        issuers = {
            "https": {"jwksUrl": url, "jwksCaFile": own},
            "https-name": {"jwksUrl": f"https://localhost:{port}/", "jwksCaFile": own},
            "wrong-authority": {"jwksUrl": url, "jwksCaFile": str(stranger.path)},
            "machines-authorities": {"jwksUrl": url},
            "wrong-name": {"jwksUrl": f"https://127.0.0.2:{port}/", "jwksCaFile": own},
            "no-tls": {"jwksUrl": f"https://127.0.0.1:{self.plain.port}/", "jwksCaFile": own},
            **{f"redirected-{i}": {"jwksUrl": url, "jwksCaFile": own} for i in range(3)},
            "flooded": {"jwksUrl": self.plain.url + "?flooded"},
            "fresh": {"jwksUrl": self.plain.url + "?fresh", "jwksRefreshSeconds": 1},
            "brief": {"jwksUrl": self.plain.url + "?brief", "jwksRefreshSeconds": 1, "jwksStaleSeconds": 2},
            **{f"late-{i}": {"jwksUrl": self.plain.url + f"?late-{i}"} for i in range(3)},
        }
        config = folder / "jwt.json"
        config.write_text(json.dumps({"issuers": [{"issuer": name, "audience": AUDIENCE, **rest}
                                                  for name, rest in issuers.items()]}))
        self.server = Server("--jwt-config", str(config), "--allow-private-callbacks", "--network", "off")

    def ask(self, issuer, key=None, **claims):
        return call(self.server, "GET", "/v0/whoami", (key or self.key).token(iss=issuer, **claims),
                    source=fresh_address()).status

    def asked(self, issuer):
        """How often the keys were asked for, for that issuer."""
        return sum(path.endswith(f"?{issuer}") for path in self.plain.paths)

    def close(self):
        self.server.close()
        self.tls.close()
        self.plain.close()


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    from cella_fixtures import _requirements
    _requirements()
    made = World(tmp_path_factory.mktemp("keys"))
    yield made
    made.close()


def test_tls(world):
    assert world.ask("https") == 200
    assert world.ask("https-name") == 200


@pytest.mark.parametrize("issuer", ["wrong-authority", "machines-authorities", "wrong-name", "no-tls"])
def test_nobody_else_is_believed(world, issuer):
    before = world.tls.asked + world.plain.asked
    assert world.ask(issuer) == 503
    assert world.tls.asked + world.plain.asked == before  # it was not even asked for anything
    assert f"the keys of the issuer {issuer} cannot be had" in world.server.log()


def test_redirects_lead_nowhere(world):
    """Not to plain HTTP, not to another host, and not even to another path."""
    places = ((301, world.plain.url), (307, f"http://localhost:{world.plain.port}/x"), (302, "/elsewhere"))
    for i, (status, location) in enumerate(places):  # an issuer for each: its keys are asked for a few times only
        world.tls.status, world.tls.location = status, location
        asked, paths = world.plain.asked, len(world.tls.paths)
        assert world.ask(f"redirected-{i}") == 503
        assert world.plain.asked == asked and len(world.tls.paths) == paths + 1
    world.tls.location = None
    world.tls.serve(world.key)
    assert world.ask("redirected-0") == 200


def test_a_flood_of_unknown_keys(world):
    assert world.ask("flooded") == 200
    stranger, before, begun = Key("ES256"), world.asked("flooded"), time.monotonic()

    def one(i):
        return world.ask("flooded", stranger, **{"headers": {"kid": fresh("nobody")}})

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert set(pool.map(one, range(100))) == {401}
    # A few at once and then one in a while, however long all of it took: not one for each.
    assert world.asked("flooded") - before <= 5 + (time.monotonic() - begun) / RETRY_S
    assert world.ask("flooded") == 200


def test_rotation(world):
    """Old keys are found to be gone without anybody asking for a new one; new ones come beside them before."""
    old, new = world.key, Key("ES256")
    assert world.ask("fresh") == 200
    world.plain.serve(old, new)
    assert world.ask("fresh", new) == 200
    world.plain.serve(new)
    try:
        wait_until(lambda: world.ask("fresh", old) == 401 and world.asked("fresh") > 2, 60, "the old key gone")
        assert world.ask("fresh", new) == 200
    finally:
        world.plain.serve(old)
    wait_until(lambda: world.ask("fresh", old) == 200, 60, "the old key back")


def test_an_issuer_that_is_away(world):
    """What was fetched last goes on, for as long as the configuration says; then its tokens wait."""
    wait_until(lambda: world.ask("fresh") == 200 and world.ask("brief") == 200, 60, "keys")
    world.plain.status = 500
    try:
        before = world.asked("fresh")
        wait_until(lambda: world.ask("fresh") == 200 and world.asked("fresh") > before + 1, 60, "more than one failure")
        wait_until(lambda: world.ask("brief") == 503, 60, "too old")
        assert "count no more" in world.server.log()
        assert world.ask("fresh") == 200
    finally:
        world.plain.serve(world.key)
    assert world.ask("brief") == 200


def test_slow_callbacks_hold_up_nobody(world):
    """As many callbacks as there are threads for them wait for an answer: keys are fetched all the same."""
    silence, box = Silence(), world.server.create()
    try:
        box.write("/tmp/listen.py", LISTEN)
        for port in range(7001, 7007):
            pid = post(box, f"python3 /tmp/listen.py tcp-127.0.0.1-{port}", waitForPorts=[port])["pid"]
            answer = box.request("POST", f"/network/process/{pid}/monitor", {"callback": silence.url})
            assert answer.status == 200, answer

        def held_all_the_while(i):  # each waits for ten seconds, so a machine that is busy may need a second try
            wait_until(lambda: silence.waiting() >= 4, 60, "callbacks that wait")
            connections = len(silence.held)
            assert world.ask(f"late-{i}") == 200
            return silence.waiting() >= 4 and len(silence.held) == connections

        assert any(held_all_the_while(i) for i in range(3))
    finally:
        box.delete()
        silence.close()


def test_fetches_are_measured(world):
    assert world.ask("https") == 200
    figures = world.server.request("GET", "/metrics").text
    line = next(line for line in figures.splitlines()
                if line.startswith('cella_network_call_duration_seconds_count{to="jwks"}'))
    assert int(line.split()[-1]) >= 1


def test_callbacks_follow_no_redirect(world):
    """Not to this machine, a cloud's metadata or anywhere: an answer that says to go elsewhere is a failed delivery."""
    door, inner, box = KeyServer(), KeyServer(), world.server.create()
    try:
        box.write("/tmp/listen.py", LISTEN)
        for status, location in ((302, inner.url), (307, inner.url), (308, f"http://localhost:{inner.port}/"),
                                 (301, "http://169.254.169.254/latest/meta-data/"), (302, "file:///etc/passwd")):
            door.status, door.location, before = status, location, door.asked
            pid = post(box, f"python3 /tmp/listen.py tcp-127.0.0.1-{9000 + before}",
                       waitForPorts=[9000 + before])["pid"]
            assert box.request("POST", f"/network/process/{pid}/monitor", {"callback": door.url}).status == 200
            wait_until(lambda: door.asked > before, 60, "the callback")
            box.request("POST", f"/process/{pid}/kill")
        assert inner.asked == 0 and set(door.paths) == {"/jwks.json"}
    finally:
        box.delete()
        door.close()
        inner.close()
