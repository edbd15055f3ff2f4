# SPDX-License-Identifier: Apache-2.0
"""Strangers and the audit log: nobody writes lines of his own into it, hides in it, or reads others' lines."""

import json
import time
import urllib.parse

import raw_http
from cella_auth import Workspace, call, fresh

FORGED = '","hash":"' + "0" * 64 + '"}\n{"seq":1,"time":"2026-01-01T00:00:00.000Z","event":"request","key":"forged'


def lines(server):
    return [line for path in sorted((server.data / "audit").glob("audit-*.jsonl"))
            for line in path.read_text().splitlines()]


def flood(server, request, count):
    """So many of it on one connection, each read."""
    with raw_http.connect(server) as sock, sock.makefile("rb") as answers:
        for begin in range(0, count, 100):
            sock.sendall(request * min(100, count - begin))
            for _ in range(min(100, count - begin)):
                assert answers.readline() == b"HTTP/1.1 200 OK\r\n"
                length = 0
                while (field := answers.readline()) != b"\r\n":
                    if field.lower().startswith(b"content-length:"):
                        length = int(field.split(b":")[1])
                answers.read(length)


def test_text_of_strangers_stays_text(server, shared_sandbox):
    """Quotes, line breaks and bytes that are no text, in paths, names and commands."""
    mark = fresh("forge")
    for method, path in (
            ("GET", "/v0/sandbox/" + urllib.parse.quote(mark + FORGED, safe="")),
            ("GET", "/no/such/" + urllib.parse.quote(mark + FORGED, safe="")),
            ("DELETE", f"/v0/sandbox/{shared_sandbox.name}/filesystem/" + mark + "%ff%fe%0a%22"),
    ):
        assert server.request(method, path).status >= 400, path
    shared_sandbox.exec(f"echo {mark} '{FORGED}'")
    shared_sandbox.exec("echo " + mark + " " + "x" * 20000)
    assert server.request("GET", "/v0/audit?limit=1").status == 200  # all of that is written now
    found = [json.loads(line) for line in lines(server) if mark in line]
    assert len(found) >= 5
    assert not [e for e in found if e.get("key") == "forged" or e["hash"] == "0" * 64]
    assert max(len(line) for line in lines(server) if mark in line) < 8192
    done = server.cli("audit", "verify")
    assert done.returncode == 0, done.stdout


def test_filters_cannot_be_left(server):
    """A question that looks like a part of a line finds nothing of others."""
    one, two = Workspace(server), Workspace(server)
    try:
        key, other = one.key("admin"), two.new_key("admin")
        call(server, "GET", "/v0/sandbox", other["secret"])
        for value in (f'x","workspace":"{two.name}', "*", "%", '"', f'{two.name}'):
            query = urllib.parse.urlencode({"sandbox": value})
            assert call(server, "GET", f"/v0/audit?{query}", key).json()["entries"] == [], value
        for header in ("X-Cella-Workspace", "X-Blaxel-Workspace"):
            answer = call(server, "GET", "/v0/audit", key, headers={header: two.name})
            assert answer.status in (403, 404), answer
        assert call(server, "GET", f"/v0/audit?workspace={two.name}", key).status == 404
    finally:
        one.delete()
        two.delete()


def test_noise_of_a_key_pushes_nothing_out(server_factory):
    """Who only looks, or is refused, has a share of the lines; what he changes is written all the same, and so is
    what others do."""
    own = server_factory()
    place = Workspace(own)
    reader, writer = place.key("read"), place.key("write")
    count, at_once = 12000, 10000
    begun = time.monotonic()
    for key, line in ((reader, "GET /v0/sandbox HTTP/1.1"), (writer, "GET /v0/sandbox HTTP/1.1")):
        request = raw_http.head(own, line, "Host: x", f"Authorization: Bearer {key}", key=False)
        flood(own, request, count)
    refused = call(own, "POST", "/v0/sandbox", reader, {"metadata": {"name": "no"}})
    made = call(own, "POST", "/v0/sandbox", writer, {"metadata": {"name": "yes"}, "spec": {"enabled": False}})
    assert (refused.status, made.status) == (403, 202)
    assert call(own, "GET", "/v0/workspaces", own.key).status == 200
    assert call(own, "GET", "/v0/audit?limit=1", own.key).status == 200  # all of that is written now
    found = [json.loads(line) for line in lines(own)]
    most = at_once + 100 * (time.monotonic() - begun) + 2
    mine = [e for e in found if e.get("workspace") == place.name]
    reads = [e for e in mine if e["operation"] == "GET /v0/sandbox"]
    skipped = sum(e["lines"] for e in found if e["event"] == "audit.skipped")
    assert 2 * at_once <= len(reads) <= 2 * most, len(reads)
    assert 2 * count - len(reads) <= skipped <= 2 * count - len(reads) + 1
    assert [e["status"] for e in mine if e["operation"] == "POST /v0/sandbox"][-1] == 202
    assert [e for e in found if e.get("operation") == "GET /v0/workspaces"]  # another caller's
    assert own.cli("audit", "verify").returncode == 0


def test_the_files_are_nobody_elses(server):
    for path in [server.data / "audit", *(server.data / "audit").iterdir(), server.data / "db" / "audit-head"]:
        assert path.stat().st_mode & 0o077 == 0, path


def test_fields_that_name_another_address_count_for_nothing(server_factory):
    """Who says where he comes from is still where he is."""
    server = server_factory("--rate-limit", "local=on,address=1:10")
    answers = [server.request("GET", "/v0/whoami", headers={"X-Forwarded-For": f"192.0.2.{i}", "Forwarded": f"for=192.0.2.{i}",
                                                             "X-Real-Ip": f"192.0.2.{i}"}).status for i in range(40)]
    assert 429 in answers
