# SPDX-License-Identifier: Apache-2.0
"""The control plane: /v0/sandbox and what becomes of a sandbox."""

import re
import urllib.parse
import uuid

from cella_server import wait_until

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
DNS_LABEL = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")


def unique(prefix="t"):
    return f"{prefix}-{uuid.uuid4().hex[:12]}"


def events_of(sandbox):
    return [(event["type"], event["status"]) for event in sandbox.get()["events"]]


# --- who may call ---


def test_health_needs_no_key(server):
    answer = server.request("GET", "/health", headers={"Authorization": None})
    assert answer.status == 200
    assert answer.json()["status"] == "ok"
    assert re.fullmatch(r"\d+\.\d+\.\d+\S*", answer.json()["version"])
    assert answer.headers["Content-Type"].startswith("application/json")


def test_everything_else_needs_the_key(server):
    for path in ("/v0/sandbox", "/v0/sandbox/x", "/v0/sandbox/x/process",
                 "/default/sandbox/x/health", "/nowhere/sandbox/x/health"):
        for given in (None, "Bearer wrong", f"Basic {server.key}", server.key, "Bearer ",
                      f"Bearer {server.key}x"):
            answer = server.request("GET", path, headers={"Authorization": given})
            assert (answer.status, answer.error()) == (401, "UNAUTHORIZED"), (path, given)
            assert answer.headers["WWW-Authenticate"].startswith("Bearer")


def test_the_scheme_has_no_case(server):
    answer = server.request("GET", "/v0/sandbox", headers={"Authorization": f"bearer {server.key}"})
    assert answer.status == 200


# --- create and get ---


def test_create_answers_with_the_whole_sandbox(server):
    name = unique()
    body = {"metadata": {"name": name},
            "spec": {"image": "host", "resources": {"cpu": "500m", "memory": "256Mi", "disk": "1Gi"},
                     "env_vars": {"MY_VAR": "my value"}, "enabled": True}}
    answer = server.request("POST", "/v0/sandbox", body)
    assert answer.status == 202, answer
    made = answer.json()
    try:
        assert set(made) == {"metadata", "spec", "status", "events", "access"}
        metadata = made["metadata"]
        assert set(metadata) == {"name", "id", "revision", "createdAt", "updatedAt", "createdBy",
                                 "updatedBy", "workspace"}
        assert (metadata["name"], metadata["workspace"]) == (name, "default")
        assert RFC3339.fullmatch(metadata["createdAt"]) and RFC3339.fullmatch(metadata["updatedAt"])
        assert made["spec"].pop("trustLevel") == "standard"
        assert made["spec"].pop("security")["allow_shell"] is True
        assert made["spec"].pop("history") == {"enabled": True, "maxFileSize": "10Mi", "ignore": ["@default"]}
        assert made["spec"] == {"enabled": True, "image": "host", "restart": "on-use",
                                "resources": {"cpu": "500m", "memory": "256Mi", "disk": "1Gi"},
                                "env_vars": {"MY_VAR": "my value"}, "network": {"mode": "none"}}
        assert made["status"] == "creating"
        event = made["events"][0]
        assert set(event) == {"type", "status", "message", "time", "revision"}
        assert (event["type"], event["status"]) == ("CREATE", "SUCCESS")
        assert event["message"] == "Sandbox created successfully"
        assert RFC3339.fullmatch(event["time"]) and re.fullmatch(r"rev-\d+", event["revision"])
        assert made["access"] == {
            "api_endpoint": f"{server.url}/default/sandbox/{name}",
            "mcp_endpoint": f"{server.url}/default/function/{name}"}
    finally:
        server.sandbox(name).wait_status("running", "failed").delete()


def test_access_follows_the_host_field(server, shared_sandbox):
    answer = server.request("GET", shared_sandbox.base, headers={"Host": "boxes.example:8080"})
    assert answer.json()["access"]["api_endpoint"] == \
        f"http://boxes.example:8080/default/sandbox/{shared_sandbox.name}"


def test_access_follows_the_public_url_where_one_is_set(server_factory):
    server = server_factory("--public-url", "https://boxes.example/cella/", "--no-auth")
    answer = server.request("POST", "/v0/sandbox", {"spec": {"enabled": False}},
                            {"Authorization": None})  # --no-auth: everybody may
    assert answer.status == 202, answer
    made = answer.json()
    assert made["metadata"]["createdBy"] == "anonymous"
    assert made["access"] == {
        "api_endpoint": f"https://boxes.example/cella/default/sandbox/{made['metadata']['name']}",
        "mcp_endpoint": f"https://boxes.example/cella/default/function/{made['metadata']['name']}"}
    server.sandbox(made["metadata"]["name"]).delete()


def test_created_becomes_running(server, sandbox):
    got = sandbox.get()
    assert got["status"] == "running"
    assert events_of(sandbox) == [("CREATE", "SUCCESS"), ("START", "SUCCESS")]
    revisions = [int(event["revision"].removeprefix("rev-")) for event in got["events"]]
    assert revisions == sorted(set(revisions))


def test_an_empty_request_is_enough(server):
    for body in (None, {}, {"metadata": {}, "spec": {}}):
        answer = server.request("POST", "/v0/sandbox", body)
        assert answer.status == 202, answer
        made = answer.json()
        assert DNS_LABEL.fullmatch(made["metadata"]["name"])
        assert made["spec"]["image"] == "host"
        assert all(made["spec"]["resources"][key] for key in ("cpu", "memory", "disk"))
        server.sandbox(made["metadata"]["name"]).wait_status("running").delete()


def test_cpu_as_a_number(server):
    made = server.create(resources={"cpu": 0.5, "memory": 268435456}, enabled=False)
    assert made.get()["spec"]["resources"]["cpu"] == "0.5"
    assert made.get()["spec"]["resources"]["memory"] == "268435456"
    made.delete()


def test_an_answer_can_be_sent_back(server, shared_sandbox):
    copy = shared_sandbox.get()
    copy["metadata"]["name"] = unique("copy")
    answer = server.request("POST", "/v0/sandbox", copy)
    assert answer.status == 202, answer
    assert answer.json()["spec"] == copy["spec"]
    assert answer.json()["metadata"]["id"] != copy["metadata"]["id"]
    server.sandbox(copy["metadata"]["name"]).wait_status("running").delete()


def test_names_are_unique(server, shared_sandbox):
    answer = server.request("POST", "/v0/sandbox", {"metadata": {"name": shared_sandbox.name}})
    assert (answer.status, answer.error()) == (409, "ALREADY_EXISTS")
    assert shared_sandbox.name in answer.json()["error"]["message"]


def test_a_name_is_free_again_after_delete(server):
    name = unique()
    first = server.create(name)
    first_id = first.get()["metadata"]["id"]
    first.write("/workspace/left", "x")
    assert server.request("DELETE", first.base).status == 202
    second = server.create(name)  # at once: it waits for the old one to go
    assert second.get()["metadata"]["id"] != first_id
    assert second.exec("ls /workspace").stdout == ""
    second.delete()


def test_the_id_works_as_a_name(server, shared_sandbox):
    by_id = server.sandbox(shared_sandbox.get()["metadata"]["id"])
    assert by_id.get()["metadata"]["name"] == shared_sandbox.name
    assert by_id.run("echo hi") == "hi"


def test_head_is_get_without_the_body(server, shared_sandbox):
    for path in ("/health", "/v0/sandbox", shared_sandbox.base):
        answer = server.request("HEAD", path)
        assert (answer.status, answer.body) == (200, b"")
        assert int(answer.headers["Content-Length"]) > 0


def test_env_vars_reach_commands(server):
    made = server.create(env_vars={"GREETING": "hello wörld", "EMPTY": ""})
    assert made.run('echo "$GREETING|${EMPTY-unset}|"') == "hello wörld||"
    assert made.run('echo "$GREETING"', env={"GREETING": "bye"}) == "bye"
    made.delete()


# --- start and stop ---


def test_not_enabled_stays_stopped_until_it_is_started(server):
    made = server.create(enabled=False)
    got = made.get()
    assert (got["status"], got["spec"]["enabled"]) == ("stopped", False)
    assert events_of(made) == [("CREATE", "SUCCESS")]
    made.start()
    assert made.run("echo up") == "up"
    made.delete()


def test_stop_keeps_files_and_ends_processes(server, sandbox):
    sandbox.write("/workspace/kept", "still here")
    sandbox.write("/home/user/kept", "here too")
    sandbox.spawn("sleep 1000")
    before = sandbox.init_start_time()

    answer = sandbox.request("PUT", "/stop")
    assert answer.status == 202
    assert answer.json() == {"metadata": {"name": sandbox.name, "workspace": "default"},
                             "status": "stopping", "message": "Sandbox is stopping"}
    sandbox.wait_status("stopped")

    answer = sandbox.request("PUT", "/start")
    assert answer.status == 202
    assert answer.json() == {"metadata": {"name": sandbox.name, "workspace": "default"},
                             "status": "starting", "message": "Sandbox is starting"}
    sandbox.wait_status("running")

    assert sandbox.init_start_time() != before
    assert sandbox.read("/workspace/kept") == b"still here"
    assert sandbox.read("/home/user/kept") == b"here too"
    running = [p for p in sandbox.request("GET", "/process").json() if p["status"] == "running"]
    assert running == []
    assert events_of(sandbox)[-2:] == [("STOP", "SUCCESS"), ("START", "SUCCESS")]


def test_post_works_for_start_and_stop(server, sandbox):
    assert sandbox.request("POST", "/stop").status == 202
    sandbox.wait_status("stopped")
    assert sandbox.request("POST", "/start").status == 202
    sandbox.wait_status("running")


def test_calls_wait_for_a_sandbox_that_is_on_its_way(server):
    made = server.create(wait=False)
    assert made.run("echo first") == "first"
    made.stop()
    assert made.request("PUT", "/start").status == 202
    assert made.run("echo again") == "again"
    made.delete()


# --- delete ---


def test_delete(server):
    made = server.create()
    answer = server.request("DELETE", made.base)
    assert answer.status == 202
    assert answer.json() == {"metadata": {"name": made.name, "workspace": "default"},
                             "status": "deleting", "message": "Sandbox is being deleted"}
    made.wait_status("gone")
    assert made.name not in [box["metadata"]["name"] for box in server.list()]


def test_delete_of_a_stopped_one(server):
    made = server.create(enabled=False)
    made.delete()


def test_delete_while_it_is_being_made(server):
    made = server.create(wait=False)
    made.delete()


# --- list ---


def page(server, **query):
    answer = server.request("GET", "/v0/sandbox?" + urllib.parse.urlencode(query))
    assert answer.status == 200, answer
    return answer.json()


def test_list_pages(server):
    made = [server.create(enabled=False) for _ in range(5)]
    try:
        whole = page(server, limit=1000)
        assert whole["limit"] == 1000 and whole["offset"] == 0
        names = [box["metadata"]["name"] for box in whole["sandboxes"]]
        assert whole["total"] == len(names)
        assert names[-5:] == [box.name for box in made]  # oldest first

        walked = []
        while len(walked) < whole["total"]:
            part = page(server, limit=2, offset=len(walked))
            assert (part["total"], part["limit"], part["offset"]) == (len(names), 2, len(walked))
            assert 1 <= len(part["sandboxes"]) <= 2
            walked += [box["metadata"]["name"] for box in part["sandboxes"]]
        assert walked == names

        beyond = page(server, offset=len(names) + 3)
        assert (beyond["sandboxes"], beyond["total"]) == ([], len(names))
        assert (beyond["limit"], beyond["offset"]) == (20, len(names) + 3)
    finally:
        for box in made:
            box.delete()


def test_list_by_status(server, shared_sandbox):
    stopped = server.create(enabled=False)
    try:
        for status, inside, outside in (("stopped", stopped, shared_sandbox),
                                        ("running", shared_sandbox, stopped)):
            found = page(server, status=status, limit=1000)
            assert {box["status"] for box in found["sandboxes"]} == {status}
            names = [box["metadata"]["name"] for box in found["sandboxes"]]
            assert inside.name in names and outside.name not in names
            assert found["total"] == len(names)
    finally:
        stopped.delete()


def test_list_items_have_the_seeds_shape(server, shared_sandbox):
    item = next(box for box in page(server, limit=1000)["sandboxes"]
                if box["metadata"]["name"] == shared_sandbox.name)
    assert set(item) == {"metadata", "spec", "status", "events"}


def test_unknown_query_parameters_are_ignored(server):
    assert page(server, sort="name", limit=1)["limit"] == 1


# --- workspaces and health ---


def test_the_api_endpoint_works(server, shared_sandbox):
    endpoint = shared_sandbox.get()["access"]["api_endpoint"]
    path = urllib.parse.urlsplit(endpoint).path
    for base in (path, path.replace("/default/", "/default-workspace/"), shared_sandbox.base):
        answer = server.request("GET", base + "/health")
        assert (answer.status, answer.json()) == (200, {"status": "ok"})
        answer = server.request("POST", base + "/process",
                                {"command": "echo $HOSTNAME", "waitForCompletion": True})
        assert answer.status == 200, answer


def test_health_of_a_stopped_sandbox(server):
    made = server.create(enabled=False)
    answer = made.request("GET", "/health")
    assert (answer.status, answer.error()) == (409, "NOT_RUNNING")
    made.delete()


def test_two_starts_at_once(server):
    """Only one of two concurrent wishes is accepted; the sandbox runs either way."""
    made = server.create(enabled=False)
    statuses = sorted(made.request("PUT", "/start").status for _ in range(2))
    assert statuses == [202, 409]
    made.wait_status("running")
    made.delete()


def test_events_stay_after_stop_and_start(server, sandbox):
    for _ in range(2):
        sandbox.stop()
        sandbox.start()
    wait_until(lambda: len(events_of(sandbox)) == 6, 5, lambda: events_of(sandbox))
    assert [kind for kind, _ in events_of(sandbox)] == \
        ["CREATE", "START", "STOP", "START", "STOP", "START"]


def ask_at_once(server, name, *verbs):
    """All requests are on their way before the first answer is read; gives the statuses of the answers."""
    connections = [server.connection() for _ in verbs]
    for connection in connections:
        connection.connect()
    for connection, verb in zip(connections, verbs):
        connection.request("PUT", f"/v0/sandbox/{name}/{verb}", headers={"Authorization": f"Bearer {server.key}"})
    answers = [connection.getresponse().status for connection in connections]
    for connection in connections:
        connection.close()
    return answers


def test_a_wish_that_overtakes_the_one_before(server, sandbox):
    """A stop and a start, and the other way around, of which neither had begun when the other came: nothing stays
    in between, and what was promised happened."""
    for _ in range(10):
        sandbox.wait_status("running")
        sandbox.write("/tmp/here", "")
        old = sandbox.spawn("exec sleep 1000")
        first, second = ask_at_once(server, sandbox.name, "stop", "start")
        assert first == 202 and second in (202, 409)
        if second == 202:
            sandbox.wait_status("running")
            assert sandbox.request("GET", f"/process/{old}").status == 404
            assert sandbox.read("/tmp/here") == b""
            assert sandbox.request("PUT", "/stop").status == 202
        sandbox.wait_status("stopped")
        first, second = ask_at_once(server, sandbox.name, "start", "stop")
        assert first == 202 and second in (202, 409)
        if second == 202:
            sandbox.wait_status("stopped")
            assert sandbox.request("PUT", "/start").status == 202
