# SPDX-License-Identifier: Apache-2.0
"""PyPI e2b and e2b-code-interpreter, unmodified, against a real server: the programs are e2b_python/."""

import pathlib

import pytest

import client_checks

FILES = sorted((pathlib.Path(__file__).parent / "e2b_python").glob("check_*.py"))


@pytest.fixture(scope="module")
def results(server):
    return client_checks.runner("python_modules", {
        "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url,
        "E2B_API_KEY": "e2b_" + server.key.encode().hex(),
    })


@pytest.mark.timeout(client_checks.FILE_TIMEOUT + 60)
@pytest.mark.parametrize("file, name", client_checks.cases(FILES))
def test_client(results, file, name):
    client_checks.judge(results(file), name)
