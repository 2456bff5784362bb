"""Hot reload in an editor's session: files saved while the program stands and while it runs; breakpoints move along."""

from ..control.messages_schema import check_ours
from ..proxy.editor_double import OURS, VSCODE, editor, environment
from ..proxy.fakes import run

MAIN = """\
import sys
import time
from helper import LIMIT, step

n = 0
while n is not None:
    n = step(n)
    time.sleep(0.02)
sys.stdout.write(f"over {LIMIT}\\n")
"""
HELPER = """\
LIMIT = 1


def step(n):
    n += 1
    return n
"""
MOVED = """\
# a line more
# and one more
def other():
    return 1000


""" + HELPER.replace("n += 1", "n += other()")
OVER = MOVED.replace("n += other()", "n = None").replace("LIMIT = 1", "LIMIT = 2")
INITIALIZE = {**VSCODE, "supportsInvalidatedEvent": True}


async def output(client, part):
    """The text of the next output with *part* in it."""
    while True:
        text = (await client.event("output"))["body"]["output"]
        if part in text:
            return text


def test_saved_files_go_into_the_program_and_breakpoints_along_with_their_lines(every_python, tmp_path):
    main, helper = tmp_path / "main.py", tmp_path / "helper.py"
    main.write_text(MAIN)
    helper.write_text(HELPER)
    configuration = {
        "program": str(main),
        "cwd": str(tmp_path),
        "console": "internalConsole",
        "python": [str(every_python)],
        "dapAgent": {"workspace": [str(tmp_path)]},
    }

    async def scenario():
        lines = {str(helper): [6]}
        async with editor(OURS, env=environment(), initialize=INITIALIZE, lines=lines) as client:
            await client.start("launch", configuration)
            stopped = (await client.event("stopped"))["body"]
            # while it stands
            helper.write_text(MOVED)
            changed = (await client.event("breakpoint"))["body"]
            assert (changed["reason"], changed["breakpoint"]["line"]) == ("changed", 12)
            assert stopped["hitBreakpointIds"] == [changed["breakpoint"]["id"]]
            told = await client.first(lambda m: "new code" in str(m.get("body", {}).get("output")))
            assert told["body"]["output"] == (
                "dap-agent: The running program has the new code (step, other).\n"
                "  step: swapped (the call that runs in thread MainThread keeps its old code until it returns)\n"
            )
            frames = []
            for _ in range(2):  # the call that stands is the old one's
                await client.ask("continue", {"threadId": stopped["threadId"]})
                stopped = (await client.event("stopped"))["body"]
                stack = await client.ask("stackTrace", {"threadId": stopped["threadId"]})
                frames.append(stack["body"]["stackFrames"][0])
                assert stopped["hitBreakpointIds"] == [changed["breakpoint"]["id"]]
            assert [frame["line"] for frame in frames] == [12, 12]
            n = await client.ask("evaluate", {"expression": "n", "frameId": frames[-1]["id"]})
            assert n["body"]["result"] == "2001"
            # while it runs
            await client.ask("setBreakpoints", {"source": {"path": str(helper)}, "breakpoints": []})
            await client.ask("continue", {"threadId": stopped["threadId"]})
            helper.write_text(OVER)
            assert "over 2" in await output(client, "over")
            await client.event("terminated")
            await client.leave()

    run(scenario)


def test_files_are_put_in_when_the_user_says_so(python, tmp_path):
    main, helper = tmp_path / "main.py", tmp_path / "helper.py"
    main.write_text(MAIN)
    helper.write_text(HELPER)
    configuration = {
        "program": str(main),
        "cwd": str(tmp_path),
        "console": "internalConsole",
        "python": [str(python)],
        "dapAgent": {"workspace": [str(tmp_path)], "reload": "applied"},
    }

    async def scenario():
        lines = {str(helper): [6]}
        async with editor(OURS, env=environment(), initialize=INITIALIZE, lines=lines) as client:
            await client.start("launch", configuration)
            await client.event("stopped")
            await client.ask("setBreakpoints", {"source": {"path": str(helper)}, "breakpoints": []})
            helper.write_text(OVER)
            answer = await client.ask("evaluate", {"expression": "/reload helper.py", "context": "repl"})
            assert answer["body"]["result"].startswith("The running program has the new code (step, other, LIMIT).")
            wrong = await client.ask("evaluate", {"expression": "/reload nothing.py", "context": "repl"})
            assert "nothing.py cannot be read as a Python file" in wrong["message"]
            helper.write_text(OVER.replace("return 1000", "return 2000"))
            answer = await client.ask("dapAgent/reload", {"files": [str(helper)]})
            check_ours(answer)
            (file,) = answer["body"]["reload"]["files"]
            assert [(each["name"], each["outcome"]) for each in file["functions"]] == [("other", "swapped")]
            await client.ask("continue", {"threadId": 1})
            assert "over 2" in await output(client, "over")
            await client.event("terminated")
            await client.leave()

    run(scenario)


def test_a_client_that_has_moved_its_breakpoints_itself_is_left_alone(tmp_path):
    """An editor moves them with the text and sets them again when it saves: they must not be moved twice."""
    main, helper = tmp_path / "main.py", tmp_path / "helper.py"
    main.write_text(MAIN)
    helper.write_text(HELPER)
    configuration = {
        "program": str(main),
        "cwd": str(tmp_path),
        "console": "internalConsole",
        "dapAgent": {"workspace": [str(tmp_path)]},
    }

    async def scenario():
        lines = {str(helper): [6]}
        async with editor(OURS, env=environment(), initialize=INITIALIZE, lines=lines) as client:
            await client.start("launch", configuration)
            stopped = (await client.event("stopped"))["body"]
            helper.write_text(MOVED)
            source = {"source": {"path": str(helper)}, "breakpoints": [{"line": 12}], "sourceModified": True}
            await client.ask("setBreakpoints", source)
            await output(client, "The running program has the new code")
            for _ in range(2):
                await client.ask("continue", {"threadId": stopped["threadId"]})
                stopped = (await client.event("stopped"))["body"]
            stack = await client.ask("stackTrace", {"threadId": stopped["threadId"]})
            assert stack["body"]["stackFrames"][0]["line"] == 12
            answer = await client.ask("evaluate", {"expression": "/reload", "context": "repl"})
            assert answer["body"]["result"] == "Nothing differs of what the running program has loaded."
            await client.leave(terminateDebuggee=True)

    run(scenario)
