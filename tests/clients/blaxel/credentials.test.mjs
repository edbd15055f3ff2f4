// SPDX-License-Identifier: Apache-2.0
// Who is calling: client credentials instead of a key, and keys that are none.

import assert from "node:assert/strict";
import { test } from "node:test";
import { SandboxInstance, settings } from "@blaxel/core";

const { BL_API_KEY: key } = process.env;

test("client credentials become a token", async () => {
  settings.setConfig({
    clientCredentials: { clientId: "admin", clientSecret: key },
    workspace: "default",
  });
  assert.ok(Array.isArray((await SandboxInstance.list()).data));
  assert.notEqual(settings.token, key);
  assert.equal(settings.token.split(".").length, 3);
});

test("a wrong key is refused with code 401", async () => {
  settings.setConfig({ apiKey: "cella_wrong", workspace: "default" });
  await assert.rejects(SandboxInstance.list(), (error) => {
    assert.equal(error.code, 401);
    assert.equal(error.error, "UNAUTHORIZED");
    return true;
  });
});

test("a workspace that is not there looks like one that is another's", async () => {
  settings.setConfig({ apiKey: key, workspace: "no-such-workspace" });
  await assert.rejects(SandboxInstance.list(), (error) => error.code === 404);
});
