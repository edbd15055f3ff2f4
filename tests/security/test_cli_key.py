# SPDX-License-Identifier: Apache-2.0
"""The key in a data folder is sent to the server that runs there, never to another program at its address."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

from cella_server import bin_dir

KEY = "cella_" + "k" * 40

# In a network namespace of its own, where port 7070 is free for a stranger.
STRANGER = """
import os, socket, subprocess, sys, threading
subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
heard = []
def take(listener):
    while True:
        peer, _ = listener.accept()
        heard.append(peer.recv(65536))
        peer.sendall(b"HTTP/1.1 200 OK\\r\\nContent-Type: application/json\\r\\nContent-Length: 2\\r\\n\\r\\n[]")
        peer.close()
for port in (7070, 7071):
    listener = socket.create_server(("127.0.0.1", port))
    threading.Thread(target=take, args=(listener,), daemon=True).start()
done = subprocess.run(sys.argv[1:], capture_output=True, text=True, timeout=60)
print(done.returncode, done.stderr, heard)
sys.stdout.flush()
os._exit(0)
"""


def cella(*args, env=None):
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("CELLA_", "BL_"))}
    return subprocess.run(
        ["unshare", "--net", sys.executable, "-c", STRANGER, str(bin_dir() / "cella"), *map(str, args)],
        capture_output=True, text=True, timeout=120, check=True, env={**clean, "HOME": "/nonexistent", **(env or {})}).stdout


@pytest.fixture
def folder(tmp_path):
    """A data folder whose server was killed: its key, its address and its socket are still there."""
    (tmp_path / "run").mkdir(mode=0o750)
    (tmp_path / "api-key").write_text(KEY + "\n", encoding="ascii")
    (tmp_path / "api-key").chmod(0o600)
    (tmp_path / "run/server").write_text("1\n2\n3\nhttp://127.0.0.1:7071\n0\n", encoding="ascii")
    with socket.socket(socket.AF_UNIX) as left:
        here = os.open(tmp_path / "run", os.O_PATH)
        left.bind(f"/proc/self/fd/{here}/api.sock")
        os.close(here)
    return tmp_path


@pytest.mark.parametrize("left", [("server", "api.sock"), ("server",), ("api.sock",), ()])
def test_without_a_server(folder, left):
    """The addresses that the folder's server had, and has by default, belong to a stranger now."""
    for name in {"server", "api.sock"} - set(left):
        (folder / "run" / name).unlink()
    for args, env in ((("--data", folder), {}), ((), {"CELLA_DATA": str(folder)})):
        said = cella(*args, "sandbox", "list", env=env)
        assert "no server is running with the data folder" in said and f"cella server --data {folder}" in said, said
        assert said.rstrip().endswith("[]") and KEY not in said, said


@pytest.mark.parametrize("url", ["http://127.0.0.1:7070", "http://127.0.0.1:7071", "http://localhost:7071"])
def test_an_address_given_by_hand(folder, url):
    """Even with the folder named beside it, and even when it is the one that its server had."""
    for args, env in ((("--data", folder, "--url", url), {}), ((), {"CELLA_DATA": str(folder), "CELLA_URL": url})):
        assert KEY not in cella(*args, "sandbox", "list", env=env)
    # A key that was given for it is sent.
    assert "Bearer given" in cella("--url", url, "sandbox", "list", env={"CELLA_API_KEY": "given"})
    assert "Bearer given" in cella("sandbox", "list", "--api-key", "given", env={"CELLA_URL": url})


def test_a_socket_that_a_stranger_could_have_made(folder):
    """No key at all goes there, one that was given neither."""
    os.chown(folder / "run", 12345, 12345)
    said = cella("--data", folder, "--api-key", "given", "sandbox", "list")
    assert "12345" in said and "given" not in said.partition("[")[2], said
    os.chown(folder / "run", 0, 0)
    pathlib.Path(folder / "run").chmod(0o777)
    assert "others may write to" in cella("--data", folder, "sandbox", "list")
