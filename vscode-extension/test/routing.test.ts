import assert from "node:assert/strict";
import { test } from "node:test";
import { type Circumstances, type Configuration, interpreterOf, route, runsTests } from "../src/routing";

const NOW: Circumstances = { enabled: true, trusted: true, isOurs: (port) => port === 7000 };
const kind = (configuration: Configuration, now: Partial<Circumstances> = {}): string =>
  route({ request: "launch", ...configuration }, { ...NOW, ...now }).kind;

test("debugpy and python go through dap-agent, other types do not", () => {
  assert.equal(kind({ type: "debugpy" }), "adapter");
  assert.equal(kind({ type: "python" }), "adapter");
  assert.equal(kind({ type: "node" }), "untouched");
});

test("what says no is left alone", () => {
  assert.equal(kind({ type: "debugpy", dapAgent: false }), "untouched");
  assert.equal(kind({ type: "debugpy" }, { enabled: false }), "untouched");
  assert.equal(kind({ type: "debugpy", noDebug: true }), "untouched");
  assert.equal(kind({ type: "debugpy", debugServer: 4711 }), "untouched");
  assert.equal(kind({ type: "debugpy", debugAdapterPath: "mine.py" }), "untouched");
});

test("a workspace that is not trusted starts nothing", () => {
  assert.equal(kind({ type: "debugpy" }, { trusted: false }), "untouched");
  assert.equal(kind({ type: "dap-agent" }, { trusted: false }), "untouched");
});

test("a restarted session, which has our port already, gets a new one", () => {
  assert.equal(kind({ type: "debugpy", debugServer: 7000 }), "adapter");
});

test("children stay with their parent's adapter", () => {
  assert.equal(kind({ type: "debugpy", request: "attach", subProcessId: 1, debugServer: 4711 }), "child");
  assert.equal(kind({ type: "dap-agent", request: "attach", subProcessId: 1 }), "child");
});

test("an attach to a waiting program tells where it waits", () => {
  const at = (more: Configuration): unknown => {
    const found = route({ type: "debugpy", request: "attach", ...more }, NOW);
    return found.kind === "adapter" ? found.connect : found;
  };
  assert.deepEqual(at({ connect: { host: "box", port: "5678" } }), { host: "box", port: 5678 });
  assert.deepEqual(at({ port: 5678 }), { host: "127.0.0.1", port: 5678 });
  assert.equal(at({ processId: 12 }), null);
  assert.equal(at({ listen: { port: 5678 } }), null);
});

test("test runs and interpreters are recognised", () => {
  assert.ok(runsTests({ purpose: ["debug-test"] }));
  assert.ok(runsTests({ module: "pytest" }));
  assert.ok(!runsTests({ program: "x.py" }));
  assert.equal(interpreterOf({ python: ["/a/python", "-X", "dev"] }), "/a/python");
  assert.equal(interpreterOf({ pythonPath: "/b/python" }), "/b/python");
  assert.equal(interpreterOf({ python: "" }), null);
});
