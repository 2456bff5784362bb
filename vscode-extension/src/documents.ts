/** Documents that are no files: the report, and the sides of the diff preview. */

import * as vscode from "vscode";
import { filesOf, target, textOf } from "./fixes";
import type { Proposal } from "./messages";
import { report } from "./report";
import type { Session, Sessions } from "./sessions";

const SCHEME = "dap-agent";
const REPORT = vscode.Uri.from({ scheme: SCHEME, path: "/Autodebug report.md" });

export class Documents implements vscode.TextDocumentContentProvider, vscode.Disposable {
  private readonly emitter = new vscode.EventEmitter<vscode.Uri>();
  private readonly texts = new Map<string, string>();
  private readonly subscriptions: vscode.Disposable[];

  readonly onDidChange = this.emitter.event;

  constructor(private readonly sessions: Sessions) {
    this.subscriptions = [
      vscode.workspace.registerTextDocumentContentProvider(SCHEME, this),
      sessions.onDidChange(() => this.emitter.fire(REPORT)),
      this.emitter,
    ];
  }

  dispose(): void {
    this.subscriptions.forEach((one) => one.dispose());
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    if (uri.path === REPORT.path) {
      const session = this.sessions.current;
      if (session === undefined) {
        return "# No exception yet\n";
      }
      return session.keptReport ?? report(session, (file) => vscode.workspace.asRelativePath(file, false));
    }
    return this.texts.get(uri.toString()) ?? "";
  }

  /** The report of the current session, rendered, beside the code. */
  async showReport(): Promise<void> {
    await vscode.commands.executeCommand("markdown.showPreviewToSide", REPORT);
  }

  /** What a fix changes: a diff editor for all its files. */
  async preview(session: Session, proposal: Proposal): Promise<void> {
    const sides: [vscode.Uri, vscode.Uri, vscode.Uri][] = [];
    for (const file of await filesOf(session)) {
      const real = vscode.Uri.file(file.path);
      const after = session.applied !== false ? file.newText : target(file, await textOf(file.path));
      if (after === null) {
        await this.showDiff(proposal);
        return;
      }
      const asItIs = file.oldText !== null && session.applied === false;
      const left = asItIs ? real : this.keep("before", session, file.path, file.oldText ?? "");
      sides.push([real, left, this.keep("after", session, file.path, after)]);
    }
    if (sides.length === 0) {
      return this.showReport(); // of a former window, and applied: its texts are not known any more
    }
    const title = `Fix: ${proposal.title}${proposal.proved ? " (proved)" : " (not proved)"}`;
    await vscode.commands.executeCommand("vscode.changes", title, sides);
  }

  /** For a fix that does not fit the files any more. */
  private async showDiff(proposal: Proposal): Promise<void> {
    const document = await vscode.workspace.openTextDocument({ language: "diff", content: proposal.diff });
    await vscode.window.showTextDocument(document, { preview: true });
  }

  private keep(side: string, session: Session, file: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: file, query: `${side}&${session.proposal?.id ?? ""}` });
    this.texts.set(uri.toString(), text);
    this.emitter.fire(uri);
    return uri;
  }
}
