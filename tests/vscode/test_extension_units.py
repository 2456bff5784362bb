"""The parts of the extension that need no editor: `npm test` in vscode-extension, and what its manifest says."""

import json
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

EXTENSION = Path(__file__).resolve().parents[2] / "vscode-extension"


def test_the_extensions_own_tests() -> None:
    npm = shutil.which("npm")
    if npm is None or not (EXTENSION / "node_modules").is_dir():
        why = "the extension's tools are not installed: run tests/vscode/install.sh (needs npm)"
        if os.environ.get("DAP_TEST_VSCODE") == "1":
            pytest.fail(why)
        pytest.skip(why)
    done = subprocess.run([npm, "test"], cwd=EXTENSION, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "# fail 0" in done.stdout


def test_the_manifest_declares_and_describes_what_the_code_has() -> None:
    manifest = json.loads((EXTENSION / "package.json").read_text(encoding="utf-8"))
    contributes = manifest["contributes"]
    code = {path.stem: path.read_text(encoding="utf-8") for path in (EXTENSION / "src").glob("*.ts")}

    properties = contributes["configuration"]["properties"]
    assert set(properties) == {f"dapAgent.{name}" for name in re.findall(r"all\.get.*?\(\"(\w+)\"", code["settings"])}
    for name, setting in properties.items():
        assert len(setting.get("description") or setting["markdownDescription"]) > 20, name
        assert len(setting.get("enumDescriptions", [])) in (0, len(setting.get("enum", []))), name

    table = code["commands"].split("const table")[1].split("return vscode")[0]
    registered = set(re.findall(r"^      (\w+): \(", table, re.MULTILINE))
    declared = {one["command"].removeprefix("autodebug.") for one in contributes["commands"]}
    assert declared == registered - {"edited"}  # that one follows a quick fix, and is nobody's to call
    assert {one["category"] for one in contributes["commands"]} == {"Autodebug"}
    for menu in contributes["menus"].values():
        assert {one["command"].removeprefix("autodebug.") for one in menu} <= declared

    for step in contributes["walkthroughs"][0]["steps"]:
        assert (EXTENSION / step["media"]["markdown"]).is_file()
        links = re.findall(r"command:autodebug\.(\w+)", step["description"])
        assert set(links) <= declared
    tools = {one["name"] for one in contributes["languageModelTools"]}
    assert tools == set(re.findall(r"\"(dap_agent_\w+)\"", code["tools"]))
