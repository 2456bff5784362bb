"""`DAP_AGENT_PRIVATE`: a key from an editor's keyring is dap-agent's alone, the debugged program does not get it."""

from dap_agent.proxy.private import handed_on
from dap_agent.session import launch

from .editor_double import OURS, VSCODE, editor, environment
from .fakes import run

PROGRAM = """\
import os

print("told:", os.environ.get("PLAIN"), os.environ.get("TEST_KEY"), os.environ.get("DAP_AGENT_PRIVATE"))
"""


def test_what_is_private_is_not_handed_on():
    given = {"A_KEY": "a", "B_KEY": "b", "DAP_AGENT_PRIVATE": "A_KEY, B_KEY,C_KEY", "PATH": "/bin"}
    assert handed_on(given) == {"PATH": "/bin"}
    assert handed_on({"A_KEY": "a"}) == {"A_KEY": "a"}


def test_the_program_does_not_get_the_editors_key(tmp_path):
    async def main():
        program = tmp_path / "program.py"
        program.write_text(PROGRAM)
        env = environment(PLAIN="yes", TEST_KEY="sesame", DAP_AGENT_PRIVATE="TEST_KEY")
        async with editor(OURS, env=env, initialize=VSCODE) as client:
            await client.start("launch", {"program": str(program), "console": "internalConsole"})
            await client.event("terminated")
            said = "".join(m["body"]["output"] for m in client.log if m.get("event") == "output")
            assert "told: yes None None" in said
            await client.leave()

    run(main)


def test_a_program_of_the_command_line_does_not_get_it_either(tmp_path, monkeypatch):
    monkeypatch.setenv("TEST_KEY", "sesame")
    monkeypatch.setenv("DAP_AGENT_PRIVATE", "TEST_KEY")
    given = launch._environment(tmp_path)
    assert not {"TEST_KEY", "DAP_AGENT_PRIVATE"} & set(given)
    assert given["DAP_AGENT_BOOTSTRAP"] == str(tmp_path)
