"""Which requests an adapter must have announced before it may be sent them.

Stock debugpy (1.8.22, debugpy#556) never answers a valid request that it does not support, and answers nothing after
it; only `success: false` from here keeps the session alive.
"""

from collections.abc import Mapping
from typing import Any

# The specification's wording is "Clients should only call this request if the corresponding capability ... is true".
REQUIRED: Mapping[str, str] = {
    "breakpointLocations": "supportsBreakpointLocationsRequest",
    "cancel": "supportsCancelRequest",
    "completions": "supportsCompletionsRequest",
    "configurationDone": "supportsConfigurationDoneRequest",
    "dataBreakpointInfo": "supportsDataBreakpoints",
    "disassemble": "supportsDisassembleRequest",
    "exceptionInfo": "supportsExceptionInfoRequest",
    "goto": "supportsGotoTargetsRequest",
    "gotoTargets": "supportsGotoTargetsRequest",
    "loadedSources": "supportsLoadedSourcesRequest",
    "modules": "supportsModulesRequest",
    "readMemory": "supportsReadMemoryRequest",
    "restart": "supportsRestartRequest",
    "restartFrame": "supportsRestartFrame",
    "reverseContinue": "supportsStepBack",
    "setDataBreakpoints": "supportsDataBreakpoints",
    "setExpression": "supportsSetExpression",
    "setFunctionBreakpoints": "supportsFunctionBreakpoints",
    "setInstructionBreakpoints": "supportsInstructionBreakpoints",
    "setVariable": "supportsSetVariable",
    "stepBack": "supportsStepBack",
    "stepInTargets": "supportsStepInTargetsRequest",
    "terminate": "supportsTerminateRequest",
    "terminateThreads": "supportsTerminateThreadsRequest",
    "writeMemory": "supportsWriteMemoryRequest",
}

# Never forwarded, whatever the adapter announces: its `requestId` speaks of another sequence space, and
# debugpy#173 has no way to cancel.
NEVER_FORWARDED = frozenset({"cancel"})

# Requests after which frame ids and variable references are worthless.
RESUMING = frozenset({"continue", "goto", "next", "restartFrame", "reverseContinue", "stepBack", "stepIn", "stepOut"})


def refusal(command: str, capabilities: Mapping[str, Any]) -> str | None:
    """Why *command* must not reach an adapter that announced *capabilities*; None if it may.

    A command outside the specification may: debugpy answers those with a clean error.
    """
    if command in NEVER_FORWARDED:
        return f"'{command}' is not supported in this session; the request was not passed on and the session goes on."
    needed = REQUIRED.get(command)
    if needed is None or capabilities.get(needed) is True:
        return None
    return (
        f"The debug adapter does not support '{command}' (it did not announce {needed}); "
        f"the request was not passed on and the session goes on."
    )


def announced(body: Mapping[str, Any]) -> dict[str, Any]:
    """The adapter's capabilities as a client may be told them: without those that end here."""
    return {name: value for name, value in body.items() if name != "supportsCancelRequest"}
