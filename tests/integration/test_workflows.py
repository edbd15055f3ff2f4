# SPDX-License-Identifier: Apache-2.0
"""The two workflows that the first users described, run as the scripts they are."""

import os
import pathlib
import subprocess

import pytest

from cella_server import bin_dir

WORKFLOWS = pathlib.Path(__file__).parents[1] / "workflows"
# Downloaded once; the folder is not part of the repository.
WHEELS = pathlib.Path(__file__).parents[2] / "third_party" / "wheels"
PACKAGES = ["numpy==1.26.4", "pandas==2.2.3", "matplotlib==3.9.4"]

PROCESS = """
import csv
with open('/data/input.csv') as source, open('/data/output.csv', 'w') as result:
    writer = csv.writer(result)
    for name, value in csv.reader(source):
        writer.writerow([name, int(value) ** 2])
"""


@pytest.fixture(scope="session")
def wheels():
    """What pip inside finds instead of a package index: the wheels for the image's Python."""
    complete = WHEELS / "complete"
    if not complete.exists() or complete.read_text() != " ".join(PACKAGES):
        try:
            done = subprocess.run(["/usr/bin/python3", "-m", "pip", "download", "--quiet",
                                   "--only-binary", ":all:", "--dest", WHEELS, *PACKAGES],
                                  capture_output=True, text=True, timeout=150, check=False)
        except subprocess.TimeoutExpired:  # well before the test's own
            pytest.skip("the package index takes too long")
        if done.returncode != 0:
            pytest.skip(f"no package index can be reached: {done.stderr.strip()[-200:]}")
        complete.write_text(" ".join(PACKAGES))
    return WHEELS


def run_script(server, folder, name, *args):
    env = dict(os.environ, PATH=f"{bin_dir()}:{os.environ['PATH']}", CELLA_URL=server.url,
               CELLA_API_KEY=server.key)
    return subprocess.run([WORKFLOWS / name, *args], cwd=folder, env=env, timeout=240,
                          capture_output=True, text=True, check=False)


@pytest.mark.timeout(300)
def test_python_environment(server, wheels, tmp_path):
    try:
        done = run_script(server, tmp_path, "python-environment.sh", wheels)
        assert done.returncode == 0, done
        assert "Successfully installed" in done.stdout
        assert done.stdout.endswith("Python environment is ready!\n"), done.stdout
    finally:
        server.sandbox("python-env").delete()


def test_data_pipeline(server, tmp_path):
    (tmp_path / "local-data.csv").write_text("one,1\ntwo,2\nthree,3\n")
    (tmp_path / "process.py").write_text(PROCESS)
    try:
        done = run_script(server, tmp_path, "data-pipeline.sh")
        assert done.returncode == 0, done
        assert (tmp_path / "processed-data.csv").read_bytes() == b"one,1\r\ntwo,4\r\nthree,9\r\n"
    finally:
        server.sandbox("data-processor").delete()
