# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

# pylint: disable=wrong-import-position,unused-import
from cella_fixtures import sandbox, server, server_factory, servers_are_idle, shared_sandbox  # noqa: E402,F401
