/** Installs dap-agent into an environment of the extension's own, after the user has agreed. */

import * as fs from "node:fs/promises";
import * as vscode from "vscode";
import { environmentPython, type Finder, interpreter, type Program, run } from "./interpreters";
import { settings } from "./settings";

const INSTALL = "Install";
const CHOOSE = "Choose a Python…";
const NEVER = "Not in This Workspace";

export class Installer {
  private asked = false;

  constructor(
    private readonly environment: string,
    private readonly finder: Finder,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /**
   * The program to run, found or, if the user agrees, installed. Null: the user does not want it (now); asked only once
   * per window.
   */
  async program(scope: vscode.Uri | undefined, named: string | null): Promise<Program | null> {
    const given = settings(scope).path;
    const found = await this.finder.find(given, scope, named);
    if (found !== null || this.asked) {
      return found;
    }
    this.asked = true;
    // modal: the start of the debug session waits for it
    const answer = await vscode.window.showInformationMessage(
      given !== "" ? `There is no dap-agent at ${given} (setting dapAgent.path).` : "dap-agent is not installed for this program.",
      {
        modal: true,
        detail: "It can be installed into a private environment, which leaves your environments alone. Without it the program is debugged as before.",
      },
      INSTALL,
      CHOOSE,
      NEVER,
    );
    if (answer === INSTALL) {
      return this.install(scope);
    }
    if (answer === CHOOSE) {
      return this.choose(scope);
    }
    if (answer === NEVER) {
      await vscode.workspace.getConfiguration("dapAgent", scope).update("enable", false, vscode.ConfigurationTarget.Workspace);
    }
    return null;
  }

  /** Make the private environment (anew) and install the package there. */
  async install(scope: vscode.Uri | undefined): Promise<Program | null> {
    const base = await interpreter(scope);
    const wanted = settings(scope).package;
    const failure = await vscode.window.withProgress(
      { location: vscode.ProgressLocation.Notification, title: `Installing ${wanted}`, cancellable: true },
      async (progress, token) => {
        const stop = new AbortController();
        token.onCancellationRequested(() => stop.abort());
        await fs.rm(this.environment, { recursive: true, force: true });
        const steps: [string, string, string[]][] = [
          ["making a private environment", base, ["-m", "venv", this.environment]],
          ["pip install", environmentPython(this.environment), ["-m", "pip", "install", "--disable-pip-version-check", wanted]],
        ];
        for (const [message, file, args] of steps) {
          progress.report({ message });
          this.log.info([file, ...args].join(" "));
          const answer = await run(file, args, stop.signal);
          this.log.debug(answer.text);
          if (token.isCancellationRequested) {
            return "It was cancelled.";
          }
          if (!answer.ok) {
            return answer.text.trim().split("\n").at(-1) ?? "";
          }
        }
        return null;
      },
    );
    this.finder.forget();
    if (failure !== null) {
      await fs.rm(this.environment, { recursive: true, force: true });
      void vscode.window.showErrorMessage(`dap-agent was not installed with ${base}: ${failure}`);
      return null;
    }
    return this.finder.find(environmentPython(this.environment), scope, null);
  }

  private async choose(scope: vscode.Uri | undefined): Promise<Program | null> {
    const files = await vscode.window.showOpenDialog({ title: "A Python that has dap-agent, or an executable dap-agent" });
    const file = files?.[0]?.fsPath;
    if (file === undefined) {
      return null;
    }
    const found = await this.finder.find(file, scope, null);
    if (found === null) {
      void vscode.window.showErrorMessage(`There is no dap-agent at ${file}: pip install dap-agent there, or choose another Python.`);
      return null;
    }
    await vscode.workspace.getConfiguration("dapAgent").update("path", file, vscode.ConfigurationTarget.Global);
    return found;
  }
}
