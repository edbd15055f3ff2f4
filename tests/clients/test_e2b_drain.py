# SPDX-License-Identifier: Apache-2.0
"""PyPI e2b, unmodified, while the server is stopped: what runs in the foreground ends in an error that says so."""

import signal
import subprocess
import sys

import client_checks
from cella_server import PATIENCE, Server

PROGRAM = """
from e2b import Sandbox
box = Sandbox.create(timeout=600)
try:
    box.commands.run("echo on; sleep 1000", timeout=0, on_stdout=lambda text: print("on", flush=True))
except Exception as failure:
    print(type(failure).__module__.split(".")[0], type(failure).__name__, failure, flush=True)
"""


def test_a_command_is_told_that_the_server_goes():
    modules = client_checks._modules("python_modules")
    server, client = Server("--drain-timeout", "0s"), None
    try:
        client = subprocess.Popen(  # pylint: disable=consider-using-with
            [sys.executable, "-B", "-c", PROGRAM], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
            env={"PYTHONPATH": modules, "PATH": "/usr/bin:/bin", "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url,
                 "E2B_API_KEY": "e2b_" + server.key.encode().hex()})
        assert client.stdout.readline() == "on\n"
        server.process.send_signal(signal.SIGTERM)
        said = client.communicate(timeout=60 * PATIENCE)[0]
        assert said.startswith("e2b ") and "the server is shutting down" in said, said
        assert server.process.wait(60 * PATIENCE) == 0
    finally:
        if client is not None:
            client.kill()
            client.communicate()
        server.close()
