// The documented rules of the Python Debugger extension for its type, and a window for the test: facts go to
// $DAP_TEST_FACTS (JSON lines), orders come from $DAP_TEST_FACTS.order.
const fs = require("fs");
const vscode = require("vscode");

const FACTS = process.env.DAP_TEST_FACTS;
const note = (fact) => fs.appendFileSync(FACTS, JSON.stringify(fact) + "\n");

const orders = {
  tool: async ({ name, input }) => {
    const result = await vscode.lm.invokeTool(name, { input, toolInvocationToken: undefined });
    return result.content.map((part) => part.value).join("");
  },
  tools: async (prefix) => vscode.lm.tools.map((one) => one.name).filter((name) => name.startsWith(prefix)),
  command: async ({ id, args }) => (await vscode.commands.executeCommand(id, ...(args || []))) ?? null,
  cursor: async ({ file, line }) => {
    const editor = await vscode.window.showTextDocument(vscode.Uri.file(file), { viewColumn: 1 });
    const at = new vscode.Position(line - 1, 8);
    editor.selection = new vscode.Selection(at, at);
    return null;
  },
  files: async () => vscode.workspace.textDocuments.filter((one) => one.isDirty).map((one) => one.uri.fsPath),
};

exports.activate = (context) => {
  const keep = (one) => context.subscriptions.push(one);
  keep(
    vscode.debug.registerDebugConfigurationProvider("debugpy", {
      resolveDebugConfigurationWithSubstitutedVariables(folder, configuration) {
        note({ fact: "resolving", name: configuration.name, given: { ...configuration } });
        configuration.python ??= process.env.DAP_TEST_PYTHON;
        return configuration;
      },
    }),
  );
  keep(
    vscode.debug.registerDebugAdapterDescriptorFactory("debugpy", {
      createDebugAdapterDescriptor({ configuration: c }) {
        note({ fact: "factory", name: c.name, request: c.request });
        if (c.request === "attach" && c.connect) return new vscode.DebugAdapterServer(Number(c.connect.port), c.connect.host);
        return new vscode.DebugAdapterExecutable(process.env.DAP_TEST_PYTHON, c.debugAdapterPath ? [c.debugAdapterPath] : ["-m", "debugpy.adapter"]);
      },
    }),
  );
  keep(vscode.debug.onDidStartDebugSession((s) => note({ fact: "started", name: s.name, type: s.type })));
  keep(vscode.debug.onDidTerminateDebugSession((s) => note({ fact: "terminated", name: s.name })));
  keep(vscode.debug.onDidReceiveDebugSessionCustomEvent((e) => note({ fact: e.event, name: e.session.name, body: e.body })));
  keep(
    vscode.debug.registerDebugAdapterTrackerFactory("*", {
      createDebugAdapterTracker: (session) => ({
        onDidSendMessage: (m) => {
          if (m.type === "event" && m.event === "output") note({ fact: "output", name: session.name, text: m.body.output });
          if (m.type === "event" && m.event === "process") note({ fact: "process", name: session.name });
          if (m.type === "event" && m.event === "stopped") note({ fact: "stopped", name: session.name, reason: m.body.reason, at: Date.now() });
        },
        onExit: (code) => note({ fact: "adapter exit", name: session.name, code }),
        onError: (error) => note({ fact: "adapter error", name: session.name, error: String(error) }),
      }),
    }),
  );
  const order = FACTS + ".order";
  let busy = false;
  const timer = setInterval(async () => {
    if (busy || !fs.existsSync(order)) return;
    busy = true;
    const wanted = JSON.parse(fs.readFileSync(order, "utf8"));
    fs.unlinkSync(order);
    try {
      note({ fact: "did", id: wanted.id, result: await orders[wanted.kind](wanted.what) });
    } catch (error) {
      note({ fact: "did", id: wanted.id, error: String(error) });
    }
    busy = false;
  }, 40);
  keep({ dispose: () => clearInterval(timer) });
  note({ fact: "ready", version: vscode.version });
};
