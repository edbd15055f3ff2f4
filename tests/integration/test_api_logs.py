# SPDX-License-Identifier: Apache-2.0
"""A sandbox's log: its own life and the output of its processes, by level, by time, and live."""

import contextlib
import datetime
import json
import threading
import time

import pytest

from cella_server import wait_until


def logs(box, query=""):
    answer = box.request("GET", f"/logs{query}")
    assert answer.status == 200, answer
    assert list(answer.json()) == ["logs"]
    return answer.json()["logs"]


def messages(box, query=""):
    return [entry["message"] for entry in logs(box, query)]


@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    yield made
    made.delete()


class Follower:
    """Reads a followed log on a thread of its own."""

    def __init__(self, box, query="", accept=None):
        self.connection = box.server.connection(timeout=120)
        fields = {"Authorization": f"Bearer {box.server.key}"}
        if accept:
            fields["Accept"] = accept
        self.connection.request("GET", f"{box.base}/logs?follow=true{query}", headers=fields)
        self.answer = self.connection.getresponse()
        assert self.answer.status == 200
        self.lines = []
        self.thread = threading.Thread(target=self._read, daemon=True)
        self.thread.start()

    def _read(self):
        with contextlib.suppress(OSError, ValueError, AttributeError):
            for line in self.answer:
                self.lines.append(line.decode())

    def messages(self):
        return [json.loads(line)["message"] for line in list(self.lines)]

    def shows(self, message):
        wait_until(lambda: message in self.messages(), 60, lambda: f"{message} in {self.lines}")

    def ended(self):
        self.thread.join(60)
        return not self.thread.is_alive()

    def close(self):
        self.connection.sock and self.connection.sock.shutdown(2)
        self.connection.close()
        self.thread.join(10)


def test_its_life_as_the_seed_has_it(server):
    box = server.create()
    try:
        wait_until(lambda: messages(box) == ["Sandbox created successfully", "Starting sandbox...",
                                             "Sandbox started"], 10, lambda: messages(box))
        for entry in logs(box):
            assert list(entry)[:3] == ["timestamp", "level", "message"]
            assert entry["level"] == "info" and entry["source"] == "sandbox"
            parsed = datetime.datetime.strptime(entry["timestamp"], "%Y-%m-%dT%H:%M:%SZ")
            parsed = parsed.replace(tzinfo=datetime.timezone.utc).timestamp()
            assert abs(parsed - time.time()) < 600 and parsed == entry["unixMs"] // 1000
        box.stop()
        assert messages(box)[3:] == ["Stopping sandbox...", "Sandbox stopped successfully"]
    finally:
        box.delete()
    assert box.request("GET", "/logs").error() == "SANDBOX_NOT_FOUND"


def test_output_of_processes(box):
    box.run("echo to stdout; echo to stderr >&2; printf 'no line end'", name="talker")
    mine = [entry for entry in logs(box, "?source=process") if entry.get("process") == "talker"]
    assert {(entry["level"], entry["stream"], entry["message"]) for entry in mine} == {
        ("info", "stdout", "to stdout"), ("error", "stderr", "to stderr"),
        ("info", "stdout", "no line end")}
    assert all(entry["source"] == "process" and entry["pid"] > 0 for entry in mine)


def test_levels(box):
    box.run("echo fine; echo bad >&2")
    assert "fine" in messages(box, "?level=info&tail=1000")
    assert "fine" in messages(box, "?level=debug&tail=1000")
    for level in ("warn", "warning", "error"):
        shown = logs(box, f"?level={level}&tail=1000")
        assert "bad" in [entry["message"] for entry in shown]
        assert {entry["level"] for entry in shown} <= {"warn", "error"}


def test_tail(box):
    box.run("seq -f 'number %.0f' 1 500")
    assert len(logs(box)) == 100
    assert messages(box, "?tail=3") == ["number 498", "number 499", "number 500"]
    assert logs(box, "?tail=0") == []
    many = messages(box, "?tail=10000&source=process")
    assert [m for m in many if m.startswith("number ")] == [f"number {n}" for n in range(1, 501)]


def test_lines_of_processes_are_in_the_order_of_time(box):
    done = threading.Barrier(3)

    def talk(name):
        box.run(f"for i in 1 2 3 4 5; do echo {name} $i; sleep 0.1; done", name=name)
        done.wait(60)

    threads = [threading.Thread(target=talk, args=(name,)) for name in ("left", "right")]
    for thread in threads:
        thread.start()
    done.wait(60)
    for thread in threads:
        thread.join()
    entries = logs(box, "?tail=1000&source=process")
    assert [e["unixMs"] for e in entries] == sorted(e["unixMs"] for e in entries)
    for name in ("left", "right"):
        times = [e["unixMs"] for e in entries if e["process"] == name]
        assert len(times) == 5
        assert len(set(times)) >= 2, "lines have times of their own"


def test_since(box):
    box.run("echo early")
    between = max(entry["unixMs"] for entry in logs(box)) + 50
    wait_until(lambda: time.time() * 1000 > between, 10, "later")
    stamp = datetime.datetime.fromtimestamp(between / 1000, datetime.timezone.utc)
    box.run("echo late")
    since = stamp.isoformat(timespec="milliseconds").replace("+00:00", "Z")
    shown = messages(box, f"?since={since}&tail=1000")
    assert "late" in shown and "early" not in shown
    assert {"early", "late"} <= set(messages(box, "?since=1h&tail=1000"))


def test_strange_lines(box):
    box.run(r"printf 'bytes \377\376\n'; printf '\033[31mred\n'; printf 'nul \000 nul\n';"
            " head -c 40000 /dev/zero | tr '\\0' x; echo", name="strange")
    mine = [entry for entry in logs(box, "?tail=1000") if entry.get("process") == "strange"]
    assert mine[0]["message"] == "bytes \ufffd\ufffd"
    assert mine[0]["messageBase64"] == "Ynl0ZXMg//4="
    assert mine[1]["message"] == "\x1b[31mred"
    assert mine[2]["message"] == "nul \0 nul"
    assert mine[3]["message"] == "x" * 16384, "a long line is cut"


def test_a_flood_stays_within_bounds(box):
    box.run("yes 0123456789012345678901234567890123456789 | head -c 20M", timeout=60)
    shown = messages(box, "?tail=10000&source=process")
    assert len(shown) == 10000 and shown[-2].startswith("0123456789")


@pytest.mark.parametrize("query, word", [
    ("?tail=-1", "tail"), ("?tail=x", "tail"), ("?tail=10001", "tail"), ("?level=loud", "error"),
    ("?since=whenever", "since"), ("?follow=perhaps", "follow"), ("?source=elsewhere", "source"),
])
def test_bad_questions(box, query, word):
    answer = box.request("GET", f"/logs{query}")
    assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT"), answer
    assert word in answer.json()["error"]["message"]


def test_out_of_memory_is_told(server_factory):
    server = server_factory("--metrics-interval", "1")
    box = server.create(resources={"memory": "64Mi"})
    box.python("b = []\nwhile True: b.append(b'x' * (4 << 20))\n", timeout=60)
    wait_until(lambda: any("Out of memory" in e["message"] and e["level"] == "warn"
                           for e in logs(box)), 30, lambda: logs(box))
    # What was told once is told again by the next server. (The log is stored when there is time for
    # it: before what is acknowledged later.)
    server.create(enabled=False)
    before = [e for e in logs(box, "?tail=1000") if e["source"] == "sandbox"]
    pids = server.kill("cellad")
    server.wait_recovered(pids, "cellad")
    after = [e for e in logs(box, "?tail=1000") if e["source"] == "sandbox"]
    assert after == before
    # … and output too, which the sandbox itself keeps.
    box.run("echo still there")
    pids = server.kill("cellad")
    server.wait_recovered(pids, "cellad")
    assert "still there" in messages(box)


def test_following(server):
    box = server.create()
    box.run("echo before")
    follower = Follower(box)
    try:
        assert follower.answer.headers["Content-Type"] == "application/x-ndjson"
        follower.shows("before")
        pid = box.spawn("echo first; printf half; "
                        "while [ ! -e /tmp/go ]; do sleep 0.05; done; echo ' and half'")
        follower.shows("first")
        assert "half" not in follower.messages(), "a line is told when it is whole"
        box.write("/tmp/go", "")
        follower.shows("half and half")
        box.request("POST", f"/process/{pid}/kill")
        box.run("printf 'last words'")
        follower.shows("last words")
        box.stop()
        follower.shows("Sandbox stopped successfully")
        box.start()
        box.run("echo a new life")
        follower.shows("a new life")
        told = follower.messages()
        assert told.count("first") == told.count("before") == told.count("Sandbox started") - 1 == 1
    finally:
        box.delete()
    assert follower.ended(), "with the sandbox"
    follower.close()


def test_head_has_an_end(box):
    answer = box.request("HEAD", "/logs?follow=true")
    assert (answer.status, answer.body) == (200, b"")


def test_following_as_events(box):
    box.run("echo for events")
    follower = Follower(box, "&tail=1", accept="text/event-stream")
    try:
        assert follower.answer.headers["Content-Type"] == "text/event-stream"
        wait_until(lambda: len(follower.lines) >= 2, 30, "an event")
        assert follower.lines[0].startswith("data: {") and follower.lines[1] == "\n"
        assert json.loads(follower.lines[0][6:])["message"]
    finally:
        follower.close()


def test_only_so_many_follow(server):
    box = server.create()
    followers = []
    try:
        followers = [Follower(box, "&tail=0") for _ in range(16)]
        answer = box.request("GET", "/logs?follow=true")
        assert (answer.status, answer.error()) == (429, "LIMIT_EXCEEDED")
        followers.pop().close()
        followers.append(again(box))
    finally:
        for follower in followers:
            follower.close()
        box.delete()


def again(box):
    """Another follower as soon as there is room for it."""
    made = []

    def attempt():
        with contextlib.suppress(AssertionError):
            made.append(Follower(box, "&tail=0"))
        return made

    wait_until(attempt, 30, "room")
    return made[0]


def test_a_stopped_sandbox_and_its_clone_tell_their_own(server):
    box = server.create(enabled=False)
    try:
        assert messages(box) == ["Sandbox created successfully"]
        assert logs(box, "?source=process") == []
    finally:
        box.delete()
