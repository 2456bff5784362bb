"""What is called again at a stop: which frame's function, with which arguments, and what they are worth by now."""

from __future__ import annotations

import ast
import types
from typing import Any, Collection, Dict, List, NamedTuple, Optional, Tuple

from . import codes, live, packages, reading, snapshot
from .codes import Source
from .paths import NotThere
from .stop import Stop

_PARTS_OF_A_FUNCTION = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>", "<lambda>")
_MOST = 8  # frames that are tried one after the other if none is named
_MUTATORS = ("add", "append", "appendleft", "clear", "discard", "extend", "extendleft", "insert", "move_to_end", "pop",
             "popitem", "popleft", "read", "readline", "readlines", "remove", "reverse", "rotate", "seek", "setdefault",
             "sort", "update", "write")  # fmt: skip


class Target(NamedTuple):
    """A frame whose function, or module, can be run again.

    Args:
        number: of the frame.
        frame, line: the frame and the line that it is at.
        asked: number of the frame that was meant; another one if that is a comprehension in this function.
    """

    number: int
    frame: types.FrameType
    line: int
    asked: int

    @property
    def is_module(self) -> bool:
        """Whether it is the code of a module, which is run from the failing statement on."""
        return self.frame.f_code.co_name == "<module>"


def named(stop: Stop, number: int) -> Target:
    """The target that frame *number* is, or is a part of.

    Raises:
        NotThere: it can't be run again; the message says why.
    """
    frame, line = stop.frames[number]
    if frame.f_code.co_name in _PARTS_OF_A_FUNCTION:
        is_lambda = frame.f_code.co_name == "<lambda>"
        for outer in range(number + 1, len(stop.frames)):
            code = stop.frames[outer][0].f_code
            # a lambda of a module is a function like any other
            if codes.contains(code, frame.f_code) and not (is_lambda and code.co_name == "<module>"):
                found = named(stop, outer)
                return found._replace(asked=number)
        if not is_lambda:
            raise NotThere(
                "Frame %d is a %s whose function has returned: name another frame." % (number, frame.f_code.co_name)
            )
    if codes.is_class_body(frame.f_code):
        raise NotThere(
            "Frame %d is the body of the class %s, which is no function and can't be run again by itself: name the "
            "frame that the class statement stands in." % (number, frame.f_code.co_name)
        )
    if frame.f_code.co_name == "<module>" and frame.f_code.co_filename.startswith("<"):
        raise NotThere("Frame %d runs code that has no file: name another frame." % number)
    return Target(number, frame, line, number)


def by_default(stop: Stop, paths: List[str]) -> List[Target]:
    """The user's innermost frame that can be run again, and its callers, in the order in which they are tried.

    Args:
        paths: files of the candidates: their frames count as the user's.

    Raises:
        NotThere: there is none.
    """
    files = live.Files(paths)
    found: List[Target] = []
    seen: List[types.CodeType] = []
    problem: Optional[NotThere] = None
    for number, (frame, _) in enumerate(stop.frames):
        filename = frame.f_code.co_filename
        if not files.path_of(filename) and not packages.origin_of(filename).user:
            continue
        try:
            target = named(stop, number)
        except NotThere as error:
            problem = problem or error
            continue
        if not any(target.frame.f_code is code for code in seen):
            seen.append(target.frame.f_code)
            found.append(target)
    if not found:
        raise problem or NotThere("No frame of the user's code is on the stack, so there is nothing to call again.")
    return found if len(found) <= _MOST else [*found[: _MOST - 1], found[-1]]


def function_of(frame: types.FrameType, functions: List[types.FunctionType]) -> types.FunctionType | None:
    """The function that *frame* is a call of; of several with the same code the one with the frame's closure."""
    names = frame.f_locals
    best, most = None, -1
    for function in functions:
        if function.__code__ is not frame.f_code:
            continue
        cells = [
            live.cell_value(cell) is names.get(name, reading.MISSING)
            for name, cell in zip(function.__code__.co_freevars, function.__closure__ or ())
        ]
        if sum(cells) > most:
            best, most = function, sum(cells)
    return best


def arguments_of(
    frame: types.FrameType,
    code: types.CodeType,
    defaults: int,
    keyword_defaults: Any,
    left_out: Collection[str],
    entry: Dict[str, Any],
) -> Any:
    """Positional and keyword arguments for a function with *code*, from what the parameters of *frame* hold now.

    Args:
        code: of the function to call: the frame's own, or that of its patched version.
        defaults: how many of its positional parameters have a default value.
        keyword_defaults: names of its keyword-only parameters that have one.
        left_out: parameters that shall get their default values.
        entry: name -> value that arguments had when the call began, where they have others now (`entry_values`).

    Raises:
        NotThere: the call cannot be made; the message says why.
    """
    old = frame.f_code
    names = {**snapshot.locals_of(frame), **entry}
    had = snapshot.argument_names(old)
    gone = [name for name in had if name not in names]
    if gone:
        raise NotThere("The argument %s was deleted since the call began: name a caller's frame." % ", ".join(gone))
    plain, keywords, stars, more = _kinds(code)
    old_plain, old_keywords, old_stars, old_more = _kinds(old)
    positional: List[Any] = []
    by_name: Dict[str, Any] = {}
    for index, name in enumerate(plain):
        if name in old_plain or name in old_keywords:
            source = name
        elif len(plain) == len(old_plain):
            source = old_plain[index]  # it was renamed
        else:
            if index < len(plain) - defaults:
                raise NotThere(
                    "The new %s needs the argument %s, which this call did not have: name the frame of its caller."
                    % (code.co_name, name)
                )
            break
        if name in left_out:
            break
        positional.append(names[source])
    if old_stars and stars and len(positional) == len(plain):
        positional += names[old_stars]
    for name in plain[len(positional) :]:
        if name in had and name not in left_out:
            by_name[name] = names[name]
    for name in keywords:
        if name in left_out:
            continue
        if name in had:
            by_name[name] = names[name]
        elif name not in (keyword_defaults or ()):
            raise NotThere(
                "The new %s needs the argument %s, which this call did not have: name the frame of its caller."
                % (code.co_name, name)
            )
    if old_more:
        by_name.update({key: value for key, value in names[old_more].items() if more or key in plain + keywords})
    return positional, by_name


def defaults_of(function: types.FunctionType | None) -> Dict[str, Any]:
    """Name -> default value of the parameters of *function* that have one."""
    if function is None:
        return {}
    code, values = function.__code__, function.__defaults__ or ()
    found = dict(zip(code.co_varnames[code.co_argcount - len(values) : code.co_argcount], values))
    found.update(function.__kwdefaults__ or {})
    return found


def with_new_defaults(frame: types.FrameType, old: Dict[str, Any], new: Dict[str, Any]) -> List[str]:
    """Parameters that hold the *old* default value where the *new* one differs: the call most likely left them out."""
    names = snapshot.locals_of(frame)
    return [name for name in new if name in old and old[name] is not new[name] and names.get(name) is old[name]]


def _kinds(code: types.CodeType) -> Tuple[List[str], List[str], str, str]:
    """Names of positional and of keyword-only parameters, of `*args` and of `**kwargs` (empty: none)."""
    names = list(code.co_varnames)
    first, second = code.co_argcount, code.co_argcount + code.co_kwonlyargcount
    stars = names[second] if code.co_flags & 0x04 else ""
    more = names[second + bool(stars)] if code.co_flags & 0x08 else ""
    return names[:first], names[first:second], stars, more


def entry_values(frame: types.FrameType, recorded: Dict[str, Any]) -> Dict[str, Any]:
    """Those of the *recorded* arguments of a call that its frame has other values for by now."""
    if not recorded:
        return {}
    rebound = _rebound(frame)
    return {name: value for name, value in recorded.items() if name in rebound}


def hints(frame: types.FrameType, line: int, source: Optional[Source], entry: Dict[str, Any]) -> List[str]:
    """Sentences on arguments that are not what they were when the call began.

    Args:
        frame, line: of the call.
        source: of its code, if it is at hand.
        entry: what it is called with instead (`entry_values`).
    """
    found = []
    names = snapshot.argument_names(frame.f_code)
    rebound = _rebound(frame)
    for name in names:
        if name in entry:
            found.append(
                "%s was assigned again (line %d) since the call began: the trial got its value from then, recovered "
                "from the flight recorder." % (name, rebound[name])
            )
        elif name in rebound:
            found.append(
                "%s was assigned again (line %d) since the call began: the trial got the value that it has now."
                % (name, rebound[name])
            )
    node = _definition(frame.f_code, source)
    changed = _changed(node, line, names) if node is not None else {}
    held = snapshot.locals_of(frame)
    for name in names:
        value = held.get(name, reading.MISSING)
        if name in entry:
            continue
        if name in changed:
            found.append(
                "%s may have been changed (line %d) since the call began: the trial got it as it is now."
                % (name, changed[name])
            )
        elif value is not reading.MISSING and _is_iterator(value):
            found.append("%s is an iterator: what was taken from it since the call began is gone." % name)
    return found


def _is_iterator(value: Any) -> bool:
    return reading.class_attribute(type(value), "__next__") is not reading.MISSING


def _rebound(frame: types.FrameType) -> Dict[str, int]:
    """Parameters that were stored to before the current instruction, or may have been in a loop around it."""
    import dis

    names = set(snapshot.argument_names(frame.f_code))
    last = frame.f_lasti
    stores: List[Tuple[int, str, int]] = []
    until, line = last, frame.f_code.co_firstlineno
    starts = {offset: number for offset, number in dis.findlinestarts(frame.f_code) if number is not None}
    for each in dis.get_instructions(frame.f_code):
        line = starts.get(each.offset, line)
        if each.opname.startswith(("STORE_FAST", "STORE_DEREF", "DELETE_FAST", "DELETE_DEREF")):
            for name in _stored(each):
                if name in names:
                    stores.append((each.offset, name, line))
        elif "JUMP" in each.opname and type(each.argval) is int and each.argval <= last < each.offset:
            until = max(until, each.offset)  # back to before the current instruction: a loop around it
    found: Dict[str, int] = {}
    for offset, name, number in stores:
        if offset <= until and offset != last:
            found.setdefault(name, number)
    return found


def _stored(instruction: Any) -> List[str]:
    """The names that an instruction stores to; 3.13 has some for two at once."""
    value = instruction.argval
    if type(value) is not tuple:
        return [value]
    parts = instruction.opname.split("_")  # STORE_FAST_LOAD_FAST, STORE_FAST_STORE_FAST
    return [name for name, what in zip(value, (parts[0], parts[2] if len(parts) > 2 else "")) if what == "STORE"]


def _definition(code: types.CodeType, source: Optional[Source]) -> Any:
    entry = source.entry_of(code) if source is not None else None
    return entry.node if entry is not None else None


def _changed(node: Any, line: int, names: Tuple[str, ...]) -> Dict[str, int]:
    """Parameters whose values a line up to *line* (or a loop around it) may change in place."""
    until = line - 1
    each: Any
    for each in ast.walk(node):
        if isinstance(each, (ast.For, ast.AsyncFor, ast.While)) and each.lineno <= line <= (each.end_lineno or line):
            until = max(until, each.end_lineno or line)
    found: Dict[str, int] = {}
    for each in ast.walk(node):
        if getattr(each, "lineno", until + 1) > until:
            continue
        places: List[Any] = []
        if isinstance(each, (ast.Assign, ast.Delete)):
            places = list(each.targets)
        elif isinstance(each, ast.AugAssign):
            places = [each.target]
        elif isinstance(each, ast.Call) and isinstance(each.func, ast.Attribute) and each.func.attr in _MUTATORS:
            places = [each.func]
        for place in places:
            if isinstance(place, (ast.Attribute, ast.Subscript)):
                while isinstance(place, (ast.Attribute, ast.Subscript)):
                    place = place.value
                if isinstance(place, ast.Name) and place.id in names:
                    found.setdefault(place.id, each.lineno)
    return found
