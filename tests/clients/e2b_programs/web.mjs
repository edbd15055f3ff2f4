// SPDX-License-Identifier: Apache-2.0
// A web application that an agent writes, starts, looks at, changes and hands to somebody: files, a server in the
// background, its log, its public port, and a page that changes while it is watched.

import assert from "node:assert/strict";
import { Sandbox } from "e2b";

const sandbox = await Sandbox.create({ timeoutMs: 300_000, envs: { PORT: "8000", NODE_ENV: "production" } });
try {
  await sandbox.files.write([
    { path: "app/server.py", data: `
import http.server, os, sys
class Page(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        print("GET", self.path, flush=True)
os.chdir("/home/user/app/public")
print("listening on", os.environ["PORT"], flush=True)
http.server.ThreadingHTTPServer(("0.0.0.0", int(os.environ["PORT"])), Page).serve_forever()
` },
    { path: "app/public/index.html", data: "<h1>first</h1>" },
  ]);
  let log = "";
  let ready;
  const listening = new Promise((resolve) => (ready = resolve));
  const server = await sandbox.commands.run("python3 app/server.py", {
    background: true, timeoutMs: 0,
    onStdout: (data) => {
      log += data;
      if (log.includes("listening on 8000")) ready();
    },
  });
  await listening;
  const page = async () => {
    for (;;) {
      const answer = await fetch(process.env.E2B_SANDBOX_URL, {
        headers: { "E2b-Sandbox-Id": sandbox.sandboxId, "E2b-Sandbox-Port": "8000" } });
      if (answer.status === 200) return answer.text();
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  assert.equal(await page(), "<h1>first</h1>");
  assert.match(`https://${sandbox.getHost(8000)}`, /^https:\/\/8000-[a-z0-9]+\./);

  const changed = new Promise((resolve) => {
    sandbox.files.watchDir("app/public", (event) => event.type === "write" && resolve(event.name), { timeoutMs: 0 })
      .then(() => sandbox.files.write("app/public/index.html", "<h1>second</h1>"));
  });
  assert.equal(await changed, "index.html");
  assert.equal(await page(), "<h1>second</h1>");

  const running = await sandbox.commands.list();
  assert.ok(running.some((process) => process.pid === server.pid));
  assert.equal(await server.kill(), true);
  await server.wait().catch((err) => assert.equal(err.error, "signal: killed"));
  assert.match(log, /GET \//);
} finally {
  await sandbox.kill();
}
console.log("done");
