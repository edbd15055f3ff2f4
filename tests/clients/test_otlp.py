# SPDX-License-Identifier: Apache-2.0
"""What the server sends to an OpenTelemetry collector, decoded by OpenTelemetry's own generated messages; a member
that those do not know fails the test."""

import base64
import gzip
import http.server
import json
import os
import pathlib
import subprocess
import sys
import threading

import pytest

from cella_server import PATIENCE, Server, wait_until

MODULES = pathlib.Path(__file__).resolve().parent / "python_modules_otlp"
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
PARENT = "00f067aa0ba902b7"
TYPES = {"http/protobuf": "application/x-protobuf", "http/json": "application/json"}
DECODE = """
import base64, json, re, sys
from google.protobuf.json_format import MessageToDict, ParseDict
from google.protobuf.unknown_fields import UnknownFieldSet
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest as Metrics
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest as Traces

def strict(message):
    assert len(UnknownFieldSet(message)) == 0, message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for one in (value if field.is_repeated else [value]):
                strict(one)

def from_otlp(value, name=""):
    # OTLP's JSON is protobuf's but for its ids; what the specification says of each kind of value is held.
    if isinstance(value, dict):
        return {key: from_otlp(one, key) for key, one in value.items()}
    if isinstance(value, list):
        return [from_otlp(one, name) for one in value]
    if name in ("traceId", "spanId", "parentSpanId"):
        assert re.fullmatch("[0-9a-f]{32}" if name == "traceId" else "[0-9a-f]{16}", value), (name, value)
        return base64.b64encode(bytes.fromhex(value)).decode()
    if name.endswith("UnixNano") or name in ("count", "bucketCounts", "intValue"):
        assert isinstance(value, str), (name, value)
    if name in ("kind", "code", "aggregationTemporality"):
        assert isinstance(value, int), (name, value)
    return value

def unique(pairs):
    assert len(dict(pairs)) == len(pairs), pairs
    return dict(pairs)

for line in sys.stdin.buffer:  # a body each
    message = {"/v1/traces": Traces, "/v1/metrics": Metrics}[sys.argv[1]]()
    data = base64.b64decode(line)
    if sys.argv[2] == "http/json":
        ParseDict(from_otlp(json.loads(data.decode(), object_pairs_hook=unique)), message)
    else:
        message.ParseFromString(data)
    strict(message)
    print(json.dumps(MessageToDict(message)))
"""


class Collector:
    """Keeps what it is sent; refuses as many as it is told to, first."""

    def __init__(self, protocol, refusals=0):
        self.protocol = protocol
        self.posts, self.refused, refuse = [], [], [refusals]
        self.known = {}  # what a post says, by its number

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(handler):  # pylint: disable=no-self-argument
                body = handler.rfile.read(int(handler.headers["Content-Length"]))
                taken = refuse[0] <= 0
                refuse[0] -= 1
                (self.posts if taken else self.refused).append((handler.path, dict(handler.headers), body))
                handler.send_response(200 if taken else 503)
                handler.send_header("Content-Length", "0")
                handler.end_headers()

            def log_message(handler, *_):  # pylint: disable=no-self-argument
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = "http://127.0.0.1:%d" % self.server.server_port
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def decoded(self, path):
        posts = [(number, fields, body) for number, (where, fields, body) in enumerate(list(self.posts)) if where == path]
        assert all(fields["Content-Type"] == TYPES[self.protocol] for _, fields, _ in posts), posts
        self.decode(path, [post for post in posts if post[0] not in self.known])
        return [json.loads(self.known[number]) for number, _, _ in posts]

    def decode(self, path, posts):
        """All of them by one decoder: it takes longer to start than the server takes to send the next one."""
        bodies = [gzip.decompress(body) if fields.get("Content-Encoding") == "gzip" else body for _, fields, body in posts]
        if not bodies:
            return
        done = subprocess.run([sys.executable, "-c", DECODE, path, self.protocol], input=b"\n".join(map(base64.b64encode, bodies)),
                              capture_output=True, check=False, env={**os.environ, "PYTHONPATH": str(MODULES)}, timeout=60 * PATIENCE)
        assert done.returncode == 0, done.stderr.decode()
        texts = done.stdout.splitlines()
        assert len(texts) == len(posts)
        self.known.update({number: text for (number, _, _), text in zip(posts, texts)})

    def close(self):
        self.server.shutdown()
        self.thread.join()
        self.server.server_close()


@pytest.fixture(scope="module", params=list(TYPES))
def exported(request):
    """A server's collector, after a request with a trace, a command and one that fails."""
    if not MODULES.is_dir():
        pytest.skip("opentelemetry-proto is not installed: scripts/install-clients")
    collector = Collector(request.param, refusals=1)
    server = Server("--otlp-endpoint", collector.address,
                    env={"OTEL_EXPORTER_OTLP_PROTOCOL": request.param, "OTEL_EXPORTER_OTLP_HEADERS": "x-team=one%20two", "OTEL_BSP_SCHEDULE_DELAY": "200",
                             "OTEL_METRIC_EXPORT_INTERVAL": "500", "OTEL_SERVICE_NAME": "mine", "OTEL_RESOURCE_ATTRIBUTES": "service.name=theirs,deployment=test"})
    try:
        box = server.create("traced")
        answer = server.request("POST", "/v0/sandbox/traced/process", {"command": "true", "waitForCompletion": True},
                                headers={"traceparent": f"00-{TRACE}-{PARENT}-01"})
        assert answer.status in (200, 201), answer
        assert server.request("GET", "/v0/sandbox/nothing").status == 404
        wait_until(lambda: any(TRACE in str(span) for span in spans(collector)) and
                   any(where == "/v1/metrics" for where, _, _ in collector.posts), 60, "traces and figures")
        box.delete()
        collector.instance = server.instance
        yield collector
    finally:
        server.close()
        collector.close()


def spans(collector):
    found = []
    for request in collector.decoded("/v1/traces"):
        for resource in request["resourceSpans"]:
            for scope in resource["scopeSpans"]:
                for span in scope["spans"]:
                    for name in ("traceId", "spanId", "parentSpanId"):
                        if name in span:
                            span[name] = base64.b64decode(span[name]).hex()
                    found.append(span)
    return found


def test_a_collector_that_refuses_gets_it_again(exported):
    assert exported.refused and exported.posts


def test_fields_of_the_environment_are_sent(exported):
    for _, fields, _ in exported.posts:
        assert {name.lower(): value for name, value in fields.items()}["x-team"] == "one two", fields


def test_a_request_is_a_span_of_its_callers_trace(exported):
    mine = [span for span in spans(exported) if span["traceId"] == TRACE]
    server = [span for span in mine if span.get("kind") == "SPAN_KIND_SERVER"]
    assert len(server) == 1 and server[0]["parentSpanId"] == PARENT, mine
    said = {one["key"]: one["value"] for one in server[0]["attributes"]}
    assert said["client.address"] == {"stringValue": "127.0.0.1"} and int(said["client.port"]["intValue"]) > 0, said
    assert int(server[0]["startTimeUnixNano"]) < int(server[0]["endTimeUnixNano"])
    ids = {span["spanId"] for span in mine}
    inner = [span for span in mine if span.get("parentSpanId") in ids]
    assert inner, mine  # the command itself
    assert all(len(span["spanId"]) == 16 for span in mine)


def test_the_resource_says_who_it_is(exported):
    for path, member in (("/v1/traces", "resourceSpans"), ("/v1/metrics", "resourceMetrics")):
        for request in exported.decoded(path):
            for resource in request[member]:
                said = {one["key"]: one["value"].get("stringValue") for one in resource["resource"]["attributes"]}
                assert len(said) == len(resource["resource"]["attributes"]), resource
                assert said["service.name"] == "mine" and said["deployment"] == "test", said
                assert said["service.instance.id"] == exported.instance, said


def test_figures(exported):
    names = {}
    for request in exported.decoded("/v1/metrics"):
        for resource in request["resourceMetrics"]:
            for scope in resource["scopeMetrics"]:
                for metric in scope["metrics"]:
                    names[metric["name"]] = metric
    histograms = [metric for metric in names.values() if "histogram" in metric]
    sums = [metric for metric in names.values() if "sum" in metric]
    assert histograms and sums, sorted(names)
    for metric in histograms:
        for point in metric["histogram"]["dataPoints"]:
            assert len(point.get("bucketCounts", [])) == len(point.get("explicitBounds", [])) + 1, metric["name"]
            assert sum(map(int, point["bucketCounts"])) == int(point.get("count", 0)), metric["name"]
        assert metric["histogram"]["aggregationTemporality"] == "AGGREGATION_TEMPORALITY_CUMULATIVE"
