# SPDX-License-Identifier: Apache-2.0
"""npm e2b and @e2b/code-interpreter, unmodified, against a real server: two addresses and a key are
all that they are told. The tests themselves are JavaScript, in e2b/*.test.mjs; each is one here."""

import pathlib

import pytest

import client_checks
import node_tests

FILES = sorted((pathlib.Path(__file__).parent / "e2b").glob("*.test.mjs"))


@pytest.fixture(scope="module")
def results(server):
    return node_tests.runner({
        "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url,
        "E2B_API_KEY": "e2b_" + server.key.encode().hex(),
    })


@pytest.mark.timeout(node_tests.FILE_TIMEOUT + 60)
@pytest.mark.parametrize("file, name", node_tests.cases(FILES))
def test_client(results, file, name):
    client_checks.judge(results(file), name)
