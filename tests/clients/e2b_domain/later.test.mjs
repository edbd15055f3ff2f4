// SPDX-License-Identifier: Apache-2.0
// npm e2b 2.4.2 (its own routes to pause and resume), and the newest, by names of hosts over TLS.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Sandbox as Earlier } from "e2b-2.4";
import { Sandbox as Newest } from "e2b";
import { Sandbox as CodeSandbox } from "@e2b/code-interpreter";

async function works(Sandbox, version) {
  const mark = `${version}-${process.pid}`;
  const box = await Sandbox.create({ timeoutMs: 600_000, metadata: { mark } });
  try {
    await box.files.write("kept.txt", "kept");
    assert.equal((await box.commands.run("cat kept.txt")).stdout, "kept");
    assert.equal(await (await fetch(await box.downloadUrl("kept.txt"))).text(), "kept");
    const pages = Sandbox.list({ query: { metadata: { mark } }, limit: 1 });
    assert.equal((await pages.nextItems()).length, 1);
    assert.equal(pages.hasNext, false);
    await (box.pause ?? box.betaPause).call(box);
    assert.equal(await box.isRunning(), false);
    const again = await Sandbox.connect(box.sandboxId, { timeoutMs: 600_000 });
    assert.equal(await again.files.read("kept.txt"), "kept");
    assert.match(box.getHost(80), /^80-[a-z0-9]+\.boxes\.test:\d+$/);
  } finally {
    await box.kill();
  }
}

test("2.4 by domain", () => works(Earlier, "2.4"));
test("2.51 by domain", () => works(Newest, "2.51"));

test("code by domain", async () => {
  const box = await CodeSandbox.create({ timeoutMs: 600_000 });
  try {
    assert.equal((await box.runCode("6 * 7")).text, "42");
    assert.ok((await box.listCodeContexts()).length >= 2);
  } finally {
    await box.kill();
  }
});
