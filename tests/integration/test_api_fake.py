# SPDX-License-Identifier: Apache-2.0
"""The API on a provider that fakes sandboxes (support/fake_warden.py): quick, and without privileges. The
real supervisor and cellad run as an ordinary user; shapes, errors, keys, limits and paging are theirs."""

import pathlib

import pytest

from cella_auth import Workspace, call, fresh
from fake_server import FakeServer


@pytest.fixture(scope="module")
def fake():
    server = FakeServer()
    yield server
    server.close()


@pytest.fixture(scope="module")
def box(fake):
    made = fake.create("fake-box")
    yield made
    made.delete()


def test_nobody_has_privileges(fake):
    for pid in fake.pids():
        status = pathlib.Path(f"/proc/{pid}/status").read_text()
        uids = status.split("\nUid:\t", 1)[1].split("\n", 1)[0].split("\t")
        assert "0" not in uids, status
        assert "\nCapEff:\t0000000000000000\n" in status


def test_life(fake):
    made = fake.create()
    about = made.get()
    assert about["status"] == "running" and about["metadata"]["name"] == made.name
    assert fake.request("POST", "/v0/sandbox", {"metadata": {"name": made.name}}).error() == "ALREADY_EXISTS"
    made.stop()
    assert made.request("POST", "/process", {"command": "true"}).error() == "NOT_RUNNING"
    made.start()
    made.delete()
    assert made.request("GET", "").error() == "SANDBOX_NOT_FOUND"


def test_processes(box):
    done = box.exec("echo out; echo err >&2; exit 3")
    assert (done.exit_code, done.stdout, done.stderr) == (3, "out\n", "err\n")
    assert box.exec("pwd").stdout.endswith("/workspace\n")
    pid = box.spawn("sleep 1000")
    assert box.request("GET", f"/process/{pid}").json()["status"] == "running"
    assert box.request("POST", f"/process/{pid}/kill").status == 200
    assert box.request("GET", f"/process/{pid}").json()["status"] == "killed"
    assert {item["pid"] for item in box.request("GET", "/process").json()} >= {pid}
    assert box.request("GET", "/process/999999").error() == "PROCESS_NOT_FOUND"
    assert box.request("POST", "/process", {"command": ["/no/such"]}).error() == "FILE_NOT_FOUND"


def test_files(box):
    box.write("/workspace/a/b.txt", b"\x00\xffbytes")
    assert box.read("/workspace/a/b.txt") == b"\x00\xffbytes"
    listed = box.request("GET", "/filesystem/workspace/a").json()
    assert [item["path"].rsplit("/", 1)[-1] for item in listed["files"]] == ["b.txt"]
    assert box.run("cat a/b.txt | wc -c") == "7"
    assert box.request("DELETE", "/filesystem/workspace/a/b.txt").status == 200
    assert box.request("GET", "/filesystem/workspace/a/b.txt").error() == "FILE_NOT_FOUND"


def test_paging(fake):
    names = [fresh("page") for _ in range(5)]
    for name in names:
        fake.create(name, enabled=False)
    seen, offset = [], 0
    while True:
        page = fake.request("GET", f"/v0/sandbox?limit=2&offset={offset}").json()
        if not page["sandboxes"]:
            break
        assert len(page["sandboxes"]) <= 2 and page["total"] >= 5
        seen += [one["metadata"]["name"] for one in page["sandboxes"]]
        offset += 2
    assert set(names) <= set(seen) and len(seen) == len(set(seen))
    for name in names:
        fake.sandbox(name).delete()


@pytest.mark.parametrize("query", ["limit=0", "limit=-1", "limit=x", "offset=-1", "limit=99999999999999999999"])
def test_bad_paging(fake, query):
    assert fake.request("GET", f"/v0/sandbox?{query}").error() == "INVALID_ARGUMENT"


def test_keys_and_workspaces(fake, box):
    workspace = Workspace(fake)
    reader, stranger = workspace.key("read"), workspace.key("admin")
    assert call(fake, "GET", "/v0/sandbox").status == 401
    assert call(fake, "POST", "/v0/sandbox", reader, {"metadata": {}}).status == 403
    assert call(fake, "GET", box.base, stranger).status == 404
    assert call(fake, "GET", "/v0/whoami", reader).json()["workspace"] == workspace.name
    workspace.delete()


@pytest.mark.parametrize("body, code", [
    ("{", "INVALID_JSON"), ("[]", "INVALID_ARGUMENT"), ({"metadata": {"nmae": "x"}}, "UNKNOWN_FIELD"),
    ({"metadata": {"name": "A_b"}}, "INVALID_NAME"), ({"spec": {"resources": {"memory": "x"}}}, "INVALID_QUANTITY"),
    ({"spec": {"image": "no-such-image"}}, "IMAGE_NOT_FOUND"),
])
def test_bad_requests(fake, body, code):
    headers = {"Content-Type": "application/json"}
    assert fake.request("POST", "/v0/sandbox", body, headers).error() == code


def test_shapes_of_the_facades(fake, box):
    """Each finds the same sandbox, in its own words, and says so in its own kind of error."""
    own = fake.request("GET", box.base).json()
    blaxel = fake.request("GET", f"/v0/sandboxes/{box.name}").json()
    assert blaxel["metadata"]["name"] == box.name and blaxel["status"]
    e2b = fake.request("GET", "/v2/sandboxes", headers={"X-API-Key": fake.key, "Authorization": None}).json()
    assert any(one["sandboxID"].startswith(own["metadata"]["id"]) for one in e2b), e2b
    container = fake.request("GET", f"/api/sandbox/{box.name}").json()
    assert container["status"] and container["createdAt"]
    missing = [fake.request("GET", path) for path in ("/v0/sandbox/no-such", "/v0/sandboxes/no-such",
                                                      "/api/sandbox/no-such")]
    assert [answer.status for answer in missing] == [404] * 3
    assert len({tuple(sorted(answer.json())) for answer in missing}) >= 2  # not one envelope for all


def test_a_crash_of_cellad(fake, box):
    before = fake.kill("cellad")
    fake.wait_recovered(before, "cellad")
    assert box.exec("echo still here").stdout == "still here\n"
