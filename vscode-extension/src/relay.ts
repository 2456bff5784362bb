/**
 * A loopback port behind which a debug adapter is started for whoever connects, one at a time.
 *
 * VS Code takes a port (`debugServer`) for a debug type that is not ours, and nothing else; it comes back to the same
 * port when it restarts a session. The port is open only while a session may need it.
 */

import { type ChildProcess, spawn } from "node:child_process";
import * as net from "node:net";
import { isOwn } from "./peer";

export interface Command {
  readonly file: string;
  readonly args: readonly string[];
  readonly env: NodeJS.ProcessEnv;
  readonly cwd: string | undefined;
}

export interface RelayEvents {
  /** A line of the adapter's standard error. */
  readonly said: (line: string) => void;
  /** The adapter could not be started, or ended before it had said anything. */
  readonly failed: (why: string) => void;
}

/** Milliseconds that a port waits for its first client, and after a client for the next. */
export const FIRST_WAIT = 120_000;
export const NEXT_WAIT = 10_000;

export class Relay {
  private readonly server = net.createServer({ pauseOnConnect: true }, (socket) => void this.admit(socket));
  private child: ChildProcess | undefined;
  private client: net.Socket | undefined;
  private timer: NodeJS.Timeout | undefined;

  private constructor(
    private readonly command: Command,
    private readonly events: RelayEvents,
    private readonly closed: () => void,
  ) {}

  /** Open a port. *closed* is called once, when it is closed. */
  static async open(command: Command, events: RelayEvents, closed: () => void): Promise<Relay> {
    const relay = new Relay(command, events, closed);
    await new Promise<void>((resolve, reject) => {
      relay.server.once("error", reject);
      relay.server.listen(0, "127.0.0.1", resolve);
    });
    relay.closeAfter(FIRST_WAIT);
    return relay;
  }

  get port(): number {
    return (this.server.address() as net.AddressInfo).port;
  }

  dispose(): void {
    clearTimeout(this.timer);
    if (this.server.listening) {
      this.server.close();
      this.closed();
    }
    this.child?.stdin?.end();
  }

  private closeAfter(milliseconds: number): void {
    clearTimeout(this.timer);
    this.timer = setTimeout(() => this.dispose(), milliseconds);
    this.timer.unref();
  }

  private async admit(socket: net.Socket): Promise<void> {
    socket.on("error", () => undefined); // its "close" says enough
    if (await isOwn(socket)) {
      this.serve(socket);
    } else {
      this.events.said("a connection of another user was refused");
      socket.destroy();
    }
  }

  private serve(socket: net.Socket): void {
    if (this.client !== undefined) {
      socket.destroy();
      return;
    }
    this.client = socket;
    socket.once("close", () => {
      this.client = undefined;
      this.rest();
    });
    clearTimeout(this.timer);
    socket.setNoDelay(true);
    if (this.child === undefined) {
      this.start(socket);
    } else {
      this.child.once("close", () => this.start(socket)); // a restart comes before the last one's adapter has ended
    }
  }

  /** Close some time after the last client and its adapter have gone. */
  private rest(): void {
    if (this.server.listening && this.client === undefined && this.child === undefined) {
      this.closeAfter(NEXT_WAIT);
    }
  }

  private start(socket: net.Socket): void {
    if (socket.destroyed) {
      return this.rest();
    }
    const { file, args, env, cwd } = this.command;
    const child = spawn(file, args, { env, cwd, stdio: ["pipe", "pipe", "pipe"] });
    this.child = child;
    let spoke = false;
    let lines = "";
    child.stdout.once("data", () => (spoke = true));
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      const parts = (lines + text).split("\n");
      lines = parts.pop() ?? "";
      parts.forEach((line) => this.events.said(line));
    });
    child.on("error", (error) => {
      spoke = true; // this says more than a status
      this.events.failed(`${file} cannot be started: ${error.message}`);
    });
    child.on("close", (code) => {
      if (lines !== "") {
        this.events.said(lines);
      }
      if (!spoke && code !== null && code !== 0) {
        this.events.failed(`it ended with status ${code} before it had said anything`);
      }
      this.child = undefined;
      socket.end();
      this.rest();
    });
    // either side may go first: the other one's end is what it is told
    socket.on("close", () => child.stdin.end());
    child.stdin.on("error", () => socket.destroy());
    socket.pipe(child.stdin);
    child.stdout.pipe(socket);
  }
}
