// Drives a real workbench in a headless browser through the scenarios below, one after the other in one page.
// node drive.mjs OPTIONS.json; prints one JSON line for each scenario: name, ok, error, seconds, seen.
import { spawn, spawnSync } from "node:child_process";
import fs from "node:fs";
import path from "node:path";
import { pathToFileURL } from "node:url";

const options = JSON.parse(fs.readFileSync(process.argv[2], "utf8"));
const { url, facts: factsFile, shots, workbench, workspace, key, wanted } = options;
const { chromium } = await import(pathToFileURL(path.join(workbench, "node_modules/playwright-core/index.mjs")));

const facts = () => (fs.existsSync(factsFile) ? fs.readFileSync(factsFile, "utf8").split("\n").filter(Boolean).map((line) => JSON.parse(line)) : []);
const pause = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
let mark = 0; // facts before it belong to earlier scenarios
const recent = () => facts().slice(mark);
const fact = async (wanted, what, limit = 30_000) => {
  for (const end = Date.now() + limit; Date.now() < end; await pause(40)) {
    const found = recent().find(wanted);
    if (found) return found;
  }
  throw Error(`waited for ${what}; there was ${JSON.stringify(recent().map((one) => one.fact))}`);
};
const ended = (name, limit) => fact((one) => one.fact === "terminated" && one.name === name, `the end of ${name}`, limit);
const output = () => recent().filter((one) => one.fact === "output").map((one) => one.text).join("");
let orders = 0;
const order = async (kind, what = {}) => {
  const id = ++orders;
  fs.writeFileSync(`${factsFile}.part`, JSON.stringify({ id, kind, what }));
  fs.renameSync(`${factsFile}.part`, `${factsFile}.order`);
  const done = await fact((one) => one.fact === "did" && one.id === id, `order ${kind} ${JSON.stringify(what)}`);
  if (done.error) throw Error(done.error);
  return done.result;
};
const command = (id, ...args) => order("command", { id, args });

const browser = await chromium.launch({
  executablePath: options.chromium,
  args: ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"],
});
const page = await (await browser.newContext({ viewport: { width: 1180, height: 720 } })).newPage();
const see = (selector, limit = 20_000) => page.waitForSelector(selector, { timeout: limit });
const shot = (name) => page.screenshot({ path: path.join(shots, `${name}.png`) });
const lens = (title) => `.codelens-decoration a:visible:has-text("${title}")`;
const palette = async (title) => {
  await page.keyboard.press("F1");
  await see(".quick-input-widget input");
  await page.keyboard.type(title);
  await see(`.quick-input-list .monaco-list-row.focused:has-text("${title}")`);
  await page.keyboard.press("Enter");
};
const start = async (name) => {
  mark = facts().length;
  await page.keyboard.press("Control+P");
  await see(".quick-input-widget input");
  await page.keyboard.type(`debug ${name}`);
  await see(`.quick-input-list .monaco-list-row.focused:has-text("${name}")`);
  await page.keyboard.press("Enter");
};
let { trusting } = options;
const debug = async (name) => {
  await start(name);
  if (!trusting) {
    await page.click('.monaco-dialog-box :text("Trust Folder & Continue")');
    trusting = true;
  }
};
const tidy = async () => {
  await command("workbench.action.debug.stop").catch(() => {});
  await command("workbench.action.files.revert").catch(() => {});
  await command("workbench.action.closeAllEditors");
  await command("notifications.clearAll");
  for (const [name, text] of Object.entries(options.files)) {
    const file = path.join(workspace, name);
    if (text === null) fs.rmSync(file, { force: true });
    else if (!fs.existsSync(file) || fs.readFileSync(file, "utf8") !== text) fs.writeFileSync(file, text);
  }
};
const orders_py = path.join(workspace, "shop/orders.py");
const test_py = path.join(workspace, "tests/test_gift.py");
const fixed = () => fs.readFileSync(orders_py, "utf8").includes("or 0)");
const until = async (condition, what, limit = 15_000) => {
  for (const end = Date.now() + limit; !condition(); await pause(50)) if (Date.now() > end) throw Error(`waited for ${what}`);
};
const atException = async (name = "shop") => {
  await debug(name);
  await see(".exception-widget", 40_000);
  return (await fact((one) => one.fact === "dapAgentSnapshot", "a snapshot")).body;
};
// a file of the preview is there once it has been scrolled to
const inPreview = async (text) => {
  for (const end = Date.now() + 20_000; ; ) {
    const found = await see(`.multiDiffEditor :text("${text}")`, 2000).catch(() => null);
    if (found) return;
    if (Date.now() > end) throw Error(`the preview does not show ${text}`);
    await page.hover(".multiDiffEditor");
    await page.mouse.wheel(0, 150);
  }
};
// the menu of quick fixes: a file that is read again meanwhile closes it
const bulb = async (title) => {
  for (const end = Date.now() + 20_000; ; ) {
    await page.keyboard.press("Control+.");
    const found = await see(`.action-widget :text("${title}")`, 2000).catch(() => null);
    if (found) return;
    if (Date.now() > end) throw Error(`no quick fix ${title}`);
  }
};
// a new window on the same folder: extensions begin anew
const reload = async () => {
  mark = facts().length;
  await page.reload();
  await see(".monaco-workbench .part.statusbar", 60_000);
  await fact((one) => one.fact === "ready", "the extensions", 60_000);
};
const inFrames = async (text, limit = 15_000) => {
  for (const end = Date.now() + limit; Date.now() < end; await pause(100)) {
    for (const frame of page.frames()) {
      const body = await frame.locator("body").innerText().catch(() => "");
      if (body.includes(text)) return body;
    }
  }
  throw Error(`no view shows ${text}`);
};

const scenarios = {
  // the key goes into the secret storage by the command's own dialogues
  async key() {
    await palette("Autodebug: Set a Model's Key");
    await see('.quick-input-list .monaco-list-row:has-text("Anthropic")');
    await page.keyboard.press("Enter");
    await see('.quick-input-widget input[type="password"]');
    await page.keyboard.type(key);
    await page.keyboard.press("Enter");
    await see('.notification-toast:has-text("The key for Anthropic")');
  },

  // in a workspace that is not trusted nothing is started, whoever asks for it
  async trust() {
    const seen = {};
    await order("cursor", { file: orders_py, line: 13 }); // the extension is there: a Python file is open
    await palette("Autodebug: Install dap-agent");
    await see('.notification-toast:has-text("starts nothing in a workspace that is not trusted")');
    const refusal = (what) => what.then(() => null, (error) => String(error));
    seen.tool = await refusal(order("tool", { name: "dap_agent_exception", input: {} }));
    seen.mcp_start = await refusal(command("workbench.mcp.startServer", "*", { waitForLiveTools: true }));
    seen.mcp = await order("tools", "mcp_");
    await start("shop");
    await see('.monaco-dialog-box:has-text("Do you trust")');
    await shot("9-trust");
    await page.keyboard.press("Escape");
    await page.waitForSelector(".monaco-dialog-box", { state: "detached" });
    seen.started = recent().filter((one) => ["started", "factory"].includes(one.fact)).length;
    seen.looked_for = fs.existsSync(options.starts);
    return seen; // the next who debugs trusts it
  },

  async story() {
    const seen = {};
    const snapshot = await atException();
    const stop = recent().find((one) => one.fact === "stopped").at;
    await see(lens("Autodebug this exception"));
    seen.lens_after = Date.now() - stop;
    seen.exception = snapshot.exception.type;
    seen.status_bar = await page.locator('.statusbar-item:has-text("Autodebug: TypeError")').count();
    await shot("1-exception");
    await page.click(lens("Autodebug this exception"));
    await see(lens("Fix ready: A line without a price is free"), 40_000);
    await shot("2-fix-ready");
    await page.click(lens("Fix ready"));
    await inPreview("line in lines");
    await inPreview("test_a_gift_is_free");
    await pause(500); // colours come later than text
    await shot("3-preview");
    await palette("Autodebug: Show the Report");
    const text = await inFrames("parse_line gives None");
    seen.report = ["Cause", "Evidence", "Change", "Verdicts", "Cost"].filter((one) => text.includes(one));
    await pause(700); // the text is there before it is painted
    await shot("4-report");
    await command("workbench.action.closeAllEditors");
    await order("cursor", { file: orders_py, line: 13 });
    await see(lens("Apply and restart frame"));
    await page.click(lens("Apply and restart frame"));
    await until(fixed, "the fix in the file");
    await ended("shop");
    seen.output = output();
    seen.processes = recent().filter((one) => one.fact === "process").length;
    return seen;
  },

  async quickFix() {
    const seen = {};
    await atException();
    await see(lens("Autodebug this exception"));
    await page.click('.statusbar-item:has-text("Autodebug: TypeError")');
    await see(lens("Fix ready"), 40_000);
    await order("cursor", { file: orders_py, line: 13 });
    await bulb("Autodebug: A line without a price is free (proved)");
    await pause(300); // the widget takes keys a moment after it is shown
    seen.actions = await page.locator(".action-widget .monaco-list-row").allInnerTexts();
    await shot("5-quick-fix");
    await page.keyboard.press("Enter");
    await see('.view-line:has-text("or 0")');
    await until(() => fs.existsSync(test_py), "the regression test"); // the last part of the edit
    seen.written_before_save = fixed();
    seen.dirty = (await order("files")).map((file) => path.relative(workspace, file));
    await command("workbench.action.files.saveFiles");
    await until(fixed, "the saved fix");
    await see(lens("Fixed: A line"));
    const proposal = async () => JSON.parse(await order("tool", { name: "dap_agent_status", input: {} })).proposal;
    seen.applied = [(await proposal()).applied];
    await palette("Autodebug: Undo the Fix");
    await until(() => !fixed() && !fs.existsSync(test_py), "the fix to be taken back");
    await see(lens("Fix ready"));
    seen.applied.push((await proposal()).applied);
    await palette("Autodebug: Apply the Fix");
    await until(fixed, "the fix again");
    await see(lens("Fixed: A line"));
    seen.applied.push((await proposal()).applied);
    await command("workbench.action.debug.restart");
    await ended("shop");
    seen.output = output();
    return seen;
  },

  // what outlives the session of quickFix: in the window that had it, and in one that has had none
  async kept() {
    const seen = {};
    mark = facts().length;
    await order("cursor", { file: orders_py, line: 13 }); // without the fix again, which quickFix has applied
    await see(lens("Dismiss"));
    await see(lens("Fix ready: A line without a price is free"));
    await see('.statusbar-item:has-text("Fix ready")');
    await command("workbench.action.closeAllEditors");
    await reload();
    await order("cursor", { file: orders_py, line: 13 });
    await see(lens("Fix ready: A line without a price is free"));
    await shot("8-kept");
    await page.click(lens("Fix ready"));
    await inPreview("test_a_gift_is_free");
    await palette("Autodebug: Show the Report");
    const text = await inFrames("parse_line gives None");
    seen.report = ["Cause", "Evidence", "Change", "Verdicts", "Cost"].filter((one) => text.includes(one));
    await command("workbench.action.closeAllEditors");
    await order("cursor", { file: orders_py, line: 13 });
    await see(lens("Apply"));
    await page.click(lens("Apply"));
    await until(() => fixed() && fs.existsSync(test_py), "the fix in the files");
    await see(lens("Fixed: A line"));
    await page.click(lens("Undo"));
    await until(() => !fixed() && !fs.existsSync(test_py), "the fix to be taken back");
    await see(lens("Fix ready"));
    await see('.view-line:has-text("result +=")');
    await order("cursor", { file: orders_py, line: 13 });
    await bulb("Autodebug: A line without a price is free (proved)");
    await pause(300); // the widget takes keys a moment after it is shown
    seen.actions = await page.locator(".action-widget .monaco-list-row").allInnerTexts();
    await page.keyboard.press("Enter");
    await see('.view-line:has-text("or 0")');
    await until(() => fs.existsSync(test_py), "the regression test");
    await command("workbench.action.files.saveFiles");
    await until(fixed, "the saved fix");
    await see(lens("Fixed: A line"));
    await palette("Autodebug: Undo the Fix"); // the editor has written it, so it takes it back
    await until(() => !fixed() && !fs.existsSync(test_py), "the fix to be taken back by the editor");
    await see(lens("Fix ready"));
    await page.click(lens("Dismiss"));
    await page.waitForSelector(lens("Dismiss"), { state: "detached" });
    seen.debugged = recent().some((one) => one.fact === "started");
    const { status, stdout } = spawnSync(options.python, ["-m", "dap_agent", "kept", "list", "--json", "--workspace", workspace]);
    seen.left = [status, JSON.parse(stdout).kept];
    return seen;
  },

  // language model tools meet a failing test, at the raise, with all frames alive
  async pytest() {
    const seen = {};
    await atException("tests");
    await see(lens("Autodebug this exception"));
    seen.status = JSON.parse(await order("tool", { name: "dap_agent_status", input: {} }));
    seen.exception = JSON.parse(await order("tool", { name: "dap_agent_exception", input: {} }));
    const ran = order("tool", { name: "dap_agent_run_code", input: { code: "len(lines)" } });
    await see('.monaco-dialog-box:has-text("len(lines)")'); // what runs code is shown to the user first
    await page.click('.monaco-dialog-box :text("Yes")');
    seen.ran = await ran;
    await command("workbench.action.debug.stop");
    await ended("tests");
    return seen;
  },

  // an agent's way: VS Code's own MCP client starts our server, and calls it at an exception
  async mcp() {
    await atException();
    await command("workbench.mcp.startServer", "*", { waitForLiveTools: true });
    const tools = await order("tools", "mcp_");
    const call = (name, input = {}) => order("tool", { name: tools.find((one) => one.endsWith(`_${name}`)), input });
    const seen = { tools: tools.length, exception: await call("exception"), value: await call("variable", { frame: 0, path: "line" }) };
    const evaluated = call("evaluate", { frame: 0, code: "6 * 7" }); // it runs code: VS Code asks its user
    await see('.monaco-dialog-box:has-text("copy of the paused program")');
    await page.click('.monaco-dialog-box :text("Yes")');
    seen.evaluated = await evaluated;
    await command("workbench.action.debug.continue");
    await ended("shop");
    seen.afterwards = await call("exception");
    return seen;
  },

  async subprocess() {
    await debug("parent");
    await see(".exception-widget", 40_000);
    const { name } = await fact((one) => one.fact === "dapAgentSnapshot", "a snapshot of the child");
    await see(lens("Autodebug this exception"));
    await command("workbench.action.debug.continue");
    await ended("parent");
    const factories = recent().filter((one) => one.fact === "factory").map((one) => one.request);
    return { child: name, factories, output: output() };
  },

  async leftAlone() {
    await debug("not ours");
    await see(".exception-widget", 40_000);
    await command("workbench.action.debug.continue");
    await ended("not ours");
    const names = recent().map((one) => one.fact);
    return { ours: names.filter((name) => name.startsWith("dapAgent")), factories: names.filter((name) => name === "factory").length };
  },

  // a program that waits: the relay's other way
  async attach() {
    const { python, port } = options;
    const args = ["-m", "debugpy", "--listen", `127.0.0.1:${port}`, "--wait-for-client", "shop/main.py"];
    const program = spawn(python, args, { cwd: workspace, stdio: "ignore", env: { ...process.env, PYTHONPATH: workspace } });
    const over = new Promise((resolve) => program.on("exit", resolve));
    const snapshot = await atException("attach");
    await command("workbench.action.debug.continue");
    await ended("attach");
    return { exception: snapshot.exception.type, status: await over };
  },

  // nothing is installed without consent, and who does not want it debugs as before
  async consent() {
    await debug("bare");
    await see('.monaco-dialog-box:has-text("dap-agent is not installed")');
    await shot("6-consent");
    if (options.install) {
      await page.click('.monaco-dialog-box :text("Install")');
      await fact((one) => one.fact === "dapAgentReady", "dap-agent in its private environment", 200_000);
    } else {
      await page.keyboard.press("Escape");
    }
    await see(".exception-widget", 40_000);
    await command("workbench.action.debug.continue");
    await ended("bare");
    const names = recent().map((one) => one.fact);
    const looked_for = fs.readFileSync(options.starts, "utf8").trim();
    return { ours: names.filter((name) => name.startsWith("dapAgent")), factories: names.filter((name) => name === "factory").length, looked_for };
  },

  // what shows a newcomer the way, and where to look if something is wrong
  async help() {
    await command("workbench.action.openWalkthrough", "dap-agent.dap-agent#start", false);
    await see('.gettingStartedContainer :text("Debug Python with dap-agent")');
    const steps = await page.locator(".gettingStartedContainer .step-title:visible").allInnerTexts();
    await command("autodebug.showLog"); // the walkthrough takes the focus from a palette
    const select = '.part.panel .monaco-select-box:visible';
    await see(select);
    const channel = await page.$eval(select, (one) => one.options[one.selectedIndex].text); // its file is not written here: no logger
    await command("workbench.action.closePanel");
    return { steps, channel };
  },

  // a model that never answers: the lens ends the investigation, and the program is still there; what remains is said
  async cancel() {
    await atException();
    await see(lens("Autodebug this exception"));
    await page.click(lens("Autodebug this exception"));
    await see(lens("Investigating"));
    const progress = (kind) => (one) => one.fact === "dapAgentProgress" && one.body.kind === kind;
    await fact(progress("begin"), "the begin");
    await see('.notification-toast:has-text("dap-agent looks for a fix") :text("Cancel")');
    await page.click(lens("Investigating"));
    const end = await fact(progress("end"), "the end");
    await see(lens("Autodebug this exception"));
    const status = JSON.parse(await order("tool", { name: "dap_agent_status", input: {} }));
    await command("workbench.action.debug.stop");
    await ended("shop");
    await see(lens("TypeError, when the program has last run"));
    return { end: end.body.status, program: status.program, working: status.working };
  },

  // for tests/perf: when the page shows a stop and its lens, beside when the program has raised and the editor was told
  async measure() {
    const { rounds, stamps } = options.measure;
    const view = async () => {
      await command("workbench.view.debug");
      await command("workbench.debug.action.focusBreakpointsView");
    };
    await debug("proxied"); // the editor knows the filters from now on
    await ended("proxied");
    await view();
    await page.click('.debug-breakpoints .monaco-list-row:has-text("Raised Exceptions") .monaco-checkbox');
    const watch = () =>
      page.evaluate((lensSelector) => {
        const shown = (window.shown = {});
        const gone = {}; // the former stop's
        const note = (part, there) => {
          if (!there) gone[part] = true;
          else if (gone[part]) shown[part] ??= performance.timeOrigin + performance.now();
        };
        const look = () => {
          note("stop", document.querySelector(".debug-top-stack-frame-line") !== null);
          note("lens", [...document.querySelectorAll(lensSelector)].some((one) => one.textContent.includes("Autodebug this")));
        };
        window.watching?.disconnect();
        window.watching = new MutationObserver(look);
        window.watching.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
      }, ".codelens-decoration a");
    const took = [];
    for (let round = 0; round < rounds; round += 1) {
      for (const name of ["plain", "proxied"]) {
        fs.rmSync(stamps, { force: true });
        await watch();
        await debug(name);
        for (let number = 0; number < 4; number += 1) {
          const stops = () => recent().filter((one) => one.fact === "stopped");
          const wanted = name === "proxied" ? ["stop", "lens"] : ["stop"];
          await until(() => stops().length > number, "a stop", 40_000);
          await page.waitForFunction((parts) => parts.every((part) => window.shown[part]), wanted, { timeout: 20_000 });
          const shown = await page.evaluate(() => window.shown);
          const raise = Number(fs.readFileSync(stamps, "utf8").trim().split("\n").at(-1)) * 1000;
          took.push({ name, number, told: stops().at(-1).at - raise, stop: shown.stop - raise, lens: shown.lens - stops().at(-1).at });
          await watch();
          await command("workbench.action.debug.continue");
        }
        await ended(name);
      }
    }
    return took;
  },

  // the type of our own, with the interpreter that the Python extension has chosen
  async ownType() {
    fs.writeFileSync(options.interpreter, options.python);
    const snapshot = await atException("own type");
    await see(lens("Autodebug this exception"));
    await command("workbench.view.debug");
    await page.click('.debug-call-stack .monaco-list-row:has-text("total")', { button: "right" });
    const item = await see('.monaco-menu .action-item:has-text("Restart Frame")');
    const restart_frame = !/\bdisabled\b/.test((await item.getAttribute("class")) + (await item.innerHTML()).split(">")[0]);
    await shot("7-call-stack");
    await page.keyboard.press("Escape");
    await command("workbench.action.debug.continue");
    await ended("own type");
    fs.writeFileSync(options.interpreter, "");
    const { type } = recent().find((one) => one.fact === "started");
    return { type, exception: snapshot.exception.type, restart_frame };
  },
};

await page.goto(url);
await see(".monaco-workbench .part.statusbar", 60_000);
await fact((one) => one.fact === "ready", "the extensions", 60_000);
for (const name of wanted ?? Object.keys(scenarios).filter((one) => one !== "measure")) {
  const begin = Date.now();
  const result = { name, ok: true };
  mark = facts().length;
  try {
    result.seen = (await scenarios[name]()) ?? {};
  } catch (error) {
    Object.assign(result, { ok: false, error: String(error).slice(0, 2000) });
    await shot(`failed-${name}`).catch(() => {});
  }
  result.seconds = (Date.now() - begin) / 1000;
  console.log(JSON.stringify(result));
  await tidy().catch((error) => console.error(`after ${name}: ${error}`));
}
await browser.close();
