"""Compares what call_sites.py tells of modules of the standard library with what the compiler does.

Arguments: the bundle's file, names of files of the standard library. Standard output, last line: JSON [right, wrong,
unknown]. Each call is put into a line of its own, which the compiler then tells of its instruction.
"""

import ast
import dis
import json
import os
import sys
import types


def codes(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from codes(constant)


def call_in_line(code, calls):
    """The call that each instruction of the marked code is."""
    line = None
    for each in dis.get_instructions(code):
        line = each.starts_line or line
        if each.opname.startswith("CALL_") and line in calls:
            yield each.offset, calls[line]


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        exec(compile(file.read(), "<dap-agent>/payload.py", "exec"), {})
    call_sites = sys.modules["_dap_agent_debuggee"].load("call_sites")
    guards = sys.modules["_dap_agent_debuggee"].load("guards")
    count = [0, 0, 0]
    for name in sys.argv[2:]:
        path = os.path.join(os.path.dirname(os.__file__), name)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        marked = ast.parse(text)
        code = compile(text, path, "exec", dont_inherit=True)
        tree = guards.of_code(code, {}).node
        calls = {}
        nodes = zip(ast.walk(tree), ast.walk(marked))  # noqa: B905 - came with 3.10
        for number, (node, twin) in enumerate(nodes, 100000):
            if isinstance(node, ast.Call):
                calls[number] = node
                twin.lineno = twin.end_lineno = number
                if isinstance(twin.func, ast.Attribute):
                    twin.func.end_lineno = number
        marked_code = compile(marked, path, "exec", dont_inherit=True)
        for each, twin in zip(codes(code), codes(marked_code)):  # noqa: B905 - came with 3.10
            node = guards.of_code(each, {}).node
            if node is None or each.co_code != twin.co_code:
                continue  # lambdas and the like; in 3.10 lines have an influence on the byte code
            for offset, call in call_in_line(twin, calls):
                told = call_sites.call_at(each, offset, node)
                count[0 if told is call else 2 if told is None else 1] += 1
    print(json.dumps(count))


main()
