"""Dataclasses whose fields have changed: the methods that the decorator has generated are generated again."""

from __future__ import annotations

import ast
import copy
from typing import TYPE_CHECKING, Any, Dict, List, Sequence, Tuple

from . import codes, reading, statements
from .swapping import Impossible

if TYPE_CHECKING:
    from .putting import File

_FIELDS = "__dataclass_fields__"
_GENERATED = ("__init__", "__repr__", "__eq__", "__lt__", "__le__", "__gt__", "__ge__", "__hash__", "__setattr__",
              "__delattr__", "__match_args__", "__replace__", _FIELDS, "__dataclass_params__")  # fmt: skip


def is_record(cls: type) -> bool:
    """Whether *cls* is a dataclass of the standard library itself."""
    return _FIELDS in reading.class_dict(cls)


def _annotated(node: Any) -> List[Any]:
    return [each for each in node.body if isinstance(each, ast.AnnAssign) and isinstance(each.target, ast.Name)]


def fields_differ(old: Any, new: Any) -> bool:
    """Whether two statements of a dataclass have other fields, or in another order."""
    return [*map(codes.dump, _annotated(old))] != [*map(codes.dump, _annotated(new))]


def renew(file: File, cls: Any, chain: Sequence[Tuple[Any, Any]], namespace: Dict[str, Any]) -> List[str]:
    """Give a dataclass the fields of its new statement.

    Args:
        chain: see `classes.Chain`.

    Returns:
        What else is to be said.

    Raises:
        Impossible: it cannot be done; nothing is changed then.
    """
    old, new = chain[-1]
    how = [each for each in new.decorator_list if "dataclass" in codes.dump(each)]
    own = reading.class_dict(cls)
    if len(new.decorator_list) != 1 or not how or "__slots__" in own:
        raise Impossible("its fields are made with the class: it has slots, or other decorators beside @dataclass")
    mark = file.ledger.mark
    try:
        return _renew(file, cls, old, new, how[0], chain, namespace)
    except Exception as error:  # the decorator's, or that of a default value
        file.ledger.roll_back(mark)
        if isinstance(error, Impossible):
            raise
        raise Impossible("@dataclass refuses the new fields: %s" % str(error)[:200]) from None


def _renew(
    file: File, cls: Any, old: Any, new: Any, how: Any, chain: Sequence[Tuple[Any, Any]], namespace: Dict[str, Any]
) -> List[str]:
    own = reading.class_dict(cls)
    before = {each.target.id: codes.dump(each) for each in _annotated(old)}
    known = own[_FIELDS]
    bound = {
        name for each in new.body if not isinstance(each, ast.AnnAssign) for name in statements.names_of(each) or []
    }
    for name in _GENERATED:
        if name not in bound:
            file.ledger.remove_attribute(cls, name)
    names = [each.target.id for each in _annotated(new)]
    gone = [name for name in before if name not in names]
    for name in gone:
        file.ledger.remove_attribute(cls, name)
    # the order of the annotations is the order of the fields
    annotations = {name: own.get("__annotations__", {}).get(name) for name in names}
    file.ledger.set_attribute(cls, "__annotations__", annotations)
    for each in _annotated(new):
        name = each.target.id
        if before.get(name) == codes.dump(each):
            if name in known:
                file.ledger.set_attribute(cls, name, copy.copy(known[name]))
            continue
        if each.value is None:
            file.ledger.remove_attribute(cls, name)
        file.run_in_class(cls, [node for _, node in chain], [each], namespace)
    order = own["__annotations__"]
    file.ledger.set_attribute(cls, "__annotations__", {name: order[name] for name in names})
    mark = dict(own)
    decorator = eval(compile(ast.Expression(how), file.filename, "eval", file.flags, True), namespace)
    made = decorator(cls)
    for name in [name for name in reading.class_dict(cls) if name not in mark]:
        file.ledger.note(_remover(cls, name))
    if made is not cls:
        raise Impossible("its decorator makes another class of it")
    notes = ["instances that exist lack %s" % name for name in names if name not in before and name not in own]
    below = [each.__name__ for each in type.__subclasses__(cls) if is_record(each)]
    return notes + ["%s, derived from it, keeps the old fields" % each for each in below]


def _remover(cls: type, name: str) -> Any:
    def remove() -> None:
        if name in reading.class_dict(cls):
            delattr(cls, name)

    return remove
