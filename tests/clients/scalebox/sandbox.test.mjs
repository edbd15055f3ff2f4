// SPDX-License-Identifier: Apache-2.0
// The life of a sandbox.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Sandbox } from "@scalebox/sdk";
import { sharedSandbox, waitUntil, withSandbox } from "./support.mjs";

const shared = sharedSandbox("code-interpreter", {
  metadata: { team: "blue", note: "žluť" },
  envs: { FOO: "bar" },
  timeoutMs: 600_000,
});

test("create gives one that runs", async () => {
  const sandbox = await shared();
  assert.match(sandbox.sandboxId, /^[a-z0-9]+$/);
  assert.equal(await sandbox.isRunning(), true);
});

test("getInfo tells what was asked for", async () => {
  const sandbox = await shared();
  const info = await sandbox.getInfo();
  assert.equal(info.sandboxId, sandbox.sandboxId);
  assert.equal(info.templateId, "code-interpreter");
  assert.deepEqual(info.metadata, { team: "blue", note: "žluť" });
  assert.equal(info.status, "running");
  assert.equal(info.timeout, 600);
  assert.ok(info.endAt.getTime() - Date.now() > 500_000);
  assert.ok(info.endAt.getTime() - Date.now() < 601_000);
  assert.ok(info.cpuCount >= 1 && info.memoryMB > 0);
  assert.equal(info.envdAccessToken, undefined);
});

test("environment variables reach commands", async () => {
  const sandbox = await shared();
  assert.equal((await sandbox.commands.run("echo $FOO")).stdout, "bar\n");
});

test("setTimeout moves the end", async () => {
  const sandbox = await shared();
  await sandbox.setTimeout(1_200_000);
  const info = await sandbox.getInfo();
  assert.ok(info.endAt.getTime() - Date.now() > 1_100_000);
});

test("connect finds it by its id", async () => {
  const sandbox = await shared();
  const again = await Sandbox.connect(sandbox.sandboxId);
  assert.equal((await again.commands.run("echo again")).stdout, "again\n");
});

test("list shows it", async () => {
  const sandbox = await shared();
  const items = await Sandbox.list({ query: { status: ["running"] } }).nextItems();
  const mine = items.find((item) => item.sandboxId === sandbox.sandboxId);
  assert.equal(mine.status, "running");
  assert.deepEqual(mine.metadata, { team: "blue", note: "žluť" });
});

test("getMetrics tells numbers", async () => {
  const sandbox = await shared();
  const [metrics] = await sandbox.getMetrics();
  assert.ok(metrics.memTotal > 0 && metrics.diskTotal > 0 && metrics.cpuCount >= 1);
  assert.ok(metrics.cpuUsedPct >= 0 && metrics.memUsed >= 0);
});

test("pause keeps the files, connect brings it back", async () => {
  await withSandbox(async (sandbox) => {
    await sandbox.files.write("/root/kept.txt", "kept");
    assert.equal(await sandbox.betaPause(), true);
    assert.equal((await sandbox.getInfo()).status, "paused");
    assert.equal(await sandbox.isRunning(), false);
    await assert.rejects(sandbox.files.exists("/root/kept.txt"), /paused/);
    const back = await Sandbox.connect(sandbox.sandboxId, { timeoutMs: 300_000 });
    assert.equal(await back.isRunning(), true);
    assert.equal(await back.files.read("/root/kept.txt"), "kept");
    const info = await back.getInfo();
    assert.equal(info.status, "running");
    assert.ok(info.endAt.getTime() - Date.now() < 301_000);
  });
});

test("kill ends it", async () => {
  await withSandbox(async (sandbox) => {
    await sandbox.kill();
    await waitUntil(async () => !(await sandbox.isRunning()), "not running");
    await waitUntil(
      () => sandbox.getInfo().then(() => false, (error) => error.name === "NotFoundError"),
      "NotFoundError",
    );
  });
});

test("a template that is not there is named", async () => {
  await assert.rejects(Sandbox.create("no-such-template"), /no-such-template.*not found/);
});

test("a wrong key is refused", async () => {
  await assert.rejects(Sandbox.create("base", { apiKey: "wrong" }), /UNAUTHORIZED/);
});

test("a sandbox that is not there", async () => {
  await assert.rejects(Sandbox.connect("nosuchsandbox"), /doesn't exist/);
});

test("another sandbox's token does not open it", async () => {
  const sandbox = await shared();
  await withSandbox(async (other) => {
    const url = `https://${sandbox.sandboxDomain}/download/etc/hostname`;
    const stranger = `${sandbox.sandboxId}:${other.envdAccessToken.split(":")[1]}`;
    const answer = await fetch(url, { headers: { "X-Access-Token": stranger } });
    assert.equal(answer.status, 401);
    assert.equal((await fetch(url)).status, 401);
  });
});
