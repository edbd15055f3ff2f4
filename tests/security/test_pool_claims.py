# SPDX-License-Identifier: Apache-2.0
"""A sandbox that was made ahead, for nobody, and is then somebody's: nothing of an earlier owner is in it,
nobody else reaches it, and nothing is left out of what holds it."""

import pytest

from cella_inside import USERS, run_inside
from cella_server import wait_until

# What it can do and what it sees, without what is different by right: names, ids and numbers.
LOOK = """
import re, resource
status = open('/proc/self/status').read()
print([line for line in status.splitlines() if re.match('Cap|NoNewPrivs|Seccomp|Groups', line)])
print(open('/proc/self/uid_map').read().split()[0::2])
print(sorted((line.split()[4], line.split()[5], line.split(' - ')[1].split()[0])
             for line in open('/proc/self/mountinfo')))
print([resource.getrlimit(number) for number in range(16)])
print(sorted(os.listdir('/')), sorted(os.listdir('/dev')), sorted(os.listdir('/sys/class/net')))
print([quiet(lambda: open(path).read()) for path in (
    '/proc/sys/user/max_user_namespaces', '/proc/sys/kernel/shmall', '/proc/sys/kernel/msgmni',
    '/proc/keys', '/proc/sysvipc/shm')])
print(quiet(lambda: open('/proc/1/oom_score_adj').read()), quiet(os.listdir, '/proc/1/fd'))
print(os.statvfs('/dev/shm').f_files, os.statvfs('/dev/shm').f_blocks)
print([errno.errorcode[call(*arguments)[1]] for arguments in (
    (165, 0, 0, 0, 0, 0), (272, 0x10000000), (250, 0, 0, 0), (321, 0, 0, 0), (41, 40, 1, 0))])
"""


@pytest.fixture(scope="module")
def pooled(server):
    answer = server.request("POST", "/v0/pools", {"name": "claims", "image": "host", "size": 2})
    assert answer.status == 201, answer
    yield server
    assert server.request("DELETE", "/v0/pools/claims").status < 300


def claim(server, **spec):
    def status():
        return server.request("GET", "/v0/pools/claims").json()["status"]
    wait_until(lambda: status()["ready"] == 2 and status()["making"] == 0, 60, status)
    before = status()["claimed"]
    box = server.create(**spec)
    assert status()["claimed"] == before + 1
    return box


@pytest.mark.parametrize("user", USERS)
def test_a_claimed_one_is_held_as_any_other(server_factory, pooled, user):
    cold_server = server_factory()
    cold, warm = cold_server.create(), claim(pooled)
    expected, found = run_inside(cold, LOOK, user), run_inside(warm, LOOK, user)
    for ours, theirs in zip(found, expected):
        assert ours == theirs
    assert len(found) == len(expected)
    warm.delete()
    cold.delete()


def test_nothing_of_an_earlier_owner(pooled):
    """Whatever he left: files, memory, objects, sockets, processes, changes of programs and users."""
    first = claim(pooled)
    before = first.get()["metadata"]["id"]
    first.run("echo of-an-earlier-owner | tee /workspace/s /tmp/s /dev/shm/s /root/s /home/user/s /usr/bin/s /etc/s"
              " > /dev/null; echo 'echo owned' > /etc/profile.d/x.sh; useradd mallory 2>/dev/null; :")
    first.spawn("exec sleep 4721")
    run_inside(first, "print(call(29, 77, 4096, 0o1666)[0] >= 0)")  # a segment with a key
    first.delete()
    for _ in range(4):
        box = claim(pooled)
        assert box.get()["metadata"]["id"] != before
        assert box.exec("grep -rs of-an-earlier-owner /workspace /tmp /dev/shm /root /home /etc; ls /usr/bin/s"
                        " /etc/profile.d/x.sh; pgrep -f '^sleep 4721'; getent passwd mallory"
                        ).stdout == ""
        assert run_inside(box, "print(errno.errorcode[call(29, 77, 4096, 0o666)[1]])") == ["ENOENT"]
        box.delete()


def test_a_spare_is_nobodys(pooled):
    """Not in a list, not by a name that could be guessed, and not in the figures."""
    box = claim(pooled)
    names = {item["metadata"]["name"] for item in pooled.list()}
    assert box.name in names
    for path in ("/v0/sandbox/claims", "/v0/sandbox/pool", "/v0/sandbox/claims-0"):
        assert pooled.request("GET", path).status == 404
    listed = {row["name"] for row in pooled.request("GET", "/v0/metrics").json()["sandboxes"]}
    assert listed <= {item["metadata"]["name"] for item in pooled.list()}
    box.delete()


def test_two_owners_never_get_the_same(pooled):
    boxes = [pooled.create(wait=False) for _ in range(8)]
    for box in boxes:
        box.wait_status("running", deadline=60)
    assert len({box.get()["metadata"]["id"] for box in boxes}) == len(boxes)
    for number, box in enumerate(boxes):
        box.write("/workspace/mine", str(number))
    for number, box in enumerate(boxes):
        assert box.read("/workspace/mine") == str(number).encode()
        assert box.run("hostname") == box.name
    bases = {box.run("cat /proc/self/uid_map").split()[1] for box in boxes}
    assert len(bases) == len(boxes)
    for box in boxes:
        box.delete()
