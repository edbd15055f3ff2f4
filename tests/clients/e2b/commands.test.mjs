// SPDX-License-Identifier: Apache-2.0
// Commands and terminals.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandExitError, InvalidArgumentError, TimeoutError } from "e2b";
import { sharedSandbox, unique, waitUntil } from "./support.mjs";

const shared = sharedSandbox({ envs: { FROM_SANDBOX: "box" } });

test("a command runs as user, at home, with its output", async () => {
  const box = await shared();
  const result = await box.commands.run("whoami; pwd; echo $HOME; echo err >&2; echo $FROM_SANDBOX");
  assert.equal(result.stdout, "user\n/home/user\n/home/user\nbox\n");
  assert.equal(result.stderr, "err\n");
  assert.equal(result.exitCode, 0);
  assert.equal(result.error, undefined);
});

test("as root, elsewhere, with variables", async () => {
  const box = await shared();
  const result = await box.commands.run("whoami; pwd; echo $A", {
    user: "root", cwd: "/tmp", envs: { A: "b c" } });
  assert.equal(result.stdout, "root\n/tmp\nb c\n");
  const sudo = await box.commands.run("sudo id -u");
  assert.equal(sudo.stdout, "0\n");
});

test("what fails is told with its status", async () => {
  const box = await shared();
  await assert.rejects(box.commands.run("echo out; exit 3"), (err) => {
    assert.ok(err instanceof CommandExitError);
    assert.equal(err.exitCode, 3);
    assert.equal(err.stdout, "out\n");
    return true;
  });
  await assert.rejects(box.commands.run("ls", { cwd: "/nope" }), InvalidArgumentError);
  await assert.rejects(box.commands.run("ls", { user: "nobodyhere" }), InvalidArgumentError);
});

test("output comes as it is written", async () => {
  const box = await shared();
  const seen = [];
  const command = await box.commands.run("echo first; read line; echo got $line", {
    background: true, stdin: true, onStdout: (data) => seen.push(data) });
  await waitUntil(() => seen.join("") === "first\n", "the first line");
  await box.commands.sendStdin(command.pid, "hello\n");
  const result = await command.wait();
  assert.equal(result.stdout, "first\ngot hello\n");
});

test("the end of input is told", async () => {
  const box = await shared();
  const command = await box.commands.run("cat; echo end", { background: true, stdin: true });
  await command.sendStdin("some bytes\n");
  await command.closeStdin();
  assert.equal((await command.wait()).stdout, "some bytes\nend\n");
});

test("processes are listed, joined and killed", async () => {
  const box = await shared();
  const word = unique("listed");
  const command = await box.commands.run(`sleep 1000; echo ${word}`, { background: true, timeoutMs: 0 });
  const listed = (await box.commands.list()).find((p) => p.pid === command.pid);
  assert.equal(listed.cmd, "/bin/bash");
  assert.deepEqual(listed.args, ["-l", "-c", `sleep 1000; echo ${word}`]);
  assert.equal(listed.cwd, "/home/user");
  const joined = await box.commands.connect(command.pid);
  assert.equal(await box.commands.kill(command.pid), true);
  await assert.rejects(joined.wait(), (err) => {
    assert.ok(err instanceof CommandExitError);
    assert.equal(err.error, "signal: killed");
    return true;
  });
  await assert.rejects(command.wait(), CommandExitError);
  assert.equal(await box.commands.kill(command.pid), false);
  assert.ok(!(await box.commands.list()).some((p) => p.pid === command.pid));
});

test("who joins sees what is written from then on", async () => {
  const box = await shared();
  const command = await box.commands.run("read a; echo then", { background: true, stdin: true });
  let seen = "";
  const joined = await box.commands.connect(command.pid, { onStdout: (data) => (seen += data) });
  await command.sendStdin("go\n");
  assert.equal((await joined.wait()).stdout, "then\n");
  assert.equal(seen, "then\n");
  await command.wait();
});

test("one that is left goes on", async () => {
  const box = await shared();
  const file = unique("left");
  const command = await box.commands.run(`while [ ! -e ${file}.go ]; do sleep 0.05; done; touch ${file}.done`, {
    background: true, timeoutMs: 0 });
  await command.disconnect();
  await box.files.write(`${file}.go`, "");
  await waitUntil(() => box.files.exists(`${file}.done`), "the command's end");
});

test("a time-out ends the command", async () => {
  const box = await shared();
  const word = unique("9999");
  await assert.rejects(box.commands.run(`exec -a ${word} sleep 1000`, { timeoutMs: 500 }), TimeoutError);
  await waitUntil(async () => {
    const { stdout } = await box.commands.run(`pgrep -f '^${word}' || true`);
    return stdout === "";
  }, "the end of what ran out of time");
});

test("ten megabytes arrive whole", async () => {
  const box = await shared();
  const result = await box.commands.run("head -c 10000000 /dev/zero | tr '\\0' x");
  assert.equal(result.stdout.length, 10_000_000);
});

test("bytes that are no text are survived", async () => {
  const box = await shared();
  const result = await box.commands.run("printf 'a\\xff\\xfeb'; printf '\\xc3'; sleep 0.1; printf '\\xa4'");
  assert.ok(result.stdout.startsWith("a"));
  assert.ok(result.stdout.endsWith("ä"));
});

test("a terminal: output, input, size, end", async () => {
  const box = await shared();
  let seen = "";
  const pty = await box.pty.create({
    cols: 80, rows: 24, timeoutMs: 0, onData: (data) => (seen += Buffer.from(data).toString()) });
  await box.pty.resize(pty.pid, { cols: 100, rows: 30 });
  await box.pty.sendInput(pty.pid, new TextEncoder().encode("stty size; echo $TERM; whoami; exit 5\n"));
  await assert.rejects(pty.wait(), (err) => err instanceof CommandExitError && err.exitCode === 5);
  assert.match(seen, /30 100\r\n/);
  assert.match(seen, /xterm-256color\r\n/);
  assert.match(seen, /user\r\n/);
});

test("a terminal has several viewers, and is killed", async () => {
  const box = await shared();
  let one = "", two = "";
  const pty = await box.pty.create({
    cols: 80, rows: 24, timeoutMs: 0, onData: (data) => (one += Buffer.from(data).toString()) });
  const other = await box.pty.connect(pty.pid, {
    timeoutMs: 0, onData: (data) => (two += Buffer.from(data).toString()) });
  await box.pty.sendInput(pty.pid, new TextEncoder().encode("echo both $((40+2))\n"));
  await waitUntil(() => one.includes("both 42") && two.includes("both 42"), "output at both");
  assert.ok((await box.commands.list()).some((p) => p.pid === pty.pid));
  assert.equal(await box.pty.kill(pty.pid), true);
  await assert.rejects(pty.wait(), CommandExitError);
  await assert.rejects(other.wait(), CommandExitError);
  assert.equal(await box.pty.kill(pty.pid), false);
});
