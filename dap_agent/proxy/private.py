"""What the environment holds for dap-agent alone: keys that an editor has in its keyring, not in the user's shell."""

from collections.abc import Mapping

VARIABLE = "DAP_AGENT_PRIVATE"
"""Names of environment variables, separated by commas, that no program of the user's gets."""


def handed_on(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment for a process that runs the user's code.

    Args:
        environ: to start from.
    """
    kept = {VARIABLE, *(name.strip() for name in environ.get(VARIABLE, "").split(","))}
    return {name: value for name, value in environ.items() if name not in kept}
