/** dap-agent's own DAP messages, as `schemas/messages.schema.json` of the repository describes them. */

export interface Ready {
  readonly version: string;
  readonly requests: readonly string[];
  readonly model: string | null;
}

export interface Snapshot {
  readonly threadId: number;
  readonly headline: string;
  readonly exception: { readonly type: string; readonly message: string };
  /** Of the innermost frame of the user's code. */
  readonly path: string | null;
  /** From 1. */
  readonly line: number | null;
  readonly function: string | null;
  /** Whether a model is configured. */
  readonly model: boolean;
}

export type Task = "autodebug" | "ask";

export interface Progress {
  readonly id: string;
  readonly task: Task;
  readonly kind: "begin" | "turn" | "text" | "tool" | "note" | "verdict" | "retry" | "end";
  readonly text: string;
  readonly status?: "proposed" | "answered" | "gave-up" | "out-of-budget" | "model-error" | "failed";
}

/** Lines from 1, as in the head of a unified diff's hunk. */
export interface LineRange {
  readonly oldStart: number;
  readonly oldLines: number;
  readonly newStart: number;
  readonly newLines: number;
}

export interface ChangedFile {
  /** Absolute. */
  readonly path: string;
  readonly new: boolean;
  readonly ranges: readonly LineRange[];
}

export interface Evidence {
  readonly text: string;
  readonly frame: number | null;
  readonly expression: string | null;
  readonly value: string | null;
}

export interface Proposal {
  readonly id: string;
  readonly title: string;
  readonly cause: string;
  readonly evidence: readonly Evidence[];
  readonly verdict: { readonly kind: string; readonly summary: string } | null;
  readonly trial: { readonly verdict: string; readonly summary: string } | null;
  /** All changes, the regression test included. */
  readonly diff: string;
  readonly files: readonly ChangedFile[];
  /** Absolute path of the regression test. */
  readonly test: string;
  readonly proved: boolean;
  /** US dollars, null if the price is unknown. */
  readonly cost: number | null;
}

/** One file of the answer to `dapAgent/texts`. */
export interface FileTexts {
  readonly path: string;
  /** When the fix was made; null: there was no such file. */
  readonly oldText: string | null;
  /** With the fix; null: it is no text that can be shown. */
  readonly newText: string | null;
}
