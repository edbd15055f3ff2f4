# SPDX-License-Identifier: Apache-2.0
"""E2B's clients with a domain: https://api.DOMAIN and https://PORT-ID.DOMAIN, with certificates by the server's
own authority. The first generation of clients, npm and PyPI, knows no other way."""

import pathlib
import urllib.parse

import pytest

import client_checks
import node_tests
from cella_server import Server

HERE = pathlib.Path(__file__).parent
DOMAIN = "boxes.test"
NODE_FILES = sorted((HERE / "e2b_domain").glob("*.test.mjs"))
PYTHON_FILES = sorted((HERE / "e2b_python_1").glob("check_*.py"))


@pytest.fixture(scope="module")
def environment():
    """What such a program is told: a domain, a key, and whom to believe."""
    server = Server("--domain", DOMAIN)
    authority = str(server.data / "tls" / "ca.pem")
    yield {
        "E2B_DOMAIN": f"{DOMAIN}:{urllib.parse.urlsplit(server.url).port}",
        "E2B_API_KEY": "e2b_" + server.key.encode().hex(),
        "NODE_EXTRA_CA_CERTS": authority, "SSL_CERT_FILE": authority,
        "NODE_OPTIONS": f"--import={HERE / 'e2b_domain' / 'resolve.mjs'}",
    }
    server.close()


@pytest.fixture(scope="module")
def node_results(environment):
    return node_tests.runner(environment)


@pytest.mark.timeout(node_tests.FILE_TIMEOUT + 60)
@pytest.mark.parametrize("file, name", node_tests.cases(NODE_FILES))
def test_npm(node_results, file, name):
    client_checks.judge(node_results(file), name)


@pytest.fixture(scope="module")
def python_results(environment):
    return client_checks.runner("python_modules_1", environment)


@pytest.mark.timeout(client_checks.FILE_TIMEOUT + 60)
@pytest.mark.parametrize("file, name", client_checks.cases(PYTHON_FILES))
def test_pypi(python_results, file, name):
    client_checks.judge(python_results(file), name)
