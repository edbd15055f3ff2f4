# SPDX-License-Identifier: Apache-2.0
"""The history of a sandbox lies where nothing in the sandbox gets at it, and needs nothing of what is in there."""

import json
import os
import re

import pytest

from cella_inside import run_inside

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


def run(box, command):
    answer = box.request("POST", "/process", {"command": command, "waitForCompletion": True})
    assert answer.status == 200 and answer.json()["exitCode"] == 0, answer
    return answer.json()["executionId"]


def history(box):
    answer = box.request("GET", "/history")
    assert answer.status == 200, answer
    return answer.json()["history"]


@pytest.fixture
def box(server_factory):
    server = server_factory()
    made = server.create()
    yield made
    made.delete()


def folder_of(box):
    found, = (path for path in (box.server.data / "history").iterdir() if path.is_dir())
    return found


def test_root_inside_does_not_get_at_it(box):
    """Not by its path, through any process, by any name that is visible, nor through its disk."""
    first = run(box, "echo 1 > a")
    assert history(box)[0]["id"] == first
    folder = folder_of(box)
    packs = [path.name for path in folder.glob("repository/objects/pack/*.pack")]
    assert packs
    known = {"path": str(folder), "id": folder.name, "packs": packs, "dev": folder.stat().st_dev,
             "inodes": [path.stat().st_ino for path in (folder, folder / "repository", folder / "manifest")]}
    said = run_inside(box, f"known = {json.dumps(known)}" + """
import glob, stat
roots = ["/", *glob.glob("/proc/[0-9]*/root"), *glob.glob("/proc/[0-9]*/cwd"), *glob.glob("/proc/[0-9]*/task/*/root")]
for root in roots:
    for up in ("", "/.." * 20):
        path = root + up + known["path"]
        for name in (path, os.path.dirname(path), path + "/repository/HEAD"):
            if os.path.lexists(name):
                print("reached", name)
for fd in glob.glob("/proc/[0-9]*/fd/*"):
    try:
        if known["id"] in os.readlink(fd) and "history" in os.readlink(fd):
            print("open", fd, os.readlink(fd))
    except OSError:
        pass
if "/history" in open("/proc/self/mountinfo").read():
    print("mounted")
for top, folders, files in os.walk("/"):
    if top == "/":
        folders.remove("proc")
    for name in folders + files:
        if name in known["packs"] or (name == known["id"] and "history" in top):
            print("found", top, name)
    try:
        st = os.lstat(top)
        if st.st_dev == known["dev"] and st.st_ino in known["inodes"]:
            print("is", top)
    except OSError:
        pass
made = quiet(os.mknod, "/tmp/disk", 0o600 | stat.S_IFBLK, known["dev"])
opened = made if isinstance(made, str) else quiet(os.open, "/tmp/disk", os.O_RDONLY)
print("disk", opened if isinstance(opened, str) else "OPEN")
""", timeout=120)
    assert [line for line in said if not line.startswith("disk ")] == []
    assert said[-1] in ("disk EPERM", "disk EACCES", "disk ENXIO"), said
    for path in (folder / "repository" / "HEAD", f"/workspace/../../../../..{folder}/repository/HEAD"):
        answer = box.request("GET", f"/filesystem{path}")
        assert answer.status in (400, 403, 404), answer
    assert re.fullmatch("exec_[0-9a-f]{8}", run(box, "echo 2 > a"))
    assert box.request("POST", "/rollback", {"executionId": first}).status == 200
    assert box.read("/workspace/a") == b"1\n"


def test_no_git_inside(box):
    """Neither its program nor what it runs: what is in the sandbox has no part in its history."""
    run(box, "for git in $(which -a git) /usr/lib/git-core /usr/libexec/git-core; do rm -rf $git; done")
    assert box.exec("command -v git")[0] != 0, "there is none left"
    first = run(box, "mkdir -p sub && echo 1 > sub/a && ln -s sub/a link && chmod 700 sub/a")
    second = run(box, "echo 2 > sub/a && rm link")
    assert [commit["id"] for commit in history(box)[:2]] == [second, first]
    diff = box.request("POST", "/diff", {"fromExecId": first, "toExecId": second}).json()["diff"]
    assert diff.keys() == {"sub/a", "link"} and "-1\n+2\n" in diff["sub/a"]
    assert box.request("POST", "/rollback", {"executionId": first}).json()["status"] == "success"
    assert box.run("cat link && stat -c %a sub/a") == "1\n700"
    assert box.exec("command -v git")[0] != 0
