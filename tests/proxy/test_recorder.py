"""A session through the recorder becomes a recording, and that plays as the session was."""

import json
import sys
from pathlib import Path

from .differences import comparable
from .editor_double import VSCODE, editor
from .fakes import DEBUGPY, run
from .neutral import neutral
from .player import RECORDINGS, Recording, play

RECORDER = [sys.executable, str(Path(__file__).with_name("recorder.py"))]


def test_a_recorded_session_plays_as_it_was(tmp_path):
    program = tmp_path / "plain.py"
    program.write_text((RECORDINGS / "programs" / "plain.py").read_text())

    async def main():
        command = [*RECORDER, str(tmp_path / "log"), "--", *DEBUGPY]
        async with editor(command, initialize=VSCODE, lines={str(program): [2]}) as client:
            await client.start("launch", {"program": str(program), "console": "internalConsole"})
            await client.to_end()
        with open(tmp_path / "log", encoding="utf-8") as file:
            log = [json.loads(line) for line in file]
        told = [line["message"] for line in log if line["from"] == "adapter" and "message" in line]
        assert told[: len(client.log)] == client.log  # what comes after the client has left is only recorded
        lines = list(neutral([log], client="a double", folder=str(tmp_path)))
        assert str(tmp_path) not in json.dumps(lines)
        asked = [line for line in lines if line.get("request") == "scopes"]
        assert [line["arguments"]["frameId"]["$"][1:] for line in asked] == 3 * [["stackFrames", 0, "id"]]
        (tmp_path / "recording").write_text("".join(json.dumps(line) + "\n" for line in lines))
        again = await play(Recording(tmp_path / "recording"), DEBUGPY, tmp_path)
        assert comparable(again, ours=False) == comparable({1: client.log}, ours=False)

    run(main)
