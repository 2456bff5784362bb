import assert from "node:assert/strict";
import { once } from "node:events";
import * as net from "node:net";
import { test } from "node:test";
import { type Command, Relay } from "../src/relay";

const adapter = (code: string): Command => ({ file: process.execPath, args: ["-e", code], env: process.env, cwd: undefined });
const ECHO = adapter("process.stdin.pipe(process.stdout); process.stderr.write('hello\\nhalf')");
const DIES = adapter("process.exit(3)");

interface Heard {
  readonly said: string[];
  readonly failed: string[];
  /** Comes with the first failure. */
  readonly failure: Promise<void>;
}

async function opened(command: Command): Promise<{ relay: Relay; heard: Heard; closed: Promise<void> }> {
  let fail = (): void => undefined;
  const failure = new Promise<void>((resolve) => (fail = resolve));
  const heard: Heard = { said: [], failed: [], failure };
  let tell = (): void => undefined;
  const closed = new Promise<void>((resolve) => (tell = resolve));
  const failed = (why: string): void => {
    heard.failed.push(why);
    fail();
  };
  const events = { said: (line: string) => heard.said.push(line), failed };
  return { relay: await Relay.open(command, events, tell), heard, closed };
}

async function exchange(port: number, text: string): Promise<string> {
  const socket = net.connect(port, "127.0.0.1");
  socket.write(text);
  const [answer] = (await once(socket, "data")) as [Buffer];
  socket.end();
  await once(socket, "close");
  return answer.toString();
}

test("a client meets an adapter of its own, again and again", async () => {
  const { relay, heard, closed } = await opened(ECHO);
  assert.equal(await exchange(relay.port, "one"), "one");
  assert.equal(await exchange(relay.port, "two"), "two");
  relay.dispose();
  await closed;
  assert.ok(heard.said.includes("hello"));
  assert.deepEqual(heard.failed, []);
});

test("a second client at the same time is turned away", async () => {
  const { relay } = await opened(ECHO);
  const first = net.connect(relay.port, "127.0.0.1");
  first.write("x");
  await once(first, "data");
  const second = net.connect(relay.port, "127.0.0.1");
  second.on("error", () => undefined); // a reset is as good as an end
  await once(second, "close");
  first.destroy();
  relay.dispose();
});

test("an adapter that dies at once is told of", async () => {
  const { relay, heard } = await opened(DIES);
  const socket = net.connect(relay.port, "127.0.0.1");
  socket.resume();
  socket.on("error", () => undefined);
  await heard.failure;
  assert.deepEqual(heard.failed, ["it ended with status 3 before it had said anything"]);
  relay.dispose();
});

test("an adapter that cannot be started is told of", async () => {
  const { relay, heard } = await opened({ ...ECHO, file: "/nowhere/python" });
  const socket = net.connect(relay.port, "127.0.0.1");
  socket.resume();
  socket.on("error", () => undefined);
  await heard.failure;
  await once(socket, "close");
  assert.equal(heard.failed.length, 1);
  assert.match(heard.failed[0] ?? "", /^\/nowhere\/python cannot be started: /);
  relay.dispose();
});
