"""Children come through us: what the client is told to connect to, and what the adapter hears of it."""

import pytest

from dap_agent.proxy import oddities
from dap_agent.wire.messages import event, request, response

from .conftest import OUR_SOCKETS, SOCKETS
from .playbook import refusal

ATTACH = {
    "name": "Subprocess 7",
    "subProcessId": 7,
    "justMyCode": False,
    "connect": {"host": "127.0.0.1", "port": 4000},
}
OURS = {**ATTACH, "connect": {"host": "127.0.0.1", "port": 5000}}


def start(configuration):
    return request("startDebugging", {"request": "attach", "configuration": configuration}, seq=70)


def test_start_debugging_names_our_door(session):
    one = session().adapter(start(ATTACH)).adopts("127.0.0.1", 4000, 7).door("127.0.0.1", 5000).to_client(start(OURS))
    one.client_answers("startDebugging").to_adapter(response(70, "startDebugging"))


def test_debugpy_attach_names_our_door(session):
    attach = event("debugpyAttach", {**ATTACH, "request": "attach"})
    one = session().adapter(attach).published("debugpyAttach").adopts("127.0.0.1", 4000, 7)
    one.door("127.0.0.1", 5000).to_client(event("debugpyAttach", {**OURS, "request": "attach"}))


def test_what_an_editor_reads_for_its_own_ends_is_not_the_parents(session):
    inherited = {**ATTACH, "debugServer": 1234, "purpose": ["debug-test"], "console": "integratedTerminal"}
    one = session().adapter(start(inherited)).adopts("127.0.0.1", 4000, 7).door("127.0.0.1", 5000)
    one.to_client(start({**OURS, "debugServer": 5000, "console": "integratedTerminal"}))


def test_the_adapter_hears_its_own_address_so_that_grandchildren_come_through_us_too(session):
    one = session().client(request("attach", OURS, seq=2)).attached(7)
    one.to_client(event("capabilities", {"capabilities": {"supportsRestartRequest": False}}))
    one.to_adapter(request("attach", ATTACH))
    grandchild = {**ATTACH, "subProcessId": 8}
    one.adapter(start(grandchild)).adopts("127.0.0.1", 4000, 8).door("127.0.0.1", 5000)
    one.to_client(start({**grandchild, "connect": OURS["connect"]}))


def test_a_client_that_says_no_leaves_no_child_waiting(session):
    one = session().adapter(start(ATTACH)).adopts("127.0.0.1", 4000, 7).door("127.0.0.1", 5000).to_client(start(OURS))
    one.client_refuses("startDebugging", "no").to_adapter(refusal(70, "startDebugging", "no")).releases(7)


@pytest.mark.parametrize(
    "configuration",
    [
        {},
        {"connect": None},
        {"connect": {"host": 5, "port": 4000}},
        {"connect": {"host": "h", "port": "4000"}},
        {"connect": {"host": "h", "port": 0}},
        {"connect": {"host": "h", "port": True}},
    ],
)
def test_a_child_without_an_address_passes(session, configuration):
    session().adapter(start(configuration)).to_client(start(configuration))
    attach = event("debugpyAttach", configuration)
    session().adapter(attach).published("debugpyAttach").to_client(attach)


def test_start_debugging_without_a_configuration_passes(session):
    for arguments in (None, {}, {"configuration": []}):
        message = request("startDebugging", arguments, seq=70)
        session().adapter(message).to_client(message)


def test_the_adapters_ports_are_shown_as_ours(session):
    session().adapter(SOCKETS).published("debugpySockets").to_client(OUR_SOCKETS)
    more = [{"host": "127.0.0.1", "port": 4001, "internal": True}, "x"]
    two = event("debugpySockets", {"sockets": [*SOCKETS["body"]["sockets"], *more]})
    one = session().adapter(two).published("debugpySockets")
    one.to_client(event("debugpySockets", {"sockets": [*OUR_SOCKETS["body"]["sockets"], *more]}))
    strange = event("debugpySockets", {"sockets": 5})
    session().adapter(strange).published("debugpySockets").to_client(strange)


def test_children_outlive_an_attached_parent(session):
    one = session().client(request("attach", {"listen": {}}, seq=2))
    one.to_client(event("capabilities", {"capabilities": {"supportsRestartRequest": False}}))
    one.to_adapter(request("attach", {"listen": {}})).adapter_answers("attach").to_client(response(2, "attach"))
    one.editor.children = 1
    over = event("terminated", {})
    one.adapter(over).published("terminated").to_client(over)
    one.client(request("disconnect", {"terminateDebuggee": True}, seq=3))
    one.to_adapter(request("disconnect", {"terminateDebuggee": True}))  # the user wants the end of all
    one.adapter_refuses("disconnect", "no").to_client(refusal(3, "disconnect", "no"))
    one.client(request("disconnect", {}, seq=4)).to_client(response(4, "disconnect")).hangs_up()


@pytest.mark.parametrize(("command", "children"), [("launch", 1), ("attach", 0)])
def test_disconnect_goes_to_the_adapter_when_no_child_can_outlive_it(session, command, children):
    one = session(spawned=command == "launch").client(request(command, {}, seq=2)).to_adapter(request(command, {}))
    one.adapter_answers(command).to_client(response(2, command))
    one.editor.children = children
    over = event("terminated")
    one.adapter(over).published("terminated").to_client(over)
    one.client(request("disconnect", {}, seq=3)).to_adapter(request("disconnect", {}))
    one.adapter_answers("disconnect").to_client(response(3, "disconnect")).hangs_up()


@pytest.fixture
def over_before_the_answer(session):
    """A program that is over while the client still waits for the answer to its `launch` or `attach` (request 2)."""

    def begin(command):
        one = session(spawned=False).client(request(command, {}, seq=2)).to_adapter(request(command, {}))
        one.client(request("threads", seq=3)).to_adapter(request("threads"))
        over = event("terminated", {})
        return one.adapter(over).published("terminated").to_client(over).to_adapter(request(oddities.HARMLESS))

    return begin


@pytest.mark.parametrize("command", ["launch", "attach"])
def test_a_program_that_dies_before_it_is_configured_leaves_no_request_open(over_before_the_answer, command):
    one = over_before_the_answer(command)
    one.adapter_answers(oddities.HARMLESS).refuses_client(2, command, "has ended before")
    one.adapter_answers(command).silence()  # too late
    one.adapter_answers("threads").to_client(response(3, "threads"))


@pytest.mark.parametrize("command", ["launch", "attach"])
def test_the_answer_of_a_short_program_may_come_after_its_end(over_before_the_answer, command):
    one = over_before_the_answer(command)
    one.adapter_answers(command).to_client(response(2, command))
    printed = event("output", {"category": "stdout", "output": "all that it has printed"})
    one.adapter(printed).published("output").to_client(printed)
    one.adapter_refuses(oddities.HARMLESS, "no").silence()


def test_an_adapter_that_goes_before_it_has_said_more_leaves_no_request_open(over_before_the_answer):
    one = over_before_the_answer("launch").adapter_gone("gone")
    one.refuses_client(2, "launch", "").refuses_client(3, "threads", "gone")


def test_another_adapter_is_not_asked_what_it_does_not_know(session):
    one = session(debugpy=False).client(request("launch", {}, seq=2)).to_adapter(request("launch", {}))
    over = event("terminated", {})
    one.adapter(over).published("terminated").to_client(over).refuses_client(2, "launch", "has ended before")


def test_that_children_stay_hidden_is_told(session):
    one = session(spawned=False).client(request("attach", {"processId": 5}, seq=2))
    text = "dap-agent: " + oddities.HIDDEN_CHILDREN + "\n"
    one.to_client(event("output", {"category": "console", "output": text})).to_adapter(
        request("attach", {"processId": 5})
    )
