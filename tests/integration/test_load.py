# SPDX-License-Identifier: Apache-2.0
"""A few seconds of what `make load` does for a minute: no answer is an error. How long they took, and
whether memory stays flat, is for a machine that does nothing else."""

import load


def test_mixed_traffic(server, sandbox):
    sandbox.run("mkdir -p /tmp/load")
    rows, memory = load.run(server, sandbox.name, 5)
    found = load.problems(rows, memory, timing=False)
    assert not found, "\n".join([*found, load.table(rows, memory, 5)])
    assert not [one for one in server.list() if one["metadata"]["name"].startswith("load-")
                and one["status"] not in ("deleting",)]
