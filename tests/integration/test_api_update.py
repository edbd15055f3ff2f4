# SPDX-License-Identifier: Apache-2.0
"""PUT and PATCH of a sandbox: new limits under what runs, environment, labels, revisions."""

import http.client
import pathlib
import threading
import uuid

import pytest

from cella_server import wait_until
from clones import deleting

MIB = 1 << 20


def unique(prefix="u"):
    return f"{prefix}-{uuid.uuid4().hex[:10]}"


def cgroup_value(server, box, v1, v2):
    """A limit as the kernel has it: (tree, file) for v1, file for v2."""
    group = f"cella-{server.instance}/{box.get()['metadata']['id']}"
    old = pathlib.Path("/sys/fs/cgroup", v1[0], group, v1[1])
    for top in ("/sys/fs/cgroup", "/sys/fs/cgroup/unified"):
        new = pathlib.Path(top, group, v2)
        if not old.exists() and new.exists():
            return new.read_text().strip()
    return old.read_text().strip()


def memory_limit(server, box):
    return int(cgroup_value(server, box, ("memory", "memory.limit_in_bytes"), "memory.max"))


def cpu_share(server, box):
    text = cgroup_value(server, box, ("cpu", "cpu.cfs_quota_us"), "cpu.max").split()
    period = text[1] if len(text) > 1 else cgroup_value(server, box, ("cpu", "cpu.cfs_period_us"), "cpu.max")
    return int(text[0]) / int(period)


def patch(box, body, **headers):
    return box.request("PATCH", "", body, headers)


# --- limits ---


def test_limits_change_under_what_runs(server, sandbox):
    born = sandbox.init_start_time()
    for cpu, memory in (("500m", "300Mi"), ("2", "2Gi"), ("50m", "64Mi"), ("1", "1Gi")):
        answer = patch(sandbox, {"spec": {"resources": {"cpu": cpu, "memory": memory}}})
        assert answer.status == 200, answer
        assert answer.json()["spec"]["resources"] == {"cpu": cpu, "memory": memory, "disk": "10Gi"}
        wanted = {"300Mi": 300 * MIB, "2Gi": 2048 * MIB, "64Mi": 64 * MIB, "1Gi": 1024 * MIB}[memory]
        assert memory_limit(server, sandbox) == wanted
        assert cpu_share(server, sandbox) == {"500m": 0.5, "2": 2, "50m": 0.05, "1": 1}[cpu]
    assert sandbox.init_start_time() == born
    event = sandbox.get()["events"][-1]
    assert (event["type"], event["status"]) == ("UPDATE", "SUCCESS")


def test_the_new_memory_limit_is_enforced(server):
    box = server.create(resources={"memory": "64Mi"})
    with deleting(box):
        eater = "python3 -c 'b = bytearray(150 << 20); print(len(b))'"
        assert box.exec(eater).exit_code != 0
        assert patch(box, {"spec": {"resources": {"memory": "512Mi"}}}).status == 200
        assert box.exec(eater).exit_code == 0
        assert patch(box, {"spec": {"resources": {"memory": "64Mi"}}}).status == 200
        assert box.exec(eater).exit_code != 0


def test_memory_in_use_is_not_taken_away(server, sandbox):
    sandbox.write("/tmp/hold.py", "import time\nb = bytearray(200 << 20)\n"
                                  "open('/tmp/held', 'w').close()\ntime.sleep(1000)\n")
    pid = sandbox.spawn("exec python3 /tmp/hold.py")
    wait_until(lambda: sandbox.request("GET", "/filesystem/tmp/held").status == 200, 30, "it holds")
    before = sandbox.get()
    answer = patch(sandbox, {"spec": {"resources": {"cpu": "250m", "memory": "64Mi"},
                                      "env_vars": {"X": "1"}}})
    assert (answer.status, answer.error()) == (409, "RESOURCE_IN_USE"), answer
    assert "memory" in answer.json()["error"]["message"]
    # Nothing of it was done.
    assert sandbox.get()["spec"] == before["spec"]
    assert memory_limit(server, sandbox) == 1024 * MIB and cpu_share(server, sandbox) == 1
    assert sandbox.request("GET", f"/process/{pid}").json()["status"] == "running"


def test_disk(server):
    box = server.create(resources={"disk": "64Mi"})
    fill = "dd if=/dev/urandom of=/workspace/{} bs=1M count={} status=none && sync"
    with deleting(box):
        assert box.exec(fill.format("a", 100)).exit_code != 0
        box.run("rm /workspace/a; sync")
        assert patch(box, {"spec": {"resources": {"disk": "300Mi"}}}).status == 200
        assert box.exec(fill.format("a", 100)).exit_code == 0
        answer = patch(box, {"spec": {"resources": {"disk": "64Mi"}}})
        assert (answer.status, answer.error()) == (409, "RESOURCE_IN_USE"), answer
        assert patch(box, {"spec": {"resources": {"disk": "150Mi"}}}).status == 200
        assert box.exec(fill.format("b", 100)).exit_code != 0


def test_a_stopped_one_starts_with_its_new_limits(server, sandbox):
    sandbox.stop()
    assert patch(sandbox, {"spec": {"resources": {"memory": "128Mi"}}}).status == 200
    sandbox.start()
    assert memory_limit(server, sandbox) == 128 * MIB


def test_one_that_is_being_made_has_them_in_the_end(server):
    for _ in range(5):
        box = server.create(wait=False)
        with deleting(box):
            assert patch(box, {"spec": {"resources": {"memory": "128Mi"}}}).status == 200
            box.wait_status("running")
            assert memory_limit(server, box) == 128 * MIB


def test_under_load(server, sandbox):
    """Busy processes, and four clients that change the same sandbox: the last word is everybody's."""
    for _ in range(4):
        sandbox.spawn("while :; do :; done")
    failures = []

    def change(number):
        for step in range(8):
            answer = patch(sandbox, {"spec": {"resources": {"cpu": f"{100 + number * 10 + step}m",
                                                            "memory": f"{300 + number * 10 + step}Mi"}}})
            if answer.status != 200:
                failures.append(answer)

    threads = [threading.Thread(target=change, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures
    resources = sandbox.get()["spec"]["resources"]
    assert memory_limit(server, sandbox) == int(resources["memory"][:-2]) * MIB
    assert cpu_share(server, sandbox) == int(resources["cpu"][:-1]) / 1000
    assert sandbox.run("echo it answers") == "it answers"


# --- environment, labels, words ---


def test_environment(sandbox):
    assert patch(sandbox, {"spec": {"env_vars": {"A": "1", "B": "2"}}}).status == 200
    assert sandbox.run("echo $A $B") == "1 2"
    assert patch(sandbox, {"spec": {"env_vars": {"B": "3", "A": None, "C": "4"}}}).status == 200
    assert sandbox.run("echo ${A-none} $B $C") == "none 3 4"
    assert sandbox.request("PUT", "", {"spec": {"env_vars": {"D": "5"}}}).status == 200
    assert sandbox.get()["spec"]["env_vars"] == {"D": "5"}
    assert sandbox.request("PUT", "", {"spec": {"resources": {"cpu": "1"}}}).status == 200
    assert sandbox.get()["spec"]["env_vars"] == {"D": "5"}
    answer = sandbox.request("PUT", "", {"spec": {"env_vars": {"D": None}}})
    assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT")


def test_labels_and_names(server, sandbox):
    external = unique("ext")
    body = {"metadata": {"labels": {"team": "a", "example.com/run": "7"}, "displayName": "A box",
                         "externalId": external}}
    metadata = patch(sandbox, body).json()["metadata"]
    assert metadata["labels"] == {"team": "a", "example.com/run": "7"}
    assert (metadata["displayName"], metadata["externalId"]) == ("A box", external)
    metadata = patch(sandbox, {"metadata": {"labels": {"team": None, "x": ""}, "displayName": ""}}).json()["metadata"]
    assert metadata["labels"] == {"example.com/run": "7", "x": ""} and "displayName" not in metadata
    other = server.create()
    with deleting(other):
        answer = patch(other, {"metadata": {"externalId": external}})
        assert (answer.status, answer.error()) == (409, "ALREADY_EXISTS")
        assert patch(sandbox, {"metadata": {"externalId": ""}}).status == 200
        assert patch(other, {"metadata": {"externalId": external}}).status == 200


def test_enabled_starts_and_stops(sandbox):
    assert patch(sandbox, {"spec": {"enabled": False}}).json()["spec"]["enabled"] is False
    sandbox.wait_status("stopped")
    assert patch(sandbox, {"spec": {"enabled": True}}).status == 200
    sandbox.wait_status("running")
    sandbox.stop()
    assert sandbox.request("PUT", "", sandbox.get()).status == 200  # as it is: it stays stopped
    assert sandbox.status() == "stopped"
    sandbox.start()


def test_what_was_got_can_be_put_back(sandbox):
    before = sandbox.get()
    answer = sandbox.request("PUT", "", before)
    assert answer.status == 200, answer
    after = answer.json()
    assert after["spec"] == before["spec"]
    assert after["metadata"]["revision"] != before["metadata"]["revision"]


def test_nothing_to_change(sandbox):
    before = sandbox.get()
    for body in (None, {}, {"spec": {}}):
        assert patch(sandbox, body).json()["metadata"] == before["metadata"]


@pytest.mark.parametrize("body, code, says", [
    ({"spec": {"resources": {"memory": "1"}}}, "INVALID_QUANTITY", "memory"),
    ({"spec": {"resources": {"gpu": "1"}}}, "UNKNOWN_FIELD", "gpu"),
    ({"spec": {"image": "other"}}, "INVALID_ARGUMENT", "spec.image"),
    ({"metadata": {"name": "other"}}, "INVALID_ARGUMENT", "metadata.name"),
    ({"metadata": {"revision": "7"}}, "INVALID_ARGUMENT", "metadata.revision"),
    ({"metadata": {"labels": {"a b": "x"}}}, "INVALID_ARGUMENT", "a b"),
    ({"metadata": {"labels": {"a": "x" * 256}}}, "INVALID_ARGUMENT", "metadata.labels.a"),
    ({"metadata": {"labels": {"a": "x\ny"}}}, "INVALID_ARGUMENT", "metadata.labels.a"),
    ({"metadata": {"labels": {str(n): "" for n in range(65)}}}, "INVALID_ARGUMENT", "64"),
    ({"metadata": {"externalId": "a b"}}, "INVALID_ARGUMENT", "externalId"),
    ({"metadata": {"externalId": "a" * 65}}, "INVALID_ARGUMENT", "externalId"),
    ({"metadata": {"displayName": "a" * 256}}, "INVALID_ARGUMENT", "displayName"),
    ({"name": "x"}, "UNKNOWN_FIELD", "name"),
])
def test_what_is_wrong_is_named(shared_sandbox, body, code, says):
    answer = patch(shared_sandbox, body)
    assert (answer.status, answer.error()) == (400, code), answer
    assert says in answer.json()["error"]["message"]


# --- revisions ---


def test_a_revision_is_another_one_after_each_change(sandbox):
    seen = [sandbox.get()["metadata"]["revision"]]
    for change in (lambda: patch(sandbox, {"metadata": {"labels": {"a": "b"}}}), sandbox.stop, sandbox.start):
        change()
        seen.append(sandbox.get()["metadata"]["revision"])
    numbers = [int(text.removeprefix("rev-")) for text in seen]
    assert numbers == sorted(set(numbers))
    assert sandbox.get()["events"][-1]["revision"] == seen[-1]
    assert sandbox.request("GET", "").headers["ETag"] == f'"{seen[-1]}"'


def test_if_match(server, sandbox):
    revision = sandbox.get()["metadata"]["revision"]
    wrong = {"If-Match": '"rev-1"'}
    for method, path, body in (("PATCH", "", {"metadata": {"labels": {"a": "b"}}}), ("PUT", "", {}),
                               ("DELETE", "", None), ("PUT", "/stop", None), ("POST", "/clone", {}),
                               ("PUT", "/start", None), ("PUT", "/resume", None)):
        answer = sandbox.request(method, path, body, wrong)
        assert (answer.status, answer.error()) == (412, "REVISION_MISMATCH"), (method, path, answer)
        assert revision in answer.json()["error"]["message"]
        answer = sandbox.request(method, path, body, {"If-Match": "seven"})
        assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT"), (method, path, answer)
    answer = sandbox.request("PATCH", "", {"metadata": {"labels": {"a": "b"}}},
                             {"If-Match": f'"{revision}"'})
    assert answer.status == 200 and answer.headers["ETag"] != f'"{revision}"'
    assert sandbox.request("PATCH", "", {"metadata": {"labels": {"a": "c"}}}, {"If-Match": "*"}).status == 200
    assert server.request("DELETE", "/v0/sandbox/nobody", None, wrong).status == 404


def test_the_revision_in_the_body(sandbox):
    mine, theirs = sandbox.get(), sandbox.get()
    theirs["metadata"]["labels"] = {"by": "them"}
    assert sandbox.request("PUT", "", theirs).status == 200
    mine["metadata"]["labels"] = {"by": "me"}
    answer = sandbox.request("PUT", "", mine)
    assert (answer.status, answer.error()) == (409, "REVISION_CONFLICT"), answer
    assert sandbox.get()["metadata"]["labels"] == {"by": "them"}


# --- lists ---


def test_lists_by_label(server):
    tag = unique("run")
    boxes = []
    for number in range(4):
        body = {"metadata": {"labels": {"run": tag, "kind": "even" if number % 2 == 0 else "odd"}},
                "spec": {"enabled": False}}
        answer = server.request("POST", "/v0/sandbox", body)
        assert answer.status == 202, answer
        boxes.append(server.sandbox(answer.json()["metadata"]["name"]))

    def listed(query):
        answer = server.request("GET", f"/v0/sandbox?{query}")
        assert answer.status == 200, answer
        return [box["metadata"]["name"] for box in answer.json()["sandboxes"]], answer.json()["total"]

    names = [box.name for box in boxes]
    with deleting(*boxes):
        assert listed(f"label=run={tag}") == (names, 4)
        assert listed(f"label=run={tag}&label=kind=even") == (names[::2], 2)
        assert listed(f"label=run={tag},kind=odd") == (names[1::2], 2)
        assert listed(f"label=run={tag}&limit=2&offset=1") == (names[1:3], 4)
        assert listed(f"label=run={tag}&status=running") == ([], 0)
        assert listed(f"label=run={tag}x") == ([], 0)
        answer = server.request("GET", "/v0/sandbox?label=run")
        assert (answer.status, answer.error()) == (400, "INVALID_ARGUMENT")


# --- what lasts ---


def test_everything_lasts(server_factory):
    server = server_factory()
    box = server.create()
    external = unique("ext")
    body = {"metadata": {"labels": {"a": "b"}, "displayName": "Box", "externalId": external},
            "spec": {"resources": {"cpu": "300m", "memory": "256Mi", "disk": "5Gi"},
                     "env_vars": {"LASTS": "yes"}}}
    assert patch(box, body).status == 200
    before = box.get()
    order = [item["metadata"]["name"] for item in server.list()]
    for victims in (("cellad",), ("warden",), ("cellad", "warden")):
        server.wait_recovered(server.kill(*victims), *victims)
        after = box.get()
        assert (after["metadata"], after["spec"]) == (before["metadata"], before["spec"])
    assert memory_limit(server, box) == 256 * MIB
    assert box.run("echo $LASTS") == "yes"
    assert [item["metadata"]["name"] for item in server.list()] == order
    box.stop().start()
    assert memory_limit(server, box) == 256 * MIB and cpu_share(server, box) == 0.3
    box.delete()
    assert server.leaks() == ""


def test_kill_9_in_the_middle_of_updates(server_factory):
    """Whoever is killed, record and kernel say the same in the end, and it is one of the values that
    somebody asked for."""
    server = server_factory()
    box = server.create()
    for victims in (("cellad",), ("warden",), ("cellad", "warden"), ("warden",), ("cellad",)):
        stop = threading.Event()

        def hammer(until):
            number = 0
            while not until.is_set():
                number += 1
                try:
                    patch(box, {"spec": {"resources": {"memory": f"{200 + number % 50}Mi"}}})
                except (OSError, http.client.HTTPException):
                    pass  # the crash, which is what we came for

        thread = threading.Thread(target=hammer, args=(stop,))
        thread.start()
        before = server.kill(*victims)
        stop.set()
        thread.join()
        server.wait_recovered(before, *victims)
        answer = patch(box, {"spec": {"env_vars": {"SETTLED": "yes"}}})  # waits for what is under way
        assert answer.status == 200, answer
        megabytes = answer.json()["spec"]["resources"]["memory"].removesuffix("Mi")
        wanted = 1024 if megabytes == "1Gi" else int(megabytes)
        wait_until(lambda: memory_limit(server, box) == wanted * MIB, 20,
                   lambda: f"{memory_limit(server, box) / MIB} is {box.get()['spec']}\n{server.log()}")
    box.delete()
    assert server.leaks() == ""
