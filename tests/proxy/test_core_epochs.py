"""Stop epochs: when ids become worthless, and what happens to our requests that name them."""

import pytest

from dap_agent.wire.messages import event, request, response

STOPPED = event("stopped", {"reason": "exception", "threadId": 1, "allThreadsStopped": True})
CONTINUED = event("continued", {"threadId": 1, "allThreadsContinued": True})


def stop(one, *, client=False):
    one.adapter(STOPPED)
    if client:
        one.to_client(STOPPED)
    return one.published("stopped")


def test_a_stop_and_a_resume_begin_an_epoch_each(scenario):
    one = scenario().epoch(0, stopped=False)
    stop(one).epoch(1, stopped=True)
    one.adapter(CONTINUED).published("continued").epoch(2, stopped=False)
    stop(one).epoch(3, stopped=True)


def test_a_second_thread_that_stops_leaves_the_ids_of_the_first_valid(scenario):
    stop(stop(scenario())).epoch(1, stopped=True)


@pytest.mark.parametrize("command", ["continue", "next", "stepIn", "stepOut"])
def test_the_users_step_ends_the_epoch_with_its_answer(scenario, command):
    one = stop(scenario(client=True), client=True)
    one.client(request(command, seq=1)).to_adapter(request(command)).epoch(1, stopped=True)
    one.adapter_answers(command).to_client(response(1, command)).epoch(2, stopped=False)
    one.adapter(CONTINUED).published("continued").to_client(CONTINUED).epoch(2, stopped=False)
    stop(one, client=True).epoch(3, stopped=True)


def test_a_stop_that_comes_before_the_answer_to_the_step(scenario):
    one = stop(scenario()).ask("next").to_adapter(request("next"))
    stop(one).epoch(2, stopped=True)
    one.adapter_answers("next").answered().epoch(2, stopped=True)


def test_a_refused_step_changes_nothing(scenario):
    one = stop(scenario()).ask("next").to_adapter(request("next"))
    one.adapter_refuses("next", "no").failed("refused", "no").epoch(1, stopped=True)
    stop(one).epoch(1, stopped=True)


def test_our_reads_end_when_the_user_goes_on(scenario):
    one = stop(scenario(client=True), client=True)
    one.ask("evaluate", {"frameId": 2}, epoch=1).to_adapter(request("evaluate", {"frameId": 2}))
    one.ask("threads").to_adapter(request("threads"))  # about no stop
    one.client(request("continue", seq=1)).to_adapter(request("continue"))
    one.adapter_answers("continue").failed("resumed", "was resumed", nth=0).to_client(response(1, "continue"))
    one.adapter_answers("evaluate", {"result": "late"}).silence()
    one.adapter_answers("threads").answered(nth=1)


def test_our_reads_end_before_the_next_stop_is_told(scenario):
    one = stop(scenario()).ask("evaluate", epoch=1).to_adapter(request("evaluate"))
    one.adapter(CONTINUED).failed("resumed").published("continued")


@pytest.mark.parametrize("name", ["terminated", "exited"])
def test_the_end_of_the_debuggee_is_the_end_of_the_epoch(scenario, name):
    one = stop(scenario()).ask("evaluate", epoch=1).to_adapter(request("evaluate"))
    one.adapter(event(name)).failed("resumed").published(name).epoch(2, stopped=False)


def test_a_read_about_a_past_stop_is_not_even_sent(scenario):
    one = stop(scenario())
    one.ask("evaluate", epoch=0).failed("resumed")
    one.adapter(CONTINUED).published("continued")
    one.ask("evaluate", epoch=1).failed("resumed")
    one.ask("evaluate", epoch=2).failed("resumed", "'evaluate'")  # nothing is stopped in this epoch


def test_a_late_answer_after_the_deadline_is_dropped(scenario):
    one = scenario().ask("threads").to_adapter(request("threads")).give_up()
    one.adapter_answers("threads").silence()
    one.give_up().silence()


def test_the_adapters_death_ends_the_epoch(scenario):
    one = stop(scenario()).adapter_gone("It died.").notes("It died").epoch(2, stopped=False)
    one.ask("evaluate", epoch=1).failed("closed", "It died")


def test_the_client_hears_of_a_stop_before_we_act_on_it(scenario):
    scenario(client=True).adapter(STOPPED).to_client(STOPPED).published("stopped")


@pytest.mark.parametrize("command", ["continue", "next", "stepIn", "disconnect", "terminate"])
def test_the_adapter_hears_first_what_has_to_end_before_the_debuggee_is_resumed(scenario, command):
    end = {"expression": "end()", "context": "clipboard"}
    one = scenario(client=True, capabilities={"supportsTerminateRequest": True})
    one.proxy.before_resume += [lambda: end, lambda: None]
    one.client(request(command, {"threadId": 1}, seq=1)).to_adapter(request("evaluate", end))
    one.to_adapter(request(command, {"threadId": 1}))
    one.adapter_answers("evaluate").silence()
    one.adapter_answers(command).to_client(response(1, command))
    one.client(request("threads", seq=2)).to_adapter(request("threads"))


def test_so_it_is_when_we_resume_it_ourselves(scenario):
    one = scenario(client=True)
    one.proxy.before_resume.append(lambda: {"expression": "end()"})
    one.ask("continue", {"threadId": 1}).to_adapter(request("evaluate", {"expression": "end()"}))
    one.to_adapter(request("continue", {"threadId": 1})).adapter_answers("continue", {}).answered({})
    one.adapter_refuses("evaluate", "no").silence()
