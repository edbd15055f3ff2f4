# SPDX-License-Identifier: Apache-2.0
"""One fact, one place: the compiled route table and the error table, against what is written about them.

The document is the one that the build made of api/openapi.yaml and put into the program. Others' APIs are theirs to
describe (cella_routes.FACADES); their pages in docs/ are held against the table here, too."""

import pathlib
import re

import pytest

import cella_routes
from api_contract import Contract, Schemas, Violation, load_document
from cella_server import Answer

REPO = pathlib.Path(__file__).resolve().parents[2]
METHODS = ("get", "put", "post", "patch", "delete", "head")


def read(path):
    return (REPO / path).read_text()


@pytest.fixture(scope="module")
def document():
    return load_document()


def routes():
    """(method, path) → route, of every row of our own."""
    found = {}
    for route in cella_routes.routes():
        for method in cella_routes.ANY if route.method == "ANY" else (route.method,):
            found.setdefault((method.lower(), route.path.replace("{path*}", "{path}")), route)
    return found


def described(document):
    """(method, path) → (operation, the path's item), of every operation in the document."""
    return {(method, path): (item[method], item)
            for path, item in document["paths"].items() for method in METHODS if method in item}


def error_codes():
    """code → HTTP status, from the one table."""
    return {code: int(status) for code, status in
            re.findall(r"X\((\w+), \d+, (\d+), \d+\)", read("src/base/error.h"))}


def categories():
    """code → category, of those whose category does not follow from their status."""
    return {code: category.lower() for code, category in
            re.findall(r"\{ERROR_(\w+), CATEGORY_(\w+)\}", read("src/base/error.c"))}


def test_the_document_is_of_its_version(document, server):
    assert document["openapi"].startswith("3.1.")
    assert document["info"]["version"] == server.request("GET", "/health").json()["version"]


def test_every_route_is_described_and_nothing_else(document):
    assert len(routes()) > 20
    assert set(described(document)) == set(routes())


def test_nothing_of_others_is_described(document):
    theirs = {route.path.replace("{path*}", "{path}") for route in cella_routes.all_routes()
              if route.dialect in cella_routes.FACADES}
    prefixes = ("/v0/sandboxes", "/v0/volumes", "/v0/drives", "/v0/images", "/v0/snapshots", "/v1", "/v2", "/v3", "/sandboxes",
                "/preview", "/files", "/templates", "/volumes", "/volumecontent", "/secrets", "/snapshots", "/{workspace}/sandboxes")
    assert theirs
    for path in document["paths"]:
        assert not any(path == prefix or path.startswith(prefix + "/") for prefix in prefixes), path


def test_parameters_of_paths_are_described(document):
    schemas = Schemas(document)
    for (method, path), (operation, item) in described(document).items():
        parameters = [schemas.follow(one) for one in item.get("parameters", []) + operation.get("parameters", [])]
        in_path = [one["name"] for one in parameters if one["in"] == "path"]
        assert sorted(in_path) == sorted(re.findall(r"\{(\w+)\}", path)), f"{method} {path}"
        assert all(one["required"] for one in parameters if one["in"] == "path"), f"{method} {path}"


def test_scopes_are_those_of_the_table(document):
    wrong = {}
    for key, (operation, _) in described(document).items():
        route, ways = routes()[key], operation.get("security", document["security"])
        schemes = {name for way in ways for name in way}
        scopes = {scope for way in ways for needed in way.values() for scope in needed}
        expected = set() if route.scope == "public" else {route.scope}
        if scopes != expected or (route.scope == "public") != (ways == []) or \
                ("query" in route.flags) != ("queryToken" in schemes):
            wrong[key] = (route.scope, sorted(route.flags), ways)
    assert wrong == {}


def test_operation_ids_are_unique(document):
    ids = [operation["operationId"] for operation, _ in described(document).values()]
    assert len(ids) == len(set(ids)) == len(routes())


def test_every_object_of_an_answer_says_what_is_in_it(document):
    """`type: object` alone would let every field pass."""
    schemas, vague = Schemas(document), []

    def look(schema, where, above=()):
        if not isinstance(schema, dict) or any(schema is one for one in above):
            return
        above = (*above, schema)
        is_object = "object" in ([schema["type"]] if isinstance(schema.get("type"), str) else schema.get("type", ()))
        if is_object and "properties" not in schema and "additionalProperties" not in schema:
            vague.append(where)
        for name, part in schema.get("properties", {}).items():
            look(part, f"{where}/{name}", above)
        for name in ("items", "additionalProperties"):
            look(schema.get(name), f"{where}/{name}", above)
        for part in (*schema.get("oneOf", ()), *schema.get("anyOf", ())):
            look(part, where, above)

    for (method, path), (operation, _) in described(document).items():
        for status, response in operation["responses"].items():
            for kind, content in schemas.follow(response).get("content", {}).items():
                if kind == "application/json":
                    assert "schema" in content, f"{method} {path} {status}"
                    look(schemas.closed(content["schema"]), f"{method} {path} {status}")
    assert vague == []


# --- answers: every test holds its own to the document (cella_fixtures); here, that this finds what it should ---


@pytest.mark.parametrize("status, body, complaint", [
    (200, b'{"status":"ok","version":"1"}', None),
    (200, b'{"status":"ok"}', "required"),
    (200, b'{"status":"well","version":"1"}', "status"),
    (200, b'{"status":"ok","version":1}', "version"),
    (200, b'{"status":"ok","version":"1","more":1}', "more"),
    (202, b'{"status":"ok","version":"1"}', "202"),
])
def test_answers_that_are_not_described_are_found(status, body, complaint):
    contract, answer = Contract(), Answer(status, {"Content-Type": "application/json"}, body)
    if complaint is None:
        contract.check("GET", "/health", {}, answer)
        return
    with pytest.raises(Violation, match=complaint):
        contract.check("GET", "/health", {}, answer)
    assert len(contract.violations) == 1


@pytest.mark.parametrize("path, name", [
    ("/v0/sandbox/a", "GET /v0/sandbox/{name}"),
    ("/v0/groups/g/sandbox/a?x=1", "GET /v0/sandbox/{name}"),
    ("/v0/sandbox/a/filesystem/tree/x/y", "GET /v0/sandbox/{name}/filesystem/tree/{path*}"),
    ("/v0/sandbox/a/filesystem", "GET /v0/sandbox/{name}/filesystem/{path*}"),
    ("/w/sandbox/a/process/1/logs/", "GET /{workspace}/sandbox/{name}/process/{pid}/logs"),
    ("/v0/sandbox/a/port/80/x", None), ("/v1/sandboxes", None), ("/nowhere", None),
])
def test_an_answer_is_held_to_the_row_that_served_it(path, name):
    operation = Contract().operation("GET", path)
    assert (operation and operation.name) == name


# --- what is served ---


def test_the_document_is_served_to_everybody(document, server):
    answer = server.request("GET", "/openapi.json", headers={"Authorization": None})
    assert answer.status == 200 and answer.headers["Content-Type"] == "application/json"
    assert answer.json() == document


def test_the_page_has_nothing_from_elsewhere(server):
    page = server.request("GET", "/docs", headers={"Authorization": None})
    assert page.status == 200 and page.headers["Content-Type"].startswith("text/html")
    policy = page.headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    parts = re.findall(r'(?:src|href)="([^"#]+)"', page.text)
    assert {"/docs/docs.js", "/docs/docs.css", "/openapi.json"} == set(parts)
    for part in parts:
        answer = server.request("GET", part, headers={"Authorization": None})
        assert answer.status == 200 and answer.headers["X-Content-Type-Options"] == "nosniff", part
        assert part == "/openapi.json" or not re.search(r"https?://|innerHTML|\beval\b", answer.text), part
    assert "<script>" not in page.text and " style=" not in page.text and " on" + "click" not in page.text


def test_the_page_has_no_other_parts(server):
    for name in ("docs.html", "..", "%2e%2e%2fopenapi.json", "x"):
        assert server.request("GET", f"/docs/{name}").error() in ("ROUTE_NOT_FOUND", "INVALID_PATH"), name


# --- errors, and others' pages ---


def test_every_error_code_is_described(document):
    assert set(document["components"]["schemas"]["ErrorCode"]["enum"]) == set(error_codes())


def test_every_error_code_is_explained_with_its_status():
    explained = re.findall(r"^\| ([A-Z_]+) \| (\d+) \| (\w+) \| (.*?) ?\|$", read("docs/errors.md"), re.M)
    assert len(explained) == len({row[0] for row in explained}), "a code is there twice"
    assert {code: int(status) for code, status, _, _ in explained} == error_codes()
    assert {code: category for code, _, category, _ in explained} == {
        code: categories().get(code, "client" if status < 500 else "system")
        for code, status in error_codes().items()}


def test_every_route_of_api_sandbox_is_in_its_page():
    listed = set(re.findall(r"^\| (GET|PUT|POST|PATCH|DELETE) (/[^\s|]+)", read("docs/aisandbox.md"), re.M))
    assert listed == {(route.method, route.path) for route in cella_routes.all_routes()
                      if route.dialect == "aisandbox"}


def test_every_route_of_blaxels_is_in_its_page():
    page = read("docs/blaxel.md")
    prefix = "/{workspace}/sandboxes/{name}"
    listed = set(re.findall(r"\b(GET|PUT|POST|PATCH|DELETE|ANY) (/[^\s|)]+)", page))
    known = {(route.method, route.path.replace("{path*}", "{path}").removeprefix(prefix))
             for route in cella_routes.all_routes() if route.dialect == "blaxel"}
    known = {(method, path) for method, path in known if path}
    assert known - listed == set()
    assert {row for row in listed if "/oauth/" not in row[1]} - known == set()


def test_every_route_of_e2bs_is_in_its_page():
    listed = set(re.findall(r"\b(GET|PUT|POST|PATCH|DELETE) (/[^\s|),`]+)", read("docs/e2b.md")))
    known = {(route.method, route.path) for route in cella_routes.all_routes()
             if route.dialect.startswith("e2b")}
    assert known - listed == set()
    assert listed - known == set()


def test_every_route_of_scaleboxs_is_in_its_page():
    listed = set(re.findall(r"^\| (GET|PUT|POST|PATCH|DELETE) (/[^\s|),`]+)", read("docs/scalebox.md"), re.M))
    known = {(route.method, route.path.replace("{path*}", "{path}")) for route in cella_routes.all_routes()
             if route.dialect.startswith("scalebox")}
    assert known == listed
