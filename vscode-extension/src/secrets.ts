/** Keys of model providers, kept in VS Code's SecretStorage and given to dap-agent's own process only. */

import * as vscode from "vscode";

const PROVIDERS = [
  { label: "Anthropic", variable: "ANTHROPIC_API_KEY" },
  { label: "OpenAI", variable: "OPENAI_API_KEY" },
] as const;

type Provider = (typeof PROVIDERS)[number];

export class Keys {
  constructor(private readonly storage: vscode.SecretStorage) {}

  /**
   * The environment variables for the adapter. `DAP_AGENT_PRIVATE` names those that it must not hand on to the
   * debugged program.
   */
  async environment(): Promise<Record<string, string>> {
    const found: Record<string, string> = {};
    for (const { variable } of PROVIDERS) {
      const key = await this.storage.get(variable);
      if (key !== undefined && key !== "") {
        found[variable] = key;
      }
    }
    const names = Object.keys(found);
    return names.length === 0 ? {} : { ...found, DAP_AGENT_PRIVATE: names.join(",") };
  }

  /** Ask for a key and keep it. */
  async set(): Promise<void> {
    const provider = await this.pick("Whose key?");
    if (provider === undefined) {
      return;
    }
    const key = await vscode.window.showInputBox({
      title: `Key for ${provider.label}`,
      prompt: "It is kept in VS Code's secret storage and given to dap-agent only, not to your programs.",
      password: true,
      ignoreFocusOut: true,
    });
    if (key !== undefined && key.trim() !== "") {
      await this.storage.store(provider.variable, key.trim());
      void vscode.window.showInformationMessage(`The key for ${provider.label} holds from the next debug session on.`);
    }
  }

  /** Forget a key. */
  async remove(): Promise<void> {
    const provider = await this.pick("Forget whose key?");
    if (provider !== undefined) {
      await this.storage.delete(provider.variable);
      void vscode.window.showInformationMessage(`The key for ${provider.label} is forgotten.`);
    }
  }

  private async pick(title: string): Promise<Provider | undefined> {
    return vscode.window.showQuickPick(
      PROVIDERS.map((one) => ({ ...one, description: one.variable })),
      { title },
    );
  }
}
