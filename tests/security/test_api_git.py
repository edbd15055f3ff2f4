# SPDX-License-Identifier: Apache-2.0
"""Histories are kept by git, which reads options, revisions and paths out of its words: nothing that a caller
or a program says gets to mean one of them."""

import json
import pathlib
import urllib.parse

import pytest

EXECUTIONS = [
    "--upload-pack=touch /tmp/pwned", "--output=/tmp/pwned", "-c", "--exec=sh", "-", "--", "HEAD", "HEAD~1", "@", "@{-1}",
    "main", "refs/heads/main", "main..main", "main...main", ":/Initial", ":README.md", "HEAD:README.md", "^HEAD",
    "../../x", "/etc/passwd", "exec_00000000^", "exec_00000000..exec_00000001", "exec_00000000\n", "exec_00000000 ",
    "EXEC_00000000", "exec_0000000g", "exec_000000000", "", "a" * 100000, "$(touch /tmp/pwned)", "`id`", "%s%n",
    "exec_00000000\u0000x", "4b825dc642cb6eb9a060e54bf8d69288fbee4904", "\u202eexec_00000000",
]
# As programs may call their files: each is a file, and comes back as one.
FILES = [
    "--output=x", "-c", "HEAD", "refs", "..x", "a b", 'quo"te', "back\\slash", "new\nline", "tab\t", "'; touch x; '",
    "$(touch x)", "\u00e4\u20ac", ":(glob)**", "!x", "*", "?", "README.md", ".gitattributes", ".gitmodules", "con",
    "M 100644 :1 evil", "from refs", "data 5",
]


@pytest.fixture(scope="module")
def box(server):
    made = server.create()
    made.write("/workspace/start", "x")
    answer = made.request("POST", "/process", {"command": "true", "waitForCompletion": True})
    if "executionId" not in answer.json():
        pytest.skip("no history on this server: there is no git")
    yield made
    made.delete()


def test_executions_are_no_revisions(box):
    wrong = []
    for one in EXECUTIONS:
        quoted = urllib.parse.quote(one[:8000], safe="")
        for answer in (box.request("POST", "/rollback", {"executionId": one}),
                       box.request("POST", "/diff", {"fromExecId": one, "toExecId": one}),
                       box.request("GET", f"/diff?from={quoted}&to={quoted}")):
            # An empty parameter may stand for none at all; nothing else is an answer.
            if answer.status not in (400, 404, 414) and one != "":
                wrong.append((one[:80], answer))
    assert not wrong and not pathlib.Path("/tmp/pwned").exists()
    assert box.exec("test ! -e /tmp/pwned").exit_code == 0


def test_names_of_files_are_nothing_else(box):
    program = "import json, os, sys\nfor name in json.load(open('/tmp/names')):\n    open(name, 'w').write(name)\n"
    box.write("/tmp/names", json.dumps(FILES))
    box.write("/tmp/make.py", program)
    before = box.request("POST", "/process", {"command": "true", "waitForCompletion": True}).json()["executionId"]
    made = box.request("POST", "/process", {"command": "python3 /tmp/make.py", "waitForCompletion": True}).json()
    assert made["exitCode"] == 0, made
    commit = next(one for one in box.request("GET", "/history").json()["history"] if one["id"] == made["executionId"])
    assert set(commit["files"]) == set(FILES)
    told = box.request("POST", "/diff", {"fromExecId": before, "toExecId": made["executionId"]})
    assert told.status == 200 and set(told.json()["diff"]) == set(FILES), told
    assert box.request("POST", "/rollback", {"executionId": before}).status == 200
    assert box.run("ls -A /workspace") == "start"
    assert box.request("POST", "/rollback", {"executionId": made["executionId"]}).status == 200
    check = box.python("import json\nprint(all(open('/workspace/' + n).read() == n for n in json.load(open('/tmp/names'))))")
    assert check.stdout == "True\n", check


def test_a_repository_of_the_users_own_runs_nothing(box):
    """Hooks, filters and configuration inside a sandbox are files there, for nobody outside."""
    box.run("mkdir -p repo/.git/hooks && cd repo && printf '#!/bin/sh\\ntouch /tmp/pwned\\n' > .git/hooks/post-commit && "
            "chmod +x .git/hooks/post-commit && printf '[core]\\nfsmonitor = touch /tmp/pwned\\nsshCommand = touch /tmp/pwned\\n"
            "[filter \"x\"]\\nclean = touch /tmp/pwned\\nsmudge = touch /tmp/pwned\\n' > .git/config && "
            "echo '* filter=x' > .gitattributes && echo content > file")
    assert box.request("GET", "/history").status == 200
    assert not pathlib.Path("/tmp/pwned").exists() and box.exec("test ! -e /tmp/pwned").exit_code == 0
