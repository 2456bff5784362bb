"""The code in the debuggee: there before the program runs, and told what the client wants. What fails stops nobody."""

import pytest

from dap_agent.proxy.options import Options, take
from dap_agent.proxy.stops import PATIENCE
from dap_agent.wire.messages import event, request, response

from .stops_side import NO_FRAMES, RAISED, SAYS, SET, SHOWN, UNCAUGHT, begin, evaluate, launched

__all__ = ["begin"]
CAN = {**SAYS, "supportsConfigurationDoneRequest": True, "supportsExceptionInfoRequest": True}
CAN_SHOWN = {**SHOWN, "supportsConfigurationDoneRequest": True, "supportsExceptionInfoRequest": True}
INSTALL = evaluate("install or stops {}")
WISH = evaluate("stops {'will_be_unhandled': True}")
DONE = "configurationDone"
WITHDRAWN = event("capabilities", {"capabilities": {"exceptionBreakpointFilters": [RAISED, UNCAUGHT]}})


@pytest.fixture
def waiting(begin):
    """The client has said all, and our side is not there yet."""

    def make(ours=None, **options):
        one = launched(begin(says=CAN, shown=CAN_SHOWN, **options), ours).to_adapter(INSTALL)
        return one.client(request(DONE, seq=4)).waits(PATIENCE)

    return make


def test_the_start_waits_for_it(waiting):
    one = waiting()
    one.adapter_answers("evaluate", {"result": "ok"}).to_adapter(request(DONE))
    one.adapter_answers(DONE).to_client(response(4, DONE))
    one.time_passes()


def test_it_does_not_wait_for_what_is_there(begin):
    one = launched(begin(says=CAN, shown=CAN_SHOWN)).to_adapter(INSTALL)
    one.adapter_answers("evaluate", {"result": "ok"})
    one.client(request(DONE, seq=4)).to_adapter(request(DONE))


def test_what_the_client_asks_meanwhile_comes_after(waiting):
    one = waiting().client(request("threads", seq=5)).client(request("pause", {"threadId": 1}, seq=6))
    one.adapter_answers("evaluate", {"result": "ok"})
    one.to_adapter(request(DONE)).to_adapter(request("threads")).to_adapter(request("pause", {"threadId": 1}))


def test_wishes_are_told_one_after_the_other_and_the_start_waits_for_all(begin):
    one = launched(begin(says=CAN, shown=CAN_SHOWN)).to_adapter(INSTALL)
    one.client(request(SET, {"filters": ["willBeUnhandled"]}, seq=3)).to_adapter(request(SET, {"filters": []}))
    one.client(request(DONE, seq=4)).waits(PATIENCE)
    one.adapter_answers("evaluate", {"result": "ok"}).to_adapter(WISH)
    one.adapter_answers(SET).to_client(response(3, SET))
    one.adapter_answers("evaluate", {"result": "ok"}).to_adapter(request(DONE))


def test_wishes_change_while_the_program_runs(waiting):
    one = waiting().adapter_answers("evaluate", {"result": "ok"}).to_adapter(request(DONE))
    one.adapter_answers(DONE).to_client(response(4, DONE))
    one.client(request(SET, {"filters": ["willBeUnhandled"]}, seq=5))
    one.to_adapter(WISH).to_adapter(request(SET, {"filters": []}))
    one.adapter_answers("evaluate", {"result": "ok"}).adapter_answers(SET).to_client(response(5, SET))
    one.client(request(SET, {"filters": ["willBeUnhandled", "raised"]}, seq=6))
    one.to_adapter(request(SET, {"filters": ["raised"]}))  # nothing new for our side
    one.client(request(SET, {"filters": []}, seq=7)).to_adapter(evaluate("stops {}"))
    one.to_adapter(request(SET, {"filters": []}))


def test_the_ignore_list_goes_along(begin):
    one = launched(begin(), {"ignore": ["KeyError", "app.Lost", "module:json", "module:app.db"]})
    ignored = "'ignore_types': ['KeyError', 'app.Lost'], 'ignore_modules': ['json', 'app.db']"
    one.to_adapter(evaluate("install or stops {" + ignored + "}"))


@pytest.mark.parametrize("wrong", ["KeyError", [5], [""], {"types": []}, None])
def test_an_ignore_list_that_is_none_is_told(wrong):
    _, options, complaints = take({"dapAgent": {"ignore": wrong}}, Options())
    assert options.ignore == () and "a list of exception types and of module:NAME entries" in complaints[0]


@pytest.mark.parametrize("answer", [{"result": "KeyError"}, {}], ids=str)
def test_a_failure_is_told_once_and_the_program_starts(waiting, answer):
    one = waiting().adapter_answers("evaluate", answer)
    one.tells_client("as they do with debugpy alone", category="console").to_adapter(request(DONE))
    one.client(request(SET, {"filters": ["willBeUnhandled"]}, seq=5)).to_adapter(WISH)
    one.to_adapter(request(SET, {"filters": []}))
    one.adapter_refuses("evaluate", "no")


def test_a_refused_evaluate_is_a_failure(waiting):
    one = waiting().adapter_refuses("evaluate", "Unable to find thread")
    one.tells_client("Unable to find thread", category="console").to_adapter(request(DONE))


def test_it_waits_only_so_long(waiting):
    one = waiting().client(request("threads", seq=5))
    one.time_passes().tells_client(f"within {PATIENCE:g} s", category="console").to_adapter(request(DONE)).to_adapter(
        request("threads")
    )
    one.adapter_answers("evaluate", {"result": "ok"})


@pytest.mark.parametrize("command", ["disconnect", "terminate"])
def test_who_leaves_meanwhile_leaves(begin, command):
    can = {"supportsTerminateRequest": True}
    one = launched(begin(says={**CAN, **can}, shown={**CAN_SHOWN, **can})).to_adapter(INSTALL)
    one.client(request(DONE, seq=4)).waits(PATIENCE)
    one.client(request(command, seq=5)).to_adapter(request(DONE)).to_adapter(request(command))


def test_an_adapter_that_dies_meanwhile_leaves_no_question_open(waiting):
    one = waiting().client(request("threads", seq=5))
    one.adapter_gone("It is dead.").refuses_client(2, "launch", "dead")
    one.refuses_client(4, DONE, "dead").refuses_client(5, "threads", "dead").notes("dead").tells_client(
        "dead"
    ).to_client(event("terminated"))


def test_the_pure_relay_puts_nothing_in(begin):
    one = begin(says=CAN, shown=CAN_SHOWN)
    one.client(request("launch", {"x": 1, "dapAgent": False}, seq=2)).to_client(WITHDRAWN).to_client(NO_FRAMES)
    one.to_adapter(request("launch", {"x": 1}))
    one.adapter(event("initialized")).published("initialized").to_client(event("initialized"))
    one.client(request(DONE, seq=4)).to_adapter(request(DONE))


def test_what_our_side_tells_is_for_us(waiting):
    one = waiting().adapter_answers("evaluate", {"result": "ok"}).to_adapter(request(DONE))
    one.adapter(event("dapAgentCrash", {"snapshot": {}})).published("dapAgentCrash")
    one.adapter(event("dapAgentStop", {"threadId": 7, "why": "the thread ends with it"})).published("dapAgentStop")


def test_what_fails_later_is_told_once(waiting):
    one = waiting().adapter_answers("evaluate", {"result": "ok"}).to_adapter(request(DONE))
    one.adapter(event("dapAgentTrouble", {"text": "TypeError: x"})).published("dapAgentTrouble")
    one.tells_client("TypeError: x", category="console")
    one.adapter(event("dapAgentTrouble", {"text": "TypeError: y"})).published("dapAgentTrouble")


STOPPED = {"reason": "exception", "threadId": 7, "text": "KeyError"}
INFO = {"exceptionId": "KeyError", "description": "'k'", "breakMode": "unhandled"}


def stopped_by_ours(one, thread=7):
    one.adapter_answers("evaluate", {"result": "ok"}).to_adapter(request(DONE))
    one.adapter(event("dapAgentStop", {"threadId": thread, "why": "the thread ends with it"})).published("dapAgentStop")
    return one.adapter(event("stopped", STOPPED)).to_client(event("stopped", STOPPED)).published("stopped")


def test_the_stop_at_a_raise_is_called_so(waiting):
    one = stopped_by_ours(waiting())
    for seq in (8, 9):  # however often it is asked
        one.client(request("exceptionInfo", {"threadId": 7}, seq=seq)).to_adapter(
            request("exceptionInfo", {"threadId": 7})
        )
        note = "'k'\n\nStopped at the raise, since nothing will handle it: the thread ends with it."
        one.adapter_answers("exceptionInfo", INFO).to_client(
            response(seq, "exceptionInfo", {**INFO, "description": note})
        )


@pytest.mark.parametrize("after", ["another thread", "the next stop"])
def test_another_stop_is_not(waiting, after):
    one = stopped_by_ours(waiting())
    thread = 8 if after == "another thread" else 7
    if after == "the next stop":
        one.adapter(event("stopped", STOPPED)).to_client(event("stopped", STOPPED)).published("stopped")
    one.client(request("exceptionInfo", {"threadId": thread}, seq=8))
    one.to_adapter(request("exceptionInfo", {"threadId": thread}))
    one.adapter_answers("exceptionInfo", INFO).to_client(response(8, "exceptionInfo", INFO))
