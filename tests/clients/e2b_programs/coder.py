# SPDX-License-Identifier: Apache-2.0
"""A coding agent on many sandboxes at once: each clones a repository, makes a change, runs its tests, and the
patches come back. The async client, git, streamed output, and commands that fail."""

import asyncio

from e2b import AsyncSandbox, CommandExitException

SOURCE = "def add(a, b):\n    return a - b\n"
TEST = "from calc import add\nassert add(2, 3) == 5, add(2, 3)\nprint('passed')\n"


async def prepare():
    """A sandbox with a repository, whose snapshot all others begin with."""
    sandbox = await AsyncSandbox.create(timeout=300)
    await sandbox.git.init("repo", initial_branch="main")
    await sandbox.git.configure_user("Agent", "agent@example.com")
    await sandbox.files.write_files([
        {"path": "repo/calc.py", "data": SOURCE}, {"path": "repo/test_calc.py", "data": TEST}])
    await sandbox.git.add("repo")
    await sandbox.git.commit("repo", "a bug")
    snapshot = await sandbox.create_snapshot()
    await sandbox.kill()
    return snapshot.snapshot_id


async def attempt(template, fix):
    lines = []
    async with await AsyncSandbox.create(template, timeout=300, metadata={"fix": fix}) as sandbox:
        source = await sandbox.files.read("repo/calc.py")
        await sandbox.git.create_branch("repo", f"fix-{fix[0] if fix.isalnum() else 'x'}")
        await sandbox.files.write("repo/calc.py", source.replace("a - b", fix))
        try:
            await sandbox.commands.run("python3 test_calc.py", cwd="/home/user/repo", on_stdout=lines.append)
        except CommandExitException as failed:
            assert failed.exit_code == 1 and "AssertionError" in failed.stderr, failed
            return None
        await sandbox.git.commit("repo", "mend it", allow_empty=True)
        diff = await sandbox.commands.run("git diff HEAD", cwd="/home/user/repo")
        assert lines == ["passed\n"], lines
        return diff.stdout


async def main():
    template = await prepare()
    try:
        patches = await asyncio.gather(*[attempt(template, fix) for fix in ("a * b", "a + b", "b")])
        assert [patch is not None for patch in patches] == [False, True, False], patches
        assert "+    return a + b" in patches[1], patches
    finally:
        assert await AsyncSandbox.delete_snapshot(template)


asyncio.run(main())
print("done")
