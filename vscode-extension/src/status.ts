/** The item in the status bar: what there is to do about the current exception. */

import * as vscode from "vscode";
import type { Sessions } from "./sessions";

const WIDTH = 40;

export class Status implements vscode.Disposable {
  private readonly item = vscode.window.createStatusBarItem("autodebug", vscode.StatusBarAlignment.Left, 5);
  private readonly subscription: vscode.Disposable;

  constructor(private readonly sessions: Sessions) {
    this.item.name = "Autodebug";
    this.subscription = vscode.Disposable.from(
      sessions.onDidChange(() => this.show()),
      vscode.debug.onDidChangeActiveDebugSession(() => this.show()),
    );
  }

  dispose(): void {
    this.subscription.dispose();
    this.item.dispose();
  }

  private show(): void {
    const session = this.sessions.current;
    const alive = session !== undefined && !session.ended && session.ready !== undefined;
    const shown = alive || (session !== undefined && session.offer !== undefined && session.kept !== undefined);
    void vscode.commands.executeCommand("setContext", "dapAgent.session", alive);
    void vscode.commands.executeCommand("setContext", "dapAgent.exception", alive && session.snapshot !== undefined);
    void vscode.commands.executeCommand("setContext", "dapAgent.working", alive && session.working !== undefined);
    void vscode.commands.executeCommand("setContext", "dapAgent.fix", shown && session.offer !== undefined && session.applied === false);
    void vscode.commands.executeCommand("setContext", "dapAgent.applied", shown && session.applied !== false);
    void vscode.commands.executeCommand("setContext", "dapAgent.kept", session?.kept !== undefined);
    void vscode.commands.executeCommand("setContext", "dapAgent.restartFrame", alive && session.canRestartFrame && session.stopped);
    if (!shown) {
      this.item.hide();
      return;
    }
    const { working, proposal, applied, snapshot, stopped } = session;
    const say = (text: string, tooltip: string, command: string): void => {
      this.item.text = clip(text);
      this.item.tooltip = tooltip;
      this.item.command = { title: tooltip, command, arguments: [session.id] };
      this.item.show();
    };
    if (working !== undefined) {
      say(`$(sync~spin) ${working.message || "Investigating"}`, "Autodebug: cancel", "autodebug.cancel");
    } else if (proposal !== undefined && applied === false) {
      say(`$(lightbulb) Fix ready: ${proposal.title}`, "Autodebug: preview the fix", "autodebug.preview");
    } else if (proposal !== undefined) {
      say(`$(check) Fixed: ${proposal.title}`, "Autodebug: show the report", "autodebug.showReport");
    } else if (snapshot !== undefined && stopped) {
      say(`$(sparkle) Autodebug: ${snapshot.exception.type}`, "Autodebug: investigate this exception", "autodebug.investigate");
    } else {
      say("$(debug) dap-agent", `dap-agent ${session.ready?.version ?? ""}: show the log`, "autodebug.showLog");
    }
  }
}

function clip(text: string): string {
  return text.length > WIDTH ? `${text.slice(0, WIDTH - 1)}…` : text;
}
