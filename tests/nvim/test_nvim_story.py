"""The main story in a real Neovim: from an exception to a program that ends well."""

from pathlib import Path
from typing import Any

from .conftest import Neovim

ORDERS = "shop/orders.py"


def test_from_an_exception_to_a_program_that_ends_well(nvim: Neovim, root: Path, model: Any) -> None:
    notes = nvim.debug("story.lua", root, model, go_on="restart_frame")
    assert notes["snapshot"] == {"path": str(root / ORDERS), "line": 13, "type": "TypeError"}
    assert notes["cursor"] == [str(root / ORDERS), 13]
    assert notes["lens"] == [13, "Autodebug this exception | Explain this exception"]
    assert notes["is ready"] == "anthropic:test-model"
    assert notes["fix"] == {"title": "A line without a price is free", "proved": True}
    assert "Fix ready: A line without a price is free. :DapAgent diff shows it" in notes["ready"]
    assert notes["status"] == "dap-agent: fix ready: A line without a price is free"
    assert notes["status then"] == "dap-agent: fix applied: A line without a price is free"
    assert notes["tabs"] == 2
    assert (notes["diff"]["filetype"], notes["diff"]["fixed"]) == ("diff", True)
    assert '-        result += float(parse_line(line)["price"])' in notes["diff"]["lines"]
    assert any(line.startswith("proof: proved") for line in notes["diff"]["lines"])
    assert notes["back"] is True
    assert notes["unsaved"].startswith("dap-agent: shop/orders.py has changes that are not saved")
    text = (root / ORDERS).read_text()
    assert "or 0" in text
    assert (notes["buffer"], notes["modified"]) == (text, False)
    assert notes["answer"][-1] == "The gift has no price."
    assert "The running program has the new code (total)." in notes["applied"]
    assert notes["focus"] is True
    assert "fix applied: A line without a price is free" in notes["told"]
    assert notes["output"].strip() == "sum 3.5"
    assert notes["wrapped"] is True
    assert notes["events"][0] == "DapAgentReady" and notes["events"][-1] == "DapAgentEnded"
    assert set(notes["rest"]) <= {"Restarted debug adapter"}  # the real nvim-dap's
    assert model.complaints == []


def test_lens_quick_fix_report_and_undo(nvim: Neovim, root: Path, model: Any) -> None:
    old = (root / ORDERS).read_text()
    notes = nvim.debug("quick_fix.lua", root, model)
    assert notes["ready"] == [14, "Fix ready: A line without a price is free | Explain this exception"]
    text = notes["text"]
    assert text.startswith("# mine\n") and "or 0" in text
    assert notes["modified"] is False
    assert "# TypeError" in notes["report"][0]
    assert notes["tabs"] == 2
    assert notes["undone"] == "# mine\n" + old
    assert notes["output"].strip() == "sum 3.5"
    assert notes["text at the end"] == text == (root / ORDERS).read_text()
    assert (root / "tests/test_gift.py").exists()
    assert model.complaints == []


def test_a_child_in_a_terminal_has_a_session_of_its_own(nvim: Neovim, root: Path, model: Any) -> None:
    parent = root / "parent.py"
    parent.write_text("import subprocess, sys\nsubprocess.run([sys.executable, 'shop/main.py'])\n")
    notes = nvim.debug("child.lua", root, model, parent=str(parent))
    assert (notes["child"], notes["line"], notes["state"]) == (True, 13, "TypeError")
    assert notes["first"] is True
    assert notes["rest"] in ([], {})
