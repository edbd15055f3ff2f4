# SPDX-License-Identifier: Apache-2.0
"""The first generation: PyPI e2b 1.11.1 and e2b-code-interpreter 1.5.2, by names of hosts over TLS."""

import asyncio
import os
import socket

DOMAIN = os.environ["E2B_DOMAIN"].split(":")[0]
_ask = socket.getaddrinfo


def _lookup(host, *args, **kwargs):
    """Names below the server's domain lead to this machine, which is all that DNS would say."""
    name = host.decode() if isinstance(host, bytes) else host
    return _ask("127.0.0.1" if name.endswith("." + DOMAIN) else host, *args, **kwargs)


socket.getaddrinfo = _lookup

# pylint: disable=wrong-import-position
from e2b import AsyncSandbox, CommandExitException, NotFoundException, Sandbox  # noqa: E402
from e2b_code_interpreter import Sandbox as CodeSandbox  # noqa: E402

shared = Sandbox(timeout=600, metadata={"made": "by 1.x"}, envs={"FROM": "sandbox"})


def finish():
    shared.kill()


def raises(kind, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as err:
        return err
    raise AssertionError(f"no {kind}")


def check_sandbox():
    assert shared.is_running()
    shared.set_timeout(500)
    assert shared.sandbox_id.split("-")[0] in [item.sandbox_id.split("-")[0] for item in Sandbox.list()]
    again = Sandbox.connect(shared.sandbox_id)
    assert again.commands.run("echo $FROM").stdout == "sandbox\n"


def check_files():
    shared.files.write("one/a.txt", "hällo")
    assert shared.files.read("one/a.txt") == "hällo"
    assert [entry.name for entry in shared.files.list("one")] == ["a.txt"]
    shared.files.remove("one")
    raises(NotFoundException, shared.files.read, "one/a.txt")


def check_commands():
    assert raises(CommandExitException, shared.commands.run, "exit 7").exit_code == 7
    command = shared.commands.run("echo a; echo b >&2", background=True)
    result = command.wait()
    assert (result.stdout, result.stderr) == ("a\n", "b\n")


def check_code():
    box = CodeSandbox(timeout=600)
    try:
        assert box.run_code("print('hi'); 6 * 7").text == "42"
        assert box.run_code("1/0").error.name == "ZeroDivisionError"
    finally:
        box.kill()


def check_async():
    async def work():
        box = await AsyncSandbox.create(timeout=600)
        try:
            await box.files.write("a", "async")
            assert (await box.commands.run("cat a")).stdout == "async"
        finally:
            await box.kill()

    asyncio.run(work())
