# SPDX-License-Identifier: Apache-2.0
"""Runs node:test files, so that every test in them can be counted as one of pytest's.

The packages and the Node that runs them are those of tests/clients/package.json.
"""

import os
import pathlib
import platform
import re
import subprocess
import tempfile
import xml.etree.ElementTree

import pytest

import client_checks
from cella_server import PATIENCE

CLIENTS = pathlib.Path(__file__).resolve().parents[1] / "clients"
ARCHITECTURES = {"x86_64": "x64", "aarch64": "arm64"}
FILE_TIMEOUT = 300


def node():
    """The Node of package.json, or None where it could not be installed."""
    name = ARCHITECTURES.get(platform.machine(), platform.machine())
    path = CLIENTS / "node_modules" / f"node-linux-{name}" / "bin" / "node"
    return path if path.exists() else None


def names(path):
    """The tests of a file: `test("name", …`, at the left margin."""
    return re.findall(r'^test\("([^"]+)"', path.read_text(), re.M)


def cases(files):
    """For parametrize("file, name", …)."""
    return [pytest.param(file, name, id=f"{file.name.split('.')[0]}: {name}") for file in files for name in names(file)]


def _read(report):
    results = {}
    for case in xml.etree.ElementTree.fromstring(report).iter("testcase"):
        failure = case.find("failure")
        results[case.get("name")] = None if failure is None else (
            (failure.get("message") or "") + "\n" + (failure.text or ""))
    return results


def run(path, env):
    """{name: None, or what went wrong}; under "" what Node printed. Nothing of the environment that
    could lead a client elsewhere gets through."""
    clean = {key: value for key, value in os.environ.items()
             if key in ("PATH", "LANG", "TMPDIR", "CELLA_TEST_PATIENCE")}
    with tempfile.TemporaryDirectory() as home, tempfile.NamedTemporaryFile() as report:
        done = subprocess.run(
            # Clients leave timers behind that nothing waits for.
            [node(), "--test", "--test-force-exit", "--test-reporter=junit", f"--test-reporter-destination={report.name}",
             path],
            env={**clean, "HOME": home, **env}, cwd=CLIENTS, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
            timeout=FILE_TIMEOUT * PATIENCE, check=False)
        text = pathlib.Path(report.name).read_text()
        return {"": done.stdout, **(_read(text) if text.strip() else {})}


def runner(env):
    """results(path), as run() gives them; each file is run once."""
    if node() is None:
        pytest.skip("the npm packages are not installed: scripts/install-clients says why")
    return client_checks.once(lambda path: run(path, env))
