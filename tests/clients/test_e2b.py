# SPDX-License-Identifier: Apache-2.0
"""npm e2b and @e2b/code-interpreter, unmodified, against a real server: two addresses and a key are
all that they are told. The tests themselves are JavaScript, in e2b/*.test.mjs; each is one here."""

import pathlib

import pytest

import node_tests

FILES = sorted((pathlib.Path(__file__).parent / "e2b").glob("*.test.mjs"))


@pytest.fixture(scope="module")
def results(server):
    """results(file): what Node said of it; each file is run once."""
    if node_tests.node() is None:
        pytest.skip("the npm packages are not installed: scripts/install-clients says why")
    seen = {}

    def of(path):
        if path not in seen:
            seen[path] = node_tests.run(path, {
                "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url,
                "E2B_API_KEY": "e2b_" + server.key.encode().hex(),
            })
        return seen[path]

    return of


@pytest.mark.timeout(node_tests.FILE_TIMEOUT + 60)
@pytest.mark.parametrize("file, name", [
    pytest.param(file, name, id=f"{file.name.split('.')[0]}: {name}")
    for file in FILES for name in node_tests.names(file)])
def test_client(results, file, name):
    said = results(file)
    if name not in said:
        pytest.fail(f"Node did not come to it:\n{said['']}", pytrace=False)
    if said[name] is not None:
        pytest.fail(said[name], pytrace=False)
