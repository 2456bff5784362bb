"""The second line against leaked secrets, on this side."""

import copy
from typing import Any

import pytest

from dap_agent.session import redaction
from dap_agent.session.redaction import mask, mask_code, mask_json, mask_known, mask_lines, mask_snapshot, mask_text

TOKEN = "ghp_" + "a1B2" * 9


@pytest.fixture
def word(monkeypatch: pytest.MonkeyPatch) -> Any:
    """A secret that only the environment tells."""
    monkeypatch.setenv("SHOP_PASSWORD", "correct horse battery")
    redaction.forget_environment()
    yield "correct horse battery"
    redaction.forget_environment()


def test_the_rules_are_those_of_the_debuggee() -> None:
    assert mask_text(f"use {TOKEN} now") == f"use {mask()} now"
    assert mask_text("password=hunter22 user=me") == f"password={mask()} user=me"
    assert mask_text("max_tokens=100") == "max_tokens=100"


def test_values_of_secret_variables(word: str) -> None:
    for masked in (mask_text, mask_code, mask_known):
        assert masked(f"it is {word}!") == f"it is {mask()}!"


def test_expressions_in_code_stay_and_texts_do_not() -> None:
    assert mask_code("password = ask_user()") == "password = ask_user()"
    assert mask_code("password = 'hunter22'") == f"password = '{mask()}'"


def test_what_a_model_wrote_stays_but_for_known_secrets(word: str) -> None:
    assert mask_known(f"Client(password='x1y2z3', word={word!r})") == f"Client(password='x1y2z3', word='{mask()}')"


def test_masking_twice_changes_nothing(word: str) -> None:
    for text in (f"token: {TOKEN}", "password=hunter22", f"'{word}'", "Authorization: Bearer abc123def456"):
        assert mask_text(mask_text(text)) == mask_text(text)
        assert mask_code(mask_code(text)) == mask_code(text)


def test_lines_keep_their_number() -> None:
    lines = ["-----BEGIN PRIVATE KEY-----", "MIIabc", "-----END PRIVATE KEY-----", "x = 1"]
    masked = mask_lines(lines, code=True)
    assert len(masked) == 4
    assert "MIIabc" not in "\n".join(masked)
    assert masked[3] == "x = 1"


def test_json_is_masked_everywhere() -> None:
    value = {"a": [TOKEN, {"b": (TOKEN, 1, None, True)}], TOKEN: 2.5}
    assert TOKEN not in str(mask_json(value))
    assert mask_json({"n": [1, None, True, 2.5]}) == {"n": [1, None, True, 2.5]}


def test_a_snapshot_by_name_by_text_and_by_code(data: dict[str, Any], kit: Any) -> None:
    frame = data["frames"][0]
    frame["locals"] += [
        kit.named("password", "str", "'hunter22'", length=8),
        kit.named("token", "str", "''"),
        kit.named("token", "Token", "<Token PLUS>"),
        kit.named("secret", "NoneType", "None"),
        kit.named("note", "str", "'password=hunter22'"),
    ]
    frame["source"]["lines"] = ["def total(password):", "    password = ask()", f"    key = '{TOKEN}'"]
    before = copy.deepcopy(data)
    masked = mask_snapshot(data)["frames"][0]
    assert data == before
    assert [pair["value"]["text"] for pair in masked["locals"][-5:]] == [
        mask(),
        "''",
        "<Token PLUS>",
        "None",
        f"'password={mask()}'",
    ]
    assert masked["source"]["lines"] == ["def total(password):", "    password = ask()", f"    key = '{mask()}'"]


def test_a_snapshot_without_secrets_stays_as_it_is(data: dict[str, Any]) -> None:
    assert mask_snapshot(data) == data
