"""A changed class statement put into the class that exists: its instances stay what they are."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple

from . import caution, differences, reading, records, statements, swapping
from .swapping import Impossible

if TYPE_CHECKING:
    from .putting import File

Chain = Sequence[Tuple[Any, Any]]
"""The `class` statements from the outermost inwards, each old and new."""


class ClassChange:
    """Puts changes of classes in.

    Args:
        file: that it is of.
        namespace: of the module.
        first: whether it is the first module made of that file: only then something is told.
    """

    def __init__(self, file: File, namespace: Dict[str, Any], first: bool) -> None:
        self._file = file
        self._namespace = namespace
        self._first = first

    def put(self, chain: Chain) -> None:
        """Put in what differs in the innermost class of *chain*."""
        old, new = chain[-1]
        name = ".".join(node.name for _, node in chain)
        cls = swapping.class_named(self._namespace, name)
        if cls is None:
            self._problem(name, "no class of that name is in the module")
            return
        self._head(name, cls, old, new)
        fields = records.is_record(cls)
        wanted = []
        for change in statements.changes(*self._file.bodies(old, new)):
            node, inner = change.new, change.old
            if statements.is_class(node) and inner is not None and statements.is_class(inner):
                self.put([*chain, (inner, node)])
            elif statements.is_function(node) and inner is not None and differences.same_decorators(inner, node):
                if not self._file.has(name + "." + node.name):
                    wanted.append(node)
            elif fields and isinstance(node, ast.AnnAssign):
                continue  # all of them at once, below
            elif not statements.is_harmless(node):
                if statements.names_of(node) is None:
                    self._problem("%s, line %d" % (name, node.lineno), "such a statement runs with its class only")
                else:
                    wanted.append(node)
        for node in wanted:
            self._statement(cls, name, chain, node)
        self._remove(cls, name, old, new, fields)
        if fields and records.fields_differ(old, new):
            self._fields(cls, name, chain)

    def _head(self, name: str, cls: Any, old: Any, new: Any) -> None:
        bases, keywords, decorators = (
            one != other for one, other in zip(differences.class_head(old), differences.class_head(new))
        )
        problem = ""
        if keywords:
            problem = "its metaclass or the arguments of that differ: the class would have to be made anew"
        elif decorators:
            problem = "its decorators differ: the class would have to be made anew"
        if bases:
            try:
                self._file.set_bases(cls, new, self._namespace)
            except Impossible as error:
                problem = problem or str(error)
            else:
                self._tell(name, "with its new bases", function=True)
        if problem:
            self._problem(name, problem)

    def _statement(self, cls: type, name: str, chain: Chain, node: Any) -> None:
        names = statements.names_of(node) or []
        told = "%s.%s" % (name, ", ".join(names))
        function = statements.is_function(node)
        try:
            caution.in_class(cls, node)
            if self._file.goes_on and not hasattr(node, "name"):
                own = dict(reading.class_dict(cls))
                before = statements.binding_like(chain[-1][0].body, names)
                binding = caution.Binding(before, node, caution.resolver(own), set())
                binding.check(names, caution.resolver(own, self._namespace))
            group = self._group(chain[-1][1], node)
            self._file.run_in_class(cls, [each for _, each in chain], group, self._namespace)
        except Impossible as error:
            self._problem(told, str(error))
            return
        if not function:
            self._file.uncertain()
            self._tell(told, function=False)
        elif self._file.known(told):
            self._file.note(told, "with its new decorators")

    def _remove(self, cls: type, name: str, old: Any, new: Any, fields: bool) -> None:
        """Attributes that the class does not bind any more."""
        bound = {each for node in ast.walk(new) for each in statements.names_of(node) or [] if hasattr(node, "lineno")}
        before, after = self._file.bodies(old, new)
        for gone in dict.fromkeys(statements.gone(before, after)):
            node = statements.binding_like(old.body, [gone])
            if gone in bound or (fields and isinstance(node, ast.AnnAssign)):
                continue
            told = "%s.%s" % (name, gone)
            try:
                caution.in_class(cls, node)
                done = self._file.remove_attribute(cls, gone)
            except Impossible as error:
                self._problem(told, str(error))
                continue
            if done:
                self._file.uncertain()
                self._tell(told, "removed", "removed", function=statements.is_definition(node))

    def _fields(self, cls: type, name: str, chain: Chain) -> None:
        try:
            notes = records.renew(self._file, cls, chain, self._namespace)
        except Impossible as error:
            self._problem(name, str(error))
            return
        self._file.uncertain()
        self._tell(name, "; ".join(["with its new fields", *notes]), function=True)

    def _tell(self, name: str, how: str = "", outcome: str = "swapped", function: bool = True) -> None:
        if self._first:
            self._file.tell(name, "", how, outcome, function)

    def _problem(self, name: str, problem: str) -> None:
        self._file.problem(name, problem, self._first)

    @staticmethod
    def _group(cls: Any, node: Any) -> List[Any]:
        """The statement and those before it that bind the same name: a setter needs its property."""
        if not statements.is_function(node):
            return [node]
        alike = [each for each in cls.body if statements.is_function(each) and each.name == node.name]
        return alike if len(alike) > 1 else [node]
