# SPDX-License-Identifier: Apache-2.0
"""The server's own route table, as it was compiled: every row of it, also the ones added tomorrow."""

import collections
import subprocess

from cella_server import bin_dir

# scope: "public", or the highest of read, write, admin, server. flags: a set of "query", "forwards".
Route = collections.namedtuple("Route", "method path scope flags")

ANY = ["GET", "PUT", "POST", "PATCH", "DELETE"]  # what stands for a row that takes every method


def routes():
    out = subprocess.run([bin_dir() / "tests/unit/api/list_routes"], check=True,
                         capture_output=True, text=True, timeout=60).stdout
    found = []
    for line in out.splitlines():
        method, path, scopes, flags = line.split("\t")
        for one in ANY if method == "ANY" else [method]:
            found.append(Route(one, path, scopes.split()[-1], frozenset(flags.split())))
    return found
