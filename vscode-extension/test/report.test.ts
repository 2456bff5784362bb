import assert from "node:assert/strict";
import { test } from "node:test";
import { block, code, prose, report } from "../src/report";

const SNAPSHOT = {
  threadId: 1,
  headline: "KeyError: '<img src=x>'",
  exception: { type: "KeyError", message: "'<img src=x>'" },
  path: "/w/shop.py",
  line: 3,
  function: "total",
  model: true,
};
const PROPOSAL = {
  id: "1",
  title: "A default",
  cause: "It is missing [here](http://x) in `prices`.",
  evidence: [{ text: "empty", frame: 0, expression: "prices", value: "{}" }],
  verdict: { kind: "proved", summary: "red, then green" },
  trial: null,
  diff: "--- a/shop.py\n+++ b/shop.py\n```\n",
  files: [],
  test: "/w/tests/test_shop.py",
  proved: true,
  cost: null,
};

test("the report has cause, evidence, change, verdicts and cost", () => {
  const told = { snapshot: SNAPSHOT, proposal: PROPOSAL, applied: false, answers: [], steps: ["tool: frame 0"] };
  const text = report(told, (path) => path.slice(3));
  for (const part of ["`shop.py:3`", "proved, not applied yet", "- empty: `prices` is `{}` (frame 0)", "**proved**", "`tests/test_shop.py`", "Cost: unknown", "tool: frame 0"]) {
    assert.ok(text.includes(part), part);
  }
});

test("texts of a program or a model make no HTML, links or pictures", () => {
  assert.equal(prose("<b> ![x](y) `<b>`"), "\\<b\\> \\!\\[x\\](y) `<b>`");
  assert.ok(report({ snapshot: SNAPSHOT, proposal: undefined, applied: false, answers: [], steps: [] }, String).startsWith("# KeyError: '\\<img"));
});

test("a fence is longer than any in the text", () => {
  assert.equal(block("```\n", "diff"), "````diff\n```\n````");
  assert.equal(code("a`b"), "``a`b``");
});
