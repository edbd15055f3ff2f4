# SPDX-License-Identifier: Apache-2.0
"""The server's own route table, as it was compiled: every row of it, also the ones added tomorrow."""

import collections
import re
import subprocess

from cella_server import bin_dir

# dialect: "cella" (the API's own shapes), "blaxel", "e2b", "e2b-envd", "scalebox", "scalebox-box" or "aisandbox" (/api/sandbox). scope: "public", or the highest of read, write,
# admin, server. flags: a set of "query", "forwards", "inside", "body" (inside, and the body names
# the sandbox), "caller".
Route = collections.namedtuple("Route", "dialect method path scope flags")

# Others' APIs, which are theirs to describe; docs/ has a page for each, held against the table by tests. Every other
# dialect is our own, and in api/openapi.yaml: whoever adds one cannot forget it by accident.
FACADES = ("blaxel", "e2b", "e2b-envd", "scalebox", "scalebox-box")

ANY = ("GET", "PUT", "POST", "PATCH", "DELETE")  # those that a row for every method is described by


def all_routes():
    out = subprocess.run([bin_dir() / "tests/unit/api/list_routes"], check=True,
                         capture_output=True, text=True, timeout=60).stdout
    found = []
    for line in out.splitlines():
        dialect, method, path, scopes, flags = line.split("\t")
        found.append(Route(dialect, method, path, scopes.split()[-1], frozenset(flags.split())))
    return found


def routes():
    """Those of our own APIs."""
    return [route for route in all_routes() if route.dialect not in FACADES]


VALUES = {"path*": "tmp/x", "pid": "1", "port": "8080"}


def fill(path, **values):
    """The path with something in the place of each parameter."""
    known = {**VALUES, **values}
    return re.sub(r"\{([^}]+)\}", lambda match: known.get(match.group(1), "x"), path)


def in_groups(rows):
    """What is below a sandbox's path is there below the one of its group, too."""
    plain, grouped = "/v0/sandbox/{name}", "/v0/groups/{group}/sandbox/{member}"
    return [route._replace(path=route.path.replace(plain, grouped, 1))
            for route in rows if route.path.startswith(plain)]
