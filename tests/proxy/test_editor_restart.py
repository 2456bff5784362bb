"""`restart`: the program is launched again in a fresh adapter; the client stays configured."""

import pytest

from dap_agent.proxy import editor
from dap_agent.wire.messages import event, request, response

from .conftest import DEBUGPY_SAYS, OUR_SOCKETS, SOCKETS

FILE = {"source": {"path": "a.py"}, "breakpoints": [{"line": 3}, {"line": 9}]}
OTHER = {"source": {"path": "b.py"}, "breakpoints": [{"line": 1}]}
FILTERS = {"filters": ["uncaught"]}
STOPPED = {"reason": "breakpoint", "threadId": 1, "hitBreakpointIds": [1]}
LEAVE = request("disconnect", {"restart": True, "terminateDebuggee": True})


def found(*ids, line=3):
    return {"breakpoints": [{"id": number, "verified": True, "line": line} for number in ids]}


def running(one, arguments=None):
    """Launched, with breakpoints in two files, stopped at one of them; a thread is known."""
    one.client(request("launch", arguments or {"program": "a.py", "dapAgent": {"nodelay": False}}, seq=2))
    one.to_adapter(request("launch", {"program": "a.py"}))
    one.adapter(event("initialized")).published("initialized").to_client(event("initialized"))
    one.client(request("setBreakpoints", {**FILE, "breakpoints": [{"line": 2}]}, seq=3))
    one.to_adapter(request("setBreakpoints", {**FILE, "breakpoints": [{"line": 2}]}))
    one.adapter_answers("setBreakpoints", found(0)).to_client(response(3, "setBreakpoints", found(0)))
    for seq, arguments, ids in ((4, FILE, (1, 2)), (5, OTHER, (3,))):
        one.client(request("setBreakpoints", arguments, seq=seq)).to_adapter(request("setBreakpoints", arguments))
        one.adapter_answers("setBreakpoints", found(*ids)).to_client(response(seq, "setBreakpoints", found(*ids)))
    one.client(request("setExceptionBreakpoints", FILTERS, seq=6)).to_adapter(
        request("setExceptionBreakpoints", FILTERS)
    )
    one.adapter_answers("setExceptionBreakpoints").to_client(response(6, "setExceptionBreakpoints"))
    one.client(request("configurationDone", seq=7)).to_adapter(request("configurationDone"))
    one.adapter_answers("configurationDone").to_client(response(7, "configurationDone"))
    one.adapter_answers("launch").to_client(response(2, "launch"))
    thread = event("thread", {"reason": "started", "threadId": 1})
    one.adapter(thread).published("thread").to_client(thread)
    one.adapter(event("stopped", STOPPED)).to_client(event("stopped", STOPPED)).published("stopped")
    return one


def leaving(one, arguments=None):
    """The client asks for the restart."""
    one.client(request("restart", arguments, seq=20)).to_adapter(LEAVE)
    one.to_client(event("continued", {"threadId": 1, "allThreadsContinued": True}))
    return one.to_client(event("thread", {"reason": "exited", "threadId": 1})).respawns()


def beginning(one, program="a.py"):
    """The fresh adapter is there and has answered `initialize`."""
    one.respawned().to_adapter(request("initialize", {"clientID": "x"}))
    one.adapter(SOCKETS).published("debugpySockets").to_client(OUR_SOCKETS)
    return one.adapter_answers("initialize", DEBUGPY_SAYS).to_adapter(request("launch", {"program": program}))


def configured(one):
    """It has been told all over again."""
    one.adapter(event("initialized")).published("initialized")
    one.to_adapter(request("setBreakpoints", FILE)).to_adapter(request("setBreakpoints", OTHER))
    one.to_adapter(request("setExceptionBreakpoints", FILTERS)).to_adapter(request("configurationDone", {}))
    one.adapter_answers("setBreakpoints", found(0, 1)).adapter_answers("setBreakpoints", found(2))
    one.adapter_answers("setExceptionBreakpoints").adapter_answers("configurationDone").silence()
    return one.adapter_answers("launch").to_client(response(20, "restart"))


def test_the_program_is_launched_again_and_everything_set_again(session):
    one = configured(beginning(leaving(running(session()))))
    one.epoch(2, stopped=False)
    one.adapter(event("stopped", {**STOPPED, "hitBreakpointIds": [0]}))
    one.to_client(event("stopped", {**STOPPED, "hitBreakpointIds": [1]})).published("stopped").epoch(3, stopped=True)


def test_breakpoints_keep_their_numbers_and_new_ones_meet_no_old(session):
    one = configured(beginning(leaving(running(session()))))
    moved = event("breakpoint", {"reason": "changed", "breakpoint": {"id": 2, "line": 4}})
    one.adapter(moved).published("breakpoint")
    one.to_client(event("breakpoint", {"reason": "changed", "breakpoint": {"id": 3, "line": 4}}))
    one.client(request("setBreakpoints", FILE, seq=21)).to_adapter(request("setBreakpoints", FILE))
    one.adapter_answers("setBreakpoints", found(3, 4)).to_client(response(21, "setBreakpoints", found(7, 8)))
    strange = event("breakpoint", {"reason": "changed"})
    one.adapter(strange).published("breakpoint").to_client(
        event("breakpoint", {"reason": "changed", "breakpoint": None})
    )


def test_a_breakpoint_that_is_elsewhere_now_is_told(session):
    one = beginning(leaving(running(session())))
    one.adapter(event("initialized")).published("initialized")
    one.to_adapter(request("setBreakpoints", FILE)).to_adapter(request("setBreakpoints", OTHER))
    one.to_adapter(request("setExceptionBreakpoints", FILTERS)).to_adapter(request("configurationDone", {}))
    one.adapter_answers("setBreakpoints", found(0, 1, line=5))
    for number in (1, 2):
        body = {"reason": "changed", "breakpoint": {"id": number, "verified": True, "line": 5}}
        one.to_client(event("breakpoint", body))
    one.adapter_refuses("setBreakpoints", "no such file").silence()
    one.adapter_answers("launch").to_client(response(20, "restart"))


def test_a_newer_configuration_is_used_and_kept(session):
    newer = {"arguments": {"program": "b.py", "dapAgent": {"nodelay": False}}}
    one = configured(beginning(leaving(running(session()), newer), program="b.py"))
    one.client(request("restart", {}, seq=20)).to_adapter(LEAVE).respawns()
    beginning(one, program="b.py")


def test_the_fresh_process_is_cured_again(session):
    one = session().client(request("launch", {}, seq=2)).to_adapter(request("launch", {}))
    one.adapter_answers("launch").to_client(response(2, "launch"))
    stopped = event("stopped", {"threadId": 1})
    for _ in range(2):
        one.adapter(stopped).to_client(stopped).published("stopped")
        one.to_adapter(request("evaluate", editor.oddities.no_delay_request()))
        one.client(request("restart", seq=20)).to_adapter(LEAVE)
        one.to_client(event("continued", {"threadId": 1, "allThreadsContinued": True})).respawns()
        one.respawned().to_adapter(request("initialize", {"clientID": "x"}))
        one.adapter_answers("initialize", DEBUGPY_SAYS).to_adapter(request("launch", {}))
        one.adapter_answers("launch").to_client(response(20, "restart"))  # noDebug: no `initialized`


def test_of_the_adapter_that_leaves_only_output_is_seen(session):
    one = running(session())
    one.client(request("evaluate", {"expression": "x"}, seq=10)).to_adapter(request("evaluate", {"expression": "x"}))
    one.client(request("restart", seq=20)).to_adapter(LEAVE).refuses_client(10, "evaluate", "restarted")
    one.to_client(event("continued", {"threadId": 1, "allThreadsContinued": True}))
    one.to_client(event("thread", {"reason": "exited", "threadId": 1})).respawns()
    for name in ("exited", "terminated", "stopped", "thread"):
        one.adapter(event(name)).silence()
    one.adapter(response(2, "evaluate")).adapter(request("runInTerminal", seq=70)).silence()
    one.adapter(event("output", {"output": "bye"})).published("output").to_client(event("output", {"output": "bye"}))
    one.epoch(2, stopped=False)


def test_what_the_client_asks_in_the_meantime_waits(session):
    one = leaving(running(session()))
    one.client(request("threads", seq=21)).client(request("setBreakpoints", OTHER, seq=22)).silence()
    one = beginning(one)
    one.client(request("stepBack", seq=23)).silence()
    one.adapter(event("initialized")).published("initialized")
    one.to_adapter(request("setBreakpoints", FILE)).to_adapter(request("setBreakpoints", OTHER))
    one.to_adapter(request("setExceptionBreakpoints", FILTERS)).to_adapter(request("configurationDone", {}))
    one.adapter_answers("launch").to_client(response(20, "restart")).to_adapter(request("threads"))
    one.to_adapter(request("setBreakpoints", OTHER)).refuses_client(23, "stepBack", "did not announce")


def test_too_much_waiting_is_refused(session, monkeypatch):
    monkeypatch.setattr(editor, "MAX_IN_FLIGHT", 1)
    one = leaving(running(session())).client(request("threads", seq=21)).silence()
    one.client(request("threads", seq=22)).refuses_client(22, "threads", "is being restarted")


@pytest.mark.parametrize("when", ["leaving", "beginning"])
def test_the_client_may_leave_in_the_middle(session, when):
    one = leaving(running(session())).client(request("threads", seq=21))
    one = one if when == "leaving" else beginning(one)
    one.client(request("disconnect", seq=22)).refuses_client(20, "restart", "was ended")
    one.refuses_client(21, "threads", "was ended").to_client(response(22, "disconnect")).abandons()
    if when == "leaving":
        one.respawned().silence()
    one.adapter_gone("x").silence()
    one.client(request("disconnect", seq=23)).to_client(response(23, "disconnect"))


def test_the_client_may_terminate_in_the_middle(session):
    one = leaving(running(session())).client(request("terminate", seq=22)).refuses_client(20, "restart", "was ended")
    one.to_client(response(22, "terminate")).to_client(event("terminated")).abandons().adapter_gone("x").silence()
    one.client(request("threads", seq=23)).refuses_client(23, "threads", "was ended")


def test_a_launch_that_fails_now_ends_the_session_with_the_reason(session):
    one = beginning(leaving(running(session())))
    one.adapter_refuses("launch", "no such file").refuses_client(20, "restart", "refused: no such file")
    one.notes("no such file").tells_client("no such file").to_client(event("terminated")).abandons()
    one.client(request("threads", seq=21)).refuses_client(21, "threads", "no such file")


def test_an_adapter_that_cannot_be_started_again(session):
    one = leaving(running(session())).respawn_fails("No Python there.").refuses_client(20, "restart", "No Python")
    one.notes("No Python").tells_client("No Python").to_client(event("terminated")).abandons()


def test_an_adapter_that_dies_in_the_handshake(session):
    one = beginning(leaving(running(session()))).adapter_gone("It died.").refuses_client(20, "restart", "has ended")
    one.abandons().notes("It died").tells_client("It died").to_client(event("terminated"))


def test_what_was_attached_to_is_not_restarted(session):
    one = session().client(request("attach", {"listen": {}}, seq=2))
    one.to_client(event("capabilities", {"capabilities": {"supportsRestartRequest": False}}))
    one.to_adapter(request("attach", {"listen": {}})).adapter_answers("attach").to_client(response(2, "attach"))
    one.client(request("restart", seq=3)).refuses_client(3, "restart", "cannot be restarted by the debugger", show=True)


def test_nothing_is_restarted_before_it_was_started(session):
    one = session().client(request("launch", {}, seq=2)).to_adapter(request("launch", {}))
    one.client(request("restart", seq=3)).refuses_client(3, "restart", "nothing to restart yet", show=True)


def test_an_adapter_that_can_do_it_itself_does(session):
    can = {"supportsRestartRequest": True}
    one = session(debugpy=False).adapter(event("capabilities", {"capabilities": can})).published("capabilities")
    one.to_client(event("capabilities", {"capabilities": can}))
    one.client(request("restart", seq=3)).to_adapter(request("restart"))


def test_a_session_over_a_socket_is_not_restarted(session):
    one = session(spawned=False).client(request("launch", {}, seq=2)).to_adapter(request("launch", {}))
    one.client(request("restart", seq=3)).refuses_client(3, "restart", "did not announce")
