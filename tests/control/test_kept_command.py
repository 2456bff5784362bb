"""`dap-agent kept`: what outlives a session, read and applied by an editor that knows nothing of how it is kept."""

import contextlib
import json
from pathlib import Path
from typing import Any

import pytest

from dap_agent.cli.main import main
from dap_agent.control.sharing import Sharing

TITLE = "A line without a price is free"


def listed(root: Path, capsys: pytest.CaptureFixture[str]) -> Any:
    assert main(["kept", "list", "--json", "--workspace", str(root)]) == 0
    return json.loads(capsys.readouterr().out)["kept"]


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    status = main(["kept", *words])
    done = capsys.readouterr()
    return status, done.out + done.err


async def test_a_fix_outlives_its_session_and_is_applied_and_taken_back(
    world: Any, model: Any, data: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    w = world()
    orders, test = w.root / "shop/orders.py", w.root / "tests/test_gift.py"
    before = orders.read_text()
    sharing = Sharing(w.assistant, "adapter", print)
    sharing.open((w.root,), "main.py")
    async with contextlib.AsyncExitStack() as stack:
        stack.push_async_callback(sharing.close)
        w.guest.stops(data)
        w.turns(model.calls(model.fix()))
        await w.assistant.autodebug()
        await w.over()
        w.guest.ends()
        assert listed(w.root, capsys) == []  # it goes on: it is asked itself
    (one,) = listed(w.root, capsys)
    assert (one["root"], one["stands"], one["stop"]["line"]) == (str(w.root), True, 13)
    assert one["report"].startswith("# TypeError")
    fix = one["fix"]
    assert (fix["title"], fix["proved"], fix["applied"], fix["fits"]) == (TITLE, True, False, True)
    files = {Path(file["path"]).name: file for file in fix["files"]}
    assert files["orders.py"]["oldText"] == before
    assert files["orders.py"]["ranges"][0]["oldStart"] == 10
    assert (files["test_gift.py"]["new"], files["test_gift.py"]["oldText"]) == (True, None)
    assert "+" in fix["diff"]

    assert f"fix {fix['id']}: {TITLE} (proved)" in said(capsys, "list", "--workspace", str(w.root / "shop"))[1]
    assert said(capsys, "show", one["session"]) == (0, one["report"])
    assert f"written: {orders}" in said(capsys, "apply", fix["id"])[1]
    assert "or 0" in orders.read_text() and test.exists()
    assert said(capsys, "apply", fix["id"])[1] == "dap-agent: This fix is applied already.\n"
    (applied,) = listed(w.root, capsys)
    assert (applied["fix"]["applied"], applied["fix"]["fits"], applied["stands"]) == (True, False, False)
    assert f"taken back: {orders}" in said(capsys, "undo", fix["id"])[1]
    assert orders.read_text() == before and not test.exists()

    # an editor has written it, and tells so; what it tells is not believed if the files say something else
    assert said(capsys, "written", fix["id"]) == (0, "")
    assert listed(w.root, capsys) == [one]
    assert said(capsys, "undo", fix["id"])[1] == "dap-agent: This fix is not applied.\n"
    orders.write_text(files["orders.py"]["newText"])
    (written,) = listed(w.root, capsys)
    assert written["fix"]["applied"]
    assert "not the last that dap-agent has written" in said(capsys, "undo", fix["id"])[1]
    assert said(capsys, "unwritten", fix["id"]) == (0, "")
    orders.write_text(before.replace("0.0", "0"))
    (stale,) = listed(w.root, capsys)
    assert (stale["fix"]["fits"], stale["fix"]["files"], stale["stands"]) == (False, [], True)
    assert "has changed since the fix was made" in said(capsys, "apply", fix["id"])[1]
    assert said(capsys, "forget", one["session"]) == (0, "")
    assert listed(w.root, capsys) == []
    status, sentence = said(capsys, "show", one["session"])
    assert status != 0 and "Nothing is kept of" in sentence
