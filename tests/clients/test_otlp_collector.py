# SPDX-License-Identifier: Apache-2.0
"""What the server sends, taken by OpenTelemetry's own collector, where there is one (`otelcol` or `otelcol-contrib`): it
refuses what is not OTLP, and prints what it has understood. Elsewhere test_otlp.py is what there is."""

import re
import shutil
import socket
import subprocess

import pytest

from cella_server import Server, wait_until

COLLECTOR = shutil.which("otelcol") or shutil.which("otelcol-contrib")
TRACE = "0af7651916cd43dd8448eb211c80319c"
CONFIG = """
receivers: {otlp: {protocols: {http: {endpoint: "127.0.0.1:%d"}}}}
exporters: {debug: {verbosity: detailed}}
service:
  telemetry: {metrics: {level: none}}
  pipelines:
    traces: {receivers: [otlp], exporters: [debug]}
    metrics: {receivers: [otlp], exporters: [debug]}
"""


class Collector:
    def __init__(self, folder):
        with socket.socket() as sock:
            sock.bind(("127.0.0.1", 0))
            self.port = sock.getsockname()[1]
        (folder / "config.yaml").write_text(CONFIG % self.port)
        self.log = folder / "log"
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen([COLLECTOR, "--config", folder / "config.yaml"], stdin=subprocess.DEVNULL,
                                            stdout=log, stderr=subprocess.STDOUT)

    def said(self):
        return self.log.read_text(errors="replace")

    def close(self):
        self.process.terminate()
        self.process.wait()


@pytest.fixture
def collector(tmp_path):
    made = Collector(tmp_path)
    try:
        wait_until(lambda: "Everything is ready" in made.said(), 60, made.said)
        yield made
    finally:
        made.close()


@pytest.mark.skipif(COLLECTOR is None, reason="there is no otelcol on this machine")
@pytest.mark.parametrize("protocol", ["http/protobuf", "http/json"])
def test_the_collector_understands_it(collector, protocol):
    server = Server("--otlp-endpoint", f"http://127.0.0.1:{collector.port}",
                    env={"OTEL_EXPORTER_OTLP_PROTOCOL": protocol, "OTEL_BSP_SCHEDULE_DELAY": "200",
                         "OTEL_METRIC_EXPORT_INTERVAL": "500", "OTEL_RESOURCE_ATTRIBUTES": "deployment=test"})
    try:
        box = server.create("traced")
        assert server.request("POST", "/v0/sandbox/traced/process", {"command": "true", "waitForCompletion": True},
                              headers={"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}).status == 200
        wait_until(lambda: TRACE in collector.said() and "cella_executions" in collector.said().replace(".", "_"), 60,
                   collector.said)
        box.delete()
        said = collector.said()
        assert "service.name: Str(" in said and "deployment: Str(test)" in said
        assert re.search(r"Kind +: Server", said) and "Parent ID      : 00f067aa0ba902b7" in said
        assert "IsMonotonic: true" in said and "AggregationTemporality: Cumulative" in said
        assert "DataType: Histogram" in said
        text = server.request("GET", "/metrics").text
        assert re.search(r'cella_otlp_items_total\{result="exported"\} [1-9]', text), text
        assert not re.search(r'cella_otlp_items_total\{result="(dropped|rejected)"\} [1-9]', text), text
    finally:
        server.close()
