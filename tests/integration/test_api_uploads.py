# SPDX-License-Identifier: Apache-2.0
"""/filesystem-multipart: a large file in parts."""

import concurrent.futures
import hashlib
import os

BASE = "/filesystem-multipart"
RAW = {"Content-Type": "application/octet-stream"}
MIB = 1 << 20


def start(sandbox, path, **body):
    answer = sandbox.request("POST", f"{BASE}/initiate{path}", body)
    assert answer.status == 200, answer
    return answer.json()["uploadId"]


def part(sandbox, upload, number, data):
    return sandbox.request("PUT", f"{BASE}/{upload}/part?partNumber={number}", data, RAW, timeout=60)


def complete(sandbox, upload, parts=None):
    return sandbox.request("POST", f"{BASE}/{upload}/complete", {"parts": parts} if parts else {},
                           timeout=60)


def refused(answer, status, code, word=""):
    assert (answer.status, answer.error()) == (status, code), answer
    assert word in answer.json()["error"]["message"], answer


def nothing_left(sandbox):
    return sandbox.run("ls -A / | grep -c cella || true") == "0"


def test_twenty_megabytes_three_at_a_time(sandbox):
    data = os.urandom(21 * MIB + 12345)
    upload = start(sandbox, "/data/in/big.bin", permissions="600")
    pieces = [data[at:at + 5 * MIB] for at in range(0, len(data), 5 * MIB)]
    with concurrent.futures.ThreadPoolExecutor(3) as pool:
        jobs = [pool.submit(part, sandbox, upload, n, piece)
                for n, piece in reversed(list(enumerate(pieces, 1)))]
        answers = [job.result() for job in jobs]
    parts = sorted((answer.json() for answer in answers), key=lambda p: p["partNumber"])
    assert [(p["partNumber"], p["size"], p["etag"]) for p in parts] == \
        [(n, len(piece), hashlib.md5(piece).hexdigest()) for n, piece in enumerate(pieces, 1)]
    listed = sandbox.request("GET", f"{BASE}/{upload}/parts").json()
    assert (listed["uploadId"], listed["path"], listed["parts"]) == (upload, "/data/in/big.bin", parts)
    assert sandbox.exec("ls /data").exit_code != 0
    answer = complete(sandbox, upload, parts)
    assert answer.json() == {"path": "/data/in/big.bin",
                             "message": "Multipart upload completed successfully"}
    assert sandbox.run("md5sum < /data/in/big.bin; stat -c %a /data/in/big.bin").split() == \
        [hashlib.md5(data).hexdigest(), "-", "600"]
    assert nothing_left(sandbox)
    refused(complete(sandbox, upload), 404, "UPLOAD_NOT_FOUND")


def test_sent_again_and_chunked(sandbox):
    upload = start(sandbox, "/srv/f")
    assert part(sandbox, upload, 2, b"old").status == 200
    assert part(sandbox, upload, 2, b"two").status == 200
    with_chunks = sandbox.request("PUT", f"{BASE}/{upload}/part?partNumber=1", iter([b"o", b"ne"]),
                                  RAW)
    assert with_chunks.status == 200, with_chunks
    assert complete(sandbox, upload).status == 200
    assert sandbox.read("/srv/f") == b"onetwo"


def test_abort_leaves_nothing(sandbox):
    upload = start(sandbox, "/srv/f")
    part(sandbox, upload, 1, b"x" * MIB)
    assert [u["uploadId"] for u in sandbox.request("GET", BASE).json()["uploads"]] == [upload]
    answer = sandbox.request("DELETE", f"{BASE}/{upload}/abort")
    assert answer.json() == {"uploadId": upload, "message": "Multipart upload aborted successfully"}
    assert nothing_left(sandbox)
    assert sandbox.request("GET", BASE).json() == {"uploads": []}
    for answer in (part(sandbox, upload, 1, b"x"), sandbox.request("DELETE", f"{BASE}/{upload}/abort"),
                   sandbox.request("GET", f"{BASE}/{upload}/parts")):
        refused(answer, 404, "UPLOAD_NOT_FOUND")


def test_refused(shared_sandbox):
    sandbox = shared_sandbox
    upload = start(sandbox, "/srv/f")
    for number in ("0", "10001", "x", ""):
        refused(part(sandbox, upload, number, b"x"), 400, "INVALID_ARGUMENT", "partNumber")
    refused(sandbox.request("PUT", f"{BASE}/{upload}/part", b"x", RAW), 400, "INVALID_ARGUMENT")
    refused(complete(sandbox, upload), 400, "INVALID_ARGUMENT")
    etag = part(sandbox, upload, 1, b"x").json()["etag"]
    for parts in ([{"partNumber": 2}], [{"partNumber": 1, "etag": "beef"}], [{"etag": etag}], [1],
                  [{"partNumber": 1}, {"partNumber": 1}]):
        refused(complete(sandbox, upload, parts), 400, "INVALID_ARGUMENT")
    refused(sandbox.request("POST", f"{BASE}/initiate/etc"), 409, "IS_A_DIRECTORY")
    refused(sandbox.request("POST", f"{BASE}/initiate/srv/../../x"), 400, "INVALID_PATH")
    refused(sandbox.request("POST", f"{BASE}/initiate/srv/x", {"permissions": "99"}), 400,
            "INVALID_ARGUMENT")
    refused(sandbox.request("GET", f"{BASE}/..%2F..%2Fetc/parts"), 404, "UPLOAD_NOT_FOUND")
    assert sandbox.request("DELETE", f"{BASE}/{upload}/abort").status == 200


def test_a_limited_number_at_a_time(sandbox):
    uploads = [start(sandbox, "/srv/f") for _ in range(32)]
    refused(sandbox.request("POST", f"{BASE}/initiate/srv/f"), 429, "LIMIT_EXCEEDED", "32")
    assert sandbox.request("DELETE", f"{BASE}/{uploads[0]}/abort").status == 200
    start(sandbox, "/srv/f")


def test_parts_count_against_the_quota(server):
    sandbox = server.create(resources={"disk": "32Mi"})
    try:
        upload = start(sandbox, "/srv/f")
        answers = [part(sandbox, upload, n, os.urandom(12 * MIB)) for n in range(1, 5)]
        refused(answers[-1], 507, "QUOTA_EXCEEDED")
        assert sandbox.request("DELETE", f"{BASE}/{upload}/abort").status == 200
        assert nothing_left(sandbox)
    finally:
        sandbox.delete()


def test_survives_a_restart_of_the_server_and_ends_with_the_sandbox(server_factory):
    server = server_factory()
    sandbox = server.create()
    kept, dropped = start(sandbox, "/srv/kept"), start(sandbox, "/srv/dropped")
    part(sandbox, kept, 1, b"before ")
    part(sandbox, dropped, 1, b"x")
    before = server.kill("cellad")
    server.wait_recovered(before, "cellad")
    part(sandbox, kept, 2, b"after")
    assert complete(sandbox, kept).status == 200
    assert sandbox.read("/srv/kept") == b"before after"
    sandbox.stop().start()
    refused(part(sandbox, dropped, 2, b"x"), 404, "UPLOAD_NOT_FOUND")
    assert nothing_left(sandbox)


def test_another_workspace_does_not_see_it(server, sandbox):
    upload = start(sandbox, "/srv/f")
    answer = server.request("GET", f"/elsewhere/sandbox/{sandbox.name}{BASE}/{upload}/parts")
    assert answer.status in (403, 404), answer
    other = server.create()
    try:
        refused(other.request("GET", f"{BASE}/{upload}/parts"), 404, "UPLOAD_NOT_FOUND")
    finally:
        other.delete()
