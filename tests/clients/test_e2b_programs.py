# SPDX-License-Identifier: Apache-2.0
"""Whole programs as people bring them, of the kinds that E2B's documentation and cookbooks have. All that they are
told of this server is two addresses and a key; what breaks then is a bug."""

import pathlib

import pytest

import client_checks
import node_tests

PROGRAMS = sorted(path for path in (pathlib.Path(__file__).parent / "e2b_programs").iterdir()
                  if path.suffix in (".py", ".mjs"))


@pytest.mark.timeout(client_checks.FILE_TIMEOUT + 60)
@pytest.mark.parametrize("path", [pytest.param(path, id=path.name) for path in PROGRAMS])
def test_program(server, path):
    done = client_checks.program(path, "python_modules", node_tests.node(), {
        "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url,
        "E2B_API_KEY": "e2b_" + server.key.encode().hex(),
    })
    assert done.returncode == 0 and done.stdout.endswith("done\n"), done.stdout + done.stderr
    assert not server.request("GET", "/v2/sandboxes").json(), "it has left a sandbox behind"
