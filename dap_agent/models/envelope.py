"""Tool calls for models without native ones: the whole answer is one JSON object `{"name": ..., "arguments": {...}}`.

Small local models write calls that their server does not recognise, but follow a grammar. `schema` makes the JSON
Schema of all possible calls for `response_format`, within what llama-server turns into a grammar (strings bounded by a
maxLength of at most 5000, patterns anchored, no lookaround, no if/then); `instructions` tells the model; `find_calls`
reads calls from what came, also from fences and tags, for servers that ignore the schema. Whether arguments fit their
tool is checked by whoever runs the tool.
"""

import json
import re
from collections.abc import Iterator, Sequence
from typing import Any

from dap_agent.models.base import AssistantMessage, Call, Message, ToolSpec, UserMessage
from dap_agent.models.sdk import EMPTY, NO_ANSWER, unparsed

LONGEST = 5000  # llama-server: a larger maxLength is refused or makes the grammar too slow
_MOST_ITEMS = 16
_KEPT = ("type", "enum", "const", "required", "minimum", "maximum", "minLength", "minItems", "$ref")
_TAGS = re.compile(
    r"<(?P<tag>tool_call|tools|tool_calls|function_call)>(?P<body>.*?)(?:</(?P=tag)>|$)"
    r"|<function=(?P<name>[\w-]+)>(?P<arguments>\s*\{.*?\}\s*)</function>",
    re.DOTALL,
)
_FENCE = re.compile(r"```[\w-]*\s*\n(.*?)(?:```|$)", re.DOTALL)
_THOUGHT = re.compile(r"^\s*<think>.*?(?:</think>|$)", re.DOTALL)


def answer_name(tools: Sequence[ToolSpec]) -> str:
    """The name of the pseudo tool with which the model answers in words; never that of a real tool."""
    name = "answer"
    while any(tool.name == name for tool in tools):
        name += "_in_words"
    return name


def schema(tools: Sequence[ToolSpec], *, force: bool) -> dict[str, Any]:
    """The JSON Schema of every possible answer; without *force* an answer in words is one of them."""
    definitions: dict[str, Any] = {}
    choices = [_choice(tool.name, _bounded(tool.parameters, tool.name)) for tool in tools]
    for tool in tools:
        for key in ("$defs", "definitions"):
            for name, definition in (tool.parameters.get(key) or {}).items():
                definitions[f"{tool.name}.{name}"] = _bounded(definition, tool.name)
    if not force:
        text = {"type": "object", "properties": {"text": _string({})}, "required": ["text"]}
        choices.append(_choice(answer_name(tools), {**text, "additionalProperties": False}))
    return {"oneOf": choices, **({"$defs": definitions} if definitions else {})}


def _choice(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {"name": {"const": name}, "arguments": arguments},
        "required": ["name", "arguments"],
        "additionalProperties": False,
    }


def _bounded(given: Any, tool: str) -> dict[str, Any]:
    """*given* with everything left out that a grammar cannot express, and with bounds where there are none."""
    if not isinstance(given, dict):  # true: anything goes
        return {}
    made = {key: given[key] for key in _KEPT if key in given}
    if isinstance(made.get("$ref"), str):
        return {"$ref": "#/$defs/" + tool + "." + made["$ref"].rpartition("/")[2]}
    for key in ("oneOf", "anyOf", "allOf"):
        if isinstance(given.get(key), list):
            made[key] = [_bounded(each, tool) for each in given[key]]
    types = given.get("type")
    types = set(types) if isinstance(types, list) else {types}
    if "properties" in given:
        made["properties"] = {name: _bounded(each, tool) for name, each in given["properties"].items()}
        made["additionalProperties"] = False
    elif "object" in types and isinstance(given.get("additionalProperties"), dict):
        made["additionalProperties"] = _bounded(given["additionalProperties"], tool)
    if "array" in types:
        made["items"] = _bounded(given.get("items", {}), tool)
        made["maxItems"] = min(given.get("maxItems", _MOST_ITEMS), _MOST_ITEMS)
    if "string" in types and "enum" not in given and "const" not in given:
        made.update(_string(given))
        made["type"] = given["type"]
    return made


def _string(given: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = {"type": "string", "maxLength": min(given.get("maxLength", LONGEST), LONGEST)}
    pattern = given.get("pattern")
    if isinstance(pattern, str) and pattern.startswith("^") and pattern.endswith("$") and "(?" not in pattern:
        made["pattern"] = pattern
    return made


def instructions(tools: Sequence[ToolSpec], *, force: bool) -> str:
    """What is added to the system prompt."""
    lines = [
        "",
        "Answer with exactly one JSON object and nothing else, in this form:",
        '{"name": NAME, "arguments": {...}}',
        "It calls one tool; the next message gives its result. The tools:",
    ]
    for tool in tools:
        parameters = json.dumps(tool.parameters, ensure_ascii=False, sort_keys=True, separators=(",", ":"))
        lines.append(f"- {tool.name}: {tool.description}\n  arguments: {parameters}")
    lines.append(f'- {answer_name(tools)}: answer in words, if no tool helps.\n  arguments: {{"text": "..."}}')
    return "\n".join(lines)


def render(system: str, messages: Sequence[Message], tools: Sequence[ToolSpec]) -> list[dict[str, Any]]:
    """The conversation in plain messages: calls as envelopes, results as user messages, roles alternating."""
    rendered: list[dict[str, Any]] = [{"role": "system", "content": system + instructions(tools, force=False)}]
    for message in messages:
        role = "assistant" if isinstance(message, AssistantMessage) else "user"
        content = _content(message, tools)
        if rendered[-1]["role"] == role:  # the templates of some models insist on alternating roles
            rendered[-1] = {"role": role, "content": f"{rendered[-1]['content']}\n\n{content}"}
        else:
            rendered.append({"role": role, "content": content})
    return rendered


def _content(message: Message, tools: Sequence[ToolSpec]) -> str:
    if isinstance(message, UserMessage):
        return message.text if message.text.strip() else EMPTY
    if isinstance(message, AssistantMessage):
        turn = message.turn
        calls = [
            (call.name, call.arguments if call.arguments is not None else unparsed(call.raw)) for call in turn.calls
        ]
        if not calls:
            calls = [(answer_name(tools), {"text": turn.text or NO_ANSWER})]
        return "\n".join(
            json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False) for name, arguments in calls
        )
    return "\n\n".join(
        f"{'Error' if result.error else 'Result'} of {result.name}:\n{result.content or EMPTY}"
        for result in message.results
    )


def without_thought(text: str) -> str:
    """*text* without the `<think>` block that reasoning models may begin with."""
    return _THOUGHT.sub("", text, count=1).strip()


def find_calls(text: str, tools: Sequence[ToolSpec]) -> list[tuple[str, dict[str, Any]]]:
    """The calls in *text*, (name, arguments): an envelope, or calls in tags, fences or prose.

    Only calls of known tools and of the pseudo tool for an answer count.
    """
    names = {tool.name for tool in tools} | {answer_name(tools)}
    text = without_thought(text)
    for source in (_whole, _tagged, _fenced, _embedded):
        calls = [call for value in source(text) for call in _calls(value, names)]
        if calls:
            return calls
    return []


def to_calls(found: Sequence[tuple[str, dict[str, Any]]], taken: set[str]) -> tuple[Call, ...]:
    """*found* as calls, with ids that are not in *taken*."""
    made: list[Call] = []
    number = 0
    for name, arguments in found:
        while f"call_{number}" in taken:
            number += 1
        taken = taken | {f"call_{number}"}
        made.append(Call(f"call_{number}", name, arguments, json.dumps(arguments, ensure_ascii=False)))
    return tuple(made)


def _whole(text: str) -> Iterator[Any]:
    yield from _values(text)


def _tagged(text: str) -> Iterator[Any]:
    for match in _TAGS.finditer(text):
        if match["name"]:
            yield from ({"name": match["name"], "arguments": value} for value in _values(match["arguments"]))
        else:
            yield from _values(match["body"])


def _fenced(text: str) -> Iterator[Any]:
    for match in _FENCE.finditer(text):
        yield from _values(match[1])


def _embedded(text: str) -> Iterator[Any]:
    """Objects in the middle of prose, not those inside of other objects; a bounded number of places is tried."""
    decoder, end = json.JSONDecoder(), 0
    for match in list(re.finditer(r'\{\s*"', text))[:20]:
        if match.start() >= end:
            try:
                value, end = decoder.raw_decode(text, match.start())
            except (ValueError, RecursionError):
                continue
            yield value


def _values(text: str) -> Iterator[Any]:
    """The JSON values that *text* consists of, one after the other; what follows the first error is left out."""
    decoder, position = json.JSONDecoder(), 0
    while match := re.compile(r"[\s,;]*").match(text, position):
        position = match.end()
        if position >= len(text):
            return
        try:
            value, position = decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return
        yield from value if isinstance(value, list) else [value]


def _calls(value: Any, names: set[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    if not isinstance(value, dict):
        return
    if isinstance(value.get("function"), dict):  # OpenAI's own form, written out by a model that has seen it
        value = value["function"]
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            return
    if value.get("name") in names and isinstance(arguments, dict):
        yield value["name"], arguments
