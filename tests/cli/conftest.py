"""Fixtures for the command line's tests."""

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dap_agent.session.snapshot import Snapshot


@pytest.fixture(autouse=True)
def private_state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A state directory of the test's own, and none of the developer's settings."""
    for name in [name for name in os.environ if name.startswith("DAP_AGENT_")]:
        monkeypatch.delenv(name)
    monkeypatch.delenv("VIRTUAL_ENV", raising=False)
    folder = tmp_path_factory.mktemp("state")
    monkeypatch.setenv("DAP_AGENT_STATE_DIR", str(folder))
    return folder


def value(type_name: str, text: str, **more: Any) -> dict[str, Any]:
    return {"type": type_name, "text": text, **more}


def frame(number: int, function: str, file: str, line: int, **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "function": function,
        "module": "shop",
        "file": file,
        "line": line,
        "first_line": line,
        "user": True,
        "package": None,
        "stdlib": False,
        "arguments": [],
        "locals": [],
        "locals_total": 0,
        "source": None,
        **more,
    }


def exception(type_name: str, message: str, **more: Any) -> dict[str, Any]:
    return {
        "type": type_name,
        "message": message,
        "notes": [],
        "attributes": [],
        "where": None,
        "cause": None,
        "context": None,
        "group": [],
        "syntax": None,
        **more,
    }


def snapshot_of(folder: Path, **more: Any) -> Snapshot:
    """A KeyError in `shop/pricing.py`, called from `shop/app.py` through a package."""
    customer = {"name": "customer", "value": value("Customer", "Customer(tier='Gold ')")}
    pricing, app = str(folder / "shop" / "pricing.py"), str(folder / "shop" / "app.py")
    data: dict[str, Any] = {
        "version": 1,
        "reason": "exception",
        "python": {"version": "3.12.1", "implementation": "CPython", "executable": "/p", "platform": "linux"},
        "process": {"pid": 1, "argv": ["app.py"], "cwd": str(folder)},
        "thread": {"id": 1, "name": "MainThread", "main": True},
        "task": None,
        "exception": exception(
            "KeyError",
            "'Gold '",
            notes=["while billing May"],
            cause=exception("ValueError", "no tier", where={"function": "find", "file": pricing, "line": 7}),
        ),
        "frames": [
            frame(
                0,
                "discount",
                pricing,
                12,
                arguments=[customer],
                locals=[customer, {"name": "rates", "value": value("dict", "{'gold': 10}")}],
                locals_total=2,
                source={
                    "first_line": 10,
                    "lines": ["def discount(customer):", "    rates = RATES", "    return rates[x]"],
                },
            ),
            frame(1, "Pool.map", "/lib/pool.py", 90, user=False, package={"name": "pool", "version": "2.0"}),
            frame(2, "Pool.run", "/lib/pool.py", 40, user=False, package={"name": "pool", "version": "2.0"}),
            frame(3, "main", app, 5, arguments=[{"name": "month", "value": value("str", "'2024-05'")}]),
        ],
        "frames_total": 4,
        "folds": [],
        "output": {"stdout": ["first invoice"], "stderr": []},
        "threads": [],
        "elapsed_ms": 1.0,
        "notes": [],
    }
    data.update(more)
    return Snapshot(data)


@pytest.fixture
def snapshot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Snapshot]:
    """Makes the example snapshot, with any of its parts replaced; the current folder is the program's."""
    monkeypatch.chdir(tmp_path)
    return lambda **more: snapshot_of(tmp_path, **more)


@pytest.fixture
def validate_report() -> Callable[[Any], None]:
    """Validates a JSON report, with the snapshot and the proposal in it."""
    import jsonschema
    import referencing

    schemas = Path(__file__).parents[2] / "schemas"
    resources = [
        (path.name, referencing.Resource.from_contents(json.loads(path.read_text(encoding="utf-8"))))
        for path in schemas.glob("*.schema.json")
    ]
    registry: Any = referencing.Registry().with_resources(resources)
    schema = json.loads((schemas / "report.schema.json").read_text(encoding="utf-8"))
    return jsonschema.Draft202012Validator(schema, registry=registry).validate


@pytest.fixture
def exception_of() -> Callable[..., dict[str, Any]]:
    """Makes an exception's JSON."""
    return exception


@pytest.fixture
def frame_of() -> Callable[..., dict[str, Any]]:
    """Makes a frame's JSON."""
    return frame
