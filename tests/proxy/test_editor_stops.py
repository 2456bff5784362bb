"""At a stop: the client first, then the cure; and what is shown is clean."""

import pytest

from dap_agent.proxy import oddities
from dap_agent.wire.messages import event, request, response

STOPPED = event("stopped", {"reason": "breakpoint", "threadId": 1})
NOTE = "       (note: full exception trace is shown but execution is paused at: {})"
CURE = request("evaluate", oddities.no_delay_request())


def launched(one, arguments=None):
    one.client(request("launch", arguments or {}, seq=2)).to_adapter(request("launch", {}))
    return one.adapter_answers("launch").to_client(response(2, "launch"))


def test_the_first_stop_is_told_first_and_cured_once(session):
    one = launched(session()).adapter(STOPPED).to_client(STOPPED).published("stopped").to_adapter(CURE)
    one.client(request("threads", seq=3)).to_adapter(request("threads"))
    one.adapter_answers("evaluate", {"result": "None"}).silence()
    one.adapter_answers("threads", {"threads": []}).to_client(response(3, "threads", {"threads": []}))
    one.adapter(STOPPED).to_client(STOPPED).published("stopped").silence()


def test_the_cure_can_be_turned_off(session):
    one = launched(session(), {"dapAgent": {"nodelay": False}})
    one.adapter(STOPPED).to_client(STOPPED).published("stopped").silence()


def test_another_adapter_is_not_asked_to_run_python(session):
    one = launched(session(debugpy=False)).adapter(STOPPED).to_client(STOPPED).published("stopped").silence()
    assert one.proxy.in_flight == 0


def test_a_cure_that_fails_hurts_nobody(session):
    one = launched(session()).adapter(STOPPED).to_client(STOPPED).published("stopped").to_adapter(CURE)
    one.adapter_refuses("evaluate", "KeyError: pydevd").notes("KeyError: pydevd")
    one.client(request("threads", seq=3)).to_adapter(request("threads"))


def test_the_clients_own_evaluates_are_its_own(session):
    one = launched(session()).adapter(STOPPED).to_client(STOPPED).published("stopped").to_adapter(CURE)
    one.client(request("evaluate", {"expression": "1"}, seq=3)).to_adapter(request("evaluate", {"expression": "1"}))
    one.adapter_answers("evaluate", {"result": "None"}).silence()
    one.adapter_answers("evaluate", {"result": "1"}).to_client(response(3, "evaluate", {"result": "1"}))


@pytest.mark.parametrize("where", ["f", "<module>", "<lambda>", "C.method", "a (b) c"])
def test_the_note_is_taken_out_wherever_it_stands(session, where):
    one = launched(session(), {"dapAgent": {"nodelay": False}})
    noted = {
        "reason": "exception",
        "description": "ValueError" + NOTE.format(where),
        "text": "ValueError" + NOTE.format(where),
    }
    one.adapter(event("stopped", noted))
    one.to_client(event("stopped", {"reason": "exception", "description": "ValueError", "text": "ValueError"}))
    one.published("stopped")
    one.client(request("exceptionInfo", {"threadId": 1}, seq=3)).to_adapter(request("exceptionInfo", {"threadId": 1}))
    details = {"typeName": "ValueError" + NOTE.format(where), "message": "m", "inner": [{"typeName": "A"}]}
    one.adapter_answers("exceptionInfo", {"exceptionId": "ValueError" + NOTE.format(where), "details": details})
    shown = {"exceptionId": "ValueError", "details": {**details, "typeName": "ValueError"}}
    one.to_client(response(3, "exceptionInfo", shown))


def test_frames_have_the_names_of_their_functions(session):
    one = (
        session()
        .client(request("stackTrace", {"threadId": 1}, seq=2))
        .to_adapter(request("stackTrace", {"threadId": 1}))
    )
    frames = [{"id": 1, "name": "f (Current frame)"}, {"id": 2, "name": "g"}, {"id": 3, "name": 5}, None]
    one.adapter_answers("stackTrace", {"stackFrames": frames, "totalFrames": 4})
    clean = [{"id": 1, "name": "f"}, {"id": 2, "name": "g"}, {"id": 3, "name": 5}, None]
    one.to_client(response(2, "stackTrace", {"stackFrames": clean, "totalFrames": 4}))


def test_a_clean_answer_is_not_re_encoded(session):
    one = session().client(request("stackTrace", {}, seq=2)).to_adapter(request("stackTrace", {}))
    rest = b'"success": true, "command": "stackTrace", "body": {"x": 1.50}}'
    (effect,) = one.proxy.from_adapter(b'{"seq": 9, "type": "response", "request_seq": 2, ' + rest)
    assert effect.body.endswith(rest)


@pytest.mark.parametrize("body", [[], {"stackFrames": " (Current frame)"}, 5, None])
def test_strange_answers_pass(session, body):
    one = session()
    for seq, command in enumerate(["stackTrace", "exceptionInfo"], start=2):
        one.client(request(command, seq=seq)).to_adapter(request(command))
        answer = {**response(seq, command), "body": body}
        one.adapter({**answer, "request_seq": seq}).to_client(answer)
