// SPDX-License-Identifier: Apache-2.0
// Files: whole ones over TLS, everything else over RPC.

import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { sharedSandbox, waitUntil } from "./support.mjs";

const shared = sharedSandbox();

test("text comes back as it was", async () => {
  const { files } = await shared();
  for (const content of ["hello", "", "two\nlines\n", "žluťoučký 漢字 🦊"]) {
    const written = await files.write("/tmp/text.txt", content);
    assert.deepEqual(written, { name: "text.txt", type: "file", path: "/tmp/text.txt" });
    assert.equal(await files.read("/tmp/text.txt"), content);
  }
});

test("bytes of any size", async () => {
  const { files } = await shared();
  const bytes = Buffer.alloc(3_000_000, "0123456789abcde");
  await files.write("/tmp/big", bytes.buffer.slice(bytes.byteOffset, bytes.byteOffset + bytes.length));
  const back = Buffer.from(await files.read("/tmp/big", { format: "bytes" }), "base64");
  assert.ok(back.equals(bytes));
});

test("a blob, and a stream", async () => {
  const { files } = await shared();
  await files.write("/tmp/blob", new Blob(["from ", "a blob"]));
  assert.equal(await files.read("/tmp/blob"), "from a blob");
  await files.write("/tmp/streamed", new Blob(["from a stream"]).stream());
  const chunks = [];
  for await (const chunk of await files.read("/tmp/streamed", { format: "stream" })) chunks.push(chunk);
  assert.equal(Buffer.concat(chunks).toString(), "from a stream");
});

test("parent directories are made", async () => {
  const { files } = await shared();
  await files.write("/tmp/deep/er/file", "x");
  assert.equal(await files.read("/tmp/deep/er/file"), "x");
});

test("makeDir, list, stat", async () => {
  const { files } = await shared();
  assert.equal((await files.makeDir("/tmp/dir")).type, "directory");
  await files.write("/tmp/dir/file.txt", "12345");
  await files.makeDir("/tmp/dir/sub");
  await files.write("/tmp/dir/sub/below", "x");
  const entries = await files.list("/tmp/dir");
  assert.deepEqual(entries.map((e) => [e.name, e.type]).sort(), [["file.txt", "file"], ["sub", "directory"]]);
  const all = await files.list("/tmp/dir", { recursive: true });
  assert.ok(all.some((e) => e.path === "/tmp/dir/sub/below"));
  const info = await files.stat("/tmp/dir/file.txt");
  assert.equal(info.size, 5);
  assert.equal(info.owner, "root");
  assert.ok(Math.abs(info.modifiedAt.getTime() - Date.now()) < 3_600_000);
});

test("exists", async () => {
  const { files } = await shared();
  await files.write("/tmp/there", "x");
  assert.equal(await files.exists("/tmp/there"), true);
  assert.equal(await files.exists("/tmp/not-there"), false);
  assert.equal(await files.exists("/tmp/there/below-a-file"), false);
});

test("move and remove", async () => {
  const { files } = await shared();
  await files.write("/tmp/from", "moved");
  const moved = await files.move("/tmp/from", "/tmp/to");
  assert.equal(moved.path, "/tmp/to");
  assert.equal(await files.read("/tmp/to"), "moved");
  assert.equal(await files.exists("/tmp/from"), false);
  await files.remove("/tmp/to");
  assert.equal(await files.exists("/tmp/to"), false);
});

test("a file that is not there says so", async () => {
  const { files } = await shared();
  await assert.rejects(files.read("/tmp/nope"), /not found/);
  await assert.rejects(files.stat("/tmp/nope"), /not found/);
  await assert.rejects(files.list("/tmp/nope"), /not found/);
});

test("bytes of every value", async () => {
  const { files } = await shared();
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  await files.write("/tmp/every", bytes.buffer);
  assert.deepEqual([...Buffer.from(await files.read("/tmp/every", { format: "bytes" }), "base64")], [...bytes]);
});

test("signed addresses work without a token", async () => {
  const sandbox = await shared();
  await sandbox.files.write("/tmp/signed.txt", "signed");
  const url = await sandbox.downloadUrl("/tmp/signed.txt", { useSignatureExpiration: 600 });
  const answer = await fetch(url);
  assert.equal(answer.status, 200);
  assert.equal(await answer.text(), "signed");
  assert.equal((await fetch(url.replace("signed.txt", "other.txt"))).status, 401);
  const form = new FormData();
  form.append("file", new Blob(["by address"]), "x");
  const up = await fetch(await sandbox.uploadUrl("/tmp/by-address.txt"), { method: "POST", body: form });
  assert.equal(up.status, 200);
  assert.equal(await sandbox.files.read("/tmp/by-address.txt"), "by address");
});

test("watchers tell what happened", async () => {
  const { files } = await shared();
  await files.makeDir("/tmp/watched");
  const watcher = await files.createWatcher("/tmp/watched");
  await files.write("/tmp/watched/new.txt", "x");
  const seen = [];
  await waitUntil(async () => {
    seen.push(...(await watcher.getEvents()));
    return seen.some((event) => event.name === "new.txt" && event.type === "create");
  }, "an event of new.txt");
  await watcher.remove();
  await assert.rejects(watcher.getEvents(), /not found/);
});

test("watchDir streams what happens", async () => {
  const { files } = await shared();
  await files.makeDir("/tmp/streamed-dir");
  const events = files.watchDir("/tmp/streamed-dir");
  let done = false;
  const writing = (async () => {
    for (let i = 0; !done; i += 1) {
      await files.write(`/tmp/streamed-dir/f${i}`, "x");
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  })();
  const { value } = await events.next();
  done = true;
  await writing;
  assert.match(value.name, /^f\d+$/);
  await events.return();
});

test("files of this machine, up and down", async () => {
  // The client looks for a global require, which bundlers give it and modules do not have.
  globalThis.require = createRequire(import.meta.url);
  const sandbox = await shared();
  const folder = mkdtempSync(join(tmpdir(), "cella-test-"));
  try {
    writeFileSync(join(folder, "up"), Buffer.from([0, 1, 254, 255]));
    await sandbox.uploadFile(join(folder, "up"), "/tmp/from-here");
    const done = await sandbox.downloadFile("/tmp/from-here", join(folder, "a", "down"));
    assert.equal(done.size, 4);
    assert.deepEqual([...readFileSync(join(folder, "a", "down"))], [0, 1, 254, 255]);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("names with letters and blanks", async () => {
  const { files } = await shared();
  for (const path of ["/tmp/žluť 1.txt", "/tmp/a+b&c=d.txt", "/tmp/deep dir/x"]) {
    await files.write(path, path);
    assert.equal(await files.read(path), path);
    assert.equal((await files.stat(path)).path, path);
  }
});

test("another user's files are theirs", async () => {
  const { files } = await shared();
  await files.write("/tmp/theirs.txt", "x", { user: "nobody" });
  assert.equal((await files.stat("/tmp/theirs.txt")).owner, "nobody");
  await assert.rejects(files.write("/tmp/x", "x", { user: "no-such-user" }), /no-such-user/);
});

test("a link tells where it leads", async () => {
  const { files, commands } = await shared();
  await commands.run("ln -sfn /etc/hostname /tmp/link");
  assert.equal((await files.stat("/tmp/link")).symlinkTarget, "/etc/hostname");
});

test("watchers below", async () => {
  const { files } = await shared();
  await files.makeDir("/tmp/tree/sub");
  const watcher = await files.createWatcher("/tmp/tree", { recursive: true });
  await files.write("/tmp/tree/sub/new.txt", "x");
  const seen = [];
  await waitUntil(async () => {
    seen.push(...(await watcher.getEvents()));
    return seen.some((event) => event.name === "sub/new.txt");
  }, () => JSON.stringify(seen));
  await watcher.remove();
});
