/** Wires the extension together. */

import * as vscode from "vscode";
import { Commands } from "./commands";
import { Adapters } from "./configurations";
import { Documents } from "./documents";
import { Installer } from "./install";
import { Finder } from "./interpreters";
import { Keeper } from "./kept";
import { Lens } from "./lens";
import { McpServers } from "./mcp";
import { OWN_TYPE } from "./routing";
import { Keys } from "./secrets";
import { Sessions } from "./sessions";
import { Status } from "./status";
import { registerTools } from "./tools";

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("Autodebug", { log: true });
  const environment = vscode.Uri.joinPath(context.globalStorageUri, "environment").fsPath;
  const keys = new Keys(context.secrets);
  const finder = new Finder(environment, context.workspaceState, log);
  const installer = new Installer(environment, finder, log);
  const adapters = new Adapters(installer, keys, log);
  const sessions = new Sessions(log);
  const documents = new Documents(sessions);
  context.subscriptions.push(
    log,
    sessions,
    documents,
    new Status(sessions),
    new Lens(sessions),
    adapters,
    vscode.debug.registerDebugConfigurationProvider("*", adapters.forAll),
    vscode.debug.registerDebugConfigurationProvider(OWN_TYPE, adapters.forOwn),
    vscode.debug.registerDebugAdapterDescriptorFactory(OWN_TYPE, adapters),
    new Commands(sessions, documents, installer, keys, log).register(),
    new Keeper(sessions, finder, log),
    registerTools(sessions, log),
    new McpServers(finder, String(context.extension.packageJSON.version)),
    vscode.workspace.onDidChangeConfiguration((event) => {
      if (event.affectsConfiguration("dapAgent.path")) {
        finder.forget();
      }
    }),
  );
  log.debug(`VS Code ${vscode.version}, extension ${String(context.extension.packageJSON.version)}`);
}
