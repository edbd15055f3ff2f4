// SPDX-License-Identifier: Apache-2.0
// Programs in the sandbox: by sandbox.fetch, and at previews' addresses.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SandboxInstance } from "@blaxel/core";
import { sharedSandbox, startEcho, uniqueName, waitUntil } from "./support.mjs";

const bare = sharedSandbox();
let started;
async function shared() {
  const sandbox = await bare();
  started ??= startEcho(sandbox, 3000);
  await started;
  return sandbox;
}

test("fetch reaches a port with any method, path and body", async () => {
  const sandbox = await shared();
  const got = await sandbox.fetch(3000, "/hello/w%2Frld?a=1&b=%20");
  assert.equal(got.status, 200);
  assert.equal(got.headers.get("x-from"), "program");
  const told = await got.json();
  assert.equal(told.method, "GET");
  assert.equal(told.path, "/hello/w%2Frld?a=1&b=%20");
  const posted = await sandbox.fetch(3000, "/post", {
    method: "POST",
    body: "x".repeat(100_000),
    headers: { "Content-Type": "text/plain", "X-Mine": "1" },
  });
  assert.equal(posted.status, 201);
  const echoed = await posted.json();
  assert.equal(echoed.body.length, 100_000);
  assert.equal(echoed.headers["x-mine"], "1");
  for (const method of ["PUT", "DELETE", "PATCH"])
    assert.equal((await (await sandbox.fetch(3000, "/", { method })).json()).method, method);
});

test("the program never sees the caller's key", async () => {
  const sandbox = await shared();
  const told = await (await sandbox.fetch(3000, "/")).json();
  assert.ok(!JSON.stringify(told).includes(process.env.BL_API_KEY));
});

test("a port that nobody listens on is a bad gateway", async () => {
  const sandbox = await shared();
  assert.equal((await sandbox.fetch(3999, "/")).status, 502);
});

test("a public preview needs nothing", async () => {
  const sandbox = await shared();
  const preview = await sandbox.previews.create({
    metadata: { name: uniqueName("pub") },
    spec: { port: 3000, public: true },
  });
  assert.equal(preview.metadata.resourceName, sandbox.metadata.name);
  const told = await (await fetch(`${preview.spec.url}/some/path?x=1`)).json();
  assert.equal(told.path, "/some/path?x=1");
  assert.equal((await (await fetch(preview.spec.url)).json()).path, "/");
  const posted = await fetch(`${preview.spec.url}/`, { method: "POST", body: "hi" });
  assert.equal((await posted.json()).body, "hi");
});

test("a private preview takes its tokens in each way, and no others", async () => {
  const sandbox = await shared();
  const preview = await sandbox.previews.create({
    metadata: { name: uniqueName("priv") },
    spec: { port: 3000, public: false },
  });
  const { url } = preview.spec;
  const token = await preview.tokens.create(new Date(Date.now() + 600_000));
  assert.equal((await fetch(`${url}/`)).status, 401);
  assert.equal((await fetch(`${url}/`, { headers: { "X-Blaxel-Preview-Token": "wrong" } })).status, 401);
  const byHeader = await fetch(`${url}/a`, { headers: { "X-Blaxel-Preview-Token": token.value } });
  const told = await byHeader.json();
  assert.equal(told.path, "/a");
  assert.ok(!JSON.stringify(told).includes(token.value));
  const byQuery = await (await fetch(`${url}/b?q=1&bl_preview_token=${token.value}`)).json();
  assert.equal(byQuery.path, "/b?q=1");
  assert.ok(!JSON.stringify(byQuery).includes(token.value));
  const page = await fetch(`${url}?bl_preview_token=${token.value}`, {
    headers: { accept: "text/html" },
  });
  assert.equal(page.status, 200);
  const cookie = page.headers.get("set-cookie").split(";")[0];
  const next = await fetch(`${url}/next`, { headers: { cookie } });
  assert.ok(!JSON.stringify(await next.json()).includes(token.value));

  const [listed] = await preview.tokens.list();
  assert.equal(listed.value, token.value);
  await preview.tokens.delete(listed.previewToken.metadata.name);
  assert.equal((await fetch(`${url}/`, { headers: { "X-Blaxel-Preview-Token": token.value } })).status, 401);
  assert.deepEqual(await preview.tokens.list(), []);
});

test("a preview's headers are set both ways", async () => {
  const sandbox = await shared();
  const preview = await sandbox.previews.create({
    metadata: { name: uniqueName("head") },
    spec: {
      port: 3000,
      public: true,
      requestHeaders: { Authorization: "Bearer for-the-program", "X-Env": "preview" },
      responseHeaders: { "Access-Control-Allow-Origin": "*", "X-From": "preview" },
    },
  });
  assert.equal(preview.spec.requestHeaders["X-Env"], "preview");
  const answer = await fetch(`${preview.spec.url}/`, {
    headers: { authorization: "Bearer other", "x-env": "client" },
  });
  assert.equal(answer.headers.get("access-control-allow-origin"), "*");
  assert.equal(answer.headers.get("x-from"), "preview");
  const { headers } = await answer.json();
  assert.equal(headers.authorization, "Bearer for-the-program");
  assert.equal(headers["x-env"], "preview");
});

test("previews are listed, found, made once and deleted", async () => {
  const sandbox = await shared();
  const name = uniqueName("life");
  const body = { metadata: { name }, spec: { port: 3000, public: true, prefixUrl: "kept" } };
  const made = await sandbox.previews.createIfNotExists(body);
  const again = await sandbox.previews.createIfNotExists(body);
  assert.equal(again.spec.url, made.spec.url);
  assert.equal(again.spec.prefixUrl, "kept");
  await assert.rejects(sandbox.previews.create(body), (error) => error.code === 409);
  const forced = await sandbox.previews.create({ ...body, spec: { port: 3001, public: true } }, true);
  assert.equal(forced.spec.url, made.spec.url);
  assert.equal(forced.spec.port, 3001);
  assert.ok((await sandbox.previews.list()).some((one) => one.name === name));
  assert.equal((await sandbox.previews.get(name)).name, name);
  await sandbox.previews.delete(name);
  await assert.rejects(sandbox.previews.get(name), (error) => error.code === 404);
  assert.equal((await fetch(`${made.spec.url}/`)).status, 404);
});

test("bad previews are refused", async () => {
  const sandbox = await shared();
  const past = new Date(Date.now() - 1000).toISOString();
  for (const spec of [
    {},
    { port: 0 },
    { port: 70000 },
    { port: 3000, expires: "tomorrow" },
    { port: 3000, expires: past },
    { port: 3000, ttl: "a while" },
    { port: 3000, responseHeaders: { "Bad Name": "x" } },
    { port: 3000, responseHeaders: { "X-A": "a\r\nX-B: b" } },
    { port: 3000, requestHeaders: { Host: "elsewhere" } },
  ])
    await assert.rejects(
      sandbox.previews.create({ metadata: { name: uniqueName("bad") }, spec }),
      (error) => error.code === 400,
      JSON.stringify(spec),
    );
});

test("a preview ends when its time is over", async () => {
  const sandbox = await shared();
  const preview = await sandbox.previews.create({
    metadata: { name: uniqueName("ttl") },
    spec: { port: 3000, public: true, ttl: "5s" },
  });
  assert.ok(Date.parse(preview.spec.expires) > 0);
  await waitUntil(async () => (await fetch(`${preview.spec.url}/`)).status === 404, "its end");
  assert.ok(!(await sandbox.previews.list()).some((one) => one.name === preview.name));
});

test("previews go with their sandbox", async () => {
  const made = await SandboxInstance.create({ name: uniqueName(), memory: 512 });
  const preview = await made.previews.create({
    metadata: { name: "gone" },
    spec: { port: 3000, public: true },
  });
  await made.delete();
  await waitUntil(async () => (await fetch(`${preview.spec.url}/`)).status === 404, "its end");
});

test("a session reaches ports of its sandbox", async () => {
  const sandbox = await shared();
  const guest = await SandboxInstance.fromSession(await sandbox.sessions.create());
  const told = await (await guest.fetch(3000, "/from/guest?x=1")).json();
  assert.equal(told.path, "/from/guest?x=1");
  const done = await guest.process.exec({ command: "echo hi", waitForCompletion: true });
  assert.equal(done.stdout, "hi\n");
  const lines = [];
  await guest.process.exec({
    command: "echo streamed",
    waitForCompletion: true,
    onLog: (text) => lines.push(text),
  });
  assert.equal(lines.join(""), "streamed\n");
});
