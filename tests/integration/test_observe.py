# SPDX-License-Identifier: Apache-2.0
"""What the server tells about itself: figures, logs, ids of requests, whether it is ready."""

import contextlib
import http.client
import http.server
import json
import re
import shutil
import subprocess
import threading
import urllib.parse

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_openmetrics
from prometheus_client.parser import text_string_to_metric_families as parse_text

from cella_auth import Workspace
from cella_server import PATIENCE, wait_until

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = f"00-{TRACE}-00f067aa0ba902b7-01"


@pytest.fixture(scope="module")
def observed(request):
    """A server that writes everything down, as JSON, and lets anybody read its figures."""
    from cella_server import Server
    made = Server("--log-format", "json", "--log-level", "debug", "--access-log", "--metrics-open", "--trace-commands",
                  "--metrics-listen", "127.0.0.1:0", "--allow-private-callbacks",
                  "--pool", "image=host,size=1,name=spares")
    request.addfinalizer(made.close)
    return made


@pytest.fixture(scope="module")
def box(observed):
    made = observed.create("observed-box")
    yield made
    if made.status() is not None:
        made.delete()


def figures(server):
    """{name{labels}: value} of all samples, and {family: type}, by a parser that is not ours."""
    answer = server.request("GET", "/metrics")
    assert answer.status == 200, answer
    assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"
    samples, types = {}, {}
    for family in parse_text(answer.text):
        assert family.documentation, family.name
        types[family.name] = family.type
        for sample in family.samples:
            key = (sample.name, tuple(sorted(sample.labels.items())))
            assert key not in samples, key
            samples[key] = sample.value
    return samples, types


def value(samples, name, **labels):
    return samples.get((name, tuple(sorted(labels.items()))))


def entries(server, **wanted):
    """Lines of the log that have these members."""
    found = []
    for line in server.log_path.read_text().splitlines():
        if line.startswith("{"):
            entry = json.loads(line)
            if all(entry.get(name) == value for name, value in wanted.items()):
                found.append(entry)
    return found


def test_all_figures_are_there(observed, box):
    before, _ = figures(observed)
    box.run("true")
    box.exec("exit 3")
    box.exec("sleep 100", timeout=1)
    box.write("/tmp/x", "content")
    box.read("/tmp/x")
    assert observed.request("GET", "/v0/sandbox/no-such-box").status == 404
    after, types = figures(observed)

    def grown(name, **labels):
        return (value(after, name, **labels) or 0) - (value(before, name, **labels) or 0)

    assert grown("cella_executions_total", result="success") == 1
    assert grown("cella_executions_total", result="failure") == 1
    assert grown("cella_executions_total", result="timeout") == 1
    assert grown("cella_timeouts_total", what="execution") == 1
    assert grown("cella_execution_duration_seconds_count", kind="command") == 3
    assert grown("cella_file_operation_duration_seconds_count", operation="read") == 1
    assert grown("cella_file_operation_duration_seconds_count", operation="write") == 1
    assert grown("cella_errors_total", code="SANDBOX_NOT_FOUND") == 1
    assert grown("cella_http_requests_total", api="cella", **{"class": "read"}, status="404") == 1
    assert grown("cella_http_request_duration_seconds_count", **{"class": "exec"}) == 3
    assert value(after, "cella_sandboxes", status="running") == 1
    assert value(after, "cella_sandboxes_active") == 1
    assert value(after, "cella_sandbox_creates_total", result="success") >= 1
    made = sum(value(after, "cella_sandbox_create_duration_seconds_count", **{"from": way})
               for way in ("pool", "scratch", "clone"))
    assert made == value(after, "cella_sandbox_creates_total", result="success")
    assert value(after, "cella_pool_size", pool="spares") == 1
    assert value(after, "cella_http_connections") >= 1
    assert value(after, "cella_loop_lag_seconds_count") > 10
    assert value(after, "cella_warden_call_duration_seconds_count") >= 1
    assert value(after, "cella_store_write_duration_seconds_count") >= 1
    assert value(after, "process_resident_memory_bytes") > 1 << 20
    assert value(after, "cella_machine_capacity", resource="memory_bytes") > 1 << 20
    assert [key for key in after if key[0] == "cella_build_info"]
    assert types["cella_http_request_duration_seconds"] == "histogram"
    for name in ("retries", "otlp_items", "sandbox_creates"):
        assert types[f"cella_{name}"] == "counter"


def test_a_session_is_told_when_it_is_over(observed):
    before, _ = figures(observed)
    short = observed.create()
    short.run("true")
    for code in ("x = 1", "x"):  # each is one, and the interpreter's own start is none
        assert short.request("POST", "/code", {"code": code}).status == 200
    short.delete()

    def told():
        after, _ = figures(observed)
        return value(after, "cella_session_executions_count") == value(before, "cella_session_executions_count") + 1

    wait_until(told, 30, "a session more")
    after, _ = figures(observed)
    assert value(after, "cella_session_executions_sum") == value(before, "cella_session_executions_sum") + 3
    assert value(after, "cella_session_duration_seconds_count") == value(after, "cella_session_executions_count")


def test_what_strangers_send_makes_no_new_series(observed, box):
    figures(observed)
    before, _ = figures(observed)
    for number in range(30):
        observed.request("GET", f"/v0/sandbox/stranger-{number}")
        observed.request("GET", f"/stranger-{number}/x/y")
        observed.request("BREW", f"/v0/stranger-{number}")
    after, _ = figures(observed)
    assert len(after) - len(before) <= 6
    text = observed.request("GET", "/metrics").text
    assert "stranger" not in text and box.name not in text and "observed-box" not in text


def test_openmetrics_when_it_is_asked_for(observed):
    answer = observed.request("GET", "/metrics", None,
                              {"Accept": "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"})
    assert answer.headers["Content-Type"].startswith("application/openmetrics-text; version=1.0.0")
    families = {family.name: family for family in parse_openmetrics(answer.text)}
    assert families["cella_executions"].type == "counter"
    assert families["cella_loop_lag_seconds"].type == "histogram"


@pytest.mark.skipif(not shutil.which("promtool"), reason="promtool is not installed (Debian: prometheus)")
def test_promtool_is_content(observed):
    text = observed.request("GET", "/metrics").body
    done = subprocess.run(["promtool", "check", "metrics"], input=text, capture_output=True, timeout=60)
    assert done.returncode == 0, done


def test_who_may_read_figures(server, observed):
    assert observed.request("GET", "/metrics", None, {"Authorization": ""}).status == 200
    assert server.request("GET", "/metrics", None, {"Authorization": ""}).status == 401
    workspace = Workspace(server)
    try:
        answer = server.request("GET", "/metrics", None, {"Authorization": f"Bearer {workspace.key('read')}"})
        assert answer.status == 200
    finally:
        workspace.delete()
    assert server.request("POST", "/metrics").status == 405


def test_every_answer_has_an_id(observed, box):
    paths = ["/health", "/ready", "/metrics", "/v0/sandbox", "/v0/nothing", "/v0/sandboxes", "/sandboxes", "/v1/sandboxes",
             "/preview/x", "/files?path=x", "/x/sandboxes/y/process"]
    seen = set()
    for path in paths:
        made = observed.request("GET", path).headers["X-Request-Id"]
        assert re.fullmatch(r"[0-9a-f]{32}", made), path
        seen.add(made)
        kept = observed.request("GET", path, None, {"X-Request-Id": "my-id_1.2:3"})
        assert kept.headers["X-Request-Id"] == "my-id_1.2:3"
    assert len(seen) == len(paths)
    for wrong in ("", "x" * 65, "a b", "a,b", 'a"b', "é"):
        answer = observed.request("GET", "/health", None, {"X-Request-Id": wrong.encode("latin-1")})
        assert re.fullmatch(r"[0-9a-f]{32}", answer.headers["X-Request-Id"]), wrong


def test_log_lines_know_their_request(observed, box):
    answer = observed.request("GET", "/v0/sandbox/no-such-box?token=hidden", None,
                              {"X-Request-Id": "find-me", "traceparent": PARENT})
    assert answer.status == 404
    wait_until(lambda: entries(observed, request_id="find-me", message="request"), 10, "the request's own line")
    lines = entries(observed, request_id="find-me")
    access = [entry for entry in lines if entry["message"] == "request"]
    assert len(access) == 1 and len(lines) >= 2
    assert access[0]["level"] == "info" and access[0]["process"] == "cellad"
    assert access[0]["method"] == "GET" and access[0]["path"] == "/v0/sandbox/no-such-box"
    assert access[0]["route"] == "/v0/sandbox/{name}" and access[0]["status"] == 404
    assert access[0]["duration_ms"] >= 0
    assert access[0]["trace_id"] == TRACE
    assert "hidden" not in observed.log_path.read_text()


def test_every_line_is_json(observed, box):
    observed.request("GET", '/v0/sandbox/%22%0a%ff"\\x')
    observed.request("GET", "/v0/" + "x" * 6000)
    lines = [line for line in observed.log_path.read_text().splitlines() if line.startswith(("{", "20"))]
    processes = {json.loads(line)["process"] for line in lines}
    assert {"warden", "cellad"} <= processes


def test_commands_are_told_their_trace(observed, box):
    answer = box.request("POST", "/process", {"command": "echo $TRACEPARENT $TRACESTATE", "waitForCompletion": True},
                         {"traceparent": PARENT, "tracestate": "a=1, b=2"})
    assert answer.json()["stdout"] == f"{PARENT} a=1,b=2\n"
    assert box.run("echo $TRACEPARENT.") == "."


def test_ready(observed):
    answer = observed.request("GET", "/ready", None, {"Authorization": ""})
    assert answer.status == 200
    assert answer.json() == {"status": "ready", "checks": {"store": "ok", "warden": "ok", "disk": "ok", "audit": "ok", "draining": "ok"}}


def ask_figures(server, method, path, fields=None):
    """At the address that is for figures alone; without a key."""
    told = next(entry["message"] for entry in entries(server, process="supervisor") if "/metrics" in entry["message"])
    parts = urllib.parse.urlsplit(told.split()[-1])
    with contextlib.closing(http.client.HTTPConnection(parts.hostname, parts.port, timeout=30 * PATIENCE)) as connection:
        connection.request(method, path, None, fields or {})
        answer = connection.getresponse()
        return answer.status, answer.headers, answer.read().decode()


def test_an_address_for_figures_alone(observed, box):
    status, fields, text = ask_figures(observed, "GET", "/metrics")
    assert status == 200 and fields["Content-Type"].startswith("text/plain; version=0.0.4"), text
    assert {family.name for family in parse_text(text)} == {family.name for family in parse_text(observed.request("GET", "/metrics").text)}
    _, fields, text = ask_figures(observed, "GET", "/metrics", {"Accept": "application/openmetrics-text;version=1.0.0"})
    assert fields["Content-Type"].startswith("application/openmetrics-text") and text.endswith("# EOF\n")
    assert ask_figures(observed, "GET", "/health")[0] == 200
    assert json.loads(ask_figures(observed, "GET", "/ready")[2])["status"] == "ready"
    assert ask_figures(observed, "HEAD", "/metrics")[2] == ""
    assert ask_figures(observed, "POST", "/metrics")[0] == 405
    key = {"Authorization": f"Bearer {observed.key}"}
    for path in ("/v0/sandbox", "/v0/sandbox/observed-box", "/", "/docs", "/metrics/", "/sandboxes", "/metrics%2f..%2fv0"):
        status, _, text = ask_figures(observed, "GET", path, key)
        assert status == 404 and json.loads(text)["error"]["code"] == "ROUTE_NOT_FOUND", path


def test_an_address_for_figures_that_is_none(observed):
    for wrong in ("nonsense", "127.0.0.1:99999"):
        done = subprocess.run([observed.bin / "cella", "server", "--data", f"{observed.data}-none", "--listen", "127.0.0.1:0",
                               "--metrics-listen", wrong], capture_output=True, text=True, timeout=60 * PATIENCE, check=False)
        assert done.returncode == 2 and "--metrics-listen" in done.stderr, done
    shutil.rmtree(f"{observed.data}-none", ignore_errors=True)


def test_a_callback_is_of_the_trace_that_asked_for_it(observed, box):
    heard = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            heard.append((dict(self.headers), self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as receiver:
        thread = threading.Thread(target=receiver.serve_forever)
        thread.start()
        try:
            pid = box.spawn("python3 -m http.server 4711")
            answer = box.request("POST", f"/network/process/{pid}/monitor",
                                 {"callback": f"http://127.0.0.1:{receiver.server_port}/"},
                                 {"traceparent": PARENT, "tracestate": "a=1"})
            assert answer.status in (200, 201, 202), answer
            wait_until(lambda: heard, 60, "a callback")
        finally:
            receiver.shutdown()
            thread.join()
    fields, _ = heard[0]
    version, trace, span, flags = fields["traceparent"].split("-")
    assert (version, trace, flags) == ("00", TRACE, "01") and re.fullmatch("[0-9a-f]{16}", span)
    assert fields["tracestate"] == "a=1"
