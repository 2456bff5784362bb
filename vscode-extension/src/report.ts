/** The investigation as Markdown: cause, evidence, values, diff, test, verdicts, cost. */

import type { Proposal, Snapshot } from "./messages";

export interface Told {
  readonly snapshot: Snapshot | undefined;
  readonly proposal: Proposal | undefined;
  readonly applied: unknown;
  readonly answers: readonly { readonly question: string; readonly text: string }[];
  readonly steps: readonly string[];
}

/** @param shorten makes a path relative, where it is in a folder of the workspace */
export function report({ snapshot, proposal, applied, answers, steps }: Told, shorten: (path: string) => string): string {
  const parts = [`# ${snapshot === undefined ? "No exception yet" : prose(oneLine(snapshot.headline))}`];
  if (snapshot?.path != null) {
    parts.push(`In ${code(snapshot.function ?? "?")}, ${code(`${shorten(snapshot.path)}:${snapshot.line ?? "?"}`)}.`);
  }
  if (proposal !== undefined) {
    const state = applied !== false ? "applied" : proposal.proved ? "proved, not applied yet" : "not proved";
    parts.push(`## Fix: ${prose(proposal.title)}`, `*${state}*`, `### Cause`, prose(proposal.cause));
    if (proposal.evidence.length > 0) {
      const values = proposal.evidence.map(({ text, frame, expression, value }) => {
        const shown = expression === null ? "" : `: ${code(expression)}${value === null ? "" : ` is ${code(value)}`}`;
        return `- ${prose(oneLine(text))}${shown}${frame === null ? "" : ` (frame ${frame})`}`;
      });
      parts.push("### Evidence", values.join("\n"));
    }
    parts.push("### Change", block(proposal.diff, "diff"));
    const verdicts = [
      proposal.verdict && `- Proof: **${proposal.verdict.kind}**. ${prose(oneLine(proposal.verdict.summary))}`,
      proposal.trial && `- Trial on the failing call: **${proposal.trial.verdict}**. ${prose(oneLine(proposal.trial.summary))}`,
      `- Regression test: ${code(shorten(proposal.test))}`,
      `- Cost: ${proposal.cost === null ? "unknown" : `$${proposal.cost.toFixed(2)}`}`,
    ];
    parts.push("### Verdicts", verdicts.filter(Boolean).join("\n"));
  }
  for (const { question, text } of answers) {
    parts.push(`## ${prose(oneLine(question)) || "Explanation"}`, prose(text));
  }
  if (steps.length > 0) {
    parts.push("## Steps", block(steps.join("\n"), "text"));
  }
  return parts.join("\n\n") + "\n";
}

/** Text of a program's or a model's: a preview must not make pictures, links or HTML of it. */
export function prose(text: string): string {
  return text
    .split(/(`[^`\n]+`)/)
    .map((piece, i) => (i % 2 === 1 ? piece : piece.replace(/[\\[\]<>!&|]/g, "\\$&")))
    .join("");
}

export function block(text: string, language: string): string {
  const fence = "`".repeat(Math.max(3, longestRun(text) + 1));
  return `${fence}${language}\n${text.trimEnd()}\n${fence}`;
}

export function code(text: string): string {
  const ticks = "`".repeat(longestRun(text) + 1);
  const padding = text.startsWith("`") || text.endsWith("`") ? " " : "";
  return `${ticks}${padding}${oneLine(text)}${padding}${ticks}`;
}

function oneLine(text: string): string {
  return text.replace(/\s+/g, " ").trim();
}

function longestRun(text: string): number {
  return Math.max(0, ...(text.match(/`+/g) ?? []).map((run) => run.length));
}
