# SPDX-License-Identifier: Apache-2.0
"""One fact, one place: the route table and the error table, against what is written about them.

openapi.yaml is read as text, so that no package is needed for it, and indented as this expects.
"""

import pathlib
import re

import cella_routes

REPO = pathlib.Path(__file__).resolve().parents[2]


def read(path):
    return (REPO / path).read_text()


ANY = ("get", "put", "post", "patch", "delete")  # those that a row for every method is described by


def routes():
    """(method, path) of every row of the table."""
    found = set()
    for route in cella_routes.routes():
        methods = ANY if route.method == "ANY" else (route.method.lower(),)
        found |= {(method, route.path.replace("{path*}", "{path}")) for method in methods}
    return found


def described():
    """(method, path) of every operation in openapi.yaml."""
    found, path = set(), None
    for line in read("api/openapi.yaml").splitlines():
        if match := re.match(r"  (/\S*):$", line):
            path = match.group(1)
        elif match := re.match(r"    (get|put|post|delete|patch|head):", line):
            found.add((match.group(1), path))
    return found


def error_codes():
    """code → HTTP status, from the one table."""
    return {code: int(status) for code, status in
            re.findall(r"X\((\w+), (\d+), \d+\)", read("src/base/error.h"))}


def categories():
    """code → category, of those whose category does not follow from their status."""
    return {code: category.lower() for code, category in
            re.findall(r"\{ERROR_(\w+), CATEGORY_(\w+)\}", read("src/base/error.c"))}


def test_every_route_is_described_and_nothing_else():
    assert len(routes()) > 20
    assert described() == routes()


def test_operation_ids_are_unique():
    ids = re.findall(r"operationId: (\w+)", read("api/openapi.yaml"))
    assert len(ids) == len(set(ids)) == len(routes())


def test_every_error_code_is_described():
    block = read("api/openapi.yaml").split("    ErrorCode:\n")[1].split("\n\n")[0]
    assert set(re.findall(r"- ([A-Z_]+)", block)) == set(error_codes())


def test_every_error_code_is_explained_with_its_status():
    explained = re.findall(r"^\| ([A-Z_]+) \| (\d+) \| (\w+) \| (.*?) ?\|$", read("docs/errors.md"), re.M)
    assert len(explained) == len({row[0] for row in explained}), "a code is there twice"
    assert {code: int(status) for code, status, _, _ in explained} == error_codes()
    assert {code: category for code, _, category, _ in explained} == {
        code: categories().get(code, "client" if status < 500 else "system")
        for code, status in error_codes().items()}


def test_every_reference_leads_somewhere():
    text = read("api/openapi.yaml")
    for kind, name in set(re.findall(r"#/components/(\w+)/(\w+)", text)):
        section = text.split(f"\n  {kind}:\n")[1]
        section = re.split(r"\n  \w+:\n", section)[0]
        assert re.search(rf"^    {name}:", section, re.M), f"{kind}/{name}"


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
