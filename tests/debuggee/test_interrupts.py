"""Which exceptions our code catches as its own, and which it hands on to the program."""

import builtins
import os

import pytest

from dap_agent.debuggee import interrupts, predict, reading, sources

LIBRARY = os.path.dirname(os.__file__)
FILES = {
    "/srv/app.py": False,
    "<string>": False,
    "<ipython-input-3-1>": False,
    os.path.join(LIBRARY, "site-packages", "timeouts", "core.py"): False,
    os.path.join(LIBRARY, "ast.py"): True,
    "<frozen importlib._bootstrap>": True,
    interrupts.__file__: True,
}


def handler_in(file, kind):
    """A function that raises *kind*, as one of *file* would."""
    names = {"kind": kind}
    exec(compile("def handler(*arguments):\n raise kind('from the handler')", file, "exec"), names)
    return names["handler"]


def raised_in(file, kind):
    try:
        handler_in(file, kind)()
    except kind as error:
        error.__traceback__ = error.__traceback__.tb_next  # without the test's own frame
        return error


@pytest.mark.parametrize("file", FILES)
def test_where_it_was_raised(file):
    error = raised_in(file, ValueError)
    assert interrupts.is_ours(error) == FILES[file]
    assert interrupts.is_ours(error, packages=True) == (FILES[file] or "site-packages" in file)
    if FILES[file]:
        interrupts.pass_on(error)
    else:
        with pytest.raises(ValueError) as passed:
            interrupts.pass_on(error)
        assert passed.value is error


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_is_never_ours(kind):
    assert not interrupts.is_ours(raised_in(interrupts.__file__, kind))


def test_one_that_is_sent_anew_is_not_ours_until_it_has_come():
    error = raised_in(interrupts.__file__, ValueError)
    interrupts.send(error)
    assert not interrupts.is_ours(error)
    interrupts.came(error)
    assert interrupts.is_ours(error) and vars(error) == {}


@pytest.mark.parametrize(
    "kind", [OSError, AttributeError, KeyError, ValueError, RuntimeError, type("Own", (Exception,), {})]
)
@pytest.mark.parametrize(
    ("module", "name", "call"),
    [
        (sources.os, "stat", lambda: sources.lines_of(__file__, {})),
        (sources.tokenize, "detect_encoding", lambda: sources.lines_of(__file__, {})),
        (predict.guards, "of_code", lambda: predict.way_of(KeyError, None, frame())),
        (reading, "mro", lambda: predict.way_of(KeyError, None, frame())),
    ],
)
def test_a_handler_that_breaks_in_is_heard(monkeypatch, module, name, call, kind):
    """It runs between two of our instructions; here, in the place of a call that is made there."""
    sources._files.clear()
    monkeypatch.setattr(module, name, handler_in("/srv/app.py", kind))
    with pytest.raises(kind, match="from the handler"):
        call()


def frame():
    try:
        raise builtins.KeyError
    except KeyError as error:
        return error.__traceback__.tb_frame
