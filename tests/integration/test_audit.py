# SPDX-License-Identifier: Apache-2.0
"""The audit log: who did what is in it, whichever way it came, and it cannot be changed unnoticed."""

import json
import pathlib
import subprocess
import threading

import pytest

from cella_auth import Workspace, call, fresh
from cella_server import wait_until
from cella_websocket import WebSocket
from e2b_box import START, Box


def entries(server, by=None, **query):
    """What the server tells, newest first."""
    text = "&".join(f"{name}={value}" for name, value in {"limit": 1000, **query}.items())
    answer = call(server, "GET", f"/v0/audit?{text}", by or server.key)
    assert answer.status == 200, answer
    return answer.json()["entries"]


def files(server):
    return sorted((server.data / "audit").glob("audit-*.jsonl"))


def lines(server):
    return [line for path in files(server) for line in path.read_text().splitlines()]


def verify(server, *args):
    done = server.cli("--output", "json", "audit", "verify", *args)
    assert done.returncode in (0, 1), done
    return done.returncode, json.loads(done.stdout)


@pytest.fixture(scope="module")
def own_server():
    from cella_fixtures import _requirements  # pylint: disable=import-outside-toplevel
    from cella_server import Server  # pylint: disable=import-outside-toplevel
    _requirements()
    instance = Server("--rate-limit", "off")
    yield instance
    instance.close()


@pytest.fixture(scope="module")
def box(own_server):
    made = own_server.create("audited")
    yield made
    made.delete()


def test_a_command_with_who_what_and_result(own_server, box):
    mark = fresh("mark")
    answer = box.request("POST", "/process", {"command": f"echo {mark}; exit 3", "waitForCompletion": True})
    assert answer.status == 200, answer
    found = [e for e in entries(own_server, sandbox="audited", operation="exec") if mark in e.get("command", "")]
    assert len(found) == 1, found
    entry = found[0]
    assert entry["command"] == f"echo {mark}; exit 3" and entry["exitCode"] == 3 and entry["status"] == 200
    assert entry["operation"] == "POST /v0/sandbox/{name}/process" and entry["class"] == "exec"
    assert entry["workspace"] == "default" or entry["workspace"]
    assert entry["address"].startswith("127.0.0.1:") and entry["requestId"] and entry["keyId"] and entry["key"]
    assert entry["user"] == "root" and entry["cwd"] == "/workspace" and entry["durationMs"] >= 0
    assert entry["sandboxId"]


def test_a_sandbox_that_is_made_and_deleted(own_server):
    made = own_server.create(enabled=False)
    made.delete()
    found = entries(own_server, sandbox=made.name)
    kinds = [e["operation"] for e in found if e["operation"].split()[0] in ("POST", "DELETE")]
    assert kinds == ["DELETE /v0/sandbox/{name}", "POST /v0/sandbox"], found


def test_refusals_are_in_it(own_server):
    answer = call(own_server, "DELETE", "/v0/sandbox/no-such-thing", own_server.key)
    assert answer.status == 404
    assert call(own_server, "GET", "/v0/sandbox/another-one", "cella_" + "y" * 43).status == 401
    errors = {(e.get("sandbox"), e.get("status"), e.get("error")) for e in entries(own_server)}
    assert ("no-such-thing", 404, "SANDBOX_NOT_FOUND") in errors
    assert ("another-one", 401, "UNAUTHORIZED") in errors


def test_who_asks_for_a_token_is_in_it(own_server):
    place = Workspace(own_server)
    try:
        key = place.new_key("read")
        for scope, status in (("read", 200), ("admin", 400)):
            body = {"grant_type": "client_credentials", "client_id": key["id"], "client_secret": key["secret"], "scope": scope}
            assert call(own_server, "POST", "/v0/oauth/token", None, body).status == status
        found = entries(own_server, key=key["name"])
        assert [(e["operation"], e["status"], e["keyId"], e["workspace"]) for e in found] == [
            ("POST /v0/oauth/token", status, key["id"], place.name) for status in (400, 200)]
    finally:
        place.delete()


def test_nothing_secret_is_in_it(own_server, box):
    secret = fresh("secret")
    command = {"command": "cat; env", "env": {"TOKEN": secret}, "stdin": secret, "waitForCompletion": True}
    answer = box.request("POST", "/process", command)
    assert secret in answer.text, answer
    assert box.request("PUT", "/filesystem/tmp/f", {"content": secret}).status in (200, 201)
    assert secret in box.request("GET", "/filesystem/tmp/f").text
    own_server.request("GET", f"/v0/sandbox?token={secret}&access_token={secret}")
    own_server.request("GET", "/v0/sandbox", headers={"Authorization": f"Bearer {secret}"})
    own_server.request("POST", "/v0/secrets", {"name": fresh("s"), "value": secret, "hosts": ["x.example"]})
    with_env = own_server.create(env_vars={"KEY": secret}, enabled=False)
    with_env.delete()
    code = box.request("POST", "/code", {"code": "import os; print(os.environ['T'])", "language": "python", "env": {"T": secret}})
    assert code.status == 200, code
    terminal = WebSocket(own_server.url, "/v0/sandbox/audited/terminal/ws?token=" + own_server.key)
    terminal.sock.close()
    mark = fresh("mark")
    box.exec(f"echo {mark}")
    text = "\n".join(lines(own_server))
    assert mark in text
    assert secret not in text and own_server.key not in text


def test_every_way_of_running_is_in_it(own_server, box):
    """The seed's API, a stream, a process in the background, code, a terminal, Blaxel, E2B."""
    marks = [fresh("way") for _ in range(6)]
    box.exec(f"echo {marks[0]}")
    own_server.request("POST", "/v0/sandbox/audited/process", {"command": f"echo {marks[1]}"},
                       {"Accept": "application/x-ndjson"})
    box.request("POST", "/process", {"command": f"echo {marks[2]}"})
    assert box.request("POST", "/code", {"code": f"x = '{marks[3]}'"}).status == 200
    workspace = entries(own_server, sandbox="audited")[0]["workspace"]
    answer = own_server.request("POST", f"/{workspace}/sandboxes/audited/process",
                                {"command": f"echo {marks[4]}", "waitForCompletion": True})
    assert answer.status == 200, answer
    e2b = Box(own_server)
    answer, _ = e2b.stream(START, {"process": {"cmd": "/bin/echo", "args": [marks[5]]}})
    assert answer.status == 200, answer
    session = box.request("POST", "/terminal/sessions", {})
    assert session.status in (200, 201), session
    found = {}
    for entry in entries(own_server):
        text = entry.get("command", "") + entry.get("code", "")
        for mark in marks:
            if mark in text:
                found.setdefault(mark, []).append(entry)
        if text == "(terminal)":
            found["terminal"] = [entry]
    assert set(found) == {*marks, "terminal"}, [mark for mark in marks if mark not in found]
    assert any(e.get("exitCode") == 0 for e in found[marks[1]]), found[marks[1]]
    assert any(e.get("exitCode") == 0 for e in found[marks[5]]), found[marks[5]]
    assert found[marks[3]][0]["language"] == "python"
    assert {e["api"] for e in found[marks[4]]} == {"blaxel"} and {e["api"] for e in found[marks[5]]} == {"e2b-envd"}
    e2b.control("DELETE", f"/sandboxes/{e2b.id}")


def test_a_long_command_is_told_before_its_end(own_server, box):
    mark = fresh("long")
    thread = threading.Thread(target=box.request, args=("POST", "/process", {
        "command": f"echo {mark}; while [ ! -e /tmp/{mark} ]; do sleep 0.05; done", "waitForCompletion": True}))
    thread.start()

    def told():
        return [e for e in entries(own_server) if e["event"] == "command" and mark in e.get("command", "")]

    begun = wait_until(told, 30, "a line on a command that runs")
    assert begun[0]["phase"] == "begin" and "exitCode" not in begun[0]
    box.exec(f"touch /tmp/{mark}")
    thread.join(60)
    ended = [e for e in told() if e.get("phase") == "end"]
    assert len(ended) == 1 and ended[0]["exitCode"] == 0 and ended[0]["requestId"] == begun[0]["requestId"]


def test_a_workspace_sees_its_own(own_server):
    one, two = Workspace(own_server), Workspace(own_server)
    try:
        keys = {w.name: w.new_key("admin") for w in (one, two)}
        for w in (one, two):
            call(own_server, "GET", "/v0/sandbox", keys[w.name]["secret"])
        seen = entries(own_server, keys[one.name]["secret"])
        assert seen and {e["workspace"] for e in seen} == {one.name}
        assert entries(own_server, keys[one.name]["secret"], key=keys[two.name]["id"]) == []
        other = call(own_server, "GET", f"/v0/audit?workspace={two.name}", keys[one.name]["secret"])
        assert other.status == 404, other
        assert {two.name} == {e["workspace"] for e in entries(own_server, workspace=two.name)}
        assert entries(own_server, key=keys[two.name]["id"])
        assert call(own_server, "GET", "/v0/audit", one.key("write")).status == 403
    finally:
        one.delete()
        two.delete()


def test_pages_and_bad_questions(own_server):
    first = call(own_server, "GET", "/v0/audit?limit=2", own_server.key).json()
    assert len(first["entries"]) == 2 and first["before"] == first["entries"][1]["seq"]
    second = call(own_server, "GET", f"/v0/audit?limit=2&before={first['before']}", own_server.key).json()
    assert second["entries"][0]["seq"] < first["before"]
    assert entries(own_server, since="1s") != entries(own_server)
    for query in ("limit=0", "limit=x", "before=-1", "since=never", "key=", "limit=1001"):
        assert call(own_server, "GET", f"/v0/audit?{query}", own_server.key).status == 400, query


def test_the_command_line(own_server, box):
    mark = fresh("cli")
    box.exec(f"echo {mark}")
    listed = own_server.cli("audit", "list", "--operation", "exec", "--limit", "5")
    assert listed.returncode == 0 and mark in listed.stdout, listed
    tail = own_server.cli("audit", "tail", "--limit", "3")
    assert tail.returncode == 0 and [json.loads(line)["seq"] for line in tail.stdout.splitlines()], tail
    good = own_server.cli("audit", "verify")
    assert good.returncode == 0 and good.stdout.startswith("ok: "), good
    head = good.stdout.split("head: ")[1].strip()
    assert own_server.cli("audit", "verify", "--expect", head).returncode == 0
    wrong = head[:-1] + ("0" if head[-1] != "0" else "1")
    assert own_server.cli("audit", "verify", "--expect", wrong).returncode == 1
    bad = own_server.cli("audit", "verify", "--expect", "nonsense")
    assert bad.returncode == 2 and "SEQ:HASH" in bad.stderr, bad


def test_killed_at_any_moment(server_factory):
    """What was answered is in it after kill -9, and it is whole."""
    server = server_factory("--rate-limit", "off")
    acknowledged = []
    for round_ in range(3):
        stop = threading.Event()

        def work():
            while not stop.is_set():
                name = fresh("crash")
                try:
                    answer = server.request("POST", "/v0/workspaces", {"name": name}, timeout=10)
                except OSError:
                    continue
                except Exception:  # half an answer
                    continue
                if answer.status == 201:
                    acknowledged.append(name)

        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        count = len(acknowledged) + 5
        wait_until(lambda: len(acknowledged) >= count, 60, "some requests")
        before = server.kill("cellad")
        stop.set()
        for thread in threads:
            thread.join(60)
        server.wait_recovered(before, "cellad")
    created = [json.loads(line) for line in lines(server)]
    answered = sum(1 for e in created if e.get("operation") == "POST /v0/workspaces" and e.get("status") == 201)
    assert answered >= len(acknowledged) > 0
    status, report = verify(server)
    assert status == 0 and report["ok"], report


def test_tampering_is_found(server_factory):
    server = server_factory("--audit", "size=64Ki")
    for _ in range(300):
        server.request("GET", "/v0/sandbox/nothing-here")
    wait_until(lambda: len(files(server)) > 1, 30, "a rotated file")
    server.stop()
    assert verify(server)[0] == 0
    first, last = files(server)[0], files(server)[-1]
    text, end = first.read_text(), last.read_text()
    rows = text.splitlines(True)

    def check(path, content, words):
        original = path.read_text()
        path.write_text(content)
        status, report = verify(server)
        path.write_text(original)
        assert status == 1 and any(words in f["text"] for f in report["findings"]), report

    check(first, text.replace('"status":404', '"status":200', 1), "changed")
    check(first, "".join(rows[:5] + rows[6:]), "line 6 is missing")
    check(first, "".join(rows[:5] + [rows[6], rows[5]] + rows[7:]), "missing before it")
    check(first, "".join(rows[:5] + [rows[2]] + rows[5:]), "put in a second time")
    check(last, "".join(end.splitlines(True)[:-1]), "removed from its end")
    check(server.data / "db" / "audit-head", "", "is gone")
    assert verify(server)[0] == 0
    (server.data / "db" / "audit-head").unlink()
    assert verify(server)[0] == 1
    server.start()
    status, report = verify(server)
    assert status == 1 and [f["text"] for f in report["findings"]] == ["the server found the log damaged when it started"]


def test_off_and_options(server_factory):
    server = server_factory("--audit", "off")
    assert server.request("GET", "/v0/audit").status == 503
    assert files(server) == []
    bad = subprocess.run([server.bin / "cella", "server", "--audit", "files=1", "--data", server.data],
                         capture_output=True, text=True, timeout=60)
    assert bad.returncode == 2 and "--audit" in bad.stderr and "2 to 10000" in bad.stderr, bad


def test_reads_can_be_left_out(server_factory):
    server = server_factory("--audit", "reads=no")
    server.request("GET", "/v0/sandbox")
    server.request("POST", "/v0/workspaces", {"name": "made"})
    found = entries(server)
    assert any(e.get("operation") == "POST /v0/workspaces" for e in found)
    assert not any(e.get("operation") == "GET /v0/sandbox" for e in found)
    assert pathlib.Path(server.data / "db" / "audit-head").exists()
