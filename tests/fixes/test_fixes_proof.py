"""Proof: red for the right reason, green, existing tests; with real processes."""

import asyncio
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dap_agent.fixes.edits import plan
from dap_agent.fixes.proof import Failure, Verdict, prove, run_test
from dap_agent.fixes.proposal import Evidence, Proposal, RegressionTest, ReplaceSymbol, StrReplace
from dap_agent.fixes.workspace import Workspace

Make = Callable[[dict[str, str]], Workspace]

SHOP = """
    PRICES = {"apple": 3}

    def price(name):
        return PRICES[name]

    class Cart:
        def __init__(self, names):
            self.names = names

        def total(self):
            return sum(price(name) for name in self.names)
"""
FIXED = "def price(name):\n    return PRICES.get(name, 0)\n"


def proposal(test: str, *edits: Any, file: str = "tests/test_missing_price.py") -> Proposal:
    return Proposal("t", "c", (Evidence("e"),), edits, RegressionTest(file, textwrap.dedent(test)))


def proved(workspace: Workspace, proposed: Proposal, failure: Failure | None = None, **options: Any) -> Verdict:
    changes = plan(workspace, proposed.edits)
    if failure is None:
        failure = Failure("KeyError", "'pear'", "price", str(workspace.root / "shop.py"))
    options.setdefault("python", Path(sys.executable))
    return asyncio.run(prove(workspace, proposed, changes, failure=failure, **options))


FIX = ReplaceSymbol("shop.py", "price", FIXED)
GOOD_TEST = """
    from shop import Cart

    def test_unknown_name_costs_nothing():
        assert Cart(["apple", "pear"]).total() == 3
"""


def test_proved(project: Make, temp: Path, any_python: Path) -> None:
    workspace = project(
        {"shop.py": SHOP, "tests/test_shop.py": "import shop\ndef test_a(): assert shop.price('apple') == 3\n"}
    )
    said: list[str] = []
    verdict = proved(workspace, proposal(GOOD_TEST, FIX), python=any_python, on_progress=said.append)
    assert verdict.kind == "proved", verdict
    assert verdict.runner == "pytest"
    assert verdict.red is not None and verdict.red.exception_type == "KeyError"
    assert verdict.red.exception_function == "price"
    assert verdict.green is not None and verdict.green.outcome == "passed"
    assert verdict.others is not None and [t.id for t in verdict.others.tests] == ["tests/test_shop.py::test_a"]
    assert len(said) >= 4
    assert list(temp.iterdir()) == []
    assert sorted(p.name for p in workspace.root.rglob("*")) == ["shop.py", "test_shop.py", "tests"]
    assert str(temp) not in verdict.red.output
