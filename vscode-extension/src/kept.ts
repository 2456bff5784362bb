/** What outlives its debug session: `dap-agent kept` tells it, and does what is wanted with it. How it is kept is not known here. */

import * as fs from "node:fs";
import * as vscode from "vscode";
import { type Finder, run } from "./interpreters";
import type { ChangedFile, FileTexts, Snapshot } from "./messages";
import type { Sessions } from "./sessions";
import { folders } from "./settings";

const PAUSE = 200; // milliseconds in which several changes are one

/** One item of `dap-agent kept list --json`. */
interface Listed {
  readonly session: string;
  readonly root: string;
  readonly stop: Omit<Snapshot, "threadId" | "model">;
  readonly stands: boolean;
  readonly report: string;
  readonly fix: {
    readonly id: string;
    readonly title: string;
    readonly proved: boolean;
    readonly applied: boolean;
    readonly fits: boolean;
    readonly diff: string;
    readonly files: readonly (ChangedFile & FileTexts)[];
  } | null;
}

type Do = (...words: string[]) => Promise<string>;

/** The last exception of a workspace whose session is over, and its fix. */
export class Kept {
  constructor(
    readonly it: Listed,
    private readonly command: Do,
  ) {}

  /** What a live session's adapter would answer, as far as it can be done without one. */
  async request(name: string, args: object = {}): Promise<unknown> {
    const { unproved, written } = args as { unproved?: boolean; written?: boolean };
    const id = this.it.fix?.id ?? this.it.session;
    switch (name) {
      case "texts":
        return { id, files: this.it.fix?.files ?? [] };
      case "apply":
        return this.command("apply", ...(unproved === true ? ["--unproved"] : []), id);
      case "undo":
        return this.command("undo", id);
      case "applied":
        return this.command(written === true ? "written" : "unwritten", id);
      case "forget":
        return this.command("forget", this.it.session);
      default:
        throw new Error("The debug session has ended: start the program again.");
    }
  }
}

/** Looks what there is when a window opens, a session ends, a file changes, or something else has changed it. */
export class Keeper implements vscode.Disposable {
  private readonly subscription: vscode.Disposable;
  private readonly watched = new Map<string, fs.FSWatcher>();
  private timer: NodeJS.Timeout | undefined;
  private looking = Promise.resolve();

  constructor(
    private readonly sessions: Sessions,
    private readonly finder: Finder,
    private readonly log: vscode.LogOutputChannel,
  ) {
    const files = vscode.workspace.createFileSystemWatcher("**/*.py");
    this.subscription = vscode.Disposable.from(
      vscode.debug.onDidTerminateDebugSession(() => this.soon()),
      vscode.workspace.onDidSaveTextDocument(() => this.touched()),
      files,
      files.onDidChange(() => this.touched()),
      files.onDidCreate(() => this.touched()),
      files.onDidDelete(() => this.touched()),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.soon()),
      vscode.workspace.onDidGrantWorkspaceTrust(() => this.soon()),
    );
    this.soon();
  }

  dispose(): void {
    this.subscription.dispose();
    clearTimeout(this.timer);
    this.watched.forEach((one) => one.close());
  }

  /** A file has changed: a fix may not fit it any more, or fit it again. */
  private touched(): void {
    if (this.sessions.over.length > 0) {
      this.soon();
    }
  }

  private soon(): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => (this.looking = this.looking.then(() => this.look())), PAUSE);
  }

  private async look(): Promise<void> {
    const wanted = vscode.workspace.isTrusted ? folders() : [];
    if (wanted.length === 0) {
      return this.sessions.keep([]);
    }
    if (vscode.debug.activeDebugSession !== undefined) {
      return; // its end is waited for: nothing of this is to run beside a program that is debugged
    }
    const program = await this.finder.any(wanted[0]);
    if (program === null) {
      return;
    }
    const command: Do = async (...words) => {
      const answer = await run(program.file, [...program.args, "kept", ...words]);
      if (!answer.ok) {
        throw new Error(answer.text.trim().replace(/^dap-agent: /, ""));
      }
      return answer.text;
    };
    try {
      const words = wanted.flatMap((uri) => ["--workspace", uri.fsPath]);
      const found = JSON.parse(await command("list", "--json", ...words)) as { kept: Listed[]; folders: string[] };
      found.folders.forEach((folder) => this.watch(folder));
      this.sessions.keep(found.kept.map((one) => new Kept(one, command)));
    } catch (error) {
      this.log.debug(`kept: ${error instanceof Error ? error.message : String(error)}`); // another version of dap-agent
    }
  }

  private watch(folder: string): void {
    if (this.watched.has(folder)) {
      return;
    }
    const watcher = fs.watch(folder, { persistent: false }, () => this.soon());
    watcher.on("error", () => {
      watcher.close(); // the folder has gone; the next look finds the new one
      this.watched.delete(folder);
    });
    this.watched.set(folder, watcher);
  }
}
