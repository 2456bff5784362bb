/** The lens over the failing line, and the light bulb there and where the fix changes something. */

import * as vscode from "vscode";
import { editOf } from "./fixes";
import type { Proposal } from "./messages";
import type { Session, Sessions } from "./sessions";
import { settings } from "./settings";

// milliseconds; the exception widget takes the focus, and the editor's blur cancels a refresh before
const AGAIN = [300, 800];
const PYTHON: vscode.DocumentSelector = [{ language: "python", scheme: "file" }];

export class Lens implements vscode.CodeLensProvider, vscode.CodeActionProvider<Fix>, vscode.Disposable {
  private readonly emitter = new vscode.EventEmitter<void>();
  private readonly subscription: vscode.Disposable;

  readonly onDidChangeCodeLenses = this.emitter.event;

  constructor(private readonly sessions: Sessions) {
    this.subscription = vscode.Disposable.from(
      this.emitter,
      vscode.languages.registerCodeLensProvider(PYTHON, this),
      vscode.languages.registerCodeActionsProvider(PYTHON, this, {
        providedCodeActionKinds: [vscode.CodeActionKind.QuickFix],
      }),
      sessions.onDidChange(({ what }) => {
        this.emitter.fire();
        if (what !== "progress") {
          this.again();
        }
      }),
      // the widget takes the focus also when the file is opened again, and what was remembered stays without commands
      vscode.window.onDidChangeVisibleTextEditors(() => {
        if (sessions.offered.some(({ snapshot }) => snapshot !== undefined)) {
          this.again();
        }
      }),
    );
  }

  private again(): void {
    AGAIN.forEach((pause) => setTimeout(() => this.emitter.fire(), pause));
  }

  dispose(): void {
    this.subscription.dispose();
  }

  provideCodeLenses(document: vscode.TextDocument): vscode.CodeLens[] {
    if (!settings(document).codeLens) {
      return [];
    }
    return this.at(document).flatMap((session) => {
      const line = Math.min((session.snapshot?.line ?? 1) - 1, document.lineCount - 1);
      const range = new vscode.Range(line, 0, line, 0);
      const lens = (title: string, command: string): vscode.CodeLens =>
        new vscode.CodeLens(range, { title, command: `autodebug.${command}`, arguments: [session.id] });
      const { offer } = session;
      const dismiss = session.ended ? [lens("Dismiss", "dismiss")] : [];
      if (session.ended && offer === undefined) {
        return [lens(`$(history) ${session.snapshot?.exception.type ?? "Exception"}, when the program has last run`, "showReport"), ...dismiss];
      }
      if (session.working !== undefined) {
        return [lens(`$(sync~spin) Investigating: ${session.working.message || "…"} (cancel)`, "cancel")];
      }
      if (offer === undefined) {
        return [lens("$(sparkle) Autodebug this exception", "investigate"), lens("Explain", "explain")];
      }
      if (session.applied !== false) {
        return [
          lens(`$(check) Fixed: ${offer.title}`, "showReport"),
          ...(session.canRestartFrame && session.stopped ? [lens("Restart frame", "applyAndRestartFrame")] : []),
          ...(session.ended ? [] : [lens("Restart", "applyAndRestartProgram")]),
          lens("Undo", "undo"),
          ...dismiss,
        ];
      }
      return [
        lens(`$(lightbulb) Fix ready: ${offer.title}`, "preview"),
        ...(session.canRestartFrame && session.stopped ? [lens("Apply and restart frame", "applyAndRestartFrame")] : []),
        session.ended ? lens("Apply", "apply") : lens("Apply and restart", "applyAndRestartProgram"),
        lens("Report", "showReport"),
        ...dismiss,
      ];
    });
  }

  provideCodeActions(document: vscode.TextDocument, range: vscode.Range): Fix[] {
    const actions: Fix[] = [];
    for (const session of this.sessions.offered) {
      const failing = this.at(document).includes(session) && (session.snapshot?.line ?? 0) - 1;
      const atFailure = typeof failing === "number" && range.start.line <= failing && failing <= range.end.line;
      const fix = session.offer;
      if (fix !== undefined && session.applied === false && (atFailure || touches(fix, document, range))) {
        const proved = fix.proved ? "proved" : "not proved";
        actions.push(new Fix(`Autodebug: ${fix.title} (${proved})`, session, "edited", fix.proved, true));
        actions.push(new Fix("Autodebug: preview the fix", session, "preview"));
        if (session.canRestartFrame && session.stopped) {
          actions.push(new Fix("Autodebug: apply the fix and restart the frame", session, "applyAndRestartFrame"));
        }
        if (!session.ended) {
          actions.push(new Fix("Autodebug: apply the fix and restart the program", session, "applyAndRestartProgram"));
        }
      }
      if (atFailure) {
        if (fix === undefined && !session.ended) {
          actions.push(new Fix("Autodebug: investigate this exception", session, "investigate"));
        }
        if (!session.ended) {
          actions.push(new Fix("Autodebug: explain this exception", session, "explain"));
        }
        actions.push(new Fix("Autodebug: show the investigation", session, "showReport"));
      }
      if (session.applied !== false && (atFailure || (fix !== undefined && touches(fix, document, range)))) {
        actions.push(new Fix("Autodebug: undo the fix", session, "undo"));
      }
    }
    return actions;
  }

  /** The fix as an edit of the buffers, made when it is chosen. */
  async resolveCodeAction(action: Fix): Promise<Fix> {
    if (action.isFix) {
      action.edit = await editOf(action.session);
    }
    return action;
  }

  private at(document: vscode.TextDocument): Session[] {
    return this.sessions.offered.filter(
      ({ snapshot, stopped, ended, offer }) => snapshot?.path === document.uri.fsPath && (stopped || ended || offer !== undefined),
    );
  }
}

/** A code action of ours. */
class Fix extends vscode.CodeAction {
  /** @param isFix it is the fix itself: an edit comes before the command */
  constructor(
    title: string,
    readonly session: Session,
    command: string,
    preferred = false,
    readonly isFix = false,
  ) {
    super(title, vscode.CodeActionKind.QuickFix);
    this.isPreferred = preferred;
    this.command = { title, command: `autodebug.${command}`, arguments: [session.id] };
  }
}

function touches(proposal: Proposal, document: vscode.TextDocument, range: vscode.Range): boolean {
  const file = proposal.files.find((one) => one.path === document.uri.fsPath);
  return (file?.ranges ?? []).some(
    ({ oldStart, oldLines }) => oldStart - 1 <= range.end.line && range.start.line < oldStart - 1 + Math.max(1, oldLines),
  );
}
