"""The capability gate: what stock debugpy would never answer is answered here."""

import pytest

from dap_agent.proxy.capabilities import REQUIRED, refusal
from dap_agent.wire.messages import error_response, event, request, response

# debugpy 1.8.22 announces these; the ten below it neither announces nor answers.
DEBUGPY = {
    "supportsCompletionsRequest": True,
    "supportsConfigurationDoneRequest": True,
    "supportsExceptionInfoRequest": True,
    "supportsGotoTargetsRequest": True,
    "supportsModulesRequest": True,
    "supportsSetExpression": True,
    "supportsSetVariable": True,
    "supportsStepInTargetsRequest": True,
    "supportsTerminateRequest": True,
}
WEDGING = [
    "cancel", "restartFrame", "restart", "loadedSources", "breakpointLocations",
    "dataBreakpointInfo", "stepBack", "readMemory", "terminateThreads", "disassemble",
]  # fmt: skip


@pytest.mark.parametrize("command", WEDGING)
def test_what_wedges_debugpy_is_answered_here_and_the_session_goes_on(scenario, command):
    (
        scenario(client=True)
        .client(request("initialize", seq=1))
        .to_adapter(request("initialize"))
        .adapter_answers("initialize", DEBUGPY)
        .to_client(response(1, "initialize", DEBUGPY))
        .client(request(command, {}, seq=2))
        .refuses_client(2, command, "the session goes on")
        .ask(command, {})
        .failed("unsupported", command)
        .client(request("threads", seq=3))
        .to_adapter(request("threads"))
    )


def test_what_was_announced_passes(scenario):
    one = scenario(client=True, capabilities=DEBUGPY)
    for seq, command in enumerate(["exceptionInfo", "gotoTargets", "goto", "completions", "setVariable", "terminate"]):
        one.client(request(command, seq=seq)).to_adapter(request(command))


def test_before_initialize_nothing_optional_passes(scenario):
    one = scenario(client=True).client(request("completions", seq=1))
    one.refuses_client(1, "completions", "did not announce supportsCompletionsRequest")
    one.client(request("launch", seq=2)).to_adapter(request("launch"))


def test_a_capability_must_be_true(scenario):
    assert refusal("goto", {"supportsGotoTargetsRequest": "yes"}) is not None
    assert refusal("goto", {"supportsGotoTargetsRequest": True}) is None


def test_our_own_initialize_counts_too(scenario):
    one = scenario().ask("initialize").to_adapter(request("initialize"))
    one.adapter_answers("initialize", DEBUGPY).answered(DEBUGPY)
    one.ask("modules").to_adapter(request("modules"))


def test_a_refused_initialize_announces_nothing(scenario):
    one = scenario().ask("initialize").to_adapter(request("initialize"))
    one.adapter_refuses("initialize", "no").failed("refused", "no")
    one.ask("modules").failed("unsupported")


def test_capabilities_may_change_in_the_session(scenario):
    changed = event("capabilities", {"capabilities": {"supportsStepBack": True, "supportsModulesRequest": False}})
    one = scenario(client=True, capabilities=DEBUGPY).adapter(changed).published("capabilities").to_client(changed)
    one.client(request("stepBack", seq=1)).to_adapter(request("stepBack"))
    one.client(request("modules", seq=2)).refuses_client(2, "modules", "supportsModulesRequest")


def test_cancel_is_neither_forwarded_nor_announced(scenario):
    can = {"supportsCancelRequest": True, "supportsModulesRequest": True}
    shown = {"supportsModulesRequest": True}
    one = scenario(client=True).client(request("initialize", seq=1)).to_adapter(request("initialize"))
    one.adapter_answers("initialize", can).to_client(response(1, "initialize", shown))
    one.client(request("cancel", {"requestId": 1}, seq=2)).refuses_client(2, "cancel", "not supported")
    one.adapter(event("capabilities", {"capabilities": can})).published("capabilities")
    one.to_client(event("capabilities", {"capabilities": shown}))


def test_the_reason_survives_a_template(scenario):
    shown = error_response(1, "x", "a {brace}")["body"]["error"]
    assert shown["format"] == "{reason}" and shown["variables"] == {"reason": "a {brace}"}


def test_every_gated_command_names_a_capability():
    assert all(name.startswith("supports") for name in REQUIRED.values())


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        ({"message": "NameError: x"}, "NameError: x"),
        (
            {"message": "short", "body": {"error": {"format": "{a} is {b}", "variables": {"a": "x", "b": "bad"}}}},
            "x is bad",
        ),
        ({}, "gave no reason"),
        ({"message": 5, "body": {"error": {"format": 5, "variables": 7}}}, "gave no reason"),
    ],
)
def test_a_refusal_is_told_in_the_adapters_words(scenario, answer, text):
    one = scenario().ask("evaluate").to_adapter(request("evaluate"))
    one.adapter({"type": "response", "request_seq": 1, "success": False, "command": "evaluate", **answer})
    one.failed("refused", text)
