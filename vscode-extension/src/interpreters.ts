/** Finds a Python, and a dap-agent that can be run. */

import { execFile } from "node:child_process";
import * as fs from "node:fs";
import * as os from "node:os";
import * as path from "node:path";
import * as vscode from "vscode";
import { settings } from "./settings";

/** How dap-agent is started: put its own words behind. */
export interface Program {
  readonly file: string;
  readonly args: readonly string[];
  readonly version: string;
}

export interface Answer {
  readonly ok: boolean;
  readonly text: string;
}

const MEMORY = "program";
const TIMEOUT = 20_000; // milliseconds; a cold start of a Python on a slow disk takes seconds
// what lies in the working directory must not be taken for a module
const START = "import sys; sys.path[:] = [p for p in sys.path if p]; from dap_agent.cli.main import main; sys.exit(main())";

/** Run a program to its end. */
export function run(file: string, args: readonly string[], signal?: AbortSignal): Promise<Answer> {
  return new Promise((resolve) => {
    const limit = signal === undefined ? { timeout: TIMEOUT } : { signal };
    execFile(file, [...args], { cwd: os.tmpdir(), maxBuffer: 16 * 1024 * 1024, ...limit }, (error, stdout, stderr) => {
      resolve({ ok: error === null, text: error === null ? stdout : stderr || error.message });
    });
  });
}

/** The interpreter that the Python extension has chosen for a folder, else the settings', the folder's own, the PATH's. */
export async function interpreter(scope: vscode.Uri | undefined): Promise<string> {
  return (await pythonExtension(scope)) ?? configured(scope) ?? local(scope) ?? (process.platform === "win32" ? "python" : "python3");
}

/** The places where dap-agent may be, the likeliest first, each tried once. */
export class Finder {
  private readonly known = new Map<string, Program>();

  /** @param memory of the workspace: where its debug sessions have found it, for a window that has had none yet */
  constructor(
    private readonly privateEnvironment: string,
    private readonly memory: vscode.Memento,
    private readonly log: vscode.LogOutputChannel,
  ) {}

  /**
   * @param given the setting `dapAgent.path`
   * @param scope folder of the debug session
   * @param named interpreter of the debug session, if it names one
   */
  async find(given: string, scope: vscode.Uri | undefined, named: string | null): Promise<Program | null> {
    const places = given !== "" ? [expand(given)] : await this.places(scope, named);
    for (const place of places) {
      const known = this.known.get(place) ?? (await this.look(place));
      if (known !== null) {
        this.known.delete(place);
        this.known.set(place, known); // the newest is the last
        await this.memory.update(MEMORY, place);
        return known;
      }
    }
    return null;
  }

  /** One that does for what is no debug session's. Nothing is installed for it. */
  async any(scope: vscode.Uri | undefined): Promise<Program | null> {
    const { path: given } = settings(scope);
    const newest = given === "" ? ([...this.known.values()].at(-1) ?? null) : null;
    return newest ?? this.find(given, scope, this.memory.get<string>(MEMORY) ?? null);
  }

  /** Forget what was found: it may have been installed or removed. */
  forget(): void {
    this.known.clear();
  }

  private async places(scope: vscode.Uri | undefined, named: string | null): Promise<string[]> {
    const places = [
      named,
      await pythonExtension(scope),
      configured(scope),
      local(scope),
      "dap-agent",
      environmentPython(this.privateEnvironment),
    ];
    return [...new Set(places.filter((one): one is string => one !== null && (!path.isAbsolute(one) || fs.existsSync(one))))];
  }

  private async look(place: string): Promise<Program | null> {
    const args = isPython(place) ? ["-c", START] : [];
    const answer = await run(place, [...args, "--version"]);
    const version = /\d+\.\d+\S*/.exec(answer.text)?.[0];
    if (!answer.ok || version === undefined) {
      this.log.debug(`no dap-agent at ${place}: ${answer.text.trim().split("\n").at(-1) ?? ""}`);
      return null;
    }
    this.log.info(`dap-agent ${version} at ${place}`);
    return { file: place, args, version };
  }
}

const versions = new Map<string, Promise<boolean>>();

/** Whether an interpreter has `sys.monitoring` (Python 3.12), so that stops at a raise cost next to nothing. */
export function isNew(python: string): Promise<boolean> {
  const code = "import sys; print(sys.version_info >= (3, 12))";
  const known = versions.get(python) ?? run(python, ["-c", code]).then(({ text }) => text.trim() === "True");
  versions.set(python, known);
  return known;
}

/** The interpreter of a virtual environment. */
export function environmentPython(environment: string): string {
  return process.platform === "win32" ? path.join(environment, "Scripts", "python.exe") : path.join(environment, "bin", "python");
}

export function isPython(place: string): boolean {
  return /^(python|pypy)[\d.]*(\.exe)?$/i.test(path.basename(place));
}

function expand(place: string): string {
  return place.startsWith("~/") ? path.join(os.homedir(), place.slice(2)) : place;
}

function configured(scope: vscode.Uri | undefined): string | null {
  const value = vscode.workspace.getConfiguration("python", scope).get<string>("defaultInterpreterPath", "");
  return value === "" || value === "python" || value.includes("${") ? null : expand(value);
}

function local(scope: vscode.Uri | undefined): string | null {
  const folders = scope === undefined ? [] : [".venv", "venv"].map((name) => path.join(scope.fsPath, name));
  return folders.map(environmentPython).find((place) => fs.existsSync(place)) ?? null;
}

interface PythonApi {
  readonly environments?: { getActiveEnvironmentPath(resource?: vscode.Uri): { readonly path: string } };
}

async function pythonExtension(scope: vscode.Uri | undefined): Promise<string | null> {
  const extension = vscode.extensions.getExtension<PythonApi>("ms-python.python");
  if (extension === undefined) {
    return null;
  }
  const api = await extension.activate();
  const found = api.environments?.getActiveEnvironmentPath(scope).path;
  return found !== undefined && path.isAbsolute(found) ? found : null;
}
