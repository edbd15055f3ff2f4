# SPDX-License-Identifier: Apache-2.0
"""The sync client: sandboxes, files, commands, terminals, watchers."""

import asyncio
import os
import time

from e2b import (AsyncSandbox, AuthenticationException, CommandExitException, FileType,
                 InvalidArgumentException, NotFoundException, PtySize, Sandbox, TimeoutException)

PATIENCE = float(os.environ.get("CELLA_TEST_PATIENCE", "1"))
shared = Sandbox.create(timeout=600, metadata={"made": "by python"}, envs={"FROM": "sandbox"})


def finish():
    shared.kill()


def wait_until(check, what, seconds=30):
    deadline = time.monotonic() + seconds * PATIENCE
    while True:
        got = check()
        if got:
            return got
        assert time.monotonic() < deadline, f"in vain: {what}"
        time.sleep(0.05)


def raises(kind, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as err:
        return err
    raise AssertionError(f"no {kind}")


def check_info_and_list():
    info = shared.get_info()
    assert info.sandbox_id == shared.sandbox_id
    assert info.metadata == {"made": "by python"}
    assert shared.is_running()
    pages = Sandbox.list()
    found = []
    while pages.has_next:
        found += [item.sandbox_id for item in pages.next_items()]
    assert shared.sandbox_id in found


def check_files():
    shared.files.write("py/a.txt", "hällo")
    assert shared.files.read("py/a.txt") == "hällo"
    assert bytes(shared.files.read("py/a.txt", format="bytes")) == "hällo".encode()
    assert b"".join(shared.files.read("py/a.txt", format="stream")) == "hällo".encode()
    shared.files.write_files([{"path": "py/b.bin", "data": b"\x00\xff"}, {"path": "py/c", "data": "c"}])
    assert bytes(shared.files.read("py/b.bin", format="bytes")) == b"\x00\xff"
    assert [e.name for e in shared.files.list("py")] == ["a.txt", "b.bin", "c"]
    info = shared.files.get_info("py/a.txt")
    assert (info.type, info.owner, info.size) == (FileType.FILE, "user", 6)
    assert shared.files.exists("py/a.txt") and not shared.files.exists("py/nope")
    assert shared.files.make_dir("py/dir") and not shared.files.make_dir("py/dir")
    assert shared.files.rename("py/c", "py/dir/d").path == "/home/user/py/dir/d"
    shared.files.remove("py/dir")
    raises(NotFoundException, shared.files.read, "py/nope")
    raises(InvalidArgumentException, shared.files.read, "py")
    raises(NotFoundException, shared.files.list, "py/nope")


def check_watch():
    shared.files.make_dir("watched")
    handle = shared.files.watch_dir("watched", recursive=True)
    shared.files.write("watched/new.txt", "1")
    seen = []

    def look():
        seen.extend(handle.get_new_events())
        return any(event.name == "new.txt" for event in seen)

    wait_until(look, "an event")
    handle.stop()


def check_commands():
    result = shared.commands.run("whoami; pwd; echo $FROM; echo e >&2")
    assert (result.stdout, result.stderr, result.exit_code) == ("user\n/home/user\nsandbox\n", "e\n", 0)
    err = raises(CommandExitException, shared.commands.run, "exit 7")
    assert err.exit_code == 7
    assert shared.commands.run("id -u", user="root", cwd="/").stdout == "0\n"
    raises(TimeoutException, shared.commands.run, "sleep 1000", timeout=1)


def check_background():
    command = shared.commands.run("read line; echo got $line; sleep 1000", background=True, stdin=True, timeout=0)
    shared.commands.send_stdin(command.pid, "x\n")
    for stdout, _, _ in command:
        assert stdout == "got x\n"
        break
    assert any(p.pid == command.pid for p in shared.commands.list())
    assert shared.commands.kill(command.pid)
    assert not shared.commands.kill(command.pid)
    assert not any(p.pid == command.pid for p in shared.commands.list())


def check_pty():
    pty = shared.pty.create(PtySize(cols=80, rows=24), timeout=0)
    shared.pty.resize(pty.pid, PtySize(cols=90, rows=20))
    shared.pty.send_stdin(pty.pid, b"stty size; exit\n")
    output = []
    pty.wait(on_pty=output.append)
    assert b"20 90" in b"".join(output), output


def check_pause():
    box = Sandbox.create(timeout=600)
    try:
        box.files.write("kept", "1")
        sleeper = box.commands.run("sleep 1000", background=True, timeout=0)
        box.pause()
        assert not box.is_running()
        box = Sandbox.connect(box.sandbox_id)
        assert box.files.read("kept") == "1"
        assert sleeper.pid in [process.pid for process in box.commands.list()]
        box.set_timeout(300)
        assert box.get_metrics() is not None
    finally:
        assert box.kill()
    assert not box.kill()


def check_errors():
    raises(AuthenticationException, Sandbox.create, api_key="e2b_00")
    raises(NotFoundException, Sandbox.connect, "nosuchsandbo")


def check_async_client():
    async def work():
        box = await AsyncSandbox.connect(shared.sandbox_id)
        await box.files.write("async.txt", "a")
        assert await box.files.read("async.txt") == "a"
        result = await box.commands.run("cat async.txt")
        assert result.stdout == "a"
        results = await asyncio.gather(*[box.commands.run(f"echo {i}") for i in range(8)])
        assert [r.stdout for r in results] == [f"{i}\n" for i in range(8)]

    asyncio.run(work())
