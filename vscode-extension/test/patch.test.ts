import assert from "node:assert/strict";
import { test } from "node:test";
import { apply, hunksOf, linesOf, locate, reversed } from "../src/patch";

const OLD = "one\ntwo\nthree\nfour\nfive\nsix\nseven\neight\nnine\nten\n";
const NEW = "one\ntwo\nTHREE\nfour\nfive\nsix\nseven\neight\nnine\nnine and a half\nten\n";
const RANGES = [
  { oldStart: 3, oldLines: 1, newStart: 3, newLines: 1 },
  { oldStart: 9, oldLines: 0, newStart: 10, newLines: 1 },
];
const HUNKS = hunksOf(OLD, NEW, RANGES);

test("hunks lead from the old text to the new one and back", () => {
  assert.equal(apply(OLD, HUNKS), NEW);
  assert.equal(apply(NEW, reversed(HUNKS)), OLD);
});

test("line ends stay what they are", () => {
  assert.equal(apply(OLD.replaceAll("\n", "\r\n"), HUNKS), NEW.replaceAll("\n", "\r\n"));
});

test("a buffer that has changed elsewhere keeps that change", () => {
  assert.equal(apply("zero\n" + OLD, HUNKS), "zero\n" + NEW);
  assert.equal(apply(OLD + "eleven\n", HUNKS), NEW + "eleven\n");
});

test("a place that has changed, or is there twice, is not touched", () => {
  assert.equal(apply(OLD.replace("three", "three!"), HUNKS), null);
  const twice = hunksOf("a\nb\n", "A\nb\n", [{ oldStart: 1, oldLines: 1, newStart: 1, newLines: 1 }]);
  assert.equal(apply("x\na\nb\n\na\nb\n", twice), null);
});

test("the end of a text may change, too", () => {
  const grown = hunksOf("a\n", "a\nb\n", [{ oldStart: 1, oldLines: 0, newStart: 2, newLines: 1 }]);
  assert.equal(apply("a\n", grown), "a\nb\n");
  const shrunk = hunksOf("a\nb\n", "a\n", [{ oldStart: 2, oldLines: 1, newStart: 1, newLines: 0 }]);
  assert.equal(apply("a\nb\n", shrunk), "a\n");
});

test("only the lines that change are replaced", () => {
  assert.deepEqual(locate(linesOf(OLD), HUNKS), [
    { line: 2, removed: 1, added: ["THREE"] },
    { line: 9, removed: 0, added: ["nine and a half"] },
  ]);
});
