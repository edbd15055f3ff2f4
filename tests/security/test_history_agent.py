# SPDX-License-Identifier: Apache-2.0
"""What history asks of an agent, in real sandboxes, while the code inside does its worst: links that
change under a walk, pipes, files without end, names of any bytes, more directories than can be watched."""

import contextlib
import copy
import fcntl
import functools
import os
import pathlib
import socket
import struct
import subprocess
import sys
import termios

import pytest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))

import wardenlib  # noqa: E402
import wirelib  # noqa: E402

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")

ROOTS = ["/workspace", "/home/user"]
REGULAR, DIRECTORY, SYMLINK, OTHER = range(4)
REMOVE, FILE, MKDIR, LINK, ATTRIBUTES = range(5)
NO_CONTENT, GONE, FRESH = 1, 2, 4


def asked_again(method):
    """A worker that has answered counts until the agent has reaped it, so a question right after others may be refused."""
    @functools.wraps(method)
    def asks(*args, **kwargs):
        while True:
            try:
                return method(args[0], *copy.deepcopy(args[1:]), **kwargs)
            except wirelib.WireError as refused:
                if "questions of history are under way" not in str(refused):
                    raise
    return asks


@pytest.fixture(scope="module")
def warden():
    with wardenlib.Warden() as made:
        yield made


@pytest.fixture
def box(warden, request):
    name = "h" + format(abs(hash(request.node.name)) % 2**32, "x")
    warden.start(name, disk_bytes=256 << 20)
    warden.output(name, "rm -rf /home/user && mkdir -p /workspace /home/user")  # without what the image has there
    yield Box(warden, name)
    warden.remove(name)


class Box:
    def __init__(self, warden, name):
        self.warden, self.name = warden, name

    def run(self, command, user="root"):
        return self.warden.output(self.name, command, user=user)

    def run_clean(self, command):
        """Whether its end says that nothing has changed."""
        with self.warden.agent(self.name) as agent:
            process = agent.call("AGENT_EXEC", command=command, cwd="/", user="root",
                                 timeout_ms=60000, flags=wirelib.EXEC_WAIT)
        assert process["exit_code"] == 0, process
        return process["clean"] == 1

    def is_clean(self):
        with self.warden.agent(self.name) as agent:
            return agent.call("AGENT_CLEAN_ASK")["clean"] == 1

    @asked_again
    def list(self, roots=ROOTS, ignore=(), entries_max=200_000):
        """({path: entry}, what was said at the end)."""
        with self.warden.agent(self.name) as agent:
            request = agent.send("HISTORY_LIST", roots=roots, ignore=ignore, entries_max=entries_max)
            entries = {}
            while True:
                name, message = agent.wait(request)
                if name == "HISTORY_LISTED":
                    assert message["entries"] == len(entries)
                    return entries, message
                assert message["path"] not in entries
                entries[message["path"]] = message

    @asked_again
    def read(self, *paths, size_max=1 << 20):
        """{path: (entry, content or None)}"""
        with self.warden.agent(self.name) as agent:
            request = agent.send("HISTORY_READ", roots=ROOTS, paths=paths, size_max=size_max)
            found = {}
            while (frame := agent.wait(request))[0] != "OK":
                entry, content = frame[1], b""
                while not entry["flags"] & NO_CONTENT:
                    name, message = agent.wait(request)
                    if name == "HISTORY_READ_END":
                        break
                    content += message["data"]
                found[entry["path"]] = entry, None if entry["flags"] & NO_CONTENT else content
                assert entry["flags"] & NO_CONTENT or len(content) == entry["size"]
            return found

    @asked_again
    def apply(self, *items):
        with self.warden.agent(self.name) as agent:
            request = agent.send("HISTORY_APPLY", roots=ROOTS)
            for item in items:
                content = item.pop("content", b"")
                agent.sock.sendall(wirelib.encode("HISTORY_ITEM", request, size=len(content), **item))
                if content:
                    agent.sock.sendall(wirelib.encode("FILE_DATA", request, data=content))
            agent.sock.sendall(wirelib.encode("FILE_END", request))
            return agent.wait(request)[1]

    @contextlib.contextmanager
    def background(self, source, user="root"):
        """Python in the sandbox, which has begun when this has; ended afterwards."""
        self.run("rm -f /tmp/begun")
        pid = self.warden.spawn(self.name, f"exec python3 -c '{source}'", user=user)
        wardenlib.wait_until(lambda: self.warden.run(self.name, "test -e /tmp/begun")[0] == 0, "its beginning")
        try:
            yield
        finally:
            with self.warden.agent(self.name) as agent:
                agent.call("AGENT_STOP", pid=pid, grace_ms=0)


def test_the_flag_and_the_listing(box):
    assert not box.run_clean("true")
    box.run("mkdir -p /workspace/a/b /home/user/.config && echo 1 > /workspace/a/b/f && chown -R 1000:1000 /home/user "
            "&& ln -s b /workspace/a/link")
    entries, listed = box.list()
    assert listed["watched"] == 1 and listed["cut"] == 0
    assert entries["/workspace/a/b/f"]["size"] == 2
    assert entries["/workspace/a/link"]["target"] == "b"
    assert (entries["/home/user/.config"]["uid"], entries["/home/user/.config"]["gid"]) == (1000, 1000)
    assert box.run_clean("cat /workspace/a/b/f; ls -lR /workspace; touch /tmp/elsewhere")
    assert not box.run_clean("echo 2 > /workspace/a/b/f")
    assert not box.run_clean("true"), "it is so until somebody looks"
    again, _ = box.list()
    assert again["/workspace/a/b/f"]["ctime_ns"] > entries["/workspace/a/b/f"]["ctime_ns"]
    assert box.run_clean("true") and box.is_clean()
    # What the image brings (the lower layer) is noticed too, and a root that comes later.
    box.run("rm -r /home/user")
    _, listed = box.list()
    assert listed["watched"] == 1 and box.is_clean()
    box.run("mkdir -p /home/user")
    assert not box.is_clean()


def test_links_that_change_under_a_walk(box):
    """Somebody who owns a tracked directory has the agent, which is root, read and write there only."""
    box.run("mkdir -m 777 /workspace/d && mkdir /etc/secret && echo root-only > /etc/secret/f && "
            "chmod 700 /etc/secret && cp -r /workspace/d /workspace/real && touch /workspace/real/f && chmod 777 /workspace")
    swap = """
import os
os.symlink("/etc/secret", "/workspace/trap")
open("/tmp/begun", "w").close()
while True:
    os.rename("/workspace/d", "/workspace/x"); os.rename("/workspace/trap", "/workspace/d")
    os.rename("/workspace/d", "/workspace/trap"); os.rename("/workspace/x", "/workspace/d")
""".replace("'", '"')
    seen = set()
    with box.background(swap, user="nobody"):
        for _ in range(150):
            entries, _ = box.list()
            for path, entry in entries.items():
                assert not (path.startswith("/workspace/trap/") or path == "/workspace/d/f"), entry  # f2 is our own
            seen.add(entries.get("/workspace/d", {}).get("type"))
            for entry, content in box.read("/workspace/d/f", "/workspace/trap/f", "/workspace/d").values():
                assert content is None or b"root-only" not in content
            box.apply({"op": FILE, "path": "/workspace/d/f2", "mode": 0o666, "content": b"evil"},
                      {"op": ATTRIBUTES, "path": "/workspace/d", "mode": 0o777, "uid": 65534, "gid": 65534},
                      {"op": REMOVE, "path": "/workspace/d/f2"})
    assert DIRECTORY in seen or SYMLINK in seen
    assert box.run("ls -A /etc/secret && stat -c %a%u /etc/secret && cat /etc/secret/f").split() == ["f", "7000", "root-only"]


def test_what_is_no_file(box):
    box.run("cd /workspace && mkfifo fifo && truncate -s 8T sparse 2>/dev/null || truncate -s 1G sparse; "
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('/workspace/socket')\" && "
            "ln -s /dev/zero zero && ln -s /proc proc && printf x > small")
    entries, listed = box.list()
    assert listed["left_out"] == 2
    assert "/workspace/fifo" not in entries and entries["/workspace/zero"]["type"] == SYMLINK
    assert entries["/workspace/sparse"]["size"] >= 1 << 30
    found = box.read("/workspace/fifo", "/workspace/socket", "/workspace/sparse", "/workspace/zero",
                     "/workspace/zero/x", "/workspace/proc/self/environ", "/workspace/small")
    assert {path for path, (_, content) in found.items() if content is not None} == {"/workspace/small"}
    assert found["/workspace/proc/self/environ"][0]["flags"] & GONE
    # Where history saw nothing, they stay; where it says that they are in the way, they make way.
    applied = box.apply({"op": FILE, "path": "/workspace/fifo", "mode": 0o644, "content": b"file", "only_new": 1},
                        {"op": FILE, "path": "/workspace/sparse", "mode": 0o644, "content": b"file", "only_new": 1},
                        {"op": MKDIR, "path": "/workspace/socket", "mode": 0o755, "only_new": 1},
                        {"op": LINK, "path": "/workspace/zero", "target": "small", "only_new": 1},
                        {"op": LINK, "path": "/workspace/link", "target": "small", "only_new": 1},
                        {"op": FILE, "path": "/workspace/new", "mode": 0o644, "content": b"file", "only_new": 1})
    assert (applied["done"], applied["failed"]) == (2, 4) and "left alone" in applied["failure"], applied
    assert box.list()[1]["left_out"] == 2 and box.list()[0]["/workspace/sparse"]["size"] >= 1 << 30
    assert box.run("cat /workspace/link /workspace/new") == "xfile"
    applied = box.apply({"op": FILE, "path": "/workspace/fifo", "mode": 0o644, "content": b"file"},
                        {"op": FILE, "path": "/workspace/zero", "mode": 0o644, "content": b"file"},
                        {"op": MKDIR, "path": "/workspace/socket", "mode": 0o755})
    assert (applied["done"], applied["failed"]) == (3, 0), applied
    assert box.run("cat /workspace/fifo /workspace/zero && test -d /workspace/socket") == "filefile"


def test_what_was_changed_since_it_was_listed_is_left_alone(box):
    box.run("cd /workspace && mkdir empty full gone && for f in same written replaced removed chmod gone/x full/x; do echo 1 > $f; done && "
            "ln -s a link && ln -s a other && echo 1 > one && ln one two && ln one three && ln two later")
    listed, end = box.list()
    assert end["compares"] == 1

    def seen(path):
        entry = listed[path]
        return {"path": path, "was_inode": entry["inode"],
                "was_ctime_ns": 0 if entry["type"] == DIRECTORY else entry["ctime_ns"]}

    def file(path):
        return {**seen(path), "op": FILE, "mode": 0o644, "content": b"old"}

    box.run("cd /workspace && echo 2 > written && echo 2 > .new && mv .new replaced && echo 2 >> removed && chmod 600 chmod && "
            "ln -sfn b other && rm -r gone && echo 2 > gone && rmdir empty && echo 2 > empty")
    applied = box.apply(*({**seen(f"/workspace/{name}"), "op": REMOVE} for name in ("removed", "full/x", "full", "gone", "empty")),
                        *(file(f"/workspace/{name}") for name in ("same", "written", "replaced", "chmod", "link", "one", "two")),
                        {**seen("/workspace/other"), "op": LINK, "target": "old"},
                        {**seen("/workspace/three"), "op": MKDIR, "mode": 0o755},
                        {**seen("/workspace/gone"), "op": MKDIR, "mode": 0o755})
    left = dict(zip(applied["left"][::2], applied["left"][1::2]))
    assert left.keys() == {f"/workspace/{name}" for name in ("removed", "gone", "empty", "written", "replaced", "chmod", "other")}
    assert set(left.values()) == {"left alone, since it was changed meanwhile"}
    assert applied["failed"] == 8, "the directory that a file has the place of, twice"
    assert box.run("cd /workspace && cat same link one two && cat written replaced removed gone empty && readlink other && "
                   "test -d three && test ! -e full") == "old" * 4 + "2\n2\n1\n2\n2\n2\nb\n"
    # Whoever had a name of it before has the time of its last change from us; a change by others is one still.
    box.run("echo 2 >> /workspace/later")
    assert box.apply(file("/workspace/later"))["failed"] == 1
    # What is not compared is as it ever was.
    assert box.apply({"op": FILE, "path": "/workspace/written", "mode": 0o644, "content": b"old"})["done"] == 1


def test_a_file_that_changes_while_it_is_read(box):
    grow = """
import os
open("/tmp/begun", "w").close()
while True:
    with open("/workspace/f", "wb") as f: f.write(b"x" * 200000)
    os.truncate("/workspace/f", 10)
""".replace("'", '"')
    with box.background(grow):
        for _ in range(100):
            box.read("/workspace/f")  # asserts that as much comes as was said


def test_names_of_any_bytes(box):
    names = ["a\nb", "-rf", "\udcff\udcfe", '"quoted"\\', " ", "ü", "x" * 255, ".cella", "*"]
    source = "import os,sys\nfor n in sys.argv[1:]: open(b'/workspace/' + os.fsencode(n), 'w').write('1')"
    with box.warden.agent(box.name) as agent:
        done = agent.call("AGENT_EXEC", argv=["python3", "-c", source, *names], cwd="/", user="root",
                          flags=wirelib.EXEC_WAIT)
    assert done["exit_code"] == 0, done
    paths = {f"/workspace/{name}" for name in names}
    assert paths < set(box.list()[0])
    assert {path for path, (_, content) in box.read(*paths).items() if content == b"1"} == paths
    applied = box.apply(*({"op": REMOVE, "path": path} for path in paths))
    assert applied["failed"] == 0 and set(box.list(roots=["/workspace"])[0]) == {"/workspace"}


def test_many_files_deep_trees_and_an_overflow(box):
    """10 000 files, 200 levels, and more directories with news than the kernel's queue has room for."""
    box.run("""python3 -c '
import os
os.chdir("/workspace")
for d in range(100):
    os.mkdir(f"d{d}")
    for f in range(100):
        open(f"d{d}/f{f}", "w").close()
'""")
    entries, listed = box.list()
    assert listed["watched"] == 1 and len([e for e in entries.values() if e["type"] == REGULAR]) == 10_000
    assert box.run_clean("find /workspace | wc -l")
    box.run("""python3 -c '
import os
os.chdir("/home/user")
for _ in range(200):
    os.mkdir("deep"); os.chdir("deep")
'""")
    entries, listed = box.list()
    assert (listed["cut"], listed["left_out"], listed["watched"]) == (0, 1, 1) and box.is_clean()
    assert len([path for path in entries if path.endswith("/deep")]) == 100
    box.run("rm -r /home/user/deep && rm -r /workspace/*")
    box.run("cd /workspace && seq 9000 | xargs mkdir")
    assert box.list()[1]["watched"] == 1 and box.is_clean()
    box.run("cd /workspace && for d in *; do : > $d/f; done")
    assert not box.is_clean()
    entries, listed = box.list()
    assert listed["entries"] == 18_002 and listed["watched"] == 1 and box.is_clean()


def test_no_watches_left(box):
    """What cannot be watched has always changed."""
    pid = box.warden.list()[box.name]["pid"]
    box.run("cd /workspace && mkdir a b c d")
    subprocess.run(["nsenter", "-t", str(pid), "-U", "sh", "-c", "echo 3 > /proc/sys/user/max_inotify_watches"],
                   check=True)
    entries, listed = box.list()
    assert len(entries) == 6 and listed["watched"] == 0
    assert not box.run_clean("true") and not box.is_clean()
    subprocess.run(["nsenter", "-t", str(pid), "-U", "sh", "-c", "echo 1000 > /proc/sys/user/max_inotify_watches"],
                   check=True)
    assert box.list()[1]["watched"] == 1 and box.is_clean()


def test_names_outside_of_the_roots(box):
    """A file that has one is watched itself."""
    box.run("echo 1 > /workspace/f && mkdir /etc/links && ln /workspace/f /etc/links/f && chown 1000 /workspace/f")
    assert box.list()[1]["watched"] == 1 and box.run_clean("cat /etc/links/f")
    assert not box.run_clean("echo 2 >> /etc/links/f")
    assert box.list()[0]["/workspace/f"]["size"] == 4 and box.is_clean()
    assert not box.run_clean("chmod 600 /etc/links/f")
    box.list()
    assert not box.run_clean("ln /etc/links/f /etc/links/g")
    box.list()
    assert not box.run_clean("python3 -c 'import mmap; f = open(\"/etc/links/g\", \"r+b\"); mmap.mmap(f.fileno(), 0)[0] = 0'")


def test_the_queue_is_shared(box):
    """Whoever holds it knows whether something has changed; it is the agent's own, and nothing but that."""
    def queued(fd):
        return struct.unpack("i", fcntl.ioctl(fd, termios.FIONREAD, bytes(4)))[0]

    with box.warden.agent(box.name) as agent, pytest.raises(wirelib.WireError) as refused:
        agent.call("HISTORY_WATCH")
    assert refused.value.code == wardenlib.CODES["UNAVAILABLE"], "nothing is watched yet"
    box.list()
    with box.warden.agent(box.name) as agent:
        agent.sock.sendall(wirelib.encode("HISTORY_WATCH", 7))
        answer, fds, _, _ = socket.recv_fds(agent.sock, 4096, 8)
    assert answer == wirelib.encode("OK", 7)
    queue, = fds
    try:
        assert os.readlink(f"/proc/self/fd/{queue}") == "anon_inode:inotify"
        assert queued(queue) == 0 and box.run_clean("ls -R /workspace") and queued(queue) == 0
        assert not box.run_clean("echo 1 > /workspace/f") and queued(queue) > 0
        box.list()
        assert queued(queue) == 0, "a listing empties it"
    finally:
        os.close(queue)


def test_requests_that_are_refused(box):
    for request in ({"roots": []}, {"roots": ["relative"]}, {"roots": ["/"]}, {"roots": ["/a/../b"]},
                    {"roots": ["/a", "/a/b"]}, {"roots": list("/abcde")}, {"entries_max": 0}, {"entries_max": 2**40}):
        with pytest.raises(wirelib.WireError):
            box.list(**{"roots": ROOTS, "entries_max": 10, **request})
    for path in ("/etc/passwd", "/workspace/../etc/passwd", "/workspacex", "workspace/f", "/workspace//f"):
        with pytest.raises(wirelib.WireError) as refused:
            box.read(path)
        assert refused.value.code == wardenlib.CODES["INVALID_PATH"]
        with pytest.raises(wirelib.WireError) as refused:
            box.apply({"op": FILE, "path": path, "mode": 0o644, "content": b"x"})
        assert refused.value.code == wardenlib.CODES["INVALID_PATH"]
    assert box.list(roots=["/home"])[1]["entries"] >= 1, "the agent goes on"
