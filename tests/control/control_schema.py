"""Checks what goes over a session's socket against `schemas/control.schema.json`."""

import functools
from typing import Any

import jsonschema
import referencing

from .messages_schema import schema


@functools.cache
def validator(name: str) -> jsonschema.Draft202012Validator:
    """Of `METHODParams`, `METHODResult`, `NAMENotification` and the like."""
    registry: referencing.Registry[Any] = referencing.Registry().with_resources(
        [
            (each, referencing.Resource.from_contents(schema(each.partition(".")[0])))
            for each in ("snapshot.schema.json", "messages.schema.json", "control.schema.json")
        ]
    )
    return jsonschema.Draft202012Validator({"$ref": f"control.schema.json#/$defs/{name}"}, registry=registry)
