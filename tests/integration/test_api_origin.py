# SPDX-License-Identifier: Apache-2.0
"""Web pages and the API: OPTIONS, CORS, and who may ask a server that has no keys. HEAD, too."""

import subprocess

import pytest

PAGE = "https://app.example"
ASK = {"Origin": PAGE, "Access-Control-Request-Method": "PUT",
       "Access-Control-Request-Headers": "authorization, content-type", "Authorization": None}


def cors(answer):
    return {name.lower(): value for name, value in answer.headers.items()
            if name.lower().startswith("access-control-")}


@pytest.mark.parametrize("path, methods", [
    ("/v0/sandbox/BOX/filesystem/tmp/x", {"GET", "HEAD", "PUT", "DELETE"}),
    ("/default/sandbox/BOX/filesystem/tmp/x", {"GET", "HEAD", "PUT", "DELETE"}),
    ("/v0/sandbox/BOX/process", {"GET", "HEAD", "POST"}),
    ("/v0/sandbox/BOX/port/3000/a", {"GET", "HEAD", "PUT", "POST", "PATCH", "DELETE", "OPTIONS"}),
    ("/v0/sandbox", {"GET", "HEAD", "POST"}),
])
def test_preflight_needs_no_key(server, shared_sandbox, path, methods):
    answer = server.request("OPTIONS", path.replace("BOX", shared_sandbox.name), None, ASK)
    assert (answer.status, answer.body) == (204, b"")
    fields = cors(answer)
    assert fields["access-control-allow-origin"] == "*"
    assert methods <= set(fields["access-control-allow-methods"].split(", "))
    assert fields["access-control-allow-headers"] == "authorization, content-type"
    assert int(fields["access-control-max-age"]) > 0
    assert "access-control-allow-credentials" not in fields


def test_plain_options(server, shared_sandbox):
    answer = server.request("OPTIONS", f"/v0/sandbox/{shared_sandbox.name}/process", None,
                            {"Authorization": None})
    assert answer.status == 204 and "POST" in answer.headers["Allow"]
    assert server.request("OPTIONS", "/no/such/path").status == 404
    answer = server.request("OPTIONS", f"/v0/sandbox/{shared_sandbox.name}/port/3000/x", None,
                            {"Authorization": None})
    assert answer.status == 401  # for the program, and that takes a key


def test_answers_can_be_read_by_pages(server, shared_sandbox):
    for path, status, headers in [("/v0/sandbox", 200, {}), ("/v0/sandbox/nobody", 404, {}),
                                  ("/v0/sandbox", 401, {"Authorization": None}), ("/nowhere", 404, {}),
                                  (f"/v0/sandbox/{shared_sandbox.name}/port/1/x", 502, {})]:
        answer = server.request("GET", path, None, {"Origin": PAGE, **headers})
        assert answer.status == status
        assert cors(answer)["access-control-allow-origin"] == "*", path


def test_head_on_get_routes(server, shared_sandbox):
    for path in ("/health", "/v0/sandbox", f"/v0/sandbox/{shared_sandbox.name}",
                 f"/v0/sandbox/{shared_sandbox.name}/process"):
        get, head = server.request("GET", path), server.request("HEAD", path)
        assert (head.status, head.body) == (200, b"")
        assert head.headers["Content-Type"] == get.headers["Content-Type"]
        assert int(head.headers["Content-Length"]) > 0
    assert server.request("HEAD", "/v0/sandbox/nobody").status == 404


def test_named_origins(server_factory):
    server = server_factory("--cors-origin", f"https://other.example, {PAGE}")
    answer = server.request("GET", "/v0/sandbox", None, {"Origin": PAGE})
    assert cors(answer)["access-control-allow-origin"] == PAGE and answer.headers["Vary"] == "Origin"
    for origin in ("https://evil.example", "https://app.example.evil.example", "null"):
        answer = server.request("GET", "/v0/sandbox", None, {"Origin": origin})
        assert not cors(answer) and answer.headers["Vary"] == "Origin"


def test_without_keys_pages_stay_out(server_factory):
    server = server_factory("--no-auth")
    own = server.url.removeprefix("http://")
    port = own.split(":")[1]

    def ask(**headers):
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        return server.request("POST", "/v0/sandbox", {}, {"Authorization": None, **given})

    for headers in ({"Origin": PAGE}, {"Origin": "null"}, {"Origin": f"http://evil.example:{port}"},
                    {"Host": f"evil.example:{port}", "Origin": f"http://evil.example:{port}"},
                    {"Host": f"evil.example:{port}"}, {"Host": f"127.0.0.1.evil.example:{port}"}):
        answer = ask(**headers)
        assert (answer.status, answer.error()) == (403, "FORBIDDEN"), headers
        assert not cors(answer)
    assert server.request("GET", "/v0/sandbox").json()["total"] == 0
    for headers in ({}, {"Origin": f"http://{own}"}, {"Host": f"localhost:{port}"},
                    {"Host": f"localhost:{port}", "Origin": f"http://localhost:{port}"}):
        answer = server.request("GET", "/v0/sandbox", None, {"Authorization": None, **headers})
        assert answer.status == 200 and not cors(answer), headers


def test_no_keys_and_every_page_is_refused(server, tmp_path):
    done = subprocess.run([server.bin / "cella", "server", "--data", tmp_path / "none", "--no-auth",
                           "--cors-origin", "*"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 2 and "--cors-origin" in done.stderr, done
    assert not (tmp_path / "none").exists()
