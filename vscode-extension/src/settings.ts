/** The extension's settings, read when they are needed so that a change holds at once. */

import * as vscode from "vscode";

export interface Settings {
  readonly enable: boolean;
  /** An executable `dap-agent` or a Python that has the package; empty: looked for. */
  readonly path: string;
  /** What pip installs into the private environment. */
  readonly package: string;
  readonly model: string;
  readonly maxCost: number | null;
  readonly stopAtFailures: "auto" | "tests" | "always" | "never";
  readonly codeLens: boolean;
}

/** The window's folders on this machine that dap-agent is on for. */
export function folders(): vscode.Uri[] {
  return (vscode.workspace.workspaceFolders ?? [])
    .filter(({ uri }) => uri.scheme === "file" && settings(uri).enable)
    .map(({ uri }) => uri);
}

export function settings(scope?: vscode.ConfigurationScope): Settings {
  const all = vscode.workspace.getConfiguration("dapAgent", scope);
  return {
    enable: all.get("enable", true),
    path: all.get("path", "").trim(),
    package: all.get("package", "").trim() || "dap-agent",
    model: all.get("model", "").trim(),
    maxCost: all.get<number | null>("maxCost", null),
    stopAtFailures: all.get("stopAtFailures", "auto"),
    codeLens: all.get("codeLens", true),
  };
}
