// SPDX-License-Identifier: Apache-2.0
// Sandboxes: made, found, listed, changed, deleted.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SandboxInstance } from "@blaxel/core";
import { uniqueName, waitUntil, withSandbox } from "./support.mjs";

test("create answers with a sandbox that can be used at once", async () => {
  const name = uniqueName();
  const made = await SandboxInstance.create({
    name,
    image: "blaxel/base-image:latest",
    memory: 2048,
    ports: [{ target: 3000, protocol: "HTTP" }],
    envs: [{ name: "A", value: "1" }],
    labels: { team: "red" },
    ttl: "1h",
  });
  try {
    assert.equal(made.metadata.name, name);
    assert.equal(made.metadata.workspace, "default");
    assert.deepEqual(made.metadata.labels, { team: "red" });
    assert.ok(made.metadata.url.endsWith(`/default/sandboxes/${name}`), made.metadata.url);
    assert.equal(made.status, "DEPLOYED");
    assert.equal(made.spec.enabled, true);
    assert.equal(made.spec.runtime.image, "blaxel/base-image:latest");
    assert.equal(made.spec.runtime.memory, 2048);
    assert.deepEqual(made.spec.runtime.envs, [{ name: "A", value: "1" }]);
    assert.deepEqual(made.spec.runtime.ports, [{ target: 3000, protocol: "HTTP" }]);
    assert.equal(made.spec.runtime.ttl, "1h");
    assert.equal(made.spec.runtime.generation, "mk3");
    assert.ok(Date.parse(made.metadata.createdAt) > 0);
    assert.ok(made.events.some((event) => event.type === "CREATE" && event.status === "SUCCESS"));
    assert.ok((await made.fs.ls("/")).subdirectories.some((entry) => entry.name === "tmp"));
  } finally {
    await SandboxInstance.delete(name);
  }
});

test("create without a name is given one", async () => {
  const made = await SandboxInstance.create();
  try {
    assert.match(made.metadata.name, /^[a-z0-9-]{3,63}$/);
    assert.equal(made.spec.runtime.memory, 4096);
    assert.equal((await SandboxInstance.get(made.metadata.name)).status, "DEPLOYED");
  } finally {
    await made.delete();
  }
});

test("create with the whole object and with safe", async () => {
  const made = await SandboxInstance.create(
    { metadata: { name: uniqueName(), displayName: "My box" }, spec: { runtime: { memory: 512 } } },
    { safe: true },
  );
  try {
    assert.equal(made.metadata.displayName, "My box");
    assert.equal(made.spec.runtime.memory, 512);
  } finally {
    await made.delete();
  }
});

test("a second one of the same name is a conflict with a numeric code", async () => {
  await withSandbox(async (sandbox) => {
    await assert.rejects(SandboxInstance.create({ name: sandbox.metadata.name }), (error) => {
      assert.equal(error.code, 409);
      assert.equal(error.error, "ALREADY_EXISTS");
      assert.match(error.message, /exists already/);
      return true;
    });
  });
});

test("createIfNotExists makes one and then finds it", async () => {
  const name = uniqueName();
  const first = await SandboxInstance.createIfNotExists({ name, memory: 512 });
  try {
    await first.fs.write("/tmp/mark", "here");
    const second = await SandboxInstance.createIfNotExists({ name, memory: 1024 });
    assert.equal(second.metadata.createdAt, first.metadata.createdAt);
    assert.equal(second.spec.runtime.memory, 512);
    assert.equal(await second.fs.read("/tmp/mark"), "here");
  } finally {
    await SandboxInstance.delete(name);
  }
});

test("createIfNotExists by several at once makes one", async () => {
  const name = uniqueName();
  try {
    const made = await Promise.all(
      Array.from({ length: 5 }, () => SandboxInstance.createIfNotExists({ name, memory: 512 })),
    );
    assert.equal(new Set(made.map((one) => one.metadata.createdAt)).size, 1);
  } finally {
    await SandboxInstance.delete(name);
  }
});

test("createIfNotExists right after delete makes another one", async () => {
  const name = uniqueName();
  const first = await SandboxInstance.createIfNotExists({ name, memory: 512 });
  await first.fs.write("/tmp/mark", "here");
  const gone = await SandboxInstance.delete(name);
  assert.equal(gone.status, "DELETING");
  const second = await SandboxInstance.createIfNotExists({ name, memory: 512 });
  try {
    await assert.rejects(second.fs.read("/tmp/mark"), (error) => error.status === 404);
  } finally {
    await second.delete();
  }
});

test("get of one that is not there has code 404", async () => {
  await assert.rejects(SandboxInstance.get(uniqueName("none")), (error) => {
    assert.equal(error.code, 404);
    assert.equal(error.error, "SANDBOX_NOT_FOUND");
    return true;
  });
});

test("delete takes it away", async () => {
  const made = await SandboxInstance.create({ name: uniqueName(), memory: 512 });
  assert.equal((await made.delete()).status, "DELETING");
  await waitUntil(async () => {
    try {
      await SandboxInstance.get(made.metadata.name);
      return false;
    } catch (error) {
      return error.code === 404;
    }
  }, "the sandbox to be gone");
});

test("an external id finds it, and belongs to one", async () => {
  const externalId = `ext-${process.pid}-1`;
  await withSandbox(
    async (sandbox) => {
      assert.equal(sandbox.metadata.externalId, externalId);
      const found = await SandboxInstance.getByExternalId(externalId);
      assert.equal(found.metadata.name, sandbox.metadata.name);
      const page = await SandboxInstance.list({ externalId });
      assert.deepEqual(page.data.map((one) => one.metadata.name), [sandbox.metadata.name]);
      await assert.rejects(SandboxInstance.getByExternalId("no-such-id"), (e) => e.code === 404);
    },
    { externalId },
  );
});

test("list pages through everything, in each order", async () => {
  const stem = uniqueName("page");
  const names = ["a", "b", "c", "d", "e"].map((letter) => `${stem}-${letter}`);
  for (const name of names) await SandboxInstance.create({ name, memory: 512, labels: { stem } });
  try {
    for (const [sort, expected] of [
      ["name:asc", names],
      ["name:desc", names.toReversed()],
      ["createdAt:asc", names],
      ["createdAt:desc", names.toReversed()],
    ]) {
      const page = await SandboxInstance.list({ limit: 2, sort, q: stem });
      assert.equal(page.data.length, 2);
      assert.ok(page.hasMore);
      const all = await page.autoPagingToArray({ limit: 100 });
      assert.deepEqual(all.map((one) => one.metadata.name), expected, sort);
    }
    const deployed = await SandboxInstance.list({ q: stem, status: "DEPLOYED,FAILED" });
    assert.equal(deployed.data.length, 5);
    const deleted = await SandboxInstance.list({ q: stem, status: "DELETING" });
    assert.equal(deleted.data.length, 0);
    await assert.rejects(SandboxInstance.list({ sort: "size:asc" }), (e) => e.code === 400);
    await assert.rejects(SandboxInstance.list({ cursor: "bm90IG9uZQ==" }), (e) => e.code === 400);
  } finally {
    await Promise.all(names.map((name) => SandboxInstance.delete(name)));
  }
});

test("updates change what they name and keep the rest", async () => {
  await withSandbox(
    async (sandbox) => {
      const { name } = sandbox.metadata;
      await sandbox.fs.write("/tmp/kept", "1");
      const labelled = await SandboxInstance.updateMetadata(name, {
        labels: { x: "y" },
        displayName: "Named",
      });
      assert.deepEqual(labelled.metadata.labels, { x: "y" });
      assert.equal(labelled.metadata.displayName, "Named");
      assert.equal(labelled.spec.runtime.ttl, "1h");
      assert.equal((await SandboxInstance.updateTtl(name, "2h")).spec.runtime.ttl, "2h");
      assert.equal((await SandboxInstance.updateTtl(name, "")).spec.runtime.ttl, undefined);
      const lifecycle = {
        expirationPolicies: [{ type: "ttl-max-age", value: "24h", action: "delete" }],
      };
      const aged = await SandboxInstance.updateLifecycle(name, lifecycle);
      assert.deepEqual(aged.spec.lifecycle, lifecycle);
      assert.deepEqual((await SandboxInstance.get(name)).spec.lifecycle, lifecycle);
      const networked = await SandboxInstance.updateNetwork(name, {
        network: { allowedDomains: ["example.com"] },
      });
      assert.deepEqual(networked.spec.network, { allowedDomains: ["example.com"] });
      const now = await SandboxInstance.get(name);
      assert.equal(now.metadata.displayName, "Named");
      assert.deepEqual(now.metadata.labels, { x: "y" });
      assert.deepEqual(now.spec.runtime.envs, [{ name: "SECRET", value: "s" }]);
      assert.equal(now.spec.runtime.memory, 512);
      assert.equal(now.status, "DEPLOYED");
      assert.equal(await sandbox.fs.read("/tmp/kept"), "1");
    },
    { ttl: "1h", envs: [{ name: "SECRET", value: "s" }] },
  );
});

test("fork makes a sandbox with the same files and a life of its own", async () => {
  await withSandbox(async (sandbox) => {
    const target = uniqueName("fork");
    await sandbox.fs.write("/tmp/mark", "before");
    const made = await sandbox.fork(target, { envs: [{ name: "NEW", value: "1" }] });
    try {
      assert.deepEqual(made, { name: target, type: "sandbox" });
      await sandbox.fs.write("/tmp/mark", "after");
      const fork = await SandboxInstance.get(target);
      assert.equal(fork.status, "DEPLOYED");
      assert.equal(await fork.fs.read("/tmp/mark"), "before");
      assert.deepEqual(fork.spec.runtime.envs, [{ name: "NEW", value: "1" }]);
    } finally {
      await SandboxInstance.delete(target);
    }
    await assert.rejects(sandbox.fork(target, { targetType: "application" }), (e) => e.code === 400);
  });
});

test("lists of what does not exist here are empty", async () => {
  const { listDrives, listImages, listVolumes } = await import("@blaxel/core");
  assert.deepEqual((await listVolumes({ throwOnError: true })).data.data, []);
  assert.deepEqual((await listDrives({ throwOnError: true })).data.data, []);
  assert.deepEqual((await listImages({ throwOnError: true })).data, []);
  await withSandbox(async (sandbox) => {
    assert.deepEqual(await sandbox.snapshots.list(), []);
    assert.deepEqual((await sandbox.schedules.list()).data, []);
    assert.deepEqual((await sandbox.schedules.executions()).data, []);
    await assert.rejects(sandbox.schedules.create({}), (error) => error.code === 405);
  });
});

test("bad requests are refused and say why", async () => {
  for (const bad of [
    { name: "Not A Name" },
    { name: uniqueName(), image: "no/such-image:1" },
    { name: uniqueName(), memory: -5 },
    { name: uniqueName(), envs: [{ name: "A=B", value: "1" }] },
  ])
    await assert.rejects(SandboxInstance.create(bad), (error) => {
      assert.ok(error.code === 400 || error.code === 404, JSON.stringify(error));
      assert.ok(error.message.length > 10);
      return true;
    });
});
