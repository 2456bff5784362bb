"""The extension in a real VS Code workbench: a launch.json that nobody has touched, a model on loopback.

`drive.mjs` goes through the scenarios, one after the other in one page; what it has seen is looked at here. The
screenshots are in `.cache/vscode-screenshots`.
"""

import os
from typing import Any

import pytest

pytestmark = pytest.mark.timeout(480)  # the first test waits for all scenarios


def seen(driven: dict[str, Any], name: str) -> Any:
    result = driven[name]
    assert result["ok"], result["error"]
    return result["seen"]


def test_a_workspace_that_is_not_trusted_starts_nothing(driven: dict[str, Any]) -> None:
    trust = seen(driven, "trust")
    assert "No Python program is being debugged" in trust["tool"]
    assert (trust["mcp"], trust["started"]) == ([], 0)
    assert trust["looked_for"] is False  # not even that; `consent` shows that it would have been seen


def test_a_key_goes_into_the_secret_storage(driven: dict[str, Any]) -> None:
    seen(driven, "key")


def test_from_f5_to_a_program_that_ends_well(driven: dict[str, Any]) -> None:
    story = seen(driven, "story")
    assert (story["exception"], story["status_bar"]) == ("TypeError", 1)
    assert story["lens_after"] < 5000  # milliseconds; 800 of them are VS Code's own, and other tests run beside this
    assert story["report"] == ["Cause", "Evidence", "Change", "Verdicts", "Cost"]
    assert "sum 3.5" in story["output"]
    assert story["processes"] == 1  # the frame was restarted, not the program
    assert "key: None" in story["output"]  # the program is not given the key from the secret storage
    assert driven["model"]["complaints"] == []  # and the model was given it


def test_the_fix_as_a_quick_fix_in_the_buffer(driven: dict[str, Any]) -> None:
    quick = seen(driven, "quickFix")
    assert quick["written_before_save"] is False
    assert "shop/orders.py" in quick["dirty"]
    assert quick["applied"] == [True, False, True]  # saved, undone, applied by the command: the session knows
    assert any("preview" in title for title in quick["actions"])
    assert "sum 3.5" in quick["output"]


def test_an_investigation_is_cancelled_where_it_is_shown(driven: dict[str, Any]) -> None:
    assert seen(driven, "cancel") == {"end": "failed", "program": "stopped", "working": None}


def test_a_failing_test_is_a_stop_that_tools_of_models_can_read(driven: dict[str, Any]) -> None:
    tests = seen(driven, "pytest")
    assert tests["status"]["program"] == "stopped"
    frames = tests["exception"]["frames"]
    assert tests["exception"]["exception"]["type"] == "TypeError"
    assert (frames[0]["function"], frames[0]["line"]) == ("total", 13)
    assert frames[0]["values"]["line"] == "'gift ='"
    assert "1" in tests["ran"]


def test_vs_codes_own_mcp_client_calls_our_server(driven: dict[str, Any]) -> None:
    mcp = seen(driven, "mcp")
    assert mcp["tools"] >= 15
    assert "TypeError" in mcp["exception"]
    assert "'gift ='" in mcp["value"]
    assert "42" in mcp["evaluated"]
    assert "TypeError" in mcp["afterwards"]


def test_a_fix_outlives_its_session_and_its_window(driven: dict[str, Any]) -> None:
    kept = seen(driven, "kept")
    assert kept["report"] == ["Cause", "Evidence", "Change", "Verdicts", "Cost"]
    assert any("preview" in title for title in kept["actions"])
    assert not any("restart" in title for title in kept["actions"])  # there is nothing that could be
    assert kept["debugged"] is False  # in the window that has offered it
    assert kept["left"] == [0, []]


def test_a_child_comes_through_its_parents_adapter(driven: dict[str, Any]) -> None:
    children = seen(driven, "subprocess")
    assert children["child"] != "parent"
    assert children["factories"] == []  # no business of the type's own extension: it would start debugpy's adapter
    assert "the child ended with 1" in children["output"]


def test_a_configuration_that_says_no_is_left_alone(driven: dict[str, Any]) -> None:
    assert seen(driven, "leftAlone") == {"ours": [], "factories": 1}


def test_a_program_that_waits_is_attached_to_through_dap_agent(driven: dict[str, Any]) -> None:
    assert seen(driven, "attach") == {"exception": "TypeError", "status": 1}


def test_without_dap_agent_and_without_consent_it_is_debugged_as_before(driven: dict[str, Any]) -> None:
    consent = seen(driven, "consent")
    if os.environ.get("DAP_TEST_VSCODE_INSTALL") == "1":
        assert "dapAgentSnapshot" in consent["ours"]
    else:
        assert (consent["ours"], consent["factories"]) == ([], 1)
    assert consent["looked_for"].endswith("--version")


def test_the_walkthrough_and_the_log(driven: dict[str, Any]) -> None:
    shown = seen(driven, "help")
    assert "Debug as always" in shown["steps"]
    assert shown["channel"] == "Autodebug"


def test_the_own_type(driven: dict[str, Any]) -> None:
    assert seen(driven, "ownType") == {"type": "dap-agent", "exception": "TypeError", "restart_frame": True}
