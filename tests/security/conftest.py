# SPDX-License-Identifier: Apache-2.0
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))

# pylint: disable=wrong-import-position,unused-import
from cella_fixtures import (answers_are_as_described, boxes, contract, sandbox, server, server_factory,  # noqa: E402,F401
                            servers_are_idle, shared_sandbox, world, world_factory, world_server)
