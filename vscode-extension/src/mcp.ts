/** An MCP server for the agents of VS Code: they find the debug sessions of the window's folders, whenever they start. */

import * as vscode from "vscode";
import type { Finder } from "./interpreters";
import { folders } from "./settings";

const ID = "dap-agent";
const LABEL = "dap-agent: debug Python";

export class McpServers implements vscode.McpServerDefinitionProvider<vscode.McpStdioServerDefinition>, vscode.Disposable {
  private readonly changed = new vscode.EventEmitter<void>();
  private readonly subscriptions: vscode.Disposable;

  readonly onDidChangeMcpServerDefinitions = this.changed.event;

  constructor(
    private readonly finder: Finder,
    private readonly version: string,
  ) {
    const again = (): void => this.changed.fire();
    this.subscriptions = vscode.Disposable.from(
      this.changed,
      vscode.lm.registerMcpServerDefinitionProvider(ID, this),
      vscode.workspace.onDidChangeWorkspaceFolders(again),
      vscode.workspace.onDidGrantWorkspaceTrust(again),
      vscode.workspace.onDidChangeConfiguration((event) => {
        if (["dapAgent.path", "dapAgent.enable"].some((name) => event.affectsConfiguration(name))) {
          again();
        }
      }),
    );
  }

  /** Called early and often: it starts nothing and asks nobody. */
  provideMcpServerDefinitions(): vscode.McpStdioServerDefinition[] {
    if (!vscode.workspace.isTrusted || folders().length === 0) {
      return [];
    }
    return [new vscode.McpStdioServerDefinition(LABEL, "dap-agent", ["mcp", ...words()], {}, this.version)];
  }

  /** Before the server is started: where dap-agent is. Nothing is installed for it. */
  async resolveMcpServerDefinition(
    definition: vscode.McpStdioServerDefinition,
  ): Promise<vscode.McpStdioServerDefinition | undefined> {
    const scope = vscode.workspace.workspaceFolders?.[0]?.uri;
    const program = await this.finder.any(scope);
    if (program === null) {
      throw new Error("dap-agent is not installed: run the command Autodebug: Install dap-agent into a Private Environment.");
    }
    definition.command = program.file;
    definition.args = [...program.args, "mcp", ...words()];
    return definition;
  }

  dispose(): void {
    this.subscriptions.dispose();
  }
}

function words(): string[] {
  return folders().flatMap((uri) => ["--workspace", uri.fsPath]);
}
