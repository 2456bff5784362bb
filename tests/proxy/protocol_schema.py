"""The protocol's JSON schema, in the copy that debugpy ships, with a validator fast enough for whole sessions."""

import functools
import importlib.util
import json
from pathlib import Path

import fastjsonschema

from ..control.messages_schema import check_ours, is_ours

SCHEMA = "_vendored/pydevd/_pydevd_bundle/_debug_adapter/debugProtocol.json"
SHA256 = "64ad433b9ff4b92360771fc8dac50dcf9cac951c0057d0af0d2f826b43087bfb"
CUSTOM = {"debugpySockets", "debugpyAttach", "debugpyWaitingForServer"}  # debugpy's own events


def schema_file():
    """Where debugpy keeps it."""
    return Path(importlib.util.find_spec("debugpy").origin).parent / SCHEMA


@functools.cache
def definitions():
    """All definitions, and (type, command or event) -> the name of the message's definition."""
    all_of_them = json.loads(schema_file().read_text(encoding="utf-8"))["definitions"]
    names = {}
    for name, definition in all_of_them.items():
        for part in definition.get("allOf", ()):
            properties = part.get("properties", {})
            for key, kind in (("command", "request"), ("event", "event")):
                for value in properties.get(key, {}).get("enum", ()):
                    names[kind, value] = name
                    if kind == "request" and f"{name.removesuffix('Request')}Response" in all_of_them:
                        names["response", value] = f"{name.removesuffix('Request')}Response"
    return all_of_them, names


@functools.cache
def validator(name):
    """The validator of one definition."""
    schema = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "$ref": f"#/definitions/{name}",
        "definitions": definitions()[0],
    }
    return fastjsonschema.compile(schema)


def check(message):
    """Validate a message that a client got.

    Raises:
        fastjsonschema.JsonSchemaException: it breaks the protocol's schema.
        jsonschema.ValidationError: it breaks ours.
        AssertionError: no schema is known for it.
    """
    if message["type"] == "response" and not message["success"]:
        validator("ErrorResponse")(message if "body" in message else {**message, "body": {}})  # debugpy's have none
        return
    if is_ours(message):
        check_ours(message)
        return
    key = (message["type"], message.get("event") or message["command"])
    names = definitions()[1]
    assert key in names or key[1] in CUSTOM, key
    if key in names:
        validator(names[key])(message)
