/** The commands below "Autodebug:". */

import * as vscode from "vscode";
import type { Documents } from "./documents";
import { filesOf, isDirty, isSaved, put, takeBack } from "./fixes";
import type { Installer } from "./install";
import type { Keys } from "./secrets";
import type { Session, Sessions } from "./sessions";

export const EXPLAIN = "Explain this exception: what is its cause, and where does the wrong value come from?";

export class Commands {
  constructor(
    private readonly sessions: Sessions,
    private readonly documents: Documents,
    private readonly installer: Installer,
    private readonly keys: Keys,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  register(): vscode.Disposable {
    const table: Record<string, (...args: never[]) => unknown> = {
      investigate: (id?: string) => this.investigate(this.session(id)),
      cancel: (id?: string) => this.session(id).request("cancel"),
      preview: (id?: string) => this.preview(this.session(id)),
      apply: (id?: string) => this.apply(this.session(id)),
      applyAndRestartFrame: (id?: string) => this.applyAndRestartFrame(this.session(id)),
      applyAndRestartProgram: (id?: string) => this.applyAndRestartProgram(this.session(id)),
      undo: (id?: string) => this.undo(this.session(id)),
      edited: (id?: string) => this.edited(this.session(id)),
      explain: (id?: string) => this.ask(this.session(id), EXPLAIN),
      dismiss: (id?: string) => this.sessions.dismiss(this.session(id)),
      ask: () => this.askFor(this.session()),
      showReport: () => this.documents.showReport(),
      setKey: () => this.keys.set(),
      removeKey: () => this.keys.remove(),
      chooseModel: () => this.chooseModel(),
      install: () => this.install(),
      showLog: () => this.log.show(),
    };
    return vscode.Disposable.from(
      ...Object.entries(table).map(([name, action]) =>
        vscode.commands.registerCommand(`autodebug.${name}`, (...args) => this.told(() => action(...(args as never[])))),
      ),
    );
  }

  /** The session with that id, or the one that the user means. */
  private session(id?: unknown): Session {
    const session = typeof id === "string" ? this.sessions.get(id) : this.sessions.current;
    if (session === undefined) {
      throw new Error("No debug session goes through dap-agent: start one with F5 (type debugpy, python or dap-agent).");
    }
    return session;
  }

  private async told(action: () => unknown): Promise<unknown> {
    try {
      return await action();
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error);
      this.log.error(message);
      void vscode.window.showErrorMessage(message);
      return undefined;
    }
  }

  private async investigate(session: Session): Promise<void> {
    if (session.ready?.model === null) {
      const set = "Choose a Model";
      const answer = await vscode.window.showWarningMessage("No model is set up, so nobody can look for a fix.", set);
      if (answer === set) {
        await this.chooseModel();
      }
      return;
    }
    await session.request("autodebug");
  }

  private async preview(session: Session): Promise<void> {
    await this.documents.preview(session, this.proposal(session));
  }

  private proposal(session: Session): NonNullable<Session["proposal"]> {
    if (session.proposal === undefined) {
      throw new Error("There is no fix yet: run Autodebug: Investigate This Exception.");
    }
    return session.proposal;
  }

  /** Write the fix; false if the user does not want it after all. */
  private async apply(session: Session): Promise<boolean> {
    const proposal = this.proposal(session);
    if (session.applied !== false) {
      return true;
    }
    if (!proposal.proved) {
      const anyway = "Apply Anyway";
      const detail = `${proposal.verdict?.kind ?? "no verdict"}: ${proposal.verdict?.summary ?? "it was not tested"}`;
      const answer = await vscode.window.showWarningMessage("The fix is not proved.", { modal: true, detail }, anyway);
      if (answer !== anyway) {
        return false;
      }
    }
    if (proposal.files.some(isDirty)) {
      await put(session); // what the user has typed since stays
      await this.written(session, true);
    } else {
      await session.request("apply", { id: proposal.id, unproved: !proposal.proved });
      session.applied = "adapter";
      this.sessions.changed(session);
    }
    void vscode.window.setStatusBarMessage(`$(check) Applied: ${proposal.title}`, 5000);
    return true;
  }

  private async applyAndRestartFrame(session: Session): Promise<void> {
    if (!session.canRestartFrame) {
      throw new Error("Frames cannot be restarted in this session: use Autodebug: Apply the Fix and Restart the Program.");
    }
    const threadId = session.snapshot?.threadId;
    if (threadId === undefined || !session.stopped || !(await this.apply(session))) {
      return;
    }
    const { path, line } = session.snapshot ?? {};
    const { stackFrames } = await session.custom<{
      stackFrames: { id: number; line: number; source?: { path?: string } }[];
    }>("stackTrace", { threadId, startFrame: 0, levels: 50 });
    const isThere = (place: string | undefined): boolean =>
      place !== undefined && (/^[a-z][\w+.-]+:\/\//i.test(place) ? vscode.Uri.parse(place).fsPath : place) === path;
    const frame = stackFrames.find((one) => isThere(one.source?.path) && one.line === line) ?? stackFrames[0];
    if (frame === undefined) {
      return;
    }
    try {
      await session.custom("restartFrame", { frameId: frame.id });
    } catch (error) {
      const why = error instanceof Error ? error.message : String(error);
      const program = "Restart the Program";
      if ((await vscode.window.showWarningMessage(`The fix is applied. ${why}`, program)) === program) {
        await this.applyAndRestartProgram(session);
      }
    }
  }

  private async applyAndRestartProgram(session: Session): Promise<void> {
    if (await this.apply(session)) {
      await vscode.commands.executeCommand("workbench.action.debug.restart");
    }
  }

  private async undo(session: Session): Promise<void> {
    const { title } = this.proposal(session);
    if (session.applied === "editor") {
      await takeBack(session);
      await this.written(session, false);
    } else {
      await session.request("undo");
      session.applied = false;
      this.sessions.changed(session);
    }
    void vscode.window.setStatusBarMessage(`$(discard) Taken back: ${title}`, 5000);
  }

  /** The fix was put into the buffers as a quick fix: the program is to have it once it is saved. */
  private async edited(session: Session): Promise<void> {
    const files = await filesOf(session);
    const id = session.proposal?.id;
    const saved = vscode.workspace.onDidSaveTextDocument(() => void look());
    const over = this.sessions.onDidChange((change) => {
      if (change.session === session && (change.what === "ended" || session.proposal?.id !== id)) {
        stop();
      }
    });
    const stop = (): void => vscode.Disposable.from(saved, over).dispose();
    const look = async (): Promise<void> => {
      if (await isSaved(files)) {
        stop();
        await this.told(() => this.written(session, true));
      }
    };
    await look();
  }

  private async written(session: Session, written: boolean): Promise<void> {
    await session.request("applied", { id: this.proposal(session).id, written });
    session.applied = written ? "editor" : false;
    this.sessions.changed(session);
  }

  private async ask(session: Session, text: string): Promise<void> {
    await session.request("ask", { text });
    await this.documents.showReport();
  }

  private async askFor(session: Session): Promise<void> {
    const text = await vscode.window.showInputBox({ title: "Ask about the stopped program", ignoreFocusOut: true });
    if (text !== undefined && text.trim() !== "") {
      await this.ask(session, text.trim());
    }
  }

  private async chooseModel(): Promise<void> {
    const choices = [
      { label: "anthropic:", description: "Anthropic; needs a key" },
      { label: "openai:", description: "OpenAI; needs a key" },
      { label: "local:ollama", description: "a server on this machine; nothing leaves it" },
      { label: "local:", description: "any OpenAI-compatible server" },
    ];
    const choice = await vscode.window.showQuickPick(choices, { title: "Where is the model?" });
    if (choice === undefined) {
      return;
    }
    const model = await vscode.window.showInputBox({
      title: "Model",
      prompt: "PROVIDER:NAME, or local:URL",
      value: choice.label,
      valueSelection: [choice.label.length, choice.label.length],
      ignoreFocusOut: true,
    });
    if (model === undefined || model.trim() === "") {
      return;
    }
    await vscode.workspace.getConfiguration("dapAgent").update("model", model.trim(), vscode.ConfigurationTarget.Global);
    if (!model.startsWith("local:")) {
      await this.keys.set();
    }
    void vscode.window.showInformationMessage("The model holds from the next debug session on.");
  }

  private async install(): Promise<void> {
    if (!vscode.workspace.isTrusted) {
      throw new Error("dap-agent starts nothing in a workspace that is not trusted.");
    }
    const program = await this.installer.install(vscode.workspace.workspaceFolders?.[0]?.uri);
    if (program !== null) {
      void vscode.window.showInformationMessage(`dap-agent ${program.version} is installed.`);
    }
  }
}
