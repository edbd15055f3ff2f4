# SPDX-License-Identifier: Apache-2.0
"""Histories of sandboxes' files: commits of what executions change, diffs, the way back."""

import concurrent.futures
import re

import pytest

from cella_server import Server, wait_until


@pytest.fixture(scope="module")
def server():
    server = Server()
    yield server
    server.close()


@pytest.fixture()
def box(server):
    sandbox = server.create()
    yield sandbox
    sandbox.delete()


def history(box, query=""):
    answer = box.request("GET", "/history" + query)
    assert answer.status == 200, answer
    return answer.json()["history"]


def diff(box, start, end):
    answer = box.request("POST", "/diff", {"fromExecId": start, "toExecId": end})
    assert answer.status == 200, answer
    return answer.json()["diff"]


def rollback(box, execution):
    answer = box.request("POST", "/rollback", {"executionId": execution})
    assert answer.status == 200, answer
    return answer.json()


def run(box, command, **fields):
    """Runs it and gives its execution's id."""
    answer = box.request("POST", "/process", {"command": command, "waitForCompletion": True, **fields})
    assert answer.status == 200, answer
    done = answer.json()
    assert done["exitCode"] == 0, done
    assert re.fullmatch("exec_[0-9a-f]{8}", done["executionId"])
    return done["executionId"]


def test_as_the_seed_shows_it(box):
    box.write("/workspace/index.js", 'console.log("Version 1");')
    first = run(box, "true")
    box.write("/workspace/index.js", 'console.log("Version 2");\nconsole.log("New feature added!");')
    second = run(box, "true")
    commits = history(box)
    assert [c["id"] for c in commits] == [second, first, "unknown"]
    assert [c["files"] for c in commits] == [["index.js"], ["index.js"], ["README.md"]]
    assert [c["message"] for c in commits] == ["Update files for sandbox execution"] * 2 + ["Initial commit"]
    for commit in commits:
        assert re.fullmatch("[0-9a-f]{40}", commit["commitId"])
        assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", commit["timestamp"])
    text = diff(box, first, second)["index.js"]
    assert re.fullmatch(
        r'diff --git a/index\.js b/index\.js\nindex [0-9a-f]{7}\.\.[0-9a-f]{7} 100644\n--- a/index\.js\n'
        r'\+\+\+ b/index\.js\n@@ -1 \+1,2 @@\n-console\.log\("Version 1"\);\n\\ No newline at end of file\n'
        r'\+console\.log\("Version 2"\);\n\+console\.log\("New feature added!"\);\n'
        r'\\ No newline at end of file\n', text), text
    done = rollback(box, first)
    assert done["files"] == ["index.js"]
    assert box.read("/workspace/index.js") == b'console.log("Version 1");'
    assert history(box)[0]["id"] == done["id"]
    assert history(box)[0]["message"] == f"Rollback to {first}"
    rollback(box, second)  # which undoes it
    assert b"Version 2" in box.read("/workspace/index.js")


def test_what_changes_nothing_makes_no_commit_but_counts(box):
    first = run(box, "echo 1 > /workspace/a")
    quiet = run(box, "cat /workspace/a")
    touched = run(box, "touch /workspace/a; echo same > /tmp/elsewhere")
    last = run(box, "echo 2 > /workspace/a")
    assert [c["id"] for c in history(box)] == [last, first, "unknown"]
    assert diff(box, first, quiet) == {} and diff(box, quiet, touched) == {}
    assert "-1\n+2\n" in diff(box, touched, last)["a"]
    assert "-2\n+1\n" in diff(box, last, "python_run_" + quiet[5:])["a"]
    rollback(box, quiet)
    assert box.read("/workspace/a") == b"1\n"


def test_everything_comes_back(box):
    first = run(box, """cd /workspace && mkdir -p empty deep/er && echo x > deep/er/x &&
        printf '\\0\\1\\2' > binary && ln -s deep/er/x link && chmod 4750 binary && chown 12:34 deep &&
        echo odd > "$(printf 'a\\nb \\"c\\" \\377')" && echo -n > -f && git init -q nested 2>/dev/null;
        mkdir -p nested/.git && echo inner > nested/file && echo config > nested/.git/config &&
        mkdir -p node_modules/x && echo y > node_modules/x/y; echo home > /home/user/.notes || true""")
    before = box.exec("cd /workspace && find . -path ./node_modules -prune -o -path ./nested/.git -prune -o "
                      "-printf '%p %y %m %U %G %l\\n' | sort; md5sum binary deep/er/x nested/file").stdout
    run(box, """cd /workspace && rm -rf empty deep binary link -- -f && mkdir binary && echo z > link &&
        chmod 700 nested && echo 2 > nested/file && echo kept > node_modules/x/y && rm -f /home/user/.notes
        rm -f a*; echo new > other""")
    done = rollback(box, first)
    assert {"binary", "deep/er/x", "link", "other", "nested/file"} <= set(done["files"])
    after = box.exec("cd /workspace && find . -path ./node_modules -prune -o -path ./nested/.git -prune -o "
                     "-printf '%p %y %m %U %G %l\\n' | sort; md5sum binary deep/er/x nested/file").stdout
    assert after == before
    assert box.read("/workspace/node_modules/x/y") == b"kept\n"  # ignored, so left alone
    assert box.read("/workspace/nested/.git/config") == b"config\n"
    changed = diff(box, "unknown", first)
    assert "Binary files /dev/null and b/binary differ\n" in changed["binary"]
    assert not [path for path in changed if "node_modules" in path or ".git/" in path]


def test_what_was_never_committed_is_committed_before_a_rollback(box):
    first = run(box, "echo 1 > /workspace/a")
    box.write("/workspace/b", "never committed\n")
    done = rollback(box, first)
    assert "savedAs" in done and done["files"] == ["b"]
    assert box.request("GET", "/filesystem//workspace/b").status == 404
    again = rollback(box, done["savedAs"])
    assert again["files"] == ["b"] and box.read("/workspace/b") == b"never committed\n"


def test_what_history_does_not_keep_is_left_alone(box):
    first = run(box, "cd /workspace && echo small > f && ln -s f link && mkdir d && echo x > d/x && echo 1 > other")
    run(box, "cd /workspace && rm -r link d && echo 2 > other && mkfifo d && "
             "for large in f link; do head -c 11000000 /dev/zero > $large; done")
    done = rollback(box, first)
    assert done["status"] == "partial" and done["leftAloneCount"] == 4 and done["files"] == ["other"], done
    assert {file["path"] for file in done["leftAlone"]} == {"d", "d/x", "f", "link"}
    assert all("history does not keep" in file["reason"] for file in done["leftAlone"] if file["path"] != "d/x"), done
    assert box.run("cd /workspace && stat -c %s f link && test -p d && cat other").split() == ["11000000"] * 2 + ["1"]
    box.run("cd /workspace && rm f link d")
    rollback(box, first)
    assert box.run("cd /workspace && cat link d/x").split() == ["small", "x"]


def test_modes_and_owners_alone(box):
    shown = "cd /workspace && stat -c '%n %a %u' f d link && cat f"
    first = run(box, "cd /workspace && echo x > f && mkdir d && ln -s f link && chmod 4750 f && chown -h 12 d link")
    before = box.run(shown)
    run(box, "cd /workspace && chmod 4755 f && chmod 700 d && chown -h 0 d link")
    assert box.run(shown) != before
    rollback(box, first)
    assert box.run(shown) == before


def test_processes_that_nobody_waits_for(box):
    run(box, "true")
    process = box.request("POST", "/process", {"command": "echo later > /workspace/later"}).json()
    wait_until(lambda: box.request("GET", f"/process/{process['pid']}").json()["status"] == "completed", 30,
               "the process to end")
    assert [c["files"] for c in history(box)][0] == ["later"]
    assert history(box)[0]["id"] == process["executionId"]


def test_code_runs_are_executions(box):
    run(box, "true")
    answer = box.request("POST", "/code", {"language": "bash", "code": "echo code > /workspace/by-code"})
    assert answer.status == 200, answer
    assert history(box)[0]["files"] == ["by-code"]


def test_many_diffs_at_once(box):
    """More than are made at a time: all of them are."""
    first, second = run(box, "echo 1 > /workspace/a"), run(box, "echo 2 > /workspace/a")
    with concurrent.futures.ThreadPoolExecutor(12) as crowd:
        for made in crowd.map(lambda _: diff(box, first, second), range(24)):
            assert "-1\n+2\n" in made["a"]


def test_a_diff_of_more_than_is_shown_says_so(box):
    first = run(box, "true")
    many = run(box, "seq -w 2100 | while read n; do echo line $n > f$n; done")
    answer = box.request("POST", "/diff", {"fromExecId": first, "toExecId": many}).json()
    assert answer["truncated"] is True and len(answer["diff"]) == 2000
    assert all(f"+line {name[1:]}\n" in text for name, text in answer["diff"].items())
    large = run(box, "rm f*; seq 200000 > large; echo 1 > small")
    answer = box.request("POST", "/diff", {"fromExecId": first, "toExecId": large}).json()
    assert answer["truncated"] is True
    assert (1 << 20) - 1000 < len(answer["diff"]["large"]) <= 1 << 20 and answer["diff"]["small"].endswith("+1\n")
    whole = run(box, "rm large")
    answer = box.request("POST", "/diff", {"fromExecId": first, "toExecId": whole}).json()
    assert answer["diff"].keys() == {"small"} and "truncated" not in answer


def test_pages(box):
    ids = [run(box, f"echo {i} > /workspace/n") for i in range(4)]
    assert [c["id"] for c in history(box, "?limit=2")] == [ids[3], ids[2]]
    answer = box.request("GET", "/history?limit=2&offset=2").json()
    assert [c["id"] for c in answer["history"]] == [ids[1], ids[0]] and answer["more"] is True
    answer = box.request("GET", "/history?limit=2&offset=4").json()
    assert [c["id"] for c in answer["history"]] == ["unknown"] and "more" not in answer
    latest = box.request("GET", "/diff").json()
    assert (latest["fromExecId"], latest["toExecId"]) == (ids[2], ids[3])
    assert box.request("GET", f"/diff?from={ids[0]}&to={ids[1]}").json()["diff"].keys() == {"n"}


@pytest.mark.parametrize("method, path, body, status, code", [
    ("GET", "/history?limit=0", None, 400, "INVALID_ARGUMENT"),
    ("GET", "/history?limit=x", None, 400, "INVALID_ARGUMENT"),
    ("GET", "/diff?from=HEAD", None, 400, "INVALID_ARGUMENT"),
    ("GET", "/diff?from=--output=/tmp/x", None, 400, "INVALID_ARGUMENT"),
    ("POST", "/diff", {"fromExecId": "exec_0000000x"}, 400, "INVALID_ARGUMENT"),
    ("POST", "/diff", {"fromExecId": "exec_ffffffff"}, 404, "EXECUTION_NOT_FOUND"),
    ("POST", "/diff", {"fromExecId": 7}, 400, "INVALID_ARGUMENT"),
    ("POST", "/diff", {"other": "x"}, 400, "UNKNOWN_FIELD"),
    ("POST", "/rollback", None, 400, "INVALID_ARGUMENT"),
    ("POST", "/rollback", {"executionId": "$(reboot)"}, 400, "INVALID_ARGUMENT"),
    ("POST", "/rollback", {"executionId": "exec_ffffffff"}, 404, "EXECUTION_NOT_FOUND"),
])
def test_bad_requests(shared_box, method, path, body, status, code):
    answer = shared_box.request(method, path, body)
    assert answer.status == status and answer.error() == code, answer


@pytest.fixture(scope="module")
def shared_box(server):
    sandbox = server.create()
    yield sandbox
    sandbox.delete()


def test_a_clone_has_the_history_of_its_source(server, box):
    first = run(box, "echo 1 > /workspace/a")
    second = run(box, "echo 2 > /workspace/a")
    answer = box.request("POST", "/clone", {})
    assert answer.status in (200, 201, 202), answer
    clone = server.sandbox(answer.json()["name"] if "name" in answer.json() else answer.json()["metadata"]["name"])
    clone.wait_status("running")
    assert [c["id"] for c in history(clone)] == [second, first, "unknown"]
    third = run(clone, "echo 3 > /workspace/a")
    assert [c["id"] for c in history(clone)] == [third, second, first, "unknown"]
    rollback(clone, first)
    assert clone.read("/workspace/a") == b"1\n" and box.read("/workspace/a") == b"2\n"
    assert [c["id"] for c in history(box)] == [second, first, "unknown"]
    clone.delete()


def test_a_stopped_sandbox_has_a_history_and_goes_back_once_it_runs(box):
    first = run(box, "echo 1 > /workspace/a")
    run(box, "echo 2 > /workspace/a")
    box.stop()
    assert len(history(box)) == 3
    assert box.request("POST", "/rollback", {"executionId": first}).error() == "NOT_RUNNING"
    box.start()
    rollback(box, first)
    assert box.read("/workspace/a") == b"1\n"


def home_of(box):
    found = box.run("find /home/user -type f | sort | xargs -r sha256sum")
    assert found, "the image brings something"
    return found


def test_who_asks_before_it_runs_does_not_lose_what_the_image_brought(server):
    early = server.create(wait=False)
    assert [(c["id"], c["files"]) for c in history(early)] == [("unknown", ["README.md"])], "it is waited for"
    home = home_of(early)
    run(early, "rm -r /home/user/* /home/user/.[!.]*; echo 1 > a")
    assert rollback(early, "unknown")["status"] == "success"
    assert home_of(early) == home
    early.delete()


def test_a_sandbox_that_never_ran_has_a_first_state_and_no_commit_of_it(server):
    late = server.create()
    late.stop()
    first, = history(late)
    assert (first["id"], first["commitId"], first["files"]) == ("unknown", "0" * 40, ["README.md"])
    assert history(late, "?offset=1") == []
    assert late.request("GET", "/diff").json()["diff"] == {} == diff(late, "unknown", "unknown")
    missing = late.request("POST", "/diff", {"fromExecId": "unknown", "toExecId": "exec_00000000"})
    assert (missing.status, missing.error()) == (404, "EXECUTION_NOT_FOUND"), missing
    late.start()
    home = home_of(late)
    first = history(late)[-1]
    assert first["id"] == "unknown" and first["commitId"] != "0" * 40
    run(late, "rm -r /home/user/* /home/user/.[!.]*; echo 1 > a")
    assert rollback(late, "unknown")["status"] == "success"
    assert home_of(late) == home
    late.delete()


def test_it_survives_the_server_and_goes_with_its_sandbox(server):
    box = server.create()
    first = run(box, "echo 1 > /workspace/a")
    run(box, "echo 2 > /workspace/a")
    quiet = run(box, "true")
    folders = server.data / "history"
    assert len(list(folders.iterdir())) >= 1
    before = server.pids()
    server.kill("cellad")
    server.wait_recovered(before, "cellad")
    assert len(history(box)) == 3
    assert "-1\n+2\n" in diff(box, first, quiet)["a"]
    third = run(box, "echo 3 > /workspace/a")
    assert history(box)[0]["id"] == third
    ids = {path.name for path in folders.iterdir()}
    box.delete()
    wait_until(lambda: len({path.name for path in folders.iterdir()}) < len(ids), 30, "its history to go")


def test_by_the_command_line(server, box):
    first = run(box, "echo 1 > /workspace/a")
    run(box, "echo 2 > /workspace/a")
    listed = server.cli("history", box.name)
    assert listed.returncode == 0 and first in listed.stdout and "Initial commit" in listed.stdout, listed
    shown = server.cli("diff", box.name)
    assert shown.returncode == 0 and "-1\n+2\n" in shown.stdout, shown
    done = server.cli("rollback", box.name, first)
    assert done.returncode == 0 and first in done.stdout, done
    assert box.read("/workspace/a") == b"1\n"
    assert server.cli("rollback", box.name, "nonsense").returncode == 2
    assert server.cli("diff", box.name, "exec_ffffffff").returncode == 3
