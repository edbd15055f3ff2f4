# SPDX-License-Identifier: Apache-2.0
"""Whatever goes wrong comes as the exception that the client has for it."""

import json
import os
import threading
import urllib.request

from e2b import (AuthenticationException, FileNotFoundException, InvalidArgumentException, NotEnoughSpaceException,
                 NotFoundException, RateLimitException, Sandbox, SandboxException, SandboxNotFoundException,
                 TimeoutException)

shared = Sandbox.create(timeout=600)


def finish():
    shared.kill()


def raises(kind, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as err:
        return err
    raise AssertionError(f"no {kind}")


def check_what_is_not_there():
    raises(FileNotFoundException, shared.files.read, "nope")
    raises(FileNotFoundException, shared.files.list, "/nope")
    raises(FileNotFoundException, shared.files.get_info, "nope")
    raises(FileNotFoundException, shared.files.rename, "nope", "other")
    raises(FileNotFoundException, shared.files.watch_dir, "/nope")
    raises(NotFoundException, shared.commands.connect, 99999)
    raises(NotFoundException, shared.commands.send_stdin, 99999, "x")
    assert shared.commands.kill(99999) is False
    raises(SandboxNotFoundException, Sandbox.connect, "nope")


def check_arguments_that_are_none():
    raises(InvalidArgumentException, shared.files.read, "/etc")
    raises(InvalidArgumentException, shared.files.list, "/etc/passwd")
    raises(InvalidArgumentException, shared.files.watch_dir, "/etc/passwd")
    raises(InvalidArgumentException, shared.commands.run, "true", user="nobody-here")
    raises(InvalidArgumentException, shared.commands.run, "true", cwd="/nope")


def check_keys_that_are_none():
    raises(AuthenticationException, Sandbox.create, api_key="e2b_" + "0" * 40)


def check_a_full_disk():
    with Sandbox.create(timeout=600) as box:
        key = bytes.fromhex(os.environ["E2B_API_KEY"][4:]).decode()
        smaller = urllib.request.Request(
            f"{os.environ['E2B_API_URL']}/v0/sandbox/{box.sandbox_id}", method="PATCH",
            data=json.dumps({"spec": {"resources": {"disk": "64Mi"}}}).encode(),
            headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"})
        with urllib.request.urlopen(smaller, timeout=30) as answer:
            assert answer.status == 200
        raises(NotEnoughSpaceException, box.files.write, "large", bytes(100 << 20))
        box.files.write("small", "fits")


def check_too_many_watches():
    watches = []

    def watch_all():
        while len(watches) < 100:
            watches.append(shared.files.watch_dir("/tmp"))
    try:
        raises(RateLimitException, watch_all)
    finally:
        for watch in watches:
            watch.stop()
    assert shared.commands.run("echo on").stdout == "on\n"


def check_time_that_is_over():
    raises(TimeoutException, shared.commands.run, "sleep 1000", timeout=0.3)


def check_a_sandbox_that_is_gone():
    box = Sandbox.create(timeout=600)
    handle = box.commands.run("sleep 1000", background=True, timeout=0)
    failed = []

    def wait():
        try:
            handle.wait()
        except SandboxException as err:
            failed.append(err)
    waiter = threading.Thread(target=wait)
    waiter.start()
    assert box.kill() is True
    waiter.join(60)
    assert not waiter.is_alive() and failed, "commands.run hangs when its sandbox dies"
    raises(SandboxException, box.files.read, "x")
    raises(SandboxException, box.files.list, "/")
    raises(SandboxException, box.commands.run, "true")
    assert box.is_running() is False
    assert box.kill() is False
