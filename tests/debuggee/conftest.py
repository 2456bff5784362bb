"""Runs programs with the debuggee side loaded as text, in interpreters of all supported versions."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from dap_agent.session import payload

HERE = Path(__file__).parent
SCHEMA = json.loads((HERE.parents[1] / "schemas" / "snapshot.schema.json").read_text(encoding="utf-8"))
_validator = jsonschema.Draft202012Validator(SCHEMA)


class Outcome:
    """What the harness has said."""

    def __init__(self, said: dict[str, Any]) -> None:
        self.answers: list[dict[str, Any]] = said["answers"]
        self.after: Any = said["after"]

    def __getitem__(self, index: int) -> Any:
        answer = self.answers[index]
        assert answer["ok"], answer
        return answer["result"]

    def error(self, index: int) -> dict[str, Any]:
        assert not self.answers[index]["ok"]
        found: dict[str, Any] = self.answers[index]["error"]
        return found


Ask = Callable[..., Outcome]


def check(snapshot: dict[str, Any]) -> dict[str, Any]:
    """The snapshot, valid by the schema."""
    _validator.validate(snapshot)
    return snapshot


@pytest.fixture(scope="session")
def bundle_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("bundle") / "bundle.txt"
    path.write_text(payload.bundle(), encoding="utf-8")
    return path


@pytest.fixture
def ask(bundle_file: Path, tmp_path: Path) -> Ask:
    """ask(python, program, *questions): run *program* (source text or path) until it fails, put the questions."""

    def run(
        python: Path,
        program: "str | Path",
        *questions: "tuple[str, dict[str, Any]] | str",
        env: "dict[str, str] | None" = None,
        arguments: "tuple[str, ...]" = (),
    ) -> Outcome:
        if isinstance(program, str):
            path = tmp_path / "program.py"
            path.write_text(program, encoding="utf-8")
        else:
            path = program
        asked = [[question, {}] if isinstance(question, str) else list(question) for question in questions]
        done = subprocess.run(
            [str(python), str(HERE / "programs" / "harness.py"), str(bundle_file), str(path), *arguments],
            input=json.dumps(asked),
            capture_output=True,
            text=True,
            timeout=60,
            env=env,
        )
        assert done.returncode == 0, done.stderr[-3000:]
        outcome = Outcome(json.loads(done.stdout.splitlines()[-1]))
        for (name, _), answer in zip(asked, outcome.answers, strict=True):
            if name == "snapshot":
                assert answer["ok"], answer
                check(answer["result"])
        return outcome

    return run


def value_of(frame: dict[str, Any], name: str) -> dict[str, Any]:
    """A local or argument of a frame."""
    for pair in [*frame["locals"], *frame["arguments"]]:
        if pair["name"] == name:
            found: dict[str, Any] = pair["value"]
            return found
    raise AssertionError(f"no {name}: {[pair['name'] for pair in frame['locals']]}")


@pytest.fixture(name="value_of")
def _value_of() -> Callable[[dict[str, Any], str], dict[str, Any]]:
    return value_of
