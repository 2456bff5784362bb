/** What is known of each debug session that goes through dap-agent, from its messages. */

import * as vscode from "vscode";
import type { Kept } from "./kept";
import type { FileTexts, Progress, Proposal, Ready, Snapshot, Task } from "./messages";

export interface Working {
  readonly id: string;
  readonly task: Task;
  /** The newest step, in one line. */
  readonly message: string;
}

export interface Answer {
  readonly question: string;
  readonly text: string;
}

const STEPS_KEPT = 500;

/** One debug session, also when it is over. */
export class Session {
  /** What was kept of it, once it is over. */
  kept: Kept | undefined;
  ready: Ready | undefined;
  /** The newest exception stop. */
  snapshot: Snapshot | undefined;
  /** Whether the program still stands there. */
  stopped = false;
  ended = false;
  working: Working | undefined;
  proposal: Proposal | undefined;
  /** Who has written the fix to the files: the adapter, or the editor out of its buffers. */
  applied: "adapter" | "editor" | false = false;
  /** Of the files of a fix. */
  texts: { readonly id: string; readonly files: readonly FileTexts[] } | undefined;
  /** What the newest investigation has done, line by line. */
  steps: string[] = [];
  answers: Answer[] = [];
  canRestartFrame = false;
  private question = "";

  /** @param debug undefined: of another window, or of a former one */
  constructor(
    readonly id: string,
    private readonly debug: vscode.DebugSession | undefined,
  ) {
    this.ended = debug === undefined;
  }

  /** Ask the adapter, or what was kept; refusals are sentences for the user. */
  async request<T>(name: string, args?: object): Promise<T> {
    if (this.ended && this.kept !== undefined) {
      return (await this.kept.request(name, args)) as T;
    }
    return this.custom(`dapAgent/${name}`, args);
  }

  /** Ask the adapter of the live session. */
  async custom<T>(name: string, args?: object): Promise<T> {
    if (this.ended || this.debug === undefined) {
      throw new Error("The debug session has ended: start the program again.");
    }
    return (await this.debug.customRequest(name, args)) as T;
  }

  /** The newest fix, if it is in the files or could be. */
  get offer(): Proposal | undefined {
    return this.kept === undefined || this.applied !== false || this.kept.it.fix?.fits === true ? this.proposal : undefined;
  }

  /** Whether there is something to say of it although it is over. */
  get remains(): boolean {
    return this.kept !== undefined && (this.kept.it.stands || this.offer !== undefined);
  }

  /** The report as it was kept, where no more is known here. */
  get keptReport(): string | undefined {
    return this.debug === undefined ? this.kept?.it.report : undefined;
  }

  /** Whether *kept* is of this session, and of its newest exception and fix. */
  is({ it }: Kept): boolean {
    if (this.kept !== undefined && this.kept.it.session !== it.session) {
      return false;
    }
    const { snapshot } = this;
    const same = snapshot?.exception.type === it.stop.exception.type && snapshot.path === it.stop.path && snapshot.line === it.stop.line;
    return same && this.proposal?.id === it.fix?.id;
  }

  /** It is over, and this was kept of it. */
  keep(kept: Kept): void {
    const { stop, fix } = kept.it;
    this.kept = kept;
    this.snapshot ??= { ...stop, threadId: 0, model: false };
    if (fix === null) {
      return;
    }
    this.proposal ??= { ...fix, cause: "", evidence: [], verdict: null, trial: null, test: "", cost: null };
    if (!fix.applied) {
      this.applied = false;
    } else if (this.applied === false) {
      this.applied = "adapter";
    }
  }

  progressed(event: Progress): void {
    if (event.kind === "begin") {
      this.working = { id: event.id, task: event.task, message: "" };
      this.question = event.text;
      this.steps = [];
      if (event.task === "autodebug") {
        this.proposal = undefined;
        this.applied = false;
      }
      return;
    }
    const line = event.text.trim().split("\n")[0] ?? "";
    if (event.kind === "end") {
      this.working = undefined;
      if (event.status === "answered") {
        this.answers.push({ question: this.question, text: event.text });
      }
      this.steps.push(`end (${event.status ?? ""}): ${line}`);
    } else if (line !== "") {
      this.steps.push(`${event.kind}: ${line}`);
      if (this.working !== undefined && event.kind !== "text") {
        this.working = { ...this.working, message: line };
      }
    }
    this.steps.splice(0, this.steps.length - STEPS_KEPT);
  }
}

export interface Change {
  /** Whose change it is; null if it is of what was kept. */
  readonly session: Session | null;
  readonly what: "ready" | "stopped" | "resumed" | "progress" | "proposal" | "applied" | "ended" | "kept";
  readonly progress?: Progress;
}

/** All sessions, and the one that the user means. */
export class Sessions implements vscode.DebugAdapterTrackerFactory, vscode.Disposable {
  private readonly all = new Map<string, Session>();
  private readonly emitter = new vscode.EventEmitter<Change>();
  private readonly subscriptions: vscode.Disposable[];
  private newest: Session | undefined;
  /** What was kept of sessions that are over. */
  over: readonly Session[] = [];

  readonly onDidChange = this.emitter.event;

  constructor(private readonly log: vscode.LogOutputChannel) {
    this.subscriptions = [
      vscode.debug.onDidReceiveDebugSessionCustomEvent((event) => this.received(event)),
      vscode.debug.onDidTerminateDebugSession((session) => this.terminated(session)),
      vscode.debug.registerDebugAdapterTrackerFactory("*", this),
      this.emitter,
    ];
  }

  dispose(): void {
    this.subscriptions.forEach((one) => one.dispose());
  }

  /** The session of the newest exception: the active one if it has stopped at one, else the last that has. */
  get current(): Session | undefined {
    const active = vscode.debug.activeDebugSession;
    const session = active === undefined ? undefined : this.all.get(active.id);
    return session?.snapshot !== undefined ? session : (this.newest ?? session ?? this.over.find(({ remains }) => remains));
  }

  get(id: string): Session | undefined {
    return this.all.get(id) ?? this.over.find((session) => session.id === id);
  }

  /** All that go through dap-agent and have not ended. */
  get alive(): Session[] {
    return [...this.all.values()].filter((session) => !session.ended && session.ready !== undefined);
  }

  /** Those that there is something to show of: what was kept gives way to a newer exception there. */
  get offered(): Session[] {
    const { alive } = this;
    const gone = ({ kept }: Session): boolean =>
      alive.some(({ snapshot }) => snapshot?.path?.startsWith(kept?.it.root ?? "") === true);
    return [...alive, ...this.over.filter((session) => session.remains && !gone(session))];
  }

  /** What is kept by now. */
  keep(found: readonly Kept[]): void {
    const { newest } = this;
    const known = [...(newest?.ended === true ? [newest] : []), ...this.over];
    this.over = found.map((kept) => {
      const session = known.find((one) => one.is(kept)) ?? new Session(`kept ${kept.it.session} ${kept.it.fix?.id ?? ""}`, undefined);
      session.keep(kept);
      return session;
    });
    if (newest?.ended === true && found.length > 0 && !this.over.includes(newest)) {
      this.all.delete(newest.id); // what is kept is newer
      this.newest = undefined;
    }
    this.emitter.fire({ session: null, what: "kept" });
  }

  /** It is not wanted any more. */
  async dismiss(session: Session): Promise<void> {
    await session.request("forget");
    this.over = this.over.filter((one) => one !== session);
    if (this.newest === session) {
      this.newest = undefined;
    }
    this.emitter.fire({ session: null, what: "kept" });
  }

  /** A fix was written, or taken back. */
  changed(session: Session): void {
    this.emitter.fire({ session, what: "applied" });
  }

  createDebugAdapterTracker(debug: vscode.DebugSession): vscode.DebugAdapterTracker {
    const session = this.of(debug);
    return {
      onDidSendMessage: (message: Message) => {
        if (message.type === "response" && message.command === "initialize") {
          session.canRestartFrame = message.body?.["supportsRestartFrame"] === true;
        } else if (message.type === "event" && message.event === "capabilities") {
          const told = (message.body?.["capabilities"] as Record<string, unknown> | undefined)?.["supportsRestartFrame"];
          session.canRestartFrame = typeof told === "boolean" ? told : session.canRestartFrame;
        } else if (session.stopped && resumes(message)) {
          session.stopped = false;
          this.emitter.fire({ session, what: "resumed" });
        }
      },
    };
  }

  private of(debug: vscode.DebugSession): Session {
    const known = this.all.get(debug.id);
    if (known !== undefined) {
      return known;
    }
    const made = new Session(debug.id, debug);
    this.all.set(debug.id, made);
    return made;
  }

  private received(event: vscode.DebugSessionCustomEvent): void {
    if (!event.event.startsWith("dapAgent")) {
      return;
    }
    const session = this.of(event.session);
    this.log.trace(`${event.session.name}: ${event.event} ${JSON.stringify(event.body)}`);
    switch (event.event) {
      case "dapAgentReady":
        session.ready = event.body as Ready;
        this.log.info(`${event.session.name}: dap-agent ${session.ready.version}, model ${session.ready.model ?? "none"}`);
        this.emitter.fire({ session, what: "ready" });
        break;
      case "dapAgentSnapshot":
        session.snapshot = event.body as Snapshot;
        session.stopped = true;
        session.proposal = undefined;
        session.applied = false;
        session.answers = [];
        session.steps = [];
        if (this.newest?.ended === true) {
          this.all.delete(this.newest.id);
        }
        this.newest = session;
        this.emitter.fire({ session, what: "stopped" });
        break;
      case "dapAgentProgress": {
        const progress = event.body as Progress;
        session.progressed(progress);
        if (progress.kind !== "text") {
          this.log.debug(`${event.session.name}: ${progress.kind} ${progress.text}`);
        }
        this.emitter.fire({ session, what: "progress", progress });
        break;
      }
      case "dapAgentProposal":
        session.proposal = event.body as Proposal;
        session.applied = false;
        this.emitter.fire({ session, what: "proposal" });
        break;
    }
  }

  private terminated(debug: vscode.DebugSession): void {
    const session = this.all.get(debug.id);
    if (session === undefined) {
      return;
    }
    session.ended = true;
    session.stopped = false;
    session.working = undefined;
    if (session !== this.newest) {
      this.all.delete(debug.id); // the newest exception's report stays to be read
    }
    this.emitter.fire({ session, what: "ended" });
  }
}

interface Message {
  readonly type: string;
  readonly command?: string;
  readonly success?: boolean;
  readonly event?: string;
  readonly body?: Record<string, unknown>;
}

const RESUMING_EVENTS = ["continued", "process", "terminated", "exited"];
const RESUMING_REQUESTS = ["continue", "next", "stepIn", "stepOut", "restartFrame", "goto", "restart"];

function resumes(message: Message): boolean {
  return message.type === "event"
    ? RESUMING_EVENTS.includes(message.event ?? "")
    : message.success === true && RESUMING_REQUESTS.includes(message.command ?? "");
}
