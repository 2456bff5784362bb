"""What the client and the adapter see of each other."""

import json

import pytest

from dap_agent.proxy import core
from dap_agent.proxy.core import Proxy
from dap_agent.proxy.effects import ToAdapter, ToClient
from dap_agent.wire.messages import dumps, error_response, event, request, response


def test_a_request_and_its_answer_pass(scenario):
    (
        scenario(client=True)
        .client(request("stackTrace", {"threadId": 1}, seq=7))
        .to_adapter(request("stackTrace", {"threadId": 1}))
        .adapter_answers("stackTrace", {"stackFrames": []})
        .to_client(response(7, "stackTrace", {"stackFrames": []}))
    )


def test_answers_in_another_order_find_their_requests(scenario):
    (
        scenario(client=True)
        .client(request("evaluate", {"expression": "slow()"}, seq=1))
        .to_adapter(request("evaluate", {"expression": "slow()"}))
        .client(request("threads", seq=2))
        .to_adapter(request("threads"))
        .adapter_answers("threads", {"threads": []})
        .to_client(response(2, "threads", {"threads": []}))
        .adapter_answers("evaluate", {"result": "1"})
        .to_client(response(1, "evaluate", {"result": "1"}))
    )


def test_our_own_requests_do_not_show(scenario):
    (
        scenario(client=True)
        .ask("threads")
        .to_adapter(request("threads"))
        .client(request("threads", seq=1))
        .to_adapter(request("threads"))
        .ask("scopes", {"frameId": 2})
        .to_adapter(request("scopes", {"frameId": 2}))
        .adapter_answers("threads", {"threads": ["ours"]})
        .answered({"threads": ["ours"]}, nth=0)
        .adapter_answers("scopes", {"scopes": []})
        .answered({"scopes": []}, nth=1)
        .adapter_answers("threads", {"threads": ["the client's"]})
        .to_client(response(1, "threads", {"threads": ["the client's"]}))
    )


def test_a_failed_response_without_body_passes_as_it_is(scenario):
    (
        scenario(client=True)
        .client(request("evaluate", seq=3))
        .to_adapter(request("evaluate"))
        .adapter_refuses("evaluate", "NameError: x")
        .to_client(
            {"type": "response", "request_seq": 3, "success": False, "command": "evaluate", "message": "NameError: x"}
        )
    )


def test_events_reach_the_client_and_our_subscribers(scenario):
    output = event("output", {"category": "stdout", "output": "hi\n"})
    scenario(client=True).adapter(output).published("output").to_client(output)
    scenario().adapter(output).published("output")


def test_what_nobody_knows_passes(scenario):
    custom = event("debugpySockets", {"sockets": [{"host": "127.0.0.1", "port": 1}]})
    scenario(client=True).adapter(custom).published("debugpySockets").to_client(custom)
    scenario(client=True).adapter({"type": "rumour", "body": 5}).to_client({"type": "rumour", "body": 5})
    scenario(client=True).client(request("pydevdSystemInfo", seq=1)).to_adapter(request("pydevdSystemInfo"))


def test_bodies_are_not_re_encoded():
    proxy = Proxy()
    proxy.client_arrived()
    asked = b'{ "command":"setVariable","arguments":{"value":"\xc3\xa9 1.0e2", "x":1.50},"type":"request","seq":41}'
    proxy.capabilities["supportsSetVariable"] = True
    (sent,) = proxy.from_client(asked)
    assert sent == ToAdapter(asked.replace(b"41", b"1"))
    answer = (
        b'{"seq": 99, "type": "response", "request_seq": 1, "success": true, "command": "setVariable", "body": 1.50}'
    )
    (shown,) = proxy.from_adapter(answer)
    assert shown == ToClient(
        answer.replace(b'"seq": 99', b'"seq": 1').replace(b'"request_seq": 1', b'"request_seq": 41')
    )


@pytest.mark.parametrize("command", ["runInTerminal", "startDebugging"])
def test_reverse_requests_pass_both_ways(scenario, command):
    (
        scenario(client=True)
        .adapter(request(command, {"args": ["python"]}, seq=70))
        .to_client(request(command, {"args": ["python"]}))
        .client_answers(command, {"processId": 5})
        .to_adapter(response(70, command, {"processId": 5}))
    )


def test_a_reverse_request_without_a_client_is_refused(scenario):
    text = "There is no client that could do 'runInTerminal'."
    scenario().adapter(request("runInTerminal", {}, seq=70)).to_adapter(error_response(70, "runInTerminal", text))


def test_a_reverse_request_can_be_ours_to_answer(scenario):
    for client in (True, False):
        one = scenario(client=client)
        one.proxy.handled.add("runInTerminal")
        one.adapter(request("runInTerminal", {"args": []}, seq=70)).serves("runInTerminal")
        one.reply({"processId": 9}).to_adapter(response(70, "runInTerminal", {"processId": 9}))
        one.reply({"processId": 9}).silence()  # answered once only
        one.adapter(request("runInTerminal", {"args": []}, seq=71)).serves("runInTerminal")
        one.reply(error="No terminal.").to_adapter(error_response(71, "runInTerminal", "No terminal."))


def test_answers_to_nothing_are_dropped(scenario):
    (
        scenario(client=True)
        .client(request("threads", seq=1))
        .to_adapter(request("threads"))
        .adapter(response(99, "threads"))
        .adapter_answers("threads")
        .to_client(response(1, "threads"))
        .adapter(response(1, "threads"))
        .client(response(12, "runInTerminal", seq=4))
        .silence()
    )


def test_a_client_that_counts_strangely_gets_its_own_numbers_back(scenario):
    one = scenario(client=True)
    for seq in (1_000_000, 5, 5, 0, -3):
        one.client(request("threads", seq=seq)).to_adapter(request("threads"))
        one.adapter_answers("threads").to_client(response(seq, "threads"))


def test_a_request_named_twice_is_judged_by_what_the_adapter_will_read(scenario):
    trick = b'{"seq":1,"type":"request","command":"threads","command":"restart"}'
    scenario(client=True).client(trick).refuses_client(1, "restart", "supportsRestartRequest")


def test_too_many_open_requests_are_refused(scenario, monkeypatch):
    monkeypatch.setattr(core, "MAX_IN_FLIGHT", 2)
    one = scenario(client=True)
    for seq in (1, 2):
        one.client(request("threads", seq=seq)).to_adapter(request("threads"))
    one.client(request("threads", seq=3)).refuses_client(3, "threads", "Too many requests")
    one.adapter_answers("threads").to_client(response(1, "threads"))
    one.client(request("threads", seq=4)).to_adapter(request("threads"))
    for _ in range(2):
        one.ask("threads").to_adapter(request("threads"))
    one.ask("threads").failed("busy", "Too many requests")
    for seq in (70, 71):
        one.adapter(request("runInTerminal", seq=seq)).to_client(request("runInTerminal"))
    one.adapter(request("runInTerminal", seq=72)).to_adapter(
        error_response(72, "runInTerminal", core._BUSY.format("runInTerminal"))
    )


# Broken messages


@pytest.mark.parametrize("body", [b"", b"[]", b"{", b"\xff\xfe", b'{"type":"request"}', b"[" * 100_000])
def test_a_broken_message_from_the_client_is_told_and_the_session_goes_on(scenario, body):
    one = scenario(client=True).client(body).refuses_client(0, "", "A message")
    one.client(request("threads", seq=2)).to_adapter(request("threads"))


def test_a_broken_request_is_answered_by_its_number(scenario):
    one = scenario(client=True)
    for seq in range(1, 30):  # each of them, as each is a request
        one.client({"seq": seq, "type": "request", "command": None}).refuses_client(seq, "", "lacks")


def test_a_client_that_sends_an_event_is_told(scenario):
    scenario(client=True).client(event("stopped", seq=4)).refuses_client(0, "", "requests and responses")


def test_complaints_end_some_time(scenario):
    one = scenario(client=True)
    for _ in range(core.MAX_COMPLAINTS):
        one.client(b"?").refuses_client(0, "", "not JSON")
        one.adapter(b"?").notes("dropped").tells_client("dropped")
    one.client(b"?").adapter(b"?").silence()


def test_a_broken_answer_fails_the_request_it_belongs_to(scenario):
    one = scenario(client=True).ask("threads").to_adapter(request("threads"))
    head = '{"seq": 1, "type": "response", "request_seq": %d, "success": true, "command": "%s", '
    one.adapter((head % (1, "threads") + '"body": }').encode()).failed("invalid", "not JSON")
    one.client(request("initialize", seq=9)).to_adapter(request("initialize"))
    one.adapter((head % (2, "initialize") + '"body": }').encode()).refuses_client(9, "initialize", "not JSON")


def test_deep_nesting_is_refused_or_passed_but_never_fatal():
    proxy = Proxy()
    proxy.client_arrived()
    for depth in [*range(100, 1100, 7), 5_000, 100_000]:
        nested = b'{"a":' * depth + b"1" + b"}" * depth
        for body in (
            b'{"type":"request","seq":1,"command":"evaluate","arguments":%b}' % nested,
            b'{"type":"request","seq":1,"seq":1,"command":"evaluate","arguments":%b}' % nested,
        ):
            assert len(proxy.from_client(body)) <= 1
        proxy.from_adapter(b'{"type":"event","event":"x","s\\u0065q":4,"body":%b}' % nested)
        proxy.from_adapter(b'{"type":"event","event":"capabilities","body":%b}' % nested)


# The ends


def test_when_the_adapter_dies_everyone_is_told(scenario):
    (
        scenario(client=True)
        .ask("threads")
        .to_adapter(request("threads"))
        .client(request("evaluate", seq=5))
        .to_adapter(request("evaluate"))
        .adapter_gone("The debug adapter has ended (exit status 3).")
        .failed("closed", "exit status 3")
        .refuses_client(5, "evaluate", "exit status 3")
        .notes("exit status 3")
        .tells_client("exit status 3")
        .to_client(event("terminated"))
        .client(request("threads", seq=6))
        .refuses_client(6, "threads", "exit status 3")
        .ask("threads")
        .failed("closed", "exit status 3")
        .client(request("disconnect", seq=7))
        .to_client(response(7, "disconnect"))
        .adapter_gone("again")
        .client_gone()
        .silence()
    )


def test_an_adapter_that_leaves_after_disconnect_is_no_news(scenario):
    (
        scenario(client=True)
        .client(request("disconnect", {"terminateDebuggee": True}, seq=5))
        .to_adapter(request("disconnect", {"terminateDebuggee": True}))
        .adapter_gone()
        .to_client(response(5, "disconnect"))
        .silence()
    )


def test_an_adapter_that_leaves_after_terminated_is_no_news(scenario):
    terminated = event("terminated")
    scenario(client=True).adapter(terminated).published("terminated").to_client(terminated).adapter_gone().silence()


def test_when_the_client_dies_its_business_ends_and_ours_goes_on(scenario):
    one = scenario(client=True)
    one.client(request("threads", seq=1)).to_adapter(request("threads"))
    one.ask("scopes").to_adapter(request("scopes"))
    one.adapter(request("runInTerminal", seq=70)).to_client(request("runInTerminal"))
    gone = error_response(70, "runInTerminal", "The client is gone, so 'runInTerminal' cannot be answered.")
    one.client_gone().to_adapter(gone)
    one.adapter_answers("threads").silence()
    one.adapter_answers("scopes").answered()
    one.adapter(event("output")).published("output")
    assert one.proxy.in_flight == 0


def test_an_unreadable_client_is_told_why_before_it_is_cut_off(scenario):
    one = scenario(client=True).client_broken("Not a stream.").notes("Not a stream")
    one.tells_client("Not a stream.").hangs_up().client_gone()


def test_two_clients_at_once_are_a_mistake_of_ours():
    proxy = Proxy()
    proxy.client_arrived()
    with pytest.raises(RuntimeError):
        proxy.client_arrived()


def test_a_long_session_leaves_nothing_behind():
    proxy = Proxy()
    proxy.client_arrived()
    for seq in range(1, 2001):
        (sent,) = proxy.from_client(dumps(request("threads", seq=seq)))
        proxy.from_adapter(dumps(response(json.loads(sent.body)["seq"], "threads")))
        token, (sent,) = proxy.ask("threads")
        proxy.give_up(token) if seq % 2 else proxy.from_adapter(
            dumps(response(json.loads(sent.body)["seq"], "threads"))
        )
    assert proxy.in_flight == 0 and proxy._routes.own == proxy._routes.of_client == 0
