"""One changed file put into this process: its functions, classes, constants and imports."""

from __future__ import annotations

import ast
import functools
import types
from typing import TYPE_CHECKING, Any, Callable, Dict, List, Optional, Set, Tuple

from . import caution, classes, codes, differences, reading, statements, swapping
from .codes import Entry, Source
from .live import Live
from .swapping import Impossible

if TYPE_CHECKING:
    from .patching import Patch


class File:
    """A file on its way into this process.

    Args:
        patch: that it belongs to.
        path: of the file.
        live: what the process has made of it.
        old, new: its texts.
        until: the module's statements from this one on are not for us; None: all are.
        suspect: whether the code that runs may be another than that of the old text, by qualified name.
    """

    def __init__(
        self,
        patch: Patch,
        path: str,
        live: Live,
        old: Source,
        new: Source,
        until: Optional[int],
        suspect: Callable[[str], bool],
    ) -> None:
        self._patch = patch
        self._path = path
        self._live = live
        self._old = old
        self._new = new
        self._until = until
        self._suspect = suspect
        self.goes_on = patch.goes_on
        self.ledger = patch.ledger
        self._stale: Set[codes.Key] = set()  # what runs is not what the old text says
        self._rebound: Optional[Set[str]] = None
        self.flags = differences.future_flags(new.code)
        self._functions: Dict[codes.Key, List[types.FunctionType]] = {}
        self._problems: Dict[str, str] = {}
        self._how: Dict[str, List[str]] = {}

    def put(self) -> None:
        """Do it."""
        for function in self._live.functions:
            entry = self._entry_of(function)
            if entry is not None:
                self._functions.setdefault(entry.key, []).append(function)
        changed = []
        for key, entry in self._new.entries.items():
            before = self._old.entries.get(key)
            if before is None or entry.is_class:
                continue
            if not codes.same(before.code, entry.code) or differences.differs_outside(before, entry):
                changed.append((before, entry))
            elif self._is_stale(entry):
                self._stale.add(key)
                changed.append((before, entry))
            elif before.code.co_firstlineno != entry.code.co_firstlineno or self.goes_on:
                self._move(before, entry)
        keys = self._patch.changed.setdefault(self._live.filename, set())
        keys.update(entry.key for before, entry in changed if self._itself(before, entry))
        keys.update(entry.key for entry in self._new.entries.values() if self._is_new(entry))
        for key in keys:
            entry = self._new.entries[key]
            self._patch.watch(self._path, entry.named.name, entry.code)
        for namespace in self._live.namespaces:
            self._module(namespace, first=True)
        for before, entry in changed:
            self._swap(before, entry)
        if not self.goes_on:
            self._remove()
        for namespace in self._live.namespaces:
            self._module(namespace, first=False)
        for before, entry in changed:
            self._finish(before, entry)
        if self.goes_on:
            self._remove()  # what is there no more may be in use until the new code is
        for entry in self._new.entries.values():
            outside = entry.outer is None or entry.outer.is_class
            if self._is_new(entry) and entry.node is not None and outside and entry.name not in self._problems:
                self._patch.tell(entry.name, self._path, "", "new", "added")

    def _itself(self, old: Entry, new: Entry) -> bool:
        return (
            new.key in self._stale
            or not differences.same_itself(old.code, new.code)
            or differences.differs_outside(old, new)
        )

    def _is_stale(self, entry: Entry) -> bool:
        """Whether what runs is not what the old text says."""
        return self._suspect(entry.name) and not all(
            codes.same(each.__code__, swapping.flagged(entry.code, each.__code__))
            for each in self._functions.get(entry.key, [])
        )

    def _entry_of(self, function: types.FunctionType) -> Optional[Entry]:
        entry = self._old.entry_of(function.__code__)
        if entry is None or (self.goes_on and not codes.same(entry.code, function.__code__)):
            return self._by_name(function) or entry
        return entry

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
            code = function.__code__
            if code.co_freevars != new.code.co_freevars or not codes.same(code, swapping.flagged(old.code, code)):
                continue  # somebody has rewritten it: an import hook, a decorator
            if not codes.same_lines(code, new.code):  # tracebacks and breakpoints go by them
                swapping.swap(function, new.code, _unknown, self.ledger)
            self._patch.moved[id(code)] = (code, function.__code__)

    def _swap(self, old: Entry, new: Entry) -> None:
        for function in self._functions.get(old.key, []):
            code = function.__code__
            try:
                find = functools.partial(self._free, old, code, function)
                copied = swapping.swap(function, new.code, find, self.ledger)
            except Impossible as error:
                self._problems[old.name] = str(error)
                continue
            self._patch.moved[id(code)] = (code, function.__code__)
            if function.__code__ is not new.code:
                self._patch.watch(self._path, new.named.name, function.__code__)
            if copied:
                self.note(old.name, "with a copy of %s" % ", ".join(copied))

    def _free(self, entry: Entry, code: types.CodeType, function: types.FunctionType, name: str) -> Any:
        if name == "__class__" and "." in entry.name:
            found = swapping.class_named(function.__globals__, entry.name.rpartition(".")[0])
            return found if found is not None else reading.MISSING
        for outer, _ in [pair for pair in self._patch.moved.values() if codes.contains(pair[0], code)]:
            found = self._patch.local_of(outer, name)
            if found is not reading.MISSING:
                return found
        for frame in self._patch.frames:
            if codes.contains(frame.f_code, code) and name in frame.f_locals:
                return frame.f_locals[name]
        return reading.MISSING

    def _finish(self, old: Entry, new: Entry) -> None:
        """Default values and caches, once all constants are in; then tell of it."""
        found = self._functions.get(old.key, [])
        if old.name not in self._problems:
            for function in found:
                try:
                    self._outside(old, new, function)
                except Impossible as error:
                    self._problems[old.name] = str(error)
                if swapping.clear_cache(function, function.__globals__, old.name):
                    self.note(old.name, "its cache was emptied")
        itself = self._itself(old, new)
        if new.node is None and not (found and new.code.co_name == "<lambda>"):
            return  # a comprehension: a part of the function around it
        problem = self._problems.get(old.name, "")
        if itself or problem:
            if not found and not problem:
                self.note(old.name, "made anew when %s runs" % (new.outer.name if new.outer else "the module"))
            self._patch.tell(old.name, self._path, problem, "; ".join(self._how.get(old.name, [])))

    def _outside(self, old: Entry, new: Entry, function: types.FunctionType) -> None:
        for same, set_them in (
            (swapping.same_defaults, swapping.set_defaults),
            (swapping.same_annotations, swapping.set_annotations),
        ):
            if differences.differ(old, new, same):
                set_them(function, new.node, function.__globals__, self._scope(old, function), self.ledger)

    def _scope(self, entry: Entry, function: types.FunctionType) -> Any:
        owner = entry.name.rpartition(".")[0]
        if owner and "<locals>" not in owner:
            cls = swapping.class_named(function.__globals__, owner)
            if cls is not None:
                return dict(reading.class_dict(cls))
        for frame in self._patch.frames:
            if entry.outer is not None and frame.f_code.co_name == entry.outer.code.co_name:
                return dict(frame.f_locals)
        return {}

    def note(self, name: str, how: str) -> None:
        """How the function *name* was put in."""
        noted = self._how.setdefault(name, [])
        if how not in noted:
            noted.append(how)

    # ---- statements

    def bodies(self, old: Any, new: Any) -> Tuple[statements.Body, statements.Body]:
        """The bodies of an old and a new statement."""
        return statements.Body(old.body, self._old.lines), statements.Body(new.body, self._new.lines)

    def _remove(self) -> None:
        """Names that the module does not bind any more."""
        for name in statements.gone(*self.bodies(self._old.tree, self._new.tree)):
            if codes.binds(self._new.code, name):
                continue
            if self.goes_on and name in self._rebound_names():
                self._patch.tell(name, self._path, "the program itself gives it values", function=False)
                continue
            function = any(reading.is_definition(reading.lookup(each, name)) for each in self._live.namespaces)
            for namespace in self._live.namespaces:
                self.ledger.remove_item(namespace, name)
            self._patch.tell(name, self._path, "", "removed", "removed", function)
            self._patch.certain = False

    def _rebound_names(self) -> Set[str]:
        if self._rebound is None:
            inner = [*codes.all_codes(self._old.code)[1:], *codes.all_codes(self._new.code)[1:]]
            self._rebound = caution.rebound_in(inner)
        return self._rebound

    def _module(self, namespace: Dict[str, Any], first: bool) -> None:
        """Its statements.

        Args:
            first: those that may be run before functions are swapped, which may need them: imports, new functions.
        """
        for change in statements.changes(*self.bodies(self._old.tree, self._new.tree)):
            if self._until is not None and change.place >= self._until:
                break
            node = change.new
            new = self.goes_on and change.old is None and statements.is_function(node) and not node.decorator_list
            if (statements.is_import(node) or new) is first:
                self._statement(change, namespace, namespace is self._live.namespaces[0])

    def _statement(self, change: statements.Change, namespace: Dict[str, Any], first: bool) -> None:
        node = change.new
        if statements.is_class(node) and change.old is not None and statements.is_class(change.old):
            classes.ClassChange(self, namespace, first).put([(change.old, node)])
            return
        defined = statements.is_function(node) and statements.is_function(change.old)
        swapped = defined and differences.same_decorators(change.old, node) and self.has(node.name)
        if swapped or statements.is_harmless(node):
            return
        told = node.name if hasattr(node, "name") else "line %d" % node.lineno
        names = statements.names_of(node)
        try:
            if names is None:
                if self._only_functions_differ(node):
                    return
                raise Impossible("such a statement of a module runs at its start only")
            if self.goes_on and not statements.is_import(node) and not hasattr(node, "name"):
                old = statements.binding_like(self._old.tree.body, names)
                had = functools.partial(reading.lookup, namespace)
                caution.Binding(old, node, had, self._rebound_names()).check(names, caution.resolver(namespace))
            statements.run_in_module(
                node, self._live.filename, self.flags, namespace, self._patch.holders, self.compiled, self.ledger
            )
        except Impossible as error:
            self.problem(told if names is None or hasattr(node, "name") else ", ".join(names), str(error), first)
            return
        if not hasattr(node, "name"):
            self._patch.certain = False
            if first:
                self._patch.tell(", ".join(names), self._path, "", "", function=False)
        elif change.old is not None:
            self.note(node.name, "with its new decorators")
        elif statements.is_class(node) and first:
            self._patch.tell(node.name, self._path, "", "new", "added")

    def _only_functions_differ(self, node: Any) -> bool:
        shell = differences.shell(node)
        return any(shell == differences.shell(each) for each in self._old.tree.body if type(each) is type(node))

    # ---- for the classes of the file

    @property
    def filename(self) -> str:
        """As its code objects have it."""
        return self._live.filename

    def set_bases(self, cls: Any, node: Any, namespace: Dict[str, Any]) -> None:
        """Give a class the bases of its new statement.

        Raises:
            Impossible: the interpreter, or the expressions for the bases, do not allow it.
        """
        try:
            bases = tuple(
                eval(compile(ast.Expression(each), self.filename, "eval", self.flags, True), namespace)
                for each in node.bases
            )
            before = cls.__bases__
            cls.__bases__ = bases or (object,)
        except Exception as error:  # TypeError: another layout; what the expressions raise
            raise Impossible(
                "its bases differ, and the class that exists takes no others: %s" % str(error)[:200]
            ) from None
        self.ledger.note(lambda: setattr(cls, "__bases__", before))

    def run_in_class(self, cls: type, chain: List[Any], body: List[Any], namespace: Dict[str, Any]) -> None:
        """See `statements.run_in_class`."""
        statements.run_in_class(cls, chain, body, self.filename, self.flags, namespace, self.compiled, self.ledger)

    def remove_attribute(self, cls: type, name: str) -> bool:
        """Unbind a name of a class; whether it was there.

        Raises:
            Impossible: the class refuses it.
        """
        try:
            return self.ledger.remove_attribute(cls, name)
        except (TypeError, AttributeError) as error:  # a metaclass's
            raise Impossible("the class refuses it: %s" % str(error)[:200]) from None

    def uncertain(self) -> None:
        """Something was changed whose use cannot be seen."""
        self._patch.certain = False

    def known(self, name: str) -> bool:
        """Whether the old text has a function of that name."""
        return any(key[0] == name for key in self._old.entries)

    def compiled(self, code: types.CodeType) -> None:
        """Note newly compiled code."""
        self._patch.watch_within(self._path, self._live.filename, code)

    def has(self, name: str) -> bool:
        """Whether a function of that name was found alive."""
        return any(key[0] == name for key in self._functions)

    def problem(self, name: str, problem: str, first: bool) -> None:
        """Something could not be put in; told at once if *first* and it is no function of both texts."""
        self._problems[name] = problem
        entries = [entry for key, entry in self._new.entries.items() if key in self._old.entries]
        if first and not any(entry.name == name and not entry.is_class for entry in entries):
            self._patch.tell(name, self._path, problem)

    def tell(
        self, name: str, problem: str = "", how: str = "", outcome: str = "swapped", function: bool = True
    ) -> None:
        """See `Patch.tell`."""
        self._patch.tell(name, self._path, problem, how, outcome, function)


def _unknown(name: str) -> Any:
    return reading.MISSING
