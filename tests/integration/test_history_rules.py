# SPDX-License-Identifier: Apache-2.0
"""spec.history: what a sandbox's history keeps, and what becomes of files when that changes."""

import contextlib
import re

import pytest

from cella_server import Server, wait_until

USUAL = {"enabled": True, "maxFileSize": "10Mi", "ignore": ["@default"]}


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.close()


@contextlib.contextmanager
def made(server, **history):
    sandbox = server.create(history=history)
    try:
        yield sandbox
    finally:
        sandbox.delete()


@contextlib.contextmanager
def cloned(server, box, **history):
    answer = box.request("POST", "/clone", {"spec": {"history": history}})
    assert answer.status in (200, 201, 202), answer
    clone = server.sandbox(answer.json()["metadata"]["name"])
    clone.wait_status("running")
    try:
        yield clone
    finally:
        clone.delete()


def run(box, command):
    done = box.request("POST", "/process", {"command": command, "waitForCompletion": True}).json()
    assert done["exitCode"] == 0, done
    assert re.fullmatch("exec_[0-9a-f]{8}", done["executionId"])
    return done["executionId"]


def commits(box):
    answer = box.request("GET", "/history")
    assert answer.status == 200, answer
    return answer.json()["history"]


def changed(box, start, end):
    answer = box.request("POST", "/diff", {"fromExecId": start, "toExecId": end})
    assert answer.status == 200, answer
    return set(answer.json()["diff"])


def rollback(box, execution):
    answer = box.request("POST", "/rollback", {"executionId": execution})
    assert answer.status == 200, answer
    return answer.json()


def rules(box):
    return box.get()["spec"]["history"]


def test_they_are_shown_and_kept_over_a_restart(server):
    with made(server, maxFileSize="1Ki", ignore=["@default", "dist", "*.log", "data/raw"]) as box:
        said = {"enabled": True, "maxFileSize": "1Ki", "ignore": ["@default", "dist", "*.log", "data/raw"]}
        assert rules(box) == said
        run(box, "cd /workspace && mkdir -p dist data/raw other/data/raw node_modules && "
                 "touch dist/x a.log data/raw/x other/data/raw/x node_modules/x small && head -c 1025 /dev/zero > large")
        assert commits(box)[0]["files"] == ["data", "other/data/raw/x", "small"]
        before = server.pids()
        server.kill("cellad")
        server.wait_recovered(before, "cellad")
        assert rules(box) == said
        run(box, "cd /workspace && touch dist/y b.log more")
        assert commits(box)[0]["files"] == ["more"]


def test_nothing_said_is_the_usual(server, shared):
    assert rules(shared) == USUAL
    sent_back = shared.request("PATCH", "", {"spec": {"history": USUAL}})
    assert sent_back.status == 200 and sent_back.json()["spec"]["history"] == USUAL


def test_none_is_kept(server):
    with made(server, enabled=False) as box:
        execution = run(box, "echo 1 > /workspace/a")
        for method, path, body in (("GET", "/history", None), ("GET", "/diff", None),
                                   ("POST", "/rollback", {"executionId": execution})):
            answer = box.request(method, path, body)
            assert answer.status == 409 and answer.error() == "HISTORY_DISABLED", answer
            assert "spec.history.enabled" in answer.text
        assert box.read("/workspace/a") == b"1\n"
        assert not (server.data / "history" / box.get()["metadata"]["id"]).exists()
        # Switched on, it begins with what is there.
        assert box.request("PATCH", "", {"spec": {"history": {"enabled": True}}}).status == 200
        first = run(box, "echo 2 > /workspace/b")
        run(box, "echo 3 > /workspace/a")
        rollback(box, first)
        assert box.read("/workspace/a") == b"1\n"
        # … and off again, with what was kept.
        assert box.request("PATCH", "", {"spec": {"history": {"enabled": False}}}).status == 200
        assert box.request("GET", "/history").error() == "HISTORY_DISABLED"
        with cloned(server, box) as clone:
            assert rules(clone)["enabled"] is False
            assert not (server.data / "history" / clone.get()["metadata"]["id"]).exists()


def test_what_is_left_out_from_now_on_has_not_gone(server, shared):
    first = run(shared, "cd /workspace && rm -rf * && mkdir logs && echo 1 > logs/a.log && echo 1 > kept")
    with cloned(server, shared, ignore=["@default", "*.log"]) as clone:
        assert rules(clone) == {**USUAL, "ignore": ["@default", "*.log"]}
        second = run(clone, "cd /workspace && echo 2 > logs/a.log && echo 2 > kept")
        assert commits(clone)[0]["files"] == ["kept"] and changed(clone, first, second) == {"kept"}
        done = rollback(clone, first)
        assert done["status"] == "success" and done["files"] == ["kept"]
        assert clone.run("cd /workspace && cat kept logs/a.log").split() == ["1", "2"]
        run(clone, "rm /workspace/logs/a.log")
        rollback(clone, second)  # which has the file from before there was the rule
        assert clone.run("ls /workspace/logs") == ""
        # A clone of it that keeps them again says what has gone by then.
        with cloned(server, clone, ignore=["@default"]) as again:
            last = run(again, "echo 3 > /workspace/kept")
            assert changed(again, first, last) == {"kept", "logs/a.log"}
            rollback(again, first)
            assert again.run("cd /workspace && cat kept logs/a.log").split() == ["1", "1"]


def test_what_was_left_out_then_is_not_removed(server, shared):
    first = run(shared, "cd /workspace && rm -rf * && mkdir -p node_modules/x && echo 1 > node_modules/x/y && echo 1 > kept")
    with cloned(server, shared, ignore=[]) as clone:
        second = run(clone, "cd /workspace && echo 2 > node_modules/x/y && echo 2 > kept && echo new > new")
        assert set(commits(clone)[0]["files"]) == {"kept", "new", "node_modules/x/y"}
        rollback(clone, first)
        assert clone.run("cd /workspace && cat kept node_modules/x/y && ls").split() == ["1", "2", "kept", "node_modules"]
        third = run(clone, "rm -r /workspace/node_modules")
        assert changed(clone, second, third) == {"kept", "new", "node_modules/x/y"}
        rollback(clone, second)
        assert clone.run("cat /workspace/node_modules/x/y").strip() == "2"


def test_a_file_that_outgrows_the_limit(server):
    with made(server, maxFileSize="1000") as box:
        first = run(box, "cd /workspace && echo small > f && echo 1 > other")
        second = run(box, "cd /workspace && head -c 1001 /dev/zero > f && echo 2 > other")
        assert changed(box, first, second) == {"other"}
        done = rollback(box, first)
        assert done["status"] == "partial" and done["leftAloneCount"] == 1 and done["files"] == ["other"]
        assert [file["path"] for file in done["leftAlone"]] == ["f"]
        assert box.run("cd /workspace && stat -c %s f && cat other").split() == ["1001", "1"]
        # Nothing but that is left to do: nothing is done, and no commit is made of it.
        blocked = box.request("POST", "/rollback", {"executionId": first})
        assert blocked.status == 409 and blocked.error() == "ROLLBACK_BLOCKED" and "/workspace/f" in blocked.text, blocked
        assert commits(box)[0]["id"] == done["id"]
        assert commits(box)[0]["message"] == f"Rollback to {first}, 1 files left alone"
        third = run(box, "rm /workspace/f")
        assert changed(box, second, third) == {"f", "other"}
        assert rollback(box, first)["status"] == "success" and box.read("/workspace/f") == b"small\n"


def test_going_back_to_when_a_file_was_too_large(server):
    with made(server, maxFileSize="1000") as box:
        first = run(box, "cd /workspace && echo v1 > f")
        second = run(box, "cd /workspace && head -c 2000 /dev/zero > f")
        third = run(box, "cd /workspace && head -c 2000 /dev/zero > new")
        run(box, "cd /workspace && echo v4 > f && echo v4 > new && echo 4 > other")
        # What was in them then nobody knows: they stay as they are.
        done = rollback(box, third)
        assert done["status"] == "success" and done["files"] == ["other"], done
        assert box.run("cd /workspace && cat f new && ls").split() == ["v4", "v4", "f", "new"]
        rollback(box, second)  # when "new" was not there
        assert box.run("cd /workspace && cat f && ls").split() == ["v4", "f"]
        rollback(box, first)
        assert box.read("/workspace/f") == b"v1\n"


def test_those_of_a_group_and_of_a_pool(server):
    answer = server.request("POST", "/v0/groups", {"name": "rules", "spec": {"history": {"ignore": ["dist"]}},
                                                   "sandboxes": [{"name": "a"}]})
    assert answer.status == 202, answer
    assert server.request("GET", "/v0/groups/rules/sandbox/a").json()["spec"]["history"]["ignore"] == ["dist"]
    assert server.request("DELETE", "/v0/groups/rules").status in (200, 202)
    assert server.request("POST", "/v0/pools", {"name": "rules", "size": 1}).status == 201
    wait_until(lambda: server.request("GET", "/v0/pools/rules").json()["status"]["ready"] == 1, 30, "the pool to fill")
    try:
        with made(server, ignore=["dist"]) as box:
            assert server.request("GET", "/v0/pools/rules").json()["status"]["claimed"] == 1
            assert rules(box)["ignore"] == ["dist"]
            run(box, "cd /workspace && mkdir dist && touch dist/x node_modules")
            assert commits(box)[0]["files"] == ["node_modules"]
    finally:
        assert server.request("DELETE", "/v0/pools/rules").status in (200, 202, 204)


@pytest.mark.parametrize("history, code, word", [
    ({"enabled": "yes"}, "INVALID_ARGUMENT", "spec.history.enabled must be true or false"),
    ({"maxFileSize": "many"}, "INVALID_QUANTITY", "spec.history.maxFileSize"),
    ({"maxFileSize": "0"}, "INVALID_QUANTITY", "from 1 to 64Mi"),
    ({"maxFileSize": "65Mi"}, "INVALID_QUANTITY", "from 1 to 64Mi"),
    ({"ignore": "dist"}, "INVALID_ARGUMENT", "spec.history.ignore"),
    ({"ignore": [7]}, "INVALID_ARGUMENT", "spec.history.ignore[0] must be a pattern"),
    ({"ignore": [""]}, "INVALID_ARGUMENT", "spec.history.ignore[0] must be a pattern"),
    ({"ignore": ["dist", "a\0b"]}, "INVALID_ARGUMENT", "spec.history.ignore[1]"),
    ({"ignore": ["/etc"]}, "INVALID_ARGUMENT", "from /workspace or /home/user"),
    ({"ignore": ["dist/"]}, "INVALID_ARGUMENT", "ends with a slash"),
    ({"ignore": ["!dist"]}, "INVALID_ARGUMENT", "no way to say"),
    ({"ignore": ["**/x"]}, "INVALID_ARGUMENT", "two stars"),
    ({"ignore": ["[ab]"]}, "INVALID_ARGUMENT", "only * and ?"),
    ({"ignore": ["x" * 201]}, "INVALID_ARGUMENT", "201 bytes, and 200 are the most"),
    ({"ignore": [str(i) for i in range(101)]}, "INVALID_ARGUMENT", "at most 100 patterns"),
    ({"ignore": ["x" * 198 + str(i) for i in range(10, 40)]}, "INVALID_ARGUMENT", "4096 bytes"),
    ({"keep": True}, "UNKNOWN_FIELD", "spec.history"),
    (True, "INVALID_ARGUMENT", "spec.history"),
])
def test_bad_rules(server, shared, history, code, word):
    for answer in (server.request("POST", "/v0/sandbox", {"spec": {"history": history}}),
                   shared.request("POST", "/clone", {"spec": {"history": history}}),
                   shared.request("PATCH", "", {"spec": {"history": history}})):
        assert answer.status == 400 and answer.error() == code and word in answer.text, answer
    assert rules(shared) == USUAL


def test_by_the_command_line(server, shared):
    done = server.cli("sandbox", "create", "--name", "cli-rules", "--history-ignore", "dist", "--history-ignore", "*.log",
                      "--history-max-file-size", "1Mi", "--wait")
    assert done.returncode == 0, done
    box = server.sandbox("cli-rules")
    assert rules(box) == {"enabled": True, "maxFileSize": "1Mi", "ignore": ["@default", "dist", "*.log"]}
    assert server.cli("sandbox", "update", "cli-rules", "--no-history", "--history-ignore", "none").returncode == 0
    assert rules(box) == {"enabled": False, "maxFileSize": "1Mi", "ignore": []}
    assert "none is kept" in server.cli("sandbox", "get", "cli-rules").stdout
    box.delete()
    first = run(shared, "cd /workspace && rm -rf * && echo 1 > a && echo 1 > b")
    run(shared, "cd /workspace && rm a && mkfifo a && echo 2 > b")
    done = server.cli("rollback", shared.name, first)
    assert done.returncode == 0 and "left alone: 1 files" in done.stdout and "  a: left alone, since" in done.stdout, done
    blocked = server.cli("rollback", shared.name, first)
    assert blocked.returncode == 4 and "nothing was rolled back" in blocked.stderr, blocked


@pytest.fixture(scope="module")
def shared(server):
    sandbox = server.create()
    yield sandbox
    sandbox.delete()
