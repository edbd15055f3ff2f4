# SPDX-License-Identifier: Apache-2.0
"""/filesystem/{path}: files and directories of a sandbox, as JSON and as raw bytes."""

import base64
import contextlib
import hashlib
import pathlib
import re
import socket
import urllib.parse

import pytest

HTTP_DATE = re.compile(r"(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT")
RAW = {"Accept": "application/octet-stream"}
RAW_BODY = {"Content-Type": "application/octet-stream"}
JSON_MAX = 16 << 20


def at(path, **query):
    return "/filesystem" + urllib.parse.quote(path) + \
        ("?" + urllib.parse.urlencode(query) if query else "")


def put(sandbox, path, **body):
    answer = sandbox.request("PUT", at(path), body)
    assert answer.status == 200, answer
    return answer.json()


def get(sandbox, path, **query):
    answer = sandbox.request("GET", at(path, **query))
    assert answer.status == 200, answer
    return answer.json()


def refused(answer, status, code, word=""):
    assert (answer.status, answer.error()) == (status, code), answer
    assert word in answer.json()["error"]["message"], answer


# --- JSON ---


def test_write_and_read_text(sandbox):
    text = "héllo\n\u0000\U0001f600\"\\\t</script>"
    assert put(sandbox, "/home/user/file.txt", content=text) == {
        "path": "/home/user/file.txt", "message": "File created/updated successfully"}
    read = get(sandbox, "/home/user/file.txt")
    assert set(read) == {"path", "content", "permissions", "size", "lastModified", "owner", "group"}
    assert read["path"] == "/home/user/file.txt"
    assert read["content"] == text
    assert read["permissions"] == "rw-r--r--"
    assert read["size"] == len(text.encode())
    assert HTTP_DATE.fullmatch(read["lastModified"])
    assert (read["owner"], read["group"]) == ("root", "root")
    assert sandbox.run("md5sum < /home/user/file.txt").split()[0] == \
        hashlib.md5(text.encode()).hexdigest()


def test_update_replaces_and_keeps_permissions(sandbox):
    put(sandbox, "/workspace/s.sh", content="echo one, and more of it", permissions="750")
    put(sandbox, "/workspace/s.sh", content="echo two")
    read = get(sandbox, "/workspace/s.sh")
    assert (read["content"], read["permissions"]) == ("echo two", "rwxr-x---")
    assert sandbox.run("/workspace/s.sh") == "two"
    put(sandbox, "/workspace/s.sh", content="echo three", permissions="0644")
    assert get(sandbox, "/workspace/s.sh")["permissions"] == "rw-r--r--"


def test_empty_content(sandbox):
    put(sandbox, "/workspace/empty", content="")
    read = get(sandbox, "/workspace/empty")
    assert (read["content"], read["size"]) == ("", 0)


def test_parent_directories_are_made(sandbox):
    put(sandbox, "/workspace/a/b/c/d.txt", content="deep")
    assert sandbox.run("cat /workspace/a/b/c/d.txt; stat -c %a /workspace/a/b") == "deep755"


def test_base64_in_and_out(sandbox):
    data = bytes(range(256)) * 3
    put(sandbox, "/workspace/bin", content=base64.b64encode(data).decode(), encoding="base64")
    assert sandbox.read("/workspace/bin") == data
    read = get(sandbox, "/workspace/bin")
    assert read["encoding"] == "base64"
    assert base64.b64decode(read["content"]) == data
    assert read["size"] == len(data)


def test_base64_of_text_when_asked(sandbox):
    put(sandbox, "/workspace/t", content="plain", encoding="utf-8")
    read = get(sandbox, "/workspace/t", encoding="base64")
    assert (read["encoding"], base64.b64decode(read["content"])) == ("base64", b"plain")
    assert "encoding" not in get(sandbox, "/workspace/t", encoding="utf-8")


def test_every_special_permission(sandbox):
    for octal, text in (("4755", "rwsr-xr-x"), ("2755", "rwxr-sr-x"), ("1777", "rwxrwxrwt"),
                        ("000", "---------"), ("6644", "rwSr-Sr--")):
        put(sandbox, "/workspace/p", content="", permissions=octal)
        assert get(sandbox, "/workspace/p")["permissions"] == text


def test_owner_and_group_by_name_or_number(sandbox):
    put(sandbox, "/workspace/o", content="")
    sandbox.run("chown user:user /workspace/o")
    read = get(sandbox, "/workspace/o")
    assert (read["owner"], read["group"]) == ("user", "user")
    sandbox.run("chown 12345:23456 /workspace/o")
    read = get(sandbox, "/workspace/o")
    assert (read["owner"], read["group"]) == ("12345", "23456")


def test_proc_files_have_content_though_they_say_they_have_none(sandbox):
    assert "MemTotal" in get(sandbox, "/proc/meminfo")["content"]
    assert b"MemTotal" in sandbox.read("/proc/meminfo")


def test_the_same_path_in_every_spelling(sandbox):
    put(sandbox, "/workspace/x y/ü.txt", content="one")
    quoted = urllib.parse.quote("workspace/x y/ü.txt")
    for path in (quoted, "/" + quoted, "%2Fworkspace%2Fx%20y%2F%C3%BC.txt", "./" + quoted,
                 "workspace/../" + quoted, "workspace//x%20y/./%C3%BC.txt"):
        answer = sandbox.request("GET", "/filesystem/" + path)
        assert answer.status == 200, (path, answer)
        assert answer.json()["path"] == "/workspace/x y/ü.txt"


def test_plus_is_a_plus(sandbox):
    put(sandbox, "/workspace/a+b", content="plus")
    assert sandbox.request("GET", "/filesystem/workspace/a+b").json()["content"] == "plus"


# --- directories ---


def test_make_and_list_a_directory(sandbox):
    assert put(sandbox, "/home/user/dir/sub", isDirectory=True, permissions="700") == {
        "path": "/home/user/dir/sub", "message": "Directory created successfully"}
    put(sandbox, "/home/user/dir/b.txt", content="12345")
    put(sandbox, "/home/user/dir/a.txt", content="1", permissions="755")
    sandbox.run("ln -s a.txt /home/user/dir/link; ln -s sub /home/user/dir/sublink; "
                "mkfifo /home/user/dir/pipe")
    listed = get(sandbox, "/home/user/dir")
    assert set(listed) == {"path", "files", "subdirectories"}
    assert listed["path"] == "/home/user/dir"
    assert listed["subdirectories"] == [{"path": "/home/user/dir/sub"}]
    files = {item["path"].rsplit("/", 1)[1]: item for item in listed["files"]}
    assert list(files) == ["a.txt", "b.txt", "link", "pipe", "sublink"]
    assert set(files["a.txt"]) == {"path", "permissions", "size", "lastModified", "owner", "group"}
    assert files["a.txt"]["permissions"] == "rwxr-xr-x"
    assert files["b.txt"]["size"] == 5
    assert (files["link"]["type"], files["link"]["target"]) == ("symlink", "a.txt")
    assert (files["sublink"]["type"], files["sublink"]["target"]) == ("symlink", "sub")
    assert files["pipe"]["type"] == "other"
    assert sandbox.run("stat -c %a /home/user/dir/sub") == "700"


def test_an_empty_directory(sandbox):
    put(sandbox, "/workspace/none", isDirectory=True)
    assert get(sandbox, "/workspace/none") == {"path": "/workspace/none", "files": [],
                                               "subdirectories": []}
    put(sandbox, "/workspace/none", isDirectory=True)  # again is fine


@pytest.mark.parametrize("path", ["/filesystem", "/filesystem/", "/filesystem//", "/filesystem/%2F"])
def test_the_root_directory(shared_sandbox, path):
    answer = shared_sandbox.request("GET", path)
    assert answer.status == 200, answer
    listed = answer.json()
    assert listed["path"] == "/"
    assert {"path": "/etc"} in listed["subdirectories"] and {"path": "/tmp"} in listed["subdirectories"]


def test_a_directory_with_many_entries(sandbox):
    sandbox.run("mkdir /workspace/many && cd /workspace/many && seq -f %05g 5000 | xargs touch")
    listed = get(sandbox, "/workspace/many")
    assert [item["path"] for item in listed["files"]] == \
        [f"/workspace/many/{n:05}" for n in range(1, 5001)]


def test_a_name_that_is_no_text(sandbox):
    sandbox.python(r"open(b'/workspace/\xff\xfe', 'w').write('odd')")
    item = get(sandbox, "/workspace")["files"][0]
    assert base64.b64decode(item["pathBase64"]) == b"/workspace/\xff\xfe"
    assert sandbox.request("GET", "/filesystem/workspace/%FF%FE").json()["content"] == "odd"


def test_links_are_followed_but_never_out(sandbox):
    put(sandbox, "/workspace/real", content="real")
    sandbox.run("ln -s real /workspace/rel; ln -s /workspace/real /workspace/abs; "
                "ln -s ../../../../../../etc/hostname /workspace/out; ln -s loop /workspace/loop")
    assert get(sandbox, "/workspace/rel")["content"] == "real"
    assert get(sandbox, "/workspace/abs")["content"] == "real"
    assert get(sandbox, "/workspace/out")["content"].strip() == sandbox.name
    assert sandbox.request("GET", at("/workspace/loop")).status in (400, 404, 409)


# --- delete ---


def test_delete_a_file(sandbox):
    put(sandbox, "/workspace/f", content="x")
    answer = sandbox.request("DELETE", at("/workspace/f"))
    assert answer.status == 200
    assert answer.json() == {"path": "/workspace/f", "message": "File deleted successfully"}
    refused(sandbox.request("GET", at("/workspace/f")), 404, "FILE_NOT_FOUND")
    refused(sandbox.request("DELETE", at("/workspace/f")), 404, "FILE_NOT_FOUND")


def test_delete_directories(sandbox):
    put(sandbox, "/workspace/d", isDirectory=True)
    answer = sandbox.request("DELETE", at("/workspace/d"), {"recursive": False})
    assert answer.json() == {"path": "/workspace/d", "message": "Directory deleted successfully"}
    for body, query in (({"recursive": True}, {}), (None, {"recursive": "true"})):
        put(sandbox, "/workspace/d/e/f", content="x")
        refused(sandbox.request("DELETE", at("/workspace/d")), 409, "DIRECTORY_NOT_EMPTY")
        refused(sandbox.request("DELETE", at("/workspace/d"), {"recursive": False}), 409,
                "DIRECTORY_NOT_EMPTY")
        answer = sandbox.request("DELETE", at("/workspace/d", **query), body)
        assert answer.status == 200, answer
        assert answer.json()["message"] == "Directory deleted successfully"
    assert sandbox.exec("ls -A /workspace").stdout == ""


def test_delete_a_link_and_not_what_it_points_to(sandbox):
    put(sandbox, "/workspace/d/keep", content="kept")
    sandbox.run("cd /workspace && ln -s d todir && ln -s d/keep tofile && ln -s nothing dangling")
    for name in ("todir", "tofile", "dangling"):
        answer = sandbox.request("DELETE", at(f"/workspace/{name}"), {"recursive": True})
        assert answer.status == 200, (name, answer)
    assert sandbox.run("cd /workspace && find . | sort") == ".\n./d\n./d/keep"


# --- raw bytes ---


def test_raw_bytes_out(sandbox):
    data = bytes(range(256)) * 1000
    sandbox.write("/workspace/raw", data)
    for path, headers in ((at("/workspace/raw"), RAW), (at("/workspace/raw", download="true"), {})):
        answer = sandbox.request("GET", path, None, headers)
        assert answer.status == 200
        assert answer.headers["Content-Type"] == "application/octet-stream"
        assert int(answer.headers["Content-Length"]) == len(data)
        assert HTTP_DATE.fullmatch(answer.headers["Last-Modified"])
        assert answer.body == data


def test_head_of_raw_bytes(sandbox):
    sandbox.write("/workspace/raw", b"x" * 1234567)
    answer = sandbox.request("HEAD", at("/workspace/raw"), None, RAW)
    assert (answer.status, answer.body) == (200, b"")
    assert int(answer.headers["Content-Length"]) == 1234567


def test_raw_permissions_and_emptiness(sandbox):
    answer = sandbox.request("PUT", at("/workspace/x/run", permissions="755"), b"#!/bin/sh\necho ran",
                             RAW_BODY)
    assert answer.status == 200, answer
    assert answer.json() == {"path": "/workspace/x/run",
                             "message": "File created/updated successfully"}
    assert sandbox.run("/workspace/x/run") == "ran"
    assert sandbox.request("PUT", at("/workspace/nil"), b"", RAW_BODY).status == 200
    assert sandbox.read("/workspace/nil") == b""
    refused(sandbox.request("PUT", at("/workspace/y", permissions="rwx"), b"", RAW_BODY), 400,
            "INVALID_ARGUMENT", "permissions")


def test_raw_bytes_in_chunks(sandbox):
    pieces = [b"a" * 10, b"b" * 70000, b"c", b"d" * 600000]
    with contextlib.closing(sandbox.server.connection()) as connection:
        connection.request("PUT", sandbox.base + at("/workspace/chunked"), iter(pieces),
                           {"Authorization": f"Bearer {sandbox.server.key}", **RAW_BODY},
                           encode_chunked=True)
        answer = connection.getresponse()
        assert answer.status == 200, answer.read()
    assert sandbox.read("/workspace/chunked") == b"".join(pieces)


class PeakMemory:
    """How much more than at the beginning a process holds at its peak, in bytes: .grown"""

    def __init__(self, pid):
        self.proc = pathlib.Path(f"/proc/{pid}")
        (self.proc / "clear_refs").write_text("5")  # the peak is now
        self.before = self.peak()

    def peak(self):
        line = re.search(r"VmHWM:\s+(\d+) kB", (self.proc / "status").read_text())
        return int(line.group(1)) * 1024

    @property
    def grown(self):
        return self.peak() - self.before


def test_large_files_both_ways_in_constant_memory(sandbox):
    memory = PeakMemory(sandbox.server.pids().cellad)
    block = hashlib.sha256(b"seed").digest() * 32768  # 1 MiB
    size = 40
    digest = hashlib.sha256(block * size).hexdigest()
    with contextlib.closing(sandbox.server.connection(60)) as connection:
        connection.putrequest("PUT", sandbox.base + at("/workspace/large"))
        connection.putheader("Authorization", f"Bearer {sandbox.server.key}")
        connection.putheader("Content-Type", "application/octet-stream")
        connection.putheader("Content-Length", str(size * len(block)))
        connection.endheaders()
        for _ in range(size):
            connection.send(block)
        assert connection.getresponse().status == 200
    assert sandbox.run("sha256sum < /workspace/large").split()[0] == digest
    assert hashlib.sha256(sandbox.read("/workspace/large")).hexdigest() == digest
    assert memory.grown < 4 << 20  # 40 MiB went in and out


def test_an_upload_that_breaks_off_leaves_nothing(sandbox):
    sandbox.write("/workspace/f", "old")
    host, port = urllib.parse.urlsplit(sandbox.server.url).netloc.split(":")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall((f"PUT {sandbox.base}{at('/workspace/f')} HTTP/1.1\r\nHost: x\r\n"
                     f"Authorization: Bearer {sandbox.server.key}\r\n"
                     "Content-Type: application/octet-stream\r\nContent-Length: 1000000\r\n\r\n"
                     ).encode() + b"x" * 300000)
    assert sandbox.read("/workspace/f") == b"old"
    assert sandbox.run("ls -A /workspace") == "f"


def test_expect_continue(sandbox):
    host, port = urllib.parse.urlsplit(sandbox.server.url).netloc.split(":")
    head = (f"Host: x\r\nAuthorization: Bearer {sandbox.server.key}\r\n"
            "Content-Type: application/octet-stream\r\nContent-Length: 5\r\n"
            "Expect: 100-continue\r\nConnection: close\r\n\r\n")
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(f"PUT {sandbox.base}{at('/workspace/c')} HTTP/1.1\r\n{head}".encode())
        assert raw.recv(100).startswith(b"HTTP/1.1 100 ")
        raw.sendall(b"hello")
        assert raw.recv(1000).startswith(b"HTTP/1.1 200 ")
    assert sandbox.read("/workspace/c") == b"hello"
    with socket.create_connection((host, int(port)), timeout=10) as raw:
        raw.sendall(f"PUT /v0/sandbox/nobody{at('/c')} HTTP/1.1\r\n{head}".encode())
        assert raw.recv(1000).startswith(b"HTTP/1.1 404 ")  # told before the body is sent


# --- limits ---


def test_content_at_the_limit_of_json(sandbox):
    sandbox.write("/workspace/fits", b"x" * JSON_MAX)
    assert len(get(sandbox, "/workspace/fits")["content"]) == JSON_MAX
    sandbox.write("/workspace/more", b"x" * (JSON_MAX + 1))
    refused(sandbox.request("GET", at("/workspace/more")), 413, "PAYLOAD_TOO_LARGE",
            "application/octet-stream")
    assert len(sandbox.read("/workspace/more")) == JSON_MAX + 1

    put(sandbox, "/workspace/put", content="y" * JSON_MAX)
    assert sandbox.run("stat -c %s /workspace/put") == str(JSON_MAX)
    refused(sandbox.request("PUT", at("/workspace/put"), {"content": "y" * (JSON_MAX + 1)}), 413,
            "PAYLOAD_TOO_LARGE", "application/octet-stream")
    refused(sandbox.request("PUT", at("/workspace/put"), {"content": "y" * (25 << 20)}), 413,
            "PAYLOAD_TOO_LARGE", "application/octet-stream")


def test_a_full_disk_says_so(server):
    made = server.create(resources={"disk": "64Mi"})
    try:
        answer = made.request("PUT", at("/workspace/big"), b"z" * (100 << 20), RAW_BODY, timeout=60)
        refused(answer, 507, "QUOTA_EXCEEDED")
        assert made.exec("ls -A /workspace").stdout == ""
        put(made, "/workspace/small", content="fits")
    finally:
        made.delete()
