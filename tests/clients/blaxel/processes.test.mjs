// SPDX-License-Identifier: Apache-2.0
// Processes: started, named, waited for, watched, fed, ended.

import assert from "node:assert/strict";
import { test } from "node:test";
import { sharedSandbox, uniqueName, waitUntil } from "./support.mjs";

const shared = sharedSandbox({ envs: [{ name: "FROM_SANDBOX", value: "outer" }] });

test("exec with waitForCompletion brings output and exit code", async () => {
  const { process } = await shared();
  const done = await process.exec({
    name: uniqueName("p"),
    command: "echo out; echo err >&2; echo $X $FROM_SANDBOX; pwd; exit 3",
    waitForCompletion: true,
    workingDir: "/tmp",
    env: { X: "1" },
    timeout: 30,
  });
  assert.equal(typeof done.pid, "string");
  assert.equal(done.status, "failed");
  assert.equal(done.exitCode, 3);
  assert.equal(done.stdout, "out\n1 outer\n/tmp\n");
  assert.equal(done.stderr, "err\n");
  assert.ok(done.logs.includes("out\n") && done.logs.includes("err\n"));
  assert.equal(done.workingDir, "/tmp");
  assert.ok(Date.parse(done.startedAt) > 0 && Date.parse(done.completedAt) > 0);
  assert.equal(done.restartCount, 0);
});

test("logs have both streams in the order of their coming", async () => {
  const { process } = await shared();
  const name = uniqueName("o");
  const pieces = ["out1\n", "err1\n", "out2\n", "err2\n"];
  await process.exec({
    name,
    command: "for i in 1 2; do echo out$i; read x; echo err$i >&2; read x; done",
    stdin: true,
  });
  for (let i = 1; i <= pieces.length; i += 1) {
    const expected = pieces.slice(0, i).join("");
    await waitUntil(async () => (await process.logs(name)) === expected, expected);
    await process.writeStdin(name, "go on\n");
  }
  const done = await process.wait(name, { interval: 50 });
  assert.equal(done.logs, pieces.join(""));
  assert.equal(await process.logs(name, "stdout"), "out1\nout2\n");
  assert.equal(await process.logs(name, "stderr"), "err1\nerr2\n");
});

test("exec without waiting, then wait", async () => {
  const { process } = await shared();
  const name = uniqueName("w");
  const started = await process.exec({ name, command: "read x; echo late", stdin: true });
  assert.equal(started.name, name);
  assert.equal(started.status, "running");
  await process.closeStdin(name);
  const done = await process.wait(name, { interval: 50 });
  assert.equal(done.status, "completed");
  assert.equal(done.exitCode, 0);
  assert.equal(done.logs, "late\n");
  assert.equal(done.pid, started.pid);
});

test("a process is found by pid and by name, and listed", async () => {
  const { process } = await shared();
  const name = uniqueName("named");
  const started = await process.exec({ name, command: "sleep 60" });
  assert.equal((await process.get(name)).pid, started.pid);
  assert.equal((await process.get(started.pid)).name, name);
  assert.ok((await process.list()).some((one) => one.name === name && one.status === "running"));
  await assert.rejects(process.exec({ name, command: "true" }), (error) => error.status === 400);
  assert.match((await process.kill(name)).message, /success/);
  assert.equal((await process.get(name)).status, "killed");
  await assert.rejects(process.get("no-such-process"), (error) => error.status === 404);
});

test("one without a name is given one", async () => {
  const { process } = await shared();
  const done = await process.exec({ command: "true", waitForCompletion: true });
  assert.match(done.name, /^proc-[a-z0-9]{8}$/);
  assert.equal(done.status, "completed");
});

test("stop ends it and its children", async () => {
  const { process } = await shared();
  const name = uniqueName("s");
  await process.exec({ name, command: "sleep 1000 & sleep 1000 & echo ready; wait" });
  await waitUntil(async () => (await process.logs(name)).includes("ready"), "its children");
  assert.match((await process.stop(name)).message, /success/);
  assert.equal((await process.get(name)).status, "stopped");
  const left = await process.exec({ command: "pgrep -fc '^sleep 1000' || true", waitForCompletion: true });
  assert.equal(left.stdout.trim(), "0");
});

test("a wait that is too long is told, and the process goes on", async () => {
  const { process } = await shared();
  const name = uniqueName("t");
  await assert.rejects(
    process.exec({ name, command: "sleep 60", waitForCompletion: true, timeout: 1 }),
    (error) => error.status === 422,
  );
  assert.equal((await process.get(name)).status, "running");
  await process.kill(name);
});

test("a process that is kept alive is ended by its timeout", async () => {
  const { process } = await shared();
  const name = uniqueName("k");
  const started = await process.exec({ name, command: "sleep 60", keepAlive: true, timeout: 1 });
  assert.equal(started.keepAlive, true);
  const done = await process.wait(name, { interval: 100 });
  assert.equal(done.status, "killed");
});

test("output as it comes, by the callbacks of exec", async () => {
  const { process } = await shared();
  const seen = { logs: "", out: "", err: "" };
  const done = await process.exec({
    command: "echo one; echo two >&2; printf žluťoučký; exit 5",
    waitForCompletion: true,
    onLog: (text) => (seen.logs += text),
    onStdout: (text) => (seen.out += text),
    onStderr: (text) => (seen.err += text),
  });
  assert.equal(seen.out, "one\nžluťoučký");
  assert.equal(seen.err, "two\n");
  assert.equal(seen.logs.length, "one\ntwo\nžluťoučký".length);
  assert.equal(done.exitCode, 5);
  assert.equal(done.status, "failed");
  assert.equal(done.stdout, "one\nžluťoučký");
  assert.equal(done.logs.length, seen.logs.length);
  done.close();
});

test("a megabyte comes whole through the callbacks", async () => {
  const { process } = await shared();
  let length = 0;
  await process.exec({
    command: "head -c 1000000 /dev/zero | tr '\\0' x",
    waitForCompletion: true,
    onLog: (text) => (length += text.length),
  });
  assert.equal(length, 1_000_000);
});

test("callbacks of a process that nobody waits for", async () => {
  const { process } = await shared();
  const lines = [];
  const started = await process.exec({
    command: "echo first; echo second; echo third >&2",
    onLog: (line) => lines.push(line),
  });
  await waitUntil(() => lines.length === 3, "three lines");
  started.close();
  assert.deepEqual(lines.sort(), ["first", "second", "third"]);
});

test("streamLogs begins with what was there", async () => {
  const { process } = await shared();
  const name = uniqueName("l");
  await process.exec({ name, command: "echo early; read x; echo $x; echo e >&2", stdin: true });
  await waitUntil(async () => (await process.logs(name)).includes("early"), "its first line");
  const out = [];
  const err = [];
  const stream = process.streamLogs(name, {
    onStdout: (line) => out.push(line),
    onStderr: (line) => err.push(line),
  });
  await waitUntil(() => out.includes("early"), "the backlog");
  await process.writeStdin(name, "late\n");
  await stream.wait();
  assert.deepEqual(out, ["early", "late"]);
  assert.deepEqual(err, ["e"]);
});

test("streamLogs of one that is not there is an error", async () => {
  const { process } = await shared();
  const errors = [];
  await process.streamLogs("no-such-process", { onError: (error) => errors.push(error) }).wait();
  assert.equal(errors.length, 1);
  assert.match(errors[0].message, /no process/i);
});

test("stdin: bytes in, end of file, and none without asking", async () => {
  const { process } = await shared();
  const name = uniqueName("i");
  const started = await process.exec({ name, command: "cat; echo done", stdin: true });
  assert.equal(started.stdin, true);
  await process.writeStdin(name, "hello\n");
  await process.writeStdin(name, new Uint8Array([0x77, 0x6f, 0x0a]));
  await process.closeStdin(name);
  assert.equal((await process.wait(name, { interval: 50 })).stdout, "hello\nwo\ndone\n");
  const without = uniqueName("i");
  await process.exec({ name: without, command: "sleep 60" });
  await assert.rejects(process.writeStdin(without, "x"), (error) => error.status === 409);
  await process.kill(without);
});

test("restartOnFailure starts it again, with the same pid", async () => {
  const { process } = await shared();
  const name = uniqueName("r");
  const started = await process.exec({
    name,
    command: "echo run; test -e /tmp/second || { touch /tmp/second; exit 1; }",
    restartOnFailure: true,
    maxRestarts: 3,
  });
  const done = await waitUntil(async () => {
    const now = await process.get(name);
    return now.status === "completed" && now;
  }, "its second run");
  assert.equal(done.pid, started.pid);
  assert.equal(done.restartCount, 1);
  assert.equal(done.maxRestarts, 3);
  assert.equal(done.logs, "run\nrun\n");
});

test("waitForPorts answers when it listens", async () => {
  const { process } = await shared();
  const name = uniqueName("port");
  const started = await process.exec({
    name,
    command: "sleep 0.3; exec python3 -m http.server 8123 --bind 0.0.0.0",
    waitForPorts: [8123],
  });
  assert.equal(started.status, "running");
  const ports = await process.exec({
    command: "python3 -c \"import socket; socket.create_connection(('127.0.0.1', 8123))\"",
    waitForCompletion: true,
  });
  assert.equal(ports.exitCode, 0);
  await process.kill(name);
});

test("fs.cp copies trees", async () => {
  const { fs } = await shared();
  await fs.write("/tmp/cp/a file/x", "content");
  await fs.cp("/tmp/cp", "/tmp/cp2");
  assert.equal(await fs.read("/tmp/cp2/a file/x"), "content");
  await assert.rejects(fs.cp("/tmp/none", "/tmp/x"), /Could not copy/);
});

test("a command that cannot be is refused with a reason", async () => {
  const { process } = await shared();
  await assert.rejects(process.exec({ command: "" }), (error) => {
    assert.equal(error.status, 400);
    assert.match(error.message, /command/);
    return true;
  });
  await assert.rejects(
    process.exec({ command: "true", workingDir: "/no/such/place", waitForCompletion: true }),
    (error) => error.status === 404,
  );
});
