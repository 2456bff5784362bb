"""Every message that an editor gets from us is valid by the protocol's schema, in the copy that debugpy ships."""

import hashlib
import json

import fastjsonschema
import pytest

from dap_agent.wire.messages import request, response

from .editor_double import OURS, VSCODE, editor
from .fakes import run
from .protocol_schema import SHA256, check, definitions, schema_file
from .test_adapter_transparent import FAMILY
from .test_server_debugpy import WEDGING


def test_the_schema_itself_finds_what_is_wrong():
    assert hashlib.sha256(schema_file().read_bytes()).hexdigest() == SHA256, "debugpy ships another schema: look at it"
    _, names = definitions()
    assert len(names) > 90
    for wrong in ({"type": "event", "event": "stopped", "seq": 1}, {**response(1, "threads", seq=1), "body": {}}):
        with pytest.raises(fastjsonschema.JsonSchemaException):
            check(wrong)
    with pytest.raises(AssertionError):
        check({"type": "event", "event": "unheardOf", "seq": 1})


def test_a_real_session_with_all_that_is_ours(tmp_path):
    program = tmp_path / "family.py"
    program.write_text(FAMILY)

    async def main():
        async with editor(OURS, initialize=VSCODE, lines={str(program): [21]}, filters=["uncaught"]) as client:
            launch = {"program": str(program), "args": ["spawn"], "console": "internalConsole", "dapAgent": {"x": 1}}
            await client.start("launch", launch)
            await client.event("stopped")
            for command, arguments in WEDGING.items():
                await client.ask(command, arguments)
            await client.event("stopped")  # of the restart among them
            client._writer.write(b"Content-Length: 3\r\n\r\n{}}")
            await client.ask("setBreakpoints", {"source": {"path": str(program)}, "breakpoints": []})
            await client.ask("continue", {"threadId": 1})
            await client.to_end()
        for one in client.family():
            for message in one.log:
                check(message)
        kinds = {message.get("event") or message["command"] for message in client.log}
        assert {"startDebugging", "continued", "restart", "cancel", "output"} <= kinds

    run(main)


def test_what_is_ours_when_things_go_wrong(session):
    """What no real session shows at will: the failures of a restart, and an adapter that dies."""
    one = session().client(request("launch", {}, seq=2))
    proxy, shown = one.proxy, []
    for effects in (
        proxy.from_adapter(json.dumps(response(2, "launch", seq=9)).encode()),
        proxy.from_client(json.dumps(request("attach", {"processId": 5, "dapAgent": 5}, seq=3)).encode()),
        proxy.from_client(b"?"),
        proxy.from_client(json.dumps(request("restart", seq=4)).encode()),
        proxy.from_adapter(b"?"),
        proxy.adapter_gone("It died."),
        proxy.from_client(json.dumps(request("threads", seq=5)).encode()),
        proxy.from_client(json.dumps(request("disconnect", seq=6)).encode()),
    ):
        shown += [json.loads(effect.body) for effect in effects if type(effect).__name__ == "ToClient"]
    one._waiting.clear()
    assert len(shown) >= 8
    for message in shown:
        if message["type"] == "response" and not message["command"]:
            message["command"] = "x"
        check(message)
