# SPDX-License-Identifier: Apache-2.0
"""Using up everything there is of something. The sandbox that does it meets its own limit; meanwhile
the API answers and a neighbour works; and when it is over, the sandbox is well again."""

import pathlib

import pytest

from cella_inside import USERS, run_inside, spawn_inside
from cella_server import wait_until

SMALL = {"cpu": "1", "memory": "128Mi", "disk": "16Mi"}


@pytest.fixture(scope="module")
def neighbour(server):
    made = server.create()
    yield made
    made.delete()


@pytest.fixture
def small(server):
    made = server.create(resources=SMALL)
    yield made
    made.delete()


def memory_in_use(server, sandbox):
    """What the kernel charges it with, and its limit."""
    name = f"cella-{server.instance}/{sandbox.get()['metadata']['id']}"
    v1, v2 = pathlib.Path("/sys/fs/cgroup/memory", name), pathlib.Path("/sys/fs/cgroup", name)
    if v1.exists():
        return int((v1 / "memory.usage_in_bytes").read_text()), \
            int((v1 / "memory.limit_in_bytes").read_text())
    return int((v2 / "memory.current").read_text()), int((v2 / "memory.max").read_text())


def is_within(used, limit):
    return used <= limit


def others_are_well(server, neighbour):
    assert server.request("GET", "/health").status == 200
    assert neighbour.exec("echo fine", timeout=60).stdout == "fine\n"
    neighbour.write("/workspace/file", "fine")
    assert neighbour.read("/workspace/file") == b"fine"


def set_off(server, small, neighbour, source, user, deadline=60):
    """Starts the bomb, and waits until it has used up what it is after ("full", which it holds on to)
    or was killed for trying; gives its last words. The others are looked at while it goes on."""
    pid = spawn_inside(small, source, user)

    def over():
        others_are_well(server, neighbour)
        return "full" in small.logs(pid)["stdout"] or \
            small.request("GET", f"/process/{pid}").json()["status"] != "running"

    wait_until(over, deadline, lambda: small.logs(pid))
    # The kernel lets some of its own allocations pass, and takes back what is too much.
    wait_until(lambda: is_within(*memory_in_use(server, small)), 60, lambda: memory_in_use(server, small))
    told = small.logs(pid)
    state = small.request("GET", f"/process/{pid}").json()
    small.request("POST", f"/process/{pid}/kill", timeout=60)
    wait_until(lambda: small.exec("echo well", timeout=60).stdout == "well\n", 30, "well again")
    assert small.status() == "running"
    # What su does with the end of its command differs; that it ended is what counts.
    killed = state["status"] != "running" and state["exitCode"] != 0
    return told["stdout"].splitlines()[-1:] or ([f"killed {state['exitCode']}"] if killed else []), told


HOLD = "\nimport time\ntime.sleep(1000)\n"

# name: what it does, and the words that it may end with (nothing: it was killed at the memory limit)
BOMBS = {
    "threads": ("""
import _thread, threading, time
threading.stack_size(64 << 10)
n = 0
try:
    while n < 100000:
        _thread.start_new_thread(time.sleep, (1000,))
        n += 1
except RuntimeError:
    print('full', n, flush=True)
""" + HOLD, lambda words: words[:1] == ["full"] and 500 < int(words[1]) < 1100),
    "zombies": ("""
import time
n = 0
try:
    while n < 100000:
        if os.fork() == 0:
            os._exit(0)
        n += 1
except BlockingIOError:
    print('full', n, flush=True)
""" + HOLD, lambda words: words[:1] == ["full"] and 500 < int(words[1]) < 1100),
    "descriptors": ("""
import resource
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
n = 0
try:
    while True:
        os.dup(0)
        n += 1
except OSError as full:
    print('full', errno.errorcode[full.errno], n <= limit, flush=True)
""" + HOLD, lambda words: words[:1] == ["full"] and words[1:] == ["EMFILE", "True"]),
    "epolls and events": ("""
import resource
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
import select
kept = []
try:
    while True:
        kept.append(select.epoll())
        kept[-1].register(os.eventfd(0))
except OSError as full:
    print('full', errno.errorcode[full.errno], flush=True)
""" + HOLD, lambda words: words[:1] == ["killed"] or words[:2] in (["full", "EMFILE"], ["full", "ENOSPC"])),
    "pipes": ("""
import fcntl, resource
limit = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (limit, limit))
total = 0
try:
    while True:
        r, w = os.pipe()
        quiet(fcntl.fcntl, w, 1031, 1 << 20)
        os.set_blocking(w, False)
        try:
            while True:
                total += os.write(w, bytes(65536))
        except BlockingIOError:
            pass
except OSError as full:
    print('full', errno.errorcode[full.errno], total, flush=True)
""" + HOLD, lambda words: words[:1] == ["killed"] or
              (words[:2] == ["full", "EMFILE"] and int(words[2]) < 128 << 20)),
    "local sockets": ("""
import socket
kept = []
try:
    while True:
        a, b = socket.socketpair()
        kept += [a, b]
        a.setblocking(False)
        try:
            while True:
                a.send(bytes(65536))
        except BlockingIOError:
            pass
except OSError as full:
    print('full', errno.errorcode[full.errno], flush=True)
""" + HOLD, lambda words: words[:1] == ["killed"] or words[:2] in (["full", "EMFILE"], ["full", "ENOBUFS"])),
    "memfds": ("""
kept = []
try:
    while True:
        fd = os.memfd_create('x')
        kept.append(fd)
        os.write(fd, bytes(1 << 20))
except OSError as full:
    print('full', errno.errorcode[full.errno], flush=True)
""" + HOLD, lambda words: words[:1] in (["killed"], ["full"])),
    "files in memory": ("""
n = 0
try:
    while True:
        open(f'/dev/shm/{n}', 'w').close()
        n += 1
except OSError as full:
    print('full', errno.errorcode[full.errno], n, flush=True)
""" + HOLD, lambda words: words[:2] == ["full", "ENOSPC"] and int(words[2]) < 20000),
    "inodes": ("""
os.makedirs(f'/var/tmp/i{os.getuid()}')
os.chdir(f'/var/tmp/i{os.getuid()}')
with open('most', 'wb') as most:  # of what there is: names take long to fill it
    os.posix_fallocate(most.fileno(), 0, 12 << 20)
n = 0
try:
    while n < 2000000:
        os.close(os.open(str(n) + 'x' * 200, os.O_CREAT | os.O_WRONLY))
        n += 1
except OSError as full:
    print('full', errno.errorcode[full.errno], n, flush=True)
""" + HOLD, lambda words: words[:1] == ["full"] and words[1] in ("EDQUOT", "ENOSPC")),
    "events of inotify": ("""
instances = []
while True:
    fd = libc.inotify_init1(0)
    if fd < 0:
        break
    instances.append(fd)
    libc.inotify_add_watch(fd, b'/tmp', 0xfff)
for n in range(3000):
    open(f'/tmp/{os.getuid()}-{n % 10}-' + 'x' * 200, 'w').close()
print('full', len(instances), flush=True)
""" + HOLD, lambda words: words[:1] == ["killed"] or (words[:1] == ["full"] and int(words[1]) < 1024)),
    "signals that wait": ("""
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 65))
info = ctypes.create_string_buffer(128)
ctypes.memmove(ctypes.addressof(info) + 8, (-1).to_bytes(4, 'little', signed=True), 4)
n = 0
while n < 100000:
    result, number = call(129, os.getpid(), 40, info)
    if result < 0:
        print('full', errno.errorcode[number], flush=True)
        break
    n += 1
""" + HOLD, lambda words: words[:1] == ["killed"] or words[:2] == ["full", "EAGAIN"]),
    "semaphores": ("""
n = 0
while n < 100000:
    result, number = call(64, 0, 250, 0o1600)
    if result < 0:
        break
    n += 1
print('full', errno.errorcode[number], n, flush=True)
""" + HOLD, lambda words: words[:1] == ["full"] and words[1] in ("ENOSPC", "ENOMEM")),
    "message queues": ("""
n, message = 0, ctypes.create_string_buffer(8 + 8192)
message[0] = 1
while n < 100000:
    queue, number = call(68, 0, 0o1600)
    if queue < 0:
        break
    while call(69, queue, message, 8192, 0o4000)[0] == 0:
        pass
    n += 1
print('full', errno.errorcode[number], n, flush=True)
""" + HOLD, lambda words: words[:1] == ["full"] and words[1] in ("ENOSPC", "ENOMEM")),
    "shared memory that nobody holds": ("""
libc.shmat.restype = ctypes.c_void_p
libc.shmat.argtypes = [ctypes.c_int, ctypes.c_void_p, ctypes.c_int]
libc.shmdt.argtypes = [ctypes.c_void_p]
total = 0
while total < 1 << 30:
    segment, number = call(29, 0, 8 << 20, 0o1600)
    if segment < 0:
        break
    place = libc.shmat(segment, None, 0)
    ctypes.memset(place, 1, 8 << 20)
    libc.shmdt(place)
    total += 8 << 20
print('full', errno.errorcode[number], total, flush=True)
""" + HOLD, lambda words: words[:2] == ["full", "ENOSPC"] and int(words[2]) <= 64 << 20),
}


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize("name", BOMBS)
def test_bomb(server, small, neighbour, name, user):
    source, expected = BOMBS[name]
    last, told = set_off(server, small, neighbour, source, user)
    assert last and expected(last[0].split()), (last, told)


@pytest.mark.parametrize("user", USERS)
def test_buffers_of_connections(server, small, neighbour, user):
    """TCP keeps what nobody reads in the kernel: counted like memory (v2), or in a count of its own (v1)
    which has a limit, too. The machine's own connections live on what all of them leave."""
    last, told = set_off(server, small, neighbour, """
import socket
server = socket.create_server(('127.0.0.1', 0), backlog=1000)
kept, total = [], 0
try:
    for _ in range(300):
        a = socket.create_connection(server.getsockname())
        kept += [a, server.accept()[0]]
        a.setblocking(False)
        try:
            while True:
                total += a.send(bytes(65536))
        except BlockingIOError:
            pass
except OSError:
    pass
print('full', total, flush=True)
""" + HOLD, user)
    words = (last or ["killed"])[0].split()
    assert words[0] == "killed" or int(words[1]) < 200 << 20, told


@pytest.mark.timeout(180)
def test_forks_of_a_user(server, small, neighbour):
    """As root this is tested with the limits; here it is somebody without any right."""
    bomb = small.spawn("exec su user -c 'bomb() { bomb | bomb & }; bomb; sleep 1000'")
    for _ in range(5):
        others_are_well(server, neighbour)
    answer = small.request("POST", f"/process/{bomb}/kill", timeout=60)
    assert answer.status == 200, answer
    wait_until(lambda: small.exec("echo well", timeout=60).stdout == "well\n", 60, "well again")
    wait_until(lambda: int(small.run("ls -d /proc/[0-9]* | wc -l", timeout=60)) < 12, 60, "few processes")


def test_zombies_are_reaped_when_their_parent_goes(small):
    pid = spawn_inside(small, """
import time
for _ in range(200):
    if os.fork() == 0:
        os._exit(0)
print('ready', flush=True)
time.sleep(1000)
""")
    wait_until(lambda: small.logs(pid)["stdout"] == "ready\n", 60, lambda: small.logs(pid))
    zombies = "grep -l 'State:.Z' /proc/[0-9]*/status 2>/dev/null | wc -l"
    wait_until(lambda: small.run(zombies) == "200", 60, "200 zombies")
    assert small.request("POST", f"/process/{pid}/kill", timeout=60).status == 200
    wait_until(lambda: small.run(zombies) == "0", 60, "none left")


@pytest.mark.parametrize("user", USERS)
def test_output_without_end(server, small, neighbour, user):
    """Kept up to its limit, charged to the sandbox, and read while it goes on."""
    command = "exec yes 0123456789012345678901234567890123456789"
    pids = [small.spawn(command if user == "root" else f"exec su user -c '{command}'")
            for _ in range(3)]
    for _ in range(5):
        others_are_well(server, neighbour)
        for pid in pids:
            assert len(small.logs(pid)["stdout"]) < 4 << 20
    wait_until(lambda: is_within(*memory_in_use(server, small)), 60, lambda: memory_in_use(server, small))
    assert small.exec("echo well", timeout=60).stdout == "well\n"
    for pid in pids:
        assert small.request("POST", f"/process/{pid}/kill", timeout=60).status == 200


DEEP = """
folder = '/workspace' if not os.getuid() else '/var/tmp'
os.makedirs(folder + '/deep')
os.chdir(folder + '/deep')
made = 0
try:
    while made < {depth}:
        os.mkdir('d' * 20)
        os.chdir('d' * 20)
        made += 1
except OSError as full:
    print(full)
print(made)
"""


@pytest.mark.parametrize("user", USERS)
def test_a_directory_deeper_than_any_path(server, small, neighbour, user):
    made = int(run_inside(small, DEEP.replace("{depth}", "3000"), user)[-1])
    assert made > 1000
    top = "/workspace/deep" if user == "root" else "/var/tmp/deep"
    others_are_well(server, neighbour)
    for path in (f"/filesystem{top}", f"/filesystem/tree{top}",
                 f"/filesystem-find{top}?pattern=*", f"/filesystem-search{top}?query=x"):
        assert small.request("GET", path, timeout=60).status < 500, path
    answer = small.request("DELETE", f"/filesystem{top}?recursive=true", timeout=60)
    assert answer.status == 200, answer
    assert small.exec(f"test -e {top}").exit_code == 1


def test_deep_directories_in_plain_storage(server_factory):
    """There the server has to remove them itself, name by name; and measure them."""
    server = server_factory("--storage", "plain")
    box = server.create()
    assert int(run_inside(box, DEEP.replace("{depth}", "600"))[-1]) == 600
    assert box.request("GET", "/metrics").status == 200
    copy = box.request("POST", "/clone", {"name": "copy"}, timeout=60)
    if copy.status == 202:  # made, or refused for its depth: the server has lived through it
        server.sandbox("copy").wait_status("running", "failed", deadline=60).delete()
    other = server.create()
    box.delete()
    assert other.exec("echo fine").stdout == "fine\n"
    wait_until(lambda: not any((server.data / "volume").glob("*/root/upper/workspace/deep")), 30,
               "the tree gone")
    other.delete()
    assert server.leaks() == ""


@pytest.mark.parametrize("user", USERS)
def test_sparse_files(server, small, neighbour, user):
    """They are as large as they say and take nothing; what looks into them does not fill up either."""
    folder = "/workspace" if user == "root" else "/var/tmp"
    lines = run_inside(small, f"""
fd = os.open('{folder}/sparse', os.O_CREAT | os.O_RDWR)
print(quiet(os.ftruncate, fd, 1 << 42), quiet(os.posix_fallocate, fd, 0, 1 << 40))
print(os.fstat(fd).st_size == 1 << 42, quiet(os.pwrite, fd, b'end', (1 << 42) - 3))
""", user)
    assert lines[0] in ("None ENOSPC", "None EDQUOT", "None EFBIG"), lines
    assert lines[1] == "True 3", lines
    answer = small.request("GET", f"/filesystem{folder}/sparse", timeout=60)
    assert answer.status in (400, 413, 422), answer
    answer = small.request("GET", f"/filesystem{folder}/sparse", None,
                           {"Accept": "application/octet-stream", "Range": "bytes=-3"}, timeout=60)
    assert (answer.status, answer.body) == (206, b"end"), answer
    assert small.request("GET", f"/filesystem-search{folder}?query=nothing", timeout=60).status < 500
    others_are_well(server, neighbour)
    assert small.request("DELETE", f"/filesystem{folder}/sparse").status == 200


STORM = """
import signal, time
end = time.monotonic() + 3
sent = 0
info = ctypes.create_string_buffer(128)
ctypes.memmove(ctypes.addressof(info) + 8, (-1).to_bytes(4, 'little', signed=True), 4)
answers = set()
for _ in range(4):
    if os.fork() == 0:
        break
while time.monotonic() < end:
    for number in list(range(1, 65)) + [signal.SIGCHLD] * 64:
        answers.add(call(62, 1, number)[1])
        answers.add(call(129, 1, number, info)[1])
        sent += 1
print(sorted(answers), sent > 1000, flush=True)
"""


@pytest.mark.parametrize("user", USERS)
def test_storm_of_signals_at_pid_1(server, small, neighbour, user):
    before = small.init_start_time()
    pid = spawn_inside(small, STORM, user)
    while small.request("GET", f"/process/{pid}").json()["status"] == "running":
        others_are_well(server, neighbour)
        assert small.exec("echo heard", timeout=60).stdout == "heard\n"
        small.write("/workspace/file", "heard")
    told = small.logs(pid)["stdout"].splitlines()
    assert told and all(line.endswith("True") for line in told), told
    if user == "user":
        assert told[0].startswith("[1]"), told  # EPERM, all of them
    assert small.init_start_time() == before


@pytest.mark.timeout(180)
def test_everything_at_once(server, small, neighbour):
    """A sandbox that does its worst; others are made, work, and go. How much slower they get is measured
    by the benchmarks, since a test should not depend on it."""
    for line in ("while :; do :; done",) * 4 + (
            "while :; do head -c 10M /dev/zero > /workspace/big; sync; rm /workspace/big; done",
            "while :; do cat /usr/bin/* > /dev/null; done",
            "while :; do ls -R /usr /proc > /dev/null 2>&1; done",
            "while :; do (true | true | true) & wait; done",
            "yes"):
        small.spawn(line)
    spawn_inside(small, "while True:\n    b = bytearray(60 << 20)\n    b[::4096] = b'x' * (len(b) // 4096)\n")
    for _ in range(5):
        others_are_well(server, neighbour)
        other = server.create()
        assert other.exec("echo fine", timeout=60).stdout == "fine\n"
        other.delete()
    assert small.status() == "running"
    assert small.exec("echo here too", timeout=60).stdout == "here too\n"
