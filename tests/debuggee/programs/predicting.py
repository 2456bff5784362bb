"""Runs programs and asks the predictor at each raise, as the debugger would.

Arguments: the bundle's file. Standard input: JSON {"programs": [[name, file, how], ...]}; how: `run` or `pytest`.
Standard output, last line: JSON {name: {"stops": [[class, function, why]], "maybe": the same where it is not certain,
"raises": their number, "left": the class that has left the program or null, "first": [unhandled, certain, why] of the
first raise, "first_left": whether that one, or one raised in its place, has left, "seconds": spent on judging}}.
"""

import json
import os
import sys
import threading
import time
import types

OWN = "<dap-agent>/predicting.py"
"""Under this name the predictor takes our own frames for the debugger's."""


def comes_from(error, others):
    """Whether it is one of them, or was raised while one of them was handled."""
    for _ in range(50):
        if error is None:
            return False
        if any(error is other for other in others):
            return True
        error = error.__context__
    return False


def main():
    with open(sys.argv[1], encoding="utf-8") as file:
        exec(compile(file.read(), "<dap-agent>/payload.py", "exec"), {})
    predict = sys.modules["_dap_agent_debuggee"].load("predict")
    asked = json.loads(sys.stdin.read())
    names = [name for name, _, _ in asked["programs"]] + ["none of them"]
    empty = {"raises": 0, "left": None, "first": None, "first_left": False, "seconds": 0.0}
    answers = {name: {"stops": [], "maybe": [], **empty} for name in names}
    by_file = {path: name for name, path, _ in asked["programs"]}
    now = [None]
    family = []  # the first exception, and those that were raised in its place

    def which(frame):
        """The program that is run; pytest runs all of its own in one go."""
        if now[0] is not None:
            return now[0]
        test = os.environ.get("PYTEST_CURRENT_TEST", "").partition("::")[0]
        for path in by_file:
            if test and path.endswith(test):
                return by_file[path]
        while frame is not None:
            if frame.f_code.co_filename in by_file:
                return by_file[frame.f_code.co_filename]
            frame = frame.f_back
        return "none of them"

    def raising(exc_type, exc, frame):
        begin = time.perf_counter()
        verdict = predict.will_be_unhandled(exc_type, None, frame)
        seconds = time.perf_counter() - begin
        answer = answers[which(frame)]
        answer["seconds"] += seconds
        answer["raises"] += 1
        own = frame.f_code.co_filename in by_file and frame.f_code.co_name != "expected"
        if own and not issubclass(exc_type, (StopIteration, StopAsyncIteration)):
            if answer["first"] is None:
                answer["first"] = [verdict.unhandled, verdict.certain, verdict.why]
                family.append(exc)
            elif comes_from(exc, family):  # now: asyncio sets the context anew when it raises an exception again
                family.append(exc)
        told = [exc_type.__name__, frame.f_code.co_name, verdict.why]
        if verdict.unhandled and verdict.certain:
            answer["stops"].append(told)
        elif not verdict.certain:
            answer["maybe"].append(told)

    def local(frame, event, arg):
        if event == "exception":
            first = arg[2] is None or arg[2].tb_next is None
            if first and not frame.f_code.co_filename.startswith("<frozen imp"):
                raising(arg[0], arg[1], frame)
        return local

    def trace(frame, event, arg):
        if frame.f_code.co_filename.startswith("<dap-agent>"):
            return None
        frame.f_trace_lines = False
        return local

    def on_raise(code, offset, exc):
        first = exc.__traceback__ is None or exc.__traceback__.tb_next is None
        if first and not code.co_filename.startswith(("<frozen imp", "<dap-agent>")):
            raising(type(exc), exc, sys._getframe(1))

    monitoring = getattr(sys, "monitoring", None)
    if monitoring is not None:  # 3.12+, as pydevd does
        monitoring.use_tool_id(monitoring.DEBUGGER_ID, "predicting")
        monitoring.register_callback(monitoring.DEBUGGER_ID, monitoring.events.RAISE, on_raise)

    def on(wanted):
        if monitoring is not None:
            monitoring.set_events(monitoring.DEBUGGER_ID, monitoring.events.RAISE if wanted else 0)
            return
        threading.settrace(trace if wanted else None)
        sys.settrace(trace if wanted else None)

    stdout = sys.stdout
    stderr = sys.stderr
    for name, path, how in asked["programs"]:
        if how != "run":
            continue
        now[0] = name
        del family[:]
        sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  closed below
        module = types.ModuleType("__main__")
        module.__file__ = path
        with open(path, encoding="utf-8") as file:
            code = compile(file.read(), path, "exec")
        sys.modules["__main__"] = module
        on(True)
        try:
            exec(code, module.__dict__)
        except BaseException as error:  # noqa: BLE001  whatever leaves the program is what happened
            on(False)
            answers[name]["left"] = type(error).__name__
            answers[name]["first_left"] = comes_from(error, family)
        finally:
            on(False)
            sys.stdout.close()
            sys.stdout, sys.stderr = stdout, stderr
    files = [path for _, path, how in asked["programs"] if how == "pytest"]
    if files:
        import pytest

        now[0] = None
        on(True)
        folder = os.path.dirname(files[0])
        os.chdir(folder)
        with open("pytest.ini", "w") as ini:
            ini.write("[pytest]\n")
        pytest.main(
            ["-q", "-p", "no:cacheprovider", "--tb=no", "--continue-on-collection-errors", "--rootdir", folder, *files]
        )
        on(False)
    sys.__stdout__.write("\n" + json.dumps(answers) + "\n")
    sys.__stdout__.flush()
    os._exit(0)


if __file__ == OWN:
    main()
else:
    with open(__file__, encoding="utf-8") as own:
        exec(compile(own.read(), OWN, "exec"), {"__file__": OWN, "__name__": "__main__"})
