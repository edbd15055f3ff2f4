# SPDX-License-Identifier: Apache-2.0
"""npm @scalebox/sdk, unmodified, against a real server: plain HTTP and TLS on its one port. The tests
themselves are JavaScript, in scalebox/*.test.mjs; each is one test here."""

import pathlib
import urllib.parse

import pytest

import client_checks
import node_tests

FILES = sorted((pathlib.Path(__file__).parent / "scalebox").glob("*.test.mjs"))


@pytest.fixture(scope="module")
def results(server):
    port = urllib.parse.urlsplit(server.url).port
    return node_tests.runner({
        "SCALEBOX_API_URL": f"http://localhost:{port}", "SCALEBOX_API_KEY": server.key,
        "NODE_EXTRA_CA_CERTS": str(server.data / "tls" / "ca.pem"),
    })


@pytest.mark.timeout(node_tests.FILE_TIMEOUT + 60)
@pytest.mark.parametrize("file, name", node_tests.cases(FILES))
def test_client(results, file, name):
    client_checks.judge(results(file), name)
