"""A changed file put into this process, which is a forked copy: its functions, classes, constants and imports."""

from __future__ import annotations
import __future__

import functools
import types
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import codes, imports, reading, statements, swapping
from .codes import Entry, Source
from .live import Live
from .swapping import Impossible

_NOT_SWAPPED = "not swapped: "


class Change(NamedTuple):
    """A file of a candidate.

    Args:
        path: of the file.
        old: its text as the program has loaded it; None: it is new.
        new: its text in the candidate.
    """

    path: str
    old: Optional[str]
    new: str


class Patch:
    """Changes put in, and what has become of each function.

    Args:
        frames: the frames of the stop: the surrounding function of a closure may still run.

    Attributes:
        told: `name`, `file`, `swapped`, `how`.
        watched: file, qualified name and code object of all that was put in.
        changed: file name of code objects -> which functions differ, or are new.
        moved: code objects that are to be replaced -> the new ones.
        sources: file name of code objects -> old and new text, compiled.
        started: is told of code that is watched from now on, too.
        holders: namespaces that may hold copies of a module's values.
        certain: False where something was changed whose use cannot be seen: a constant, an import.
    """

    def __init__(self, frames: List[types.FrameType]) -> None:
        self.told: List[Dict[str, Any]] = []
        self.watched: List[Tuple[str, str, types.CodeType]] = []
        self.changed: Dict[str, Set[codes.Key]] = {}
        self.moved: Dict[int, Tuple[types.CodeType, types.CodeType]] = {}
        self.sources: Dict[str, Tuple[Source, Source]] = {}
        self.certain = True
        self.started: Optional[Callable[[types.CodeType], None]] = None
        self._frames = frames
        self.holders = statements.namespaces(frames)

    @property
    def effective(self) -> bool:
        """Whether anything of the candidate is in."""
        return any(each["swapped"] for each in self.told)

    def put(
        self, change: Change, live: Optional[Live], from_index: Dict[str, int], known: Optional[Source] = None
    ) -> None:
        """Put one file in.

        Args:
            live: what the process has made of it; None: it is not loaded.
            from_index: path -> the module's statements from this one on are run later, by the trial itself.
            known: the old text, compiled, if that was done before.
        """
        if not change.path.endswith((".py", ".pyw")):
            self._tell(change.path, change.path, "it is no Python source; the trial goes without this change")
            return
        # also for what is loaded: an import that has failed is made once more
        imports.add(change.path, change.new, lambda code: self._imported(change.path, live, code))
        if live is None:
            self._tell(change.path, change.path, "", "imported from the new text once the program asks for it")
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler, about the user's text
            try:
                old = known or Source(change.old if change.old is not None else "", live.filename)
                new = Source(change.new, live.filename)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self._tell(change.path, change.path, "it does not compile: %s" % error)
                return
            self.sources[live.filename] = old, new
            _File(self, change.path, live, old, new, from_index.get(live.path)).put()

    def _imported(self, path: str, live: Optional[Live], code: types.CodeType) -> None:
        self.certain = False  # its statements run now
        if live is not None and live.filename in self.sources:
            self.watch_within(path, live.filename, code)
            return
        for each in codes.all_codes(code):
            self._watch(path, "(module)" if each is code else each.co_name, each)

    def _watch(self, path: str, name: str, code: types.CodeType) -> None:
        self.watched.append((path, name, code))
        if self.started is not None:
            self.started(code)

    def watch_within(self, path: str, filename: str, code: types.CodeType) -> None:
        """Note what in newly compiled *code* belongs to a function that differs."""
        new, keys = self.sources[filename][1], self.changed.get(filename, set())
        for each in codes.all_codes(code):
            entry = new.entry_of(each)
            if entry is not None and entry.key in keys:
                self._watch(path, entry.named.name, each)

    def _tell(self, name: str, path: str, problem: str, how: str = "") -> None:
        self.told.append(
            {"name": name, "file": path, "swapped": not problem, "how": _NOT_SWAPPED + problem if problem else how}
        )

    def local_of(self, code: types.CodeType, name: str) -> Any:
        """The variable *name* in the innermost frame that runs *code*."""
        for frame in self._frames:
            if frame.f_code is code:
                found = frame.f_locals.get(name, reading.MISSING)
                if found is not reading.MISSING:
                    return found
        return reading.MISSING


class _File:
    def __init__(self, patch: Patch, path: str, live: Live, old: Source, new: Source, until: Optional[int]) -> None:
        self._patch = patch
        self._path = path
        self._live = live
        self._old = old
        self._new = new
        self._until = until
        self._flags = _future_flags(new.code)
        self._functions: Dict[codes.Key, List[types.FunctionType]] = {}
        self._problems: Dict[str, str] = {}
        self._how: Dict[str, List[str]] = {}

    def put(self) -> None:
        for function in self._live.functions:
            entry = self._old.entry_of(function.__code__) or self._by_name(function)
            if entry is not None:
                self._functions.setdefault(entry.key, []).append(function)
        changed = []
        for key, entry in self._new.entries.items():
            before = self._old.entries.get(key)
            if before is None or entry.is_class:
                continue
            if not codes.same(before.code, entry.code) or _differs_outside(before, entry):
                changed.append((before, entry))
            elif before.code.co_firstlineno != entry.code.co_firstlineno:
                self._move(before, entry)
        keys = self._patch.changed.setdefault(self._live.filename, set())
        for before, entry in changed:
            if not _same_itself(before.code, entry.code) or _differs_outside(before, entry):
                keys.add(entry.key)
        keys.update(entry.key for entry in self._new.entries.values() if self._is_new(entry))
        for key in keys:
            entry = self._new.entries[key]
            self._patch._watch(self._path, entry.named.name, entry.code)
        for before, entry in changed:
            self._swap(before, entry)
        self._remove()
        for namespace in self._live.namespaces:
            self._module(namespace)
        for before, entry in changed:
            self._finish(before, entry)
        for entry in self._new.entries.values():
            outside = entry.outer is None or entry.outer.is_class
            if self._is_new(entry) and entry.node is not None and outside and entry.name not in self._problems:
                self._patch._tell(entry.name, self._path, "", "new")

    def _is_new(self, entry: Entry) -> bool:
        return entry.key not in self._old.entries and not entry.is_class

    def _by_name(self, function: types.FunctionType) -> Optional[Entry]:
        """The file was changed after it was loaded: by the qualified name, if one function has it."""
        code = function.__code__
        name = getattr(code, "co_qualname", None) or function.__qualname__
        if code.co_name != name.rpartition(".")[2]:
            return None
        return self._old.entries.get((name, 0)) if (name, 1) not in self._old.entries else None

    def _move(self, old: Entry, new: Entry) -> None:
        """The same function on other lines: so that places in the report are those of the new text."""
        for function in self._functions.get(old.key, []):
            if function.__code__.co_freevars == new.code.co_freevars:
                self._patch.moved[id(function.__code__)] = (function.__code__, new.code)
                function.__code__ = new.code

    def _swap(self, old: Entry, new: Entry) -> None:
        for function in self._functions.get(old.key, []):
            code = function.__code__
            try:
                copied = swapping.swap(function, new.code, functools.partial(self._free, old, code, function))
            except Impossible as error:
                self._problems[old.name] = str(error)
                continue
            self._patch.moved[id(code)] = (code, new.code)
            if copied:
                self._note(old.name, "with a copy of %s" % ", ".join(copied))

    def _free(self, entry: Entry, code: types.CodeType, function: types.FunctionType, name: str) -> Any:
        if name == "__class__" and "." in entry.name:
            found = swapping.class_named(function.__globals__, entry.name.rpartition(".")[0])
            return found if found is not None else reading.MISSING
        for outer, _ in [pair for pair in self._patch.moved.values() if codes.contains(pair[0], code)]:
            found = self._patch.local_of(outer, name)
            if found is not reading.MISSING:
                return found
        for frame in self._patch._frames:
            if codes.contains(frame.f_code, code) and name in frame.f_locals:
                return frame.f_locals[name]
        return reading.MISSING

    def _finish(self, old: Entry, new: Entry) -> None:
        """Default values and caches, once all constants are in; then tell of it."""
        found = self._functions.get(old.key, [])
        if old.name not in self._problems:
            for function in found:
                try:
                    if _differ(old, new, swapping.same_defaults):
                        swapping.set_defaults(function, new.node, function.__globals__, self._scope(old, function))
                except Impossible as error:
                    self._problems[old.name] = str(error)
                if swapping.clear_cache(function, function.__globals__, old.name):
                    self._note(old.name, "its cache was emptied")
        itself = not _same_itself(old.code, new.code) or _differs_outside(old, new)
        if new.node is None and not (found and new.code.co_name == "<lambda>"):
            return  # a comprehension: a part of the function around it
        problem = self._problems.get(old.name, "")
        if itself or problem:
            if not found and not problem:
                self._note(old.name, "made anew when %s runs" % (new.outer.name if new.outer else "the module"))
            self._patch._tell(old.name, self._path, problem, "; ".join(self._how.get(old.name, [])))

    def _scope(self, entry: Entry, function: types.FunctionType) -> Any:
        owner = entry.name.rpartition(".")[0]
        if owner and "<locals>" not in owner:
            cls = swapping.class_named(function.__globals__, owner)
            if cls is not None:
                return dict(reading.class_dict(cls))
        for frame in self._patch._frames:
            if entry.outer is not None and frame.f_code.co_name == entry.outer.code.co_name:
                return dict(frame.f_locals)
        return {}

    def _note(self, name: str, how: str) -> None:
        noted = self._how.setdefault(name, [])
        if how not in noted:
            noted.append(how)

    # ---- statements

    def _bodies(self, old: Any, new: Any) -> Tuple[statements.Body, statements.Body]:
        return statements.Body(old.body, self._old.lines), statements.Body(new.body, self._new.lines)

    def _remove(self) -> None:
        """Names that the module does not bind any more."""
        for name in statements.gone(*self._bodies(self._old.tree, self._new.tree)):
            if codes.binds(self._new.code, name):
                continue
            for namespace in self._live.namespaces:
                namespace.pop(name, None)
            self._patch._tell(name, self._path, "", "removed")
            self._patch.certain = False

    def _module(self, namespace: Dict[str, Any]) -> None:
        first = namespace is self._live.namespaces[0]
        for change in statements.changes(*self._bodies(self._old.tree, self._new.tree)):
            if self._until is not None and change.place >= self._until:
                break
            self._statement(change, namespace, first)

    def _statement(self, change: statements.Change, namespace: Dict[str, Any], first: bool) -> None:
        node = change.new
        if statements.is_class(node) and change.old is not None and statements.is_class(change.old):
            self._class([(change.old, node)], namespace, first)
            return
        defined = statements.is_function(node) and statements.is_function(change.old)
        swapped = defined and _same_decorators(change.old, node) and self._has(node.name)
        if swapped or statements.is_harmless(node):
            return
        told = node.name if hasattr(node, "name") else "line %d" % node.lineno
        names = statements.names_of(node)
        try:
            if names is None:
                raise Impossible("such a statement of a module runs at its start only")
            statements.run_in_module(
                node, self._live.filename, self._flags, namespace, self._patch.holders, self._compiled
            )
        except Impossible as error:
            self._problem(told if names is None or hasattr(node, "name") else ", ".join(names), str(error), first)
            return
        if not hasattr(node, "name"):
            self._patch.certain = False
            if first:
                self._patch._tell(", ".join(names), self._path, "", "")
        elif change.old is not None:
            self._note(node.name, "with its new decorators")

    def _compiled(self, code: types.CodeType) -> None:
        self._patch.watch_within(self._path, self._live.filename, code)

    def _has(self, name: str) -> bool:
        return any(key[0] == name for key in self._functions)

    def _problem(self, name: str, problem: str, first: bool) -> None:
        self._problems[name] = problem
        entries = [entry for key, entry in self._new.entries.items() if key in self._old.entries]
        if first and not any(entry.name == name and not entry.is_class for entry in entries):
            self._patch._tell(name, self._path, problem)

    def _class(self, chain: List[Tuple[Any, Any]], namespace: Dict[str, Any], first: bool) -> None:
        old, new = chain[-1]
        name = ".".join(node.name for _, node in chain)
        cls = swapping.class_named(namespace, name)
        if cls is None:
            self._problem(name, "no class of that name is in the module", first)
            return
        if _class_head(old) != _class_head(new):
            self._problem(name, "its bases or decorators differ: the class would have to be made anew", first)
        wanted = []
        for change in statements.changes(*self._bodies(old, new)):
            node = change.new
            inner = change.old
            if statements.is_class(node) and inner is not None and statements.is_class(inner):
                self._class([*chain, (inner, node)], namespace, first)
            elif statements.is_function(node) and inner is not None and _same_decorators(inner, node):
                if not self._has(name + "." + node.name):
                    wanted.append(node)
            elif not statements.is_harmless(node):
                if statements.names_of(node) is None:
                    self._problem(
                        "%s, line %d" % (name, node.lineno), "such a statement runs with its class only", first
                    )
                elif not statements.is_function(node) and "__dataclass_fields__" in reading.class_dict(cls):
                    self._problem("%s, line %d" % (name, node.lineno), "fields of a dataclass need a new class", first)
                else:
                    wanted.append(node)
        for node in wanted:
            names = statements.names_of(node) or []
            try:
                statements.run_in_class(
                    cls,
                    [each for _, each in chain],
                    self._group(new, node),
                    self._live.filename,
                    self._flags,
                    namespace,
                    self._compiled,
                )
            except Impossible as error:
                self._problem("%s.%s" % (name, ", ".join(names)), str(error), first)
                continue
            if not statements.is_function(node):
                self._patch.certain = False
                if first:
                    self._patch._tell("%s.%s" % (name, ", ".join(names)), self._path, "", "")

    @staticmethod
    def _group(cls: Any, node: Any) -> List[Any]:
        """The statement and those before it that bind the same name: a setter needs its property."""
        if not statements.is_function(node):
            return [node]
        alike = [each for each in cls.body if statements.is_function(each) and each.name == node.name]
        return alike if len(alike) > 1 else [node]


def _same_itself(old: types.CodeType, new: types.CodeType) -> bool:
    """Whether a function is the same but for the functions inside of it that have names."""
    if codes.same(old, new):
        return True
    one, other = [[each for each in codes.inner_codes(code) if each.co_name[:1] != "<"] for code in (old, new)]
    if [each.co_name for each in one] != [each.co_name for each in other]:
        return False
    stand_in = one[0] if one else None
    if stand_in is None:
        return False

    def without(code: types.CodeType) -> types.CodeType:
        constants = [stand_in if type(c) is types.CodeType and c.co_name[:1] != "<" else c for c in code.co_consts]
        return code.replace(co_consts=tuple(constants))

    return codes.same(without(old), without(new))


def _differ(old: Entry, new: Entry, same: Callable[[Any, Any], bool]) -> bool:
    both = statements.is_function(old.node) and statements.is_function(new.node)
    return both and not same(old.node, new.node)


def _differs_outside(old: Entry, new: Entry) -> bool:
    """Whether the default values or the decorators are others."""
    return _differ(old, new, swapping.same_defaults) or _differ(old, new, _same_decorators)


def _same_decorators(old: Any, new: Any) -> bool:
    return [*map(codes.dump, old.decorator_list)] == [*map(codes.dump, new.decorator_list)]


def _class_head(node: Any) -> List[str]:
    return [codes.dump(each) for each in (*node.bases, *node.keywords, *node.decorator_list)]


def _future_flags(code: types.CodeType) -> int:
    flags = 0
    for name in __future__.all_feature_names:
        flags |= code.co_flags & getattr(__future__, name).compiler_flag
    return flags
