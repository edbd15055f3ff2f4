// SPDX-License-Identifier: Apache-2.0
// Finding files, and being told of changes.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedSandbox, waitUntil } from "./support.mjs";

const bare = sharedSandbox();
let filled;
async function shared() {
  const sandbox = await bare();
  filled ??= sandbox.fs.writeTree(
    [
      { path: "src/main.ts", content: "const needle = 1;\nlet other;\n" },
      { path: "src/deep/Helper.ts", content: "// Needle here\n" },
      { path: "readme.txt", content: "a needle in text\n" },
      { path: "node_modules/x/main.ts", content: "needle\n" },
      { path: ".hidden/main.ts", content: "needle\n" },
    ],
    "/tmp/project",
  );
  await filled;
  return sandbox;
}
const paths = (found) => found.matches.map((match) => match.path).sort();

test("find by pattern and type", async () => {
  const { fs } = await shared();
  const found = await fs.find("/tmp/project", { type: "file", patterns: ["*.ts"] });
  assert.deepEqual(paths(found), ["/tmp/project/src/deep/Helper.ts", "/tmp/project/src/main.ts"]);
  assert.equal(found.total, 2);
  assert.ok(found.matches.every((match) => match.type === "file"));
  const directories = await fs.find("/tmp/project", {
    type: "directory",
    patterns: ["src", "deep", "x"],
  });
  assert.deepEqual(paths(directories), ["/tmp/project/src", "/tmp/project/src/deep"]);
});

test("find what is left out by default", async () => {
  const { fs } = await shared();
  const all = await fs.find("/tmp/project", {
    patterns: ["main.ts"],
    excludeDirs: ["nothing"],
    excludeHidden: false,
    maxResults: 0,
  });
  assert.equal(all.total, 3);
  const one = await fs.find("/tmp/project", { type: "file", maxResults: 1 });
  assert.equal(one.matches.length, 1);
});

test("grep tells where", async () => {
  const { fs } = await shared();
  const found = await fs.grep("needle", "/tmp/project");
  assert.equal(found.query, "needle");
  const main = found.matches.find((match) => match.path === "/tmp/project/src/main.ts");
  assert.equal(main.line, 1);
  assert.equal(main.column, 7);
  assert.equal(main.text, "const needle = 1;");
  assert.ok(found.matches.some((match) => match.path.endsWith("Helper.ts")));
  assert.ok(!found.matches.some((match) => match.path.includes("node_modules")));
  const strict = await fs.grep("needle", "/tmp/project", { caseSensitive: true, filePattern: "*.ts" });
  assert.ok(!strict.matches.some((match) => /Helper|readme/.test(match.path)));
  assert.deepEqual((await fs.grep("no such text", "/tmp/project")).matches, []);
});

test("search lists with a score", async () => {
  const { fs } = await shared();
  const found = await fs.search("main", "/tmp/project", { patterns: ["*.ts"], maxResults: 10 });
  assert.ok(found.matches.some((match) => match.path === "/tmp/project/src/main.ts"));
  assert.ok(found.matches.every((match) => typeof match.score === "number"));
});

test("a directory that is not there", async () => {
  const { fs } = await shared();
  await assert.rejects(fs.find("/tmp/none"), (error) => error.status === 404);
  await assert.rejects(fs.grep("x", "/tmp/none"), (error) => error.status === 404);
});

// A watch stands a moment after watch() has returned; so a file is made again and again until told.
async function watchUntilTold(sandbox, path, options) {
  const events = [];
  const handle = sandbox.fs.watch(path, (event) => events.push(event), options);
  let round = 0;
  await waitUntil(async () => {
    await sandbox.fs.write(`/tmp/watched/probe-${(round += 1)}`, "x");
    return events.length > 0;
  }, "the watch to stand");
  return { events, handle };
}

test("watch tells of files that come, change and go", async () => {
  const sandbox = await shared();
  await sandbox.fs.mkdir("/tmp/watched");
  const { events, handle } = await watchUntilTold(sandbox, "/tmp/watched");
  try {
    await sandbox.fs.write("/tmp/watched/file.txt", "one");
    const has = (op, name) => () => events.some((event) => event.op === op && event.name === name);
    await waitUntil(has("CREATE", "file.txt"), "CREATE");
    await sandbox.process.exec({ command: "echo two >> /tmp/watched/file.txt", waitForCompletion: true });
    await waitUntil(has("WRITE", "file.txt"), "WRITE");
    await sandbox.fs.rm("/tmp/watched/file.txt");
    await waitUntil(has("REMOVE", "file.txt"), "REMOVE");
    assert.ok(events.every((event) => event.path === "/tmp/watched"));
  } finally {
    handle.close();
  }
});

test("watch with content, below, and without what is ignored", async () => {
  const sandbox = await shared();
  await sandbox.fs.mkdir("/tmp/watched/sub");
  const { events, handle } = await watchUntilTold(sandbox, "/tmp/watched/**", {
    withContent: true,
    ignore: ["*.log"],
  });
  try {
    await sandbox.fs.write("/tmp/watched/sub/a.log", "ignored");
    await sandbox.fs.write("/tmp/watched/sub/b.txt", "seen");
    await waitUntil(
      () => events.some((event) => event.name === "b.txt" && event.content === "seen"),
      "the file with its content",
    );
    assert.ok(!events.some((event) => event.name === "a.log"));
  } finally {
    handle.close();
  }
});

test("watching what is not there is an error", async () => {
  const sandbox = await shared();
  const errors = [];
  sandbox.fs.watch("/tmp/no-such-folder", () => {}, { onError: (error) => errors.push(error) });
  await waitUntil(() => errors.length === 1, "the error");
});
