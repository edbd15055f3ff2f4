# SPDX-License-Identifier: Apache-2.0
"""POST /v0/sandbox/{name}/clone: a full copy, of whatever state the source is in, with a life of its
own."""

import contextlib
import json
import os
import re
import signal
import uuid

import pytest

from cella_server import wait_until
from clones import IN_STEP, clone, deleting, frozen_warden, furnish, steps, survey


def unique(prefix="c"):
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


# --- the answer ---


def test_the_answer_is_the_seeds(server, sandbox):
    name = unique()
    answer = sandbox.request("POST", "/clone", {
        "name": name, "resources": {"cpu": "2000m", "memory": "2Gi", "disk": "15Gi"}})
    made = server.sandbox(name)
    with deleting(made):
        assert answer.status == 202, answer
        body = answer.json()
        assert set(body) == {"metadata", "spec", "status", "events", "access"}
        assert body["metadata"]["name"] == name and body["metadata"]["workspace"] == "default"
        wanted = {"enabled": True, "image": "host", "resources": {
            "cpu": "2000m", "memory": "2Gi", "disk": "15Gi"}}
        assert {key: body["spec"][key] for key in wanted} == wanted
        assert body["status"] == "creating"
        assert len(body["events"]) == 1
        event = body["events"][0]
        assert (event["type"], event["status"]) == ("CLONE", "SUCCESS")
        assert event["message"] == f"Sandbox cloned successfully from {sandbox.name}"
        assert re.fullmatch(r"rev-\d+", event["revision"])
        assert event["revision"] == body["metadata"]["revision"]
        assert body["access"]["api_endpoint"].endswith(f"/default/sandbox/{name}")
        made.wait_status("running")
        assert [e["type"] for e in made.get()["events"]] == ["CLONE", "START"]


def test_every_form_of_the_body(server, sandbox):
    made = []
    try:
        for number, (body, resources) in enumerate([
                (None, ("1000m", "1Gi", "10Gi")),
                ({}, ("1000m", "1Gi", "10Gi")),
                ({"cpu": 0.5, "memory": "512Mi"}, ("0.5", "512Mi", "10Gi")),
                ({"resources": {"cpu": "2"}, "disk": "11Gi"}, ("2", "1Gi", "11Gi")),
                ({"metadata": {"name": "NAME"}, "spec": {"image": "host", "resources": {"memory": "2Gi"}}},
                 ("1000m", "2Gi", "10Gi")),
                ({"name": "NAME", "metadata": {"name": "NAME"}, "cpu": "1",
                  "spec": {"resources": {"cpu": "1"}}}, ("1", "1Gi", "10Gi")),
        ]):
            name = unique(f"f{number}")
            text = json.dumps(body).replace("NAME", name)
            answer = sandbox.request("POST", "/clone", json.loads(text))
            assert answer.status == 202, (body, answer)
            info = answer.json()
            made.append(server.sandbox(info["metadata"]["name"]))
            if name in text:
                assert info["metadata"]["name"] == name
            assert tuple(info["spec"]["resources"][k] for k in ("cpu", "memory", "disk")) == resources
    finally:
        for box in made:
            box.wait_status("running").delete()


@pytest.mark.parametrize("body, code, says", [
    ({"nmae": "x"}, "UNKNOWN_FIELD", "nmae"),
    ({"name": "Not A Name"}, "INVALID_NAME", "capital letter"),
    ({"name": "a", "metadata": {"name": "b"}}, "INVALID_ARGUMENT", "twice"),
    ({"cpu": "1", "resources": {"cpu": "2"}}, "INVALID_ARGUMENT", "cpu"),
    ({"memory": "lots"}, "INVALID_QUANTITY", "memory"),
    ({"disk": "1"}, "INVALID_QUANTITY", "disk"),
    ({"spec": {"image": "ubuntu:22.04"}}, "INVALID_ARGUMENT", "spec.image"),
    ({"spec": {"enabled": "yes"}}, "INVALID_ARGUMENT", "spec.enabled"),
    ({"spec": {"env_vars": {"1": "x"}}}, "INVALID_ARGUMENT", "spec.env_vars"),
    ({"metadata": {"labels": {"-": "x"}}}, "INVALID_ARGUMENT", "metadata.labels"),
    ([], "INVALID_ARGUMENT", "object"),
])
def test_what_is_wrong_is_named(shared_sandbox, body, code, says):
    answer = shared_sandbox.request("POST", "/clone", body)
    assert (answer.status, answer.error()) == (400, code), answer
    assert says in answer.json()["error"]["message"]


def test_names(server, sandbox):
    assert server.request("POST", "/v0/sandbox/nobody/clone", {}).error() == "SANDBOX_NOT_FOUND"
    answer = sandbox.request("POST", "/clone", {"name": sandbox.name})
    assert (answer.status, answer.error()) == (409, "ALREADY_EXISTS")


# --- the files ---


def test_everything_is_copied(sandbox):
    furnish(sandbox)
    before = survey(sandbox)
    copy = clone(sandbox)
    with deleting(copy):
        assert survey(copy) == before
        assert survey(sandbox) == before
        assert copy.run("cat /workspace/d/e/f") == "deep"


def test_each_has_a_life_of_its_own(sandbox):
    sandbox.write("/workspace/f", "both")
    copy = clone(sandbox)
    with deleting(copy):
        sandbox.write("/workspace/f", "source")
        copy.write("/workspace/g", "copy")
        assert copy.read("/workspace/f") == b"both"
        assert sandbox.request("GET", "/filesystem/workspace/g").status == 404
        # The names that start-up writes are the copy's own, those of users are not touched.
        assert copy.run("hostname; cat /etc/hostname") == f"{copy.name}\n{copy.name}"
        assert f"127.0.1.1 {copy.name}" in copy.run("cat /etc/hosts")
        copy.stop().start()
        assert copy.read("/workspace/g") == b"copy"


def test_names_that_a_user_chose_stay(sandbox):
    sandbox.run("echo mine > /etc/hostname; mv /etc/hosts /workspace/hosts; "
                "ln -s /workspace/hosts /etc/hosts; mkfifo /etc/.cella-clone")
    before = sandbox.run("cat /workspace/hosts")
    copy = clone(sandbox)
    with deleting(copy):
        assert copy.run("cat /workspace/hosts") == before
        assert copy.run("readlink /etc/hosts") == "/workspace/hosts"
        assert copy.run("cat /etc/hostname") == copy.name


def test_processes_are_not_copied_and_go_on(sandbox):
    born = sandbox.init_start_time()
    pid = sandbox.spawn("exec sleep 1000")
    copy = clone(sandbox)
    with deleting(copy):
        assert sandbox.init_start_time() == born
        assert sandbox.request("GET", f"/process/{pid}").json()["status"] == "running"
        assert not [p for p in copy.request("GET", "/process").json() if p["status"] == "running"]


def test_spec_is_taken_over_or_given(server):
    answer = server.request("POST", "/v0/sandbox", {
        "metadata": {"labels": {"team": "a"}, "externalId": unique("x"), "displayName": "Mine"},
        "spec": {"resources": {"cpu": "250m", "memory": "200Mi"}, "env_vars": {"A": "1", "B": "2"}}})
    source = server.sandbox(answer.json()["metadata"]["name"]).wait_status("running")
    same = clone(source)
    other = clone(source, spec={"env_vars": {"C": "3"}}, metadata={"labels": {"team": "b"}})
    with deleting(source, same, other):
        info = same.get()
        assert info["spec"] == source.get()["spec"]
        assert info["metadata"]["labels"] == {"team": "a"}
        assert "externalId" not in info["metadata"] and "displayName" not in info["metadata"]
        assert same.run("echo $A$B") == "12"
        assert other.get()["spec"]["env_vars"] == {"C": "3"}
        assert other.get()["metadata"]["labels"] == {"team": "b"}


# --- states of the source ---


def test_a_stopped_source(sandbox):
    sandbox.write("/workspace/f", "kept")
    sandbox.stop()
    copy = clone(sandbox)
    with deleting(copy):
        assert copy.read("/workspace/f") == b"kept"
        assert sandbox.status() == "stopped"
        sandbox.start()


def test_a_source_that_is_being_made(server):
    source = server.create(wait=False)
    copy = clone(source, wait=None)
    with deleting(source, copy):
        copy.wait_status("running")
        assert copy.run("echo it works") == "it works"


def test_a_source_that_never_ran(server):
    source = server.create(enabled=False)
    copy = clone(source, wait="stopped")
    on = clone(source, spec={"enabled": True})
    with deleting(source, copy, on):
        assert copy.get()["spec"]["enabled"] is False
        assert on.run("echo it works") == "it works"
        copy.start()


def test_a_clone_that_stays_off_has_its_files(sandbox):
    sandbox.write("/workspace/f", "kept")
    copy = clone(sandbox, spec={"enabled": False}, wait="stopped")
    with deleting(copy):
        sandbox.write("/workspace/f", "later")
        assert copy.start().read("/workspace/f") == b"kept"


def test_a_clone_of_a_clone_of_a_clone(server):
    boxes = [server.create()]
    for generation in range(3):
        boxes[-1].write(f"/workspace/{generation}", str(generation))
        boxes.append(clone(boxes[-1]))
    with deleting(*boxes):
        for box in boxes[:-1]:
            box.delete()
        assert boxes[-1].run("cat /workspace/0 /workspace/1 /workspace/2") == "012"


def test_the_source_may_be_deleted_at_once(server):
    """Twenty times, because it is a race: the copy is promised, so it is made."""
    for number in range(20):
        source = server.create()
        source.write("/workspace/f", f"kept {number}")
        copy = clone(source, wait=None)
        assert server.request("DELETE", source.base).status == 202
        copy.wait_status("running")
        assert copy.read("/workspace/f") == f"kept {number}".encode()
        source.wait_status("gone")
        copy.delete()


def test_a_source_is_deleted_before_it_has_files(server, sandbox):
    """A clone of a clone waits for a source that is deleted before it is copied: it gets the files that the source would have got."""
    sandbox.write("/workspace/f", "kept")
    with frozen_warden(server):
        middle = clone(sandbox, wait=None)
        last = clone(middle, wait=None)
        assert server.request("DELETE", middle.base).status == 202
    with deleting(last):
        middle.wait_status("gone", deadline=15)
        last.wait_status("running", deadline=15)
        assert last.read("/workspace/f") == b"kept"


def test_a_chain_of_sources_is_deleted_before_any_has_files(server):
    """From both ends, the first source included."""
    source = server.create()
    source.write("/workspace/f", "kept")
    with frozen_warden(server):
        chain = [source]
        for _ in range(5):
            chain.append(clone(chain[-1], wait=None))
        for number in (3, 1, 0, 4, 2):
            assert server.request("DELETE", chain[number].base).status == 202
    with deleting(chain[-1]):
        for box in chain[:-1]:
            box.wait_status("gone", deadline=15)
        assert chain[-1].wait_status("running", deadline=15).read("/workspace/f") == b"kept"
    assert server.leaks() == ""


def test_a_clone_that_is_to_be_stopped_is_started_before_it_is_copied(server):
    """By itself and by its group: it runs in the end."""
    name = unique("g")
    assert server.request("POST", "/v0/groups", {"name": name}).status == 202
    assert server.request("POST", f"/v0/groups/{name}/sandbox", {
        "metadata": {"name": "a"}, "spec": {"enabled": False}}).status == 202
    base = f"/v0/groups/{name}/sandbox"
    with frozen_warden(server):
        for copy in ("b", "c"):
            assert server.request("POST", f"{base}/a/clone", {"name": copy}).status == 202
        assert server.request("PUT", f"{base}/b/start").status == 202
        assert server.request("PUT", f"{base}/b/start").error() == "ALREADY_RUNNING"
        assert server.request("POST", f"/v0/groups/{name}/start").status == 202
    for copy in ("a", "b", "c"):
        wait_until(lambda copy=copy: server.request("GET", f"{base}/{copy}").json()["status"] == "running", 60,
                   lambda: server.request("GET", base).text)
    assert server.request("POST", f"/v0/groups/{name}/end").status == 202
    wait_until(lambda: server.request("GET", f"/v0/groups/{name}").status == 404, 60, "the group's end")


def test_a_source_is_deleted_while_it_is_created(server):
    """It has nothing but its image: that is what its clone gets."""
    with frozen_warden(server):
        source = server.create(wait=False)
        copy = clone(source, wait=None)
        assert server.request("DELETE", source.base).status == 202
    with deleting(copy):
        source.wait_status("gone", deadline=15)
        assert copy.wait_status("running", deadline=15).run("ls -A /workspace") == ""


def test_a_source_is_deleted_while_its_clone_waits_for_a_name(server, sandbox):
    """The source is there when the request is checked, and not any more when the name is free."""
    with frozen_warden(server), contextlib.closing(server.connection()) as connection:
        holder = server.create(wait=False)
        assert server.request("DELETE", holder.base).status == 202
        connection.request("POST", f"{sandbox.base}/clone", json.dumps({"name": holder.name}), {
            "Authorization": f"Bearer {server.key}", "Content-Type": "application/json"})
        assert server.request("DELETE", sandbox.base).status == 202
        os.kill(server.pids().warden, signal.SIGCONT)
        answer = connection.getresponse()
        assert (answer.status, json.loads(answer.read())["error"]["code"]) == (404, "SANDBOX_NOT_FOUND")
    sandbox.wait_status("gone")


def test_a_clone_may_be_deleted_at_once(server, sandbox):
    """At whatever step its copy is: what was made of it goes too."""
    for number in range(20):
        sandbox.run(f"head -c {number}M /dev/zero > /workspace/f")  # something for the disk to do
        copy = clone(sandbox, wait=None)
        copy.delete()
    assert sandbox.run("echo fine") == "fine"
    assert server.leaks() == ""


def test_many_at_once(sandbox):
    sandbox.write("/workspace/f", "x" * 100000)
    copies = [clone(sandbox, wait=None) for _ in range(12)]
    with deleting(*copies):
        for copy in copies:
            copy.wait_status("running")
            assert len(copy.read("/workspace/f")) == 100000
    assert sandbox.run("echo fine") == "fine"


# --- consistency ---


def test_a_writing_source_is_copied_at_one_moment(sandbox):
    sandbox.write("/workspace/step.py", IN_STEP)
    sandbox.spawn("exec python3 /workspace/step.py")
    wait_until(lambda: sandbox.request("GET", "/filesystem/workspace/ready").status == 200, 30,
               "the program writes")
    last = -1
    for _ in range(5):
        wait_until(lambda: steps_of_running(sandbox) > last, 30, "the program goes on")
        copy = clone(sandbox)
        with deleting(copy):
            a, b = steps(copy)
            assert 0 <= a - b <= 1, (a, b)
            last = a
    wait_until(lambda: steps_of_running(sandbox) > last, 30, "the program goes on")


def steps_of_running(box):
    return int.from_bytes(box.read("/workspace/b")[:8], "little")


# --- size and quota ---


def test_fifty_thousand_small_files(sandbox):
    sandbox.run("mkdir /workspace/many && cd /workspace/many && "
                "seq 50000 | split -l 1 -a 4 - f && ls | wc -l", timeout=120)
    copy = clone(sandbox)
    with deleting(copy):
        assert copy.run("ls /workspace/many | wc -l; cat /workspace/many/f* | wc -l", timeout=120) == \
            "50000\n50000"


FILL = "dd if=/dev/urandom of=/workspace/{} bs=1M count={} status=none"


def test_what_a_clone_begins_with_counts(server):
    source = server.create(resources={"disk": "96Mi"})
    with deleting(source):
        source.run(FILL.format("a", 40) + " && sync")
        copy = clone(source)
        again = clone(copy)
        with deleting(copy, again):
            for box in (copy, again):
                assert box.exec(FILL.format("b", 30) + " && sync").exit_code == 0
                refused = box.exec(FILL.format("c", 60))
                assert refused.exit_code != 0 and "quota" in refused.stderr.lower()
            # The source is charged with its own alone.
            assert source.exec(FILL.format("b", 30) + " && sync").exit_code == 0
            # A copy of one that is full, and of that: they start, and have no room.
            full = clone(again)
            with deleting(full):
                assert full.run("ls /workspace | wc -l") == "3"
                assert full.exec(FILL.format("d", 30)).exit_code != 0


def test_a_disk_that_is_too_small(server):
    source = server.create(resources={"disk": "200Mi"})
    with deleting(source):
        source.run(FILL.format("a", 60) + " && sync")
        answer = source.request("POST", "/clone", {"disk": "32Mi"})
        assert (answer.status, answer.error()) == (409, "RESOURCE_IN_USE"), answer
        assert "disk" in answer.json()["error"]["message"]
        copy = clone(source, disk="100Mi")
        with deleting(copy):
            assert copy.exec(FILL.format("b", 60)).exit_code != 0
            bigger = clone(copy, disk="300Mi")
            with deleting(bigger):
                assert bigger.exec(FILL.format("c", 60) + " && sync").exit_code == 0


# --- resume ---


def test_resume(sandbox):
    assert sandbox.request("PUT", "/resume").error() == "ALREADY_RUNNING"
    for method in ("PUT", "POST"):
        sandbox.stop()
        answer = sandbox.request(method, "/resume")
        assert answer.status == 202 and answer.json()["status"] == "starting", answer
        sandbox.wait_status("running")
        event = sandbox.get()["events"][-1]
        assert (event["type"], event["message"]) == ("RESUME", "Sandbox resumed successfully")
    sandbox.stop().start()
    assert sandbox.get()["events"][-1]["type"] == "START"
