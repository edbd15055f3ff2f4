// SPDX-License-Identifier: Apache-2.0
// Many files at once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedSandbox } from "./support.mjs";

const shared = sharedSandbox();

test("writeTree makes files and directories below a path", async () => {
  const { fs } = await shared();
  const made = await fs.writeTree(
    [
      { path: "a.txt", content: "1" },
      { path: "deep/er/b.txt", content: "2" },
      { path: "empty", content: "" },
    ],
    "/tmp/tree",
  );
  assert.equal(made.path, "/tmp/tree");
  assert.deepEqual(made.files.map((file) => file.name).sort(), ["a.txt", "empty"]);
  assert.deepEqual(made.subdirectories.map((entry) => entry.path), ["/tmp/tree/deep"]);
  assert.equal(await fs.read("/tmp/tree/deep/er/b.txt"), "2");
  assert.equal(await fs.read("/tmp/tree/empty"), "");
});

test("a thousand files in one request", async () => {
  const { fs, process } = await shared();
  const files = Array.from({ length: 1000 }, (_, i) => ({ path: `d${i % 10}/f${i}`, content: `${i}` }));
  await fs.writeTree(files, "/tmp/thousand");
  const counted = await process.exec({
    command: "find /tmp/thousand -type f | wc -l",
    waitForCompletion: true,
  });
  assert.equal(counted.stdout.trim(), "1000");
  assert.equal(await fs.read("/tmp/thousand/d9/f999"), "999");
});

test("a tree that cannot be leaves nothing behind", async () => {
  const { fs } = await shared();
  await fs.write("/tmp/file", "x");
  await assert.rejects(
    fs.writeTree([{ path: "fine", content: "1" }, { path: "../../up", content: "2" }], "/tmp/not"),
    (error) => error.status === 400,
  );
  await assert.rejects(fs.ls("/tmp/not"), (error) => error.status === 404);
  await assert.rejects(
    fs.writeTree([{ path: "below", content: "1" }], "/tmp/file"),
    (error) => error.status === 422,
  );
});
