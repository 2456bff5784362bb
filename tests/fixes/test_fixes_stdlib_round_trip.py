"""Every function (and small class) of the standard library, sent back unchanged, leaves its file byte for byte."""

import sysconfig
from pathlib import Path

import pytest

from dap_agent.fixes.failures import EditError, UnreadableFile
from dap_agent.fixes.replacing import replace_symbol
from dap_agent.fixes.source_text import SourceText, decode, indent_of, unix
from dap_agent.fixes.symbols import Definition, Module, module


def as_a_model_sends_it(parsed: Module, definition: Definition) -> str:
    """The source without the outer indentation; lines that do not have it (data of strings among them) stay."""
    lines = [unix(line) for line in parsed.lines[definition.first_line - 1 : definition.last_line]]
    indent = indent_of(lines[0])
    return "".join(line.removeprefix(indent) for line in lines)


@pytest.mark.timeout(400)  # 60 000 functions
def test_every_definition_of_the_standard_library_round_trips() -> None:
    root = Path(sysconfig.get_path("stdlib"))
    count, wrong = 0, []
    for path in sorted(root.rglob("*.py")):
        if "site-packages" in path.parts:
            continue
        data = path.read_bytes()
        try:
            source: SourceText = decode(data, str(path))
            parsed = module(source.text)
        except (UnreadableFile, EditError):
            continue  # files that are no valid Python on purpose (bad_coding.py, lib2to3's Python 2 samples)
        for qualname, definitions in parsed.definitions.items():
            for definition in definitions:
                if definition.kind == "class" and len(definition.node.body) > 3:
                    continue  # its methods are sent one by one
                count += 1
                sent = as_a_model_sends_it(parsed, definition)
                try:
                    splice = replace_symbol(parsed, qualname, sent, first_line=definition.first_line)
                except EditError as error:
                    wrong.append(f"{path}:{definition.first_line} {qualname}: {error.message}")
                    continue
                if source.text[splice.start : splice.end] != splice.text:
                    wrong.append(f"{path}:{definition.first_line} {qualname}")
    assert count > 20_000
    assert wrong == [], "\n".join(wrong[:50])
