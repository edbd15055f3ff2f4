// SPDX-License-Identifier: Apache-2.0
// Sandboxes: made, found, listed, paused, copied, ended.

import assert from "node:assert/strict";
import { test } from "node:test";
import { AuthenticationError, NotFoundError, Sandbox, SandboxError, SandboxNotFoundError, TimeoutError } from "e2b";
import { unique, waitUntil, withSandbox } from "./support.mjs";

test("a sandbox says what it is", () =>
  withSandbox(async (box) => {
    const info = await box.getInfo();
    assert.equal(info.sandboxId, box.sandboxId);
    assert.equal(info.templateId, "base");
    assert.equal(info.state, "running");
    assert.deepEqual(info.metadata, { team: "blue", "Any key!": "any värlue" });
    assert.ok(info.endAt > info.startedAt);
    assert.ok(info.cpuCount >= 1 && info.memoryMB > 0);
    assert.deepEqual(info.lifecycle, { onTimeout: "kill", autoResume: false });
    assert.equal(await box.isRunning(), true);
  }, { metadata: { team: "blue", "Any key!": "any värlue" } }));

test("killing ends it, once", async () => {
  const box = await Sandbox.create();
  assert.equal(await box.kill(), true);
  assert.equal(await box.kill(), false);
  assert.equal(await Sandbox.kill("nosuchsandbo"), false);
  await assert.rejects(Sandbox.getInfo(box.sandboxId), SandboxNotFoundError);
  await assert.rejects(box.setTimeout(1000), SandboxNotFoundError);
  await assert.rejects(Sandbox.connect(box.sandboxId), SandboxNotFoundError);
  assert.equal(await box.isRunning(), false);
  await assert.rejects(box.commands.run("true"), (err) => err instanceof SandboxNotFoundError || err instanceof TimeoutError);
  await assert.rejects(box.files.read("x"), TimeoutError);
});

test("the time-out is set, and ends it", async () => {
  const box = await Sandbox.create({ timeoutMs: 600_000 });
  await box.setTimeout(120_000);
  const { endAt } = await box.getInfo();
  assert.ok(Math.abs(endAt - Date.now() - 120_000) < 60_000);
  await box.setTimeout(1000);
  await waitUntil(async () => !(await box.isRunning()), "the end of its time");
  await waitUntil(async () => !(await box.kill()), "its being gone");
});

test("connecting to one that runs never takes time off", () =>
  withSandbox(async (box) => {
    const other = await Sandbox.connect(box.sandboxId, { timeoutMs: 10_000 });
    await box.files.write("shared.txt", "1");
    assert.equal(await other.files.read("shared.txt"), "1");
    const { endAt } = await box.getInfo();
    assert.ok(endAt - Date.now() > 300_000);
  }));

test("a pause keeps the files", () =>
  withSandbox(async (box) => {
    await box.files.write("kept.txt", "still here");
    assert.equal(await box.pause(), true);
    assert.equal(await box.pause(), false);
    assert.equal((await Sandbox.getInfo(box.sandboxId)).state, "paused");
    assert.equal(await box.isRunning(), false);
    for (let round = 0; round < 2; round += 1) {
      const back = await Sandbox.connect(box.sandboxId, { timeoutMs: 600_000 });
      assert.equal(await back.files.read("kept.txt"), "still here");
      assert.equal((await back.getInfo()).state, "running");
      await back.pause();
    }
  }));

test("a pause keeps what runs, unless only the files are wanted", () =>
  withSandbox(async (box) => {
    const counter = await box.commands.run("i=0; while :; do i=$((i + 1)); echo $i > /tmp/count; sleep 0.02; done", {
      background: true,
      timeoutMs: 0,
    });
    const count = async (of) => Number((await of.commands.run("cat /tmp/count")).stdout);
    await waitUntil(async () => (await box.files.exists("/tmp/count")) && (await count(box)) > 0, "a count");
    await box.pause();
    let back = await Sandbox.connect(box.sandboxId, { timeoutMs: 600_000 });
    const last = await count(back);
    await waitUntil(async () => (await count(back)) > last, "the count goes on");
    assert.ok((await back.commands.list()).some((process) => process.pid === counter.pid));
    await back.pause({ keepMemory: false });
    back = await Sandbox.connect(box.sandboxId, { timeoutMs: 600_000 });
    assert.ok(!(await back.commands.list()).some((process) => process.cmd.includes("/tmp/count")));
    assert.equal((await back.getInfo()).state, "running");
  }));

test("a pause that keeps no memory cannot be ended by who comes", () =>
  assert.rejects(
    Sandbox.create({ lifecycle: { onTimeout: { action: "pause", keepMemory: false }, autoResume: true } }),
    /autoResume/,
  ));

test("one that is to pause at its time-out can be woken by who comes", async () => {
  const box = await Sandbox.create({ timeoutMs: 600_000, lifecycle: { onTimeout: "pause", autoResume: true } });
  try {
    assert.deepEqual((await box.getInfo()).lifecycle, { onTimeout: "pause", autoResume: true });
    await box.files.write("kept.txt", "1");
    await box.pause();
    assert.equal(await box.files.read("kept.txt"), "1");
    await box.setTimeout(1000);
    await waitUntil(async () => (await box.getInfo()).state === "paused", "the pause");
  } finally {
    await box.kill();
  }
});

test("lists have pages, states and metadata", async () => {
  const mark = unique("list");
  const made = [];
  try {
    for (let i = 0; i < 3; i += 1)
      made.push(await Sandbox.create({ timeoutMs: 600_000, metadata: { mark, "a b&c": "d=e&f" } }));
    await made[0].pause();
    const ids = async (query, limit = 2) => {
      const pages = Sandbox.list({ query: { metadata: { mark }, ...query }, limit });
      const found = [];
      while (pages.hasNext) found.push(...(await pages.nextItems()));
      return found.map((item) => item.sandboxId).sort();
    };
    const all = made.map((box) => box.sandboxId);
    assert.deepEqual(await ids({}), [...all].sort());
    assert.deepEqual(await ids({ state: ["paused"] }), [all[0]]);
    assert.deepEqual(await ids({ state: ["running"] }), [all[1], all[2]].sort());
    assert.deepEqual(await ids({ metadata: { mark, "a b&c": "d=e&f" } }), [...all].sort());
    assert.deepEqual(await ids({ metadata: { mark, "a b&c": "other" } }), []);
  } finally {
    await Promise.all(made.map((box) => box.kill()));
  }
});

test("metrics come", () =>
  withSandbox(async (box) => {
    const [newest] = (await box.getMetrics()).slice(-1);
    assert.ok(newest.memTotal > 0 && newest.diskTotal > 0 && newest.cpuCount >= 1);
    assert.ok(newest.timestamp instanceof Date);
  }));

test("snapshots: sandboxes are made of them", async () => {
  const name = unique("snap");
  const made = [];
  let snapshot;
  try {
    const box = await Sandbox.create({ timeoutMs: 600_000 });
    made.push(box);
    await box.files.write("state.txt", "at the snapshot");
    snapshot = await box.createSnapshot({ name });
    await box.files.write("state.txt", "later");
    assert.deepEqual(snapshot.names, [name]);
    const again = await Sandbox.create(snapshot.snapshotId, { timeoutMs: 600_000 });
    made.push(again);
    assert.equal(await again.files.read("state.txt"), "at the snapshot");
    const byName = await Sandbox.create(name, { timeoutMs: 600_000 });
    made.push(byName);
    assert.equal(await byName.files.read("state.txt"), "at the snapshot");
    const pages = box.listSnapshots();
    assert.deepEqual((await pages.nextItems()).map((s) => s.snapshotId), [snapshot.snapshotId]);
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true);
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), false);
    snapshot = undefined;
  } finally {
    await Promise.all(made.map((box) => box.kill()));
    if (snapshot) await Sandbox.deleteSnapshot(snapshot.snapshotId);
  }
});

test("forks go their own way", () =>
  withSandbox(async (box) => {
    await box.files.write("from.txt", "parent");
    const forks = await box.fork({ count: 2, timeoutMs: 600_000 });
    try {
      assert.equal(forks.length, 2);
      for (const fork of forks) {
        assert.equal(await fork.files.read("from.txt"), "parent");
        await fork.files.write("from.txt", "child");
      }
      assert.equal(await box.files.read("from.txt"), "parent");
    } finally {
      await Promise.all(forks.map((fork) => fork.kill?.()));
    }
  }));

test("a wrong key, a wrong token and an unknown template are told", async () => {
  await assert.rejects(Sandbox.create({ apiKey: "e2b_00" }), AuthenticationError);
  await assert.rejects(Sandbox.create("no-such-template"), (err) => err instanceof SandboxError && /no-such-template/.test(err.message));
  await withSandbox(async (box) => {
    const answer = await fetch(`${process.env.E2B_SANDBOX_URL}/files?path=/etc/passwd`, {
      headers: { "E2b-Sandbox-Id": box.sandboxId, "E2b-Sandbox-Port": "49983" } });
    assert.equal(answer.status, 401);
  });
});

test("ports are open, or ask for the sandbox's token", async () => {
  for (const allowPublicTraffic of [true, false])
    await withSandbox(async (box) => {
      await box.commands.run("python3 -m http.server 3000 --directory /etc", { background: true, timeoutMs: 0 });
      const get = (headers) => fetch(`${process.env.E2B_SANDBOX_URL}/hostname`, {
        headers: { "E2b-Sandbox-Id": box.sandboxId, "E2b-Sandbox-Port": "3000", ...headers } });
      const token = { "E2b-Traffic-Access-Token": box.trafficAccessToken };
      await waitUntil(async () => (await get(token)).status === 200, "the web server");
      assert.equal((await get({})).status, allowPublicTraffic ? 200 : 403);
      assert.equal(await (await get(token)).text(), await box.files.read("/etc/hostname"));
    }, { network: { allowPublicTraffic } });
});
