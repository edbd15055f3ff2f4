# SPDX-License-Identifier: Apache-2.0
"""The programs of the commit before, for tests of an upgrade. They are built from the history of this checkout, once per
commit, and kept as an archive beside the programs of today. CELLA_EARLIER_DIR names a folder that has them already."""

import contextlib
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

from cella_server import bin_dir

ROOT = pathlib.Path(__file__).parents[2]
PROGRAMS = ("cella", "cella-agent", "cella-egress", "cella-warden")
BUILD_DEADLINE = 600


def _run(*command, cwd, env=None):
    """(exit status, stdout, what it said last)."""
    try:
        done = subprocess.run(command, cwd=cwd, env={**os.environ, **(env or {})}, capture_output=True, text=True,
                              timeout=BUILD_DEADLINE, check=False)
    except subprocess.TimeoutExpired:
        return -1, "", f"it took more than {BUILD_DEADLINE} s"
    return done.returncode, done.stdout, done.stdout[-2000:] + done.stderr[-2000:]


def _commit():
    """The commit before this checkout's, or its own when files of the programs differ from it."""
    if shutil.which("git") is None:
        pytest.skip("no git: there is no earlier commit to build")
    status, changed, said = _run("git", "-c", "safe.directory=*", "status", "--porcelain", "src", cwd=ROOT)
    if status != 0:
        pytest.skip(f"no history to build an earlier commit from: {said.strip()}")
    name = "HEAD" if changed.strip() else "HEAD~1"
    status, commit, said = _run("git", "-c", "safe.directory=*", "rev-parse", "--verify", f"{name}^{{commit}}", cwd=ROOT)
    if status != 0:
        pytest.skip(f"no earlier commit: {said.strip()}")
    return commit.strip()


def _build(commit, into):
    """Compiles the programs, and nothing else. With ccache most of it is there already."""
    with tempfile.TemporaryDirectory(prefix="cella-earlier-") as folder:
        env = {"CCACHE_BASEDIR": folder, "CCACHE_NOHASHDIR": "1"}
        if os.environ.get("CC") and shutil.which("ccache"):
            env["CC"] = f"ccache {os.environ['CC']}"
        if (ROOT / "third_party").exists():  # fetched, not in the history
            os.symlink(ROOT / "third_party", f"{folder}/third_party")
        for command in (["sh", "-c", f"git -c safe.directory='*' -C '{ROOT}' archive {commit} | tar -x -C '{folder}'"],
                        ["meson", "setup", "build", "-Dtests=false"],
                        ["ninja", "-C", "build", "--quiet", *(f"src/{name}" for name in (
                            "main/cella", "agent/cella-agent", "egress/cella-egress", "warden/cella-warden"))]):
            status, _, said = _run(*command, cwd=folder, env=env)
            if status != 0:
                pytest.skip(f"the earlier commit {commit[:12]} cannot be built: {' '.join(command)[:80]}: {said}")
        for name in PROGRAMS:
            shutil.copy2(next(pathlib.Path(folder, "build", "src").glob(f"*/{name}")), into / name)


@contextlib.contextmanager
def earlier_programs():
    """A folder with them, for as long as it is needed; or the test is skipped with the reason."""
    given = os.environ.get("CELLA_EARLIER_DIR")
    if given:
        yield pathlib.Path(given)
        return
    commit = _commit()
    kept = bin_dir() / f"earlier-{commit}.tar"
    with tempfile.TemporaryDirectory(prefix="cella-programs-") as folder:
        os.chmod(folder, 0o755)
        if kept.exists():
            shutil.unpack_archive(kept, folder)
        else:
            _build(commit, pathlib.Path(folder))
            made = shutil.make_archive(f"{kept}.{os.getpid()}", "tar", folder)
            for old in bin_dir().glob("earlier-*.tar"):
                if old != pathlib.Path(made):
                    old.unlink(missing_ok=True)
            os.replace(made, kept)
        yield pathlib.Path(folder)
