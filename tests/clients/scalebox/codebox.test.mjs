// SPDX-License-Identifier: Apache-2.0
// A session of an application, from its start to its end.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { CodeBox } from "./codebox.mjs";

const codebox = new CodeBox();
after(() => codebox.stop());

test("start", async () => {
  await assert.rejects(codebox.run("1"), /not initialized/);
  assert.equal(await codebox.start(), "running");
  assert.equal(await codebox.isAlive(), true);
});

test("text: what was printed, or the value", async () => {
  assert.deepEqual(await codebox.run("print(2 + 2)"), { type: "text", content: "4\n" });
  assert.deepEqual(await codebox.run("x = 20\nx + 1"), { type: "text", content: "21" });
  assert.deepEqual(await codebox.run("x * 2"), { type: "text", content: "40" });
  assert.deepEqual(await codebox.run("y = 1"), { type: "text", content: "" });
});

test("an error is a traceback of the user's code", async () => {
  const output = await codebox.run("def half(n):\n    return n / 0\nhalf(1)");
  assert.equal(output.type, "error");
  assert.match(output.content, /ZeroDivisionError/);
  assert.match(output.content, /return n \/ 0/);
});

test("a picture, as the value and as something that is shown", async () => {
  const draw = `
import base64, struct, zlib
def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
class Picture:
    def _repr_png_(self):
        return (b"\\x89PNG\\r\\n\\x1a\\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 2, 2, 8, 2, 0, 0, 0))
                + chunk(b"IDAT", zlib.compress(b"\\0" + bytes(6) + b"\\0" + bytes(6))) + chunk(b"IEND", b""))
`;
  for (const last of ["Picture()", "display(Picture())\nprint('drawn')"]) {
    const output = await codebox.run(draw + last);
    assert.equal(output.type, "image/png", output.content);
    const bytes = Buffer.from(output.content, "base64");
    assert.equal(bytes.subarray(1, 4).toString(), "PNG");
    assert.equal(bytes.readUInt32BE(16), 2);
  }
});

test("a large picture in one piece", async () => {
  const output = await codebox.run(
    "import os\nclass Big:\n    def _repr_png_(self): return b'\\x89PNG' + os.urandom(4_000_000)\nBig()",
  );
  assert.equal(output.type, "image/png", output.content.slice(0, 300));
  assert.equal(Buffer.from(output.content, "base64").length, 4_000_004);
});

test("a module that is missing is installed", async () => {
  const wheel = await codebox.run(`
import os, zipfile
os.makedirs("/root/wheels", exist_ok=True)
info = "colours-1.0.dist-info/"
with zipfile.ZipFile("/root/wheels/colours-1.0-py3-none-any.whl", "w") as z:
    z.writestr("colours.py", "RED = '#f00'\\n")
    z.writestr(info + "METADATA", "Metadata-Version: 2.1\\nName: colours\\nVersion: 1.0\\n")
    z.writestr(info + "WHEEL", "Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    z.writestr(info + "RECORD", "colours.py,,\\n" + "".join(f"{info}{n},,\\n" for n in ("METADATA", "WHEEL", "RECORD")))
`);
  assert.equal(wheel.type, "text", wheel.content);
  const first = await codebox.run("import colours");
  assert.equal(first.type, "error");
  assert.match(first.content, /ModuleNotFoundError: No module named 'colours'/);
  const output = await codebox.runAndInstall("import colours\nprint(colours.RED)", "/root/wheels");
  assert.deepEqual(output, { type: "text", content: "#f00\n" });
});

test("files up and down", async () => {
  await codebox.upload("data.csv", "a,b\n1,2\n3,4\n");
  const output = await codebox.run(`
import csv
rows = list(csv.DictReader(open("data.csv")))
open("sum.txt", "w").write(str(sum(int(r["a"]) for r in rows)))
len(rows)`);
  assert.deepEqual(output, { type: "text", content: "2" });
  assert.equal((await codebox.download("sum.txt")).toString(), "4");
  assert.ok((await codebox.listFiles()).includes("sum.txt"));
  const bytes = Uint8Array.from({ length: 256 }, (_, i) => i);
  await codebox.upload("every", bytes.buffer);
  assert.deepEqual([...(await codebox.download("every"))], [...bytes]);
});

test("stop", async () => {
  assert.equal(await codebox.stop(), "stopped");
  assert.equal(await codebox.isAlive(), false);
});
