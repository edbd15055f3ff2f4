// SPDX-License-Identifier: Apache-2.0
// The control plane by the SDK's lower classes: ApiClient and SandboxApi.

import assert from "node:assert/strict";
import { request } from "node:http";
import { test } from "node:test";
import { ApiClient, CodeInterpreter, NotFoundError, Sandbox, SandboxApi, ScaleboxError } from "@scalebox/sdk";
import { sharedSandbox, waitUntil, withSandbox } from "./support.mjs";

const shared = sharedSandbox("base", { timeoutMs: 600_000, envs: { COLOR: "blue" } });
const apiOf = (sandbox) => new ApiClient(sandbox.connectionConfig, sandbox.sandboxId);

test("executeCode answers in one piece", async () => {
  const sandbox = await shared();
  const api = apiOf(sandbox);
  const done = await api.executeCode({ code: "print('out'); 6 * 7", language: "python" });
  assert.equal(done.stdout, "out\n");
  assert.equal(done.text, "42");
  assert.equal(done.exitCode, 0);
  assert.equal(done.results.length, 1);
  const failed = await api.executeCode({ code: "1 / 0", language: "python" });
  assert.equal(failed.exitCode, 1);
  assert.equal(failed.error.name, "ZeroDivisionError");
  const env = await api.executeCode({ code: "echo $COLOR $SIZE", language: "bash", envVars: { SIZE: "L" } });
  assert.equal(env.stdout, "blue L\n");
  await assert.rejects(api.executeCode({ code: "x", language: "cobol" }), /cobol/);
});

test("contexts of the control plane", async () => {
  const sandbox = await shared();
  const api = apiOf(sandbox);
  const made = await fetchJson("POST", "/v1/contexts", {
    language: "python", cwd: "/tmp", env_vars: { SHAPE: "round" }, sandbox_id: sandbox.sandboxId,
  });
  const contextId = made.data.id;
  const run = (code) => api.executeCode({ code, language: "python", contextId });
  await run("x = 41");
  assert.equal((await run("x + 1")).text, "42");
  assert.equal((await run("import os; os.getcwd(), os.environ['SHAPE']")).text, "('/tmp', 'round')");
  const found = await api.getContext(contextId);
  assert.equal(found.language, "python");
  assert.equal(found.cwd, "/tmp");
  // The same one for the classes that stream.
  const interpreter = new CodeInterpreter(sandbox, sandbox.connectionConfig, sandbox.api);
  const streamed = await interpreter.runCode("x", { context: { ...found, envVars: {} }, language: "python" });
  assert.equal(streamed.text, "41");
  await api.deleteContext(contextId);
  await assert.rejects(api.getContext(contextId), /not found/);
  await assert.rejects(api.deleteContext("nonsense"), /SANDBOX\.CONTEXT/);
});

async function fetchJson(method, path, body) {
  const answer = await fetch(process.env.SCALEBOX_API_URL + path, {
    method, body: JSON.stringify(body),
    headers: { "X-API-KEY": process.env.SCALEBOX_API_KEY, "Content-Type": "application/json" },
  });
  return answer.json();
}

test("ports are listed, added and removed", async () => {
  const sandbox = await shared();
  const api = apiOf(sandbox);
  assert.deepEqual(await api.getSandboxPorts(sandbox.sandboxId), { ports: [], templatePorts: [], customPorts: [] });
  const info = await api.addSandboxPort(sandbox.sandboxId, { port: 3000, name: "web" });
  assert.equal(info.sandboxId, sandbox.sandboxId);
  assert.deepEqual(info.customPorts, [
    { port: 3000, servicePort: 3000, protocol: "TCP", name: "web", isProtected: false },
  ]);
  await assert.rejects(api.addSandboxPort(sandbox.sandboxId, { port: 3000, name: "again" }), /already/);
  await assert.rejects(api.addSandboxPort(sandbox.sandboxId, { port: 53, name: "dns", protocol: "UDP" }), /UDP/);
  assert.deepEqual((await api.getSandboxPorts(sandbox.sandboxId)).ports.map((item) => item.port), [3000]);
  await api.removeSandboxPort(sandbox.sandboxId, 3000);
  assert.deepEqual((await api.getSandboxPorts(sandbox.sandboxId)).ports, []);
  await assert.rejects(api.removeSandboxPort(sandbox.sandboxId, 3000), /not listed/);
});

test("ports can be given with the sandbox", async () => {
  const api = apiOf(await shared());
  const made = await api.createSandbox({ template: "base", customPorts: [{ port: 8080, name: "web" }] });
  try {
    assert.deepEqual(made.customPorts.map((item) => [item.port, item.name]), [[8080, "web"]]);
  } finally {
    await api.deleteSandbox(made.sandboxId);
  }
});

test("a template made from a sandbox", async () => {
  const name = `tools-${process.pid}`;
  let template;
  try {
    await withSandbox(async (sandbox) => {
      await sandbox.files.write("/opt/tool", "#!/bin/sh\necho tool $1\n");
      await sandbox.commands.run("chmod +x /opt/tool");
      template = await SandboxApi.createTemplateFromSandbox(sandbox.sandboxId, { name, description: "with tools" });
      assert.equal(template.name, name);
      assert.equal(template.description, "with tools");
      assert.equal(template.baseTemplateId, "base");
      assert.ok(template.defaultCpuCount >= 1 && template.defaultMemoryMB > 0);
      await assert.rejects(SandboxApi.createTemplateFromSandbox(sandbox.sandboxId, { name }), /already/);
      await assert.rejects(SandboxApi.createTemplateFromSandbox(sandbox.sandboxId, { name: "base" }), /already/);
      await assert.rejects(
        SandboxApi.createTemplateFromSandbox(sandbox.sandboxId, { name: "x", customCommand: "serve" }),
        /custom_command/,
      );
    });
    const made = await Sandbox.create(name);
    try {
      assert.equal((await made.commands.run("/opt/tool box")).stdout, "tool box\n");
      const listed = await Sandbox.list().nextItems();
      assert.ok(listed.every((item) => item.sandboxId !== template.templateId));
    } finally {
      await made.kill();
    }
  } finally {
    if (template) {
      await fetch(`${process.env.SCALEBOX_API_URL}/v0/sandboxes/${template.templateId}`, {
        method: "DELETE", headers: { "X-API-KEY": process.env.SCALEBOX_API_KEY },
      });
    }
  }
});

test("a program on a port is reached by getHost", async () => {
  const sandbox = await shared();
  // What getHost() gives below a domain that leads to the server; here the name is sent by hand.
  const port = new URL(process.env.SCALEBOX_API_URL).port;
  const host = sandbox.getHost(8123).replace(`localhost:${port}`, `${sandbox.sandboxId}.localhost:${port}`);
  await sandbox.commands.run("mkdir -p /srv/web && echo by port > /srv/web/index.html");
  await sandbox.commands.run("exec python3 -m http.server 8123 --directory /srv/web", {
    background: true, timeoutMs: 0,
  });
  const get = () =>
    new Promise((resolve, reject) => {
      request({ host: "127.0.0.1", port, path: "/", headers: { Host: host } }, (answer) => {
        let text = "";
        answer.on("data", (piece) => (text += piece));
        answer.on("end", () => resolve(`${answer.statusCode} ${text}`));
      }).on("error", reject).end();
    });
  await waitUntil(async () => (await get()) === "200 by port\n", `the page of ${host}`);
});

test("pause and resume by id", async () => {
  await withSandbox(async (sandbox) => {
    assert.equal(await SandboxApi.betaPause(sandbox.sandboxId), true);
    assert.equal((await SandboxApi.getInfo(sandbox.sandboxId)).status, "paused");
    assert.equal(await SandboxApi.betaPause(sandbox.sandboxId), true);
    assert.equal(await SandboxApi.resumeSandbox(sandbox.sandboxId), true);
    assert.equal((await SandboxApi.getInfo(sandbox.sandboxId)).status, "running");
    await sandbox.connect({ timeoutMs: 120_000 });
    assert.equal((await sandbox.commands.run("echo back")).stdout, "back\n");
    assert.equal(await SandboxApi.kill(sandbox.sandboxId), true);
    await waitUntil(
      () => SandboxApi.getInfo(sandbox.sandboxId).then(() => false, (error) => error instanceof NotFoundError),
      "NotFoundError",
    );
  });
});

test("what cannot be had is said", async () => {
  const refused = (promise, words) =>
    assert.rejects(promise, (error) => error instanceof ScaleboxError && words.test(error.message));
  await refused(Sandbox.create("base", { objectStorage: { uri: "s3://x", mountPoint: "/x" } }), /object_storage/);
  await refused(Sandbox.create("base", { timeoutMs: 1000 }), /60 seconds/);
  await refused(Sandbox.create("no-such-template"), /not found/);
  await refused(Sandbox.create("base", { apiKey: "wrong" }), /UNAUTHORIZED/);
  await assert.rejects(SandboxApi.getInfo("nosuchsandbox"), NotFoundError);
});
