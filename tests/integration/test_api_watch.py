# SPDX-License-Identifier: Apache-2.0
"""/watch/filesystem/{path}: what happens to files, as it happens, and nothing lost."""

import collections
import contextlib
import json
import socket
import threading
import time
import urllib.parse

import pytest

from cella_server import PATIENCE

Event = collections.namedtuple("Event", "op path error")


class Watch:
    """A stream of events, read by a thread of its own."""

    def __init__(self, sandbox, path, headers=None, **query):
        self.connection = sandbox.server.connection(60)
        target = f"{sandbox.base}/watch/filesystem{urllib.parse.quote(path, safe='/*')}"
        if query:
            target += "?" + urllib.parse.urlencode(query)
        self.connection.request("GET", target, None,
                                {"Authorization": f"Bearer {sandbox.server.key}", **(headers or {})})
        self.socket = self.connection.sock
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200, self.answer.read()
        self.first = self.answer.readline()  # the watch stands
        self.events, self.changed, self.over = [], threading.Condition(), False
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            for line in self.answer:
                body = line.strip()
                if body.startswith(b"data: "):
                    body = body[6:]
                if not body.startswith(b"{"):
                    continue
                event = json.loads(body)
                if event["op"] == "KEEPALIVE":
                    continue
                whole = event["path"].rstrip("/") + "/" + event["name"] if event["name"] else event["path"]
                with self.changed:
                    self.events.append(Event(event["op"], whole, event["error"]))
                    self.changed.notify_all()
        with self.changed:
            self.over = True
            self.changed.notify_all()

    def wait(self, check, deadline=30):
        """Until check(events) is true; gives the events."""
        end = time.monotonic() + deadline * PATIENCE
        with self.changed:
            while not check(self.events):
                left = end - time.monotonic()
                assert left > 0, f"not among {self.events[-50:]} ({len(self.events)})"
                self.changed.wait(min(left, 1))
            return list(self.events)

    def wait_for(self, op, path, deadline=30):
        return self.wait(lambda events: any(e[:2] == (op, path) for e in events), deadline)

    def close(self):
        with contextlib.suppress(OSError):
            self.socket.shutdown(socket.SHUT_RDWR)  # the reader wakes up
        self.thread.join(timeout=10)
        self.connection.close()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def told(events):
    return [e[:2] for e in events]


def test_every_kind_of_event(sandbox):
    sandbox.run("mkdir -p /srv/w/sub && echo 1 > /srv/w/old")
    with Watch(sandbox, "/srv/w") as watch:
        assert json.loads(watch.first) == {"op": "KEEPALIVE"}
        assert watch.answer.headers["Content-Type"] == "application/x-ndjson"
        sandbox.run("cd /srv/w; echo 2 >> old; chmod 600 old; mv old new; rm new; mkdir d; "
                    "echo deep > sub/unseen; : > last")
        events = told(watch.wait_for("CREATE", "/srv/w/last"))
        assert events == [("WRITE", "/srv/w/old"), ("CHMOD", "/srv/w/old"), ("RENAME", "/srv/w/old"),
                          ("CREATE", "/srv/w/new"), ("REMOVE", "/srv/w/new"), ("CREATE", "/srv/w/d"),
                          ("CREATE", "/srv/w/last")]


def test_files_written_by_the_api(sandbox):
    sandbox.run("mkdir -p /srv/w")
    with Watch(sandbox, "/srv/w/**") as watch:
        sandbox.write("/srv/w/f", b"1")
        sandbox.write("/srv/w/f", b"2")
        answer = sandbox.request("PUT", "/filesystem/tree/srv/w", {"files": {"f": "3", "d/g": "4"}})
        assert answer.status == 200, answer
        sandbox.run("touch /srv/w/last")
        events = told(watch.wait_for("CREATE", "/srv/w/last"))
        assert ("CREATE", "/srv/w/f") == events[0]
        assert events.count(("WRITE", "/srv/w/f")) == 2
        assert ("CREATE", "/srv/w/d/g") in events
        assert not any("cella" in path for _, path in events), events


@pytest.mark.parametrize("how", ["suffix", "encoded", "parameter"])
def test_recursive(sandbox, how):
    sandbox.run("mkdir -p /srv/w/a/b")
    path = {"suffix": "/srv/w/**", "encoded": "/srv/w/**", "parameter": "/srv/w"}[how]
    with Watch(sandbox, path, **({"recursive": "true"} if how == "parameter" else {})) as watch:
        sandbox.run("echo 1 > /srv/w/a/b/f; mkdir -p /srv/w/x/y/z; echo 2 > /srv/w/x/y/z/g")
        watch.wait_for("WRITE", "/srv/w/a/b/f")
        watch.wait_for("CREATE", "/srv/w/x/y/z/g")
        sandbox.run("mv /srv/w/x /srv/w/moved")
        watch.wait_for("RENAME", "/srv/w/x")
        watch.wait_for("CREATE", "/srv/w/moved/y/z/g")
        sandbox.run("echo 3 > /srv/w/moved/y/z/h; rm -r /srv/w/moved")
        watch.wait_for("CREATE", "/srv/w/moved/y/z/h")
        events = told(watch.wait_for("REMOVE", "/srv/w/moved"))
        assert ("REMOVE", "/srv/w/moved/y/z/h") in events
        sandbox.run("mkdir /srv/w/moved && touch /srv/w/moved/again")
        watch.wait_for("CREATE", "/srv/w/moved/again")


def test_ignore(sandbox):
    sandbox.run("mkdir -p /srv/w/node_modules /srv/w/src")
    with Watch(sandbox, "/srv/w", recursive="true", ignore="node_modules,*.log, src/gen") as watch:
        sandbox.run("cd /srv/w; touch node_modules/a x.log src/y.log; mkdir src/gen; touch src/gen/z; "
                    "mkdir node_modules/deep; : > src/last")
        events = told(watch.wait_for("CREATE", "/srv/w/src/last"))
        assert events == [("CREATE", "/srv/w/src/last")]


def test_a_single_file_even_when_it_is_replaced(sandbox):
    sandbox.run("echo 1 > /srv/f; echo 1 > /srv/other")
    with Watch(sandbox, "/srv/f") as watch:
        sandbox.run("cd /srv; echo 2 > other; echo 2 > f; echo 3 > t; mv t f; rm f")
        events = told(watch.wait_for("REMOVE", "/srv/f"))
        assert {path for _, path in events} == {"/srv/f"}
        assert ("WRITE", "/srv/f") in events and ("CREATE", "/srv/f") in events


def test_server_sent_events(sandbox):
    sandbox.run("mkdir -p /srv/w")
    with Watch(sandbox, "/srv/w", {"Accept": "text/event-stream"}) as watch:
        assert watch.first == b": keepalive\n"
        assert watch.answer.headers["Content-Type"] == "text/event-stream"
        sandbox.run("touch /srv/w/f")
        watch.wait_for("CREATE", "/srv/w/f")


def test_names_that_are_no_utf8(sandbox):
    sandbox.run("mkdir -p /srv/w")
    with Watch(sandbox, "/srv/w") as watch:
        sandbox.python("open(b'/srv/w/f\\xff', 'w')")
        watch.wait(lambda events: any("\ufffd" in e.path for e in events))


def test_a_burst_in_new_nested_directories(sandbox):
    """Every one of 5000 files is told, or an overflow is."""
    sandbox.run("mkdir -p /srv/w")
    with Watch(sandbox, "/srv/w/**") as watch:
        done = sandbox.python("""
import os
for d in range(100):
    path = f"/srv/w/{d % 7}/{d % 13}/{d}"
    os.makedirs(path)
    for f in range(50):
        os.close(os.open(f"{path}/{f}", os.O_CREAT | os.O_WRONLY))
open("/srv/w/last", "w").close()
""")
        assert done.exit_code == 0, done
        wanted = {f"/srv/w/{d % 7}/{d % 13}/{d}/{f}" for d in range(100) for f in range(50)}

        def complete(events):
            return any(e.op == "OVERFLOW" for e in events) or \
                wanted <= {e.path for e in events if e.op == "CREATE"}

        watch.wait(complete, 60)


def test_a_reader_that_does_not_read_gets_an_overflow(sandbox):
    """What is not taken is dropped, within bounds, and told."""
    sandbox.run("mkdir -p /srv/w")
    target = f"{sandbox.base}/watch/filesystem/srv/w"
    connection = sandbox.server.connection(60)
    connection.request("GET", target, None, {"Authorization": f"Bearer {sandbox.server.key}"})
    answer = connection.getresponse()
    answer.readline()
    done = sandbox.python("""
import os
name = "/srv/w/" + "n" * 200
for i in range(50000):
    os.close(os.open(f"{name}{i % 500}", os.O_CREAT | os.O_WRONLY))
    os.unlink(f"{name}{i % 500}")
""", timeout=100)
    assert done.exit_code == 0, done
    sandbox.run("touch /srv/w/last")
    found = False
    for line in answer:
        event = json.loads(line)
        found = found or event["op"] == "OVERFLOW"
        if event["op"] == "KEEPALIVE" or (event["op"] == "CREATE" and event["name"] == "last") or found:
            break
    assert found
    connection.close()


def test_the_end_of_the_directory_and_of_the_sandbox(sandbox):
    sandbox.run("mkdir -p /srv/w /srv/v")
    with Watch(sandbox, "/srv/w") as one, Watch(sandbox, "/srv/v") as two:
        sandbox.run("rmdir /srv/w")
        one.wait(lambda events: ("REMOVE", "/srv/w") in told(events))
        one.wait(lambda events: one.over)
        sandbox.stop()
        two.wait(lambda events: two.over)
        assert two.events[-1].op == "OVERFLOW"
    answer = sandbox.request("GET", "/watch/filesystem/srv/v")
    assert (answer.status, answer.error()) == (409, "NOT_RUNNING")


def test_refused(shared_sandbox):
    for path, status, code in (("/none", 404, "FILE_NOT_FOUND"), ("/../x", 400, "INVALID_PATH"),
                               ("/srv?ignore=" + "x" * 9000, 400, "INVALID_ARGUMENT"),
                               ("/srv?recursive=maybe", 400, "INVALID_ARGUMENT")):
        answer = shared_sandbox.request("GET", "/watch/filesystem" + path)
        assert (answer.status, answer.error()) == (status, code), answer


def test_a_limited_number_of_watches_and_their_end(sandbox):
    sandbox.run("mkdir -p /srv/w")
    watches = [Watch(sandbox, "/srv/w") for _ in range(16)]
    answer = sandbox.request("GET", "/watch/filesystem/srv/w")
    assert (answer.status, answer.error()) == (429, "LIMIT_EXCEEDED"), answer
    for watch in watches:
        watch.close()
    end = time.monotonic() + 30 * PATIENCE
    while True:  # places are free again once the agent has seen them hang up
        try:
            Watch(sandbox, "/srv/w").close()
            break
        except AssertionError:
            assert time.monotonic() < end
            time.sleep(0.05)


def test_another_workspace_is_not_watched(server, sandbox):
    answer = server.request("GET", f"/elsewhere/sandbox/{sandbox.name}/watch/filesystem/srv")
    assert answer.status in (403, 404), answer
