"""The entry point: parses the command line and calls one subcommand, importing nothing that `--help` does not need."""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dap_agent import __version__
from dap_agent.cli import exit_status
from dap_agent.cli.command_line import Target, UsageError, split
from dap_agent.cli.options import options_of
from dap_agent.errors import DapAgentError

if TYPE_CHECKING:
    from dap_agent.cli.settings import Settings
    from dap_agent.session.launch import ProgramCommand

DESCRIPTION = """\
An AI debugger for Python: runs your program, stops at its crash, lets a model look at the stopped program, and ends
with a fix that is proved by a regression test."""

RUN_USAGE = """\
dap-agent run [options] PROGRAM [args...]
       dap-agent run [options] -m MODULE [args...]"""

RUN_EPILOG = """\
Everything after PROGRAM or -m MODULE belongs to the program, whatever it looks like. The program has dap-agent's
standard input, output and error; dap-agent itself writes to standard error. Each option can also be set in the
environment (DAP_AGENT_MAX_TURNS) or as a key of [tool.dap-agent] in the project's pyproject.toml (max-turns); a flag
comes before the environment, the environment before the file.

exit status: the program's own if it ended without an uncaught exception, else
"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Args:
        argv: the words after `dap-agent`; default: this process's.

    Returns:
        The exit status (`exit_status`). If the program ended by a signal, this process does, too.
    """
    _open_standard_streams()
    words = list(sys.argv[1:] if argv is None else argv)
    if words in (["--version"], ["-V"]):
        print(f"dap-agent {__version__}")
        return 0
    try:
        status = _dispatch(words)
        sys.stdout.flush()
    except UsageError as error:
        _say(error.message)
        return exit_status.USAGE
    except DapAgentError as error:
        _say(error.message)
        return exit_status.UNABLE
    except KeyboardInterrupt:
        status = -2
    except BrokenPipeError:
        # whoever read the listing has seen enough (`dap-agent journal list | head`); write nothing more at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return 0
    except SystemExit as error:
        # argparse, after --help
        return error.code if isinstance(error.code, int) else 0
    except Exception as error:  # noqa: BLE001 - the last line of defence: a bug of ours is told in a sentence, too
        from dap_agent.cli import failure

        _say(failure.describe(error))
        return exit_status.UNABLE
    if status < 0:
        _die_by(-status)
    return status


def _open_standard_streams() -> None:
    """Open what the caller has closed (`>&-`) on the null device, before a file or a socket of ours gets its number."""
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            opened = os.open(os.devnull, os.O_RDWR)
            if opened != number:
                os.dup2(opened, number)
                os.close(opened)
            os.set_inheritable(number, True)
            setattr(sys, name, open(number, mode, closefd=False))  # noqa: SIM115 - for the whole life of the process


def _say(message: str) -> None:
    print(f"dap-agent: {message}", file=sys.stderr)


def _die_by(number: int) -> NoReturn:
    """End this process by a signal, as the program did, so that whoever waits for us sees the same."""
    import resource
    import signal

    sys.stdout.flush()
    sys.stderr.flush()
    # the program has left its own core if it was to leave one
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
    os.kill(os.getpid(), number)
    # only if the signal is blocked or harmless by default: what a shell would show
    sys.exit(128 + number)


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence instead of a usage block and status 2."""

    def error(self, message: str) -> NoReturn:
        sentence = message[:1].upper() + message[1:]
        raise UsageError(f"{sentence.rstrip('.')}. See {self.prog} --help.")


def build_parser() -> argparse.ArgumentParser:
    """The parser of everything that is ours; the program of `run` and its arguments are split off before."""
    parser = _Parser(prog="dap-agent", description=DESCRIPTION, allow_abbrev=False)
    parser.add_argument("-V", "--version", action="version", version=f"dap-agent {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", title="commands")

    run = _command(commands, "run", "run a program and deal with its crash", usage=RUN_USAGE)
    run.epilog = RUN_EPILOG + _statuses()
    _add_options(run, "run")

    attach = _command(
        commands,
        "attach",
        "attach to a running program and wait for its next exception",
        usage="dap-agent attach [options] (--pid N | --connect HOST:PORT)",
    )
    attach.epilog = (
        "Ctrl-C detaches; the program goes on. A fix is written to the files and put into the running program; what\n"
        "it keeps of its old code is told.\n\nexit status: 0 if there was no exception, else\n"
        + _statuses(exit_status.FIXED, exit_status.STILL_FAILING)
    )
    where = attach.add_mutually_exclusive_group(required=True)
    where.add_argument("--pid", type=_process_id, metavar="N", help="the process to attach to")
    where.add_argument(
        "--connect",
        type=_address,
        metavar="HOST:PORT",
        help="where a program waits that was started with `python -m debugpy --listen HOST:PORT`",
    )
    attach.add_argument(
        "--now",
        action="store_true",
        help="do not wait for an exception: pause, show what each thread does, investigate, and let the program go on",
    )
    _add_options(attach, "attach")

    adapter = _command(
        commands,
        "adapter",
        "be the debug adapter of an editor, in place of debugpy's",
        usage="dap-agent adapter [options] [--listen HOST:PORT] [--connect HOST:PORT | -- COMMAND [args...]]",
    )
    adapter.epilog = (
        "Speaks the Debug Adapter Protocol on standard input and output. COMMAND is the adapter that the editor had\n"
        "configured before; default: that of the debugpy which is installed beside dap-agent.\n"
        'The options can also be given in a launch configuration, as keys below dapAgent: {"maxCost": 1}.\n'
    )
    adapter.add_argument(
        "--listen",
        type=_own_address,
        metavar="HOST:PORT",
        help="wait for the editor there; port 0 takes a free one and prints it; ends when the last client has left",
    )
    adapter.add_argument(
        "--connect",
        type=_address,
        metavar="HOST:PORT",
        help="an adapter that listens there, such as a debugpy --listen",
    )
    _add_options(adapter, "adapter")

    lsp = _command(
        commands,
        "lsp",
        "be a language server: code lenses and actions for the exceptions of live debug sessions",
        usage="dap-agent lsp",
    )
    lsp.add_argument("--stdio", action="store_true", help="speak on standard input and output (the default)")

    mcp = _command(
        commands,
        "mcp",
        "be an MCP server: live debug sessions for agents (Claude Code, OpenCode, Cursor, VS Code)",
        usage="dap-agent mcp [--workspace DIR ...] | dap-agent mcp --print-config HOST",
    )
    mcp.add_argument("--stdio", action="store_true", help="speak on standard input and output (the default)")
    mcp.add_argument(
        "--workspace",
        action="append",
        default=[],
        metavar="DIR",
        help="offer the sessions of this folder (repeatable; default: $CLAUDE_PROJECT_DIR, else the current folder)",
    )
    mcp.add_argument(
        "--print-config",
        choices=["claude", "opencode", "cursor", "vscode"],
        metavar="HOST",
        help="print what the host's configuration has to say: claude, opencode, cursor or vscode",
    )

    demo = _command(
        commands,
        "demo",
        "put a small project with a bug into a new folder and fix it",
        usage="dap-agent demo [options] [DIR]",
    )
    demo.epilog = (
        "Without a model the demo plays a recorded model from a file that ships with it; everything else is real.\n\n"
        "exit status: as for run\n"
    )
    demo.add_argument(
        "directory",
        nargs="?",
        metavar="DIR",
        help="the new folder (default: dap-agent-demo, or if that is taken dap-agent-demo-2 and so on)",
    )
    _add_options(demo, "demo")

    undo = _command(commands, "undo", "take back the last fix that was applied", usage="dap-agent undo [options]")
    undo.add_argument(
        "--force", action="store_true", help="also if the files were changed since; those changes are lost"
    )
    _add_options(undo, "undo")

    kept = _command(commands, "kept", "the last exception of a workspace and its fix, when the session is over")
    actions = kept.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
    listing = _command(actions, "list", "list what is kept of a workspace")
    listing.add_argument(
        "--workspace",
        action="append",
        default=[],
        metavar="DIR",
        help="of this folder (repeatable; default: the current folder)",
    )
    listing.add_argument("--json", action="store_true", dest="as_json", help="all of it as JSON, for an editor")
    for name, summary in (
        ("show", "print the report"),
        ("apply", "write the fix to the files"),
        ("undo", "take the fix out of the files again"),
        ("written", "note that an editor has written the fix to the files"),
        ("unwritten", "note that an editor has taken it back"),
        ("forget", "keep it no longer"),
    ):
        action = _command(actions, name, summary)
        action.add_argument("id", metavar="ID", help="of the session or of the fix, as `dap-agent kept list` says")
        if name == "apply":
            action.add_argument("--unproved", action="store_true", help="also if its proof has not succeeded")

    path = _command(commands, "path", "print the folder of an editor's plugin", usage="dap-agent path nvim")
    path.add_argument("editor", metavar="EDITOR", choices=["nvim"], help="nvim: the folder for Neovim's runtimepath")

    journal = _command(commands, "journal", "list, show or replay past investigations")
    actions = journal.add_subparsers(dest="action", metavar="ACTION", title="actions", required=True)
    listing = _command(actions, "list", "list the investigations, newest first")
    listing.add_argument("--json", action="store_true", dest="as_json", help="as JSON")
    show = _command(actions, "show", "show one investigation")
    show.add_argument("id", metavar="ID", help="an id, its beginning, a file, or last")
    replay = _command(actions, "replay", "run the program again with the model's turns from the journal")
    replay.add_argument("id", metavar="ID", help="an id, its beginning, a file, or last")
    replay.add_argument("--print", action="store_true", dest="only_print", help="only print the command that does it")
    return parser


def _command(commands: Any, name: str, summary: str, usage: str | None = None) -> argparse.ArgumentParser:
    parser: argparse.ArgumentParser = commands.add_parser(
        name,
        help=summary,
        description=summary[:1].upper() + summary[1:] + ".",
        usage=usage,
        allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    return parser


def _statuses(*without: int) -> str:
    return "".join(f"  {status}  {text}\n" for status, text in exit_status.MEANINGS.items() if status not in without)


def _add_options(parser: argparse.ArgumentParser, command: str) -> None:
    for option in options_of(command):
        text = f"{option.help} (default: {option.default_words})".replace("%", "%%")
        if option.is_switch:
            parser.add_argument(
                option.flag, dest=option.field, action=argparse.BooleanOptionalAction, default=None, help=text
            )
        elif option.repeatable:
            parser.add_argument(option.flag, action="append", metavar=option.metavar, help=text)
        else:
            parser.add_argument(option.flag, metavar=option.metavar, help=text)


def _process_id(text: str) -> int:
    if not text.isdigit() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"a process id is a number above 0, not {text!r}")
    return int(text)


def _address(text: str) -> tuple[str, int]:
    host, colon, port = text.rpartition(":")
    if not colon and text.isdigit():
        host, port = "127.0.0.1", text
    if not port.isdigit() or not 0 < int(port) < 65536:
        raise argparse.ArgumentTypeError(f"an address is HOST:PORT, for example localhost:5678, not {text!r}")
    return host.strip("[]") or "127.0.0.1", int(port)


def _own_address(text: str) -> tuple[str, int]:
    if text == "0" or text.endswith(":0"):
        return _address(text[:-1] + "1")[0], 0
    return _address(text)


def _dispatch(words: list[str]) -> int:
    parser = build_parser()
    target: Target | None = None
    wrapped: list[str] = []
    if words[:1] == ["adapter"] and "--" in words:
        place = words.index("--")
        words, wrapped = words[:place], words[place + 1 :]
        if not wrapped:
            raise UsageError("There is no adapter command after --.")
    if words[:1] == ["run"]:
        with_value = frozenset(option.flag for option in options_of("run") if not option.is_switch)
        ours, target = split(words[1:], with_value)
        words = ["run", *ours]
    parsed, unknown = parser.parse_known_args(words)
    if unknown:
        asked = " ".join(filter(None, ("dap-agent", parsed.command, getattr(parsed, "action", None))))
        raise UsageError(f"Unrecognized arguments: {' '.join(unknown)}. See {asked} --help.")
    if parsed.command is None:
        parser.print_help()
        return 0
    if parsed.command == "run":
        return _run(parsed, target)
    if parsed.command == "adapter":
        if wrapped and parsed.connect:
            raise UsageError("Give --connect or an adapter command after --, not both.")
        from dap_agent.cli import adapter

        flags = {option.field: getattr(parsed, option.field) for option in options_of("adapter")}
        return adapter.command(wrapped, listen=parsed.listen, connect=parsed.connect, flags=flags)
    if parsed.command == "lsp":
        from dap_agent.cli import lsp

        return lsp.command()
    if parsed.command == "mcp":
        from dap_agent.cli import mcp

        return mcp.command(parsed.workspace, parsed.print_config)
    if parsed.command == "attach":
        from dap_agent.cli import attach

        settings = _settings(parsed, _root_of(Path.cwd()))
        named = settings.workspace[0] if settings.workspace else None
        return attach.command(settings, named, pid=parsed.pid, address=parsed.connect, now=parsed.now)
    if parsed.command == "demo":
        from dap_agent.cli import demo

        directory = Path(parsed.directory) if parsed.directory else demo.free_folder(Path.cwd())
        return demo.command(directory, lambda root: _settings(parsed, root))
    if parsed.command == "undo":
        from dap_agent.cli import undo

        return undo.command(_first(_settings(parsed, root := _root_of(Path.cwd())), root), force=parsed.force)
    if parsed.command == "path":
        from dap_agent.cli import path

        return path.command(parsed.editor)
    if parsed.command == "kept":
        from dap_agent.cli import kept

        if parsed.action == "list":
            return kept.list_all(parsed.workspace, as_json=parsed.as_json)
        return kept.command(parsed.action, parsed.id, unproved=getattr(parsed, "unproved", False))
    from dap_agent.cli import journal

    if parsed.action == "list":
        return journal.list_all(as_json=parsed.as_json)
    if parsed.action == "show":
        return journal.show(parsed.id)
    return journal.replay(parsed.id, only_print=parsed.only_print)


def _run(parsed: argparse.Namespace, target: Target | None) -> int:
    if target is None:
        raise UsageError("There is nothing to run: give a PROGRAM or -m MODULE. See dap-agent run --help.")
    here = Path.cwd()
    if not target.is_module and not (here / target.name).exists():
        raise UsageError(f"There is no program {target.name}: give the path of a Python file, or -m MODULE.")
    root = _root_of(here if target.is_module else here / target.name)
    if any(root.glob("python3*")) and not target.is_module and root == (here / target.name).resolve().parent:
        root = _root_of(here)  # a command of an environment (`flask`): its folder is no project
    settings = _settings(parsed, root)
    from dap_agent.cli import run

    return run.command(settings, program_command(settings, target), _first(settings, root))


def program_command(settings: "Settings", target: Target) -> "ProgramCommand":
    """What the session has to start."""
    from dap_agent.session.launch import ProgramCommand

    return ProgramCommand(settings.python, target.name, target.is_module, target.args, Path.cwd())


def _settings(parsed: argparse.Namespace, root: Path) -> "Settings":
    from dap_agent.cli import settings

    flags = {option.field: getattr(parsed, option.field) for option in options_of(parsed.command)}
    return settings.load(parsed.command, flags, environ=os.environ, root=root)


def _root_of(program: Path) -> Path:
    from dap_agent.fixes.workspace import find_root

    return find_root(program)


def _first(settings: "Settings", root: Path) -> Path:
    return settings.workspace[0] if settings.workspace else root
