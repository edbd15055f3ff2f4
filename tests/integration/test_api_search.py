# SPDX-License-Identifier: Apache-2.0
"""/filesystem-find, /filesystem-search, /filesystem-content-search."""

import urllib.parse

import pytest


def ask(sandbox, kind, path, **query):
    target = f"/filesystem-{kind}{urllib.parse.quote(path)}"
    return sandbox.request("GET", target + ("?" + urllib.parse.urlencode(query) if query else ""),
                           timeout=60)


def matches(sandbox, kind, path, **query):
    answer = ask(sandbox, kind, path, **query)
    assert answer.status == 200, answer
    body = answer.json()
    assert body["total"] == len(body["matches"])
    return body["matches"]


def paths(found):
    return [match["path"] for match in found]


@pytest.fixture(scope="module")
def project(shared_sandbox):
    answer = shared_sandbox.request("PUT", "/filesystem/tree/srv/p", {"files": {
        "src/main.ts": "import x\nconst needle = 1\n// Needle again, needle\n",
        "src/lib/util.ts": "no match here\r\nwith needle\r\n",
        "src/lib/util.py": "needle = 'in python'\n",
        "node_modules/pkg/index.ts": "needle\n",
        ".hidden/secret.ts": "needle\n",
        "bin/data": {"content": "AG5lZWRsZQo=", "encoding": "base64"},
        "README.md": "nothing",
    }})
    assert answer.status == 200, answer
    shared_sandbox.run("ln -s /srv/p/src /srv/p/link")
    return shared_sandbox


# --- by name ---


def test_find(project):
    assert paths(matches(project, "find", "/srv/p", type="file", patterns="*.ts")) == [
        "/srv/p/.hidden/secret.ts", "/srv/p/node_modules/pkg/index.ts", "/srv/p/src/lib/util.ts",
        "/srv/p/src/main.ts"]
    found = matches(project, "find", "/srv/p", excludeHidden="true", excludeDirs="node_modules,bin")
    assert {(m["path"][len("/srv/p/"):], m["type"]) for m in found} == {
        ("README.md", "file"), ("bin", "directory"), ("link", "symlink"), ("node_modules", "directory"),
        ("src", "directory"), ("src/lib", "directory"), ("src/lib/util.py", "file"),
        ("src/lib/util.ts", "file"), ("src/main.ts", "file")}
    assert paths(matches(project, "find", "/srv/p", type="directory", patterns="l*")) == ["/srv/p/src/lib"]
    assert paths(matches(project, "find", "/srv/p", patterns="src/*.py,*.md")) == [
        "/srv/p/README.md", "/srv/p/src/lib/util.py"]


def test_find_is_bounded(project):
    body = ask(project, "find", "/srv/p", maxResults=3).json()
    assert (body["total"], body["truncated"]) == (3, True)
    assert "truncated" not in ask(project, "find", "/srv/p", maxResults=1000).json()


# --- fuzzy ---


def test_search(project):
    found = matches(project, "search", "/srv/p", query="utilts")
    assert found[0]["path"] == "/srv/p/src/lib/util.ts"
    assert 0 < found[0]["score"] <= 1
    assert [m["score"] for m in found] == sorted((m["score"] for m in found), reverse=True)
    assert paths(matches(project, "search", "/srv/p", query="rdme")) == ["/srv/p/README.md"]
    assert matches(project, "search", "/srv/p", query="zzz") == []
    assert len(matches(project, "search", "/srv/p", query="s", maxResults=2)) == 2


# --- content ---


def test_content(project):
    answer = ask(project, "content-search", "/srv/p", query="needle", filePattern="*.ts",
                 excludeDirs="node_modules").json()
    assert answer["query"] == "needle"
    assert answer["matches"] == [
        {"path": "/srv/p/src/lib/util.ts", "line": 2, "column": 6, "text": "with needle"},
        {"path": "/srv/p/src/main.ts", "line": 2, "column": 7, "text": "const needle = 1"},
        {"path": "/srv/p/src/main.ts", "line": 3, "column": 4, "text": "// Needle again, needle"}]
    sensitive = matches(project, "content-search", "/srv/p", query="Needle", caseSensitive="true")
    assert [(m["line"], m["column"]) for m in sensitive] == [(3, 4)]
    assert "/srv/p/bin/data" not in paths(matches(project, "content-search", "/srv/p", query="needle"))
    hidden = matches(project, "content-search", "/srv/p", query="needle", excludeHidden="false")
    assert "/srv/p/.hidden/secret.ts" in paths(hidden)
    # Literal: nothing in it is a pattern.
    assert matches(project, "content-search", "/srv/p", query="n.*e") == []


def test_content_of_long_lines_and_many_lines(sandbox):
    sandbox.run("mkdir -p /srv/l")
    sandbox.write("/srv/l/long", b"x" * 300000 + b"needle" + b"y" * 300000 + b"\nneedle\n")
    sandbox.write("/srv/l/edge", b"x" * (256 * 1024 - 3) + b"needle\n")
    sandbox.write("/srv/l/many", b"line\n" * 100000 + b"needle")
    sandbox.write("/srv/l/huge", b"needle\n" * (3 << 20))
    found = matches(sandbox, "content-search", "/srv/l", query="needle")
    assert [(m["path"], m["line"], m["column"]) for m in found] == [
        ("/srv/l/edge", 1, 256 * 1024 - 2), ("/srv/l/long", 1, 300001), ("/srv/l/long", 2, 1),
        ("/srv/l/many", 100001, 1)]
    assert len(found[1]["text"]) == 512 and "needle" in found[1]["text"]


def test_strange_files_hold_nobody_up(sandbox):
    sandbox.run("mkdir -p /srv/s && mkfifo /srv/s/fifo && ln -s /dev/zero /srv/s/zero && "
                "mknod /srv/s/null c 1 3 2>/dev/null; echo needle > /srv/s/f; "
                "ln -s /srv/s /srv/s/loop")
    assert paths(matches(sandbox, "content-search", "/srv/s", query="needle")) == ["/srv/s/f"]
    # The whole of it, within its time.
    assert ask(sandbox, "content-search", "/", query="xyzzy-not-there", filePattern="*.conf").status == 200


@pytest.mark.parametrize("kind, query", [
    ("search", {}), ("content-search", {}), ("content-search", {"query": ""}),
    ("content-search", {"query": "x" * 1025}), ("find", {"maxResults": "0"}),
    ("find", {"maxResults": "10001"}), ("find", {"type": "socket"}), ("find", {"excludeHidden": "x"}),
    ("find", {"patterns": "x" * 9000}),
])
def test_refused(project, kind, query):
    answer = ask(project, kind, "/srv/p", **query)
    assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT"), answer


def test_refused_places(project):
    for path, status, code in (("/none", 404, "FILE_NOT_FOUND"), ("/etc/hostname", 409, "NOT_A_DIRECTORY"),
                               ("/../x", 400, "INVALID_PATH")):
        answer = ask(project, "find", path)
        assert (answer.status, answer.error()) == (status, code), answer
