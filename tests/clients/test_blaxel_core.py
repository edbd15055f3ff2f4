# SPDX-License-Identifier: Apache-2.0
"""npm @blaxel/core, unmodified, against a real server. The tests themselves are JavaScript, in
blaxel/*.test.mjs; each is one test here."""

import pathlib

import pytest

import client_checks
import node_tests

FILES = sorted((pathlib.Path(__file__).parent / "blaxel").glob("*.test.mjs"))


@pytest.fixture(scope="module")
def results(server):
    return node_tests.runner({
        "BL_API_URL": f"{server.url}/v0", "BL_RUN_URL": server.url,
        "BL_API_KEY": server.key, "BL_WORKSPACE": "default",
        "BL_DISABLE_H2": "1", "DO_NOT_TRACK": "1",
    })


@pytest.mark.timeout(node_tests.FILE_TIMEOUT + 60)
@pytest.mark.parametrize("file, name", node_tests.cases(FILES))
def test_client(results, file, name):
    client_checks.judge(results(file), name)
