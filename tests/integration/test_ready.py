# SPDX-License-Identifier: Apache-2.0
"""/ready when what it looks at fails, each for real: it says which, to anybody, and says yes again afterwards."""

import contextlib
import os
import pathlib
import shutil
import signal
import sqlite3
import subprocess
import tempfile

import pytest

from cella_fixtures import _requirements
from cella_server import Server, bin_dir, wait_until

ROOM = 320  # MiB, of the disk that the server has


@pytest.fixture(scope="module")
def server(contract):
    """One with a small disk and programs of its own, so that both can be taken away."""
    _requirements()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cella-ready-", dir="/tmp"))
    folder.chmod(0o755)
    programs, data = folder / "bin", folder / "data"
    data.mkdir()
    shutil.copytree(bin_dir(), programs, ignore=lambda _, names: [n for n in names if not n.startswith("cella") or "." in n])
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={ROOM}m,mode=0711", "cella-ready", data], check=True)
    try:
        made = Server("--storage", "plain", "--network", "off", "--audit", "size=64Ki", "--rate-limit", "off", programs=programs, data=data)
        yield made
        made.close()
    finally:
        subprocess.run(["umount", "-l", data], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def ask(server):
    answer = server.request("GET", "/ready", None, {"Authorization": None})
    said = answer.json()
    wrong = {name: text for name, text in said["checks"].items() if text != "ok"}
    assert (answer.status, said["status"]) == ((503, "not ready") if wrong else (200, "ready")), answer
    assert answer.headers["Cache-Control"] == "no-store"
    return wrong


def says(server, *names):
    """Waits until exactly these are wrong."""
    return wait_until(lambda: (wrong := ask(server)).keys() == set(names) and (wrong or True), 60,
                      lambda: f"{names}, it says {ask(server)}")


def test_a_warden_that_does_not_answer(server):
    says(server)
    warden = server.pids().warden
    os.kill(warden, signal.SIGSTOP)
    try:
        assert says(server, "warden") == {"warden": "no answer"}
        assert server.request("GET", "/health").status == 200
    finally:
        os.kill(warden, signal.SIGCONT)
    says(server)


def test_a_warden_that_is_dead_and_cannot_be_started(server):
    program = server.bin / "cella-warden"
    program.rename(server.bin / "away")
    try:
        server.kill("warden")
        assert says(server, "warden")["warden"] in ("UNAVAILABLE", "no answer")
    finally:
        (server.bin / "away").rename(program)
    says(server)


def test_a_database_that_somebody_else_holds(server):
    with contextlib.closing(sqlite3.connect(server.data / "db/cella.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        assert says(server, "store")["store"] in ("no answer", "CONFLICT", "UNAVAILABLE")
        other.execute("ROLLBACK")
    says(server)


def test_a_database_that_has_gone(server):
    (server.data / "db").rename(server.data / "elsewhere")
    try:
        assert says(server, "store") == {"store": "UNAVAILABLE"}
    finally:
        (server.data / "elsewhere").rename(server.data / "db")
    says(server)


def test_a_disk_that_is_nearly_full(server):
    filler = server.data / "filler"
    free = shutil.disk_usage(server.data).free
    with open(filler, "wb") as out:
        os.posix_fallocate(out.fileno(), 0, free - (40 << 20))
    try:
        wrong = says(server, "disk")
        assert wrong["disk"].startswith("only ") and wrong["disk"].endswith(" MiB are free"), wrong
        box = server.create(enabled=False)  # it is still served
        box.delete()
    finally:
        filler.unlink()
    says(server)


def test_a_disk_that_is_full(server):
    """Nothing can be recorded any more, so nothing is changed, and it is not ready."""
    box = server.create(enabled=False)
    base = f"/v0/sandboxes/{box.name}/previews"
    made = server.request("POST", base, {"metadata": {"name": "session"}, "spec": {"port": 443, "public": False}})
    session = made.json()["spec"]["url"].removeprefix(server.url)
    token = server.request("POST", f"{base}/session/tokens", {}).json()["spec"]["token"]
    filler = server.data / "filler"
    with contextlib.suppress(OSError), open(filler, "wb", buffering=0) as out:
        while True:
            out.write(bytes(1 << 16))
    try:
        def noticed():
            for _ in range(20):  # the room that was taken ahead is used up
                server.request("GET", "/v0/sandbox/" + "x" * 60)
            wrong = ask(server)
            return {"disk", "audit"} <= wrong.keys() and wrong

        wrong = wait_until(noticed, 60, lambda: f"disk and audit, it says {ask(server)}")
        assert wrong["audit"] == "AUDIT_UNAVAILABLE"
        assert wrong["disk"] in ("only 0 MiB are free", "only 1 MiB are free")  # a file of the log may have gone
        assert server.request("POST", "/v0/workspaces", {"name": "later"}).error() == "AUDIT_UNAVAILABLE"
        visit = server.request("PUT", session + "/filesystem/%2Ftmp%2Fa", {"content": "x"}, {
            "Authorization": None, "X-Blaxel-Preview-Token": token})
        assert visit.status == 503 and "audit log" in visit.json()["error"], visit
    finally:
        filler.unlink()
    says(server)
    assert server.request("POST", "/v0/workspaces", {"name": "later"}).status == 201
    box.delete()
