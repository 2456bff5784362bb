/** Tools for language models in VS Code: the paused program, read and asked. */

import * as vscode from "vscode";
import { block } from "./report";
import type { Session, Sessions } from "./sessions";

const LIMIT = 30_000; // characters of one answer

interface Frame {
  readonly number: number;
  readonly function: string;
  readonly file: string;
  readonly line: number;
  readonly user: boolean;
  readonly arguments: readonly Named[];
  readonly locals: readonly Named[];
}

interface Named {
  readonly name: string;
  readonly value: { readonly text: string };
}

export function registerTools(sessions: Sessions, log: vscode.LogOutputChannel): vscode.Disposable {
  const session = (): Session => {
    const found = sessions.current;
    if (found === undefined || found.ended) {
      throw new Error("No Python program is being debugged through dap-agent: ask the user to start one with F5.");
    }
    return found;
  };
  const tool = <T extends object>(name: string, invoke: (input: T, token: vscode.CancellationToken) => Promise<object>, say: string, confirm?: (input: T) => string): vscode.Disposable =>
    vscode.lm.registerTool<T>(name, {
      prepareInvocation: ({ input }) => ({
        invocationMessage: say,
        ...(confirm === undefined
          ? {}
          : { confirmationMessages: { title: say, message: new vscode.MarkdownString(confirm(input)) } }),
      }),
      invoke: async ({ input }, token) => {
        const text = JSON.stringify(await invoke(input, token));
        const shown = text.length > LIMIT ? `${text.slice(0, LIMIT)}… (${text.length - LIMIT} characters more)` : text;
        return new vscode.LanguageModelToolResult([new vscode.LanguageModelTextPart(shown)]);
      },
    });
  return vscode.Disposable.from(
    tool("dap_agent_status", () => session().request<object>("status"), "Looking at the debugged program"),
    tool(
      "dap_agent_exception",
      async () => brief((await session().request<{ snapshot: Snapshot }>("snapshot")).snapshot),
      "Reading the exception, stack and values",
    ),
    tool<{ code: string }>(
      "dap_agent_run_code",
      async ({ code }) => session().custom<object>("evaluate", { expression: `/try ${code}`, context: "repl" }),
      "Running code in the paused program",
      ({ code }) => `This runs in your live program:\n\n${block(code, "python")}`, // a model cannot write its way out
    ),
    tool<{ instructions?: string }>(
      "dap_agent_find_fix",
      async ({ instructions }, token) => {
        const one = session();
        await one.request("autodebug", instructions ? { instructions } : {});
        return ended(sessions, one, token, log);
      },
      "Looking for a proven fix",
      () => "dap-agent investigates with the model that is set up for it. Nothing is written to your files.",
    ),
  );
}

interface Snapshot {
  readonly reason: string;
  readonly exception: unknown;
  readonly frames: readonly Frame[];
}

function brief({ reason, exception, frames }: Snapshot): object {
  const values = (named: readonly Named[]): object => Object.fromEntries(named.map(({ name, value }) => [name, value.text]));
  return {
    reason,
    exception,
    frames: frames.map((one) => ({
      number: one.number,
      function: one.function,
      file: one.file,
      line: one.line,
      ...(one.user ? { values: values([...one.arguments, ...one.locals]) } : {}),
    })),
  };
}

/** Waits for the end of the investigation that runs; ends it if the caller gives up. */
function ended(sessions: Sessions, session: Session, token: vscode.CancellationToken, log: vscode.LogOutputChannel): Promise<object> {
  return new Promise((resolve) => {
    const subscriptions = vscode.Disposable.from(
      sessions.onDidChange((change) => {
        if (change.session !== session || (change.what !== "ended" && change.progress?.kind !== "end")) {
          return;
        }
        subscriptions.dispose();
        const { proposal } = session;
        resolve({
          status: change.progress?.status ?? "the debug session has ended",
          text: change.progress?.text ?? "",
          ...(proposal === undefined ? {} : { proposal, next: "The user can preview and apply it." }),
        });
      }),
      token.onCancellationRequested(() => {
        // the session may be over by now: then there is nothing to end
        session.request("cancel").catch((error: unknown) => log.warn(`cancel: ${error instanceof Error ? error.message : String(error)}`));
      }),
    );
  });
}
