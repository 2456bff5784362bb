"""The exception filter that is ours: announced beside the adapter's, taken out of what the adapter is told."""

import pytest

from dap_agent.proxy.stops import FILTER
from dap_agent.wire.messages import event, request, response

from .playbook import refusal
from .stops_side import NO_FRAMES, RAISED, SAYS, SET, UNCAUGHT, begin, evaluate, launched

__all__ = ["begin"]


def test_it_is_announced_and_not_on_by_default(begin):
    begin()
    assert FILTER["default"] is False and FILTER["label"] == "Raised and not going to be handled"


@pytest.mark.parametrize(
    "says", [{"supportsDebuggerProperties": True}, {"exceptionBreakpointFilters": [UNCAUGHT]}, {}], ids=str
)
def test_an_adapter_that_is_not_debugpy_or_has_no_filters_keeps_what_it_says(begin, says):
    begin(says=says, shown=says)


def test_without_a_side_for_the_debuggee_it_is_not_offered(begin):
    one = begin(side=None, shown=SAYS)
    one.client(request("launch", {"x": 1}, seq=2)).to_adapter(request("launch", {"x": 1}))
    one.adapter(event("initialized")).published("initialized").to_client(event("initialized"))
    one.client(request(SET, {"filters": [FILTER["filter"]]}, seq=3))
    one.to_adapter(request(SET, {"filters": [FILTER["filter"]]}))  # not ours: the adapter may know it


@pytest.mark.parametrize(
    "given, passed",
    [
        ({"filters": ["willBeUnhandled", "uncaught"]}, {"filters": ["uncaught"]}),
        ({"filters": ["willBeUnhandled"]}, {"filters": []}),
        (
            {"filters": ["uncaught"], "filterOptions": [{"filterId": "willBeUnhandled"}, {"filterId": "raised"}]},
            {"filters": ["uncaught"], "filterOptions": [{"filterId": "raised"}]},
        ),
        (
            {"filters": ["willBeUnhandled"], "exceptionOptions": [{"breakMode": "always"}], "x": 1},
            {"filters": [], "exceptionOptions": [{"breakMode": "always"}], "x": 1},
        ),
    ],
)
def test_it_is_taken_out_of_what_the_adapter_is_told(begin, given, passed):
    one = launched(begin()).to_adapter(evaluate("install or stops {}"))
    one.client(request(SET, given, seq=3)).to_adapter(request(SET, passed))
    one.adapter_answers("evaluate", {"result": "ok"}).to_adapter(evaluate("stops {'will_be_unhandled': True}"))
    one.adapter_answers(SET).to_client(response(3, SET))
    one.adapter_answers("evaluate", {"result": "ok"})


@pytest.mark.parametrize("given", [{"filters": ["uncaught"]}, {"filters": 5}, {"filterOptions": [None]}, {}])
def test_what_does_not_name_it_passes_as_it_is(begin, given):
    one = launched(begin()).to_adapter(evaluate("install or stops {}"))
    one.client(request(SET, given, seq=3)).to_adapter(request(SET, given))
    one.adapter_answers("evaluate", {"result": "ok"})


@pytest.mark.parametrize(
    "given, answered, shown",
    [
        (["a", "willBeUnhandled", "b"], [{"id": 1}, {"id": 2}], [{"id": 1}, {"verified": True}, {"id": 2}]),
        (["willBeUnhandled"], [], [{"verified": True}]),
        (["a", "b"], [{"id": 1}, {"id": 2}], [{"id": 1}, {"id": 2}]),
        (["a", "willBeUnhandled"], [{"id": 1}, {"id": 2}], [{"id": 1}, {"id": 2}]),  # it counts in its own way
    ],
)
def test_the_answer_has_a_breakpoint_for_each_filter_of_the_client_s(begin, given, answered, shown):
    one = launched(begin()).to_adapter(evaluate("install or stops {}"))
    one.client(request(SET, {"filters": given}, seq=3))
    one.to_adapter(request(SET, {"filters": [name for name in given if name != FILTER["filter"]]}))
    one.adapter_answers(SET, {"breakpoints": answered}).to_client(response(3, SET, {"breakpoints": shown}))


def test_a_refusal_passes(begin):
    one = launched(begin()).to_adapter(evaluate("install or stops {}"))
    one.client(request(SET, {"filters": ["willBeUnhandled"]}, seq=3)).to_adapter(request(SET, {"filters": []}))
    one.adapter_refuses(SET, "not now").to_client(refusal(3, SET, "not now"))


def test_switched_off_it_is_withdrawn_and_nothing_is_put_into_the_debuggee(begin):
    one = begin()
    one.client(request("launch", {"x": 1, "dapAgent": False}, seq=2))
    one.to_client(event("capabilities", {"capabilities": {"exceptionBreakpointFilters": [RAISED, UNCAUGHT]}}))
    one.to_client(NO_FRAMES).to_adapter(request("launch", {"x": 1}))
    one.adapter(event("initialized")).published("initialized").to_client(event("initialized"))
    one.client(request(SET, {"filters": ["willBeUnhandled", "raised"]}, seq=3))
    one.to_adapter(request(SET, {"filters": ["raised"]}))  # it is no filter of the adapter's, whatever happens
    one.client(request("configurationDone", seq=4)).refuses_client(4, "configurationDone", "did not announce")
