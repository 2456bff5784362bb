"""Checks messages of ours against `schemas/messages.schema.json`."""

import functools
import json
from pathlib import Path
from typing import Any

import jsonschema
import referencing

SCHEMAS = Path(__file__).resolve().parents[2] / "schemas"


def schema(name: str) -> Any:
    return json.loads((SCHEMAS / f"{name}.schema.json").read_text(encoding="utf-8"))


def is_ours(message: dict[str, Any]) -> bool:
    """Whether it is an event or request of ours, or the answer to one."""
    return str(message.get("event") or message.get("command")).startswith("dapAgent")


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    registry: referencing.Registry[Any] = referencing.Registry().with_resources(
        [
            (each, referencing.Resource.from_contents(schema(each.partition(".")[0])))
            for each in ("snapshot.schema.json", "messages.schema.json")
        ]
    )
    return jsonschema.Draft202012Validator({"$ref": f"messages.schema.json#/$defs/{name}"}, registry=registry)


def check_ours(message: dict[str, Any]) -> None:
    """Raise if *message*, which is ours and no error, breaks the schema."""
    if message["type"] == "event":
        name = message["event"]
    else:
        name = message["command"].removeprefix("dapAgent/") + message["type"].capitalize()
    validator(name).validate(message)
