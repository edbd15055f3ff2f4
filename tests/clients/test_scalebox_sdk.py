# SPDX-License-Identifier: Apache-2.0
"""npm @scalebox/sdk, unmodified, against a real server: plain HTTP and TLS on its one port. The tests
themselves are JavaScript, in scalebox/*.test.mjs; each is one test here."""

import pathlib
import urllib.parse

import pytest

import node_tests

FILES = sorted((pathlib.Path(__file__).parent / "scalebox").glob("*.test.mjs"))


@pytest.fixture(scope="module")
def results(server):
    """results(file): what Node said of it; each file is run once."""
    if node_tests.node() is None:
        pytest.skip("the npm packages are not installed: scripts/install-clients says why")
    seen = {}
    port = urllib.parse.urlsplit(server.url).port

    def of(path):
        if path not in seen:
            seen[path] = node_tests.run(path, {
                "SCALEBOX_API_URL": f"http://localhost:{port}", "SCALEBOX_API_KEY": server.key,
                "NODE_EXTRA_CA_CERTS": str(server.data / "tls" / "ca.pem"),
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
