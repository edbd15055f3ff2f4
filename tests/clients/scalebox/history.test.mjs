// SPDX-License-Identifier: Apache-2.0
// What this client's commands, code and files leave in a sandbox's history, which the client knows nothing of.

import assert from "node:assert/strict";
import { test } from "node:test";
import { withSandbox } from "./support.mjs";

async function newest(id) {
  const answer = await fetch(`${process.env.SCALEBOX_API_URL}/v0/sandbox/${id}/history`, {
    headers: { Authorization: `Bearer ${process.env.SCALEBOX_API_KEY}` },
  });
  assert.equal(answer.status, 200);
  const [commit] = (await answer.json()).history;
  assert.match(commit.id, /^exec_[0-9a-f]{8}$/);
  return commit.files;
}

test("commands, code and files are in the history", async () => {
  await withSandbox(async (box) => {
    await box.commands.run("echo 1 > /workspace/first");
    await box.commands.run("echo 1 > /workspace/by-a-command");
    assert.deepEqual(await newest(box.sandboxId), ["by-a-command"]);
    await box.runCode("open('/workspace/by-code', 'w').write('1')", { language: "python" });
    assert.deepEqual(await newest(box.sandboxId), ["by-code"]);
    await box.files.write("/workspace/by-hand", "1");
    await box.commands.run("true");
    assert.deepEqual(await newest(box.sandboxId), ["by-hand"]);
  });
});
