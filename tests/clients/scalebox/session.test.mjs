// SPDX-License-Identifier: Apache-2.0
// Sessions: the client's short way to run code with files.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Session } from "@scalebox/sdk";

test("code with files, up and down", async () => {
  const done = await Session.run({
    code: "open('out.txt', 'w').write(open('in.txt').read().upper()); print('done')",
    language: "python",
    files: { "in.txt": "hello" },
    downloadFiles: ["out.txt"],
  });
  assert.equal(done.stdout, "done\n");
  assert.equal(done.success, true);
  assert.equal(done.files["out.txt"].toString(), "HELLO");
});

test("a session is kept, and remembers", async () => {
  const first = await Session.run({ code: "x = 20", language: "python", keepAlive: true });
  assert.ok(first.sessionId);
  try {
    const second = await Session.run({ code: "x + 1", language: "python", sessionId: first.sessionId, keepAlive: true });
    assert.equal(second.text, "21");
  } finally {
    await Session.close(first.sessionId);
  }
});

test("sessions are listed, kept alive and paused", async () => {
  const { sessionId } = await Session.run({ code: "x = 1", language: "python", keepAlive: true });
  try {
    assert.equal((await Session.getSession(sessionId)).sessionId, sessionId);
    assert.ok((await Session.listSessions()).some((item) => item.sessionId === sessionId));
    await Session.keepAlive(sessionId, 600_000);
    assert.equal(await Session.pause(sessionId), true);
  } finally {
    await Session.close(sessionId);
  }
  await assert.rejects(Session.getSession(sessionId), /not found/);
});
