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


def test_whether_a_sandbox_is_well_is_a_question_like_others(limited):
    """It asks its agent. Blaxel's with a key, Scalebox's with the sandbox's token."""
    space = Workspace(limited)
    key = space.key("write")
    space.create("asked")
    refused = until_refused(lambda: call(limited, "GET", f"/{space.name}/sandboxes/asked/health", key))[-1]
    check_fields(refused, "read")
    made = call(limited, "POST", "/v1/sandboxes", body={"template": "base"}, headers={"X-API-KEY": space.key("write")})
    assert made.status == 201, made
    token = {"X-Access-Token": made.json()["data"]["envd_access_token"]}
    refused = until_refused(lambda: call(limited, "GET", "/health", headers=token))[-1]
    check_fields(refused, "read")
    space.delete()


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


def set_limits(server, workspace, key=None, **limits):
    names = {"rate_limit": "rateLimit", "quota": "quota"}
    return call(server, "PUT", f"/v0/workspaces/{workspace}/limits", key or server.key,
                {names.get(name, name): value for name, value in limits.items()})


def test_a_workspace_with_limits_of_its_own(limited):
    space, other = Workspace(limited), Workspace(limited)
    key, admin, neighbour = space.key("write"), space.key("admin"), other.key("write")
    done = set_limits(limited, space.name, rate_limit="files=1:2,exec=2:5", quota="sandboxes=2,streams=1")
    assert done.status == 200, done
    assert done.json() == {"workspace": space.name, "rateLimit": "files=1:2,exec=2:5", "quota": "sandboxes=2,streams=1"}

    shown = call(limited, "GET", "/v0/limits", key).json()
    rows = {row["class"]: row for row in shown["rateLimits"]["classes"]}
    assert (rows["exec"]["perSecond"], rows["exec"]["burst"], rows["read"]["burst"]) == (2, 5, 20)
    assert shown["workspaceStreams"] == {"used": 0, "limit": 1} and shown["sandboxes"] == {"used": 0, "limit": 2}
    shown = call(limited, "GET", "/v0/limits", neighbour).json()
    assert shown["workspaceStreams"]["limit"] is None and shown["sandboxes"]["limit"] == 4

    for i in range(2):
        space.create(f"box-{i}", enabled=i == 0)
    refused = limited.request("POST", "/v0/sandbox", {"metadata": {}, "spec": {"enabled": False}},
                              {"X-Cella-Workspace": space.name})
    assert refused.error() == "TOO_MANY_SANDBOXES", refused
    wait_until(lambda: call(limited, "GET", "/v0/sandbox/box-0", limited.key, headers={
        "X-Cella-Workspace": space.name}).json()["status"] == "running", 60, "the sandbox")

    refused = until_refused(lambda: call(limited, "GET", "/v0/sandbox/box-0/filesystem/etc/hostname", key))[-1]
    check_fields(refused, "files")
    assert refused.headers["RateLimit-Limit"] == "2"
    # Those who keep the workspace see it, and do not change it.
    assert set_limits(limited, space.name, admin, quota="sandboxes=off").status == 403
    assert call(limited, "DELETE", f"/v0/workspaces/{space.name}/limits", admin).status == 403
    assert set_limits(limited, other.name, admin, quota="sandboxes=off").status in (403, 404)
    for bad in ({"quota": "boxes=1"}, {"rate_limit": "exec=fast"}, {"rate_limit": "address=1"}, {"rate_limit": "local=on"},
                {"quota": "sandboxes=0"}, {"quota": 1}, {"colour": "red"}, {"quota": "," * 300}):
        answer = set_limits(limited, space.name, **bad)
        assert answer.status == 400 and answer.error() in ("INVALID_ARGUMENT", "UNKNOWN_FIELD"), (bad, answer)
    assert set_limits(limited, "nobody", quota="").status == 404

    # They outlive the server, and go with a word.
    limited.wait_recovered(limited.kill("cellad"), "cellad")
    assert call(limited, "GET", f"/v0/workspaces/{space.name}/limits", limited.key).json()["quota"] == "sandboxes=2,streams=1"
    assert call(limited, "GET", "/v0/limits", key).json()["sandboxes"] == {"used": 2, "limit": 2}
    assert call(limited, "DELETE", f"/v0/workspaces/{space.name}/limits", limited.key).json()["quota"] == ""
    assert call(limited, "GET", "/v0/limits", key).json()["sandboxes"]["limit"] == 4
    space.delete()
    other.delete()


def test_streams_of_a_workspace(limited):
    space, other = Workspace(limited), Workspace(limited)
    one, two, neighbour = space.key("write"), space.key("write"), other.key("write")
    assert set_limits(limited, space.name, rate_limit="off", quota="streams=1").status == 200
    for workspace in (space, other):
        workspace.create("watched", enabled=True)

    def opens(key):
        with follow(limited, "watched", key) as answer:
            return answer.status == 200

    wait_until(lambda: opens(one) and opens(neighbour), 60, "the sandboxes")

    def full():
        with follow(limited, "watched", one) as a:
            if a.status != 200:  # the one before is not over yet
                return False
            with follow(limited, "watched", two) as b, follow(limited, "watched", neighbour) as c:
                assert b.status == 429 and b"the workspace's" in b.read()
                return c.status == 200

    wait_until(full, 60, "one stream of the workspace, and one of another")
    space.delete()
    other.delete()


def test_guests_of_a_workspace(limited):
    """Who comes to a port of a sandbox without a key is counted in its workspace, too."""
    space = Workspace(limited)
    fields = {"X-Cella-Workspace": space.name}
    made = limited.request("POST", "/sandboxes", {"templateID": "base"}, fields)
    assert made.status == 201, made
    visit = {"E2b-Sandbox-Id": made.json()["sandboxID"], "E2b-Sandbox-Port": "3000"}

    def guest():
        return call(limited, "GET", "/", None, headers=visit)

    assert {guest().status for _ in range(8)} == {502}  # nothing listens there
    assert set_limits(limited, space.name, rate_limit="proxy=1:3").status == 200
    refused = until_refused(guest)[-1]
    assert refused.headers["RateLimit-Limit"] == "3", refused
    assert set_limits(limited, space.name, rate_limit="off").status == 200
    assert {guest().status for _ in range(8)} == {502}
    limited.request("DELETE", f"/sandboxes/{made.json()['sandboxID']}", None, fields)
    space.delete()


def test_limits_by_the_command_line(limited):
    space = Workspace(limited)

    def run(*args):
        done = limited.cli("workspace", "limits", space.name, *args)
        assert done.returncode == 0, done
        return done.stdout.splitlines()[-1].split()

    assert run("--quota", "sandboxes=3") == [space.name, "-", "sandboxes=3"]
    assert run("--rate-limit", "exec=5:6") == [space.name, "exec=5:6", "sandboxes=3"]  # the other one stays
    assert run() == [space.name, "exec=5:6", "sandboxes=3"]
    assert run("--reset") == [space.name, "-", "-"]
    assert limited.cli("workspace", "limits", space.name, "--reset", "--quota", "x").returncode == 2
    assert limited.cli("workspace", "limits", space.name, "--quota", "boxes=1").returncode == 2
    assert limited.cli("workspace", "limits", "nobody").returncode == 3
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
