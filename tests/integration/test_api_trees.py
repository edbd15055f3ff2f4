# SPDX-License-Identifier: Apache-2.0
"""/filesystem/tree/{path}: many files in one request, all or none; depth; ranges of raw bytes."""

import base64
import hashlib
import json
import threading
import urllib.parse

import pytest

from cella_server import wait_until

RAW = {"Accept": "application/octet-stream"}


def tree(path, **query):
    return "/filesystem/tree" + urllib.parse.quote(path) + \
        ("?" + urllib.parse.urlencode(query) if query else "")


def put(sandbox, path, files, **query):
    answer = sandbox.request("PUT", tree(path, **query), {"files": files})
    assert answer.status == 200, answer
    return answer.json()


def get(sandbox, path, **query):
    answer = sandbox.request("GET", tree(path, **query))
    assert answer.status == 200, answer
    return answer.json()


def refused(answer, status, code, word=""):
    assert (answer.status, answer.error()) == (status, code), answer
    assert word in answer.json()["error"]["message"], answer


def names(items):
    return [item["path"] for item in items]


def find(sandbox, path):
    return sandbox.run(f"find {path} | sort").split("\n")


# --- the seed's forms ---


def test_put_and_get_as_the_seed_has_it(sandbox):
    answer = sandbox.request("PUT", tree("/srv/user"), {
        "path": "/srv/user",
        "files": {"file1.txt": "one", "toto/file2.txt": "two"}})
    assert answer.status == 200, answer
    body = answer.json()
    assert list(body) == ["path", "files", "subdirectories", "message"]
    assert body["path"] == "/srv/user"
    assert body["message"] == "Tree created/updated successfully"
    assert names(body["files"]) == ["/srv/user/file1.txt"]
    assert body["subdirectories"] == [{"path": "/srv/user/toto"}]

    body = get(sandbox, "/srv/user")
    assert list(body) == ["path", "files", "subdirectories"]
    assert list(body["files"][0]) == ["path", "permissions", "size", "lastModified", "owner", "group"]
    inner = body["subdirectories"][0]
    assert (inner["path"], names(inner["files"])) == ("/srv/user/toto", ["/srv/user/toto/file2.txt"])
    assert inner["subdirectories"] == []
    assert sandbox.run("cat /srv/user/file1.txt /srv/user/toto/file2.txt") == "onetwo"


@pytest.mark.parametrize("target", ["/filesystem/tree", "/filesystem/tree/", "/filesystem/tree/srv"])
def test_bare_dictionary_of_absolute_paths(sandbox, target):
    answer = sandbox.request("PUT", target, {"/srv/user/file.txt": "a", "/srv/user/x/file2.txt": "b"})
    assert answer.status == 200, answer
    assert answer.json()["path"] == ("/srv" if target.endswith("srv") else "/srv/user")
    assert sandbox.run("cat /srv/user/file.txt /srv/user/x/file2.txt") == "ab"


def test_endpoint_of_the_workspace(sandbox, server):
    answer = server.request("PUT", f"/default/sandbox/{sandbox.name}" + tree("/srv/e"),
                            {"files": {"f": "1"}})
    assert answer.status == 200, answer
    assert sandbox.read("/srv/e/f") == b"1"


def test_contents_in_every_form(sandbox):
    data = bytes(range(256))
    put(sandbox, "/srv/c", {
        "text": "h\u00e9llo \u0000 \U0001f600",
        "base64": {"content": base64.b64encode(data).decode(), "encoding": "base64"},
        "mode": {"content": "x", "permissions": "4711"},
        "empty": "",
        "dir/sub": {"isDirectory": True, "permissions": "700"},
    })
    assert sandbox.read("/srv/c/text") == "h\u00e9llo \u0000 \U0001f600".encode()
    assert sandbox.read("/srv/c/base64") == data
    assert sandbox.run("stat -c '%a %s' /srv/c/mode /srv/c/empty; stat -c %a /srv/c/dir/sub") == \
        "4711 1\n644 0\n700"


def test_update_keeps_mode_and_owner_and_others(sandbox):
    sandbox.run("mkdir -p /srv/u && echo -n old > /srv/u/f && chmod 750 /srv/u/f && "
                "chown user:user /srv/u/f && echo -n other > /srv/u/other")
    put(sandbox, "/srv/u", {"f": "new", "g": "more"})
    assert sandbox.run("stat -c '%a %U' /srv/u/f; cat /srv/u/f /srv/u/other") == "750 user\nnewother"
    assert find(sandbox, "/srv/u") == ["/srv/u", "/srv/u/f", "/srv/u/g", "/srv/u/other"]


def test_double_slash_and_encoded_slash_name_the_root_too(sandbox):
    for target in ("/filesystem/tree//srv/p", "/filesystem/tree/%2Fsrv%2Fp"):
        answer = sandbox.request("PUT", target, {"files": {"f": "1"}})
        assert (answer.status, answer.json()["path"]) == (200, "/srv/p"), answer


def test_a_real_directory_called_tree(sandbox):
    sandbox.run("mkdir -p /tree/sub && echo -n here > /tree/file")
    for target in ("/filesystem//tree", "/filesystem/%2Ftree"):
        answer = sandbox.request("GET", target)
        assert names(answer.json()["files"]) == ["/tree/file"], answer
    assert sandbox.request("GET", "/filesystem//tree/file", None, RAW).body == b"here"
    assert names(get(sandbox, "/tree")["files"]) == ["/tree/file"]
    answer = sandbox.request("DELETE", "/filesystem//tree?recursive=true")
    assert answer.status == 200, answer
    assert sandbox.exec("ls /tree").exit_code != 0


def test_delete(sandbox):
    put(sandbox, "/srv/d", {"a/b/c": "1"})
    refused(sandbox.request("DELETE", tree("/srv/d", recursive="false")), 409, "DIRECTORY_NOT_EMPTY")
    answer = sandbox.request("DELETE", tree("/srv/d"))
    assert answer.json() == {"path": "/srv/d", "message": "Directory deleted successfully"}
    refused(sandbox.request("DELETE", tree("/srv/d")), 404, "FILE_NOT_FOUND")
    refused(sandbox.request("DELETE", tree("/etc/hostname")), 409, "NOT_A_DIRECTORY")
    refused(sandbox.request("DELETE", "/filesystem/tree/"), 400, "INVALID_PATH")


def test_deleting_a_link_to_a_directory_says_file(sandbox):
    sandbox.run("mkdir -p /srv/real && ln -s /srv/real /srv/link")
    answer = sandbox.request("DELETE", "/filesystem/srv/link")
    assert answer.json()["message"] == "File deleted successfully"
    assert sandbox.run("ls -d /srv/*") == "/srv/real"


# --- depth and bounds ---


def test_depth(sandbox):
    put(sandbox, "/srv/t", {"a/b/c/f": "1", "top": "2", "a.x/f": "3"})
    one = get(sandbox, "/srv/t", depth=1)
    assert one["subdirectories"] == [{"path": "/srv/t/a"}, {"path": "/srv/t/a.x"}]
    two = get(sandbox, "/srv/t", depth=2)
    assert two["subdirectories"][0] == {"path": "/srv/t/a", "files": [],
                                        "subdirectories": [{"path": "/srv/t/a/b"}]}
    assert names(two["subdirectories"][1]["files"]) == ["/srv/t/a.x/f"]
    assert "truncated" not in two
    answer = sandbox.request("GET", "/filesystem/srv/t?depth=2")
    assert answer.json() == two
    for bad in ("0", "29", "-1", "x", ""):
        refused(sandbox.request("GET", tree("/srv/t", depth=bad)), 400, "INVALID_ARGUMENT", "depth")


def test_links_are_shown_and_not_followed(sandbox):
    sandbox.run("mkdir -p /srv/l/sub && ln -s / /srv/l/root && ln -s ../sub /srv/l/sub/loop")
    body = get(sandbox, "/srv/l")
    assert [(f["path"], f["type"], f["target"]) for f in body["files"]] == \
        [("/srv/l/root", "symlink", "/")]
    assert names(body["subdirectories"][0]["files"]) == ["/srv/l/sub/loop"]


def test_names_that_are_no_utf8(sandbox):
    done = sandbox.python("import os; os.makedirs(b'/srv/n/d\\xff'); open(b'/srv/n/d\\xff/f\\xfe', 'w')")
    assert done.exit_code == 0, done
    directory = get(sandbox, "/srv/n")["subdirectories"][0]
    assert base64.b64decode(directory["pathBase64"]) == b"/srv/n/d\xff"
    assert base64.b64decode(directory["files"][0]["pathBase64"]) == b"/srv/n/d\xff/f\xfe"


def test_a_tree_too_large_is_cut_and_says_so(sandbox):
    done = sandbox.python("""
import os
for d in range(60):
    os.makedirs(f"/srv/big/d{d}")
    for f in range(1000):
        os.close(os.open(f"/srv/big/d{d}/f{f}", os.O_CREAT | os.O_WRONLY))
deep = "/srv/deep" + "/x" * 40
os.makedirs(deep)
""", timeout=120)
    assert done.exit_code == 0, done
    body = get(sandbox, "/srv/big")
    assert body["truncated"] is True
    assert len(body["subdirectories"]) == 60
    assert sum(len(d.get("files", [])) for d in body["subdirectories"]) + 60 == 50000
    body, levels = get(sandbox, "/srv/deep"), 0
    assert body["truncated"] is True
    while body.get("subdirectories"):
        body, levels = body["subdirectories"][0], levels + 1
    assert levels == 28


def test_pseudo_file_systems_are_not_gone_into(sandbox):
    body = get(sandbox, "/", depth=2)
    found = {d["path"]: d for d in body["subdirectories"]}
    assert found["/proc"]["subdirectories"] == []
    assert found["/usr"]["subdirectories"]


# --- all or none ---


def test_nothing_changes_when_one_cannot_be_done(sandbox):
    sandbox.run("mkdir -p /srv/a/dir && echo -n old > /srv/a/f")
    before = find(sandbox, "/srv/a")
    for bad in ("dir", "f/below"):
        answer = sandbox.request("PUT", tree("/srv/a"), {"files": {"a/new": "1", "f2": "2", bad: "3"}})
        assert answer.status == 409, answer
        assert find(sandbox, "/srv/a") == before
    assert sandbox.run("cat /srv/a/f; ls -A / | grep -c cella || true") == "old0"


def test_quota_reached_half_way_changes_nothing(server):
    sandbox = server.create(resources={"disk": "32Mi"})
    try:
        sandbox.run("mkdir -p /srv/q && echo -n old > /srv/q/old")
        files = {f"d{i}/f": "x" * (3 << 20) for i in range(7)}
        files["old"] = "new"
        answer = sandbox.request("PUT", tree("/srv/q"), {"files": files})
        if answer.status == 200:  # 21 MiB fitted: once more must not
            assert sandbox.request("DELETE", tree("/srv/q")).status == 200
            sandbox.run("mkdir -p /srv/q && echo -n old > /srv/q/old")
            sandbox.exec("head -c 24M /dev/urandom > /srv/fill; sync")
            answer = sandbox.request("PUT", tree("/srv/q"), {"files": files})
        refused(answer, 507, "QUOTA_EXCEEDED")
        sandbox.run("rm -f /srv/fill")
        assert find(sandbox, "/srv/q") == ["/srv/q", "/srv/q/old"]
        assert sandbox.read("/srv/q/old") == b"old"
    finally:
        sandbox.delete()


def test_cellad_killed_in_the_middle(server_factory):
    """Whatever it had sent by then: all of the tree or none of it, and nothing hidden beside it."""
    server = server_factory()
    sandbox = server.create()
    body = json.dumps({"files": {f"d{i % 50}/f{i}": "x" * 500 for i in range(3000)}}).encode()
    for round_ in range(3):
        def send():
            try:
                sandbox.request("PUT", tree("/srv/k"), body, {"Content-Type": "application/json"})
            except OSError:
                pass
        thread = threading.Thread(target=send)
        thread.start()
        thread.join(timeout=0.03 * round_)
        before = server.kill("cellad")
        server.wait_recovered(before, "cellad")
        thread.join()
        wait_until(lambda: sandbox.run("ls -A / | grep -c cella || true") == "0", 20, "no state left")
        wait_until(lambda: sandbox.run("find /srv/k -type f 2>/dev/null | wc -l") in ("0", "3000"), 20,
                   "all or none")
        assert sandbox.run("find /srv -name '.cella*' | wc -l") == "0"
        # One who had everything may be giving names only now: a folder fills while it is emptied.
        wait_until(lambda: sandbox.exec("rm -rf /srv/k").exit_code == 0, 20, "room for the next")


def test_many_at_once(sandbox):
    """Several puts of the same names: each is whole."""
    results = []

    def one(n):
        answer = sandbox.request("PUT", tree("/srv/m"),
                                 {"files": {f"f{i}": f"{n}" for i in range(200)}}, timeout=60)
        results.append(answer.status)

    put(sandbox, "/srv/m", {f"f{i}": "first" for i in range(200)})
    threads = [threading.Thread(target=one, args=(n,)) for n in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(results) <= {200, 404, 409} and 200 in results, results
    assert sandbox.run("ls -A /srv/m | wc -l; ls -A / | grep -c cella || true") == "200\n0"


# --- bad input ---


@pytest.mark.parametrize("body, code", [
    ({}, "INVALID_ARGUMENT"),
    ({"path": "/srv"}, "INVALID_ARGUMENT"),
    ({"files": []}, "INVALID_ARGUMENT"),
    ({"files": {"a": 1}}, "INVALID_ARGUMENT"),
    ({"files": {"a": None}}, "INVALID_ARGUMENT"),
    ({"files": {"a": {"isDirectory": True, "content": "x"}}}, "INVALID_ARGUMENT"),
    ({"files": {"a": {"content": "=", "encoding": "base64"}}}, "INVALID_ARGUMENT"),
    ({"files": {"a": {"content": "", "permissions": "9"}}}, "INVALID_ARGUMENT"),
    ({"files": {"a": "1", "a/b": "2"}}, "INVALID_ARGUMENT"),
    ({"files": {"a": "1", "./a": "2"}}, "INVALID_ARGUMENT"),
    ({"files": {"../x": "1"}}, "INVALID_PATH"),
    ({"files": {"a/../../x": "1"}}, "INVALID_PATH"),
    ({"files": {"/etc/x": "1"}}, "INVALID_PATH"),
    ({"files": {"": "1"}}, "INVALID_PATH"),
    ({"files": {"a\u0000b": "1"}}, "INVALID_PATH"),
    ({"files": {"x" * 300: "1"}}, "INVALID_PATH"),
    ({"path": "/other", "files": {}}, "INVALID_ARGUMENT"),
    ({"/etc/x": "1"}, "INVALID_PATH"),
    ({"/srv/root/x": "1", "y": "2"}, "INVALID_ARGUMENT"),
    ({"files": {}, "more": 1}, "UNKNOWN_FIELD"),
])
def test_refused_bodies(shared_sandbox, body, code):
    refused(shared_sandbox.request("PUT", tree("/srv/root"), body), 400, code)


def test_too_many_files(shared_sandbox):
    answer = shared_sandbox.request("PUT", tree("/srv/root"),
                                    {"files": {str(i): "" for i in range(10001)}})
    refused(answer, 429, "LIMIT_EXCEEDED", "10000")


def test_sandbox_that_does_not_run(server):
    sandbox = server.create(enabled=False)
    try:
        refused(sandbox.request("GET", tree("/")), 409, "NOT_RUNNING")
        refused(sandbox.request("PUT", tree("/srv"), {"files": {}}), 409, "NOT_RUNNING")
    finally:
        sandbox.delete()
    refused(sandbox.request("GET", tree("/")), 404, "SANDBOX_NOT_FOUND")


# --- ranges ---


@pytest.fixture(scope="module")
def numbers(shared_sandbox):
    data = b"".join(hashlib.sha256(str(i).encode()).digest() for i in range(20000))
    shared_sandbox.write("/srv/numbers", data)
    return data


def ranged(sandbox, value, **headers):
    return sandbox.request("GET", "/filesystem/srv/numbers", None, {**RAW, "Range": value, **headers})


@pytest.mark.parametrize("value, start, end", [
    ("bytes=0-0", 0, 1), ("bytes=100-299", 100, 300), ("bytes=639999-", 639999, 640000),
    ("bytes=-5", 639995, 640000), ("bytes=0-9999999", 0, 640000), ("bytes=300000-600000", 300000, 600001),
])
def test_range(shared_sandbox, numbers, value, start, end):
    answer = ranged(shared_sandbox, value)
    assert (answer.status, answer.body) == (206, numbers[start:end])
    assert answer.headers["Content-Range"] == f"bytes {start}-{end - 1}/640000"
    assert answer.headers["Content-Length"] == str(end - start)
    assert answer.headers["Accept-Ranges"] == "bytes"


def test_range_behind_the_end(shared_sandbox, numbers):
    answer = ranged(shared_sandbox, "bytes=640000-")
    refused(answer, 416, "RANGE_NOT_SATISFIABLE", "640000")
    assert answer.headers["Content-Range"] == "bytes */640000"


def test_ranges_that_are_ignored(shared_sandbox, numbers):
    for value in ("bytes=5-4", "bytes=0-1,3-4", "lines=1-2", "nonsense"):
        answer = ranged(shared_sandbox, value)
        assert (answer.status, len(answer.body)) == (200, 640000)


def test_range_with_conditions(shared_sandbox, numbers):
    head = shared_sandbox.request("HEAD", "/filesystem/srv/numbers?download=true")
    assert (head.status, head.headers["Content-Length"]) == (200, "640000")
    etag, modified = head.headers["ETag"], head.headers["Last-Modified"]
    for condition in (etag, modified):
        assert ranged(shared_sandbox, "bytes=0-9", **{"If-Range": condition}).status == 206
    assert ranged(shared_sandbox, "bytes=0-9", **{"If-Range": '"other"'}).status == 200
    answer = shared_sandbox.request("GET", "/filesystem/srv/numbers", None,
                                    {**RAW, "If-None-Match": etag})
    assert (answer.status, answer.body) == (304, b"")
    shared_sandbox.write("/srv/numbers2", b"a")
    first = shared_sandbox.request("HEAD", "/filesystem/srv/numbers2?download=true").headers["ETag"]
    shared_sandbox.write("/srv/numbers2", b"b")
    assert shared_sandbox.request("HEAD", "/filesystem/srv/numbers2?download=true").headers["ETag"] != first


def test_head_of_a_range(shared_sandbox, numbers):
    answer = shared_sandbox.request("HEAD", "/filesystem/srv/numbers", None,
                                    {**RAW, "Range": "bytes=0-9"})
    assert (answer.status, answer.headers["Content-Length"]) == (206, "10")


def test_download_names_the_file(shared_sandbox):
    name = "a \"b\" \u00e9.txt"
    shared_sandbox.write("/srv/" + name, b"1")
    answer = shared_sandbox.request("GET", "/filesystem/srv/" + urllib.parse.quote(name) +
                                    "?download=true")
    assert answer.headers["Content-Disposition"] == \
        "attachment; filename=\"a _b_ __.txt\"; filename*=UTF-8''a%20%22b%22%20%C3%A9.txt"
    assert "Content-Disposition" not in shared_sandbox.request("GET", "/filesystem/etc/hostname", None,
                                                               RAW).headers


def test_range_of_a_proc_file_is_all_of_it(shared_sandbox):
    answer = shared_sandbox.request("GET", "/filesystem/proc/meminfo", None,
                                    {**RAW, "Range": "bytes=0-3"})
    assert answer.status == 200 and b"MemTotal" in answer.body
