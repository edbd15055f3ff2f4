// SPDX-License-Identifier: Apache-2.0
// Sessions: one sandbox's API for somebody without a key.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SandboxInstance } from "@blaxel/core";
import { sharedSandbox, waitUntil, withSandbox } from "./support.mjs";

const shared = sharedSandbox();

test("a session serves the sandbox's files", async () => {
  const sandbox = await shared();
  const session = await sandbox.sessions.create();
  assert.ok(session.token.length > 30);
  assert.ok(session.expiresAt > new Date());
  const guest = await SandboxInstance.fromSession(session);
  await guest.fs.write("/tmp/from-guest", "hello");
  assert.equal(await sandbox.fs.read("/tmp/from-guest"), "hello");
  await guest.fs.writeBinary("/tmp/guest.bin", Buffer.from([0, 255, 1]));
  const back = Buffer.from(await (await guest.fs.readBinary("/tmp/guest.bin")).arrayBuffer());
  assert.deepEqual(back, Buffer.from([0, 255, 1]));
  assert.ok((await guest.fs.ls("/tmp")).files.length >= 2);
});

test("sessions are listed, found and deleted", async () => {
  await withSandbox(async (sandbox) => {
    const made = await sandbox.sessions.create({ expiresAt: new Date(Date.now() + 3600_000) });
    const [listed] = await sandbox.sessions.list();
    assert.equal(listed.name, made.name);
    assert.equal(listed.url, made.url);
    assert.equal(listed.token, made.token);
    const found = await sandbox.sessions.get(made.name);
    assert.equal(found.token, made.token);
    await sandbox.sessions.delete(made.name);
    assert.deepEqual(await sandbox.sessions.list(), []);
    const guest = await SandboxInstance.fromSession(made);
    await assert.rejects(guest.fs.ls("/"), (error) => error.status === 404);
  });
});

test("createIfExpired takes up a session that lasts, and replaces one that does not", async () => {
  await withSandbox(async (sandbox) => {
    const first = await sandbox.sessions.createIfExpired();
    const again = await sandbox.sessions.createIfExpired();
    assert.equal(again.token, first.token);
    const other = await sandbox.sessions.createIfExpired({}, 48 * 3600_000);
    assert.notEqual(other.token, first.token);
    assert.equal((await sandbox.sessions.list()).length, 1);
  });
});

test("a session ends when it says", async () => {
  await withSandbox(async (sandbox) => {
    const session = await sandbox.sessions.create({ expiresAt: new Date(Date.now() + 6000) });
    const guest = await SandboxInstance.fromSession(session);
    await waitUntil(
      () => guest.fs.ls("/").then(() => false, (error) => error.status === 404 || error.status === 401),
      "the session's end",
    );
  });
});

test("a session's headers are in its answers", async () => {
  await withSandbox(async (sandbox) => {
    const session = await sandbox.sessions.create({
      responseHeaders: { "X-Shown": "yes", "Access-Control-Allow-Origin": "https://app.example" },
    });
    const answer = await fetch(`${session.url}/filesystem/%2Ftmp`, {
      headers: { "X-Blaxel-Preview-Token": session.token },
    });
    assert.equal(answer.status, 200);
    assert.equal(answer.headers.get("x-shown"), "yes");
    assert.equal(answer.headers.get("access-control-allow-origin"), "https://app.example");
    const preflight = await fetch(`${session.url}/filesystem/%2Ftmp`, {
      method: "OPTIONS",
      headers: {
        origin: "https://app.example",
        "access-control-request-method": "PUT",
        "access-control-request-headers": "x-blaxel-preview-token",
      },
    });
    assert.equal(preflight.status, 204);
    assert.equal(preflight.headers.get("access-control-allow-origin"), "https://app.example");
    assert.match(preflight.headers.get("access-control-allow-methods"), /PUT/);
    assert.match(preflight.headers.get("access-control-allow-headers"), /x-blaxel-preview-token/);
  });
});

test("no token, a wrong one and another session's do not open it", async () => {
  await withSandbox(async (sandbox) => {
    const one = await sandbox.sessions.create();
    await new Promise((resolve) => setTimeout(resolve, 2)); // names are made of the time in ms
    const other = await (await shared()).sessions.create();
    const url = `${one.url}/filesystem/%2Ftmp`;
    for (const headers of [
      {},
      { "X-Blaxel-Preview-Token": "x".repeat(one.token.length) },
      { "X-Blaxel-Preview-Token": "" },
      { "X-Blaxel-Preview-Token": other.token },
      { "X-Blaxel-Preview-Token": one.token.slice(1) },
    ]) {
      const answer = await fetch(url, { headers });
      assert.equal(answer.status, 401, JSON.stringify(headers));
      assert.equal(typeof (await answer.json()).error, "string");
    }
    assert.equal((await fetch(`${url}?bl_preview_token=${one.token}`)).status, 200);
    const cookie = await fetch(url, { headers: { cookie: `a=b; bl_preview_token=${one.token}` } });
    assert.equal(cookie.status, 200);
  });
});
