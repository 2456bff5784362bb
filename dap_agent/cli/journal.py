"""`dap-agent journal`: past investigations."""

import json
import os
import shlex
import sys
from dataclasses import asdict

from dap_agent.agent import journal
from dap_agent.cli.command_line import UsageError
from dap_agent.control.render import table
from dap_agent.errors import DapAgentError
from dap_agent.session.rendering import clean, clip


def list_all(*, as_json: bool) -> int:
    """Print all investigations, newest first.

    Args:
        as_json: as a JSON array, one object an investigation.
    """
    found = journal.list_journals()
    if as_json:
        print(json.dumps([{**asdict(info), "path": str(info.path)} for info in found], indent=2))
        return 0
    if not found:
        print(f"There are no investigations yet; they are kept in {journal.directory_of_journals()}.")
        return 0
    rows = [("id", "began (UTC)", "result", "turns", "cost", "exception")]
    for info in found:
        verdict = f", {info.verdict}" if info.verdict else ""
        rows.append(
            (
                info.id,
                info.began[:19].replace("T", " "),
                clean(f"{info.status}{verdict}{', applied' if info.applied else ''}"),
                str(info.turns),
                "?" if info.cost is None else f"${info.cost:.2f}",
                clip(clean(info.headline).split("\n")[0], 100),
            )
        )
    _print(table(rows))
    return 0


def show(name: str) -> int:
    """Print one investigation.

    Args:
        name: an id, the beginning of one, a file, or `last`.

    Raises:
        DapAgentError: there is no such journal.
    """
    path = journal.find(name)
    _print(f"{path}\n{journal.show(path)}")
    return 0


def replay(name: str, *, only_print: bool) -> int:
    """Run the journal's program again, in the folder of the first run, with the model's turns from the journal.

    Args:
        name: an id, the beginning of one, a file, or `last`.
        only_print: print the command instead.

    Raises:
        DapAgentError: there is no such journal, or it does not know how its program was started.
    """
    path = journal.find(name)
    start = journal.read(path)[0]
    command = [str(word) for word in start.get("command", [])]
    if len(command) < 2:
        raise UsageError(
            f"{path} does not say how its program was started (it was attached to): play its turns with "
            f"`dap-agent run --model scripted:{shlex.quote(str(path))} PROGRAM`."
        )
    words = ["run", "--model", f"scripted:{path}", "--python", command[0], "--workspace", str(start["workspace"])]
    words += ["--", *command[1:]] if command[1] != "-m" else command[1:]
    cwd = str(start.get("cwd") or ".")
    if only_print:
        print(f"cd {shlex.quote(cwd)} && {shlex.join(['dap-agent', *words])}")
        return 0
    try:
        os.chdir(cwd)
    except OSError as error:
        raise DapAgentError(
            f"The folder of the run in {path}, {cwd}, cannot be entered ({error.strerror}); replay it where it is now "
            f"with `dap-agent run --model scripted:{shlex.quote(str(path))} PROGRAM`."
        ) from error
    from dap_agent.cli import main

    return main.main(words)


def _print(text: str) -> None:
    # a terminal of another encoding shows what it cannot as escapes
    encoding = sys.stdout.encoding or "utf-8"
    print(text.encode(encoding, "backslashreplace").decode(encoding))
