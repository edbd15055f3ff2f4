# SPDX-License-Identifier: Apache-2.0
"""Every API's way of running something, and what the audit log has of it: who, when, what, with which result and how
long; no output, and nothing that opens anything."""

import http.client
import json
import urllib.parse

import pytest

from cella_auth import call, fresh
from cella_exec import ExecSocket
from cella_server import Server, wait_until
from cella_websocket import TEXT, WebSocket
from e2b_box import START, STREAM_TYPE, Box, envelope, shell


@pytest.fixture(scope="module")
def place(contract):
    made = Server("--rate-limit", "off", "--metrics-open")
    try:
        yield Place(made)
    finally:
        made.close()


@pytest.fixture(scope="module")
def quiet(contract):
    """Where nothing else is run: what is counted there is this test's."""
    made = Server("--rate-limit", "off", "--metrics-open")
    try:
        yield Quiet(made)
    finally:
        made.close()


class Quiet:
    """A server with a sandbox, and one of E2B's."""

    def __init__(self, server):
        self.server = server
        self.box = server.create("audited")
        self.e2b = Box(server)

    def entries(self, **query):
        text = "&".join(f"{name}={value}" for name, value in {"limit": 1000, **query}.items())
        answer = call(self.server, "GET", f"/v0/audit?{text}", self.server.key)
        assert answer.status == 200, answer
        return answer.json()["entries"]

    def about(self, mark):
        """The lines whose command or code has the mark, oldest first."""
        return [one for one in reversed(self.entries()) if mark in one.get("command", "") + one.get("code", "")]


class Place(Quiet):
    """A server with a sandbox of every kind."""

    def __init__(self, server):
        super().__init__(server)
        made = server.request("POST", "/api/sandbox", {"image": "@ai-sandbox/python"})
        self.container = made.json()["containerId"]
        made = server.request("POST", "/v1/sandboxes", {"template": "base", "timeout": 3600},
                              {"Authorization": None, "X-API-KEY": server.key})
        self.scalebox = made.json()["data"]
        self.workspace = self.entries()[0]["workspace"]

    def in_scalebox(self, path, message):
        return self.server.request("POST", path, envelope(message), {
            "Authorization": "Bearer root", "X-Access-Token": self.scalebox["envd_access_token"],
            "Content-Type": STREAM_TYPE})

    def log(self):
        return "".join(path.read_text() for path in sorted((self.server.data / "audit").glob("audit-*.jsonl")))

    def secrets(self):
        return [self.server.key, self.server.key.encode().hex(), self.e2b.about["envdAccessToken"],
                self.scalebox["envd_access_token"]]


# Each prints what it was not asked in these words ("out-42-…"), and ends with status 3 (code: with an error, 1).

def line(mark):
    return f"echo out-$((6*7))-{mark}; exit 3"


def code(mark):
    return f"print('out-%d-' % (6*7) + '{mark}')\nraise ValueError"


def by_process(place, mark):
    return place.box.request("POST", "/process", {"command": line(mark), "waitForCompletion": True}).text


def by_socket(place, mark):
    socket = ExecSocket(place.server, "audited")
    text = socket.run("one", line(mark))[1].decode()
    socket.close()
    return text


def by_containers_socket(place, mark):
    ws = WebSocket(place.server.url, f"/api/sandbox/{place.container}/ws?token={place.server.key}")
    ws.send(TEXT, json.dumps({"type": "start", "id": "one", "command": line(mark)}).encode())
    text = ""
    while '"exit"' not in text:
        text += ws.receive()[1].decode()
    ws.close()
    return text


def by_container(place, mark):
    return place.server.request("POST", "/api/sandbox/exec", {
        "containerId": place.container, "command": ["sh", "-c", line(mark)]}).text


def by_blaxel(place, mark):
    return place.server.request("POST", f"/{place.workspace}/sandboxes/audited/process",
                                {"command": line(mark), "waitForCompletion": True}).text


def by_e2b(place, mark):
    return str(place.e2b.stream(START, shell(line(mark)))[0].status)


def by_scalebox(place, mark):
    return str(place.in_scalebox("/sandboxagent.Process/Start", shell(line(mark))).status)


def by_code(place, mark):
    return place.box.request("POST", "/code", {"code": code(mark)}).text


def by_e2b_code(place, mark):
    return place.e2b.call("POST", "/execute", {"code": code(mark)}, port=49999).text


def by_scalebox_code(place, mark):
    return place.in_scalebox("/sandboxagent.ExecutionService/Execute", {"code": code(mark), "language": "python"}).text


def by_scalebox_execute(place, mark):
    return place.server.request("POST", f"/v1/sandboxes/{place.scalebox['sandbox_id']}/execute",
                                {"code": code(mark), "language": "python"},
                                {"Authorization": None, "X-API-KEY": place.server.key}).text


WAYS = [
    (by_process, "cella", "POST /v0/sandbox/{name}/process", 3),
    (by_socket, "cella", "GET /v0/sandbox/{name}/exec/ws", 3),
    (by_containers_socket, "aisandbox", "GET /api/sandbox/{name}/ws", 3),
    (by_container, "aisandbox", "POST /api/sandbox/exec", 3),
    (by_blaxel, "blaxel", "POST /{workspace}/sandboxes/{name}/process", 3),
    (by_e2b, "e2b-envd", "POST /process.Process/{method}", 3),
    (by_scalebox, "scalebox-box", "POST /sandboxagent.Process/{method}", 3),
    (by_code, "cella", "POST /v0/sandbox/{name}/code", 1),
    (by_e2b_code, "e2b-envd", "POST /execute", 1),
    (by_scalebox_code, "scalebox-box", "POST /sandboxagent.ExecutionService/{method}", 1),
    (by_scalebox_execute, "scalebox", "POST /v1/sandboxes/{name}/execute", 1),
]


@pytest.mark.parametrize("way, api, operation, status", WAYS, ids=lambda value: getattr(value, "__name__", ""))
def test_way(place, way, api, operation, status):
    mark = fresh("mark")
    told = way(place, mark)
    assert f"out-42-{mark}" in told or told == "200", told
    found = wait_until(lambda: [e for e in place.about(mark) if "exitCode" in e] and place.about(mark), 10, "its end")
    ends = [one for one in found if "exitCode" in one]
    assert len(ends) == 1 and ends[0]["exitCode"] == status, found
    for one in found:
        assert (one["api"], one["operation"], one["workspace"]) == (api, operation, place.workspace), one
        assert one["address"].startswith("127.0.0.1:") and one["key"] and one["requestId"] and one["sandboxId"], one
        assert one["time"] and (one.get("phase") == "begin" or one["durationMs"] >= 0), one
        assert ("user" in one and one["cwd"]) if status == 3 else one["language"] == "python", one
    assert len({one["requestId"] for one in found}) == 1
    assert f"out-42-{mark}" not in place.log()


def test_a_terminal(place):
    mark = fresh("typed")
    terminal = WebSocket(place.server.url, f"/v0/sandbox/audited/terminal/ws?token={place.server.key}&sessionId={mark}")
    terminal.send(TEXT, json.dumps({"type": "input", "data": f"echo out-$((6*7))-{mark}\n"}).encode())
    text = ""
    while f"out-42-{mark}" not in text:
        text += terminal.receive()[1].decode()
    terminal.close()

    def lines():
        found = [e for e in place.entries() if e.get("operation") == "GET /v0/sandbox/{name}/terminal/ws"]
        return found if {"begin", "end"} <= {e.get("phase") for e in found} else None

    found = wait_until(lines, 10, "both lines")
    assert any(one.get("command") == "(terminal)" and one["user"] == "root" for one in found), found
    assert all(one["key"] and one["sandbox"] == "audited" and one["status"] == 101 for one in found), found
    assert [one.get("error") for one in found if one["phase"] == "end"] == ["CANCELLED"], "it left without a word"
    assert f"out-42-{mark}" not in place.log() and f"$((6*7))-{mark}" not in place.log()


def test_what_is_no_command(place):
    """Making and deleting by Scalebox's, E2B's and the containers' own routes; files by Connect."""
    key = {"Authorization": None, "X-API-KEY": place.server.key}
    made = place.server.request("POST", "/v1/sandboxes", {"template": "base", "timeout": 60}, key).json()["data"]["sandbox_id"]
    assert place.server.request("DELETE", f"/v1/sandboxes/{made}", None, key).status == 200
    place.e2b.call("POST", "/filesystem.Filesystem/Stat", {"path": "/nowhere"})
    container = place.server.request("POST", "/api/sandbox", {"image": "@ai-sandbox/python"}).json()["containerId"]
    assert place.server.request("DELETE", f"/api/sandbox/{container}").status == 200
    found = {(e["api"], e["operation"], e["status"], e.get("error")) for e in place.entries() if "status" in e}
    assert {("scalebox", "POST /v1/sandboxes", 201, None), ("scalebox", "DELETE /v1/sandboxes/{name}", 200, None),
            ("e2b-envd", "POST /filesystem.Filesystem/{method}", 404, "FILE_NOT_FOUND"),
            ("aisandbox", "POST /api/sandbox", 201, None), ("aisandbox", "DELETE /api/sandbox/{name}", 200, None)} <= found
    made_lines = [e for e in place.entries() if e.get("operation") == "POST /v1/sandboxes" and e.get("sandboxId") == made]
    assert len(made_lines) == 1, "the line of a create names what was made"


def executions(quiet):
    text = quiet.server.request("GET", "/metrics").text
    return {name.split('"')[1]: float(value) for name, value in
            (one.split() for one in text.splitlines() if one.startswith("cella_executions_total{"))}


def actions(quiet):
    """How often E2B's sandbox was used."""
    listed = quiet.server.request("GET", "/v0/metrics").json()["sandboxes"]
    return next(one["history"]["actions"] for one in listed if quiet.e2b.id in (one["id"], one["name"]))


def counted(quiet, wanted):
    wait_until(lambda: executions(quiet) == wanted, 10, f"{wanted}, and not {executions(quiet)}")


def test_a_command_that_nobody_waits_for(quiet):
    before, mark = executions(quiet), fresh("mark")
    quiet.box.request("POST", "/process", {"command": f"while [ ! -e /tmp/{mark} ]; do sleep 0.05; done; exit 5"})
    begun = wait_until(lambda: quiet.about(mark), 10, "its beginning")
    assert len(begun) == 1 and "exitCode" not in begun[0], begun
    assert executions(quiet) == before
    quiet.box.write(f"/tmp/{mark}", "")
    ended = wait_until(lambda: [e for e in quiet.about(mark) if e.get("phase") == "end"], 30, "its end")
    assert len(ended) == 1 and ended[0]["exitCode"] == 5 and ended[0]["durationMs"] > 0, ended
    for name in ("requestId", "key", "keyId", "workspace", "address", "operation", "sandboxId", "command"):
        assert ended[0][name] == begun[0][name], name
    counted(quiet, {**before, "failure": before["failure"] + 1})


def test_a_command_whose_reader_leaves(quiet):
    before, mark = executions(quiet), fresh("mark")
    with quiet.e2b.open_stream(START, shell(f"echo on; while [ ! -e /tmp/{mark} ]; do sleep 0.05; done")) as found:
        next(found)
        used = actions(quiet)
    request = wait_until(lambda: quiet.about(mark), 30, "its beginning")[0]["requestId"]
    wait_until(lambda: any(e.get("error") == "CANCELLED" and e["requestId"] == request for e in quiet.entries()), 30,
               "the end of the request")
    assert actions(quiet) == used, "who hangs up has not used it"
    assert quiet.e2b.run(f"touch /tmp/{mark}") == b""
    ended = wait_until(lambda: [e for e in quiet.about(mark) if e.get("phase") == "end" and e["event"] == "command" and
                                "while" in e["command"]], 30, "its end")
    assert len(ended) == 1 and ended[0]["exitCode"] == 0 and ended[0]["api"] == "e2b-envd", ended
    counted(quiet, {**before, "success": before["success"] + 2})


def hang_up(quiet, body, mark):
    """Asks for a command, and hangs up when it has begun."""
    parts = urllib.parse.urlsplit(quiet.server.url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=60)
    connection.request("POST", f"/v0/sandbox/{quiet.box.name}/process", json.dumps(body),
                       {"Authorization": f"Bearer {quiet.server.key}", "Content-Type": "application/json"})
    begun = wait_until(lambda: quiet.about(mark), 30, "its beginning")
    connection.close()
    return begun[0]["requestId"]


def run_out(quiet, body, mark):
    """Asks for a command with less patience than it takes."""
    answer = call(quiet.server, "POST", f"/default/sandboxes/{quiet.box.name}/process", quiet.server.key,
                  {**body, "timeout": 1}, {"x-blaxel-workspace": "default"})
    assert answer.status >= 400, answer
    return quiet.about(mark)[0]["requestId"]


@pytest.mark.parametrize("leave", [hang_up, run_out])
def test_a_command_that_somebody_waited_for(quiet, leave):
    """… who is gone, or has no more patience: it goes on, and its end counts as everybody's does."""
    before, mark = executions(quiet), fresh("mark")
    command = f"while [ ! -e /tmp/{mark} ]; do sleep 0.05; done; echo {mark} > left; exit 3"
    request = leave(quiet, {"command": command, "waitForCompletion": True}, mark)
    wait_until(lambda: any(e.get("requestId") == request and "error" in e for e in quiet.entries()), 30,
               "the end of the request")
    assert executions(quiet) == before
    quiet.box.write(f"/tmp/{mark}", "")
    ended = wait_until(lambda: [e for e in quiet.about(mark) if "exitCode" in e], 30, "its end")
    assert len(ended) == 1 and ended[0]["exitCode"] == 3 and ended[0]["requestId"] == request, ended
    counted(quiet, {**before, "failure": before["failure"] + 1})
    newest = quiet.box.request("GET", "/history?limit=1").json()["history"][0]
    assert newest["files"] == ["left"], newest


def test_commands_that_end_with_their_sandbox(quiet):
    """… have no end of their own; what asks for it is gone with the connection."""
    before, mark = executions(quiet), fresh("mark")
    box = quiet.server.create()
    for _ in range(20):
        box.request("POST", "/process", {"command": f"echo {mark}; sleep 1000"})
    box.delete()
    assert len(quiet.about(mark)) == 20 and not [e for e in quiet.about(mark) if "exitCode" in e]
    assert executions(quiet) == before
    assert quiet.box.run("echo well") == "well"


def test_nothing_that_opens_anything_is_in_it(place):
    text = place.log()
    assert not [secret for secret in place.secrets() if secret in text]
    done = place.server.cli("audit", "verify")
    assert done.returncode == 0, done
