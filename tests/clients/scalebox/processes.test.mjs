// SPDX-License-Identifier: Apache-2.0
// Commands and terminals.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedSandbox, waitUntil } from "./support.mjs";

const shared = sharedSandbox();

// The getter throws until the first event has come.
const pidOf = (handle) =>
  waitUntil(() => {
    try {
      return handle.pid;
    } catch {
      return false;
    }
  }, "a pid");

test("a command's output and exit code", async () => {
  const { commands } = await shared();
  const done = await commands.run("echo out; echo err >&2; whoami");
  assert.equal(done.exitCode, 0);
  assert.equal(done.stdout, "out\nroot\n");
  assert.equal(done.stderr, "err\n");
});

test("a command that fails", async () => {
  const { commands } = await shared();
  const done = await commands.run("exit 3");
  assert.equal(done.exitCode, 3);
});

test("cwd and environment", async () => {
  const { commands } = await shared();
  const done = await commands.run("pwd; echo $COLOR", { cwd: "/tmp", envs: { COLOR: "blue" } });
  assert.equal(done.stdout, "/tmp\nblue\n");
});

test("output is streamed", async () => {
  const { commands } = await shared();
  let out = "";
  let err = "";
  await commands.run("for i in 1 2 3; do echo $i; echo e$i >&2; done", {
    onStdout: (text) => (out += text),
    onStderr: (text) => (err += text),
  });
  assert.equal(out, "1\n2\n3\n");
  assert.equal(err, "e1\ne2\ne3\n");
});

test("in the background: list, connect, kill", async () => {
  const { commands } = await shared();
  const handle = await commands.run("echo ready; exec sleep 3600", { background: true });
  const pid = await pidOf(handle);
  assert.ok((await commands.list()).some((process) => process.pid === pid));
  const again = await commands.connect(pid);
  assert.equal(await pidOf(again), pid);
  assert.equal(await commands.kill(pid), true);
  const done = await handle.wait();
  assert.notEqual(done.exitCode, 0);
  await again.wait();
  assert.equal(await commands.kill(pid), false);
});

test("a terminal", async () => {
  const { pty } = await shared();
  let seen = "";
  const terminal = await pty.start({
    cols: 80,
    rows: 24,
    onData: (data) => (seen += Buffer.from(data).toString()),
  });
  const pid = await pidOf(terminal);
  await pty.sendInput(pid, new TextEncoder().encode("stty size; echo $((6*7))\n"));
  await waitUntil(() => seen.includes("24 80") && seen.includes("42"), () => seen);
  await pty.resize(pid, { cols: 100, rows: 30 });
  await pty.sendInput(pid, new TextEncoder().encode("stty size\n"));
  await waitUntil(() => seen.includes("30 100"), () => seen);
  await pty.kill(pid);
});

test("a process by its events", async () => {
  const { processes } = await shared();
  const events = [];
  for await (const event of processes.start({ cmd: "/bin/sh", args: ["-c", "echo $0 $COLOR; exit 4"], envs: { COLOR: "red" } }))
    events.push(event);
  assert.equal(events[0].type, "start");
  assert.ok(events[0].data.pid > 0);
  assert.ok(events.some((event) => event.data?.stdout && Buffer.from(event.data.stdout).toString() === "/bin/sh red\n"));
  assert.equal(events.at(-1).type, "end");
  assert.equal(events.at(-1).data.exitCode, 4);
});

test("a program that is not there", async () => {
  const { commands } = await shared();
  const done = await commands.run("/no/such/program");
  assert.equal(done.exitCode, 127);
  assert.match(done.stderr, /No such file|not found/);
});

test("much output", async () => {
  const { commands } = await shared();
  const done = await commands.run("seq 1 200000");
  assert.equal(done.stdout.length, 1288895);
  assert.ok(done.stdout.endsWith("199999\n200000\n"));
});
