// SPDX-License-Identifier: Apache-2.0
// What the client offers besides: its static forms, the network, secrets, templates; and what is refused, by the
// exception that it has for that.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  ALL_TRAFFIC, BuildError, E2B, FileNotFoundError, Sandbox, SandboxError, SandboxNotFoundError, Secret, SecretError,
  SecretNotFoundError, Template, TemplateError, TimeoutError, Volume, VolumeError, VolumeNotFoundError,
} from "e2b";
import { sharedSandbox, unique, waitUntil, withSandbox } from "./support.mjs";

const shared = sharedSandbox();

test("static forms do what the others do", async () => {
  const box = await shared();
  assert.equal((await Sandbox.getFullInfo(box.sandboxId)).sandboxId, box.sandboxId);
  await Sandbox.setTimeout(box.sandboxId, 600_000);
  const metrics = await Sandbox.getMetrics(box.sandboxId, { start: new Date(Date.now() - 60_000), end: new Date() });
  assert.ok(Array.isArray(metrics));
  const [fork] = await Sandbox.fork(box.sandboxId, { timeoutMs: 600_000 });
  assert.equal(await Sandbox.pause(fork.sandboxId), true);
  assert.equal(await Sandbox.betaPause(fork.sandboxId), false);
  assert.equal(await (await fork.connect({ onResume: "reboot" })).isRunning(), true);
  assert.equal(await Sandbox.kill(fork.sandboxId), true);
  assert.equal(await Sandbox.kill(fork.sandboxId), false);
});

test("a client with options of its own", async () => {
  const { Sandbox: Bound, Secret: BoundSecret } = new E2B({ apiKey: process.env.E2B_API_KEY, requestTimeoutMs: 60_000 });
  const box = await Bound.create({ timeoutMs: 600_000 });
  try {
    assert.equal((await box.commands.run("echo bound")).stdout, "bound\n");
    assert.equal(await BoundSecret.exists(unique("none")), false);
  } finally {
    await box.kill();
  }
});

test("lists by order, template and time", async () => {
  const mark = unique("ordered");
  const before = new Date(Date.now() - 1000);
  const made = [];
  try {
    for (let i = 0; i < 2; i++) made.push(await Sandbox.create({ timeoutMs: 600_000, metadata: { mark } }));
    const ids = async (query, order) => {
      const pages = Sandbox.list({ query: { metadata: { mark }, ...query }, order, limit: 1 });
      const found = [];
      while (pages.hasNext) found.push(...(await pages.nextItems()).map((item) => item.sandboxId));
      return found;
    };
    const both = made.map((box) => box.sandboxId);
    assert.deepEqual(await ids({ startedAfter: before, template: "base" }, "asc"), both);
    assert.deepEqual(await ids({}, "desc"), [...both].reverse());
    assert.deepEqual(await ids({ startedAfter: new Date(Date.now() + 3_600_000) }), []);
    assert.deepEqual(await ids({ template: "other" }), []);
  } finally {
    await Promise.all(made.map((box) => box.kill()));
  }
});

test("the network is changed while it runs", () =>
  withSandbox(async (box) => {
    await box.updateNetwork({ allowOut: ["example.com", "192.0.1.7"], denyOut: ({ allTraffic }) => [allTraffic] });
    const { network } = await box.getInfo();
    assert.deepEqual(network.allowOut, ["example.com", "192.0.1.7"]);
    assert.deepEqual(network.denyOut, [ALL_TRAFFIC]);
    // What is about its ports is not part of it.
    assert.equal(network.allowPublicTraffic, false);
    const answer = await fetch(process.env.E2B_SANDBOX_URL, {
      headers: { "E2b-Sandbox-Id": box.sandboxId, "E2b-Sandbox-Port": "3000" } });
    assert.equal(answer.status, 403);
    await box.updateNetwork({ allowInternetAccess: false });
    assert.equal((await box.getInfo()).allowInternetAccess, false);
    await box.updateNetwork({});
    assert.equal((await box.getInfo()).allowInternetAccess, true);
    for (const network of [{ egressProxy: { address: "proxy.example.com:1080" } }, { allowOut: ["not a host"] },
      { rules: { "api.example.com": [{ transform: { headers: { "X-A": Secret.fill(unique("none")) } } }] } }])
      await assert.rejects(box.updateNetwork(network), SandboxError);
  }, { network: { allowPublicTraffic: false } }));

test("a program is told the host that was asked for", () =>
  withSandbox(async (box) => {
    await box.files.write("host.py", `
from http.server import BaseHTTPRequestHandler, HTTPServer
class Tell(BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200); self.end_headers(); self.wfile.write(self.headers["Host"].encode())
HTTPServer(("127.0.0.1", 3000), Tell).serve_forever()`);
    await box.commands.run("python3 host.py", { background: true, timeoutMs: 0 });
    const get = () => fetch(process.env.E2B_SANDBOX_URL, {
      headers: { "E2b-Sandbox-Id": box.sandboxId, "E2b-Sandbox-Port": "3000" } });
    const answer = await waitUntil(async () => {
      const got = await get();
      return got.status === 200 && got;
    }, "the program");
    assert.equal(await answer.text(), "mine.example:3000");
  }, { network: { maskRequestHost: "mine.example:${PORT}" } }));

test("secrets: their names, versions and metadata are told, and never a value", async () => {
  const name = unique("OPENAI_API_KEY");
  const made = await Secret.create(name, "sk-one", { metadata: { team: "a" } });
  try {
    assert.deepEqual([made.name, made.version, made.metadata], [name, 1, { team: "a" }]);
    assert.ok(made.createdAt instanceof Date);
    await assert.rejects(Secret.create(name, "again"), (err) => err instanceof SecretError && /409/.test(err.message));
    const next = await Secret.update(made.secretId, "sk-two", { metadata: { team: "b" } });
    assert.deepEqual([next.version, next.metadata], [2, { team: "b" }]);
    assert.deepEqual(await Secret.getInfo(name), next);
    const pages = Secret.list({ limit: 1 });
    const found = [];
    while (pages.hasNext) found.push(...(await pages.nextItems()).map((secret) => secret.name));
    assert.ok(found.includes(name));
    assert.equal(await Secret.exists(name), true);
    const value = `Bearer ${Secret.fill(name)}`;
    await withSandbox(async (box) => {
      const { network } = await box.getInfo();
      assert.equal(network.rules["api.example.com"][0].transform.headers.Authorization, value);
    }, { network: { rules: { "api.example.com": [{ transform: { headers: { Authorization: value } } }] } } });
  } finally {
    assert.equal(await Secret.destroy(name), true);
  }
  assert.equal(await Secret.destroy(name), false);
  assert.equal(await Secret.exists(name), false);
  await assert.rejects(Secret.getInfo(name), SecretNotFoundError);
  await assert.rejects(Secret.update(name, "x"), SecretNotFoundError);
  await assert.rejects(Secret.create("no good", "x"), SecretError);
  await assert.rejects(Secret.create(name, "two\nlines"), (err) => err instanceof SecretError && !/two|lines/.test(err.message));
});

test("templates: names of images and of snapshots", async () => {
  const box = await shared();
  const name = unique("prepared");
  const snapshot = await box.createSnapshot({ name });
  try {
    assert.deepEqual([await Template.exists("base"), await Template.aliasExists("base"), await Template.exists(name),
      await Template.exists(unique("none"))], [true, true, true, false]);
    for (const template of ["base", name]) {
      const [tag] = await Template.getTags(template);
      assert.equal(tag.tag, "default");
      assert.deepEqual(await Template.assignTags(template, "default"), { buildId: tag.buildId, tags: ["default"] });
    }
    for (const template of ["base:default", "team/base"]) await withSandbox(() => {}, { template });
    const [listed] = await Sandbox.listSnapshots({ name }).nextItems();
    assert.equal(listed.snapshotId, snapshot.snapshotId);
  } finally {
    assert.equal(await Sandbox.deleteSnapshot(snapshot.snapshotId), true);
  }
  await assert.rejects(Template.getTags(name), TemplateError);
  await assert.rejects(Template.assignTags("base", "v2"), TemplateError);
  await assert.rejects(Template.removeTags("base", "v2"), TemplateError);
});

test("what is not here is refused with a reason", async () => {
  const says = (kind, text) => (err) => err instanceof kind && err.message.includes(text);
  assert.deepEqual(await Volume.list(), []);
  await assert.rejects(Volume.create("v"), says(VolumeError, "there are no volumes here"));
  await assert.rejects(Volume.connect("v"), VolumeNotFoundError);
  await assert.rejects(Volume.getInfo("v"), VolumeNotFoundError);
  assert.equal(await Volume.destroy("v"), false);
  await assert.rejects(Template.build(Template().fromBaseImage().runCmd("true"), "mine"), says(BuildError, "cannot be built here"));
  await assert.rejects(Template.getBuildStatus({ templateId: "a", buildId: "b" }), BuildError);
  const refused = [
    [{ volumeMounts: { "/data": "v" } }, "volumeMounts"],
    [{ iam: { tokens: { aws: Secret.iamToken({ audience: "sts", tokenType: "JWT-SVID" }) } } }, "iam.tokens"],
    [{ network: { egressProxy: { address: "proxy.example.com:1080" } } }, "egressProxy"],
    [{ network: { httpsPorts: [8443] } }, "httpsPorts"],
    [{ network: { maskRequestHost: "a b" } }, "maskRequestHost"],
    [{ mcp: { duckduckgo: {} } }, "MCP gateway"],
    [{ timeoutMs: 1e15 }, "timeout"],
  ];
  for (const [options, text] of refused) await assert.rejects(Sandbox.create(options), says(SandboxError, text));
});

test("who is gone is gone in every call", async () => {
  const box = await Sandbox.create();
  await box.kill();
  for (const call of [() => box.getInfo(), () => box.setTimeout(1000), () => box.pause(), () => box.createSnapshot(),
    () => box.fork(), () => box.getMetrics(), () => box.updateNetwork({}), () => Sandbox.connect(box.sandboxId),
    () => box.commands.run("ls")])
    await assert.rejects(call(), SandboxNotFoundError);
  await assert.rejects(box.files.read("x"), TimeoutError);
  assert.equal(await box.isRunning(), false);
});

test("one that is not secure needs no token", () =>
  withSandbox(async (box) => {
    const send = (headers) => fetch(`${process.env.E2B_SANDBOX_URL}/files?path=/etc/hostname`, {
      headers: { "E2b-Sandbox-Id": box.sandboxId, "E2b-Sandbox-Port": "49983", ...headers } });
    assert.equal((await send({})).status, 401);
    const made = await (await fetch(`${process.env.E2B_API_URL}/sandboxes`, {
      method: "POST", headers: { "X-API-KEY": process.env.E2B_API_KEY, "Content-Type": "application/json" },
      body: JSON.stringify({ templateID: "base", timeout: 600 }) })).json();
    assert.equal(made.envdAccessToken, undefined);
    assert.equal((await send({ "E2b-Sandbox-Id": made.sandboxID })).status, 200);
    await Sandbox.kill(made.sandboxID);
  }));

test("a signal ends what it was given to", async () => {
  const box = await shared();
  const controller = new AbortController();
  const word = unique("8888");
  const run = box.commands.run(`exec -a ${word} sleep 1000`, { signal: controller.signal, timeoutMs: 0 });
  await waitUntil(async () => (await box.commands.run(`pgrep -f '^${word}' || true`)).stdout !== "", "the command");
  controller.abort();
  await assert.rejects(run);
  await assert.rejects(box.getMcpToken(), FileNotFoundError);
});
