"""A failure that is a bug of ours: one sentence for the user, the traceback in a file."""

import traceback


def describe(error: BaseException) -> str:
    """Say what failed, and keep the traceback.

    Args:
        error: an exception that no user should ever meet.

    Returns:
        One sentence, naming the file with the traceback.
    """
    from dap_agent.session.paths import state_dir

    what = f"dap-agent itself failed with {type(error).__name__}: {error}; this is a bug in dap-agent"
    text = "".join(traceback.format_exception(type(error), error, error.__traceback__))
    try:
        path = state_dir() / "last-failure.txt"
        path.write_text(text, encoding="utf-8", errors="backslashreplace")
    except OSError:
        return f"{what}.\n{text}"
    return f"{what}. Its traceback is in {path}: please report it."
