# SPDX-License-Identifier: Apache-2.0
"""Clones without snapshots: `--storage plain` copies file by file, and it has to look the same."""

import pytest

from cella_server import Server, wait_until
from clones import IN_STEP, clone, deleting, furnish, steps, survey


@pytest.fixture(scope="module")
def plain(server):  # the shared one says whether servers can run at all
    instance = Server("--storage", "plain")
    yield instance
    assert instance.leaks() == ""
    instance.close()


def test_everything_is_copied(plain):
    source = plain.create()
    furnish(source)
    before = survey(source)
    copy = clone(source)
    again = clone(copy)
    with deleting(source, copy, again):
        assert survey(copy) == before
        assert survey(again) == before
        source.run("echo changed > /workspace/file")
        assert copy.run("cat /workspace/file") == "data"


def test_deep_directories(plain):
    source = plain.create()
    source.run("python3 -c \"import os\nos.chdir('/workspace')\n"
               "for i in range(700): os.mkdir('d'); os.chdir('d')\nopen('end', 'w').write('x')\"")
    copy = clone(source)
    with deleting(source, copy):
        assert copy.run("find /workspace -name end | tr -cd / | wc -c") == "702"


def test_a_writing_source_is_copied_at_one_moment(plain):
    source = plain.create()
    source.write("/workspace/step.py", IN_STEP)
    source.run("mkdir /workspace/between && cd /workspace/between && seq 300 | split -l 1 -a 3 - f")
    source.spawn("exec python3 /workspace/step.py")
    wait_until(lambda: source.request("GET", "/filesystem/workspace/ready").status == 200, 30,
               "the program writes")
    with deleting(source):
        for _ in range(3):
            copy = clone(source)
            with deleting(copy):
                a, b = steps(copy)
                assert 0 <= a - b <= 1, (a, b)
        assert source.run("echo it goes on") == "it goes on"


def test_disk_is_measured(plain):
    source = plain.create()
    source.run("dd if=/dev/urandom of=/workspace/a bs=1M count=40 status=none && sync")
    with deleting(source):
        answer = source.request("POST", "/clone", {"disk": "20Mi"})
        assert (answer.status, answer.error()) == (409, "RESOURCE_IN_USE"), answer
        answer = source.request("PATCH", "", {"spec": {"resources": {"disk": "20Mi"}}})
        assert (answer.status, answer.error()) == (409, "RESOURCE_IN_USE"), answer
        assert source.request("PATCH", "", {"spec": {"resources": {"disk": "100Mi"}}}).status == 200


def test_stopped_and_deleted_sources(plain):
    source = plain.create()
    source.write("/workspace/f", "kept")
    source.stop()
    copy = clone(source, wait=None)
    assert plain.request("DELETE", source.base).status == 202
    with deleting(copy):
        copy.wait_status("running")
        assert copy.read("/workspace/f") == b"kept"
        source.wait_status("gone")


def test_a_source_that_is_started_meanwhile(plain):
    source = plain.create()
    source.run("mkdir /workspace/many && cd /workspace/many && seq 600 | split -l 1 -a 3 - f")
    source.stop()
    copies = [clone(source, wait=None) for _ in range(2)]
    source.start()
    with deleting(source, *copies):
        for copy in copies:
            copy.wait_status("running")
            assert copy.run("ls /workspace/many | wc -l") == "600"
