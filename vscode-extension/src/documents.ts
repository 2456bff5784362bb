/** Documents that are no files: the report, and the sides of the diff preview. */

import * as fs from "node:fs/promises";
import * as path from "node:path";
import * as vscode from "vscode";
import type { ChangedFile, Proposal } from "./messages";
import { apply, type FilePatch, parse } from "./patch";
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
      return session === undefined ? "# No exception yet\n" : report(session, (file) => vscode.workspace.asRelativePath(file, false));
    }
    return this.texts.get(uri.toString()) ?? "";
  }

  /** The report of the current session, rendered, beside the code. */
  async showReport(): Promise<void> {
    await vscode.commands.executeCommand("markdown.showPreviewToSide", REPORT);
  }

  /** What a fix changes: a diff editor, or one for several files. */
  async preview(session: Session, proposal: Proposal): Promise<void> {
    const patches = parse(proposal.diff);
    const sides: [vscode.Uri, vscode.Uri, vscode.Uri][] = [];
    for (const file of proposal.files) {
      const side = await this.sides(session, file, patches);
      if (side === null) {
        const document = await vscode.workspace.openTextDocument({ language: "diff", content: proposal.diff });
        await vscode.window.showTextDocument(document, { preview: true });
        return;
      }
      sides.push(side);
    }
    const title = `Fix: ${proposal.title}${proposal.proved ? " (proved)" : " (not proved)"}`;
    await vscode.commands.executeCommand("vscode.changes", title, sides);
  }

  private async sides(
    session: Session,
    file: ChangedFile,
    patches: readonly FilePatch[],
  ): Promise<[vscode.Uri, vscode.Uri, vscode.Uri] | null> {
    const patch = patches.find((one) => one.path !== null && isEnd(file.path, one.path));
    const before = file.new ? "" : await textOf(file.path);
    const after = patch === undefined || before === null ? null : apply(before, patch.hunks);
    if (before === null || after === null) {
      return null;
    }
    const real = vscode.Uri.file(file.path);
    const left = file.new ? this.keep("empty", session, file.path, "") : real;
    return [real, left, this.keep("fix", session, file.path, after)];
  }

  private keep(side: string, session: Session, file: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme: SCHEME, path: file, query: `${side}&${session.proposal?.id ?? ""}` });
    this.texts.set(uri.toString(), text);
    this.emitter.fire(uri);
    return uri;
  }
}

/** Whether a relative path of a diff means the file. */
export function isEnd(absolute: string, relative: string): boolean {
  const parts = path.normalize(absolute).split(path.sep);
  const end = relative.split("/");
  return end.every((part, i) => part === parts[parts.length - end.length + i]);
}

/** The buffer's text if the file is open, else the file's; null if there is none. */
export async function textOf(file: string): Promise<string | null> {
  const open = vscode.workspace.textDocuments.find((one) => one.uri.scheme === "file" && one.uri.fsPath === file);
  if (open !== undefined) {
    return open.getText();
  }
  return fs.readFile(file, "utf8").catch(() => null);
}
