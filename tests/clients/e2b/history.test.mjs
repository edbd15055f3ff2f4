// SPDX-License-Identifier: Apache-2.0
// What this client's commands, code and files leave in a sandbox's history, which the client knows nothing of.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Sandbox } from "@e2b/code-interpreter";

const key = Buffer.from(process.env.E2B_API_KEY.slice("e2b_".length), "hex").toString();

async function commits(id) {
  const answer = await fetch(`${process.env.E2B_API_URL}/v0/sandbox/${id}/history`, {
    headers: { Authorization: `Bearer ${key}` },
  });
  assert.equal(answer.status, 200);
  return (await answer.json()).history;
}

test("commands, code and files are in the history", async () => {
  const box = await Sandbox.create({ timeoutMs: 600_000 });
  try {
    await box.commands.run("true");
    await box.commands.run("echo 1 > by-a-command");
    assert.deepEqual((await commits(box.sandboxId))[0].files, ["/home/user/by-a-command"]);
    await box.runCode("open('by-code', 'w').write('1')");
    assert.deepEqual((await commits(box.sandboxId))[0].files, ["/home/user/by-code"]);
    await box.files.write("by-hand", "1");
    await box.commands.run("true");
    const all = await commits(box.sandboxId);
    assert.deepEqual(all[0].files, ["/home/user/by-hand"]);
    assert.deepEqual(all.map((commit) => /^exec_[0-9a-f]{8}$|^unknown$/.test(commit.id)), all.map(() => true));
    assert.equal(new Set(all.map((commit) => commit.id)).size, all.length);
  } finally {
    await box.kill();
  }
});
