"""Values that freeze debuggers: what dap-agent shows of them is bounded, at once, and runs no code of theirs.

One session with debugpy alone shows that their code is run there when an editor shows the variables (its own pane stays
debugpy's); in the one with us it would wait for ever.
"""

import asyncio
import dataclasses
import sys
import time

import pytest

from ..proxy.editor_double import BOTH, VSCODE, editor, environment
from .debugging import Stop, console

PROGRAM = '''
import os
import threading

import numpy
import pandas

ran = []
lock = threading.Lock()


def runs(what):
    """Code of a value runs: in the session with us it does not come back."""
    ran.append(what)
    if "HARMLESS" not in os.environ:
        lock.acquire()


class Storage:
    def __len__(self):
        runs("storage")
        return 10**9

    def __getitem__(self, index):
        runs("storage")
        raise IndexError

    def __iter__(self):
        runs("storage")
        return iter(())

    def __repr__(self):
        runs("storage")
        return "storage"


class Slow:
    def __repr__(self):
        runs("slow")
        return "slow"


class Frame(pandas.DataFrame):
    def __repr__(self):
        runs("frame")
        return "frame"


class Bad:
    def __getattribute__(self, name):
        runs("bad")
        return object.__getattribute__(self, name)

    def __repr__(self):
        runs("bad")
        raise RuntimeError("bad")


class Locked:
    @property
    def value(self):
        runs("locked")
        return 1


class Descriptor:
    def __get__(self, instance, owner):
        runs("described")
        return 5


class Described:
    attribute = Descriptor()


def work():
    array = numpy.zeros((2,) * 10 + (1000,))
    storage, slow, bad, locked, described = Storage(), Slow(), Bad(), Locked(), Described()
    frame = Frame({"price": range(100_000)})
    good = "as it is"
    raise ValueError(good)


lock.acquire()
work()
'''
NAMES = ("array", "storage", "slow", "frame", "bad", "locked", "described", "good")


@dataclasses.dataclass
class Looked:
    """What was seen at the stop, and what ran meanwhile."""

    seconds: float = 0.0
    why: str = ""
    tries: dict[str, str] = dataclasses.field(default_factory=dict)
    snapshot: str = ""
    ran: set[str] = dataclasses.field(default_factory=set)
    went_on: bool = False


async def _look(command, program, state, **env):
    found = Looked()
    env = environment(DAP_AGENT_STATE_DIR=str(state), **env)
    async with editor(command, env=env, initialize=VSCODE, filters=["uncaught"]) as client:
        await client.start("launch", {"program": str(program), "console": "internalConsole", "python": sys.executable})
        thread = (await client.event("stopped"))["body"]["threadId"]
        frames = (await client.ask("stackTrace", {"threadId": thread}))["body"]["stackFrames"]
        stop = Stop("exception", thread=thread, frame=frames[0]["id"])
        if command is BOTH["ours"]:
            begun = time.monotonic()
            found.snapshot = str((await client.event("dapAgentSnapshot"))["body"])
            found.why = await console(client, "/why")
            for name in NAMES:
                found.tries[name] = await console(client, f"/try {name}", stop)
            found.seconds = time.monotonic() - begun
        else:
            (first, *_) = (await client.ask("scopes", {"frameId": stop.frame}))["body"]["scopes"]
            shown = await client.ask("variables", {"variablesReference": first["variablesReference"]})
            for entry in shown["body"]["variables"]:
                if entry["name"] in ("locked", "described"):
                    await client.ask("variables", {"variablesReference": entry["variablesReference"]})
        told = await client.ask("evaluate", {"expression": "' '.join(ran)", "frameId": stop.frame, "context": "repl"})
        found.ran = set(told["body"]["result"].strip("'").split())
        await client.ask("continue", {"threadId": thread})
        found.went_on = (await client.event("terminated", "stopped"))["event"] == "terminated"
        await client.leave()
    return found


@pytest.fixture(scope="module")
def both(tmp_path_factory):
    """What debugpy alone runs, and what was seen through us."""
    folder = tmp_path_factory.mktemp("values")
    program = folder / "program.py"
    program.write_text(PROGRAM)

    async def main():
        alone = await _look(BOTH["direct"], program, folder, HARMLESS="1")
        return alone, await _look(BOTH["ours"], program, folder)

    return asyncio.run(asyncio.wait_for(main(), 90))


def test_13_debugpy_1310_an_array_of_many_dimensions_is_a_short_line(both):
    _, ours = both
    assert "(2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1000)" in ours.tries["array"] and "float64" in ours.tries["array"]
    assert len(ours.tries["array"]) < 1000 and len(ours.why) < 10_000
    assert "array" in ours.why


def test_14_debugpy_1660_a_storage_of_a_billion_elements_is_never_enumerated(both):
    alone, ours = both
    assert "storage" in alone.ran
    assert "storage" not in ours.ran and "Storage" in ours.why and "Storage" in ours.tries["storage"]


def test_15_debugpy_1391_a_slow_repr_is_not_waited_for(both):
    alone, ours = both
    assert {"slow", "frame"} <= alone.ran
    assert not {"slow", "frame"} & ours.ran
    assert "Slow" in ours.why and "100000" in ours.tries["frame"].replace("_", "").replace(",", "")
    assert ours.seconds < 10, "where each of them would wait for ever"


def test_16_debugpy_657_one_bad_variable_does_not_hide_the_others(both):
    alone, ours = both
    assert "bad" in alone.ran
    assert "bad" not in ours.ran and "Bad" in ours.tries["bad"]
    assert "'as it is'" in ours.why and "'as it is'" in ours.tries["good"]


def test_17_debugpy_2053_a_property_that_waits_for_a_lock_is_not_read(both):
    alone, ours = both
    assert "locked" in alone.ran
    assert "locked" not in ours.ran and "Locked" in ours.tries["locked"]


def test_18_debugpy_355_a_descriptor_is_not_asked(both):
    alone, ours = both
    assert "described" in alone.ran
    assert "described" not in ours.ran and "Described" in ours.tries["described"]


def test_all_of_it_ran_nothing_and_the_program_went_its_way(both):
    _, ours = both
    assert ours.ran == set() and ours.went_on
