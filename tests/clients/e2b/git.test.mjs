// SPDX-License-Identifier: Apache-2.0
// The whole of sandbox.git, with a repository in the sandbox as the remote.

import assert from "node:assert/strict";
import { test } from "node:test";
import { CommandExitError, GitUpstreamError } from "e2b";
import { sharedSandbox, unique } from "./support.mjs";

const shared = sharedSandbox();

// A repository with one commit, and a bare one that it can be pushed to.
async function repository() {
  const box = await shared();
  const path = unique("repo"), remote = `/home/user/${path}.git`;
  await box.git.init(path, { initialBranch: "main" });
  await box.git.init(remote, { bare: true, initialBranch: "main" });
  await box.git.configureUser("Somebody", "somebody@example.com", { scope: "local", path });
  await box.files.write(`${path}/a.txt`, "1");
  await box.git.add(path);
  await box.git.commit(path, "first");
  return { git: box.git, files: box.files, path, remote };
}

test("status tells what has changed", async () => {
  const { git, files, path } = await repository();
  assert.equal((await git.status(path)).isClean, true);
  await files.write(`${path}/a.txt`, "2");
  await files.write(`${path}/new.txt`, "3");
  const status = await git.status(path);
  assert.equal(status.currentBranch, "main");
  assert.equal(status.isClean, false);
  assert.equal(status.untrackedCount, 1);
  assert.deepEqual(status.fileStatus.map((f) => [f.name, f.status]).sort(), [["a.txt", "modified"], ["new.txt", "untracked"]]);
  await git.add(path, { files: ["new.txt"] });
  assert.equal((await git.status(path)).stagedCount, 1);
  await git.reset(path, { paths: ["new.txt"] });
  assert.equal((await git.status(path)).stagedCount, 0);
  await git.restore(path, { paths: ["a.txt"] });
  assert.equal(await files.read(`${path}/a.txt`), "1");
  await git.commit(path, "nothing", { allowEmpty: true, authorName: "Other", authorEmail: "other@example.com" });
  await git.reset(path, { mode: "hard", target: "HEAD~1" });
});

test("branches are made, changed and deleted", async () => {
  const { git, path } = await repository();
  await git.createBranch(path, "feature");
  assert.deepEqual(await git.branches(path), { branches: ["feature", "main"], currentBranch: "feature" });
  await git.checkoutBranch(path, "main");
  await git.deleteBranch(path, "feature", { force: true });
  assert.deepEqual((await git.branches(path)).branches, ["main"]);
  await assert.rejects(git.checkoutBranch(path, "none"), CommandExitError);
});

test("remotes are pushed to, pulled from and cloned", async () => {
  const { git, files, path, remote } = await repository();
  assert.equal(await git.remoteGet(path, "origin"), undefined);
  await git.remoteAdd(path, "origin", "/nowhere");
  await git.remoteAdd(path, "origin", remote, { overwrite: true });
  assert.equal(await git.remoteGet(path, "origin"), remote);
  await assert.rejects(git.pull(path), GitUpstreamError);
  await git.push(path, { remote: "origin", branch: "main", setUpstream: true });
  const copy = `${path}-copy`;
  await git.clone(remote, { path: copy, branch: "main", depth: 1 });
  assert.equal(await files.read(`${copy}/a.txt`), "1");
  await files.write(`${path}/b.txt`, "b");
  await git.add(path);
  await git.commit(path, "second");
  await git.push(path);
  await git.pull(copy);
  assert.equal(await files.read(`${copy}/b.txt`), "b");
  assert.equal((await git.status(copy)).upstream, "origin/main");
});

test("settings are kept where they are put", async () => {
  const { git, path } = await repository();
  await git.setConfig("pull.rebase", "true", { scope: "local", path });
  assert.equal(await git.getConfig("pull.rebase", { scope: "local", path }), "true");
  assert.equal(await git.getConfig("no.such", { scope: "local", path }), undefined);
  await git.configureUser("Everywhere", "everywhere@example.com");
  assert.equal(await git.getConfig("user.name"), "Everywhere");
  await git.dangerouslyAuthenticate({ username: "somebody", password: "secret", host: "git.example" });
});
