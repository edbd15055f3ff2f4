# SPDX-License-Identifier: Apache-2.0
"""Pausing: what runs stands still, with all that it has in memory, and goes on where it was."""

import concurrent.futures
import contextlib
import pathlib
import uuid

import pytest

from cella_ports import APP, PORT
from cella_server import wait_until
from cella_websocket import Terminal

BEAT = "while :; do echo >> /tmp/beat; sleep 0.02; done"


def frozen(box):
    """What the kernel says."""
    name = f"cella-{box.server.instance}/{box.get()['metadata']['id']}/cgroup.events"
    for top in ("/sys/fs/cgroup/unified", "/sys/fs/cgroup"):
        with contextlib.suppress(FileNotFoundError):
            return "frozen 1" in pathlib.Path(top, name).read_text()
    raise AssertionError("no cgroup2 tree")


def pause(box):
    answer = box.request("POST", "/pause")
    assert answer.status == 202, answer
    assert answer.json()["status"] in ("pausing", "paused")
    box.wait_status("paused")
    assert frozen(box)


def resume(box, verb="resume"):
    answer = box.request("POST", f"/{verb}")
    assert answer.status == 202, answer
    assert answer.json()["status"] in ("resuming", "running")
    box.wait_status("running")
    wait_until(lambda: not frozen(box), 10, "it goes on")


def code(box, source, **fields):
    answer = box.request("POST", "/code", {"code": source, **fields}, timeout=60)
    assert answer.status == 200, answer
    return answer.json()


def events(box):
    return [(event["type"], event["status"]) for event in box.get()["events"]]


def beat(box):
    return int(box.run("wc -l < /tmp/beat || echo 0"))


@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    yield made
    made.delete()


def test_it_goes_on_where_it_was(box):
    born = box.init_start_time()
    pid = box.spawn(BEAT)
    opened = box.spawn("exec 5> /tmp/deleted; rm /tmp/deleted; while :; do echo x >&5; sleep 0.05; done")
    code(box, "kept = {'answer': 42}\nhandle = open('/tmp/open', 'w')")
    wait_until(lambda: beat(box) > 3, 20, "a beat")
    for _ in range(2):
        pause(box)
        resume(box)
        last = beat(box)
        wait_until(lambda: beat(box) > last, 20, "the beat goes on")
    assert box.init_start_time() == born
    for process in (pid, opened):
        assert box.request("GET", f"/process/{process}").json()["status"] == "running"
    done = code(box, "handle.write('still open'); handle.flush()\nkept['answer']")
    assert (done["text"], done["error"]) == ("42", None)
    assert box.read("/tmp/open") == b"still open"
    assert events(box)[-4:] == [("PAUSE", "SUCCESS"), ("RESUME", "SUCCESS")] * 2


def test_what_is_asked_of_it_is_refused(box):
    pause(box)
    for method, path, body in (("POST", "/process", {"command": "true", "waitForCompletion": True}),
                               ("GET", "/process", None), ("GET", "/filesystem/etc/hostname", None),
                               ("GET", f"/port/{PORT}/", None), ("POST", "/code", {"code": "1"}),
                               ("GET", "/terminal/sessions", None)):
        answer = box.request(method, path, body)
        assert (answer.status, answer.error()) == (409, "NOT_RUNNING"), (path, answer)
        assert "paused: resume it first" in answer.text
    again = box.request("POST", "/pause")
    assert (again.status, again.error()) == (409, "NOT_RUNNING") and "nothing to pause" in again.text
    assert box.get()["status"] == "paused"
    assert [item["metadata"]["name"] for item in box.server.request("GET", "/v0/sandbox?status=paused").json()["sandboxes"]] == [box.name]
    assert box.request("GET", "/logs").status == 200
    resume(box, "start")  # people do not look for another word
    answer = box.request("POST", "/resume")
    assert (answer.status, answer.error()) == (409, "ALREADY_RUNNING")


def test_streams_that_are_open_wait(box):
    """A command that somebody follows, a request to a port and a run of code, all of them begun before."""
    box.write("/tmp/port_app.py", APP.read_text())
    box.spawn(f"exec python3 /tmp/port_app.py {PORT}")
    wait_until(lambda: box.request("GET", f"/port/{PORT}/text").status == 200, 20, "the app")
    box.exec("rm -f /tmp/go /tmp/began-*")
    waits = "until [ -e /tmp/go ]; do sleep 0.02; done"
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        command = pool.submit(box.exec, f"touch /tmp/began-1; {waits}; echo went on", timeout=120)
        run = pool.submit(code, box, "import os, time\nopen('/tmp/began-2', 'w').close()\n"
                                     "while not os.path.exists('/tmp/go'): time.sleep(0.02)\n'went on'")
        wait_until(lambda: box.run("ls /tmp/began-* 2>/dev/null | wc -l") == "2", 20, "both began")
        pause(box)
        assert not command.done() and not run.done()
        resume(box)
        assert not command.done() and not run.done()
        box.run("touch /tmp/go")
        assert command.result(60).stdout == "went on\n"
        assert run.result(60)["text"] == "'went on'"
    assert box.request("GET", f"/port/{PORT}/text").status == 200


def test_a_terminal_waits(server, box):
    with Terminal(server, box.name) as terminal:
        terminal.type("x=6; echo be\"gun\"\n")
        terminal.await_(b"begun\r\n")
        pause(box)
        terminal.type("echo is $((x * 7))\n")
        resume(box)
        terminal.await_(b"is 42\r\n")
        terminal.type("exit\n")
        terminal.await_end()


def test_time_of_a_run_stands_still_too(box):
    """The time-out of a run passes while it stands still: it is not ended, and keeps its variables."""
    code(box, "survivor = 1")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        while True:
            box.exec("rm -f /tmp/began")
            run = pool.submit(code, box, "import time\nopen('/tmp/began', 'w').close()\ntime.sleep(600)", timeout=2)
            wait_until(lambda: box.exec("test -e /tmp/began").exit_code == 0, 20, "it began")
            pause(box)
            if not run.done():  # else the machine was too slow
                break
            resume(box)
        with contextlib.suppress(concurrent.futures.TimeoutError):
            pytest.fail(f"ended while it stood still: {run.result(3)}")
        resume(box)
        error = run.result(60)["error"]
    assert error["name"] == "TimeoutError" and "variables are kept" in error["value"]
    assert code(box, "survivor")["text"] == "1"


def test_goals_change_while_it_is_on_its_way(box):
    born = box.init_start_time()
    for _ in range(5):
        box.request("POST", "/pause")
        box.request("POST", "/resume")
        box.request("POST", "/pause")
        box.request("POST", "/resume")
    box.wait_status("running")
    assert box.init_start_time() == born and not frozen(box)


def test_stopped_while_paused(server):
    box = server.create()
    box.write("/workspace/kept", "files")
    box.spawn("trap 'echo ended > /workspace/said; exit' TERM; touch /tmp/set; while :; do sleep 0.05; done")
    wait_until(lambda: box.exec("test -e /tmp/set").exit_code == 0, 20, "the trap")
    pause(box)
    box.stop()
    box.start()
    assert box.read("/workspace/kept") == b"files"
    assert box.read("/workspace/said") == b"ended\n"  # it went on for as long as it takes to end
    # Of one that is stopped there is nothing to pause.
    box.stop()
    assert box.request("POST", "/pause").error() == "NOT_RUNNING"
    box.delete()


def test_deleted_cloned_and_resized_while_paused(server):
    box = server.create()
    box.write("/workspace/kept", "files")
    box.spawn(BEAT)
    wait_until(lambda: beat(box) > 0, 20, "a beat")
    pause(box)
    answer = box.request("POST", "/clone", {"name": box.name + "-copy"})
    assert answer.status == 202, answer
    copy = server.sandbox(box.name + "-copy").wait_status("running")
    assert copy.read("/workspace/kept") == b"files"
    copy.delete()
    assert frozen(box)
    answer = server.request("PATCH", box.base, {"spec": {"resources": {"memory": "1Gi"}}})
    assert answer.status == 200, answer
    assert box.get()["status"] == "paused" and frozen(box)
    resume(box)
    last = beat(box)
    wait_until(lambda: beat(box) > last, 20, "the beat goes on")
    pause(box)
    box.delete()
    assert server.leaks() == ""


def test_woken_by_whoever_uses_it(server):
    box = server.create(lifecycle={"wakeOnConnect": True})
    born = box.init_start_time()
    box.write("/tmp/port_app.py", APP.read_text())
    box.spawn(f"exec python3 /tmp/port_app.py {PORT}")
    wait_until(lambda: box.request("GET", f"/port/{PORT}/text").status == 200, 20, "the app")
    for use in (lambda: box.init_start_time() == born,
                lambda: box.request("GET", f"/port/{PORT}/text", timeout=60).status == 200,
                lambda: box.read("/tmp/port_app.py") == APP.read_bytes()):
        pause(box)
        assert use()
        assert box.status() == "running"
    box.delete()


def test_paused_at_the_end_of_its_time(server):
    box = server.create(wait=False, lifecycle={"ttl": "2s", "onExpire": "pause"})
    assert box.get()["spec"]["lifecycle"] == {"ttl": "2s", "onExpire": "pause"}
    box.wait_status("paused")
    assert ("EXPIRE", "SUCCESS") in events(box) and frozen(box)
    assert box.get()["events"][-1]["message"] == "Sandbox paused: its ttl was over"
    assert "expiresAt" not in box.get()  # it has no end any more, until it goes on
    answer = server.request("PATCH", box.base, {"spec": {"lifecycle": {"ttl": None}}})
    assert answer.status == 200, answer
    resume(box)
    box.delete()


def test_an_end_that_deletes_comes_for_it(server):
    box = server.create()
    pause(box)
    answer = server.request("PATCH", box.base, {"spec": {"lifecycle": {"ttl": "1s"}}})
    assert answer.status == 200, answer
    box.wait_status("gone", deadline=60)


def test_in_a_group(server):
    name = f"g-{uuid.uuid4().hex[:10]}"
    answer = server.request("POST", "/v0/groups", {"name": name, "count": 2})
    assert answer.status == 202, answer
    status = lambda: server.request("GET", f"/v0/groups/{name}").json()["status"]  # noqa: E731
    wait_until(lambda: status() == "running", 30, status)
    members = [server.sandbox(one["id"]) for one in server.request("GET", f"/v0/groups/{name}").json()["sandboxes"]]
    born = [member.init_start_time() for member in members]
    pause(members[0])
    assert status() == "mixed"
    pause(members[1])
    assert status() == "stopped"
    assert server.request("POST", f"/v0/groups/{name}/start").status == 202
    wait_until(lambda: status() == "running", 30, status)
    assert [member.init_start_time() for member in members] == born
    pause(members[0])
    assert server.request("POST", f"/v0/groups/{name}/end").status == 202
    wait_until(lambda: server.request("GET", f"/v0/groups/{name}").status == 404, 30, "the end of the group")


def test_many_at_once(server):
    boxes = [server.create() for _ in range(8)]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda b: b.spawn(BEAT), boxes))
        list(pool.map(pause, boxes))
        list(pool.map(resume, boxes))
        for one in boxes:
            wait_until(lambda b=one: beat(b) > 0, 20, "a beat")
        list(pool.map(lambda b: b.delete(), boxes))
    assert server.leaks() == ""


def test_by_the_command_line(server):
    box = server.create()
    done = server.cli("sandbox", "pause", box.name, "--wait")
    assert done.returncode == 0 and done.stdout.split()[-1] == "paused", done
    assert server.cli("run", box.name, "process", "exec", "true").returncode == 4
    done = server.cli("sandbox", "list", "--status", "paused")
    assert box.name in done.stdout
    done = server.cli("sandbox", "resume", box.name, "--wait")
    assert done.returncode == 0 and done.stdout.split()[-1] == "running", done
    box.delete()


# --- histories ---


def children(box):
    """How many processes its first process has started, as the machine sees it."""
    record = box.server.data / "run" / "sandboxes" / box.get()["metadata"]["id"]
    init = next(line.split()[1] for line in record.read_text().splitlines() if line.startswith("pid "))
    count = 0
    for stat in pathlib.Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            count += stat.read_text().rpartition(")")[2].split()[1] == init
    return count


def test_a_pause_while_files_are_read_for_the_history(server):
    """The reader would hold the history for as long as the sandbox is paused, and its clones and its deletion wait for it."""
    box = server.create()
    box.run("mkdir /workspace/d && cd /workspace/d && seq 10000 | split -l 1 -a 4 - f")
    with concurrent.futures.ThreadPoolExecutor(1) as pool:
        reading = pool.submit(box.request, "GET", "/history", timeout=90)
        wait_until(lambda: children(box) > 0 or reading.done(), 30, "a reader")
        pause(box)
        copy = box.request("POST", "/clone", {})
        assert copy.status == 202, copy
        made = server.sandbox(copy.json()["metadata"]["name"])
        assert server.request("DELETE", box.base).status == 202
        made.wait_status("running", deadline=40)
        box.wait_status("gone", deadline=20)
        assert made.run("ls /workspace/d | wc -l") == "10000"
        made.delete()
        reading.result()
