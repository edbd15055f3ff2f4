# SPDX-License-Identifier: Apache-2.0
"""What runs, or has files, and belongs to nobody is found and removed while the server runs; what belongs to somebody
stays, whatever state it is in."""

import os
import pathlib
import signal
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wardenlib  # noqa: E402
import wirelib  # noqa: E402
from cella_server import wait_until  # noqa: E402
from clones import clone  # noqa: E402


def ready(server):
    return server.request("GET", "/v0/pools/spares").json()["status"]["ready"]


def start_behind_its_back(server, *ids):
    """What cellad has given up may be carried out all the same, when the warden was busy for minutes."""
    cellad = server.pids().cellad
    os.kill(cellad, signal.SIGSTOP)
    try:
        with wirelib.Connection(f"{server.data}/run/warden.sock") as warden:
            warden.call("WARDEN_HELLO", epoch=wirelib.next_epoch())
            for sandbox_id in ids:
                warden.call("WARDEN_START", id=sandbox_id, **wardenlib.PLAN)
    finally:
        os.kill(cellad, signal.SIGCONT)


def test_what_belongs_to_nobody_goes(server_factory):
    server = server_factory("--storage", "plain")
    answer = server.request("POST", "/v0/pools", {"name": "spares", "size": 2})
    assert answer.status == 201, answer
    running, idle = server.create("running"), server.create("idle")
    idle.write("/workspace/kept", "files")
    idle.stop()
    copy = clone(idle, "copy", "stopped", spec={"enabled": False})
    born = running.init_start_time()
    idle_id, stranger = idle.get()["metadata"]["id"], pathlib.Path(server.data, "volume", "stranger")
    wait_until(lambda: ready(server) == 2, 30, "a full pool")

    start_behind_its_back(server, idle_id, "unknown")
    wait_until(lambda: "removing unknown, which belongs to no sandbox" in server.log_path.read_text(), 30, server.log)
    (stranger / "root" / "upper").mkdir(parents=True)
    wait_until(lambda: not stranger.exists(), 30, lambda: f"the stranger removed\n{server.log()}")
    wait_until(lambda: server.leaks() == "", 30, lambda: f"{server.leaks()}\n{server.log()}")
    log = server.log_path.read_text()
    assert "removing stranger, which nobody knows" in log
    assert f"stopping sandbox {idle_id}, which runs and should not" in log

    assert running.init_start_time() == born
    assert idle.status() == copy.status() == "stopped"
    for box in (idle, copy):
        assert box.start().read("/workspace/kept") == b"files"
    wait_until(lambda: ready(server) == 2, 30, "a full pool")
    removed = [line for line in server.log_path.read_text().splitlines() if " removing " in line]
    assert len(removed) == 2, removed
