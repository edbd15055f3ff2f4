# SPDX-License-Identifier: Apache-2.0
"""`cella backup` of a server that is at work, and `cella restore` into another folder, where a server then goes on."""

import io
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import tarfile
import tempfile
import threading

import pytest

from cella_auth import fresh
from cella_server import Server, bin_dir, wait_until


class Load:
    """Changes without pause, from some threads; .done are the names of sandboxes whose making was answered."""

    def __init__(self, server):
        self.server, self.done, self.failures, self.ended = server, [], [], False
        self.threads = [threading.Thread(target=self.work) for _ in range(3)]
        for thread in self.threads:
            thread.start()

    def work(self):
        try:
            while not self.ended:
                name = fresh("load")
                self.server.create(name, enabled=False)
                self.done.append(name)
                self.server.request("PATCH", f"/v0/sandbox/{name}", {"metadata": {"labels": {"seen": name}}})
        except AssertionError as failure:
            self.failures.append(failure)

    def end(self):
        self.ended = True
        for thread in self.threads:
            thread.join()
        assert self.failures == []


def restore(file, data, **kwargs):
    return subprocess.run([bin_dir() / "cella", "restore", file, "--data", data], capture_output=True, text=True,
                          timeout=60, check=False, **kwargs)


def inside(folder):
    return sorted(os.listdir(folder))


@pytest.fixture(scope="module")
def origin(contract):
    """A server with something in it, a backup that was made under load, and what was there when it began."""
    server = Server()
    folder = pathlib.Path(tempfile.mkdtemp(prefix="cella-backup-", dir="/tmp"))
    os.chmod(folder, 0o711)
    try:
        yield Origin(server, folder)
    finally:
        server.close()
        shutil.rmtree(folder)


class Origin:
    def __init__(self, server, folder):
        self.server, self.folder = server, folder
        self.box = server.create("kept", env_vars={"KEPT": "yes"})
        self.box.run("mkdir -p /workspace && echo one >/workspace/file")
        self.box_id = self.box.get()["metadata"]["id"]
        self.history = self.box.request("GET", "/history").json()["history"]
        assert server.request("POST", "/v0/secrets", {"name": "kept-secret", "value": "v", "hosts": ["a.example"]}).status == 201
        made = server.request("POST", "/v0/api-keys", {"name": "kept-key", "scopes": ["read"]})
        self.other_key = made.json()["secret"]
        self.make_image(server.data / "images" / "another")
        self.make_image(server.data / "images" / ".unfinished")
        for history in (server.data / "history").glob("[!.]*/"):
            (history / "passing.new").write_text("")
        load = Load(server)
        wait_until(lambda: len(load.done) > 5, 30, "work")
        self.before = list(load.done)
        self.file = folder / "backup.tar"
        self.said = server.cli("backup", self.file)
        load.end()
        self.ever = set(load.done)

    @staticmethod
    def make_image(path):
        (path / "rootfs/etc").mkdir(parents=True)
        (path / "rootfs/etc/na me%").write_text("an image's file")
        (path / "rootfs/link").symlink_to("etc/na me%")
        (path / "rootfs/images/host").mkdir(parents=True)
        (path / "rootfs/images/host/file").write_text("not the host's")
        os.chown(path / "rootfs/etc/na me%", 1234, 4321)
        os.chmod(path / "rootfs/etc/na me%", 0o4755)


def test_a_backup_is_made_under_load(origin):
    assert origin.said.returncode == 0, origin.said
    assert re.search(r"backed up .*: \d+ files", origin.said.stderr)
    assert origin.file.stat().st_mode & 0o777 == 0o600
    assert not [name for name in inside(origin.server.data) if name.startswith(".backup")]
    with tarfile.open(origin.file) as tar:
        names = tar.getnames()
    assert names[0] == "MANIFEST" and "db/cella.db" in names and "api-key" in names
    assert not any(name.startswith(("volume", "images/host", "run", "instance", "lock")) for name in names)
    assert not any(name.endswith(("-wal", "-shm")) for name in names)
    histories = [name for name in names if name.startswith("history/")]
    assert histories and not any(name.endswith("passing.new") for name in histories)
    assert not any(name.startswith("images/.") for name in names)
    assert "db/audit-head" in names and any(name.startswith("audit/audit-") for name in names)


def audit_lines(data):
    return [json.loads(line) for path in sorted((data / "audit").glob("audit-*.jsonl")) for line in path.read_text().splitlines()]


def verify_audit(data, *args):
    return subprocess.run([bin_dir() / "cella", "--data", data, "audit", "verify", *args], capture_output=True, text=True, timeout=60,
                          check=False)


def test_a_server_goes_on_from_it(origin):
    data = origin.folder / "restored"
    done = restore(origin.file, data)
    assert done.returncode == 0, done
    assert inside(origin.folder) == ["backup.tar", "restored"]
    image = data / "images/another/rootfs"
    assert (image / "images/host/file").read_text() == "not the host's"
    assert (image / "etc/na me%").read_text() == "an image's file" and (image / "link").is_symlink()
    assert (image / "etc/na me%").stat().st_uid == 1234 and (image / "etc/na me%").stat().st_mode & 0o7777 == 0o4755
    # The audit log is one of that moment: whole, with all that was acknowledged before, and it goes on from there.
    lines, done = audit_lines(data), verify_audit(data)
    assert done.returncode == 0 and "head: " in done.stdout, done
    assert [one["seq"] for one in lines] == list(range(lines[0]["seq"], lines[-1]["seq"] + 1))
    assert set(origin.before) <= {one.get("sandbox") for one in lines if one.get("operation") == "POST /v0/sandbox"}
    assert lines == audit_lines(origin.server.data)[:len(lines)]
    owner = (data / "audit").stat()
    assert owner.st_uid == (origin.server.data / "audit").stat().st_uid and owner.st_mode & 0o777 == 0o700
    head = done.stdout.split("head: ")[1].strip()
    again = Server(data=data)
    try:
        assert verify_audit(data, "--expect", head).returncode == 0
        assert again.key == origin.server.key and again.instance != origin.server.instance
        names = {box["metadata"]["name"] for box in again.request("GET", "/v0/sandbox?limit=1000").json()["sandboxes"]}
        assert set(origin.before) <= names and names - {"kept"} <= origin.ever
        box = next(b for b in [again.request("GET", "/v0/sandbox/kept").json()])
        assert box["status"] == "stopped" and box["metadata"]["id"] == origin.box_id
        assert "startsOnUse" not in box  # it would begin without its files
        assert [one["name"] for one in again.request("GET", "/v0/secrets").json()["secrets"]] == ["kept-secret"]
        who = again.request("GET", "/v0/whoami", headers={"Authorization": f"Bearer {origin.other_key}"})
        assert who.status == 200 and who.json()["scopes"] == ["read"]
        kept = type(origin.box)(again, "kept").start()
        assert kept.run("echo $KEPT") == "yes"
        history = kept.request("GET", "/history").json()["history"]
        assert origin.history and history[-len(origin.history):] == origin.history
        back = kept.request("POST", "/rollback", {"executionId": origin.history[0]["id"]})
        assert back.status == 200 and kept.run("cat /workspace/file") == "one", back
        assert origin.box.run("cat /workspace/file") == "one"  # the old one goes on beside it
    finally:
        again.close()


def test_through_a_pipe(origin):
    data = origin.folder / "piped"
    with open(origin.folder / "piped.tar", "wb") as out:
        subprocess.run([bin_dir() / "cella", "backup", "-", "--data", origin.server.data], stdout=out, check=True, timeout=60)
    with open(origin.folder / "piped.tar", "rb") as file:
        assert restore("-", data, stdin=file).returncode == 0
    assert (data / "api-key").read_text() == (origin.server.data / "api-key").read_text()
    assert not (data / "MANIFEST").exists()
    shutil.rmtree(data)
    (origin.folder / "piped.tar").unlink()


def test_nothing_is_written_over(origin):
    before = origin.file.read_bytes()
    done = origin.server.cli("backup", origin.file)
    assert done.returncode == 4 and "exists already" in done.stderr and origin.file.read_bytes() == before
    done = restore(origin.file, origin.server.data)
    assert done.returncode == 4 and "not empty" in done.stderr
    assert (origin.server.data / "instance").exists()


def test_an_empty_folder_may_be_there(origin):
    data = origin.folder / "empty"
    data.mkdir()
    assert restore(origin.file, data).returncode == 0
    assert (data / "db/cella.db").exists()
    shutil.rmtree(data)


def repacked(origin, change):
    """The backup with one thing changed: change(name, bytes) gives bytes, or None to leave the file out."""
    out = io.BytesIO()
    with tarfile.open(origin.file) as old, tarfile.open(fileobj=out, mode="w", format=tarfile.PAX_FORMAT) as new:
        for member in old:
            data = old.extractfile(member).read() if member.isreg() else None
            if member.isreg():
                data = change(member.name, data)
                if data is None:
                    continue
                member.size = len(data)
            new.addfile(member, io.BytesIO(data) if data is not None else None)
    path = origin.folder / "changed.tar"
    path.write_bytes(out.getvalue())
    return path


@pytest.mark.parametrize("change, status, words", [
    (lambda name, data: data[:-1] + b"!" if name == "api-key" else data, 2, "api-key is not what the manifest says"),
    (lambda name, data: data + b"!" if name == "db/cella.db" else data, 2, "another size"),
    (lambda name, data: None if name == "secret-key" else data, 2, "secret-key is missing"),
    (lambda name, data: None if name == "MANIFEST" else data, 2, "no MANIFEST"),
    (lambda name, data: b"" if name == "MANIFEST" else data, 2, "no manifest of Cella's"),
    (lambda name, data: data.replace(b"file ", b"FILE ", 1) if name == "MANIFEST" else data, 2, "malformed"),
    (lambda name, data: b"\n".join(data.split(b"\n")[:-2]) + b"\n" if name == "MANIFEST" else data, 2, "does not mention"),
    (lambda name, data: re.sub(rb"schema \d+", b"schema 9999", data) if name == "MANIFEST" else data, 4, "which knows"),
    (lambda name, data: data.replace(b"backup 1", b"backup 2") if name == "MANIFEST" else data, 4, "newer version"),
])
def test_what_is_not_whole_is_refused(origin, change, status, words):
    path = repacked(origin, change)
    done = restore(path, origin.folder / "never")
    assert (done.returncode, words in done.stderr) == (status, True), done
    path.unlink()
    assert inside(origin.folder) == inside_ok(origin)


def inside_ok(origin):
    return sorted(name for name in inside(origin.folder) if name in ("backup.tar", "restored"))


def test_a_cut_off_file_is_refused(origin):
    path = origin.folder / "cut.tar"
    path.write_bytes(origin.file.read_bytes()[:-20000])
    done = restore(path, origin.folder / "never")
    assert done.returncode == 2 and "no whole backup" in done.stderr, done
    path.unlink()
    assert restore(origin.folder / "nowhere.tar", origin.folder / "never").returncode == 3
    assert inside(origin.folder) == inside_ok(origin)


def test_a_restore_that_is_killed_leaves_no_folder(origin):
    data, content = origin.folder / "killed", origin.file.read_bytes()
    process = subprocess.Popen([bin_dir() / "cella", "restore", "-", "--data", data], stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process.stdin.write(content[:len(content) // 2])
    process.stdin.flush()
    wait_until((origin.folder / ".killed.restore/MANIFEST").exists, 30, "some of it")
    process.kill()
    process.stdin.close()
    process.wait()
    assert not data.exists()
    wait_until(lambda: restore(origin.file, data).returncode == 0, 30, "another one")
    assert not (origin.folder / ".killed.restore").exists()
    shutil.rmtree(data)


def mount(*words):
    subprocess.run(["mount", *map(str, words)], check=True, timeout=60)


@pytest.fixture(params=["tmpfs", "bind"])
def mounted(origin, request):
    """A folder that is a mount point, as a container's volume is: of another file system, and of the same."""
    data = origin.folder / "mounted"
    data.mkdir()
    if request.param == "tmpfs":
        mount("-t", "tmpfs", "-o", "size=512m", "cella-test", data)
    else:
        mount("--bind", data, data)
    try:
        yield data
    finally:
        subprocess.run(["umount", data], check=True, timeout=60)
        shutil.rmtree(data)


def whole(data):
    assert {"api-key", "audit", "db", "history", "images", "secret-key", "tls"} == set(inside(data)) - {"lost+found"}
    assert (data / "images/another/rootfs/etc/na me%").stat().st_uid == 1234
    assert data.stat().st_mode & 0o7777 == 0o711 and data.stat().st_uid == 0
    return True


def start_in_vain(data):
    """What a server says that does not start there."""
    done = subprocess.run([bin_dir() / "cella", "server", "--data", data, "--listen", "127.0.0.1:0"], capture_output=True,
                          text=True, timeout=60, check=False)
    assert done.returncode == 4, done
    return done.stderr


def test_a_mount_point_is_restored_to(origin, mounted):
    (mounted / "lost+found").mkdir()
    done = restore(origin.file, mounted)
    assert done.returncode == 0, done
    assert whole(mounted) and inside(mounted / "lost+found") == []
    done = restore(origin.file, mounted)
    assert done.returncode == 4 and "not empty" in done.stderr and whole(mounted)


def test_a_server_starts_in_a_mount_point_that_was_restored_to(origin):
    data = origin.folder / "volume"
    data.mkdir()
    mount("--bind", data, data)
    try:
        assert restore(origin.file, data).returncode == 0
        (data / ".restore").mkdir()  # killed before its last step
        again = Server(data=data)
        try:
            assert not (data / ".restore").exists()
            assert again.request("GET", "/v0/sandbox/kept").json()["metadata"]["id"] == origin.box_id
        finally:
            again.close()
    finally:
        subprocess.run(["umount", data], check=True, timeout=60)
        shutil.rmtree(data)


def test_a_restore_to_a_mount_point_that_is_killed(origin, mounted):
    content = origin.file.read_bytes()
    process = subprocess.Popen([bin_dir() / "cella", "restore", "-", "--data", mounted], stdin=subprocess.PIPE,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    process.stdin.write(content[:len(content) // 2])
    process.stdin.flush()
    wait_until((mounted / ".restore/MANIFEST").exists, 30, "some of it")
    assert "under way" in start_in_vain(mounted)
    process.kill()
    process.stdin.close()
    process.wait()
    assert "has not come to its end" in start_in_vain(mounted)
    assert inside(mounted) == [".restore"]
    wait_until(lambda: restore(origin.file, mounted).returncode == 0, 30, "another one")
    assert whole(mounted)

    (mounted / ".restore").mkdir()  # as it is between the moves
    for name in ("db", "images"):
        (mounted / name).rename(mounted / ".restore" / name)
    (mounted / "api-key").write_text("of an older backup\n")
    assert "has not come to its end" in start_in_vain(mounted)
    assert restore(origin.file, mounted).returncode == 0
    assert whole(mounted) and (mounted / "api-key").read_text() == (origin.server.data / "api-key").read_text()


def test_what_is_refused_leaves_a_mount_point_empty(origin, mounted):
    path = repacked(origin, lambda name, data: None if name == "secret-key" else data)
    done = restore(path, mounted)
    assert done.returncode == 2 and "secret-key is missing" in done.stderr, done
    path.unlink()
    assert inside(mounted) == []


def children(pid):
    try:
        return [int(child) for child in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def test_a_backup_that_is_killed_leaves_nothing(origin):
    large = origin.server.data / "images" / "large"
    large.mkdir()
    (large / "file").write_bytes(os.urandom(64 << 20))
    before = inside(origin.folder)
    process = subprocess.Popen([bin_dir() / "cella", "backup", origin.folder / "killed.tar", "--data", origin.server.data],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        tar = wait_until(lambda: children(process.pid), 30, "the file is being written")[0]
        os.kill(tar, signal.SIGSTOP)
        process.kill()
        process.wait()
        os.kill(tar, signal.SIGKILL)
        assert inside(origin.folder) == before
        done = origin.server.cli("backup", origin.folder / "killed.tar")  # which also removes the copies in the data folder
        assert done.returncode == 0 and (origin.folder / "killed.tar").stat().st_mode & 0o777 == 0o600, done
        assert not list(origin.server.data.glob(".backup-*"))
    finally:
        shutil.rmtree(large)
        (origin.folder / "killed.tar").unlink(missing_ok=True)


def test_where_folders_are_not_told_from_files(origin):
    """Some file systems do not say what an entry is: ext2 as it once was, XFS with ftype=0."""
    image, data = origin.folder / "ext2.img", origin.folder / "old-disk"
    image.touch()
    os.truncate(image, 256 << 20)
    subprocess.run(["mkfs.ext2", "-q", "-O", "^filetype", image], check=True, timeout=60)
    data.mkdir()
    mount("-o", "loop", image, data)
    try:
        assert restore(origin.file, data).returncode == 0
        again = origin.folder / "again.tar"
        subprocess.run([bin_dir() / "cella", "backup", again, "--data", data], check=True, capture_output=True, timeout=60)
        with tarfile.open(again) as tar, tarfile.open(origin.file) as first:
            assert sorted(tar.getnames()) == sorted(first.getnames())
        again.unlink()
    finally:
        subprocess.run(["umount", data], check=True, timeout=60)
        data.rmdir()
        image.unlink()


def test_a_folder_that_is_none(origin):
    empty = origin.folder / "none"
    empty.mkdir()
    done = subprocess.run([bin_dir() / "cella", "backup", "-", "--data", empty], capture_output=True, timeout=60, check=False)
    assert done.returncode != 0 and b"data folder" in done.stderr and done.stdout == b""
    assert inside(empty) == []
    empty.rmdir()
