/** A change of a text, taken as hunks, so that it can be put into a text which has changed elsewhere meanwhile. */

import type { LineRange } from "./messages";

export interface Hunk {
  /** Where it was in the old text, from 0. */
  readonly line: number;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export interface Replacement {
  /** Line of the given text, from 0. */
  readonly line: number;
  /** How many lines go. */
  readonly removed: number;
  /** What comes in their place. */
  readonly added: readonly string[];
}

const CONTEXT = 3; // lines around a change that must be as they were

export function linesOf(text: string): string[] {
  return text.split(/\r\n|\n/);
}

/** The hunks between two texts. *ranges*: the lines that change, as dap-agent tells them; both texts' ends stay. */
export function hunksOf(oldText: string, newText: string, ranges: readonly LineRange[]): Hunk[] {
  const [before, after] = [linesOf(oldText), linesOf(newText)];
  const changes = ranges.map(({ oldStart, oldLines, newStart, newLines }) => ({
    // a unified diff names the line before a place where there is nothing
    old: oldLines === 0 ? oldStart : oldStart - 1,
    oldEnd: oldLines === 0 ? oldStart : oldStart - 1 + oldLines,
    fresh: newLines === 0 ? newStart : newStart - 1,
    freshEnd: newLines === 0 ? newStart : newStart - 1 + newLines,
  }));
  const last = before.at(-1) === "" ? before.length - 1 : before.length; // the end of the last line is no line
  let taken = 0;
  return changes.map(({ old, oldEnd, fresh, freshEnd }, i) => {
    const head = Math.min(CONTEXT, old - taken);
    const tail = Math.min(CONTEXT, Math.max(0, (changes[i + 1]?.old ?? last) - oldEnd));
    taken = oldEnd + tail;
    return {
      line: old - head,
      before: before.slice(old - head, oldEnd + tail),
      after: [...before.slice(old - head, old), ...after.slice(fresh, freshEnd), ...before.slice(oldEnd, oldEnd + tail)],
    };
  });
}

/** Hunks that take the change back. */
export function reversed(hunks: readonly Hunk[]): Hunk[] {
  let shift = 0;
  return hunks.map(({ line, before, after }) => {
    const back = { line: line + shift, before: after, after: before };
    shift += after.length - before.length;
    return back;
  });
}

/**
 * What a patch changes in *lines*, or null if a hunk's old lines are not there any more, or not at one place only.
 * A hunk may have moved: edits above it in the buffer do not matter.
 */
export function locate(lines: readonly string[], hunks: readonly Hunk[]): Replacement[] | null {
  const found: Replacement[] = [];
  let shift = 0;
  let from = 0;
  for (const hunk of hunks) {
    const wanted = hunk.line + shift;
    const line = place(lines, hunk.before, wanted, from);
    if (line === null) {
      return null;
    }
    shift += line - wanted;
    from = line + hunk.before.length;
    found.push(...narrow(line, hunk));
  }
  return found;
}

/** *text* with *hunks* applied, or null as in `locate`. Line ends stay what they were. */
export function apply(text: string, hunks: readonly Hunk[]): string | null {
  const end = text.includes("\r\n") ? "\r\n" : "\n";
  const lines = linesOf(text);
  const replacements = locate(lines, hunks);
  if (replacements === null) {
    return null;
  }
  for (const { line, removed, added } of replacements.reverse()) {
    lines.splice(line, removed, ...added);
  }
  return lines.join(end);
}

function place(lines: readonly string[], block: readonly string[], wanted: number, from: number): number | null {
  const fits = (line: number): boolean => line >= from && block.every((text, i) => lines[line + i] === text);
  if (fits(wanted)) {
    return wanted;
  }
  if (block.length === 0) {
    return null;
  }
  const places = lines.map((_, line) => line).filter(fits);
  return places.length === 1 ? (places[0] ?? null) : null;
}

/** A hunk without the lines that stay, as separate replacements. */
function narrow(line: number, hunk: Hunk): Replacement[] {
  const { before, after } = hunk;
  let head = 0;
  while (head < before.length && head < after.length && before[head] === after[head]) {
    head += 1;
  }
  let tail = 0;
  while (
    tail < before.length - head &&
    tail < after.length - head &&
    before[before.length - 1 - tail] === after[after.length - 1 - tail]
  ) {
    tail += 1;
  }
  const removed = before.length - head - tail;
  const added = after.slice(head, after.length - tail);
  return removed === 0 && added.length === 0 ? [] : [{ line: line + head, removed, added }];
}
