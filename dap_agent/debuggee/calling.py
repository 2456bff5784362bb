"""Calls that are made again in a jail: a function with the arguments of its frame, or what is left of a module."""

from __future__ import annotations

import ast
import types
from typing import Any, Dict, Optional, Tuple

from . import again, codes, evaluation, modulerun, reading, snapshot, sources, statements
from .paths import NotThere
from .stop import Stop
from .values import Limits

ITEMS = 1000
"""What a generator is asked for at most."""

_SHOWN = 20
_ARGUMENT = Limits(text=60, string=40, items=3, depth=1, nodes=20)
_COROUTINE, _GENERATOR, _ASYNC_GENERATOR = 0x80 | 0x100, 0x20, 0x200  # CO_COROUTINE, CO_ITERABLE_COROUTINE, ...


class Function:
    """A function, with the arguments of its frame.

    Args:
        stop: the stop.
        target: the frame.
        function: its function, patched or not.
        picture: writes the arguments.
        before: its default values when the call began.
        source: the text that the frame's code was made of, if it is at hand.
        entry: name -> value that arguments had when the call began, where they have others now.

    Attributes:
        text: the call in words: `total([1, 2])`.
        notes: sentences on what is not as it was.
        certain: False: whether it reaches a change has to be seen.

    Raises:
        NotThere: the call cannot be made.
    """

    certain = False

    def __init__(
        self,
        stop: Stop,
        target: again.Target,
        function: types.FunctionType,
        picture: snapshot.Picture,
        before: Dict[str, Any],
        source: Optional[codes.Source],
        entry: Dict[str, Any],
    ) -> None:
        frame = target.frame
        self._in_loop = stop.task is not None
        self._function: Any = function
        self.code = function.__code__
        left_out = again.with_new_defaults(frame, before, again.defaults_of(function))
        self._positional, self._by_name = again.arguments_of(
            frame, self.code, len(function.__defaults__ or ()), function.__kwdefaults__, left_out, entry
        )
        self.notes = again.hints(frame, target.line, source, entry)
        self.notes += ["%s had its old default value: the new one was used." % name for name in left_out]
        if target.asked != target.number:
            self.notes.append("Frame %d is a part of frame %d, which was called." % (target.asked, target.number))
        self.text = self._written(frame, self.code, picture)

    def _written(self, frame: types.FrameType, code: types.CodeType, picture: snapshot.Picture) -> str:
        names = code.co_varnames[: code.co_argcount]
        shown = []
        for index, value in enumerate(self._positional):
            name = names[index] if index < len(names) else None
            if index or name not in ("self", "cls"):
                shown.append(picture.formatter.value(value, name, _ARGUMENT)["text"])
        for name, value in self._by_name.items():
            shown.append("%s=%s" % (name, picture.formatter.value(value, name, _ARGUMENT)["text"]))
        text = ", ".join(shown)
        name = sources.qualified_name(frame).rpartition("<locals>.")[2]
        return picture.mask("%s(%s)" % (name, text if len(text) <= 120 else text[:120] + "..."))

    def __call__(self) -> Tuple[Any, Optional[int]]:
        """Its value; for a generator the first values, and how many there were."""
        flags = self.code.co_flags
        if flags & _COROUTINE or flags & _ASYNC_GENERATOR or self._in_loop:
            found: Tuple[Any, Optional[int]] = in_a_loop(self._asynchronously(flags))
            return found
        value = self._function(*self._positional, **self._by_name)
        return _taken(value) if flags & _GENERATOR else (value, None)

    async def _asynchronously(self, flags: int) -> Tuple[Any, Optional[int]]:
        value = self._function(*self._positional, **self._by_name)
        if flags & _COROUTINE:
            return await value, None
        if flags & _ASYNC_GENERATOR:
            kept, count = [], 0
            async for item in value:
                count += 1
                if count <= _SHOWN:
                    kept.append(item)
                if count >= ITEMS:
                    break
            return kept, count
        return _taken(value) if flags & _GENERATOR else (value, None)


def _taken(generator: Any) -> Tuple[Any, int]:
    kept, count = [], 0
    for item in generator:
        count += 1
        if count <= _SHOWN:
            kept.append(item)
        if count >= ITEMS:
            break
    return kept, count


def in_a_loop(coroutine: Any) -> Any:
    """What *coroutine* gives in an event loop of its own."""
    import asyncio

    # not the program's policy: its loops may keep threads and handles of their own
    loop = asyncio.SelectorEventLoop()
    asyncio.set_event_loop(loop)
    return loop.run_until_complete(coroutine)


def made(frame: types.FrameType, old: types.CodeType, new: types.CodeType) -> types.FunctionType:
    """The function of a frame that nothing refers to any more.

    Args:
        frame: gives the globals and the values of the closure.
        old, new: the code that it ran and that the function is to have.

    Raises:
        NotThere: a value of its closure is not to be had.
    """
    from . import swapping

    names = snapshot.locals_of(frame)
    try:
        cells, _ = swapping.cells_for(new, {}, lambda name: names.get(name, reading.MISSING))
    except swapping.Impossible as error:
        raise NotThere("%s can't be called again: %s." % (old.co_name, error)) from None
    return types.FunctionType(new, frame.f_globals, new.co_name, None, tuple(cells) or None)


class Module:
    """A module, from the failing statement on.

    Args:
        target: its frame.
        rest: what is left of it.

    Attributes: as of `Function`; `code` is what is run.
    """

    certain = False

    def __init__(self, target: again.Target, rest: modulerun.Rest) -> None:
        frame = target.frame
        flags = frame.f_code.co_flags & evaluation.FUTURES
        self._frame = frame
        self.code = compile(ast.Module(rest.body, []), frame.f_code.co_filename, "exec", flags, True)
        self.notes = rest.notes
        line = rest.body[0].lineno if rest.body else target.line
        self.text = "the module from line %d on" % line

    def __call__(self) -> Tuple[Any, Optional[int]]:
        """Run it."""
        frame = self._frame
        exec(self.code, frame.f_globals, frame.f_locals if frame.f_locals is not frame.f_globals else frame.f_globals)
        return reading.MISSING, None


def rest_of(target: again.Target) -> modulerun.Rest:
    """What is left of a module that is as it was.

    Raises:
        NotThere: it has no source, or one that has changed.
    """
    frame = target.frame
    filename = frame.f_code.co_filename
    lines = sources.lines_of(filename, frame.f_globals)
    if lines is None:
        raise NotThere(
            "The module %s has no source, so that it can't be run from line %d on." % (filename, target.line)
        )
    try:
        body = statements.Body(codes.parse("\n".join(lines), filename).body, lines)
        return modulerun.rest_of(body, body, target.line)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise NotThere("The module's text does not compile: %s." % error) from None
