# SPDX-License-Identifier: Apache-2.0
"""Paths that change their meaning while they are used: by the file API, by `cella cp`, by the warden
at the next start and in a clone. A canary on the machine must be neither read nor changed."""

import os
import threading

import pytest

from cella_inside import spawn_inside
from cella_server import wait_until

SECRET = "a secret of the machine"


@pytest.fixture
def canary(tmp_path):
    folder = tmp_path / "canary"
    folder.mkdir()
    (folder / "file").write_text(SECRET)
    (folder / "hostname").write_text(SECRET)
    for path in (tmp_path, folder):
        path.chmod(0o777)
    before = sorted(os.listdir(folder))
    yield folder
    assert sorted(os.listdir(folder)) == before
    assert (folder / "file").read_text() == SECRET
    assert (folder / "hostname").read_text() == SECRET


# Two names that are exchanged without a moment in which either is missing.
SWAPPER = """
a, b = sys.argv[1].encode(), sys.argv[2].encode()
""".replace("sys.argv[1]", "{a!r}").replace("sys.argv[2]", "{b!r}") + """
print('ready', flush=True)
while True:
    libc.renameat2(-100, a, -100, b, 2)
"""


def swap(sandbox, a, b):
    pid = spawn_inside(sandbox, SWAPPER.replace("{a!r}", repr(a)).replace("{b!r}", repr(b)))
    wait_until(lambda: sandbox.logs(pid)["stdout"] == "ready\n", 60, lambda: sandbox.logs(pid))
    return pid


@pytest.mark.parametrize("target", ["canary", "/proc/1/root", "/proc/self/fd", "/proc/self/root"])
def test_directory_and_link_exchanged_during_calls(sandbox, canary, target):
    """Every verb of the file API, through a directory that is a link every other moment."""
    place = str(canary) if target == "canary" else target
    sandbox.run(f"mkdir -p /workspace/d/sub && echo own > /workspace/d/file && ln -s {place} /workspace/l")
    swap(sandbox, "/workspace/d", "/workspace/l")
    texts, statuses = [], set()
    for number in range(25):
        for method, path, body in (
                ("GET", "/filesystem/workspace/d/file", None),
                ("GET", "/filesystem/workspace/d", None),
                ("GET", "/filesystem/tree/workspace/d", None),
                ("PUT", "/filesystem/workspace/d/file", {"content": f"changed {number}"}),
                ("PUT", "/filesystem/tree/workspace/d", {"files": {"file": "changed", "n/new": "x"}}),
                ("PUT", f"/filesystem/workspace/d/made{number}", {"isDirectory": True}),
                ("DELETE", f"/filesystem/workspace/d/made{number}", None)):
            answer = sandbox.request(method, path, body)
            statuses.add(answer.status)
            texts.append(answer.text)
    assert not any(SECRET in text for text in texts)
    assert statuses & {200} and not statuses & {500, 502, 504}, statuses
    assert sandbox.exec("echo well").stdout == "well\n"


def test_a_tree_that_moves_while_it_is_removed(sandbox, canary):
    """`..` of a directory that was moved elsewhere leads elsewhere: it is not believed."""
    sandbox.run(f"mkdir -p /workspace/away /workspace/keep && touch /workspace/keep/f &&"
                f" ln -s {canary} /workspace/away/out")
    pid = spawn_inside(sandbox, """
import shutil
print('ready', flush=True)
while not os.path.exists('/tmp/stop'):
    quiet(os.makedirs, '/workspace/t/a/b/c/d')
    quiet(os.symlink, '/workspace/keep', '/workspace/t/a/b/c/link')
    quiet(os.rename, '/workspace/t/a/b', '/workspace/keep/b')
    quiet(os.rename, '/workspace/keep/b', '/workspace/t/a/b')
print('done', flush=True)
""")
    wait_until(lambda: "ready" in sandbox.logs(pid)["stdout"], 60, lambda: sandbox.logs(pid))
    statuses = {sandbox.request("DELETE", "/filesystem/workspace/t?recursive=true").status
                for _ in range(100)}
    sandbox.run("touch /tmp/stop")
    wait_until(lambda: "done" in sandbox.logs(pid)["stdout"], 60, lambda: sandbox.logs(pid))
    assert statuses <= {200, 204, 404, 403, 409}, statuses
    assert sandbox.exec("test -e /workspace/keep/f").exit_code == 0


@pytest.mark.parametrize("key", ["../../../../../../../..{canary}/file", "/..{canary}/file",
                                 "a/../../../../../..{canary}/file", "./../..{canary}/file"])
def test_trees_with_names_that_climb(sandbox, canary, key):
    """The file API's archive is a JSON of names: none leads out of the sandbox."""
    name = key.replace("{canary}", str(canary))
    answer = sandbox.request("PUT", "/filesystem/tree/workspace/t", {"files": {name: "changed"}})
    assert answer.status in (200, 400), answer
    assert sandbox.exec("echo well").stdout == "well\n"


def test_hostile_archive_unpacked_inside(sandbox, canary):
    """A tar with absolute names, `..`, a link and a file behind it, a device and a setuid file: tar may
    do with it what it likes, in the sandbox."""
    import io
    import tarfile
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        def add(name, kind=tarfile.REGTYPE, content=b"changed", **fields):
            entry = tarfile.TarInfo(name)
            entry.type, entry.size = kind, len(content) if kind == tarfile.REGTYPE else 0
            for field, value in fields.items():
                setattr(entry, field, value)
            archive.addfile(entry, io.BytesIO(content))
        add(f"../../../../../../../..{canary}/file")
        add(f"{canary}/file")
        add("out", tarfile.SYMTYPE, linkname=str(canary))
        add("out/file")
        add("hard", tarfile.LNKTYPE, linkname=f"../../../../../../..{canary}/file")
        add("disk", tarfile.BLKTYPE, devmajor=254, devminor=0)
        add("suid", mode=0o4755)
    sandbox.write("/workspace/hostile.tar", data.getvalue())
    sandbox.exec("cd /workspace && tar -xPf hostile.tar")
    assert sandbox.exec("test -b /workspace/disk").exit_code != 0
    assert sandbox.run("stat -c %a /workspace/suid") == "4755"  # its own root's, and nobody else's


def test_copying_out_of_a_hostile_tree(server, sandbox, canary, tmp_path):
    """`cella cp` from a sandbox that exchanges directories for links while it is copied, and has links
    of the names that come next: nothing is written beside the target."""
    sandbox.run(f"mkdir -p /workspace/t/d /workspace/t/e && ln -s {canary} /workspace/t/l &&"
                f" ln -s {canary}/file /workspace/t/d/file && echo changed > /workspace/t/e/file &&"
                " for i in $(seq 50); do echo changed > /workspace/t/d/f$i; done")
    swap(sandbox, "/workspace/t/d", "/workspace/t/l")
    for number in range(6):
        target = tmp_path / f"copy{number}"
        server.cli("cp", "-r", f"{sandbox.name}:/workspace/t", str(target))
        for folder, _, files in os.walk(target):
            for name in files:
                path = os.path.join(folder, name)
                if not os.path.islink(path):
                    with open(path, encoding="utf-8") as file:
                        assert SECRET not in file.read()


@pytest.mark.parametrize("storage", ["btrfs", "plain"])
def test_links_where_the_warden_writes(server_factory, canary, storage):
    """At a start it mounts on names, in a clone it writes names into files: all of them can be links
    by then, and their folders too."""
    server = server_factory() if storage == "btrfs" else server_factory("--storage", "plain")
    sources = {
        "files": f"ln -sf {canary}/hostname /etc/hostname; ln -sf {canary}/file /etc/hosts",
        "folder": f"mv /etc /old; ln -s {canary} /etc",
        "points": f"rm -rf /workspace /tmp /mnt; ln -s {canary} /workspace; ln -s {canary} /tmp",
        "files of other kinds": "rm /etc/hostname /etc/hosts; mkfifo /etc/hostname; mkdir /etc/hosts",
    }
    for number, bend in enumerate(sources.values()):
        box = server.create(f"bent{number}")
        box.exec(bend)
        answer = box.request("POST", "/clone", {"name": f"copy{number}"}, timeout=60)
        assert answer.status == 202, answer
        copy = server.sandbox(f"copy{number}").wait_status("running", "failed", deadline=60)
        for one in (box, copy):
            if one.status() == "running":
                one.request("PUT", "/stop")
                one.wait_status("stopped", "failed")
                one.request("PUT", "/start")
                one.wait_status("running", "failed")
            one.delete()


def test_calls_by_many_while_paths_change(sandbox, canary):
    """The same from several connections at once: workers do not share what they found."""
    sandbox.run(f"mkdir /workspace/d && echo own > /workspace/d/file && ln -s {canary} /workspace/l")
    swap(sandbox, "/workspace/d", "/workspace/l")
    found, failures = [], []

    def read():
        try:
            for _ in range(40):
                found.append(sandbox.request("GET", "/filesystem/workspace/d/file").text)
        except Exception as failure:  # pylint: disable=broad-except
            failures.append(failure)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures and len(found) == 160
    assert not any(SECRET in text for text in found)
    assert any("own" in text for text in found)
