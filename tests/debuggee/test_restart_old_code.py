"""A call is not made again whose function, or one that the call went through, has not taken its change."""

import os
import sys

import pytest

from dap_agent.debuggee import reload, restart
from dap_agent.debuggee.paths import NotThere

pytestmark = pytest.mark.skipif(sys.version_info < (3, 11), reason="frames are restarted from Python 3.11 on")


def outer():
    def inner():
        return innermost()

    return inner()


def innermost():
    frame, found = sys._getframe(), []
    while frame.f_code.co_name != "outer":
        found.append(frame)
        frame = frame.f_back
    return [*found, frame]


@pytest.mark.parametrize(
    ("old", "called", "refused"),
    [
        ("innermost", 1, "innermost"),
        ("innermost", 3, "innermost"),
        ("outer.<locals>.inner", 1, None),
        ("outer.<locals>.inner", 2, "outer.<locals>.inner"),
        ("outer.<locals>.inner", 3, None),  # the new call makes it anew
        ("outer", 2, None),
        ("outer", 3, "outer"),
        ("other", 3, None),
    ],
)
def test_what_has_not_taken_its_change(monkeypatch, old, called, refused):
    monkeypatch.setattr(reload, "_refused", {os.path.realpath(__file__): {old: "it has slots."}})
    frames = outer()[:called]
    if refused is None:
        restart._refuse_old(frames)
    else:
        with pytest.raises(NotThere) as raised:
            restart._refuse_old(frames)
        assert str(raised.value).startswith(f"{refused} was changed and still has its old code (it has slots), so")


def test_a_file_of_which_nothing_was_taken(monkeypatch):
    monkeypatch.setattr(reload, "_left_out", {os.path.realpath(__file__): "it does not compile"})
    with pytest.raises(NotThere, match=r"innermost .* \(it does not compile\)"):
        restart._refuse_old(outer()[:1])
