"""Everything a command talks through: the screen, the terminal for questions, and the JSON report."""

import contextlib
from collections.abc import Iterator

from dap_agent.cli import exit_status, json_report
from dap_agent.cli.json_report import Report, StandardOutput
from dap_agent.cli.settings import Settings
from dap_agent.cli.terminal import Terminal
from dap_agent.cli.ui import Ui
from dap_agent.errors import DapAgentError


@contextlib.contextmanager
def outputs(settings: Settings, report: Report) -> Iterator[Ui]:
    """The way to talk to the user that fits the settings; the report is written at the end, also after a failure.

    Args:
        settings: `json` is `-`: standard output is kept for the report, and nothing else is said.
        report: to be filled in meanwhile.

    Raises:
        DapAgentError: the report cannot be written.
    """
    silent = settings.json == "-"
    with contextlib.ExitStack() as stack:
        stdout = stack.enter_context(contextlib.closing(StandardOutput())) if silent else None
        terminal = None if silent else Terminal.open()
        if terminal is not None:
            stack.enter_context(terminal)
        try:
            yield Ui.create(silent=silent, terminal=terminal)
        except DapAgentError as error:
            report.exit_status, report.error = exit_status.UNABLE, error.message
            raise
        finally:
            if settings.json is not None:
                json_report.write(report, settings.json, stdout)
