import assert from "node:assert/strict";
import { test } from "node:test";
import { apply, locate, parse } from "../src/patch";

const DIFF = `--- a/shop/orders.py
+++ b/shop/orders.py
@@ -2,4 +2,4 @@
 two
-three
+THREE
 four
-five
\\ No newline at end of file
+FIVE
\\ No newline at end of file
--- /dev/null
+++ b/tests/test_new.py
@@ -0,0 +1,2 @@
+first
+second
`;

test("a diff is taken apart by file", () => {
  const files = parse(DIFF);
  assert.deepEqual(
    files.map(({ path, hunks }) => [path, hunks.length]),
    [
      ["shop/orders.py", 1],
      ["tests/test_new.py", 1],
    ],
  );
  assert.deepEqual(files[1]?.hunks[0], { start: 0, before: [], after: ["first", "second"] });
});

test("a line that looks like a head is text within a hunk", () => {
  const [file] = parse("--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n--- old\n+++ new\n same\n");
  assert.deepEqual(file?.hunks, [{ start: 1, before: ["-- old", "same"], after: ["++ new", "same"] }]);
});

test("a patch is applied, line ends stay", () => {
  const hunks = parse(DIFF)[0]?.hunks ?? [];
  assert.equal(apply("one\ntwo\nthree\nfour\nfive", hunks), "one\ntwo\nTHREE\nfour\nFIVE");
  assert.equal(apply("one\r\ntwo\r\nthree\r\nfour\r\nfive", hunks), "one\r\ntwo\r\nTHREE\r\nfour\r\nFIVE");
});

test("a patch of a buffer that has changed elsewhere finds its place", () => {
  const hunks = parse(DIFF)[0]?.hunks ?? [];
  assert.equal(apply("new\nnew\none\ntwo\nthree\nfour\nfive", hunks), "new\nnew\none\ntwo\nTHREE\nfour\nFIVE");
});

test("a patch whose place has changed, or is there twice, is not applied", () => {
  const hunks = parse(DIFF)[0]?.hunks ?? [];
  assert.equal(apply("one\ntwo\nthree!\nfour\nfive", hunks), null);
  assert.equal(apply("x\nx\ntwo\nthree\nfour\nfive\ntwo\nthree\nfour\nfive", hunks), null);
});

test("only the lines that change are replaced", () => {
  const hunk = { start: 1, before: ["a", "b", "c"], after: ["a", "B", "c"] };
  assert.deepEqual(locate(["a", "b", "c"], [hunk]), [{ line: 1, removed: 1, added: ["B"] }]);
  const insertion = { start: 1, before: ["a", "c"], after: ["a", "b", "c"] };
  assert.deepEqual(locate(["a", "c"], [insertion]), [{ line: 1, removed: 0, added: ["b"] }]);
});
