# SPDX-License-Identifier: Apache-2.0
"""cella cp, and file tree, watch, find, search."""

import os
import pathlib
import subprocess

import pytest

from cella_server import wait_until


def run(server, *args, **kwargs):
    done = server.cli(*args, **kwargs)
    assert done.returncode == 0, done
    return done.stdout


def fails(server, status, word, *args):
    done = server.cli(*args)
    assert done.returncode == status and word in done.stderr, done


def test_copy_a_file_in_and_out(server, sandbox, tmp_path):
    data = os.urandom(3 << 20)
    source = tmp_path / "data.bin"
    source.write_bytes(data)
    source.chmod(0o751)
    assert run(server, "cp", source, f"{sandbox.name}:/srv/in/copy.bin") == ""
    assert sandbox.read("/srv/in/copy.bin") == data
    assert sandbox.run("stat -c %a /srv/in/copy.bin") == "751"
    run(server, "cp", source, f"{sandbox.name}:/srv/in")       # a directory that exists
    run(server, "cp", source, f"{sandbox.name}:/srv/new/")     # one that is named as such
    assert sandbox.run("ls /srv/in /srv/new").split() == ["/srv/in:", "copy.bin", "data.bin", "/srv/new:",
                                                          "data.bin"]
    done = server.cli("cp", f"{sandbox.name}:/srv/in/copy.bin", tmp_path / "back.bin")
    assert (done.returncode, done.stderr) == (0, ""), done  # no progress where nobody looks
    assert (tmp_path / "back.bin").read_bytes() == data
    assert (tmp_path / "back.bin").stat().st_mode & 0o777 == 0o751
    (tmp_path / "dir").mkdir()
    run(server, "cp", f"{sandbox.name}:/srv/in/copy.bin", tmp_path / "dir")
    assert (tmp_path / "dir" / "copy.bin").read_bytes() == data


def test_copy_through_pipes(server, sandbox):
    done = server.cli("cp", "-", f"{sandbox.name}:/srv/piped", input=b"a\0b\n", text=False)
    assert done.returncode == 0, done
    assert server.cli("cp", f"{sandbox.name}:/srv/piped", "-", text=False).stdout == b"a\0b\n"


def test_copy_directories(server, sandbox, tmp_path):
    source = tmp_path / "project"
    (source / "src" / "deep").mkdir(parents=True)
    (source / "empty").mkdir(mode=0o700)
    (source / "src" / "deep" / "f").write_text("deep")
    (source / "tree").write_text("called as a route is")
    (source / "link").symlink_to("src/deep/f")
    (source / "dangling").symlink_to("nowhere")
    fails(server, 4, "--recursive", "cp", source, f"{sandbox.name}:/srv/p")
    done = server.cli("cp", "-r", source, f"{sandbox.name}:/srv/p")
    assert done.returncode == 0 and "dangling" in done.stderr, done
    assert sandbox.run("cd /srv/p && find . | sort && stat -c %a empty && cat link").split() == [
        ".", "./empty", "./link", "./src", "./src/deep", "./src/deep/f", "./tree", "700", "deep"]
    run(server, "cp", "-r", source, f"{sandbox.name}:/srv/p")  # exists now: comes into it
    assert sandbox.run("cat /srv/p/project/tree") == "called as a route is"

    sandbox.run("ln -s /etc/passwd /srv/p/away; mkdir /tree; echo -n top > /tree/f")
    fails(server, 4, "--recursive", "cp", f"{sandbox.name}:/srv/p", tmp_path / "out")
    run(server, "cp", "--recursive", f"{sandbox.name}:/srv/p", tmp_path / "out")
    out = tmp_path / "out"
    assert (out / "src" / "deep" / "f").read_text() == "deep"
    assert (out / "empty").is_dir()
    assert os.readlink(out / "away") == "/etc/passwd"
    run(server, "cp", "-r", f"{sandbox.name}:/tree", tmp_path / "top")
    assert (tmp_path / "top" / "f").read_text() == "top"
    assert run(server, "run", sandbox.name, "file", "read", "/tree/f") == "top"


def test_nothing_is_written_through_a_link(server, sandbox, tmp_path):
    """A link that was there before does not lead a copy elsewhere."""
    sandbox.run("mkdir -p /srv/e/d; echo evil > /srv/e/d/f; echo evil > /srv/e/g")
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere"
    out.mkdir()
    elsewhere.mkdir()
    (out / "e").mkdir()
    (out / "e" / "d").symlink_to(elsewhere)
    (out / "e" / "g").symlink_to(elsewhere / "g")
    assert server.cli("cp", "-r", f"{sandbox.name}:/srv/e", out).returncode != 0
    assert list(elsewhere.iterdir()) == []


@pytest.mark.parametrize("words", [("a", "b"), ("x:/a", "y:/b")])
def test_copy_needs_one_sandbox(server, words):
    fails(server, 2, "NAME:PATH", "cp", *words)


def test_copy_of_what_is_not_there(server, shared_sandbox, tmp_path):
    fails(server, 3, "none", "cp", tmp_path / "none", f"{shared_sandbox.name}:/srv/x")
    fails(server, 3, "none", "cp", f"{shared_sandbox.name}:/none", tmp_path / "x")
    fails(server, 3, "no-such-sandbox", "cp", "no-such-sandbox:/x", tmp_path / "x")


# --- tree, find, search ---


@pytest.fixture(scope="module")
def project(shared_sandbox):
    answer = shared_sandbox.request("PUT", "/filesystem/tree/srv/p", {"files": {
        "a/b/c.txt": "one\ntwo needle\n", "a/d.py": "needle", "z": ""}})
    assert answer.status == 200, answer
    return shared_sandbox.name


def test_tree(server, project):
    assert run(server, "run", project, "file", "tree", "/srv/p") == (
        "/srv/p\n├── a/\n│   ├── b/\n│   │   └── c.txt\n│   └── d.py\n└── z\n")
    assert run(server, "run", project, "file", "tree", "/srv/p", "--depth", "1") == (
        "/srv/p\n├── a/\n└── z\n")
    assert '"subdirectories"' in run(server, "-o", "json", "run", project, "file", "tree", "/srv/p")
    fails(server, 3, "none", "run", project, "file", "tree", "/none")


def test_find_and_search(server, project):
    assert run(server, "run", project, "file", "find", "/srv/p", "*.py", "z") == "/srv/p/a/d.py\n/srv/p/z\n"
    assert run(server, "run", project, "file", "find", "/srv/p", "--type", "directory") == \
        "/srv/p/a\n/srv/p/a/b\n"
    assert run(server, "run", project, "file", "search", "/srv/p", "needle") == \
        "/srv/p/a/b/c.txt:2:5: two needle\n/srv/p/a/d.py:1:1: needle\n"
    assert run(server, "run", project, "file", "search", "/srv/p", "needle", "--pattern", "*.py") == \
        "/srv/p/a/d.py:1:1: needle\n"
    assert run(server, "run", project, "file", "search", "/srv/p", "dpy", "--fuzzy") == "/srv/p/a/d.py\n"
    assert server.cli("run", project, "file", "search", "/srv/p", "xyzzy").returncode == 1


# --- watch ---


def test_watch(server, sandbox, tmp_path):
    sandbox.run("mkdir -p /srv/w/sub")
    out = tmp_path / "events"
    with open(out, "wb") as to:
        process = subprocess.Popen([server.bin / "cella", "--data", server.data, "run", sandbox.name,
                                    "file", "watch", "/srv/w", "--recursive", "--ignore", "*.tmp"],
                                   stdout=to, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL)
    try:
        def seen():
            # The watch may not stand yet when the first of these is made.
            sandbox.run("cd /srv/w/sub; : > x.tmp; : > f; rm f x.tmp")
            return b"REMOVE" in pathlib.Path(out).read_bytes()

        wait_until(seen, 30, "an event")
        lines = pathlib.Path(out).read_text().splitlines()
        assert "REMOVE   /srv/w/sub/f" in lines
        assert not any("tmp" in line for line in lines)
    finally:
        process.kill()
        process.wait()
