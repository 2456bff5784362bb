"""`restartFrame` of a client: asked of the debuggee, answered, and the program goes on; what is wrong is said."""

import pytest

from dap_agent.wire.messages import error_response, event, request, response

from .stops_side import NO_FRAMES, RAISED, SAYS, UNCAUGHT, begin, evaluate, launched

__all__ = ["begin"]
STOPPED = event("stopped", {"reason": "exception", "threadId": 7})
ASKED = {"expression": "install or restart_shown {'halted': 7, 'thread': 7, 'frame': 3}", "context": "clipboard"}
EVALUATE = request("evaluate", {**ASKED, "frameId": 3})
CONTINUE = request("continue", {"threadId": 7})


def asks(one, seq=5, frame=3):
    return one.client(request("restartFrame", {"frameId": frame}, seq=seq))


@pytest.fixture
def stopped(begin):
    """A program that stands, with our side in it."""
    one = launched(begin()).to_adapter(evaluate("install or stops {}"))
    one.adapter_answers("evaluate", {"result": "ok"}).adapter_answers("launch").to_client(response(2, "launch"))
    return one.adapter(STOPPED).to_client(STOPPED).published("stopped")


def refused(one, text, seq=5):
    one.to_client(error_response(seq, "restartFrame", text, show=True))


def test_it_is_answered_and_the_program_goes_on(stopped):
    asks(stopped).to_adapter(EVALUATE)
    stopped.adapter_answers("evaluate", {"result": "ok"}).to_client(response(5, "restartFrame")).to_adapter(CONTINUE)
    goes_on = event("continued", {"threadId": 7, "allThreadsContinued": True})
    stopped.adapter(goes_on).published("continued").to_client(goes_on)
    stopped.adapter_answers("continue")


def test_a_refusal_leaves_the_program_as_it_stands(stopped):
    asks(stopped).to_adapter(EVALUATE)
    refused(stopped.adapter_answers("evaluate", {"result": "Restart the program instead."}),
            "it said Restart the program instead.")  # fmt: skip
    asks(stopped, seq=6).to_adapter(EVALUATE)
    refused(stopped.adapter_refuses("evaluate", "no such frame"), "no such frame", seq=6)


def test_one_at_a_time(stopped):
    asks(stopped).to_adapter(EVALUATE)
    refused(asks(stopped, seq=6), "A frame is being restarted already.", seq=6)
    stopped.adapter_answers("evaluate", {"result": "ok"}).to_client(response(5, "restartFrame")).to_adapter(CONTINUE)


def test_a_client_that_was_faster_is_not_overtaken(stopped):
    asks(stopped).to_adapter(EVALUATE)
    stopped.client(request("continue", {"threadId": 7}, seq=6)).to_adapter(CONTINUE)
    stopped.adapter_answers("continue").to_client(response(6, "continue"))
    stopped.adapter_answers("evaluate", {"result": "ok"}).to_client(response(5, "restartFrame"))


def test_what_is_wrong_is_said(begin, stopped):
    refused(asks(stopped, frame="x"), "restartFrame wants the frameId of a frame of the stopped thread.")
    running = launched(begin()).to_adapter(evaluate("install or stops {}"))
    refused(asks(running), "The program is not stopped, so there is no frame to restart.")


def test_an_adapter_that_can_do_it_does_it(begin):
    can = {**SAYS, "supportsRestartFrame": True}
    one = begin(side=None, says=can, shown=can)
    asks(one).to_adapter(request("restartFrame", {"frameId": 3}))


def test_switched_off_it_is_withdrawn_and_refused(begin):
    one = begin()
    one.client(request("launch", {"x": 1, "dapAgent": False}, seq=2))
    one.to_client(event("capabilities", {"capabilities": {"exceptionBreakpointFilters": [RAISED, UNCAUGHT]}}))
    one.to_client(NO_FRAMES).to_adapter(request("launch", {"x": 1}))
    asks(one).refuses_client(5, "restartFrame", "did not announce")
