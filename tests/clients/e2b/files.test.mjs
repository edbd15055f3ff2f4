// SPDX-License-Identifier: Apache-2.0
// Files: every format, several at once, metadata, signed addresses, watching.

import assert from "node:assert/strict";
import { test } from "node:test";
import { FileNotFoundError, FileType, InvalidArgumentError, NotFoundError } from "e2b";
import { sharedSandbox, unique, waitUntil } from "./support.mjs";

const shared = sharedSandbox();

test("what was written is read again, as text, bytes, blob and stream", async () => {
  const box = await shared();
  const name = unique("text");
  const info = await box.files.write(name, "hällo wörld");
  assert.deepEqual(info, { path: `/home/user/${name}`, name, type: "file", metadata: undefined });
  assert.equal(await box.files.read(name), "hällo wörld");
  const bytes = await box.files.read(name, { format: "bytes" });
  assert.equal(Buffer.from(bytes).toString(), "hällo wörld");
  const blob = await box.files.read(name, { format: "blob" });
  assert.equal(await blob.text(), "hällo wörld");
  const stream = await box.files.read(name, { format: "stream" });
  assert.equal(await new Response(stream).text(), "hällo wörld");
});

test("an empty file is empty in every format", async () => {
  const box = await shared();
  const name = unique("empty");
  await box.files.write(name, "");
  assert.equal(await box.files.read(name), "");
  assert.equal((await box.files.read(name, { format: "bytes" })).length, 0);
  assert.equal((await box.files.read(name, { format: "blob" })).size, 0);
});

test("bytes, a stream, gzip and an octet stream arrive as they were sent", async () => {
  const box = await shared();
  const bytes = new Uint8Array(300_000).map((_, i) => (i * 7) & 0xff);
  for (const [what, data, options] of [
    ["array buffer", bytes.buffer, {}],
    ["blob", new Blob([bytes]), {}],
    ["stream", new Blob([bytes]).stream(), {}],
    ["gzip", bytes.buffer, { gzip: true }],
    ["octet", bytes.buffer, { useOctetStream: true }],
  ]) {
    const name = unique("bytes");
    await box.files.write(name, data, options);
    const got = await box.files.read(name, { format: "bytes" });
    assert.deepEqual(Buffer.from(got), Buffer.from(bytes), what);
  }
});

test("several files are written in one request", async () => {
  const box = await shared();
  const dir = `/tmp/${unique("many")}`;
  const written = await box.files.write([
    { path: `${dir}/a b.txt`, data: "one" },
    { path: `${dir}/deep/er/c.txt`, data: "two" },
  ]);
  assert.deepEqual(written.map((w) => w.path), [`${dir}/a b.txt`, `${dir}/deep/er/c.txt`]);
  assert.equal(await box.files.read(`${dir}/deep/er/c.txt`), "two");
});

test("files and the directories on their way belong to the user", async () => {
  const box = await shared();
  const dir = unique("own");
  await box.files.write(`${dir}/x/y.txt`, "1");
  for (const path of [dir, `${dir}/x`, `${dir}/x/y.txt`])
    assert.equal((await box.files.getInfo(path)).owner, "user", path);
  await box.files.write(`/root/${dir}.txt`, "1", { user: "root" });
  assert.equal((await box.files.getInfo(`${dir}.txt`, { user: "root" })).owner, "root");
});

test("metadata stays with a file", async () => {
  const box = await shared();
  const name = unique("meta");
  const info = await box.files.write(name, "1", { metadata: { color: "red", "a.b": "c d" } });
  assert.deepEqual(info.metadata, { color: "red", "a.b": "c d" });
  assert.deepEqual((await box.files.getInfo(name)).metadata, { color: "red", "a.b": "c d" });
  const listed = (await box.files.list(".")).find((e) => e.name === name);
  assert.deepEqual(listed.metadata, { color: "red", "a.b": "c d" });
});

test("lists, with depth", async () => {
  const box = await shared();
  const dir = unique("list");
  await box.files.write(`${dir}/a.txt`, "1");
  await box.files.write(`${dir}/sub/b.txt`, "22");
  const flat = await box.files.list(dir);
  assert.deepEqual(flat.map((e) => [e.name, e.type]), [["a.txt", FileType.FILE], ["sub", FileType.DIR]]);
  const deep = await box.files.list(dir, { depth: 2 });
  const found = deep.find((e) => e.path === `/home/user/${dir}/sub/b.txt`);
  assert.equal(found.size, 2);
  await assert.rejects(box.files.list(`${dir}/nope`), NotFoundError);
  await assert.rejects(box.files.list(`${dir}/a.txt`), InvalidArgumentError);
  await assert.rejects(box.files.list(dir, { depth: 0 }), InvalidArgumentError);
});

test("info of files, directories and links", async () => {
  const box = await shared();
  const dir = unique("info");
  await box.files.write(`${dir}/a.txt`, "hello");
  await box.commands.run(`cd ${dir} && ln -s a.txt link && chmod 640 a.txt`);
  const info = await box.files.getInfo(`${dir}/a.txt`);
  assert.equal(info.name, "a.txt");
  assert.equal(info.type, FileType.FILE);
  assert.equal(info.path, `/home/user/${dir}/a.txt`);
  assert.equal(info.size, 5);
  assert.equal(info.mode, 0o640);
  assert.equal(info.permissions, "-rw-r-----");
  assert.equal(info.group, "user");
  assert.ok(Math.abs(info.modifiedTime - Date.now()) < 600_000);
  const link = await box.files.getInfo(`${dir}/link`);
  assert.equal(link.symlinkTarget, "a.txt");
  assert.equal((await box.files.getInfo(dir)).type, FileType.DIR);
  await assert.rejects(box.files.getInfo(`${dir}/nope`), FileNotFoundError);
});

test("exists, makeDir, rename and remove", async () => {
  const box = await shared();
  const dir = unique("ops");
  assert.equal(await box.files.exists(dir), false);
  assert.equal(await box.files.makeDir(`${dir}/a/b`), true);
  assert.equal(await box.files.makeDir(`${dir}/a/b`), false);
  assert.equal(await box.files.exists(dir), true);
  await box.files.write(`${dir}/x`, "1");
  const moved = await box.files.rename(`${dir}/x`, `${dir}/new/y`);
  assert.equal(moved.path, `/home/user/${dir}/new/y`);
  assert.equal(await box.files.read(`${dir}/new/y`), "1");
  assert.equal(await box.files.exists(`${dir}/x`), false);
  await assert.rejects(box.files.rename(`${dir}/nope`, `${dir}/z`), NotFoundError);
  await box.files.remove(dir);
  assert.equal(await box.files.exists(dir), false);
  await box.files.remove(dir);
});

test("what cannot be read says why", async () => {
  const box = await shared();
  await assert.rejects(box.files.read("nope.txt"), FileNotFoundError);
  await assert.rejects(box.files.read("/tmp"), InvalidArgumentError);
  await assert.rejects(box.files.write("/tmp", "x"), InvalidArgumentError);
  await assert.rejects(box.files.read("x", { user: "nobodyhere" }), InvalidArgumentError);
});

test("signed addresses need no token, and no other path", async () => {
  const box = await shared();
  const name = unique("signed");
  await box.files.write(name, "signed");
  const url = await box.downloadUrl(name, { useSignatureExpiration: 60 });
  assert.equal(await (await fetch(url)).text(), "signed");
  const other = new URL(url);
  other.searchParams.set("path", "/etc/passwd");
  assert.equal((await fetch(other)).status, 401);
  const old = new URL(await box.downloadUrl(name, { useSignatureExpiration: -60 }));
  assert.equal((await fetch(old)).status, 401);
  const form = new FormData();
  form.append("file", new Blob(["up"]), "whatever");
  const sent = await fetch(await box.uploadUrl(`${name}.up`), { method: "POST", body: form });
  assert.equal(sent.status, 200);
  assert.equal(await box.files.read(`${name}.up`), "up");
});

test("a directory is watched, with all below it when asked for", async () => {
  const box = await shared();
  const dir = unique("watch");
  await box.files.makeDir(`${dir}/sub`);
  const flat = [], deep = [];
  const one = await box.files.watchDir(dir, (e) => flat.push(e));
  const two = await box.files.watchDir(dir, (e) => deep.push(e), { recursive: true, includeEntry: true });
  await box.files.write(`${dir}/a.txt`, "1");
  await box.files.write(`${dir}/sub/b.txt`, "1");
  await waitUntil(() => flat.some((e) => e.name === "a.txt"), "an event of a.txt");
  await waitUntil(() => deep.some((e) => e.name === "sub/b.txt"), "an event of sub/b.txt");
  assert.ok(!flat.some((e) => e.name.startsWith("sub/")));
  assert.ok(deep.some((e) => e.entry?.path === `/home/user/${dir}/a.txt`));
  await one.stop();
  await two.stop();
  await assert.rejects(box.files.watchDir(`${dir}/nope`, () => {}), NotFoundError);
});
