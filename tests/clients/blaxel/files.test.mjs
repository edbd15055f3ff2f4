// SPDX-License-Identifier: Apache-2.0
// Files and directories, one at a time.

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { noise, sharedSandbox } from "./support.mjs";

const shared = sharedSandbox();
const asBytes = async (blob) => Buffer.from(await blob.arrayBuffer());

test("text comes back as it was", async () => {
  const { fs } = await shared();
  for (const content of ["hello", "", "two\nlines\n", "žluťoučký 漢字 🦊", 'quo"tes\\ \t']) {
    assert.match((await fs.write("/tmp/text", content)).message, /success/);
    assert.equal(await fs.read("/tmp/text"), content);
  }
});

test("names with spaces and other letters", async () => {
  const { fs } = await shared();
  for (const path of ["/tmp/with space", "/tmp/ünï+100%&?#.txt", "/tmp/a'b\"c"]) {
    await fs.write(path, path);
    assert.equal(await fs.read(path), path);
    assert.ok((await fs.ls("/tmp")).files.some((file) => file.path === path), path);
  }
});

test("parent directories are made", async () => {
  const { fs } = await shared();
  await fs.write("/tmp/deep/er/and/er/file", "x");
  assert.equal(await fs.read("/tmp/deep/er/and/er/file"), "x");
});

test("a relative path is in the working directory", async () => {
  const { fs } = await shared();
  await fs.write("relative.txt", "here");
  assert.equal(await fs.read("/workspace/relative.txt"), "here");
  assert.equal(await fs.read("relative.txt"), "here");
});

test("~ is home", async () => {
  const { fs } = await shared();
  await fs.write("~/at-home.txt", "x");
  assert.equal(await fs.read("/root/at-home.txt"), "x");
});

test("ls shows files with everything about them, and directories", async () => {
  const { fs } = await shared();
  await fs.mkdir("/tmp/list/sub", "0700");
  await fs.write("/tmp/list/file.txt", "12345");
  const listing = await fs.ls("/tmp/list");
  assert.equal(listing.path, "/tmp/list");
  assert.equal(listing.name, "list");
  assert.deepEqual(listing.subdirectories, [{ path: "/tmp/list/sub", name: "sub" }]);
  const [file] = listing.files;
  assert.equal(file.path, "/tmp/list/file.txt");
  assert.equal(file.name, "file.txt");
  assert.equal(file.size, 5);
  assert.equal(file.permissions, "644");
  assert.equal(file.owner, "root");
  assert.equal(file.group, "root");
  assert.match(file.lastModified, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d/);
});

test("what is not there is 404, what is no directory is refused", async () => {
  const { fs } = await shared();
  await assert.rejects(fs.read("/tmp/none"), (error) => {
    assert.equal(error.name, "ResponseError");
    assert.equal(error.status, 404);
    assert.equal(typeof error.error.error, "string");
    assert.doesNotMatch(error.message, /object Object/);
    return true;
  });
  await assert.rejects(fs.ls("/tmp/none"), (error) => error.status === 404);
  await assert.rejects(fs.rm("/tmp/none"), (error) => error.status === 404);
  await fs.write("/tmp/plain", "x");
  await assert.rejects(fs.write("/tmp/plain/below", "x"), (error) => error.status === 422);
});

test("rm takes files, and directories with recursive alone", async () => {
  const { fs } = await shared();
  await fs.write("/tmp/rm/a/b", "x");
  await assert.rejects(fs.rm("/tmp/rm"), (error) => error.status === 422);
  await fs.rm("/tmp/rm/a/b");
  await fs.rm("/tmp/rm/a");
  await fs.write("/tmp/rm/c", "x");
  assert.match((await fs.rm("/tmp/rm", true)).message, /success/);
  await assert.rejects(fs.ls("/tmp/rm"), (error) => error.status === 404);
});

test("binary content of every kind of buffer", async () => {
  const { fs } = await shared();
  const bytes = noise(70_001);
  for (const content of [bytes, new Uint8Array(bytes), new Blob([bytes]), new File([bytes], "f")]) {
    await fs.writeBinary("/tmp/bin", content);
    assert.deepEqual(await asBytes(await fs.readBinary("/tmp/bin")), bytes);
  }
  await fs.writeBinary("/tmp/bin", Buffer.alloc(0));
  assert.equal((await fs.readBinary("/tmp/bin")).size, 0);
});

test("up and down from local files", async () => {
  const { fs } = await shared();
  const folder = mkdtempSync(join(tmpdir(), "cella-js-"));
  try {
    const bytes = noise(300_000, 7);
    writeFileSync(join(folder, "up"), bytes);
    await fs.writeBinary("/tmp/local", join(folder, "up"));
    await fs.download("/tmp/local", join(folder, "down"));
    assert.deepEqual(readFileSync(join(folder, "down")), bytes);
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("five megabytes as one form", async () => {
  const { fs } = await shared();
  const bytes = noise(5 * 1024 * 1024, 3);
  await fs.writeBinary("/tmp/five", bytes);
  assert.deepEqual(await asBytes(await fs.readBinary("/tmp/five")), bytes);
  assert.equal((await fs.ls("/tmp")).files.find((file) => file.name === "five").permissions, "644");
});

test("what looks like form data is content like any other", async () => {
  const { fs } = await shared();
  const content = Buffer.from('\r\n------formdata-undici-0\r\nContent-Disposition: form-data; name="permissions"\r\n\r\n0777\r\n--\r\n');
  await fs.writeBinary("/tmp/form", content);
  assert.deepEqual(await asBytes(await fs.readBinary("/tmp/form")), content);
  assert.equal((await fs.ls("/tmp")).files.find((file) => file.name === "form").permissions, "644");
});

test("twenty megabytes in parts", async () => {
  const { fs, process } = await shared();
  const bytes = noise(20 * 1024 * 1024 + 12_345, 11);
  const done = await fs.writeBinary("/tmp/twenty", bytes);
  assert.match(done.message, /success/);
  assert.ok((await asBytes(await fs.readBinary("/tmp/twenty"))).equals(bytes));
  const sum = await process.exec({ command: "sha256sum /tmp/twenty", waitForCompletion: true });
  assert.equal(sum.stdout.split(" ")[0], createHash("sha256").update(bytes).digest("hex"));
  assert.equal((await fs.ls("/tmp")).files.find((file) => file.name === "twenty").permissions, "644");
});

test("a long text in parts, at a relative path", async () => {
  const { fs } = await shared();
  const text = "žluťoučký kůň\n".repeat(400_000);
  await fs.write("long.txt", text);
  const back = await asBytes(await fs.readBinary("/workspace/long.txt"));
  assert.ok(back.equals(Buffer.from(text)));
});

test("an upload that was given up leaves nothing", async () => {
  const { fs } = await shared();
  const { uploadId } = await fs.initiateMultipartUpload("/tmp/given-up");
  const part = await fs.uploadPart(uploadId, 1, new Blob([noise(1000)]));
  assert.equal(part.partNumber, 1);
  assert.equal(part.size, 1000);
  assert.equal(part.etag, createHash("md5").update(noise(1000)).digest("hex"));
  await fs.abortMultipartUpload(uploadId);
  await assert.rejects(fs.completeMultipartUpload(uploadId, [part]));
  await assert.rejects(fs.read("/tmp/given-up"), (error) => error.status === 404);
});
