"""`dapAgent` in a configuration: ours, never the adapter's."""

import pytest

from dap_agent.proxy.core import Proxy
from dap_agent.proxy.editor import Editor
from dap_agent.proxy.options import Options, take
from dap_agent.wire.messages import dumps, event, request, response

from .playbook import refusal

STOPPED = event("stopped", {"reason": "step", "threadId": 1})


@pytest.mark.parametrize("command", ["launch", "attach"])
@pytest.mark.parametrize("ours", [True, {}, {"nodelay": True}])
def test_our_key_does_not_reach_the_adapter(session, command, ours):
    one = session(spawned=False)
    one.client(request(command, {"program": "x.py", "dapAgent": ours}, seq=2))
    one.to_adapter(request(command, {"program": "x.py"}))


def test_a_configuration_without_it_passes_byte_for_byte():
    proxy = Proxy()
    Editor(proxy)
    proxy.client_arrived()
    body = b'{ "arguments":{"x":1.50, "program":"\xc3\xa9.py"},"type":"request", "seq":8,"command":"launch"}'
    assert proxy.from_client(body)[0].body == body.replace(b'"seq":8', b'"seq":1')


def test_what_is_not_understood_is_told_and_the_session_goes_on(session):
    one = session().client(request("launch", {"dapAgent": {"nodelai": True, "nodelay": 1}}, seq=2))
    one.tells_client("no option 'nodelai'; there are: enabled, nodelay").tells_client("'nodelay' of 'dapAgent' is true")
    one.to_adapter(request("launch", {}))
    one = session().client(request("launch", {"dapAgent": 5}, seq=2))
    one.tells_client("true, false or an object of options, not 5").to_adapter(request("launch", {}))


def test_a_child_has_its_parents_options():
    off = Options(nodelay=False)
    assert take({"a": 1}, off) == ({"a": 1}, off, [])
    assert take({"dapAgent": True}, off)[1] == Options()
    assert take({"dapAgent": {"nodelay": False}}, Options())[1] == off


def test_the_keys_of_the_assistant_are_kept_for_it_unread():
    rest, options, complaints = take({"a": 1, "dapAgent": {"model": 5, "maxCost": "x", "nodelay": False}}, Options())
    assert (rest, complaints) == ({"a": 1}, [])
    assert options == Options(nodelay=False, assistant={"model": 5, "maxCost": "x"})
    assert take({}, options)[1] == options


def test_false_makes_a_pure_relay(session):
    one = session().client(request("launch", {"dapAgent": False}, seq=2))
    one.to_client(event("capabilities", {"capabilities": {"supportsRestartRequest": False}}))
    one.to_adapter(request("launch", {})).adapter_answers("launch").to_client(response(2, "launch"))
    noted = event("stopped", {"text": "E (note: full exception trace is shown but execution is paused at: f)"})
    one.adapter(noted).to_client(noted).published("stopped")  # and no request of ours
    child = request(
        "startDebugging", {"configuration": {"subProcessId": 7, "connect": {"host": "h", "port": 1}}}, seq=70
    )
    one.adapter(child).to_client(child)
    one.client_refuses("startDebugging", "no").to_adapter(refusal(70, "startDebugging", "no"))
    sockets = event("debugpySockets", {"sockets": [{"host": "127.0.0.1", "port": 4000, "internal": False}]})
    one.adapter(sockets).published("debugpySockets").to_client(sockets)
    # what would wedge the adapter is refused all the same
    one.client(request("restart", {}, seq=3)).refuses_client(3, "restart", "did not announce")


def test_the_options_survive_hostile_values(session):
    for value in ([], "x", 1.5, {"": None}, {"nodelay": {}}):
        one = session().client(dumps(request("launch", {"dapAgent": value}, seq=2)))
        one.tells_client("dapAgent").to_adapter(request("launch", {}))
    one = session().client(request("launch", seq=2)).to_adapter(request("launch"))
    one.client(dumps({"seq": 3, "type": "request", "command": "attach", "arguments": []}))
    one.to_client(event("capabilities", {"capabilities": {"supportsRestartRequest": False}}))
    one.to_adapter({**request("attach"), "arguments": []})
    one.adapter_refuses("attach", "no").to_client(refusal(3, "attach", "no"))
