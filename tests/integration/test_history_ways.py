# SPDX-License-Identifier: Apache-2.0
"""Every way of running something in a sandbox is a way into its history: what it changed is committed
before its end is told, whichever API was asked; also when the server was killed in between."""

import concurrent.futures
import json
import re
import threading

import pytest

import cella_procs
import e2b_box
from cella_exec import ExecSocket
from cella_server import wait_until
from cella_websocket import Terminal

ID = re.compile("exec_[0-9a-f]{8}")


@pytest.fixture
def box(server):
    made = server.create()
    made.run("true")
    yield made
    made.delete()


def newest(box):
    answer = box.request("GET", "/history")
    assert answer.status == 200, answer
    return answer.json()["history"][0]


def ended(answer):
    assert answer.status == 200, answer
    return answer


def of_a_command(server, box):
    return ended(box.request("POST", "/process", {"command": "echo 1 > way", "waitForCompletion": True})).json()["executionId"]


def of_nothing(box):
    """An execution that changes nothing."""
    return ended(box.request("POST", "/process", {"command": "true", "waitForCompletion": True})).json()["executionId"]


def of_a_stream(server, box):
    lines = ended(box.request("POST", "/process?stream=true", {"command": "echo 1 > way", "waitForCompletion": True}))
    return json.loads(lines.text.splitlines()[-1]).get("executionId")


def of_what_nobody_waits_for(server, box):
    began = ended(box.request("POST", "/process", {"command": "echo 1 > way"})).json()
    wait_until(lambda: box.request("GET", f"/process/{began['pid']}").json()["status"] == "completed", 30, "its end")
    return began["executionId"]


def of_python(server, box):
    done = ended(box.request("POST", "/code", {"code": "open('way', 'w').write('1')"})).json()
    assert done["error"] is None
    return done["executionId"]


def of_blaxels_client(server, box):
    answer = ended(server.request("POST", f"/default/sandboxes/{box.name}/process",
                                  {"command": "echo 1 > way", "workingDir": "/workspace", "waitForCompletion": True},
                                  {"x-blaxel-workspace": "default"}))
    assert answer.headers["X-Cella-Execution"] == answer.json()["executionId"]
    return answer.json()["executionId"]


def of_a_websocket(server, box):
    end, _, _ = ExecSocket(server, box.name).run("a", "echo 1 > way")
    return end["executionId"]


def of_a_terminal(server, box):
    terminal = Terminal(server, box.name)
    try:
        terminal.type("echo 1 > way; exit\n")
        terminal.await_end()
    finally:
        terminal.close()


@pytest.mark.parametrize("way", [of_a_command, of_a_stream, of_what_nobody_waits_for, of_python, of_blaxels_client, of_a_websocket,
                                 of_a_terminal])
def test_what_it_changed_is_there_when_its_end_is_told(server, box, way):
    execution = way(server, box)
    commit = newest(box)
    assert commit["files"] == ["way"] and ID.fullmatch(commit["id"]), commit
    assert execution is None or commit["id"] == execution


# ---- sandboxes as others make them ----

def e2b(server):
    box = e2b_box.Box(server)
    box.run("true")

    def command(text):
        answer, _ = box.stream(e2b_box.START, e2b_box.shell(text))
        return answer

    def code(text):
        return box.call("POST", "/execute", {"code": text}, port=49999)

    def write(path, text):
        return box.call("POST", f"/files?path={path}", text.encode(), Content_Type="application/octet-stream")

    return box.id, command, code, write, box.kill


def scalebox(server):
    key = {"Authorization": None, "X-API-KEY": server.key}
    made = server.request("POST", "/v1/sandboxes", {"template": "base", "timeout": 600}, key).json()["data"]
    fields = {"Authorization": "Bearer root", "X-Access-Token": made["envd_access_token"]}

    def call(path, message):
        return server.request("POST", f"/sandboxagent.{path}", e2b_box.envelope(message),
                              {**fields, "Content-Type": e2b_box.STREAM_TYPE})

    def write(path, text):
        form = (f'--x\r\nContent-Disposition: form-data; name="file"; filename="f"\r\n\r\n{text}\r\n'
                f'--x\r\nContent-Disposition: form-data; name="path"\r\n\r\n{path}\r\n--x--\r\n')
        return server.request("POST", "/upload", form, {**fields, "Content-Type": "multipart/form-data; boundary=x"})

    def end():
        assert server.request("DELETE", f"/v1/sandboxes/{made['sandbox_id']}", None, key).status in (200, 204)

    return (made["sandbox_id"], lambda text: call("Process/Start", e2b_box.shell(text)),
            lambda text: call("ExecutionService/Execute", {"code": text, "language": "python"}), write, end)


@pytest.mark.parametrize("make", [e2b, scalebox])
def test_somebody_elses_clients_are_told_of_an_execution_beside_the_answer(server, make):
    name, command, code, write, end = make(server)
    box = server.sandbox(name)
    try:
        for run in (lambda: command("echo 1 > /workspace/way"),
                    lambda: code("open('/workspace/way', 'w').write('2')")):
            answer = ended(run())
            assert (newest(box)["id"], newest(box)["files"]) == (answer.headers["X-Cella-Execution"], ["way"]), answer
        ended(write("/workspace/by-hand", "1"))
        answer = ended(command("true"))
        assert (newest(box)["id"], newest(box)["files"]) == (answer.headers["X-Cella-Execution"], ["by-hand"])
        quiet = ended(code("1 + 1")).headers["X-Cella-Execution"]
        diff = box.request("POST", "/diff", {"fromExecId": newest(box)["id"], "toExecId": quiet})
        assert diff.status == 200 and diff.json()["diff"] == {}, diff
        refused = command("\0")
        assert "X-Cella-Execution" not in refused.headers, "nothing was run"
    finally:
        end()


def test_what_changed_nothing_has_an_id_that_leads_somewhere(box):
    before = of_a_command(None, box)
    execution = ended(box.request("POST", "/code", {"code": "1 + 1"})).json()["executionId"]
    assert newest(box)["id"] == before
    answer = box.request("POST", "/diff", {"fromExecId": before, "toExecId": execution})
    assert answer.status == 200 and answer.json()["diff"] == {}, answer


def test_names_from_outside(box):
    """A file that is written by a name outside of what history keeps: it is watched itself, from the next look on; and
    whoever asks for the history has it looked at."""
    run = box.request
    box.run("echo 1 > f && echo 1 > later && mkdir -p /opt/links && ln f /opt/links/f")
    before = newest(box)["id"]
    seen = ended(run("POST", "/process", {"command": "echo 2 > /opt/links/f", "waitForCompletion": True})).json()
    assert (newest(box)["id"], newest(box)["files"]) == (seen["executionId"], ["f"])
    box.run("ln later /opt/links/later")
    late = ended(run("POST", "/process", {"command": "echo 2 > /opt/links/later", "waitForCompletion": True})).json()
    assert (newest(box)["id"], newest(box)["files"]) == (late["executionId"], ["later"])
    answer = run("POST", "/diff", {"fromExecId": before, "toExecId": late["executionId"]})
    assert answer.json()["diff"].keys() == {"f", "later"}, answer


def test_a_mapping_that_stays(box):
    """Nothing tells of what is written through it: who asks for the history has it looked at."""
    box.run("head -c 4096 /dev/zero > mapped")
    of_a_command(None, box)

    def code(text):
        return ended(box.request("POST", "/code", {"code": text})).json()["executionId"]

    code("import mmap\nf = open('/workspace/mapped', 'r+b')\nm = mmap.mmap(f.fileno(), 0)")
    wrote = code("m[:1] = b'x'")
    assert (newest(box)["id"], newest(box)["files"]) == (wrote, ["mapped"])
    code("m[:1] = b'y'")
    closed = code("m.close(); f.close()")
    assert (newest(box)["id"], newest(box)["files"]) == (closed, ["mapped"])


def test_who_finds_a_change_is_told_of_it(box):
    """The first question after a change without a sign means the commit that it makes."""
    for name in ("one", "two"):
        box.write(f"/workspace/{name}", 4095 * "a" + "\n")
    of_a_command(None, box)

    def code(text):
        return ended(box.request("POST", "/code", {"code": text})).json()["executionId"]

    opened = code("import mmap\nfiles = [open('/workspace/' + name, 'r+b') for name in ('one', 'two')]\n"
                  "one, two = (mmap.mmap(file.fileno(), 0) for file in files)")
    box.request("GET", "/history")
    wrote = code("one[:1] = b'x'")
    answer = box.request("POST", "/diff", {"fromExecId": opened, "toExecId": wrote})
    assert answer.json()["diff"].keys() == {"one"} and "+xaaa" in answer.json()["diff"]["one"], answer
    wrote = code("two[:1] = b'y'")
    answer = box.request("POST", "/rollback", {"executionId": wrote})
    assert answer.status == 200 and answer.json()["files"] == [], answer
    assert box.read("/workspace/two")[:1] == b"y", "it is what it was at the end of that"
    code("one.close(); two.close(); [file.close() for file in files]")


def test_a_file_that_cannot_be_read_has_not_gone(box):
    """Who has a lease on it lets nobody open it for now: it stays as it was kept last."""
    hold = """import fcntl, os, signal, sys
signal.signal(signal.SIGIO, signal.SIG_IGN)
fd = os.open("/workspace/leased", os.O_RDWR)
fcntl.fcntl(fd, fcntl.F_SETLEASE, fcntl.F_WRLCK)
os.write(fd, b"2")
open("/tmp/held", "w").close()
signal.pause()
"""
    box.write("/workspace/leased", "1")
    kept = of_a_command(None, box)
    box.write("/tmp/hold.py", hold)
    pid = box.spawn("exec python3 /tmp/hold.py")
    wait_until(lambda: box.exec("test -e /tmp/held")[0] == 0, 30, "the lease")
    other = ended(box.request("POST", "/process", {"command": "echo 1 > other", "waitForCompletion": True})).json()
    answer = box.request("POST", "/diff", {"fromExecId": kept, "toExecId": other["executionId"]})
    assert answer.json()["diff"].keys() == {"other"}, answer
    box.request("DELETE", f"/process/{pid}")
    wait_until(lambda: box.exec("cat leased")[0] == 0, 30, "the end of the lease")
    ended(box.request("POST", "/process", {"command": "true", "waitForCompletion": True}))
    answer = box.request("POST", "/diff", {"fromExecId": kept, "toExecId": newest(box)["id"]})
    assert "-1\n" in answer.json()["diff"]["leased"] and "+2\n" in answer.json()["diff"]["leased"], answer


def test_what_is_too_deep_is_left_out_and_stops_nothing(box):
    """120 directories, one in the other, and a path of 10 000 bytes."""
    made = box.python("""import os
for name, levels in (("d", 120), ("x" * 250, 40)):
    os.chdir("/workspace")
    for level in range(levels):
        os.mkdir(name)
        os.chdir(name)
        if level in (2, levels - 1):
            open("f", "w").close()
""")
    assert made.exit_code == 0, made
    before = of_nothing(box)
    after = of_a_command(None, box)
    answer = box.request("GET", "/history").json()["history"]
    assert answer[0]["id"] == after and answer[0]["files"] == ["way"], answer
    assert {"d/d/d/f", "/".join(["x" * 250] * 3 + ["f"])} < set(answer[1]["files"])
    assert not [file for file in answer[1]["files"] if file.count("/") > 101 or len(file) > 4095]
    answer = box.request("POST", "/rollback", {"executionId": before})
    assert answer.status == 200 and answer.json()["files"] == ["way"], answer
    assert box.run("find d -name f | wc -l; find x* -name f | wc -l").split() == ["2", "2"]
    box.run("rm -r d x*")


def test_code_is_asked_after_without_a_question_to_the_agent(server, box):
    """Once its first run was looked into, a run that changes nothing costs no request to the agent."""
    def asked():
        text = server.request("GET", "/metrics").text
        return int(re.search(r"cella_agent_call_duration_seconds_count (\d+)", text).group(1))

    def code(text):
        return ended(box.request("POST", "/code", {"code": text})).json()

    code("1")
    newest(box)
    code("1")
    before = asked()
    for _ in range(9):
        code("1 + 1")
    assert asked() - before < 5, "what others ask for meanwhile"
    wrote = code("open('/workspace/way', 'w').write('1')")["executionId"]
    assert (newest(box)["id"], newest(box)["files"]) == (wrote, ["way"])
    box.stop()
    box.start()
    wrote = code("open('/workspace/way', 'w').write('2')")["executionId"]  # another agent, and another queue
    assert (newest(box)["id"], newest(box)["files"]) == (wrote, ["way"])


def test_the_agent_goes_on_when_the_server_was_killed(server_factory):
    """What was clean for the server before is not for the next one: it looks itself."""
    server = server_factory()
    box = server.create()
    box.run("echo 1 > way")
    assert newest(box)["files"] == ["way"]
    pid = box.spawn("sleep 1; echo 2 > meanwhile; sleep 1000")
    server.wait_recovered(server.kill("cellad"), "cellad")
    wait_until(lambda: box.exec("test -e meanwhile")[0] == 0, 30, "what goes on")
    box.run("true")
    answer = box.request("GET", "/history").json()["history"]
    assert [commit["files"] for commit in answer][:2] == [["meanwhile"], ["way"]], answer
    box.request("DELETE", f"/process/{pid}")
    box.delete()


def test_few_large_trees_are_looked_at_at_a_time(server_factory):
    """Each takes much memory; all of them are committed in the end, and small ones do not wait."""
    server = server_factory()
    boxes = [server.create() for _ in range(5)]
    small = server.create()
    of_a_command(None, small)
    newest(small)
    make = """import os
for folder in range(205):
    os.mkdir(f"/workspace/{folder}")
    for file in range(100):
        os.symlink(f"{folder} {file}", f"/workspace/{folder}/{file}")
"""

    def fill(box):
        assert box.python(make, timeout=120).exit_code == 0
        return box.request("GET", "/history", timeout=120)

    def gits():
        return [pid for pid in cella_procs.children(server.pids().cellad) if "fast-import" in cella_procs.words(pid)]

    most = 0
    with concurrent.futures.ThreadPoolExecutor(len(boxes)) as pool:
        asked = [pool.submit(fill, box) for box in boxes]
        while not all(future.done() for future in asked):
            most = max(most, len(gits()))
            of_a_command(None, small)
        answers = [future.result() for future in asked]
    for answer in answers:
        assert answer.status == 200 and len(answer.json()["history"]) == 2, answer
        assert len(answer.json()["history"][0]["files"]) == 1000
    assert 0 < most <= 4
    for box in (*boxes, small):
        box.delete()


def test_nothing_waits_for_itself_when_commands_end_during_a_commit(server):
    """Commands that end while another's changes, or a rollback's, are being committed."""
    box = server.create()
    box.run("true")
    first = of_a_command(server, box)
    answers = []

    def commands(name):
        for i in range(6):
            answers.append(box.request("POST", "/process", {"command": f"echo {i} > {name}", "waitForCompletion": True}))

    threads = [threading.Thread(target=commands, args=(f"by-{n}",), daemon=True) for n in range(5)]
    for thread in threads:
        thread.start()
    for i in range(4):
        many = {"command": f"for i in $(seq 400); do echo {i} > file-$i; done", "waitForCompletion": True}
        answers.append(box.request("POST", "/process", many))
        answers.append(box.request("POST", "/rollback", {"executionId": first}))
    for thread in threads:
        thread.join(60)
    assert not any(thread.is_alive() for thread in threads)
    assert all(answer.status in (200, 503) for answer in answers), answers
    assert box.request("POST", "/rollback", {"executionId": first}).status == 200
    assert box.run("ls").split() == ["way"]
    box.delete()


def test_what_nobody_asks_about_is_looked_into_at_its_end(server, box):
    """Its change is its own, and its id is where it ended, whatever is run behind it."""
    command = f"echo 1 > way # in {box.name}"
    began = box.request("POST", "/process", {"command": command}).json()["executionId"]

    def is_over():
        """By the audit log, since whoever asked the sandbox would have it looked into."""
        entries = server.request("GET", "/v0/audit?event=command&limit=100").json()["entries"]
        return any(one["command"] == command and "exitCode" in one for one in entries if "command" in one)

    wait_until(is_over, 30, "its end")
    for value in (2, 3):
        assert box.request("POST", "/process", {"command": f"echo {value} > way", "waitForCompletion": True}).status == 200
    found = box.request("GET", "/history").json()["history"]
    assert [one["files"] for one in found[:3]] == [["way"]] * 3 and found[2]["id"] == began, found
    assert box.request("POST", "/rollback", {"executionId": began}).status == 200
    assert box.run("cat way") == "1"


def test_commands_that_end_together_each_know_where(box):
    """One of them is looked into for all; none is taken for what came later."""
    box.run("for i in $(seq 2000); do echo $i > file-$i; done")
    first = of_a_command(None, box)
    ids, threads = {}, []

    def run(number):
        answer = ended(box.request("POST", "/process", {"command": f"echo {number} > together-{number}",
                                                        "waitForCompletion": True}))
        ids[number] = answer.json()["executionId"]

    for number in range(12):
        threads.append(threading.Thread(target=run, args=(number,), daemon=True))
        threads[-1].start()
    for thread in threads:
        thread.join(60)
    assert len(ids) == 12
    ended(box.request("POST", "/process", {"command": "echo later > later", "waitForCompletion": True}))
    for number, execution in ids.items():
        found = ended(box.request("GET", f"/diff?from={first}&to={execution}")).json()["diff"]
        assert f"together-{number}" in found and "later" not in found, (number, list(found))


def test_many_packs_become_one_and_all_goes_with_the_sandbox(server_factory):
    """Also when somebody asks for the history of what is being deleted."""
    server = server_factory()
    box = server.create()
    for i in range(55):
        box.run(f"echo {i} > way")
    folder, = (server.data / "history").glob("*/")
    wait_until(lambda: len(list(folder.glob("repository/objects/pack/*.pack"))) < 10, 30, "the packing")
    answer = box.request("GET", "/history?limit=100").json()["history"]
    assert len(answer) == 56 and answer[0]["files"] == ["way"], answer
    asked = []

    def ask():
        while not asked or asked[-1] == 200:
            asked.append(box.request("GET", "/history").status)

    threads = [threading.Thread(target=ask, daemon=True) for _ in range(4)]
    for thread in threads:
        thread.start()
    box.delete()
    for thread in threads:
        thread.join(30)
    assert set(asked) <= {200, 404}, asked
    wait_until(lambda: not folder.exists(), 30, "its history to go")
    assert [path.name for path in (server.data / "history").iterdir()] == ["journal"]


def test_lists_are_written_when_somebody_asks(server_factory):
    """Executions are written down all the same, also for a clone and for a server that was killed."""
    server = server_factory()
    box, other = server.create(), server.create()
    first = of_nothing(box)
    of_nothing(other)
    other.delete()
    before = server.pids()
    server.kill("cellad")
    server.wait_recovered(before, "cellad")
    assert not list((server.data / "history").glob("*/executions"))
    assert [line.split()[1] for line in (server.data / "history/journal").read_text().splitlines()].count(first) >= 1
    second = of_nothing(box)
    assert box.request("POST", "/clone", {"name": "copy"}).status == 202
    copy = server.sandbox("copy")
    copy.wait_status("running")
    many = [of_nothing(box) for _ in range(60)]  # more than are kept in memory
    for where, ids in ((box, (first, second, many[0], many[30], many[59])), (copy, (first, second))):
        for one in ids:
            answer = where.request("POST", "/diff", {"fromExecId": first, "toExecId": one})
            assert answer.status == 200 and answer.json()["diff"] == {}, answer
    assert copy.request("POST", "/diff", {"fromExecId": first, "toExecId": many[0]}).error() == "EXECUTION_NOT_FOUND"
