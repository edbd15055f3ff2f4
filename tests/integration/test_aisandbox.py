# SPDX-License-Identifier: Apache-2.0
"""/api/sandbox: containers, executions and errors in the shapes of docs/aisandbox.md."""

import datetime
import re

import pytest

from cella_server import wait_until

CATEGORIES = {"client", "container", "execution", "system"}


def create(server, **body):
    answer = server.request("POST", "/api/sandbox", body)
    assert answer.status == 201, answer
    return answer.json()


def delete(server, container):
    return server.request("DELETE", f"/api/sandbox/{container}")


def execute(server, container, command, files=None, **fields):
    body = {"containerId": container, "command": command, **fields}
    if files is not None:
        body["files"] = files
    return server.request("POST", "/api/sandbox/exec", body)


def result(server, container, command, files=None):
    answer = execute(server, container, command, files)
    assert answer.status == 200, answer
    return answer.json()


def refused(answer, status, code, *words):
    """It is an error in the envelope, with that code; gives its details."""
    assert answer.status == status, answer
    assert set(answer.json()) == {"error"}
    error = answer.json()["error"]
    assert set(error) == {"code", "message", "details"} and error["code"] == code, answer
    assert error["details"]["category"] in CATEGORIES
    for word in words:
        assert word in error["message"] + error["details"].get("cause", ""), answer
    return error["details"]


@pytest.fixture(scope="module")
def box(server):
    made = create(server, image="@ai-sandbox/python",
                  options={"timeout": 20000, "memoryLimit": "512m", "cpuLimit": "0.5"})
    yield made["containerId"]
    assert delete(server, made["containerId"]).status == 200


# --- containers ---


def when(text):
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", text)
    return datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%SZ")


def test_a_life_as_the_design_document_writes_it(server):
    made = create(server, image="@ai-sandbox/python",
                  options={"timeout": 30000, "memoryLimit": "512m", "cpuLimit": "0.5"})
    container = made["containerId"]
    assert re.fullmatch(r"container_[a-z0-9]{12}", container)
    assert set(made) == {"containerId", "status", "createdAt", "expiresAt"} and made["status"] == "created"
    assert when(made["expiresAt"]) - when(made["createdAt"]) == datetime.timedelta(minutes=30)

    done = result(server, container, ["python", "main.py"],
                  {"main.py": "print('hello world')", "data/input.txt": "sample data"})
    assert re.fullmatch(r"exec_[0-9a-f]{8}", done.pop("id"))
    assert isinstance(done.pop("duration"), int)
    assert done == {"status": "success", "stdout": "hello world", "stderr": ""}
    assert result(server, container, ["cat", "data/input.txt"])["stdout"] == "sample data"

    status = server.request("GET", f"/api/sandbox/{container}").json()
    usage = status.pop("resourceUsage")
    assert status == {**made, "status": "running"}
    assert re.fullmatch(r"\d+(\.\d+)?", usage["cpuUsage"])
    assert re.fullmatch(r"\d+(\.\d+)?[bkmg]", usage["memoryUsage"]) and usage["memoryUsage"] != "0b"

    gone = delete(server, container)
    assert gone.status == 200 and gone.json() == {"status": "deleted", "containerId": container}
    for path in ("", "/history"):
        refused(server.request("GET", f"/api/sandbox/{container}{path}"), 404, "SANDBOX_NOT_FOUND", container)
    assert refused(delete(server, container), 404, "SANDBOX_NOT_FOUND")["category"] == "container"
    refused(execute(server, container, "true"), 404, "SANDBOX_NOT_FOUND", container)


def test_limits_are_docker_s(server, box):
    name = box.removeprefix("container_")
    spec = server.request("GET", f"/v0/sandbox/{name}").json()["spec"]
    assert spec["resources"]["memory"] in ("512Mi", str(512 << 20)) and spec["resources"]["cpu"] == "500m"
    assert spec["network"]["mode"] == "none"


def test_every_option_has_a_default(server):
    answer = server.request("POST", "/api/sandbox", None)
    assert answer.status == 201, answer
    container = answer.json()["containerId"]
    assert result(server, container, "echo ok")["stdout"] == "ok"
    assert delete(server, container).status == 200


@pytest.mark.parametrize("image", ["node:18-alpine", "node", "python:3.12-slim", "@ai-sandbox/node"])
def test_images_that_clients_ask_for(server, image):
    assert delete(server, create(server, image=image)["containerId"]).status == 200


def test_any_name_of_the_workspace_is_a_container(server, shared_sandbox):
    by_name = server.request("GET", f"/api/sandbox/{shared_sandbox.name}").json()
    assert by_name["expiresAt"] is None and by_name["status"] == "running"
    done = result(server, shared_sandbox.name, "id -un; pwd")
    assert done["stdout"] == "user\n/workspace"
    assert result(server, by_name["containerId"], "true")["status"] == "success"


def test_a_sandbox_of_untrusted_code(server):
    box = server.create(trustLevel="untrusted")
    try:
        done = result(server, box.name, ["python3", "a/m.py"], {"a/m.py": "import os; print(os.getuid())"})
        assert (done["status"], done["stdout"]) == ("success", "1000"), done
        assert result(server, box.name, ["sudo", "-n", "true"])["error"]["code"] == "EXECUTION_FAILED"
        refused(execute(server, box.name, "id", {"a/m.py": "print('of a command that was refused')"}), 403,
                "SHELL_NOT_ALLOWED")
        assert result(server, box.name, ["python3", "a/m.py"])["stdout"] == "1000"
    finally:
        box.delete()


# --- executions ---


def test_everything_is_done_by_an_ordinary_user(server, box):
    done = result(server, box, "id -un; pwd; stat -c '%U %a' a a/b a/b/c.txt; echo more >> a/b/c.txt; rm -r a",
                  {"a/b/c.txt": "x\n"})
    assert done["stdout"].splitlines() == ["user", "/workspace", "user 755", "user 755", "user 644"]
    assert done["status"] == "success", done


def test_files_replace_those_of_before(server, box):
    result(server, box, "true", {"f.txt": "1", "run.sh": {"content": "#!/bin/sh\necho ran\n", "permissions": "0755"}})
    assert result(server, box, ["./run.sh"])["stdout"] == "ran"
    assert result(server, box, "cat f.txt", {"f.txt": "2"})["stdout"] == "2"


def test_there_is_no_network(server, box):
    assert result(server, box, "ls /sys/class/net")["stdout"] == "lo"


def test_one_final_newline_is_taken_off_each_stream(server, box):
    done = result(server, box, "printf 'a\\n\\n'; printf 'b\\n' >&2")
    assert (done["stdout"], done["stderr"]) == ("a\n", "b")


def test_output_that_is_no_text(server, box):
    done = result(server, box, "printf 'a\\377'")
    assert done["stdout"] == "a\ufffd" and done["stdoutBase64"] == "Yf8="


def test_much_output(server, box):
    done = result(server, box, "seq 1 60000; echo end")
    assert done["stdout"].startswith("1\n2\n") and done["stdout"].endswith("\n60000\nend")


@pytest.mark.parametrize("command,code,details", [
    (["sh", "-c", "echo out; echo err >&2; exit 3"], "EXECUTION_FAILED", {"exitCode": 3}),
    ("kill -9 $$", "EXECUTION_FAILED", {"exitCode": 137, "signal": 9}),
    (["no-such-program"], "EXECUTION_FAILED", {"exitCode": 127}),
])
def test_a_command_that_fails(server, box, command, code, details):
    done = result(server, box, command)
    error = done["error"]
    assert done["status"] == "error" and error["code"] == code and error["message"], done
    assert error["details"] == {"category": "execution", **details}
    assert re.fullmatch(r"exec_[0-9a-f]{8}", done["id"]) and "stdout" in done and "stderr" in done


def test_output_comes_with_a_failure(server, box):
    done = result(server, box, "echo out; echo err >&2; exit 1")
    assert (done["stdout"], done["stderr"]) == ("out", "err")


def test_time_is_up(server):
    container = create(server, options={"timeout": 3000})["containerId"]
    done = result(server, container, "echo begun; sleep 1000")
    assert done["status"] == "error" and done["stdout"] == "begun"
    assert done["error"]["code"] == "EXECUTION_TIMEOUT"
    assert done["error"]["details"] == {"category": "execution", "timeout": 3000}
    assert done["duration"] >= 3000
    assert result(server, container, "pgrep -x sleep || echo none")["stdout"] == "none"
    assert delete(server, container).status == 200


@pytest.mark.parametrize("shell", [False, True])
def test_memory_is_used_up(server, shell):
    container = create(server, options={"memoryLimit": "64m"})["containerId"]
    hog = {"hog.py": "print('begun', flush=True); x = b'x' * (1 << 30)"}
    done = result(server, container, "python3 hog.py || exit" if shell else ["python3", "hog.py"], hog)
    assert done["status"] == "error" and done["stdout"] == "begun", done
    assert done["error"]["code"] == "EXECUTION_OUT_OF_MEMORY", done
    assert done["error"]["details"]["category"] == "execution"
    assert result(server, container, "echo well")["stdout"] == "well"
    assert delete(server, container).status == 200


# --- errors ---


def test_unknown_image(server):
    details = refused(server.request("POST", "/api/sandbox", {"image": "no/such:image"}), 422,
                      "CONTAINER_CREATION_FAILED", "Failed to create container from image")
    assert details == {"category": "container", "cause": "Image not found: no/such:image"}


@pytest.mark.parametrize("body,code,word", [
    ({"image": 1}, "INVALID_ARGUMENT", "image"),
    ({"imgae": "x"}, "UNKNOWN_FIELD", "imgae"),
    ({"options": {"timeout": 0}}, "INVALID_ARGUMENT", "options.timeout"),
    ({"options": {"timeout": "30s"}}, "INVALID_ARGUMENT", "options.timeout"),
    ({"options": {"memoryLimit": "512Q"}}, "INVALID_QUANTITY", "options.memoryLimit"),
    ({"options": {"memoryLimit": "1m"}}, "INVALID_QUANTITY", "16m"),
    ({"options": {"cpuLimit": "half"}}, "INVALID_QUANTITY", "options.cpuLimit"),
    ({"options": {"cpuLimit": "0"}}, "INVALID_QUANTITY", "0.01"),
    ({"options": {"network": True}}, "UNKNOWN_FIELD", "network"),
])
def test_bad_create(server, body, code, word):
    assert refused(server.request("POST", "/api/sandbox", body), 400, code, word)["category"] == "client"


@pytest.mark.parametrize("body,code,word", [
    (None, "INVALID_ARGUMENT", "containerId"),
    ({"command": "true"}, "INVALID_ARGUMENT", "containerId"),
    ({"containerId": "BOX"}, "INVALID_ARGUMENT", "command"),
    ({"containerId": "BOX", "command": ""}, "INVALID_ARGUMENT", "command"),
    ({"containerId": "BOX", "command": [1]}, "INVALID_ARGUMENT", "command"),
    ({"containerId": "BOX", "command": []}, "INVALID_ARGUMENT", "command"),
    ({"containerId": "BOX", "command": "true", "files": {"../../etc/passwd": ""}}, "INVALID_PATH", "etc/passwd"),
    ({"containerId": "BOX", "command": "true", "files": {"/etc/passwd": ""}}, "INVALID_PATH", "etc/passwd"),
    ({"containerId": "BOX", "command": "true", "files": {"a": 1}}, "INVALID_ARGUMENT", "\"a\""),
    ({"containerId": "BOX", "command": "true", "files": {"a": "", "a/b": ""}}, "INVALID_ARGUMENT", "/a"),
    ({"containerId": "BOX", "command": "true", "env": {}}, "UNKNOWN_FIELD", "env"),
])
def test_bad_exec(server, box, body, code, word):
    if body and body.get("containerId") == "BOX":
        body = {**body, "containerId": box}
    refused(server.request("POST", "/api/sandbox/exec", body), 400, code, word)


def test_bad_json_unknown_paths_and_methods(server, box):
    refused(server.request("POST", "/api/sandbox", b"{"), 400, "INVALID_JSON")
    refused(server.request("GET", "/api/nothing"), 404, "ROUTE_NOT_FOUND")
    refused(server.request("PUT", f"/api/sandbox/{box}"), 405, "METHOD_NOT_ALLOWED")
    refused(server.request("POST", "/api/sandbox", {}, {"Authorization": None}), 401, "UNAUTHORIZED")


def test_a_container_that_does_not_run(server):
    container = create(server)["containerId"]
    name = container.removeprefix("container_")
    assert server.request("PUT", f"/v0/sandbox/{name}/stop").status == 202
    wait_until(lambda: server.request("GET", f"/api/sandbox/{container}").json()["status"] == "stopped", 30, "stopped")
    assert refused(execute(server, container, "true"), 409, "NOT_RUNNING")["category"] == "container"
    usage = server.request("GET", f"/api/sandbox/{container}").json()["resourceUsage"]
    assert usage == {"cpuUsage": "0", "memoryUsage": "0b"}
    assert delete(server, container).status == 200


# --- history ---


@pytest.fixture(scope="module")
def past(server):
    """A container with three executions, the last of which changed nothing."""
    container = create(server)["containerId"]
    ids = [result(server, container, "true", {"a.txt": "1\n", "sub/b.txt": "b\n"})["id"],
           result(server, container, "echo 2 > a.txt; printf '\\000' > bin; rm -r sub")["id"],
           result(server, container, "cat a.txt")["id"]]
    yield container, ids
    assert delete(server, container).status == 200


def ask(server, container, what, body=None, query=""):
    return server.request("POST" if body is not None else "GET", f"/api/sandbox/{container}/{what}{query}", body)


def test_history(server, past):
    container, ids = past
    entries = ask(server, container, "history").json()["history"]
    assert [entry["id"] for entry in entries] == [ids[1], ids[0], "unknown"]
    assert entries[0]["files"] == ["a.txt", "bin", "sub/b.txt"] and entries[1]["files"] == ["a.txt", "sub/b.txt"]
    page = ask(server, container, "history", query="?limit=1&offset=1").json()
    assert [entry["id"] for entry in page["history"]] == [ids[0]] and page["more"] is True
    refused(ask(server, container, "history", query="?limit=0"), 400, "INVALID_ARGUMENT", "limit")


def test_diff(server, past):
    container, ids = past
    diff = ask(server, container, "diff", {"fromExecId": ids[0], "toExecId": ids[2]}).json()["diff"]
    assert sorted(diff) == ["a.txt", "bin", "sub/b.txt"]
    assert "-1\n+2\n" in diff["a.txt"] and "Binary" in diff["bin"] and "deleted file" in diff["sub/b.txt"]
    alias = {"fromExecId": ids[0].replace("exec_", "python_run_"), "toExecId": ids[1]}
    assert ask(server, container, "diff", alias).json()["diff"] == diff
    assert ask(server, container, "diff", {"fromExecId": ids[1], "toExecId": ids[2]}).json() == {"diff": {}}
    refused(ask(server, container, "diff", {"fromExecId": "exec_00000000", "toExecId": ids[0]}), 404,
            "EXECUTION_NOT_FOUND", "exec_00000000")
    refused(ask(server, container, "diff", {"fromExecId": "--help", "toExecId": ids[0]}), 400, "INVALID_ARGUMENT")
    refused(ask(server, container, "diff", {"toExecId": ids[0]}), 400, "INVALID_ARGUMENT", "fromExecId")


def test_rollback_and_back_again(server, past):
    container, ids = past
    back = ask(server, container, "rollback", {"executionId": ids[0]})
    assert back.status == 200, back
    assert back.json()["files"] == ["a.txt", "bin", "sub/b.txt"] and back.json()["executionId"] == ids[0]
    assert result(server, container, "cat a.txt sub/b.txt; ls; stat -c %U a.txt sub")["stdout"] == \
        "1\nb\na.txt\nsub\nuser\nuser"
    again = ask(server, container, "rollback", {"executionId": ids[1]})
    assert again.status == 200, again
    assert result(server, container, "cat a.txt; ls")["stdout"] == "2\na.txt\nbin"
    newest = ask(server, container, "history").json()["history"][:2]
    assert [entry["id"] for entry in newest] == [again.json()["id"], back.json()["id"]]
    assert [entry["message"] for entry in newest] == [f"Rollback to {ids[1]}", f"Rollback to {ids[0]}"]
    refused(ask(server, container, "rollback", {}), 400, "INVALID_ARGUMENT", "executionId")
    refused(ask(server, container, "rollback", {"executionId": "exec_00000000"}), 404, "EXECUTION_NOT_FOUND")
