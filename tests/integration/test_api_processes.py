# SPDX-License-Identifier: Apache-2.0
"""/process: commands of a sandbox."""

import base64
import re
import time

import pytest

from cella_server import wait_until

FIELDS = {"pid", "command", "status", "startedAt", "workingDir", "exitCode", "reason", "name", "keepAlive",
          "stdin", "restartOnFailure", "maxRestarts", "restartCount",
          "executionId"}
HTTP_DATE = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
LOG_MAX = 1 << 20


def post(sandbox, command, path="/process", **fields):
    answer = sandbox.request("POST", path, {"command": command, **fields}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def wait(sandbox, command, **fields):
    return post(sandbox, command, waitForCompletion=True, **fields)


def get(sandbox, pid):
    answer = sandbox.request("GET", f"/process/{pid}")
    assert answer.status == 200, answer
    return answer.json()


def until_ended(sandbox, pid, deadline=20):
    wait_until(lambda: get(sandbox, pid)["status"] != "running", deadline, f"the end of {pid}")
    return get(sandbox, pid)


def raw_log(sandbox, pid, stream):
    answer = sandbox.request("GET", f"/process/{pid}/logs?stream={stream}", None,
                             {"Accept": "application/octet-stream"})
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "application/octet-stream"
    return answer.body, int(answer.headers["X-Cella-Dropped"])


def alive(sandbox, marker):
    """How many processes inside have the marker in their command line."""
    found = sandbox.exec(f"grep -lsz -e '^{marker}$' /proc/[0-9]*/cmdline | wc -l")
    return int(found.stdout)


# --- exec ---


def test_waiting_gives_the_output(shared_sandbox):
    done = wait(shared_sandbox, "echo out; echo err >&2; exit 3")
    assert set(done) == FIELDS | {"completedAt", "stdout", "stderr"}
    assert done["command"] == "echo out; echo err >&2; exit 3"
    assert (done["status"], done["exitCode"]) == ("failed", 3)
    assert (done["stdout"], done["stderr"]) == ("out\n", "err\n")
    assert done["workingDir"] == "/workspace"
    assert HTTP_DATE.fullmatch(done["startedAt"]) and HTTP_DATE.fullmatch(done["completedAt"])


def test_not_waiting_gives_a_running_process(sandbox):
    for path in ("/process", "/process/"):
        started = post(sandbox, "sleep 1000", path)
        assert set(started) == FIELDS
        assert (started["status"], started["exitCode"]) == ("running", None)
        listed = sandbox.request("GET", path).json()
        assert started["pid"] in [process["pid"] for process in listed]


@pytest.mark.parametrize("command, code", [
    ("true", 0), ("false", 1), ("exit 42", 42), ("no-such-command-here", 127), ("/etc/passwd", 126),
    ("kill -9 $$", 137), ("kill -TERM $$", 143)])
def test_exit_codes_as_a_shell_says_them(shared_sandbox, command, code):
    done = wait(shared_sandbox, command)
    assert done["exitCode"] == code
    assert done["status"] == ("completed" if code == 0 else "failed")


def test_a_missing_command_says_so(shared_sandbox):
    assert "not found" in wait(shared_sandbox, "no-such-command-here")["stderr"]


def test_working_directory(sandbox):
    assert wait(sandbox, "pwd")["stdout"] == "/workspace\n"
    done = wait(sandbox, "pwd", workingDir="/home/user/")
    assert (done["stdout"], done["workingDir"]) == ("/home/user\n", "/home/user")
    answer = sandbox.request("POST", "/process", {"command": "pwd", "workingDir": "/not/there"})
    assert (answer.status, answer.error()) == (404, "FILE_NOT_FOUND")
    answer = sandbox.request("POST", "/process", {"command": "pwd", "workingDir": "/etc/passwd"})
    assert (answer.status, answer.error()) == (409, "NOT_A_DIRECTORY")


def test_environment(shared_sandbox):
    env = {"A_B1": "x y\n$HOME'\"", "UMLAUT": "ü", "EMPTY": ""}
    done = wait(shared_sandbox, 'printf "%s|%s|%s|" "$A_B1" "$UMLAUT" "${EMPTY-unset}"', env=env)
    assert done["stdout"] == "x y\n$HOME'\"|ü||"
    assert wait(shared_sandbox, "echo $HOME:$USER; command -v ls")["stdout"].startswith("/root:root\n/")


def test_shell_syntax(shared_sandbox):
    done = wait(shared_sandbox, "for i in 1 2 3; do echo $i; done | tac && echo 'done' \"$((6*7))\"")
    assert done["stdout"] == "3\n2\n1\ndone 42\n"


def test_a_long_command(shared_sandbox):
    text = "x" * 100_000
    assert wait(shared_sandbox, f"printf %s {text} | wc -c")["stdout"].strip() == "100000"


def test_stdin_is_empty(shared_sandbox):
    assert wait(shared_sandbox, "cat; echo end", timeout=10)["stdout"] == "end\n"


def test_runs_at_the_same_time(sandbox):
    pids = [post(sandbox, f"echo {n}; exit {n}")["pid"] for n in range(20)]
    assert len(set(pids)) == 20
    for n, pid in enumerate(pids):
        assert until_ended(sandbox, pid)["exitCode"] == n
        assert sandbox.logs(pid)["stdout"] == f"{n}\n"


def test_waiting_is_for_the_command_and_not_for_what_it_left(sandbox):
    began = time.monotonic()
    done = wait(sandbox, "sleep 1000 >/dev/null 2>&1 </dev/null & echo started")
    assert (done["stdout"], done["exitCode"]) == ("started\n", 0)
    assert time.monotonic() - began < 20


# --- time-outs ---


def test_timeout_ends_the_whole_tree(sandbox):
    done = wait(sandbox, "setsid sleep 4321 & (sleep 4321 & sleep 4321); echo never", timeout=1)
    assert (done["status"], done["exitCode"]) == ("timeout", 124)
    assert done["stdout"] == ""
    wait_until(lambda: alive(sandbox, "4321") == 0, 10, "the tree to be gone")


def test_timeout_of_a_process_nobody_waits_for(sandbox):
    pid = post(sandbox, "echo before; sleep 1000", timeout=3)["pid"]
    ended = until_ended(sandbox, pid)
    assert (ended["status"], ended["exitCode"]) == ("timeout", 124)
    assert sandbox.logs(pid)["stdout"] == "before\n"


def test_timeout_zero_is_none(shared_sandbox):
    done = wait(shared_sandbox, "sleep 0.2; echo ok", timeout=0)
    assert (done["stdout"], done["status"]) == ("ok\n", "completed")


# --- list and get ---


def test_list_and_get_agree(sandbox):
    running = post(sandbox, "sleep 1000")
    done = wait(sandbox, "true")
    listed = {p["pid"]: p for p in sandbox.request("GET", "/process/").json()}
    assert listed[running["pid"]] == running == get(sandbox, running["pid"])
    ended = get(sandbox, done["pid"])
    assert listed[done["pid"]] == ended
    assert set(ended) == FIELDS | {"completedAt"}
    assert (ended["status"], ended["exitCode"]) == ("completed", 0)


def test_an_empty_list(sandbox):
    answer = sandbox.request("GET", "/process")
    assert (answer.status, answer.json()) == (200, [])


# --- output ---


def test_logs(sandbox):
    pid = post(sandbox, "echo out; echo err >&2; sleep 1000")["pid"]
    wait_until(lambda: sandbox.logs(pid)["stderr"], 10, "output")
    logs = sandbox.logs(pid)
    assert sorted(logs.pop("logs").split()) == ["err", "out"]  # two pipes: the order may be either
    assert logs == {"pid": pid, "stdout": "out\n", "stderr": "err\n"}
    assert raw_log(sandbox, pid, "stdout") == (b"out\n", 0)
    assert raw_log(sandbox, pid, "stderr") == (b"err\n", 0)


def test_binary_output_is_exact(sandbox):
    data = bytes(range(256)) * 4
    sandbox.write("/workspace/bin", data)
    done = wait(sandbox, "cat bin; cat bin >&2")
    for stream in ("stdout", "stderr"):
        assert base64.b64decode(done[f"{stream}Base64"]) == data
        assert done[stream] == data.decode("utf-8", "replace")
        assert raw_log(sandbox, done["pid"], stream) == (data, 0)
    logs = sandbox.logs(done["pid"])
    assert base64.b64decode(logs["stdoutBase64"]) == data


def test_text_output_is_not_there_twice(shared_sandbox):
    done = wait(shared_sandbox, "printf 'ü\\0\\033[1m'")
    assert done["stdout"] == "ü\0\033[1m"
    assert "stdoutBase64" not in done and "dropped" not in done


def test_output_larger_than_what_comes_with_the_exit(sandbox):
    done = wait(sandbox, "seq 100000; seq 50000 >&2")
    assert done["stdout"] == "".join(f"{n}\n" for n in range(1, 100001))
    assert done["stderr"] == "".join(f"{n}\n" for n in range(1, 50001))
    assert "dropped" not in done


def test_the_newest_output_wins(sandbox):
    whole = "".join(f"{n:09}\n" for n in range(1, 300001))  # 3 MB
    done = wait(sandbox, "seq -f %09.0f 300000; echo small >&2")
    dropped = done["dropped"]["stdout"]
    assert done["dropped"] == {"stdout": dropped, "stderr": 0}
    assert done["stdout"] == f"[{dropped} earlier bytes dropped]\n" + whole[dropped:]
    assert LOG_MAX // 2 <= len(whole) - dropped <= LOG_MAX
    assert done["stderr"] == "small\n"

    logs = sandbox.logs(done["pid"])
    assert logs["stdout"] == done["stdout"]
    assert logs["dropped"] == {**done["dropped"], "logs": logs["dropped"]["logs"]}
    assert raw_log(sandbox, done["pid"], "stdout") == (whole[dropped:].encode(), dropped)


# --- stop and kill ---


def test_stop_asks_first(sandbox):
    pid = post(sandbox, "trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.01; done")["pid"]
    wait_until(lambda: sandbox.logs(pid)["stdout"] == "ready\n", 10, "the trap")
    answer = sandbox.request("DELETE", f"/process/{pid}")
    assert answer.status == 200
    assert answer.json() == {"pid": pid, "message": "Process stopped successfully"}
    assert get(sandbox, pid)["status"] == "stopped"
    assert sandbox.logs(pid)["stdout"] == "ready\nbye\n"


def test_kill_does_not_ask(sandbox):
    pid = post(sandbox, "trap '' TERM; echo ready; while :; do sleep 0.01; done")["pid"]
    wait_until(lambda: sandbox.logs(pid)["stdout"] == "ready\n", 10, "the trap")
    answer = sandbox.request("POST", f"/process/{pid}/kill")
    assert answer.status == 200
    assert answer.json() == {"pid": pid, "message": "Process killed successfully"}
    ended = get(sandbox, pid)
    assert (ended["status"], ended["exitCode"]) == ("killed", 137)


@pytest.mark.parametrize("method, suffix", [("DELETE", ""), ("POST", "/kill")])
def test_the_whole_tree_goes(sandbox, method, suffix):
    marker = "7654" if suffix else "8765"
    pid = post(sandbox, f"setsid setsid sleep {marker} & (setsid sleep {marker} &); sleep {marker}")["pid"]
    wait_until(lambda: alive(sandbox, marker) == 3, 10, "three sleeps")
    assert sandbox.request(method, f"/process/{pid}{suffix}").status == 200
    assert alive(sandbox, marker) == 0


def test_stop_leaves_the_others_alone(sandbox):
    kept, stopped = post(sandbox, "sleep 1000")["pid"], post(sandbox, "sleep 1000")["pid"]
    assert sandbox.request("DELETE", f"/process/{stopped}").status == 200
    assert get(sandbox, kept)["status"] == "running"
    assert get(sandbox, stopped)["status"] == "stopped"


def test_stopping_what_has_ended_changes_nothing(sandbox):
    done = wait(sandbox, "exit 5")
    sandbox.request("DELETE", f"/process/{done['pid']}")
    ended = get(sandbox, done["pid"])
    assert (ended["status"], ended["exitCode"]) == ("failed", 5)


@pytest.mark.parametrize("method, path", [
    ("GET", "/process/999999"), ("GET", "/process/999999/logs"), ("DELETE", "/process/999999"),
    ("POST", "/process/999999/kill"), ("GET", "/process/0"), ("GET", "/process/1")])
def test_processes_that_are_not_there(shared_sandbox, method, path):
    answer = shared_sandbox.request(method, path)
    assert (answer.status, answer.error()) == (404, "PROCESS_NOT_FOUND")
