"""A proposal: root cause, evidence, edits and a regression test, as JSON and as objects."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any

from dap_agent.fixes.failures import ProposalError

_PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class ReplaceSymbol:
    """A definition replaced as a whole.

    Args:
        file: path relative to the workspace's root.
        symbol: qualified name, such as `Cart.total` or `outer.<locals>.inner`.
        source: exactly one def or class of the same name; decorators left out are kept.
        first_line: tells definitions of the same name apart; a line of the file as it is on disk.
    """

    file: str
    symbol: str
    source: str
    first_line: int | None = None


@dataclass(frozen=True)
class StrReplace:
    """One exact and unique piece of text replaced by another."""

    file: str
    old: str
    new: str


@dataclass(frozen=True)
class InsertImport:
    """An import statement added where imports stand."""

    file: str
    statement: str


@dataclass(frozen=True)
class AddSymbol:
    """A new definition behind another one, inside a class, or at the module's end."""

    file: str
    source: str
    after: str | None = None
    inside: str | None = None


@dataclass(frozen=True)
class WriteFile:
    """A new file."""

    file: str
    content: str


Edit = ReplaceSymbol | StrReplace | InsertImport | AddSymbol | WriteFile
KINDS: dict[str, type[Edit]] = {
    "replace_symbol": ReplaceSymbol,
    "str_replace": StrReplace,
    "insert_import": InsertImport,
    "add_symbol": AddSymbol,
    "write_file": WriteFile,
}


def kind_of(edit: Edit) -> str:
    """The edit's `kind` in JSON."""
    return next(kind for kind, type_ in KINDS.items() if type(edit) is type_)


@dataclass(frozen=True)
class Evidence:
    """One observation in the stopped program.

    Args:
        text: what it shows, in one sentence.
        frame: number of the frame, 0 = innermost.
        expression, value: what was looked at, and what it was.
    """

    text: str
    frame: int | None = None
    expression: str | None = None
    value: str | None = None


@dataclass(frozen=True)
class RegressionTest:
    """A new test file: its path relative to the workspace's root and its whole source."""

    file: str
    source: str


@dataclass(frozen=True)
class Proposal:
    """What a model proposes to do about one failure."""

    title: str
    cause: str
    evidence: tuple[Evidence, ...]
    edits: tuple[Edit, ...]
    test: RegressionTest

    def to_json(self) -> dict[str, Any]:
        """The JSON that `parse` reads."""
        return {
            "title": self.title,
            "cause": self.cause,
            "evidence": [_without_none(asdict(one)) for one in self.evidence],
            "edits": [{"kind": kind_of(edit), **_without_none(asdict(edit))} for edit in self.edits],
            "test": asdict(self.test),
        }


def _without_none(data: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in data.items() if value is not None}


@cache
def schema() -> dict[str, Any]:
    """`schemas/proposal.schema.json` (JSON Schema draft 2020-12)."""
    # a wheel carries the schemas inside the package, a source tree beside it
    places = (_PACKAGE / "schemas", _PACKAGE.parent / "schemas")
    path = next(place for place in places if place.is_dir()) / "proposal.schema.json"
    loaded: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    return loaded


def parse(data: object) -> Proposal:
    """A proposal from decoded JSON.

    Raises:
        ProposalError: it does not follow the schema; each problem is told with its JSON path and how to do it right.
    """
    problems = [*_problems(data, schema())]
    if problems:
        raise ProposalError(problems)
    assert isinstance(data, dict)  # the schema says so
    return Proposal(
        title=data["title"],
        cause=data["cause"],
        evidence=tuple(Evidence(**one) for one in data["evidence"]),
        edits=tuple(KINDS[one["kind"]](**{k: v for k, v in one.items() if k != "kind"}) for one in data["edits"]),
        test=RegressionTest(**data["test"]),
    )


def parse_edits(data: object, where: str = "$") -> tuple[Edit, ...]:
    """The edits of a proposal alone.

    Args:
        data: decoded JSON.
        where: JSON path of *data*, for what is told.

    Raises:
        ProposalError: as `parse`.
    """
    definition = {**schema()["properties"]["edits"], "$defs": schema()["$defs"]}
    problems = [*_problems(data, definition, where)]
    if problems:
        raise ProposalError(problems)
    assert isinstance(data, list)  # the schema says so
    return tuple(KINDS[one["kind"]](**{k: v for k, v in one.items() if k != "kind"}) for one in data)


def _problems(data: object, whole: dict[str, Any], where: str = "$") -> Iterable[str]:
    import jsonschema

    validator = jsonschema.Draft202012Validator(whole)
    for error in sorted(validator.iter_errors(data), key=lambda e: e.json_path):
        path = where + error.json_path[1:]
        if error.validator != "anyOf":
            yield f"{path}: {_told(error)}"
            continue
        kind = error.instance.get("kind") if isinstance(error.instance, dict) else None
        if not isinstance(kind, str) or kind not in KINDS:
            given = f"not {kind!r}" if kind is not None else "which is missing"
            yield f"{path}.kind: must be one of {', '.join(KINDS)}, {given}"
            continue
        # the branch of the edit's own kind tells what is wrong; the other branches only say that it is not theirs
        branch = jsonschema.Draft202012Validator({"$ref": f"#/$defs/{kind}", "$defs": whole["$defs"]})
        for inner in sorted(branch.iter_errors(error.instance), key=lambda e: e.json_path):
            yield f"{path}{inner.json_path[1:]}: {_told(inner)} ({kind}: {_signature(kind)})"


def _signature(kind: str) -> str:
    definition = schema()["$defs"][kind]
    required = [name for name in definition["required"] if name != "kind"]
    optional = [name for name in definition["properties"] if name not in definition["required"]]
    return ", ".join([*required, *(f"{name}?" for name in optional)])


def _told(error: Any) -> str:
    if error.validator == "pattern":
        if error.json_path.endswith("test.file"):
            return (
                f"{error.instance!r} must be a new file named test_*.py or *_test.py, "
                "usually in the project's tests folder, such as tests/test_empty_order.py"
            )
        return "must not be blank"
    if error.validator == "type":
        wanted = error.validator_value
        names = " or ".join(wanted) if isinstance(wanted, list) else wanted
        return f"must be of type {names}, not {type(error.instance).__name__}"
    if error.validator in {"minItems", "minLength"}:
        return "must not be empty"
    if error.validator == "maxLength":
        return f"is longer than {error.validator_value} characters"
    return str(error.message)
