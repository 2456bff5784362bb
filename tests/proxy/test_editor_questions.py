"""The client's requests to us: which they are, and that each is answered exactly once whatever happens."""

import pytest

from dap_agent.proxy import console, core
from dap_agent.wire.messages import error_response, event, request, response

from .conftest import DEBUGPY_SAYS
from .test_editor_restart import FILE, FILTERS, LEAVE, OTHER, beginning, configured, leaving, running

STATUS = "dapAgent/status"


def repl(text, **more):
    return {"expression": text, "context": "repl", **more}


def typed(text):
    return {"text": text, "column": len(text) + 1}


OURS = [
    (STATUS, {}),
    ("dapAgent/", {}),
    ("dapAgent/no such thing", {"a": [1]}),
    ("evaluate", repl("/why")),
    ("evaluate", repl("  /ask what is this?\n", frameId=3)),
    ("evaluate", repl("/")),
    ("completions", typed("/")),
    ("completions", typed(" /as")),
]
THEIRS = [
    ("dapAgent", {}),
    ("evaluate", repl("1 / 2")),
    ("evaluate", repl("")),
    ("evaluate", repl("//server/share")),
    ("evaluate", repl(" // 2")),
    ("evaluate", {"expression": "/why"}),
    ("evaluate", {"expression": "/why", "context": "watch"}),
    ("evaluate", {"expression": "/why", "context": "hover"}),
    ("evaluate", {"expression": ["/why"], "context": "repl"}),
    ("completions", typed("a/")),
    ("completions", typed("//")),
    ("completions", {"column": 1}),
]


@pytest.mark.parametrize(("command", "arguments"), OURS)
def test_what_is_ours_is_answered_here(session, command, arguments):
    one = session().client(request(command, arguments, seq=2)).for_agent(command, arguments)
    one.answer_client({"result": "so"}).to_client(response(2, command, {"result": "so"}))
    one.answer_client({"result": "again"}).silence()


def test_progress_of_ours_can_be_cancelled(session):
    arguments = {"progressId": "dapAgent/1a2b3c4d"}
    one = session().client(request("cancel", arguments, seq=2)).for_agent("cancel", arguments)
    one.answer_client().to_client(response(2, "cancel"))


@pytest.mark.parametrize("arguments", [{}, {"requestId": 3}, {"progressId": "theirs"}, {"progressId": 5}])
def test_nothing_else_can_be_cancelled(session, arguments):
    session().client(request("cancel", arguments, seq=2)).refuses_client(2, "cancel", "not supported in this session")


@pytest.mark.parametrize(("command", "arguments"), THEIRS)
def test_what_is_not_ours_goes_to_the_adapter_as_it_is(session, command, arguments):
    assert not console.is_ours(command, arguments)
    one = session()
    one.proxy.capabilities["supportsCompletionsRequest"] = True
    one.client(request(command, arguments, seq=2)).to_adapter(request(command, arguments))
    one.adapter_answers(command).to_client(response(2, command))


@pytest.mark.parametrize(("command", "arguments"), OURS)
def test_a_pure_relay_has_no_commands(session, command, arguments):
    one = session()
    one.proxy.capabilities["supportsCompletionsRequest"] = True
    one.client(request("launch", {"program": "a.py", "dapAgent": False}, seq=2))
    one.to_client(event("capabilities", {"capabilities": {"supportsRestartRequest": False}}))
    one.to_adapter(request("launch", {"program": "a.py"}))
    one.client(request(command, arguments, seq=3)).to_adapter(request(command, arguments))


def test_without_arguments(session):
    message = {"seq": 2, "type": "request", "command": STATUS}
    session().client(message).for_agent(STATUS).answer_client().to_client(response(2, STATUS))
    message = {"seq": 3, "type": "request", "command": STATUS, "arguments": "nonsense"}
    session().client(message).for_agent(STATUS).answer_client().to_client(response(3, STATUS))


def test_an_error_is_a_sentence(session):
    one = session().client(request(STATUS, seq=2)).for_agent(STATUS)
    one.answer_client(error="It {cannot} be.").to_client(error_response(2, STATUS, "It {cannot} be."))


def test_a_body_that_is_no_json_leaves_the_client_waiting_for_another(session):
    one = session().client(request(STATUS, seq=2)).for_agent(STATUS)
    with pytest.raises(TypeError):
        one.answer_client({"a": object()})
    one.answer_client({"a": 1}).to_client(response(2, STATUS, {"a": 1}))


def test_answers_come_in_any_order(session):
    one = session()
    for seq in (2, 3):
        one.client(request("evaluate", repl(f"/ask {seq}"), seq=seq)).for_agent("evaluate", repl(f"/ask {seq}"))
    one.answer_client({"n": 3}).to_client(response(3, "evaluate", {"n": 3}))
    one.client(request("threads", seq=4)).to_adapter(request("threads"))
    one.answer_client({"n": 2}, nth=0).to_client(response(2, "evaluate", {"n": 2}))


def test_it_is_answered_after_the_adapter_is_gone_and_asked_then(session):
    one = session().client(request(STATUS, seq=2)).for_agent(STATUS)
    one.adapter_gone("It was killed.").notes("It was killed.").tells_client("It was killed.")
    one.to_client(event("terminated"))
    one.answer_client({"a": 1}).to_client(response(2, STATUS, {"a": 1}))
    one.client(request("evaluate", repl("/why"), seq=3)).for_agent("evaluate", repl("/why"))
    one.answer_client({"a": 2}).to_client(response(3, "evaluate", {"a": 2}))
    one.client(request("evaluate", repl("x"), seq=4)).refuses_client(4, "evaluate", "It was killed.")


def test_it_is_answered_while_the_program_is_restarted(session):
    one = leaving(running(session()))
    one.client(request(STATUS, seq=21)).for_agent(STATUS).answer_client({"a": 1}).to_client(
        response(21, STATUS, {"a": 1})
    )
    one.client(request("evaluate", repl("/ask"), seq=22)).for_agent("evaluate", repl("/ask"))
    one = configured(beginning(one))
    one.answer_client({"a": 2}).to_client(response(22, "evaluate", {"a": 2}))


def test_a_client_that_leaves_is_not_answered(session):
    one = session().client(request(STATUS, seq=2)).for_agent(STATUS)
    one.client_gone().answer_client({"a": 1}).silence()


def test_what_is_open_at_the_end_is_refused_before_the_client_is_hung_up_on(session):
    one = session().client(request(STATUS, seq=2)).for_agent(STATUS)
    one.client(request("disconnect", seq=3)).to_adapter(request("disconnect"))
    one.adapter_answers("disconnect").to_client(response(3, "disconnect"))
    one.refuses_client(2, STATUS, "has ended before").hangs_up()
    one.answer_client({"a": 1}).silence()


def test_a_broken_client_is_told_that_it_will_not_be_answered(session):
    one = session().client(request(STATUS, seq=2)).for_agent(STATUS)
    one.client_broken("Too big.").notes("Too big.").tells_client("Too big.")
    one.refuses_client(2, STATUS, "has ended before").hangs_up()


def test_too_many_are_refused(session, monkeypatch):
    monkeypatch.setattr(core, "MAX_IN_FLIGHT", 2)
    one = session()
    for seq in (2, 3):
        one.client(request(STATUS, seq=seq)).for_agent(STATUS)
    one.client(request(STATUS, seq=4)).refuses_client(4, STATUS, "Too many requests")
    one.answer_client({}, nth=0).to_client(response(2, STATUS, {}))
    one.client(request(STATUS, seq=5)).for_agent(STATUS)


def test_a_number_used_twice_is_answered_twice(session):
    one = session().client(request(STATUS, seq=2)).for_agent(STATUS)
    one.client(request(STATUS, seq=2)).for_agent(STATUS)
    one.answer_client({"a": 1}).to_client(response(2, STATUS, {"a": 1}))
    one.answer_client({"a": 2}).to_client(response(2, STATUS, {"a": 2}))
    one.answer_client({"a": 3}).silence()


def test_events_of_ours_are_numbered_among_the_others(session):
    one = session().tell_client(event("dapAgentReady", {"a": 1})).to_client(event("dapAgentReady", {"a": 1}))
    one.adapter(event("output", {"output": "x"})).published("output").to_client(event("output", {"output": "x"}))
    one.client_gone().tell_client(event("dapAgentReady")).silence()


def test_what_the_client_has_said_can_be_read(session):
    one = session()
    assert (one.editor.client, one.editor.begun) == ({"clientID": "x"}, {})
    one.client(request("launch", {"program": "a.py", "dapAgent": {"nodelay": False}}, seq=2))
    one.to_adapter(request("launch", {"program": "a.py"}))
    assert one.editor.begun == {"program": "a.py"}


# A restart by us


def restarting(one):
    """We have asked for it at a stop."""
    one.restart().to_adapter(LEAVE)
    one.to_client(event("continued", {"threadId": 1, "allThreadsContinued": True}))
    return one.to_client(event("thread", {"reason": "exited", "threadId": 1})).respawns()


def test_we_can_restart_the_program(session):
    one = restarting(running(session()))
    one.client(request("threads", seq=21)).silence()
    one = beginning(one)
    one.restart().failed("unsupported", "is being restarted already")
    one.adapter(event("initialized")).published("initialized")
    one.to_adapter(request("setBreakpoints", FILE)).to_adapter(request("setBreakpoints", OTHER))
    one.to_adapter(request("setExceptionBreakpoints", FILTERS)).to_adapter(request("configurationDone", {}))
    one.adapter_answers("launch").answered(nth=0).to_adapter(request("threads"))


def test_our_restart_fails_for_the_same_reasons(session):
    session().restart().failed("unsupported", "has not been started")
    session(spawned=False).restart().failed("unsupported", "supportsRestartRequest")
    one = session().client(request("attach", {"connect": {"host": "127.0.0.1", "port": 1}}, seq=2))
    one.to_client(event("capabilities", {"capabilities": {"supportsRestartRequest": False}}))
    one.to_adapter(request("attach", {"connect": {"host": "127.0.0.1", "port": 1}}))
    one.restart().failed("unsupported", "attached")


def test_our_restart_ends_with_the_client_that_leaves(session):
    one = restarting(running(session()))
    one.client(request("disconnect", seq=21)).failed("closed", "ended while the program was being restarted")
    one.to_client(response(21, "disconnect")).abandons()


def test_our_restart_fails_when_there_is_no_fresh_adapter(session):
    one = restarting(running(session()))
    one.respawn_fails("No such file.").failed("closed", "No such file.")
    one.notes("No such file.").tells_client("No such file.").to_client(event("terminated")).abandons()


def test_the_gate_keeps_its_word(session):
    """Nothing of ours is announced that the adapter has not."""
    assert session().proxy.capabilities == DEBUGPY_SAYS
