# SPDX-License-Identifier: Apache-2.0
"""How much a caller may ask for: rates, streams, sandboxes of a workspace."""

import contextlib
import http.client
import subprocess
import urllib.parse

import pytest

from cella_auth import Workspace, call, fresh, fresh_address
from cella_exec import ExecSocket
from cella_server import PATIENCE, wait_until
from e2b_box import START, Box, error_of

RATES = "local=on,read=1:20,exec=1:3,create=off,write=off,files=off,address=off,stream=off,proxy=off"


@pytest.fixture(scope="module")
def limited():
    from cella_fixtures import _requirements  # pylint: disable=import-outside-toplevel
    from cella_server import Server  # pylint: disable=import-outside-toplevel
    _requirements()
    instance = Server("--rate-limit", RATES, "--quota", "streams-per-key=2,streams=3,sandboxes=4")
    yield instance
    instance.close()


def until_refused(ask, most=60):
    """Asks until the answer is 429; gives all answers."""
    answers = []
    for _ in range(most):
        answers.append(ask())
        if answers[-1].status == 429:
            return answers
    raise AssertionError(f"never refused: {answers[-1]}")


def check_fields(answer, name):
    assert int(answer.headers["Retry-After"]) >= 1, answer.headers
    assert answer.headers["RateLimit-Remaining"] == "0"
    assert int(answer.headers["RateLimit-Limit"]) >= 1 and int(answer.headers["RateLimit-Reset"]) >= 1
    assert answer.headers["RateLimit-Policy"].startswith(f'"{name}";q=')


def test_a_key_has_a_bucket_for_each_class(limited):
    space = Workspace(limited)
    one, two = space.key("write"), space.key("write")
    answers = until_refused(lambda: call(limited, "GET", "/v0/sandbox", one))
    assert 20 <= len(answers) - 1 <= 40
    refused = answers[-1]
    assert refused.error() == "RATE_LIMITED", refused
    check_fields(refused, "read")
    assert answers[0].headers["RateLimit-Remaining"] == "19"
    # Another key of the same address, and another class, are not touched by it.
    assert call(limited, "GET", "/v0/sandbox", two).status == 200
    assert call(limited, "DELETE", "/v0/sandbox/nothing", one).status == 404
    # Nobody is shut out for ever.
    wait_until(lambda: call(limited, "GET", "/v0/sandbox", one).status == 200, 30, "a token")
    space.delete()


def test_each_facade_says_it_in_its_own_shape(limited):
    space = Workspace(limited)
    key = space.key("write")
    refused = until_refused(lambda: call(limited, "GET", "/v0/sandboxes", key))[-1]
    assert refused.json()["code"] == 429 or refused.json().get("error"), refused
    check_fields(refused, "read")
    refused = until_refused(lambda: call(limited, "GET", "/v2/sandboxes", headers={"X-API-KEY": "e2b_" + key.encode().hex()}))[-1]
    assert refused.json()["code"] == 429 and "too many requests" in refused.json()["message"], refused
    check_fields(refused, "read")
    refused = until_refused(lambda: call(limited, "GET", "/v1/sandboxes", headers={"X-API-KEY": key}))[-1]
    check_fields(refused, "read")
    space.delete()


def test_commands_of_a_websocket_count_as_requests_for_them_do(limited):
    sandbox = limited.create()
    socket = ExecSocket(limited, sandbox.name)
    for turn in range(12):
        socket.start(f"a{turn}", "true")
        end = socket.await_(f"a{turn}", lambda message: message["type"] in ("exit", "error"))
        if end["type"] == "error":
            break
    assert end["code"] == "RATE_LIMITED", end
    socket.close()
    sandbox.delete()


def test_a_sandbox_with_its_own_token_is_a_caller(limited):
    box = Box(limited)
    try:
        for asked in range(12):
            answer, frames = box.stream(START, {"process": {"cmd": "/bin/true"}})
            if len(frames) == 1:
                break
        assert error_of(frames) == "resource_exhausted" and asked >= 3, (asked, answer)
        check_fields(answer, "exec")
    finally:
        assert box.control("DELETE", f"/sandboxes/{box.id}").status == 204


def test_what_is_never_limited(limited):
    for _ in range(60):
        assert limited.request("GET", "/health", headers={"Authorization": None}).status == 200


def test_limits_are_shown(limited):
    space = Workspace(limited)
    key = space.key("read")
    shown = call(limited, "GET", "/v0/limits", key).json()
    assert shown["rateLimits"]["counted"] is True
    rows = {row["class"]: row for row in shown["rateLimits"]["classes"]}
    assert rows["exec"] == {"class": "exec", "perSecond": 1, "burst": 3, "remaining": 3}
    assert rows["read"]["remaining"] <= 19 and "create" not in rows
    assert shown["streams"] == {"used": 0, "limit": 2} and shown["serverStreams"]["limit"] == 3
    assert shown["sandboxes"] == {"used": 0, "limit": 4}
    space.delete()


def test_sandboxes_of_a_workspace(limited):
    space, other = Workspace(limited), Workspace(limited)
    for i in range(4):
        space.create(f"box-{i}")
    refused = limited.request("POST", "/v0/sandbox", {"metadata": {}, "spec": {"enabled": False}},
                              {"X-Cella-Workspace": space.name})
    assert refused.status == 429 and refused.json()["error"]["code"] == "TOO_MANY_SANDBOXES", refused
    clone = limited.request("POST", "/v0/sandbox/box-0/clone", {}, {"X-Cella-Workspace": space.name})
    assert clone.status == 429, clone
    other.create("box")  # its neighbours are not touched
    gone = limited.request("DELETE", "/v0/sandbox/box-0", headers={"X-Cella-Workspace": space.name})
    assert gone.status in (200, 202, 204), gone

    def again():
        return limited.request("POST", "/v0/sandbox", {"metadata": {}, "spec": {"enabled": False}},
                               {"X-Cella-Workspace": space.name}).status == 202

    wait_until(again, 30, "room for another one")
    space.delete()
    other.delete()


@contextlib.contextmanager
def follow(server, name, key):
    """A stream of a sandbox's log that stays open: the answer."""
    parts = urllib.parse.urlsplit(server.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=30 * PATIENCE)
    connection.request("GET", f"/v0/sandbox/{name}/watch/filesystem/tmp", headers={
        "Authorization": f"Bearer {key}", "Accept": "text/event-stream"})
    try:
        yield connection.getresponse()
    finally:
        connection.close()


def test_streams(limited):
    space = Workspace(limited)
    one, two = space.key("write"), space.key("write")
    space.create("watched", enabled=True)
    with follow(limited, "watched", one) as a, follow(limited, "watched", one) as b:
        assert a.status == 200 and b.status == 200, (a.status, a.read(500) if a.status != 200 else "")
        with follow(limited, "watched", one) as c:
            text = c.read()
            assert c.status == 429 and b"TOO_MANY_STREAMS" in text, (c.status, text)
            assert int(c.headers["Retry-After"]) >= 1
        with follow(limited, "watched", two) as d:
            assert d.status == 200
            with follow(limited, "watched", two) as e:  # of all
                assert e.status == 429 and b"the server's" in e.read()

    def free():
        with follow(limited, "watched", one) as again:
            return again.status == 200

    wait_until(free, 30, "a place for a stream")
    space.delete()


def test_addresses(server_factory):
    """Who shows nothing is an address, and all of one address are counted together."""
    server = server_factory("--rate-limit", "local=on,address=1:10,read=off")
    here, there = fresh_address(), fresh_address()
    refused = until_refused(lambda: call(server, "GET", "/v0/sandbox", source=here))[-1]
    check_fields(refused, "address")
    assert call(server, "GET", "/v0/sandbox", server.key, source=here).status == 429
    assert call(server, "GET", "/v0/sandbox", server.key, source=there).status == 200


def test_this_machine_is_not_counted_by_default(server):
    for _ in range(50):
        answer = server.request("GET", "/v0/whoami")
        assert answer.status == 200 and "RateLimit-Limit" not in answer.headers
    shown = server.request("GET", "/v0/limits").json()
    assert shown["rateLimits"]["counted"] is False


@pytest.mark.parametrize("option, value, words", [
    ("--rate-limit", "exec=fast", "200:1000"), ("--rate-limit", "colour=1", "not a class"),
    ("--quota", "streams=0", "1 to"), ("--quota", "boxes=1", "not streams")])
def test_bad_options(server, option, value, words):
    bad = subprocess.run([server.bin / "cella", "server", option, value, "--data", fresh("/tmp/none")],
                         capture_output=True, text=True, timeout=60)
    assert bad.returncode == 2 and option in bad.stderr and words in bad.stderr, bad
