// SPDX-License-Identifier: Apache-2.0
// A chat whose user comes back later: one sandbox per conversation, found again by its metadata, paused between
// turns, with its files and its interpreter's contexts; a terminal in a browser; and its end.

import assert from "node:assert/strict";
import { Sandbox } from "@e2b/code-interpreter";

const conversation = `c-${process.pid}-${Date.now()}`;

async function sandboxOf(id) {
  const pages = Sandbox.list({ query: { metadata: { conversation: id }, state: ["running", "paused"] } });
  const [found] = await pages.nextItems();
  if (found) return Sandbox.connect(found.sandboxId, { timeoutMs: 120_000 });
  return Sandbox.create({ metadata: { conversation: id }, timeoutMs: 120_000, lifecycle: { onTimeout: "pause", autoResume: true } });
}

const first = await sandboxOf(conversation);
try {
  const { logs } = await first.runCode("notes = ['milk']\nprint(len(notes))");
  assert.deepEqual(logs.stdout, ["1\n"]);
  await first.files.write("notes.txt", "milk\n");
  assert.equal((await first.getInfo()).lifecycle.onTimeout, "pause");
  assert.equal(await first.pause(), true);

  const second = await sandboxOf(conversation);
  assert.equal(second.sandboxId, first.sandboxId);
  const execution = await second.runCode("print(open('notes.txt').read(), end='')");
  assert.deepEqual(execution.logs.stdout, ["milk\n"]);
  const { text } = await second.runCode("[1, 2, 3].map((n) => n * 2).join()", { language: "javascript" });
  assert.match(text, /2,4,6/);

  let screen = "";
  const terminal = await second.pty.create({
    cols: 80, rows: 24, envs: { PS1: "> " }, timeoutMs: 0, onData: (bytes) => (screen += Buffer.from(bytes).toString()) });
  await second.pty.sendInput(terminal.pid, Buffer.from("cat notes.txt | tr a-z A-Z; exit\n"));
  await terminal.wait();
  assert.match(screen, /MILK/);
} finally {
  await Sandbox.kill(first.sandboxId);
}
const left = Sandbox.list({ query: { metadata: { conversation } } });
assert.deepEqual(await left.nextItems(), []);
console.log("done");
