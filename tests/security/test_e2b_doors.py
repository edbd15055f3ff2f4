# SPDX-License-Identifier: Apache-2.0
"""Who gets into a sandbox by E2B's protocol, and what strangers at its door can spend."""

import contextlib
import gzip
import io
import os
import time

import pytest

import raw_http
from cella_auth import call, fresh_address
from cella_server import Server, wait_until
from e2b_box import START, Box, signed_query


@pytest.fixture(scope="module")
def server():
    """One of these tests' own: it counts wrong tokens, and others are not to wait for that."""
    own = Server()
    yield own
    own.close()


@pytest.fixture(scope="module")
def box(server):
    return Box(server)


@pytest.fixture(scope="module")
def other(server):
    return Box(server)


CALLS = [("GET", "/files?path=/etc/hostname", 49983), ("POST", "/files?path=/tmp/x", 49983), ("GET", "/envs", 49983),
         ("POST", START, 49983), ("POST", "/process.Process/List", 49983),
         ("POST", "/filesystem.Filesystem/Stat", 49983), ("POST", "/filesystem.Filesystem/WatchDir", 49983),
         ("POST", "/execute", 49999), ("GET", "/contexts", 49999), ("POST", "/contexts", 49999),
         ("DELETE", "/contexts/e2b-python", 49999), ("POST", "/contexts/e2b-python/restart", 49999)]


@pytest.mark.parametrize("method, path, port", CALLS, ids=[f"{m} {p.split('?')[0]}" for m, p, _ in CALLS])
def test_every_call_asks_for_the_sandboxs_own_token(box, other, method, path, port):
    body = {} if method == "POST" else None
    traffic = other.about["trafficAccessToken"]
    for fields in ({}, {"X_Access_Token": ""}, {"X_Access_Token": "x"}, {"X_Access_Token": "0" * 64},
                   {"X_Access_Token": other.about["envdAccessToken"]},
                   {"X_Access_Token": traffic}, {"E2b_Traffic_Access_Token": traffic},
                   {"E2b_Traffic_Access_Token": box.about["envdAccessToken"]},
                   {"X_API_KEY": box.server.key}, {"Authorization": f"Bearer {box.server.key}"}):
        answer = box.call(method, path, body, port, token=False, **fields)
        assert answer.status in (401, 429), (path, fields, answer)
        assert box.about["envdAccessToken"] not in answer.text


def test_contexts_take_what_their_clients_show(box):
    """The clients of the code interpreter send the token of ports with these calls, and no other one."""
    traffic = {"E2b_Traffic_Access_Token": box.about["trafficAccessToken"]}
    assert box.call("GET", "/contexts", None, 49999, token=False, **traffic).status == 200
    assert box.call("GET", "/contexts", None, 49999).status == 200
    made = box.call("POST", "/contexts", {"language": "bash"}, 49999, token=False, **traffic)
    assert made.status == 200, made
    gone = box.call("DELETE", f"/contexts/{made.json()['id']}", None, 49999, token=False, **traffic)
    assert gone.status == 204
    # It is no way to run anything, nor to a file.
    assert box.call("POST", "/execute", {"code": "1"}, 49999, token=False, **traffic).status == 401
    assert box.call("GET", "/files?path=/etc/hostname", token=False, **traffic).status == 401


def test_a_sandbox_that_is_gone_says_so_to_everybody(server, box):
    for name in ("x" * 12, "a" * 300, "../../etc", "%2e%2e", box.id + "/..", box.id.upper()):
        fields = {"Authorization": None, "E2b-Sandbox-Id": name, "E2b-Sandbox-Port": "49983"}
        answer = server.request("GET", "/health", None, fields)
        assert (answer.status, answer.json()["code"]) == (502, 502), (name, answer)
        assert answer.json()["message"] == "The sandbox was not found"


@pytest.mark.parametrize("port", ["0", "65536", "-1", "x", "49983 ", "", "99999999999999999999", "0x10"])
def test_ports_that_are_none(server, box, port):
    fields = {"Authorization": None, "E2b-Sandbox-Id": box.id, "E2b-Sandbox-Port": port}
    assert server.request("GET", "/files?path=/etc/hostname", None, fields).status in (400, 401, 502)


# --- signed addresses ---

def get(server, query, method="GET", body=None, **fields):
    return server.request(method, f"/files?{query}", body, {"Authorization": None, **fields})


def test_signatures(server_factory):
    """Each is for one sandbox, path, operation, user and time."""
    own = server_factory()
    box, other = Box(own), Box(own)
    token, path, soon = box.about["envdAccessToken"], "/etc/hostname", int(time.time()) + 600
    right = signed_query(path, "read", token)
    name = box.call("GET", f"/files?path={path}").body
    for _ in range(3):  # the second time it is known where to look
        assert get(own, right).body == name
    assert get(own, signed_query(path, "read", token, "root")).status == 200
    assert get(own, signed_query(path, "read", token, expires=soon)).status == 200
    assert get(own, right, **{"E2b-Sandbox-Id": box.id}).status == 200
    written = signed_query("/tmp/signed", "write", token)
    assert get(own, written, "POST", b"content", **{"Content-Type": "application/octet-stream"}).status == 200
    assert box.call("GET", "/files?path=/tmp/signed").body == b"content"
    wrong = [
        right.replace("hostname", "shadow"), right + "&username=root", signed_query(path, "write", token),
        signed_query(path, "read", "0" * 64), signed_query(path, "read", token, expires=1), f"path={path}&signature=x",
        signed_query(path, "read", token, expires=soon).replace(str(soon), str(soon + 1)),
        right + f"&signature_expiration={soon}", right.replace("v1_", "v2_"), right.replace("v1_", "v1__"),
        f"path={path}&signature=", f"path={path}&signature=v1_" + "A" * 43,
    ]
    for query in wrong:
        assert get(own, query).status == 401, query
    assert get(own, right, "POST", b"x").status == 401
    assert get(own, right, **{"E2b-Sandbox-Id": other.id}).status == 401
    assert get(own, signed_query(path, "read", token, expires="soon")).status == 400
    assert get(own, f"path={path}").status == 502  # names no sandbox, and shows nothing
    box.kill()
    wait_until(lambda: get(own, right).status == 401, 30, "the sandbox's end")


def test_who_guesses_signatures_waits(server_factory):
    """As for keys; and who was right before is let in all the same."""
    own = server_factory()
    box = Box(own)
    right = signed_query("/etc/hostname", "read", box.about["envdAccessToken"])
    assert get(own, right).status == 200
    answers = [get(own, f"path=/etc/hostname&signature=v1_{n:043d}") for n in range(40)]
    assert answers[0].status == 401 and answers[-1].status == 429
    assert int(answers[-1].headers["Retry-After"]) > 0
    assert get(own, right).status == 200
    assert box.call("GET", "/files?path=/etc/hostname").status == 200
    fresh = signed_query("/etc/passwd", "read", box.about["envdAccessToken"])
    assert get(own, fresh).status == 429  # nothing is tried for it
    assert get(own, fresh, **{"E2b-Sandbox-Id": box.id}).status == 200  # nothing needs to be


def test_many_who_guess_signatures_at_once(server_factory):
    """Where looking takes more than a turn of the loop, those who come meanwhile are not looked for either, once
    enough of them were wrong."""
    own = server_factory()
    box = Box(own)
    for _ in range(200):
        own.create(enabled=False, wait=False)
    right = signed_query("/etc/hostname", "read", box.about["envdAccessToken"])
    queries = [f"path=/etc/hostname&signature=v1_{n:043d}" for n in range(100)] + [right]
    with contextlib.ExitStack() as stack:
        socks = [stack.enter_context(raw_http.connect(own)) for _ in queries]
        for sock, query in zip(socks, queries):
            sock.sendall(raw_http.head(own, f"GET /files?{query} HTTP/1.1", "Host: x", key=False))
        statuses = [int(sock.recv(12)[9:]) for sock in socks]
    assert set(statuses[:-1]) == {401, 429}
    assert statuses.count(401) <= 21
    assert statuses[-1] == 429  # it was not tried


# --- bodies ---

def form(parts, boundary="X"):
    out = io.BytesIO()
    for disposition, content in parts:
        out.write(f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n\r\n".encode())
        out.write(content + b"\r\n")
    out.write(f"--{boundary}--\r\n".encode())
    return out.getvalue()


FORM = "multipart/form-data; boundary=X"


def upload(box, body, kind=FORM, query=""):
    return box.call("POST", f"/files{query}", body, Content_Type=kind)


@pytest.mark.parametrize("kind, body", [
    ("multipart/form-data", form([('name="file"; filename="a"', b"x")])),
    ("multipart/form-data; boundary=", b"x"),
    ("multipart/form-data; boundary=" + "y" * 300, b"x"),
    (FORM, b""),
    (FORM, b"no form at all"),
    (FORM, form([('name="file"; filename="cut"', b"x")])[:-8]),
    (FORM, b"--X\r\n\r\nno name\r\n--X--\r\n--X--" * 3),
    (FORM, form([('name="file"; filename="a' + "b" * 9000 + '"', b"x")])),
    (FORM, form([('name="file"', b"no name of its own")])),
    (FORM, form([('name="file"; filename=""', b"x")])),
    (FORM, form([('name="file"; filename="a\\0b"', b"x")]).replace(b"\\0", b"\0")),
], ids=["no boundary", "empty boundary", "long boundary", "no body", "no form", "cut", "no disposition", "long field",
        "no filename", "empty filename", "a NUL"])
def test_forms_that_are_none(box, kind, body):
    answer = upload(box, body, kind)
    if answer.status == 200:  # a form without a file in it wrote none
        assert answer.json() == []
    else:
        assert answer.status == 400 and answer.json()["code"] == 400 and answer.json()["message"], answer


def test_a_filename_is_a_path_of_the_sandbox_and_no_more(box):
    """With all its dots it stays below its root; and it is the user's, who may write where he may."""
    for name in ("../../../../../../tmp/dots", "/tmp/../../../tmp/dots"):
        answer = upload(box, form([(f'name="file"; filename="{name}"', b"inside")]))
        assert answer.status in (200, 400), answer
    assert not os.path.exists("/tmp/dots")
    answer = upload(box, form([('name="file"; filename="a.txt"', b"1"), ('name="other"', b"2"),
                               ('name="file"; filename="/tmp/b.txt"', b"3")]))
    assert [item["path"] for item in answer.json()] == ["/home/user/a.txt", "/tmp/b.txt"]
    two = upload(box, form([('name="file"; filename="a"', b"1"), ('name="file"; filename="b"', b"2")]),
                 query="?path=/tmp/one")
    assert two.status == 400 and "several" in two.json()["message"]


def test_ten_thousand_parts(box):
    answer = upload(box, form([('name="x"', b"")] * 10000))
    assert answer.status == 400 and "parts" in answer.json()["message"], answer
    assert box.call("GET", "/health").status == 204


def test_a_bomb_fills_its_sandbox_and_nothing_else(server_factory):
    """A few kilobytes become a gibibyte: what does not fit is refused, with the error that says so."""
    own = server_factory()
    made = Box(own)
    own.request("PATCH", f"/v0/sandbox/{made.id}", {"spec": {"resources": {"disk": "64Mi"}}})
    packed = io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb", compresslevel=9) as out:
        for _ in range(256):
            out.write(bytes(1 << 20))
    answer = made.call("POST", "/files?path=/home/user/bomb", packed.getvalue(), Content_Encoding="gzip",
                       Content_Type="application/octet-stream")
    assert (answer.status, answer.json()["code"]) == (507, 507), answer
    assert made.call("GET", "/files?path=/home/user/bomb").status == 404
    small = made.call("POST", "/files?path=/home/user/small", b"fits", Content_Type="application/octet-stream")
    assert small.status == 200, small
    answer = made.call("POST", "/filesystem.Filesystem/Stat", gzip.compress(b'{"path":"/tmp"}'),
                       Content_Type="application/json", Content_Encoding="gzip")
    assert (answer.status, answer.json()["code"]) == (404, "unimplemented"), answer


# --- pages ---

def test_pages_are_told_what_they_may(server_factory):
    """A browser asks before it sends the fields that name a sandbox, and so without them."""
    own = server_factory("--cors-origin", "https://app.example")
    made = Box(own)
    for path in ("/files", START, "/filesystem.Filesystem/Stat", "/execute", "/contexts", "/health"):
        asked = own.request("OPTIONS", path, None, {
            "Authorization": None, "Origin": "https://app.example", "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": "content-type,e2b-sandbox-id,e2b-sandbox-port,x-access-token"})
        assert asked.status == 204, (path, asked)
        assert asked.headers["Access-Control-Allow-Origin"] == "https://app.example"
        assert "e2b-sandbox-id" in asked.headers["Access-Control-Allow-Headers"]
    told = made.call("GET", "/files?path=/etc/hostname", Origin="https://app.example")
    assert told.headers["Access-Control-Allow-Origin"] == "https://app.example"
    refused = made.call("GET", "/files?path=/etc/hostname", token=False, Origin="https://app.example")
    assert (refused.status, refused.headers["Access-Control-Allow-Origin"]) == (401, "https://app.example")
    stranger = made.call("GET", "/files?path=/etc/hostname", Origin="https://evil.example")
    assert stranger.headers["Access-Control-Allow-Origin"] is None


# --- those who show nothing ---

def lines_of(server, box):
    answer = call(server, "GET", "/v0/audit?limit=1000", server.key)
    return [line for line in answer.json()["entries"] if line.get("sandboxId") == box.id and line["api"] == "e2b-envd"]


def test_who_shows_nothing_wakes_nothing(server):
    """Whether it runs is told to everybody, and starts nothing; who has its token wakes it, unless it is switched off."""
    made = Box(server, autoPause=True, autoResume={"enabled": True})
    inside = server.sandbox(made.id)
    assert made.call("GET", "/health", token=False).status == 204
    for path, state in (("pause", "paused"), ("stop", "stopped")):
        assert inside.request("PUT", f"/{path}").status in (200, 202)
        inside.wait_status(state)
        for token in (False, True):
            assert made.call("GET", "/health", token=token).status == 502
        assert made.call("GET", "/files?path=/etc/hostname", token=False).status == 401
        assert inside.status() == state
        assert made.call("GET", "/files?path=/etc/hostname").status == 200
        assert made.call("GET", "/health", token=False).status == 204
    assert inside.request("PATCH", "", {"spec": {"enabled": False}}).status == 200
    inside.wait_status("stopped")
    assert made.call("GET", "/files?path=/etc/hostname").status == 502
    assert inside.status() == "stopped"
    made.kill()


def test_who_shows_nothing_is_nobody_in_the_audit_log(server):
    """Only who has shown the sandbox's token is said to have, and gets the room of those who are known."""
    made, loose = Box(server), Box(server, secure=False)
    assert made.call("GET", "/health").status == 204
    assert made.call("GET", "/envs").status == 200
    assert loose.call("GET", "/envs", token=False).status == 200
    assert loose.run("true", token=False) == b""
    told = {line["operation"]: line for line in lines_of(server, made)}
    assert told["GET /envs"]["key"] == "(sandbox token)" and "key" not in told["GET /health"]
    lines = lines_of(server, loose)
    assert len(lines) >= 2 and not any("key" in line for line in lines), lines
    assert {line["workspace"] for line in lines} == {"default"} and any(line.get("command") for line in lines)
    made.kill()
    loose.kill()


def test_who_shows_nothing_uses_up_nobodys_limits(server_factory):
    own = server_factory("--rate-limit", "local=on,read=1:5,write=off,create=off,files=off,exec=off,address=off")
    made, loose = Box(own), Box(own, secure=False)

    def asks(box, path, source, token=False):
        fields = box.fields(token=token)
        return call(own, "GET", path, headers=fields, source=source).status

    for box, path, most in ((made, "/health", 204), (loose, "/envs", 200)):
        stranger = fresh_address()
        answers = [asks(box, path, stranger) for _ in range(40)]
        assert answers[0] == most and answers[-1] == 429, answers
        assert asks(box, path, fresh_address()) == most
    owner = fresh_address()
    assert asks(made, "/envs", owner, token=True) == 200
