// SPDX-License-Identifier: Apache-2.0
// Whatever goes wrong comes as the exception that the client has for it.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  AuthenticationError, FileNotFoundError, InvalidArgumentError, NotEnoughSpaceError, NotFoundError, RateLimitError,
  Sandbox, SandboxNotFoundError, TimeoutError,
} from "e2b";
import { Sandbox as CodeInterpreter } from "@e2b/code-interpreter";
import { sharedSandbox, withSandbox } from "./support.mjs";

const shared = sharedSandbox();

test("what is not there", async () => {
  const box = await shared();
  await assert.rejects(box.files.read("nope"), FileNotFoundError);
  await assert.rejects(box.files.list("/nope"), FileNotFoundError);
  await assert.rejects(box.files.getInfo("nope"), FileNotFoundError);
  await assert.rejects(box.files.rename("nope", "other"), FileNotFoundError);
  await assert.rejects(box.files.watchDir("/nope", () => {}), FileNotFoundError);
  await assert.rejects(box.commands.connect(99999), NotFoundError);
  await assert.rejects(box.commands.sendStdin(99999, "x"), NotFoundError);
  assert.equal(await box.commands.kill(99999), false);
  await assert.rejects(Sandbox.connect("nope"), SandboxNotFoundError);
  await assert.rejects(Sandbox.setTimeout("nope", 1000), NotFoundError);
});

test("arguments that are none", async () => {
  const box = await shared();
  await assert.rejects(box.files.read("/etc"), InvalidArgumentError);
  await assert.rejects(box.files.list("/etc/passwd"), InvalidArgumentError);
  await assert.rejects(box.files.watchDir("/etc/passwd", () => {}), InvalidArgumentError);
  await assert.rejects(box.files.read("x", { user: "nobody-here" }), InvalidArgumentError);
  await assert.rejects(box.commands.run("true", { user: "nobody-here" }), InvalidArgumentError);
  await assert.rejects(box.commands.run("true", { cwd: "/nope" }), InvalidArgumentError);
});

test("keys that are none", async () => {
  const apiKey = "e2b_" + "0".repeat(40);
  await assert.rejects(Sandbox.create({ apiKey }), AuthenticationError);
  await assert.rejects(Sandbox.list({ apiKey }).nextItems(), AuthenticationError);
});

test("a full disk", () =>
  withSandbox(async (box) => {
    const key = Buffer.from(process.env.E2B_API_KEY.slice(4), "hex").toString();
    const smaller = await fetch(`${process.env.E2B_API_URL}/v0/sandbox/${box.sandboxId}`, {
      method: "PATCH",
      headers: { Authorization: `Bearer ${key}`, "Content-Type": "application/json" },
      body: JSON.stringify({ spec: { resources: { disk: "64Mi" } } }),
    });
    assert.equal(smaller.status, 200, await smaller.text());
    await assert.rejects(box.files.write("large", new Uint8Array(100 << 20)), NotEnoughSpaceError);
    await box.files.write("small", "fits");
  }));

test("too many watches", async () => {
  const box = await shared();
  const watches = [];
  try {
    await assert.rejects(async () => {
      while (watches.length < 100) watches.push(await box.files.watchDir("/tmp", () => {}));
    }, RateLimitError);
  } finally {
    await Promise.all(watches.map((watch) => watch.stop()));
  }
  assert.equal((await box.commands.run("echo on")).stdout, "on\n");
});

test("time that is over", async () => {
  const box = await shared();
  await assert.rejects(box.commands.run("sleep 1000", { timeoutMs: 300 }), TimeoutError);
});

test("a sandbox that is gone", async () => {
  const box = await Sandbox.create({ timeoutMs: 600_000 });
  let begun;
  const first = new Promise((resolve) => { begun = resolve; });
  const run = assert.rejects(
    box.commands.run("echo begun; sleep 1000", { timeoutMs: 0, onStdout: begun }), TimeoutError);
  await first;
  const handle = await box.commands.run("sleep 1000", { background: true, timeoutMs: 0 });
  const wait = assert.rejects(handle.wait(), TimeoutError);
  assert.equal(await box.kill(), true);
  await Promise.all([run, wait]);
  await assert.rejects(box.files.read("x"), TimeoutError);
  await assert.rejects(box.files.list("/"), TimeoutError);
  await assert.rejects(box.commands.run("true"), (err) => err instanceof SandboxNotFoundError || err instanceof TimeoutError);
  assert.equal(await box.isRunning(), false);
  assert.equal(await box.kill(), false);
});

test("code in a sandbox that is gone", async () => {
  const box = await CodeInterpreter.create({ timeoutMs: 600_000 });
  let begun;
  const first = new Promise((resolve) => { begun = resolve; });
  const run = box.runCode("print(1, flush=True)\nimport time\ntime.sleep(1000)", { timeoutMs: 0, onStdout: begun });
  await first;
  await box.kill();
  const said = await run.catch((err) => ({ error: err }));
  assert.ok(said.error, "the run was told as a success");
  // The client keeps its timer after a refusal, and Node waits for it.
  await assert.rejects(box.runCode("1", { requestTimeoutMs: 2000 }), TimeoutError);
});
