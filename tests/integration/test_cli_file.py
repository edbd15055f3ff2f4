# SPDX-License-Identifier: Apache-2.0
"""`cella run NAME file …`: bytes arrive as they are."""

import base64
import hashlib
import json
import os
import pty
import subprocess
import threading

import pytest

ALL_BYTES = bytes(range(256)) * 3


@pytest.fixture
def box(server, shared_sandbox):
    """cli(*args) for files of the sandbox: box("read", "/x")."""

    def run(*args, **kwargs):
        return server.cli("run", shared_sandbox.name, "file", *args, **kwargs)

    run.sandbox = shared_sandbox
    return run


def ok(done):
    assert done.returncode == 0, done
    return done.stdout


def test_exact_bytes(box, tmp_path):
    local = tmp_path / "local"
    local.write_bytes(ALL_BYTES)
    ok(box("write", "/workspace/bytes", "--from-file", local))
    assert ok(box("read", "/workspace/bytes", text=False)) == ALL_BYTES
    assert box.sandbox.read("/workspace/bytes") == ALL_BYTES


def test_stdin(box):
    ok(box("write", "/workspace/in", "-", input=ALL_BYTES, text=False))
    assert ok(box("read", "/workspace/in", text=False)) == ALL_BYTES
    ok(box("write", "/workspace/in", "-", input=b"", text=False))
    assert ok(box("read", "/workspace/in", text=False)) == b""


def test_content(box):
    ok(box("write", "/workspace/deep/er/text", "--content", "grüße\n"))
    assert ok(box("read", "/workspace/deep/er/text")) == "grüße\n"
    ok(box("write", "/workspace/empty", "--content", ""))
    assert ok(box("read", "/workspace/empty")) == ""
    ok(box("write", "/workspace/empty", "--content=--recursive"))
    assert ok(box("read", "/workspace/empty")) == "--recursive"


def test_decode(box):
    ok(box("write", "/workspace/b64", "--content", base64.encodebytes(ALL_BYTES).decode()))
    assert ok(box("read", "/workspace/b64", "--decode", text=False)) == ALL_BYTES
    ok(box("write", "/workspace/b64", "--content", "not base64!"))
    done = box("read", "/workspace/b64", "--decode")
    assert done.returncode == 2
    assert "no base64" in done.stderr


def test_json(box):
    ok(box("write", "/workspace/j", "--content", "text"))
    answer = json.loads(ok(box("read", "/workspace/j", "--output", "json")))
    assert answer["content"] == "text"
    assert json.loads(ok(box("write", "/workspace/j", "--content", "", "-o", "json")))["message"]


def test_permissions(box):
    ok(box("write", "/workspace/tool", "--content", "#!/bin/sh\necho ran\n", "--permissions", "755"))
    assert box.sandbox.run("/workspace/tool") == "ran"
    assert box("write", "/workspace/tool", "--content", "", "--permissions", "999").returncode == 2


def test_ls(box):
    box.sandbox.run("mkdir -p /workspace/ls/sub && cd /workspace/ls && printf abc > file && "
                    "ln -s file link && printf x > \"$(printf 'evil\\033[31m\\nname')\" && touch \"$(printf '\\377')\"")
    lines = ok(box("ls", "/workspace/ls")).splitlines()
    assert lines[0].split() == ["PERMISSIONS", "OWNER", "GROUP", "SIZE", "MODIFIED", "NAME"]
    assert lines[1].endswith("  sub/")
    names = {line.split("  ")[-1] for line in lines[1:]}
    assert names == {"sub/", "file", "link -> file", "evil\\x1b[31m\\nname", "\\xff"}
    assert [line for line in lines if line.endswith("  file")][0].split()[0:5] == [
        "rw-r--r--", "root", "root", "3", "B"]
    answer = json.loads(ok(box("ls", "/workspace/ls", "-o", "json")))
    assert len(answer["subdirectories"]) == 1
    assert "usr/" in {line.split("  ")[-1] for line in ok(box("ls", "/")).splitlines()}


def test_rm(box):
    box.sandbox.run("mkdir -p /workspace/rm/sub && touch /workspace/rm/file")
    ok(box("rm", "/workspace/rm/file"))
    box.sandbox.run("touch /workspace/rm/sub/file")
    full = box("rm", "/workspace/rm")
    assert full.returncode == 4, full
    ok(box("rm", "-r", "/workspace/rm"))
    assert box("rm", "/workspace/rm").returncode == 3


def test_names_that_need_escaping(box):
    for name in ("/workspace/a b", "/workspace/ä%2f?#&", "/workspace/--odd", "/workspace/x\ny"):
        ok(box("write", name, "--content", name))
        assert ok(box("read", name)) == name
        assert box.sandbox.read(name) == name.encode()
    odd = b"/workspace/\xff".decode("utf-8", "surrogateescape")
    ok(box("write", odd, "--content", "odd"))
    assert ok(box("read", odd)) == "odd"


def test_errors(box, tmp_path):
    rows = [
        (("read", "/no/such/file"), 3),
        (("read", "/usr"), 4),
        (("ls", "/etc/passwd"), 4),
        (("ls", "/no/such"), 3),
        (("read", "/../../etc/passwd"), 2),
        (("write", "/workspace/x", "--from-file", tmp_path / "none"), 3),
        (("write", "/workspace/x", "--from-file", tmp_path), 4),
        (("write", "/usr", "--content", "x"), 4),
        (("rm", "/"), 2),
    ]
    for args, status in rows:
        done = box(*args)
        assert done.returncode == status, (args, done)
        assert done.stderr.startswith("cella: "), done
        assert done.stdout == "", done


def test_large_file(box, tmp_path):
    """Far more than a buffer, both ways, with a size that is known and one that is not."""
    local = tmp_path / "large"
    block = os.urandom(1 << 20)
    digest = hashlib.sha256(block * 48).hexdigest()
    local.write_bytes(block * 48)
    ok(box("write", "/workspace/large", "--from-file", local))
    assert hashlib.sha256(ok(box("read", "/workspace/large", text=False))).hexdigest() == digest
    with subprocess.Popen(["cat", local], stdout=subprocess.PIPE) as cat:
        with open(tmp_path / "out", "wb") as out:
            server = box.sandbox.server
            subprocess.run([server.bin / "cella", "run", box.sandbox.name, "file", "write",
                            "/workspace/large", "-", "--data", server.data], stdin=cat.stdout,
                           stdout=out, check=True, timeout=60)
    assert box.sandbox.run("sha256sum < /workspace/large").split()[0] == digest
    ok(box("rm", "/workspace/large"))


def test_no_progress_into_a_pipe(box, tmp_path):
    local = tmp_path / "file"
    local.write_bytes(b"x" * (1 << 20))
    assert box("write", "/workspace/p", "--from-file", local).stderr == ""
    assert box("read", "/workspace/p").stderr == ""


def test_progress_on_a_terminal(box):
    """A slow upload shows how far it is, and takes the line away at the end."""
    server = box.sandbox.server
    ours, theirs = pty.openpty()
    seen = []

    def listen():
        while True:
            try:
                piece = os.read(ours, 4096)
            except OSError:
                return
            if not piece:
                return
            seen.append(piece)

    listener = threading.Thread(target=listen)
    listener.start()
    slow = "head -c 1000000 /dev/zero; sleep 0.7; head -c 1000000 /dev/zero"
    with subprocess.Popen(["sh", "-c", slow], stdout=subprocess.PIPE) as source:
        done = subprocess.run([server.bin / "cella", "run", box.sandbox.name, "file", "write",
                               "/workspace/slow", "-", "--data", server.data],
                              stdin=source.stdout, stdout=subprocess.PIPE, stderr=theirs,
                              timeout=60, check=False)
    os.close(theirs)
    listener.join(timeout=10)
    os.close(ours)
    assert done.returncode == 0
    text = b"".join(seen)
    assert b"MiB" in text or b"KiB" in text
    assert text.endswith(b"\r\x1b[K")
