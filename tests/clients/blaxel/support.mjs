// SPDX-License-Identifier: Apache-2.0
// What the tests share. The client itself is taken as npm gives it.

import assert from "node:assert/strict";
import { after } from "node:test";
import { SandboxInstance } from "@blaxel/core";

const patience = Number(process.env.CELLA_TEST_PATIENCE ?? "1");
let counter = 0;

// A name that no other test and no other run has.
export function uniqueName(stem = "js") {
  return `${stem}-${process.pid}-${(counter += 1)}`;
}

// The client asks its users for a region with a warning at each create; a local server has none.
console.warn = () => {};

// A sandbox for this test alone.
export async function withSandbox(use, options = {}) {
  const sandbox = await SandboxInstance.create({ name: uniqueName(), memory: 512, ...options });
  try {
    return await use(sandbox);
  } finally {
    await SandboxInstance.delete(sandbox.metadata.name).catch(() => {});
  }
}

// One that all tests of a file share; removed at the end.
export function sharedSandbox(options = {}) {
  let made;
  after(async () => {
    if (made) await SandboxInstance.delete((await made).metadata.name);
  });
  return () => (made ??= SandboxInstance.create({ name: uniqueName(), memory: 512, ...options }));
}

// Polls until `check` gives something true; nothing here waits for luck.
export async function waitUntil(check, what, seconds = 30) {
  const deadline = Date.now() + seconds * patience * 1000;
  for (;;) {
    const got = await check();
    if (got) return got;
    assert.ok(Date.now() < deadline, `in vain: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

// Bytes that look random and are the same in every run.
export function noise(length, seed = 1) {
  const bytes = Buffer.alloc(length);
  let state = seed >>> 0 || 1;
  for (let i = 0; i < length; i += 1) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[i] = state & 0xff;
  }
  return bytes;
}

// A web program in the sandbox that tells what it was asked. Answers when it listens.
const ECHO = `
import http.server, json, sys
class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    def answer(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0)).decode()
        told = {"port": sys.argv[1], "method": self.command, "path": self.path, "body": body,
                "headers": {k.lower(): v for k, v in self.headers.items()}}
        data = json.dumps(told).encode()
        self.send_response(201 if self.command == "POST" else 200)
        self.send_header("Content-Type", "application/json")
        self.send_header("X-From", "program")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)
    do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer
    def log_message(self, *args): pass
http.server.ThreadingHTTPServer(("0.0.0.0", int(sys.argv[1])), Handler).serve_forever()
`;

export async function startEcho(sandbox, port) {
  await sandbox.fs.write("/tmp/echo.py", ECHO);
  await sandbox.process.exec({
    name: `echo-${port}`,
    command: `exec python3 /tmp/echo.py ${port}`,
    waitForPorts: [port],
  });
}
