# SPDX-License-Identifier: Apache-2.0
"""Runs every check_* function of a file, and prints a line of JSON for each."""

import json
import runpy
import sys
import traceback

space = runpy.run_path(sys.argv[1])
for name, check in list(space.items()):
    if not name.startswith("check_"):
        continue
    failure = None
    try:
        check()
    except BaseException:  # pylint: disable=broad-exception-caught
        failure = traceback.format_exc()
    print(json.dumps({"name": name, "failure": failure}), flush=True)
if "finish" in space:
    space["finish"]()
