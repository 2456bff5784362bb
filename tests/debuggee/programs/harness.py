"""Runs a program as the product does it: our package loaded as text, the exception reported, questions answered.

Arguments: the bundle's file, the program's file. Standard input: a JSON list of [name, arguments]. Standard output,
last line: JSON with the answers, and `after` (what the program's function of that name says when all is over).
"""

import json
import sys


def main():
    bundle, program = sys.argv[1:3]
    del sys.argv[1:2]
    questions = json.loads(sys.stdin.read())
    with open(bundle, encoding="utf-8") as file:
        text = file.read()
    for _ in range(2):  # the second time does nothing
        exec(compile(text, "<dap-agent>/payload.py", "exec"), {})
    api = sys.modules["_dap_agent_debuggee.api"]
    stop_module = sys.modules["_dap_agent_debuggee"].load("stop")
    with open(program, encoding="utf-8") as file:
        code = compile(file.read(), program, "exec")
    names = {"__name__": "__main__", "__file__": program, "Stop": stop_module.Stop}
    exc = None
    try:
        exec(code, names)
    except BaseException as caught:  # noqa: BLE001  whatever the program raises is what is looked at
        exc = caught
    if "make_stop" in names:
        stop = names["make_stop"](exc)
    else:
        stop = stop_module.Stop.from_exception(exc)
        stop.frames = [pair for pair in stop.frames if pair[0].f_code.co_filename != __file__]
    api.set_stop(stop)
    answers = [json.loads(api.call(name, json.dumps(arguments))) for name, arguments in questions]
    after = names["after"]() if "after" in names else None
    sys.__stdout__.write("\n" + json.dumps({"answers": answers, "after": after}) + "\n")
    sys.__stdout__.flush()
    import os

    os._exit(0)  # threads and finalizers of the programs are no concern of ours


main()
