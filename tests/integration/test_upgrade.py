# SPDX-License-Identifier: Apache-2.0
"""Sandboxes outlive an upgrade of the server. Their agents are those of the release that has started them, so this
release has to understand them, or to say that it does not."""

import os
import pathlib
import socket
import struct
import sys
import threading

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wirelib  # noqa: E402
from cella_server import Server, bin_dir, wait_until  # noqa: E402
from earlier_programs import earlier_programs  # noqa: E402


class FakeAgent:
    """In the place of a sandbox's agent, of another version (None: it has none). It answers nothing but HELLO."""

    def __init__(self, server, box, version):
        self.version, self.asked = version, []
        self.path = server.data / "run" / "agents" / box.get()["metadata"]["id"]
        owner = self.path.stat()
        self.path.unlink()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(self.path))
        self.listener.listen(16)
        os.chown(self.path, owner.st_uid, owner.st_gid)
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                sock, _ = self.listener.accept()
            except OSError:
                return
            with sock:
                while len(head := sock.recv(12, socket.MSG_WAITALL)) == 12:
                    length, number, _, request = struct.unpack("<IHHI", head)
                    self.asked.append((number, sock.recv(length, socket.MSG_WAITALL) if length else b""))
                    if number == wirelib.MESSAGES["AGENT_HELLO"][0]:
                        sock.sendall(self.about(request))

    def about(self, request):
        if self.version is None:
            return wirelib.encode("ERROR", request, code=2, message="no request of type 64 here")
        return wirelib.encode("AGENT_ABOUT", request, version=self.version, started_ms=1)

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        self.thread.join()


@pytest.mark.parametrize("version", [99, 0, None], ids=["later", "earlier", "strange"])
def test_an_agent_of_another_protocol(server_factory, version):
    """What is inside cannot be reached, and that is said; it can be stopped and deleted like any other."""
    server = server_factory()
    box, other, gone = server.create(), server.create(), server.create()
    box.write("/workspace/kept", "files")
    agents = [FakeAgent(server, one, version) for one in (box, gone)]
    server.wait_recovered(server.kill("cellad"), "cellad")
    assert other.run("echo fine") == "fine"
    for answer in (box.request("POST", "/process", {"command": "true", "waitForCompletion": True}),
                   box.request("GET", "/process"), box.request("GET", "/filesystem/workspace/kept"),
                   box.request("POST", "/code", {"code": "1"})):
        assert (answer.status, answer.error()) == (409, "AGENT_INCOMPATIBLE"), answer
        assert f"version {version or 0} of" in answer.text and "stop it and start it again" in answer.text
    assert {asked for agent in agents for asked in agent.asked} == {(wirelib.MESSAGES["AGENT_HELLO"][0], b"")}
    assert box.status() == "running"
    gone.delete()
    box.stop()
    for agent in agents:
        agent.close()
    assert box.start().read("/workspace/kept") == b"files"
    assert server.leaks() == ""


def start_earlier(programs):
    """A server of those programs; what it answers is not held against today's description of the API."""
    contract, Server.contract = Server.contract, None
    try:
        server = Server("--keep-sandboxes", programs=programs)
    finally:
        Server.contract = contract
    server.contract = None
    return server


def upgrade(server):
    server.stop()
    del server.contract
    server.bin = bin_dir()
    server.start()


def check_used(box, born, process):
    assert box.init_start_time() == born
    assert box.run(f"kill -0 {process} && echo there") == "there"
    assert box.read("/workspace/before") == b"old"
    box.write("/workspace/after", "new")
    assert box.run("cat /workspace/after") == "new"
    answer = box.request("POST", "/process", {"command": "echo out; exit 3", "waitForCompletion": True})
    assert answer.json()["exitCode"] == 3
    # An error's number is the agent's, and means the same here.
    for path, code in [("/filesystem/workspace/missing", "FILE_NOT_FOUND"), ("/process/999999", "PROCESS_NOT_FOUND"),
                       ("/filesystem/workspace/before/x", "NOT_A_DIRECTORY")]:
        assert box.request("GET", path).error() == code
    assert box.request("DELETE", f"/process/{process}").status == 200


@pytest.mark.timeout(900)
def test_sandboxes_of_the_commit_before():
    """The server ends with --keep-sandboxes, and the next one is of today."""
    with earlier_programs() as programs:
        server = start_earlier(programs)
        try:
            used, stopped, deleted = server.create("used"), server.create("stopped"), server.create("deleted")
            used.write("/workspace/before", "old")
            born, process = used.init_start_time(), used.spawn("sleep 100000")
            upgrade(server)
            for box in (used, stopped, deleted):
                box.wait_status("running")
            check_used(used, born, process)
            stopped.stop()
            assert stopped.start().run("echo again") == "again"
            for box in (deleted, used, stopped):
                box.delete()
            wait_until(lambda: server.leaks() == "", 30, server.leaks)
        finally:
            server.bin = bin_dir()
            server.args.remove("--keep-sandboxes")
            if server.process.poll() is None:
                server.process.kill()  # the next one starts without the option, and so takes all down
                server.process.wait()
            server.close()
