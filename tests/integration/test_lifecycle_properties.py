# SPDX-License-Identifier: Apache-2.0
"""Random lives of sandboxes, by several clients and with kills in between, against a model: see lifecycle_machine.py.
`make soak` plays more of them."""

import os
import time

import pytest

import lifecycle_machine

SEQUENCES, STEPS = 30, 14
BUDGET_S = 40  # after which no sequence is begun any more


@pytest.fixture(scope="module")
def servers():
    made = lifecycle_machine.Servers()
    yield made
    made.close()


@pytest.mark.timeout(900)  # a failure is shrunk, which takes a while
def test_sandboxes_live_as_the_model_says(servers):
    seed = int(os.environ.get("CELLA_TEST_SEED", "201"))
    print(f"CELLA_TEST_SEED={seed} repeats this")
    servers.until = time.monotonic() + BUDGET_S
    lifecycle_machine.play(servers, seed, SEQUENCES, STEPS)
    print(f"{servers.sequences} sequences, {servers.steps} steps")
