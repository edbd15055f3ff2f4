# SPDX-License-Identifier: Apache-2.0
"""PyPI e2b and e2b-code-interpreter, unmodified, against a real server. The client runs in a process of
its own, with the packages of requirements.txt and nothing else; each function of e2b_python/ is one test."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from cella_server import PATIENCE

HERE = pathlib.Path(__file__).parent
MODULES = HERE / "python_modules"
FILES = sorted((HERE / "e2b_python").glob("check_*.py"))
FILE_TIMEOUT = 300


def names(path):
    return re.findall(r"^def (check_\w+)\(", path.read_text(), re.M)


def run(path, env):
    """{name: None, or what went wrong}; under "" what it printed."""
    clean = {key: value for key, value in os.environ.items()
             if key in ("PATH", "LANG", "TMPDIR", "HOME", "CELLA_TEST_PATIENCE")}
    done = subprocess.run(
        [sys.executable, "-B", HERE / "e2b_python" / "run.py", path],
        env={**clean, "PYTHONPATH": str(MODULES), **env}, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
        timeout=FILE_TIMEOUT * PATIENCE, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {"": done.stdout + done.stderr, **{line["name"]: line["failure"] for line in lines}}


@pytest.fixture(scope="module")
def results(server):
    if not (MODULES / ".installed-for").exists():
        pytest.skip("the Python packages are not installed: scripts/install-clients says why")
    seen = {}

    def of(path):
        if path not in seen:
            seen[path] = run(path, {
                "E2B_API_URL": server.url, "E2B_SANDBOX_URL": server.url,
                "E2B_API_KEY": "e2b_" + server.key.encode().hex(),
            })
        return seen[path]

    return of


@pytest.mark.timeout(FILE_TIMEOUT + 60)
@pytest.mark.parametrize("file, name", [
    pytest.param(file, name, id=f"{file.stem}: {name}") for file in FILES for name in names(file)])
def test_client(results, file, name):
    said = results(file)
    if name not in said:
        pytest.fail(f"it did not come to it:\n{said['']}", pytrace=False)
    if said[name] is not None:
        pytest.fail(said[name], pytrace=False)
