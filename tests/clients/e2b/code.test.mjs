// SPDX-License-Identifier: Apache-2.0
// @e2b/code-interpreter: runs, results, errors, contexts.

import assert from "node:assert/strict";
import { after, test } from "node:test";
import { InvalidArgumentError, NotFoundError, Sandbox } from "@e2b/code-interpreter";

let made;
const shared = () => (made ??= Sandbox.create({ timeoutMs: 600_000 }));
after(async () => {
  if (made) await (await made).kill();
});

test("output, the last value, and state that stays", async () => {
  const box = await shared();
  const run = await box.runCode('print("hi"); x = 41');
  assert.deepEqual(run.logs.stdout, ["hi\n"]);
  assert.equal(run.error, undefined);
  const next = await box.runCode("x + 1");
  assert.equal(next.text, "42");
  assert.equal(next.results[0].isMainResult, true);
  assert.equal(next.executionCount, run.executionCount + 1);
});

test("events come as they happen", async () => {
  const box = await shared();
  const seen = [];
  await box.runCode('import sys\nprint("out")\nprint("err", file=sys.stderr)\n"value"', {
    onStdout: (m) => seen.push(["out", m.line]),
    onStderr: (m) => seen.push(["err", m.line]),
    onResult: (r) => seen.push(["result", r.text]),
  });
  assert.deepEqual(seen.sort(), [["err", "err\n"], ["out", "out\n"], ["result", "value"]]);
});

test("errors have name, value and traceback", async () => {
  const box = await shared();
  const { error } = await box.runCode("1/0");
  assert.equal(error.name, "ZeroDivisionError");
  assert.equal(error.value, "division by zero");
  assert.match(error.traceback, /ZeroDivisionError/);
});

test("code runs as user, at home, with the run's variables", async () => {
  const box = await shared();
  const run = await box.runCode("import os, getpass\n(getpass.getuser(), os.getcwd(), os.environ.get('A'))", { envs: { A: "b" } });
  assert.equal(run.text, "('user', '/home/user', 'b')");
  assert.equal((await box.runCode("os.environ.get('A')")).text, undefined);
});

test("rich results", async () => {
  const box = await shared();
  const run = await box.runCode(`
class Rich:
    def _repr_html_(self): return "<b>bold</b>"
    def _repr_markdown_(self): return "**bold**"
    def __repr__(self): return "bold"
Rich()`);
  assert.equal(run.results[0].html, "<b>bold</b>");
  assert.equal(run.results[0].markdown, "**bold**");
  assert.equal(run.results[0].text, "bold");
});

test("variables outlive a pause", async () => {
  const box = await Sandbox.create({ timeoutMs: 600_000 });
  try {
    const context = await box.createCodeContext({ language: "javascript" });
    await box.runCode("kept = {'a': 1}");
    await box.runCode("let there = 2", { context });
    await box.pause();
    const back = await Sandbox.connect(box.sandboxId);
    assert.equal((await back.runCode("kept['a']")).text, "1");
    assert.equal((await back.runCode("there", { context })).text, "2");
  } finally {
    await box.kill();
  }
});

test("contexts are apart, and can be restarted and removed", async () => {
  const box = await shared();
  const listed = await box.listCodeContexts();
  assert.ok(listed.some((c) => c.language === "python") && listed.some((c) => c.language === "javascript"));
  const context = await box.createCodeContext({ cwd: "/tmp" });
  assert.equal(context.language, "python");
  assert.equal(context.cwd, "/tmp");
  await box.runCode("here = 1", { context });
  assert.equal((await box.runCode("here", { context })).text, "1");
  assert.equal((await box.runCode("here")).error.name, "NameError");
  assert.equal((await box.runCode("import os; os.getcwd()", { context })).text, "/tmp");
  await box.restartCodeContext(context);
  assert.equal((await box.runCode("here", { context })).error.name, "NameError");
  await box.removeCodeContext(context);
  // No time-out: the client would leave its timer running, and Node with it.
  await assert.rejects(box.runCode("1", { context, requestTimeoutMs: 0 }), NotFoundError);
  await assert.rejects(box.removeCodeContext("nosuch"), NotFoundError);
  await assert.rejects(box.runCode("1", { context, language: "python" }), InvalidArgumentError);
});

test("figures, and what is in them", async () => {
  const box = await shared();
  const run = await box.runCode(`
import matplotlib.pyplot as plt
fig, (one, two) = plt.subplots(1, 2)
one.plot([1, 2], [3, 4], label="a line")
two.bar(["x", "y"], [1, 2])
fig.suptitle("both")
plt.show()
plt.pie([1, 3], labels=["a", "b"])
plt.show()
plt.boxplot([[1, 2, 3, 4, 5]])
plt.show()
plt.scatter([1], [2], label="dots");`);
  assert.equal(run.error, undefined);
  assert.deepEqual(run.results.map((r) => r.chart.type), ["superchart", "pie", "box_and_whisker", "scatter"]);
  for (const result of run.results) {
    assert.ok(result.png.startsWith("iVBOR") && result.formats().includes("png"));
  }
  const [both, pie, boxes, dots] = run.results.map((r) => r.chart);
  assert.deepEqual([both.title, ...both.elements.map((e) => e.type)], ["both", "line", "bar"]);
  assert.deepEqual(both.elements[0].elements[0], { label: "a line", points: [[1, 3], [2, 4]] });
  assert.deepEqual(both.elements[1].elements[1], { label: "y", group: "Group 0", value: 2 });
  assert.deepEqual(pie.elements.map((e) => [e.label, e.angle, e.radius]), [["a", 90, 1], ["b", 270, 1]]);
  assert.deepEqual(boxes.elements[0], { label: "1", min: 1, first_quartile: 2, median: 3, third_quartile: 4, max: 5, outliers: [] });
  assert.deepEqual(dots.elements, [{ label: "dots", points: [[1, 2]] }]);
});

test("tables, JSON and text as E2B gives them", async () => {
  const box = await shared();
  const table = (await box.runCode("import pandas as pd\npd.DataFrame({'a': [1, 2], 'd': pd.to_datetime(['2024-01-02'] * 2)})")).results[0];
  assert.deepEqual(table.data, { a: [1, 2], d: ["2024-01-02T00:00:00", "2024-01-02T00:00:00"] });
  assert.match(table.html, /<table/);
  const dict = (await box.runCode("{'k': [1, None]}")).results[0];
  assert.deepEqual(dict.json, { k: [1, null] });
  assert.equal(dict.text, "{'k': [1, None]}");
  assert.equal((await box.runCode("'a string'")).text, "a string");
  assert.equal((await box.runCode("'it\\'s'")).text, "it's");
});
