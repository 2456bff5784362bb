/** Debug sessions of the types debugpy and python go through dap-agent, their launch.json untouched; and our own type. */

import * as vscode from "vscode";
import type { Installer } from "./install";
import { interpreter, isNew } from "./interpreters";
import { type Command, Relay } from "./relay";
import { type Address, addressOf, type Configuration, interpreterOf, OWN_TYPE, route, runsTests } from "./routing";
import type { Keys } from "./secrets";
import { settings } from "./settings";

export class Adapters implements vscode.DebugAdapterDescriptorFactory, vscode.Disposable {
  private readonly relays = new Map<number, Relay>();

  constructor(
    private readonly installer: Installer,
    private readonly keys: Keys,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /** The provider for all types: it runs after those of the type's own extension, so it sees what they have made. */
  readonly forAll: vscode.DebugConfigurationProvider = {
    resolveDebugConfigurationWithSubstitutedVariables: async (folder, given) => {
      const configuration: vscode.DebugConfiguration & Configuration = given;
      const chosen = route(configuration, {
        enabled: settings(folder).enable,
        trusted: vscode.workspace.isTrusted,
        isOurs: (port) => typeof port === "number" && this.relays.has(port),
      });
      if (chosen.kind === "untouched") {
        this.log.debug(`"${configuration.name}" does not go through dap-agent: ${chosen.why}`);
        return configuration;
      }
      if (chosen.kind === "child") {
        return configuration;
      }
      await this.stopAtFailures(folder, configuration);
      if (configuration.type !== OWN_TYPE) {
        const command = await this.command(folder, configuration, chosen.connect);
        if (command !== null) {
          configuration["debugServer"] = await this.open(configuration.name, command);
        }
      }
      return configuration;
    },
  };

  /** The provider for our own type. */
  readonly forOwn: vscode.DebugConfigurationProvider = {
    provideDebugConfigurations: () => [template()],
    resolveDebugConfiguration: (_, given) => {
      const made = given.type ? given : template();
      if (made.request === "launch" && !["program", "module", "code"].some((key) => made[key] !== undefined)) {
        made["program"] = "${file}";
      }
      return made;
    },
    resolveDebugConfigurationWithSubstitutedVariables: async (folder, given) => {
      if (given.request === "launch" && interpreterOf(given) === null) {
        given["python"] = await interpreter(folder?.uri);
      }
      given["cwd"] ??= folder?.uri.fsPath;
      return given;
    },
  };

  /** The adapter of a session of our own type. */
  async createDebugAdapterDescriptor(session: vscode.DebugSession): Promise<vscode.DebugAdapterDescriptor> {
    const configuration: Configuration = session.configuration;
    const address = addressOf(configuration);
    if (configuration.subProcessId !== undefined && address !== null) {
      return new vscode.DebugAdapterServer(address.port, address.host); // its parent's adapter waits there
    }
    if (!vscode.workspace.isTrusted) {
      throw new Error("dap-agent starts nothing in a workspace that is not trusted.");
    }
    const command = await this.command(session.workspaceFolder, configuration, address);
    if (command === null) {
      throw new Error("dap-agent is not installed: run the command Autodebug: Install dap-agent.");
    }
    this.log.info(`"${session.name}": ${[command.file, ...command.args].join(" ")}`);
    const { file, args, env, cwd } = command;
    return new vscode.DebugAdapterExecutable(file, [...args], {
      env: env as Record<string, string>,
      ...(cwd !== undefined ? { cwd } : {}),
    });
  }

  dispose(): void {
    [...this.relays.values()].forEach((relay) => relay.dispose());
  }

  /** Below 3.12 a stop at the raise makes some programs slower: there it is for tests, whose runner catches all. */
  private async stopAtFailures(folder: vscode.WorkspaceFolder | undefined, configuration: Configuration): Promise<void> {
    const wanted = settings(folder).stopAtFailures;
    if (configuration.dapAgent === false || wanted === "never") {
      return;
    }
    if (wanted !== "always" && !runsTests(configuration)) {
      const python = interpreterOf(configuration);
      if (wanted === "tests" || python === null || !(await isNew(python))) {
        return;
      }
    }
    const keys = (configuration.dapAgent ?? {}) as object;
    configuration.dapAgent = { unhandled: true, ...keys };
  }

  private async command(
    folder: vscode.WorkspaceFolder | undefined,
    configuration: Configuration,
    connect: Address | null,
  ): Promise<Command | null> {
    const program = await this.installer.program(folder?.uri, interpreterOf(configuration));
    if (program === null) {
      return null;
    }
    const own = connect === null ? [] : ["--connect", `${connect.host}:${connect.port}`];
    return {
      file: program.file,
      args: [...program.args, "adapter", ...own],
      env: await this.environment(folder),
      cwd: folder?.uri.fsPath,
    };
  }

  private async environment(folder: vscode.WorkspaceFolder | undefined): Promise<NodeJS.ProcessEnv> {
    const { model, maxCost } = settings(folder);
    return {
      ...process.env,
      ...(await this.keys.environment()),
      ...(model !== "" ? { DAP_AGENT_MODEL: model } : {}),
      ...(maxCost !== null ? { DAP_AGENT_MAX_COST: String(maxCost) } : {}),
    };
  }

  private async open(name: string, command: Command): Promise<number> {
    const said = (line: string): void => this.log.info(`"${name}": ${line}`);
    const failed = (why: string): void => {
      this.log.error(`"${name}": ${why}`);
      void vscode.window
        .showErrorMessage(`dap-agent's debug adapter failed: ${why}.`, "Show Log", "Debug without dap-agent from now on")
        .then((answer) => {
          if (answer === "Show Log") {
            this.log.show();
          } else if (answer !== undefined) {
            void vscode.workspace.getConfiguration("dapAgent").update("enable", false, vscode.ConfigurationTarget.Workspace);
          }
        });
    };
    const relay = await Relay.open(command, { said, failed }, () => this.relays.delete(port));
    const port = relay.port;
    this.relays.set(port, relay);
    this.log.info(`"${name}" goes through dap-agent: ${[command.file, ...command.args].join(" ")}`);
    return port;
  }
}

function template(): vscode.DebugConfiguration {
  return { name: "dap-agent: current file", type: OWN_TYPE, request: "launch", program: "${file}", console: "integratedTerminal" };
}
