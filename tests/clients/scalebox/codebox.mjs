// SPDX-License-Identifier: Apache-2.0
// A code interpreter session as applications write it on top of the SDK: one class that starts a
// sandbox, runs code in it and turns what comes back into text, a picture or an error; what a run
// lacks is installed, and files go up and down.

import { CodeInterpreter, Sandbox } from "@scalebox/sdk";

export class CodeBox {
  constructor(options = {}) {
    this.options = options;
  }

  async start() {
    this.sandbox = await Sandbox.create("code-interpreter", { timeoutMs: 600_000, ...this.options });
    this.interpreter = new CodeInterpreter(this.sandbox, this.sandbox.connectionConfig, this.sandbox.api);
    this.context = await this.interpreter.createCodeContext({ language: "python", cwd: "/root" });
    return "running";
  }

  async isAlive() {
    return this.sandbox !== undefined && (await this.sandbox.isRunning());
  }

  // The order matters: an error counts before a picture, and a picture before text.
  async run(code) {
    if (!this.sandbox) throw new Error("Sandbox not initialized");
    const result = await this.interpreter.runCode(code, { language: "python", context: this.context });
    if (result.error) {
      return { type: "error", content: result.error.traceback || result.error.message || result.stderr };
    }
    const png = result.png ?? result.results?.find((item) => item.png)?.png;
    if (png) return { type: "image/png", content: png };
    return { type: "text", content: result.stdout || result.text || "" };
  }

  // As run(), but what is not there is installed first, once.
  async runAndInstall(code, from) {
    const output = await this.run(code);
    const missing = /ModuleNotFoundError: No module named '([^'.]+)/.exec(output.content);
    if (output.type !== "error" || !missing) return output;
    await this.install(missing[1], from);
    return this.run(code);
  }

  async install(name, from) {
    const command = `pip install --quiet --no-index --find-links ${from} ${name}`;
    const done = await this.sandbox.commands.run(command, { timeoutMs: 120_000 });
    if (done.exitCode !== 0) throw new Error(`pip install ${name}: ${done.stderr}`);
  }

  async upload(name, content) {
    await this.sandbox.files.write(`/root/${name}`, content);
    return `${name} uploaded`;
  }

  async download(name) {
    return Buffer.from(await this.sandbox.files.read(`/root/${name}`, { format: "bytes" }), "base64");
  }

  async listFiles() {
    return (await this.sandbox.files.list("/root")).map((entry) => entry.name);
  }

  async stop() {
    await this.sandbox?.kill();
    this.sandbox = undefined;
    return "stopped";
  }
}
