// SPDX-License-Identifier: Apache-2.0
// Code, and contexts that remember.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CodeInterpreter } from "@scalebox/sdk";
import { sharedSandbox } from "./support.mjs";

const shared = sharedSandbox("code-interpreter", { timeoutMs: 600_000 });

test("the value of the last expression", async () => {
  const sandbox = await shared();
  const done = await sandbox.runCode("print('hi'); 6 * 7", { language: "python" });
  assert.equal(done.text, "42");
  assert.equal(done.stdout, "hi\n");
  assert.equal(done.exitCode, 0);
  assert.equal(done.success, true);
  assert.equal(done.result.executionCount, 1);
});

test("output alone is a success too", async () => {
  const sandbox = await shared();
  const done = await sandbox.runCode("print('only')", { language: "python" });
  assert.equal(done.success, true);
  assert.equal(done.text, "only\n");
});

test("output is streamed, letters in one piece", async () => {
  const sandbox = await shared();
  let seen = "";
  let errors = "";
  await sandbox.runCode("import sys\nfor c in 'žluť🦊': print(c, flush=True)\nprint('e', file=sys.stderr)", {
    language: "python",
    onStdout: (message) => (seen += message.content),
    onStderr: (message) => (errors += message.content),
  });
  assert.equal(seen, "ž\nl\nu\nť\n🦊\n");
  assert.equal(errors, "e\n");
});

test("an error has a name, a value and a traceback", async () => {
  const sandbox = await shared();
  const done = await sandbox.runCode("1 / 0", { language: "python" });
  assert.equal(done.success, false);
  assert.equal(done.exitCode, 1);
  assert.equal(done.error.name, "ZeroDivisionError");
  assert.match(done.error.value, /division/);
  assert.match(done.error.traceback, /1 \/ 0/);
});

test("a context remembers, another one does not know", async () => {
  const sandbox = await shared();
  const interpreter = new CodeInterpreter(sandbox, sandbox.connectionConfig, sandbox.api);
  const context = await interpreter.createCodeContext({ language: "python", cwd: "/tmp" });
  const other = await interpreter.createCodeContext({ language: "python" });
  assert.equal(context.cwd, "/tmp");
  await interpreter.runCode("x = 41", { context, language: "python" });
  assert.equal((await interpreter.runCode("x + 1", { context, language: "python" })).text, "42");
  const lost = await interpreter.runCode("x", { context: other, language: "python" });
  assert.equal(lost.error.name, "NameError");
  await interpreter.destroyContext(context);
  const gone = await interpreter.runCode("x", { context, language: "python" });
  assert.match(gone.error.value ?? gone.error.message, /not found/);
});

test("environment variables of one run", async () => {
  const sandbox = await shared();
  const code = "import os; os.environ.get('COLOR')";
  assert.equal((await sandbox.runCode(code, { language: "python", envVars: { COLOR: "red" } })).text, "'red'");
});

test("html of an object that has it", async () => {
  const sandbox = await shared();
  const done = await sandbox.runCode("class H:\n  def _repr_html_(self): return '<b>x</b>'\nH()", {
    language: "python",
  });
  assert.equal(done.html, "<b>x</b>");
});

test("a language that is not there", async () => {
  const sandbox = await shared();
  const done = await sandbox.runCode("x", { language: "cobol" });
  assert.equal(done.success, false);
  assert.match(done.error.value ?? done.error.message, /cobol/);
});

test("runs without a context are not counted against a limit", async () => {
  const sandbox = await shared();
  // The client makes a context for each, and leaves them behind.
  const run = (i) => sandbox.runCode(`echo ${i}`, { language: "bash" });
  const done = await Promise.all(Array.from({ length: 40 }, (_, i) => run(i)));
  assert.deepEqual(done.map((result) => result.stdout), Array.from({ length: 40 }, (_, i) => `${i}\n`));
});

test("a context that is used stays while others come and go", async () => {
  const sandbox = await shared();
  const interpreter = new CodeInterpreter(sandbox, sandbox.connectionConfig, sandbox.api);
  const context = await interpreter.createCodeContext({ language: "bash" });
  await interpreter.runCode("kept=yes", { context, language: "bash" });
  for (let i = 0; i < 4; i += 1) {
    await Promise.all(Array.from({ length: 5 }, () => sandbox.runCode("true", { language: "bash" })));
    assert.equal((await interpreter.runCode("echo $kept", { context, language: "bash" })).stdout, "yes\n");
  }
  await interpreter.destroyContext(context);
});

test("executeStream gives what comes as it comes", async () => {
  const sandbox = await shared();
  const interpreter = new CodeInterpreter(sandbox, sandbox.connectionConfig, sandbox.api);
  const seen = [];
  for await (const event of interpreter.executeStream({ code: "print('a'); 5", language: "python" })) seen.push(event);
  assert.equal(seen[0].stdout.content, "a\n");
  assert.equal(seen.at(-1).result.text, "5");
});

test("in the background", async () => {
  const sandbox = await shared();
  const interpreter = new CodeInterpreter(sandbox, sandbox.connectionConfig, sandbox.api);
  const handle = await interpreter.runCodeAsync("6 * 7", { language: "python" });
  assert.equal((await handle.wait()).text, "42");
});

test("a run that takes too long ends", async () => {
  const sandbox = await shared();
  const done = await sandbox.runCode("import time\nwhile True: time.sleep(0.1)", {
    language: "python",
    requestTimeout: 2000,
  });
  assert.equal(done.success, false);
  assert.equal(done.exitCode, 1);
});

test("an interpreter with a sandbox of its own", async () => {
  const interpreter = await CodeInterpreter.create({ timeoutMs: 300_000 });
  try {
    const context = await interpreter.createCodeContext({ language: "python" });
    const done = await interpreter.execute({ code: "print(6 * 7)", language: "python", contextId: context.id });
    assert.equal(done.stdout, "42\n");
    assert.deepEqual(interpreter.getContexts().map((item) => item.id), [context.id]);
  } finally {
    await interpreter.close();
  }
});
