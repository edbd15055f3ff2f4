# SPDX-License-Identifier: Apache-2.0
"""Every way of running something in a sandbox is a way into its history: what it changed is committed
before its end is told, whichever API was asked; also when the server was killed in between."""

import json
import re
import threading

import pytest

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
    ended(server.request("POST", f"/default/sandboxes/{box.name}/process",
                         {"command": "echo 1 > way", "workingDir": "/workspace", "waitForCompletion": True},
                         {"x-blaxel-workspace": "default"}))


def of_a_terminal(server, box):
    terminal = Terminal(server, box.name)
    try:
        terminal.type("echo 1 > way; exit\n")
        terminal.await_end()
    finally:
        terminal.close()


@pytest.mark.parametrize("way", [of_a_command, of_a_stream, of_what_nobody_waits_for, of_python, of_blaxels_client,
                                 of_a_terminal])
def test_what_it_changed_is_there_when_its_end_is_told(server, box, way):
    execution = way(server, box)
    commit = newest(box)
    assert commit["files"] == ["way"] and ID.fullmatch(commit["id"]), commit
    assert execution is None or commit["id"] == execution


def test_what_changed_nothing_has_an_id_that_leads_somewhere(box):
    before = of_a_command(None, box)
    execution = ended(box.request("POST", "/code", {"code": "1 + 1"})).json()["executionId"]
    assert newest(box)["id"] == before
    answer = box.request("POST", "/diff", {"fromExecId": before, "toExecId": execution})
    assert answer.status == 200 and answer.json()["diff"] == {}, answer


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


def test_a_sandbox_of_one_command_has_no_folder(server_factory):
    """Its execution is written down all the same, also for a clone and for a server that was killed."""
    server = server_factory()
    box, other = server.create(), server.create()
    first = of_nothing(box)
    of_nothing(other)
    other.delete()
    before = server.pids()
    server.kill("cellad")
    server.wait_recovered(before, "cellad")
    assert not list((server.data / "history").glob("*/"))
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
