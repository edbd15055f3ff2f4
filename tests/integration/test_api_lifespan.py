# SPDX-License-Identifier: Apache-2.0
"""How long sandboxes live: ttl, idle time-out, max age and dates, what counts as use, and what a
crash changes about it. Ends are waited for; that something does not end is looked at for a few of its
idle time-outs."""

import concurrent.futures
import contextlib
import datetime
import time
import uuid

import pytest

from cella_auth import call
from cella_server import wait_until
from cella_websocket import Terminal
from clones import clone


def stamp(text):
    return datetime.datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def remove(box):
    """Whatever has become of it."""
    assert box.server.request("DELETE", box.base).status in (202, 404)
    box.wait_status("gone")


@contextlib.contextmanager
def living(server, wait=True, **lifecycle):
    """A sandbox with that lifecycle."""
    box = server.create(lifecycle=lifecycle, wait=wait)
    try:
        yield box
    finally:
        remove(box)


def patch(box, **lifecycle):
    return box.request("PATCH", "", {"spec": {"lifecycle": lifecycle}})


def set_life(box, **lifecycle):
    answer = patch(box, **lifecycle)
    assert answer.status == 200, answer
    return answer.json()


def reasons(box):
    return [event["message"] for event in box.get()["events"] if event["type"] == "EXPIRE"]


# --- ttl ---


def test_a_ttl_deletes(server):
    with living(server, wait=False, ttl="1s") as box:
        box.wait_status("gone")


def test_a_ttl_that_stops_counts_again_from_the_next_start(server):
    with living(server, wait=False, ttl=1, onExpire="stop") as box:
        box.wait_status("stopped")
        said = box.get()
        assert "expiresAt" not in said and said["metadata"]["updatedBy"] == "cella"
        assert reasons(box) == ["Sandbox expired: ttl of 1s is over; it is stopped"]
        assert said["events"][-1]["type"] == "STOP"
        assert said["events"][-1]["message"] == "Sandbox stopped: its ttl was over"
        assert box.request("PUT", "/start").status == 202
        wait_until(lambda: len(reasons(box)) == 2, 30, "it expires again")
        box.wait_status("stopped")


def test_a_ttl_is_renewed_by_setting_it(server):
    with living(server, ttl="1h") as box:
        first = stamp(box.get()["expiresAt"])
        assert 3000 < first - time.time() < 3700
        said = set_life(box, ttl="2h")
        assert said["spec"]["lifecycle"] == {"ttl": "2h"}
        assert stamp(said["expiresAt"]) - first > 3500
        # The same again counts from now: what is shown has whole seconds.
        before = stamp(said["expiresAt"])
        wait_until(lambda: stamp(set_life(box, ttl=7200)["expiresAt"]) > before, 30, "later")
        said = set_life(box, ttl=None)
        assert "expiresAt" not in said and "lifecycle" not in said["spec"]
        set_life(box, ttl="1s")
        box.wait_status("gone")


def test_put_replaces_and_patch_changes(server):
    with living(server, ttl="1h", idleTimeout="2h", onExpire="stop") as box:
        whole = box.get()
        assert whole["spec"]["lifecycle"] == {"ttl": "1h", "idleTimeout": "2h", "onExpire": "stop"}
        assert "idleSince" in whole
        answer = box.request("PUT", "", whole)  # what GET gives is what PUT takes
        assert answer.status == 200, answer
        assert answer.json()["spec"]["lifecycle"] == whole["spec"]["lifecycle"]
        assert set_life(box, ttl=None)["spec"]["lifecycle"] == {"idleTimeout": "2h", "onExpire": "stop"}
        answer = box.request("PUT", "", {"spec": {"lifecycle": {"ttl": "90s"}}})
        assert answer.json()["spec"]["lifecycle"] == {"ttl": "1m30s"}
        answer = box.request("PATCH", "", {"metadata": {"labels": {"a": "b"}}})
        assert answer.json()["spec"]["lifecycle"] == {"ttl": "1m30s"}
        answer = box.request("PATCH", "", {"spec": {"lifecycle": None}})
        assert "lifecycle" not in answer.json()["spec"] and "expiresAt" not in answer.json()


# --- max age, dates ---


def test_a_max_age_is_not_passed(server):
    with living(server, ttl="30m", maxAge="1h") as box:
        end = stamp(box.get()["metadata"]["createdAt"]) + 3600
        said = set_life(box, ttl="10h")
        assert abs(stamp(said["expiresAt"]) - end) <= 2
        with contextlib.closing(SmallKey(server)) as key:
            for wanted in ("2h", None):
                answer = key.patch(box, {"maxAge": wanted})
                assert (answer.status, answer.error()) == (403, "FORBIDDEN"), answer
            assert key.patch(box, {"maxAge": "50m"}).status == 200
        assert set_life(box, maxAge="2h")["spec"]["lifecycle"]["maxAge"] == "2h"


class SmallKey:
    """A key that may write, and no more."""

    def __init__(self, server):
        self.server = server
        answer = server.request("POST", "/v0/api-keys",
                                {"name": f"k-{uuid.uuid4().hex[:8]}", "scopes": ["write"]})
        assert answer.status == 201, answer
        self.id, self.key = answer.json()["id"], answer.json()["secret"]

    def patch(self, box, lifecycle):
        return call(self.server, "PATCH", box.base, self.key, {"spec": {"lifecycle": lifecycle}})

    def close(self):
        assert self.server.request("DELETE", f"/v0/api-keys/{self.id}").status in (200, 204)


def test_one_that_is_too_old_does_not_start(server):
    with living(server, wait=False, maxAge="1s", onExpire="stop") as box:
        box.wait_status("stopped")
        answer = box.request("PUT", "/start")
        assert (answer.status, answer.error()) == (409, "SANDBOX_EXPIRED"), answer
        assert "maxAge of 1s" in answer.json()["error"]["message"]
        set_life(box, maxAge=None)
        box.start()


def soon():
    """A date that comes in a moment; by the time that it is read it may be past, and is refused."""
    return datetime.datetime.fromtimestamp(time.time() + 2, datetime.timezone.utc).isoformat()


def test_a_date(server):
    with living(server, expires="2099-01-01T00:00:00Z") as box:
        assert box.get()["expiresAt"] == "2099-01-01T00:00:00Z"
        wait_until(lambda: patch(box, expires=soon()).status == 200, 30, "its date is set")
        box.wait_status("gone")


# --- idle ---


def test_an_idle_one_stops(server):
    with living(server, idleTimeout="1h") as box:
        box.spawn("sleep 1000")  # runs, and uses nothing
        set_life(box, idleTimeout=1)
        box.wait_status("stopped")
        assert reasons(box) == ["Sandbox expired: idleTimeout of 1s is over; it is stopped"]
        assert box.get()["events"][-1]["message"] == "Sandbox stopped: it was idle"
        set_life(box, idleTimeout=None)
        box.start()
        assert box.run("echo here") == "here"


def test_a_stopped_one_is_idle_too(server):
    with living(server, onExpire="delete") as box:
        box.stop()
        set_life(box, idleTimeout=1)
        box.wait_status("gone")


def test_looking_at_it_is_no_use(server):
    with living(server, wait=False, idleTimeout=1) as box:
        def stopped():
            box.request("GET", "/metrics")
            server.list()
            return box.status() == "stopped"

        wait_until(stopped, 60, "it stops while it is looked at")


HOLD_S = 5  # idle time-outs are two


def held_open(server, box, path):
    """An answer that does not end."""
    connection = server.connection(timeout=60)
    connection.request("GET", box.base + path, headers={"Authorization": f"Bearer {server.key}"})
    answer = connection.getresponse()
    assert answer.status == 200
    return contextlib.closing(connection)


# Both say that they have begun, and end when they may.
COMMAND = "touch /tmp/begun; until [ -e /tmp/go ]; do sleep 0.5; done; echo done"
SLOW_SERVER = """
import http.server, os, time
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        open("/tmp/begun", "w").close()
        while not os.path.exists("/tmp/go"):
            time.sleep(0.5)
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"slow")
http.server.HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


def use(server, kind, box, stack):
    """Keeps a sandbox in use, in one of the ways there are, until the stack is closed."""
    if kind == "work":
        box.spawn("exec python3 -c 'while True: pass'")
    elif kind == "stream":
        pid = box.spawn("sleep 1000")
        stack.enter_context(held_open(server, box, f"/process/{pid}/logs/stream"))
    elif kind == "watch":
        stack.enter_context(held_open(server, box, "/watch/filesystem/workspace"))
    elif kind == "log":
        stack.enter_context(held_open(server, box, "/logs?follow=true"))
    elif kind == "terminal":
        stack.enter_context(contextlib.closing(Terminal(server, box.name)))
    elif kind == "port":
        box.write("/tmp/serve.py", SLOW_SERVER)
        answer = box.request("POST", "/process", {"command": "python3 /tmp/serve.py",
                                                  "waitForPorts": [8000]}, timeout=60)
        assert answer.status == 200, answer


@contextlib.contextmanager
def group_of(server, count, **lifecycle):
    """The sandboxes of a group that has that lifecycle."""
    name = f"g-{uuid.uuid4().hex[:8]}"
    answer = server.request("POST", "/v0/groups", {"name": name, "count": count,
                                                   "spec": {"lifecycle": lifecycle}})
    assert answer.status == 202, answer
    try:
        yield name, [server.sandbox(member["id"]) for member in answer.json()["sandboxes"]]
    finally:
        assert server.request("DELETE", f"/v0/groups/{name}").status in (202, 404)
        wait_until(lambda: server.request("GET", f"/v0/groups/{name}").status == 404, 30, "it goes")


def test_what_is_in_use_is_not_idle(server):
    """A command that somebody waits for, a request to a port, a stream of output, a watch, a terminal,
    a log that is followed, a process in the background that works, and one in a sandbox of the same
    group: all at once, to save time."""
    kinds = ("command", "port", "stream", "watch", "terminal", "log", "work")
    with contextlib.ExitStack() as boxes, concurrent.futures.ThreadPoolExecutor() as pool:
        made = {kind: boxes.enter_context(living(server, idleTimeout="1h")) for kind in kinds}
        _, (made["group"], working) = boxes.enter_context(group_of(server, 2, idleTimeout="1h"))
        for box in (made["group"], working):
            box.wait_status("running")
        pid = working.spawn("exec python3 -c 'while True: pass'")
        with contextlib.ExitStack() as held:
            for kind, box in made.items():
                use(server, kind, box, held)
            asked = pool.submit(made["port"].request, "GET", "/port/8000/", timeout=120)
            command = pool.submit(made["command"].run, COMMAND, timeout=120)
            for kind in ("port", "command"):
                wait_until(lambda: made[kind].request("GET", "/filesystem/tmp/begun").status == 200,
                           60, f"{kind} has begun")
            for box in (working, *made.values()):
                set_life(box, idleTimeout="2s")
            begin = time.monotonic()
            wait_until(lambda: time.monotonic() - begin > HOLD_S, 60, "it was long enough")
            for kind, box in made.items():
                assert box.status() == "running", kind
            for kind in ("port", "command"):
                made[kind].write("/tmp/go", "")
            assert (asked.result().status, asked.result().text) == (200, "slow")
            assert command.result() == "done"
            assert working.request("POST", f"/process/{pid}/kill").status == 200
            for kind in ("stream", "watch", "log", "terminal"):
                assert "idleSince" not in made[kind].get(), kind
        for kind, box in made.items():
            if kind != "work":
                box.wait_status("stopped", deadline=60)
        assert made["work"].status() == "running"


# --- groups ---


def test_groups_end_together(server):
    with group_of(server, 3, onExpire="stop") as (_, boxes):
        for box in boxes:
            box.wait_status("running")
        set_life(boxes[1], ttl="1s")
        for box in boxes:
            box.wait_status("stopped")
            assert reasons(box) == ["Sandbox expired: ttl of 1s is over; it is stopped"]
    with group_of(server, 2, ttl="1s") as (name, boxes):
        wait_until(lambda: server.request("GET", f"/v0/groups/{name}").status == 404, 60, "its end")
        assert [box.status() for box in boxes] == [None, None]


# --- other ways to have one ---


def test_a_clone_has_its_sources_life(server):
    with living(server, ttl="1h", maxAge="2h") as box:
        same = clone(box)
        other = clone(box, spec={"lifecycle": {"idleTimeout": "5m"}})
        try:
            assert same.get()["spec"]["lifecycle"] == {"ttl": "1h", "maxAge": "2h"}
            assert other.get()["spec"]["lifecycle"] == {"idleTimeout": "5m"}
        finally:
            remove(same)
            remove(other)


def test_the_command_line(server):
    name = f"cli-{uuid.uuid4().hex[:8]}"
    made = server.cli("sandbox", "create", "--name", name, "--ttl", "1h", "--idle-timeout", "30m",
                      "--max-age", "7d", "--on-expire", "stop", "--wait")
    assert made.returncode == 0, made
    box = server.sandbox(name)
    try:
        assert box.get()["spec"]["lifecycle"] == {"ttl": "1h", "idleTimeout": "30m", "maxAge": "7d",
                                                  "onExpire": "stop"}
        shown = server.cli("sandbox", "get", name).stdout
        assert "TTL        1h\n" in shown and "Expires    20" in shown
        changed = server.cli("sandbox", "update", name, "--ttl", "none", "--idle-timeout", "10m",
                             "--on-expire", "none")
        assert changed.returncode == 0, changed
        assert box.get()["spec"]["lifecycle"] == {"idleTimeout": "10m", "maxAge": "7d"}
        wrong = server.cli("sandbox", "update", name, "--ttl", "soon")
        assert wrong.returncode == 2 and "spec.lifecycle.ttl" in wrong.stderr, wrong
        server.cli("sandbox", "update", name, "--ttl", "1s")
        gone = server.cli("sandbox", "wait", name, "--status", "deleted")
        assert gone.returncode == 0, gone
    finally:
        remove(box)


@pytest.mark.parametrize("lifecycle, code, named", [
    ({"ttl": "0"}, "INVALID_DURATION", "spec.lifecycle.ttl"),
    ({"ttl": -1}, "INVALID_DURATION", "spec.lifecycle.ttl"),
    ({"idleTimeout": "3651d"}, "INVALID_DURATION", "from 1s to 3650d"),
    ({"maxAge": "1 day"}, "INVALID_DURATION", "spec.lifecycle.maxAge"),
    ({"expires": "2001-01-01T00:00:00Z"}, "INVALID_ARGUMENT", "is past"),
    ({"expires": "tomorrow"}, "INVALID_ARGUMENT", "spec.lifecycle.expires"),
    ({"onExpire": "sleep"}, "INVALID_ARGUMENT", "none of"),
    ({"idle": "1h"}, "UNKNOWN_FIELD", "idle"),
    ({"ttl": True}, "INVALID_ARGUMENT", "spec.lifecycle.ttl"),
    ([], "INVALID_ARGUMENT", "spec.lifecycle"),
])
def test_what_is_refused(server, lifecycle, code, named):
    answer = server.request("POST", "/v0/sandbox", {"spec": {"lifecycle": lifecycle}})
    assert (answer.status, answer.error()) == (400, code), answer
    assert named in answer.json()["error"]["message"]


# --- Blaxel's ---


def blaxel(server, method, name="", body=None):
    answer = server.request(method, f"/v0/sandboxes{name and '/'}{name}", body)
    assert answer.status == 200, answer
    return answer.json()


def make_blaxel(server, **spec):
    name = f"bl-{uuid.uuid4().hex[:8]}"
    blaxel(server, "POST", body={"metadata": {"name": name}, "spec": spec})
    return server.sandbox(name)


def test_blaxels_ttl(server):
    box = make_blaxel(server, runtime={"ttl": "1h"})
    try:
        said = blaxel(server, "GET", box.name)
        assert 3000 < said["expiresIn"] <= 3600 and said["lastUsedAt"]
        end = stamp(box.get()["metadata"]["createdAt"]) + 3600
        assert abs(stamp(box.get()["expiresAt"]) - end) <= 2
        # A whole object that says the same of its end changes nothing about it.
        set_life(box, ttl="30m")
        said["metadata"]["labels"] = {"a": "b"}
        said = blaxel(server, "PUT", box.name, said)
        assert said["expiresIn"] <= 1800 and box.get()["spec"]["lifecycle"]["ttl"] == "30m"
        set_life(box, ttl=None)
        said["spec"]["runtime"]["ttl"] = "24h"
        assert blaxel(server, "PUT", box.name, said)["expiresIn"] > 80000
        said["spec"]["runtime"]["ttl"] = ""
        assert "expiresIn" not in blaxel(server, "PUT", box.name, said)

        def dated():
            said["spec"]["runtime"]["expires"] = soon()
            answer = server.request("PUT", f"/v0/sandboxes/{box.name}", said)
            return answer.status in (200, 404)  # it may be gone when it is to be shown

        wait_until(dated, 30, "its date is set")
        box.wait_status("gone")
    finally:
        remove(box)


def test_blaxels_policies(server):
    policies = [{"type": "ttl-idle", "value": "2s", "action": "delete"},
                {"type": "ttl-max-age", "value": "2h", "action": "delete"}]
    box = make_blaxel(server, lifecycle={"expirationPolicies": policies[1:]})
    try:
        said = blaxel(server, "GET", box.name)
        said["spec"]["lifecycle"]["expirationPolicies"] = policies
        assert 7000 < said["expiresIn"] <= 7200
        assert blaxel(server, "PUT", box.name, said)["expiresIn"] <= 2
        box.wait_status("gone")
    finally:
        remove(box)
    answer = server.request("POST", "/v0/sandboxes", {"spec": {"lifecycle": {
        "expirationPolicies": [{"type": "ttl-idle", "value": "2s", "action": "pause"}]}}})
    assert answer.status == 400 and answer.json()["error"] == "INVALID_ARGUMENT", answer


# --- restarts ---


def test_what_expired_while_the_server_was_down(server_factory):
    server = server_factory()
    old = server.create(lifecycle={"ttl": "1h"})
    idle = server.create(lifecycle={"idleTimeout": "2s", "onExpire": "delete"}, enabled=False)
    kept = server.create(lifecycle={"ttl": "1h"})
    end = stamp(kept.get()["expiresAt"])
    set_life(old, ttl="3s")  # it runs by now: a start that a crash interrupts would count anew
    server.kill("supervisor")
    down = time.monotonic()
    wait_until(lambda: time.monotonic() - down > 4, 60, "the time is over")
    server.start()
    for box in (old, idle):
        assert box.status() in (None, "deleting")
        box.wait_status("gone")
    assert kept.status() == "running"
    assert abs(stamp(kept.get()["expiresAt"]) - end) <= 2
    assert server.leaks() == ""


def test_kill_9_changes_no_end(server_factory):
    server = server_factory("--metrics-interval", "1")
    with living(server, ttl="1h") as long, living(server) as short:
        with living(server) as busy:
            busy.spawn("exec python3 -c 'while True: pass'")
            set_life(busy, idleTimeout="4s")
            set_life(short, idleTimeout="4s")
            end = stamp(long.get()["expiresAt"])
            for _ in range(2):
                before = server.kill("cellad")
                server.wait_recovered(before, "cellad")
            assert abs(stamp(long.get()["expiresAt"]) - end) <= 2
            short.wait_status("stopped", deadline=60)
            assert busy.status() == "running"
            # In the middle of an end, which is then finished by the next one.
            set_life(busy, ttl="1s")
            wait_until(lambda: busy.status() != "running", 60, "its end has begun")
            before = server.kill("cellad", "warden")
            server.wait_recovered(before, "cellad", "warden")
            busy.wait_status("gone", deadline=60)
    assert server.leaks() == ""
