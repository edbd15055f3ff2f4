// SPDX-License-Identifier: Apache-2.0
// What the tests share. The client itself is taken as npm gives it.

import assert from "node:assert/strict";
import { after } from "node:test";
import { Sandbox } from "@scalebox/sdk";

const patience = Number(process.env.CELLA_TEST_PATIENCE ?? "1");

// A sandbox for this test alone.
export async function withSandbox(use, options = {}) {
  const sandbox = await Sandbox.create("base", options);
  try {
    return await use(sandbox);
  } finally {
    await sandbox.kill().catch(() => {});
  }
}

// One that all tests of a file share; removed at the end.
export function sharedSandbox(template = "base", options = {}) {
  let made;
  after(async () => {
    if (made) await (await made).kill();
  });
  return () => (made ??= Sandbox.create(template, options));
}

// Polls until `check` gives something true; nothing here waits for luck.
export async function waitUntil(check, what, seconds = 30) {
  const deadline = Date.now() + seconds * patience * 1000;
  for (;;) {
    const got = await check();
    if (got) return got;
    assert.ok(Date.now() < deadline, `in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}
