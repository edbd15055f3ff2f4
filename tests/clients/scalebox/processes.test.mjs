// SPDX-License-Identifier: Apache-2.0
// Commands and terminals.

import assert from "node:assert/strict";
import { test } from "node:test";
import {
  createScaleboxApi, isGrpcAuthError, isGrpcInvalidArgumentError, isGrpcNotFoundError,
} from "@scalebox/sdk";
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

test("input for a command", async () => {
  const { commands } = await shared();
  const handle = await commands.run("read line; echo got $line", { background: true });
  const pid = await pidOf(handle);
  await commands.sendStdin(pid, "něco\n");
  assert.equal((await handle.wait()).stdout, "got něco\n");
  await assert.rejects(commands.sendStdin(pid, "x"), /not found/);
});

test("processes by their tag", async () => {
  const { processes } = await shared();
  const events = processes.start({ cmd: "/bin/cat", args: [] }, { tag: "echo" });
  assert.equal((await events.next()).value.type, "start");
  assert.ok((await processes.list()).some((item) => item.tag === "echo" && item.config.cmd === "/bin/cat"));
  const viewer = processes.connect({ tag: "echo" });
  assert.equal((await viewer.next()).value.type, "start");
  await processes.sendInput({ tag: "echo" }, "both\n");
  for (const stream of [events, viewer]) {
    const { value } = await stream.next();
    assert.equal(Buffer.from(value.data.stdout).toString(), "both\n");
  }
  await processes.sendSignal({ tag: "echo" }, "SIGTERM");
  for (const stream of [events, viewer]) {
    const { value } = await stream.next();
    assert.equal(value.type, "end");
    assert.equal(value.data.status, "signal: terminated");
  }
});

test("a process with a terminal, by its events", async () => {
  const { processes } = await shared();
  const events = processes.start({ cmd: "/bin/bash", args: ["--norc"], envs: { PS1: "" } }, {
    pty: { size: { cols: 70, rows: 15 } }, tag: "screen",
  });
  let seen = "";
  const until = async (text) => {
    while (!seen.includes(text)) {
      const { value, done } = await events.next();
      assert.ok(!done && value.type !== "end", seen);
      if (value.data?.pty) seen += Buffer.from(value.data.pty).toString();
    }
  };
  await events.next();
  await processes.sendPtyInput({ tag: "screen" }, "stty size\n");
  await until("15 70");
  await processes.update({ tag: "screen" }, { pty: { size: { cols: 71, rows: 16 } } });
  await processes.sendPtyInput({ tag: "screen" }, "stty size\n");
  await until("16 71");
  await processes.sendPtyInput({ tag: "screen" }, "exit 5\n");
  let last;
  for await (const event of events) last = event;
  assert.equal(last.data.exitCode, 5);
});

test("a command that takes too long", async () => {
  const { commands } = await shared();
  await assert.rejects(commands.run("sleep 3600", { timeoutMs: 1500 }), /deadline|abort|time/i);
});

test("two at one terminal, and one that comes back", async () => {
  const { pty } = await shared();
  const seen = ["", "", ""];
  const into = (i) => (data) => (seen[i] += Buffer.from(data).toString());
  const first = await pty.start({ size: { cols: 90, rows: 20 }, envs: { PS1: "$ " }, onData: into(0) });
  const pid = await pidOf(first);
  const second = await pty.connect(pid, { onData: into(1) });
  assert.equal(await pidOf(second), pid);
  await second.send("echo both-$((20+2))\n");
  await waitUntil(() => seen[0].includes("both-22") && seen[1].includes("both-22"), () => seen);
  const third = await pty.connect(pid, { onData: into(2) });
  await pidOf(third);
  await first.send("stty size\n");
  await waitUntil(() => seen.every((text) => text.includes("20 90")), () => seen);
  await pty.resize(pid, { cols: 61, rows: 17 });
  await third.send("stty size\n");
  await waitUntil(() => seen.every((text) => text.includes("17 61")), () => seen);
  assert.equal(await third.kill(), true);
  for (const viewer of [first, second, third]) await viewer.wait().catch(() => {});
  assert.equal(await pty.kill(pid), false);
});

test("errors of the services have their codes", async () => {
  const sandbox = await shared();
  const api = createScaleboxApi(sandbox.sandboxDomain, sandbox.envdAccessToken, sandbox.connectionConfig);
  const failsWith = (promise, check) => assert.rejects(promise, (error) => check(error));
  await failsWith(api.filesystem.stat({ path: "/nope" }), isGrpcNotFoundError);
  await failsWith(api.process.sendSignal({ signal: 9 }), isGrpcInvalidArgumentError);
  await failsWith(api.context.createContext({ language: "cobol" }), isGrpcInvalidArgumentError);
  await failsWith(api.process.sendSignal({ process: { selector: { case: "pid", value: 999999 } }, signal: 9 }), isGrpcNotFoundError);
  const stranger = createScaleboxApi(sandbox.sandboxDomain, `${sandbox.sandboxId}:no`, sandbox.connectionConfig);
  await failsWith(stranger.filesystem.stat({ path: "/" }), isGrpcAuthError);
});
