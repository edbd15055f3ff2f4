# SPDX-License-Identifier: Apache-2.0
"""What else Python's clients offer: secrets, templates, snapshots, forks, networks, git; what is refused, by the
exception that they have for it; and the async client for all of what counts."""

import asyncio
import datetime
import os
import uuid

from e2b import (ALL_TRAFFIC, AsyncSandbox, AsyncSecret, AsyncTemplate, AsyncVolume, BuildException, CommandExitException,
                 FileType, NotFoundException, PtySize, Sandbox, SandboxException, SandboxNotFoundException, Secret,
                 SecretException, SecretNotFoundException, Template, TemplateException, TimeoutException, Volume,
                 VolumeException, VolumeNotFoundException)
from e2b_code_interpreter import AsyncSandbox as AsyncCodeSandbox

PATIENCE = float(os.environ.get("CELLA_TEST_PATIENCE", "1"))
shared = Sandbox.create(timeout=600)


def finish():
    shared.kill()


def unique(stem):
    return f"{stem}-{uuid.uuid4().hex[:8]}"


def raises(kind, call, *args, **kwargs):
    try:
        call(*args, **kwargs)
    except kind as err:
        return err
    raise AssertionError(f"no {kind}")


async def araises(kind, awaitable):
    try:
        await awaitable
    except kind as err:
        return err
    raise AssertionError(f"no {kind}")


def check_secrets():
    name = unique("OPENAI_API_KEY")
    made = Secret.create(name, "sk-one", metadata={"team": "a"})
    try:
        assert (made.name, made.version, made.metadata) == (name, 1, {"team": "a"}), made
        assert "409" in str(raises(SecretException, Secret.create, name, "again"))
        assert Secret.update(made.secret_id, "sk-two").version == 2
        assert Secret.get_info(name).metadata == {"team": "a"}
        pages, found = Secret.list(limit=1), []
        while pages.has_next:
            found += [secret.name for secret in pages.next_items()]
        assert name in found and Secret.exists(name)
        rule = {"transform": {"headers": {"Authorization": f"Bearer {Secret.fill(name)}"}}}
        shared.update_network({"rules": {"api.example.com": [rule]}})
        shared.update_network({})
    finally:
        assert Secret.destroy(name)
    assert not Secret.destroy(name)
    raises(SecretNotFoundException, Secret.get_info, name)


def check_templates_and_volumes():
    assert Template.exists("base") and Template.alias_exists("base") and not Template.exists(unique("none"))
    [tag] = Template.get_tags("base")
    assert tag.tag == "default"
    assert Template.assign_tags("base", "default").tags == ["default"]
    raises(TemplateException, Template.assign_tags, "base", "v2")
    raises(TemplateException, Template.remove_tags, "base", "v2")
    raises(BuildException, Template.build, Template().from_base_image().run_cmd("true"), "mine")
    assert Volume.list() == []
    assert "no volumes here" in str(raises(VolumeException, Volume.create, "v"))
    raises(VolumeNotFoundException, Volume.connect, "v")
    assert not Volume.destroy("v")
    raises(SandboxException, Sandbox.create, volume_mounts={"/data": "v"})
    assert "MCP gateway" in str(raises(SandboxException, Sandbox.create, mcp={"duckduckgo": {}}))


def check_snapshots_and_forks():
    name = unique("snap")
    shared.files.write("state.txt", "at the snapshot")
    snapshot = shared.create_snapshot(name=name)
    try:
        assert [s.snapshot_id for s in shared.list_snapshots().next_items()] == [snapshot.snapshot_id]
        with Sandbox.create(name, timeout=600) as box:
            assert box.files.read("state.txt") == "at the snapshot"
    finally:
        assert Sandbox.delete_snapshot(snapshot.snapshot_id)
    assert not Sandbox.delete_snapshot(snapshot.snapshot_id)
    [fork] = shared.fork(timeout=600)
    assert fork.files.read("state.txt") == "at the snapshot"
    assert Sandbox.kill(fork.sandbox_id) and not Sandbox.kill(fork.sandbox_id)


def check_network_and_life():
    with Sandbox.create(timeout=600, network={"allow_public_traffic": False}, lifecycle={"on_timeout": "pause"}) as box:
        assert box.traffic_access_token
        box.update_network({"allow_out": ["example.com"], "deny_out": [ALL_TRAFFIC]})
        info = box.get_info()
        assert info.network["allow_out"] == ["example.com"], info.network
        assert info.lifecycle["on_timeout"] == "pause", info.lifecycle
        now = datetime.datetime.now(datetime.timezone.utc)
        assert isinstance(box.get_metrics(start=now - datetime.timedelta(minutes=1), end=now), list)
        assert box.beta_pause()
        assert box.connect(timeout=600).is_running()
        gone = box.sandbox_id
    for call in (Sandbox.get_info, Sandbox.connect, Sandbox.pause, Sandbox.fork, Sandbox.create_snapshot):
        raises(SandboxNotFoundException, call, gone)
    raises(SandboxNotFoundException, Sandbox.set_timeout, gone, 10)


def check_git():
    git, path, remote = shared.git, unique("repo"), f"/home/user/{unique('bare')}"
    git.init(path, initial_branch="main")
    git.init(remote, bare=True, initial_branch="main")
    git.configure_user("Somebody", "somebody@example.com")
    shared.files.write(f"{path}/a.txt", "1")
    assert git.status(path).untracked_count == 1
    git.add(path)
    git.commit(path, "first")
    assert git.status(path).is_clean
    git.remote_add(path, "origin", remote)
    git.push(path, remote="origin", branch="main", set_upstream=True)
    git.clone(remote, path=f"{path}-copy")
    git.create_branch(path, "other")
    assert sorted(git.branches(path).branches) == ["main", "other"]
    git.checkout_branch(path, "main")
    git.delete_branch(path, "other", force=True)
    git.pull(path)
    assert git.get_config("user.name") == "Somebody"
    raises(CommandExitException, git.clone, "/nowhere")


def check_files_further():
    shared.files.write("further/meta.txt", "x", metadata={"color": "red"})
    assert shared.files.get_info("further/meta.txt").metadata == {"color": "red"}
    shared.files.write("further/deep/b.txt", b"\x00\x01")
    assert {e.name for e in shared.files.list("further", depth=2)} == {"meta.txt", "deep", "b.txt"}
    assert shared.files.get_info("further").type == FileType.DIR
    shared.files.write("rooted.txt", "r", user="root")
    assert shared.files.get_info("rooted.txt", user="root").owner == "root"
    shared.files.write("zipped.txt", "z" * 10000, gzip=True)
    assert shared.files.read("zipped.txt", gzip=True) == "z" * 10000


def check_input_in_a_stream():
    command = shared.commands.run("head -n 3", background=True, stdin=True)
    shared.commands.stream_input(command.pid, (f"{line}\n" for line in ("one", "two", "three")))
    assert command.wait().stdout == "one\ntwo\nthree\n"
    raises(NotFoundException, shared.commands.stream_input, 999999, ["x"])


def check_async():
    async def work():
        name, here = unique("async"), await AsyncSandbox.connect(shared.sandbox_id)
        assert await AsyncTemplate.exists("base") and await AsyncVolume.list() == []
        await AsyncSecret.create(name, "v")
        assert await AsyncSecret.destroy(name)
        await here.files.make_dir("watched-async")
        seen = asyncio.Event()
        handle = await here.files.watch_dir("watched-async", lambda event: seen.set())
        await here.files.write("watched-async/new", "1")
        await asyncio.wait_for(seen.wait(), 30 * PATIENCE)
        await handle.stop()
        command = await here.commands.run("read line; echo got $line", background=True, stdin=True)
        await here.commands.send_stdin(command.pid, "it\n")
        assert (await command.wait()).stdout == "got it\n"
        output = bytearray()
        pty = await here.pty.create(PtySize(cols=80, rows=24), on_data=output.extend, timeout=0)
        await here.pty.resize(pty.pid, PtySize(cols=70, rows=20))
        await here.pty.send_stdin(pty.pid, b"stty size; exit\n")
        await pty.wait()
        assert b"20 70" in output, output
        await araises(TimeoutException, here.commands.run("sleep 1000", timeout=1))
        await araises(NotFoundException, here.files.read("nope"))
        pages, found = AsyncSandbox.list(), []
        while pages.has_next:
            found += [item.sandbox_id for item in await pages.next_items()]
        assert here.sandbox_id in found

    asyncio.run(work())


def check_async_code():
    async def work():
        box = await AsyncCodeSandbox.create(timeout=600)
        async with box:
            lines = []
            run = await box.run_code("print('a'); 6 * 7", on_stdout=lambda message: lines.append(message.line))
            assert (run.text, lines) == ("42", ["a\n"])
            context = await box.create_code_context(cwd="/tmp")
            runs = await asyncio.gather(box.run_code("import os; os.getcwd() == '/tmp'", context=context), box.run_code("1 + 1"))
            assert [run.text for run in runs] == ["True", "2"]

    asyncio.run(work())
