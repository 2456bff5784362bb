/** Unified diffs: taken apart by file, and applied to a text of which only the places named must be as before. */

export interface Hunk {
  /** First line of the old text, from 1; 0 if it is empty there. */
  readonly start: number;
  readonly before: readonly string[];
  readonly after: readonly string[];
}

export interface FilePatch {
  /** As after `+++`, without `b/`; null if the file is removed. */
  readonly path: string | null;
  readonly hunks: readonly Hunk[];
}

export interface Replacement {
  /** Line of the given text, from 0. */
  readonly line: number;
  /** How many lines go. */
  readonly removed: number;
  /** What comes in their place. */
  readonly added: readonly string[];
}

const HEAD = /^@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@/;

/** The files of a unified diff, in its order. */
export function parse(diff: string): FilePatch[] {
  const lines = diff.split("\n");
  const files: { path: string | null; hunks: Hunk[] }[] = [];
  let at = 0;
  while (at < lines.length) {
    const line = lines[at] ?? "";
    if (line.startsWith("--- ") && (lines[at + 1] ?? "").startsWith("+++ ")) {
      const name = (lines[at + 1] ?? "").slice(4).split("\t")[0] ?? "";
      files.push({ path: name === "/dev/null" ? null : name.replace(/^b\//, ""), hunks: [] });
      at += 2;
      continue;
    }
    const head = HEAD.exec(line);
    const file = files.at(-1);
    if (head === null || file === undefined) {
      at += 1;
      continue;
    }
    let old = Number(head[2] ?? 1);
    let fresh = Number(head[4] ?? 1);
    const before: string[] = [];
    const after: string[] = [];
    at += 1;
    while (at < lines.length && (old > 0 || fresh > 0)) {
      const text = lines[at] ?? "";
      const body = text.slice(1);
      if (text.startsWith("\\")) {
        at += 1;
        continue;
      }
      if (!text.startsWith("+")) {
        before.push(body);
        old -= 1;
      }
      if (!text.startsWith("-")) {
        after.push(body);
        fresh -= 1;
      }
      at += 1;
    }
    file.hunks.push({ start: Number(head[1]), before, after });
  }
  return files;
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
    const wanted = Math.max(0, hunk.start - 1) + shift;
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
  const lines = text.split(/\r\n|\n/);
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
