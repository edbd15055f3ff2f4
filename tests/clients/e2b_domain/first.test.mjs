// SPDX-License-Identifier: Apache-2.0
// The first generation: npm e2b 1.13.2 and @e2b/code-interpreter 1.5.1.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { CommandExitError, NotFoundError, Sandbox, SandboxError } from "e2b-1";
import { Sandbox as CodeSandbox } from "e2b-code-interpreter-1";

let made;
const shared = () => (made ??= Sandbox.create({ timeoutMs: 600_000, metadata: { made: "by 1.x" }, envs: { FROM: "sandbox" } }));
after(async () => {
  if (made) await (await made).kill();
});

test("1.x: a sandbox is made, found, listed and given more time", async () => {
  const box = await shared();
  const info = await box.getInfo();
  assert.equal(info.sandboxId.split("-")[0], box.sandboxId.split("-")[0]);
  assert.deepEqual(info.metadata, { made: "by 1.x" });
  assert.equal(await box.isRunning(), true);
  const listed = await Sandbox.list({ query: { metadata: { made: "by 1.x" } } });
  assert.ok(listed.some((item) => item.sandboxId === info.sandboxId));
  await box.setTimeout(500_000);
  assert.ok(Array.isArray(await box.getMetrics()));
  const again = await Sandbox.connect(box.sandboxId);
  assert.equal((await again.commands.run("echo $FROM")).stdout, "sandbox\n");
});

test("1.x: files", async () => {
  const box = await shared();
  await box.files.write("one/a.txt", "hällo");
  assert.equal(await box.files.read("one/a.txt"), "hällo");
  assert.equal(Buffer.from(await box.files.read("one/a.txt", { format: "bytes" })).toString(), "hällo");
  await box.files.write([{ path: "one/b", data: "b" }, { path: "one/c", data: "c" }]);
  assert.deepEqual((await box.files.list("one")).map((e) => e.name).sort(), ["a.txt", "b", "c"]);
  await box.files.rename("one/b", "one/d");
  assert.equal(await box.files.exists("one/b"), false);
  await box.files.remove("one");
  await assert.rejects(box.files.read("one/a.txt"), NotFoundError);
});

test("1.x: commands, terminals and watching", async () => {
  const box = await shared();
  await assert.rejects(box.commands.run("echo out; exit 3"), (err) => err instanceof CommandExitError && err.exitCode === 3);
  const command = await box.commands.run("read line; echo got $line", { background: true, stdin: true });
  await box.commands.sendStdin(command.pid, "it\n");
  assert.equal((await command.wait()).stdout, "got it\n");
  let seen = "";
  const pty = await box.pty.create({ cols: 80, rows: 24, timeoutMs: 0, onData: (data) => (seen += Buffer.from(data).toString()) });
  await box.pty.sendInput(pty.pid, new TextEncoder().encode("stty size; exit\n"));
  await pty.wait();
  assert.match(seen, /24 80/);
  await box.files.makeDir("watched");
  const event = new Promise((resolve) => box.files.watchDir("watched", resolve).then(() => box.files.write("watched/new", "1")));
  assert.equal((await event).name, "new");
});

test("1.x: a secure sandbox asks for its token", async () => {
  const box = await Sandbox.create({ secure: true, timeoutMs: 600_000 });
  try {
    await box.files.write("x", "signed");
    const url = await box.downloadUrl("x", { useSignatureExpiration: 600 });
    assert.equal(await (await fetch(url)).text(), "signed");
    assert.equal((await fetch(url.replace(/signature=[^&]*/, "signature=v1_no"))).status, 401);
  } finally {
    await box.kill();
  }
});

test("1.x: a port has a name of its own", async () => {
  const box = await shared();
  await box.files.write("site/index.html", "from the sandbox");
  await box.commands.run("python3 -m http.server 3000 --directory site", { background: true, timeoutMs: 0 });
  const url = `https://${box.getHost(3000)}/`;
  for (;;) {
    const answer = await fetch(url);
    const text = await answer.text();
    if (answer.status === 200) {
      assert.equal(text, "from the sandbox");
      break;
    }
  }
});

test("1.x: code runs", async () => {
  const box = await CodeSandbox.create({ timeoutMs: 600_000 });
  try {
    const run = await box.runCode("print('hi'); x = 41; x + 1");
    assert.deepEqual(run.logs.stdout, ["hi\n"]);
    assert.equal(run.text, "42");
    assert.equal((await box.runCode("1/0")).error.name, "ZeroDivisionError");
    const context = await box.createCodeContext({ cwd: "/tmp" });
    assert.equal((await box.runCode("import os; os.getcwd() == '/tmp'", { context })).text, "True");
    assert.equal((await box.runCode("1 + 1", { language: "js" })).text, "2");
  } finally {
    await box.kill();
  }
});

test("1.x: what is wrong is told", async () => {
  await assert.rejects(Sandbox.create({ apiKey: "e2b_00" }), (err) => err instanceof SandboxError && /401/.test(err.message));
  await assert.rejects(Sandbox.connect("nosuchsandbo").then((box) => box.commands.run("ls")), Error);
  assert.equal(await Sandbox.kill("nosuchsandbo"), false);
});
