// SPDX-License-Identifier: Apache-2.0
// What this client's processes and files leave in a sandbox's history. The client hands on what it does not know, so
// that an execution's id can be had of it.

import assert from "node:assert/strict";
import { test } from "node:test";
import { uniqueName, withSandbox } from "./support.mjs";

async function newest(name) {
  const answer = await fetch(`${process.env.BL_API_URL}/sandbox/${name}/history`, {
    headers: { Authorization: `Bearer ${process.env.BL_API_KEY}` },
  });
  assert.equal(answer.status, 200);
  return (await answer.json()).history[0];
}

test("processes and files are in the history", async () => {
  await withSandbox(async (sandbox) => {
    const run = (command) =>
      sandbox.process.exec({ name: uniqueName("p"), command, workingDir: "/workspace", waitForCompletion: true });
    await run("echo 1 > first");
    const done = await run("echo 1 > by-a-process");
    const commit = await newest(sandbox.metadata.name);
    assert.deepEqual(commit.files, ["by-a-process"]);
    assert.equal(done.executionId, commit.id);
    await sandbox.fs.write("/workspace/by-hand", "1");
    const after = await run("true");
    assert.deepEqual(await newest(sandbox.metadata.name), { ...(await newest(sandbox.metadata.name)), files: ["by-hand"],
      id: after.executionId });
  });
});
