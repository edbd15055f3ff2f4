# SPDX-License-Identifier: Apache-2.0
"""Runs programs that use real clients from package registries, each function or test of them as one of pytest's.

A Python program of clients runs in a process of its own, with the packages of one folder and nothing
else; each of its functions check_* is one test."""

import json
import os
import pathlib
import re
import subprocess
import sys

import pytest

from cella_server import PATIENCE

CLIENTS = pathlib.Path(__file__).resolve().parents[1] / "clients"
FILE_TIMEOUT = 300


def names(path):
    return re.findall(r"^def (check_\w+)\(", path.read_text(), re.M)


def cases(files):
    """For parametrize("file, name", …)."""
    return [pytest.param(file, name, id=f"{file.stem}: {name}") for file in files for name in names(file)]


def _process(command, env):
    clean = {key: value for key, value in os.environ.items()
             if key in ("PATH", "LANG", "TMPDIR", "HOME", "CELLA_TEST_PATIENCE")}
    return subprocess.run(command, env={**clean, **env}, cwd=CLIENTS, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace",
                          timeout=FILE_TIMEOUT * PATIENCE, check=False)


def _modules(folder):
    modules = CLIENTS / folder
    if not (modules / ".installed-for").exists():
        pytest.skip("the Python packages are not installed: scripts/install-clients says why")
    return str(modules)


def program(path, folder, node, env):
    """A whole program in Python or JavaScript, as subprocess.run() gives it."""
    if path.suffix == ".py":
        return _process([sys.executable, "-B", path], {"PYTHONPATH": _modules(folder), **env})
    if node is None:
        pytest.skip("the npm packages are not installed: scripts/install-clients says why")
    return _process([node, path], env)


def _run(path, modules, env):
    done = _process([sys.executable, "-B", CLIENTS / "e2b_python" / "run.py", path], {"PYTHONPATH": modules, **env})
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {"": done.stdout + done.stderr, **{line["name"]: line["failure"] for line in lines}}


def once(run):
    """run(path), done once for each."""
    seen = {}

    def of(path):
        if path not in seen:
            seen[path] = run(path)
        return seen[path]

    return of


def runner(folder, env):
    """results(path): {name: None, or what went wrong}; under "" what it printed."""
    modules = _modules(folder)
    return once(lambda path: _run(path, modules, env))


def judge(said, name):
    """Fails as the client's test did, or when it was never come to."""
    if name not in said:
        pytest.fail(f"it did not come to it:\n{said['']}", pytrace=False)
    if said[name] is not None:
        pytest.fail(said[name], pytrace=False)
