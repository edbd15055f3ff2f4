# SPDX-License-Identifier: Apache-2.0
"""Fixtures shared by every folder of tests that needs a server: imported by their conftest.py."""

import os
import signal
import threading

import pytest

from api_contract import Contract
from cella_server import Server, bin_dir
from network_inside import Box
from world import World, WorldServer

# Whatever is ignored here is ignored by every program that is started from here. nohup ignores hangups,
# and a shell has its background jobs ignore interrupts. Only a main thread may change that, and a worker
# of pytest-xdist may be another one; tests/run has changed it before.
if threading.current_thread() is threading.main_thread():
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGQUIT, signal.SIG_DFL)
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def _requirements():
    if os.geteuid() != 0:
        pytest.skip("needs root: a server makes namespaces, mounts and cgroups")
    if not (bin_dir() / "cella").exists():
        pytest.fail(f"{bin_dir()}/cella is not built", pytrace=False)


def _close_all(servers):
    """Each of them, also when an earlier one has left something behind."""
    failures = []
    for instance in servers:
        try:
            instance.close()
        except AssertionError as failure:
            failures.append(failure)
    if failures:
        raise failures[0]


@pytest.fixture(scope="session")
def contract():
    """What the API's document says, to which every answer is held that a test gets from a Server."""
    if (bin_dir() / "cella").exists():
        Server.contract = Contract()
    yield Server.contract
    Server.contract = None


@pytest.fixture(autouse=True)
def answers_are_as_described(contract):
    """Answers that the document does not know fail the test, also where it caught the failure."""
    yield
    if contract is not None and contract.violations:
        found, contract.violations = contract.violations, []
        pytest.fail("\n".join(found), pytrace=False)


@pytest.fixture(scope="module", autouse=True)
def servers_are_idle():
    """Servers that outlive a module have nothing left to do after it. Server.close() checks those of the module."""
    yield
    for instance in list(Server.running):
        instance.check_idle()


@pytest.fixture(scope="session")
def server():
    """The server that most tests share. Leave nothing behind in it."""
    _requirements()
    instance = Server()
    yield instance
    instance.close()


@pytest.fixture
def server_factory():
    """server_factory(*args) makes a server of the test's own; it is closed, and checked, afterwards."""
    _requirements()
    made = []

    def make(*args, **kwargs):
        made.append(Server(*args, **kwargs))
        return made[-1]

    yield make
    _close_all(made)


@pytest.fixture
def sandbox(server):
    """A running sandbox for this test alone."""
    made = server.create()
    yield made
    if made.status() not in (None, "deleting"):
        made.delete()


@pytest.fixture(scope="module")
def shared_sandbox(server):
    """A running sandbox for all tests of a file that only look at it."""
    made = server.create()
    yield made
    made.delete()


@pytest.fixture(scope="session")
def world():
    """An Internet of our own: see world.py. Names are made anew by each test (world.name())."""
    _requirements()
    made = World()
    yield made
    made.close()


@pytest.fixture(scope="session")
def world_server(world):
    """The server that tests of the network share; its machine is a part of the world."""
    instance = WorldServer(world)
    yield instance
    instance.close()


@pytest.fixture
def world_factory(world):
    """world_factory(*args) makes a server of the test's own in the world; closed and checked afterwards."""
    made = []

    def make(*args, **kwargs):
        made.append(WorldServer(world, *args, **kwargs))
        return made[-1]

    yield make
    _close_all(made)


@pytest.fixture
def boxes(world_server):
    """boxes(mode, allow=…, …) makes a sandbox with that network, for this test alone."""
    made = []

    def make(mode, server=None, **network):
        made.append((server or world_server).create(network={"mode": mode, **network}))
        return Box(made[-1])

    yield make
    for sandbox in made:
        if sandbox.status() not in (None, "deleting"):
            sandbox.delete()
