"""Puts changed modules into this process, one case after the other, and says what each of them does then.

Standard input: a JSON list of cases, each `old` and `new` (texts), `before` (statements that run on the old module `m`,
with a second module `other` that has done `from m import *`), `then` (expressions). Standard output: a JSON list, for
each `told`, `error` and `values` (the repr of each expression, or the name of what it raises), and `seconds`.
"""

import importlib
import json
import os
import sys
import tempfile
import time
import types

with open(sys.argv[1], encoding="utf-8") as bundle:
    exec(bundle.read(), {})
api = sys.modules["_dap_agent_debuggee.api"]
folder = tempfile.mkdtemp()
sys.path.insert(0, folder)
sys.dont_write_bytecode = True


def value(expression, names):
    try:
        return repr(eval(expression, names))
    except Exception as error:  # noqa: BLE001 - whatever the case raises
        return type(error).__name__


def reload(path, old, new):
    answer = json.loads(api.call("reload", json.dumps({"files": [{"path": path, "old": old, "new": new}]})))
    assert answer["ok"], answer
    return answer["result"]


def run(number, case):
    name = "case" + str(number)
    path = os.path.join(folder, name + ".py")
    with open(path, "w", encoding="utf-8") as file:
        file.write(case["old"])
    importlib.invalidate_caches()
    module = importlib.import_module(name)
    other = types.ModuleType(name + "_other")
    other.__dict__.update({key: each for key, each in vars(module).items() if key[:2] != "__"})
    sys.modules[other.__name__] = other
    names = {"m": module, "other": other, "sys": sys, "reload": reload, "path": path}
    exec(case["before"], names)
    with open(path, "w", encoding="utf-8") as file:
        file.write(case["new"])
    began = time.perf_counter()
    result = reload(path, case["old"], case["new"])
    seconds = time.perf_counter() - began
    (told,) = result["files"]
    found = {
        "told": {each["name"]: each["outcome"] + ": " + each["reason"] for each in told["functions"] + told["names"]},
        "error": told["error"],
        "moved": result["moved"].get(path),
        "values": {expression: value(expression, names) for expression in case["then"]},
        "seconds": seconds,
    }
    if case.get("like_fresh"):
        fresh = types.ModuleType(name)
        exec(compile(case["new"], path, "exec"), vars(fresh))
        found["fresh"] = {expression: value(expression, {"m": fresh}) for expression in case["then"]}
    del sys.modules[name], sys.modules[other.__name__]
    return found


print(json.dumps([run(*each) for each in enumerate(json.load(sys.stdin))]))
