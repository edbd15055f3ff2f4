# SPDX-License-Identifier: Apache-2.0
"""Holds real answers against api/openapi.yaml: every JSON answer that a test gets from a route of the API's own
has to be one that the document describes, with that status, that type, and no field more.

The document is the one that the build has embedded in the server. Its schemas are open, as they should be for
clients, which have to live with fields that come later; here they are closed, so that a field that nobody has
written down is found by the first test that sees it."""

import hashlib
import json
import re

import jsonschema

import cella_routes
from cella_server import bin_dir

DOCUMENT = "src/api/openapi.json"  # below the build folder

# Requests that are meant for somebody else than their path says: a sandbox's name in the host or in a field.
ELSEWHERE = {"host", "e2b-sandbox-id", "e2b-sandbox-port", "x-access-token"}

_FORMATS = jsonschema.FormatChecker(formats=())
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)")


@_FORMATS.checks("date-time")
def _is_time(value):
    return not isinstance(value, str) or _TIME.fullmatch(value) is not None


class Violation(AssertionError):
    """An answer that the document does not know."""


def load_document():
    return json.loads((bin_dir() / DOCUMENT).read_text(encoding="utf-8"))


class Schemas:
    """Schemas with references replaced by what they lead to, and closed."""

    def __init__(self, document):
        self.document = document
        self.done = {}

    def follow(self, node):
        while isinstance(node, dict) and "$ref" in node:
            at = self.document
            for step in node["$ref"].removeprefix("#/").split("/"):
                at = at[step]
            node = at
        return node

    def closed(self, schema):
        """The one for answers; the same object for the same reference, so that a recursive schema ends."""
        schema = self.follow(schema)
        if not isinstance(schema, dict):
            return schema
        if id(schema) not in self.done:
            made = self.done[id(schema)] = {}
            made.update(self._close(self._merge(schema)))
        return self.done[id(schema)]

    def _merge(self, schema):
        """allOf of objects as one object: its parts could not be closed one by one."""
        parts = [self._merge(self.follow(part)) for part in schema.get("allOf", ())]
        if not parts:
            return schema
        rest = {key: value for key, value in schema.items() if key != "allOf"}
        merged = {}
        for part in [*parts, rest]:
            properties = {**merged.get("properties", {}), **part.get("properties", {})}
            required = [*merged.get("required", []), *part.get("required", [])]
            merged.update(part)
            merged.update({"properties": properties, "required": required})
        return merged

    def _close(self, schema):
        made = dict(schema)
        for key in ("items", "additionalProperties", "not"):
            if isinstance(made.get(key), dict):
                made[key] = self.closed(made[key])
        for key in ("oneOf", "anyOf", "prefixItems"):
            if key in made:
                made[key] = [self.closed(part) for part in made[key]]
        if "properties" in made:
            made["properties"] = {name: self.closed(part) for name, part in made["properties"].items()}
            made.setdefault("additionalProperties", False)
        return made


class Operation:
    """One method of one path: what it may answer."""

    def __init__(self, name, described, schemas):
        self.name = name
        self.described = described
        self.schemas = schemas
        self.validators = {}

    def response(self, status):
        """What is said of a status; `default` is for errors alone."""
        responses = self.described["responses"]
        found = responses.get(str(status)) or (responses.get("default") if status >= 400 else None)
        return self.schemas.follow(found)

    def validator(self, status, kind, content):
        key = (status, kind)
        if key not in self.validators:
            schema = self.schemas.closed(content.get("schema", {}))
            self.validators[key] = jsonschema.Draft202012Validator(schema, format_checker=_FORMATS)
        return self.validators[key]

    def check(self, status, kind, body):
        response = self.response(status)
        if response is None:
            raise Violation(f"{self.name} answered {status}, which the document does not know; "
                            f"known: {', '.join(self.described['responses'])}; it was {body[:500]!r}")
        if not body:
            return
        content = response.get("content", {})
        known = next((content[one] for one in (kind, kind.split("/")[0] + "/*", "*/*") if one in content), None)
        if known is None:
            raise Violation(f"{self.name} answered {status} as {kind}; the document has "
                            f"{', '.join(content) or 'no body'}; it was {body[:500]!r}")
        if kind != "application/json":
            return
        wrong = jsonschema.exceptions.best_match(self.validator(status, kind, known).iter_errors(json.loads(body)))
        if wrong is not None:
            where = "/".join(map(str, wrong.absolute_path)) or "the answer"
            raise Violation(f"{self.name} answered {status}, and it is not what the document says: "
                            f"{where}: {wrong.message[:1500]}")


class Contract:
    """check() for each answer; violations that somebody caught are in .violations, too."""

    def __init__(self, document=None, routes=None):
        self.schemas = Schemas(document or load_document())
        self.violations = []
        self.seen = set()
        self.rows = self._rows(routes or cella_routes.routes())

    def _rows(self, routes):
        """method → (one expression for all its rows in their order, the operation of each)."""
        rows = {}
        # A first segment that is a name of ours is no workspace, whichever table it is in.
        for route in sorted(routes, key=lambda row: row.path.startswith("/{workspace}")):
            described = self.schemas.document["paths"].get(route.path.replace("{path*}", "{path}"), {})
            methods = cella_routes.ANY if route.method == "ANY" else (route.method,)
            for method in methods:
                operation = described.get(method.lower())
                if "forwards" in route.flags or operation is None:
                    operation = None  # answers of somebody inside; what is not described has its own test
                else:
                    operation = Operation(f"{method} {route.path}", operation, self.schemas)
                rows.setdefault(method, []).append((_expression(route.path), operation))
        return {method: (re.compile("|".join(f"({text})" for text, _ in found)), [row for _, row in found])
                for method, found in rows.items()}

    def operation(self, method, target):
        """That of a request; None for what is not ours to describe."""
        path = target.split("?")[0]
        path = re.sub(r"^/v0/groups/([^/]+)/sandbox/([^/]+)", r"/v0/sandbox/\1%2F\2", path)
        expression, operations = self.rows.get(method, (None, ()))
        found = expression.fullmatch(path) if expression else None
        return operations[found.lastindex - 1] if found else None

    def check(self, method, target, headers, answer):
        """An answer (cella_server.Answer) to a request. Violation when the document does not know it."""
        if ELSEWHERE.intersection(name.lower() for name in headers):
            return
        operation = self.operation(method, target)
        if operation is None:
            return
        kind = (answer.headers.get("Content-Type") or "").split(";")[0].strip()
        key = hashlib.blake2b(f"{operation.name} {answer.status} {kind} ".encode() + answer.body).digest()
        if key in self.seen:
            return
        try:
            operation.check(answer.status, kind, answer.body)
        except Violation as violation:
            self.violations.append(str(violation))
            raise
        self.seen.add(key)


def _expression(path):
    """A row's path as the router reads it."""
    text = "".join(".*" if part.endswith("*}") else "[^/]+" if part.startswith("{") else re.escape(part)
                   for part in re.split(r"(\{[^}]+\})", path))
    return text.removesuffix("/.*") + "(?:/.*)?" if text.endswith("/.*") else text + "/?"
