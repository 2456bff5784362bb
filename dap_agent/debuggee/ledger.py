"""What was changed in this process, in order, and how each change is taken back."""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Optional

from . import reading


class Ledger:
    """Changes are made through it, or noted in it, so that all of them can be taken back."""

    def __init__(self) -> None:
        self._undo: List[Callable[[], Any]] = []

    def note(self, undo: Callable[[], Any]) -> None:
        """Something was changed; *undo* takes it back."""
        self._undo.append(undo)

    def roll_back(self, mark: int = 0) -> None:
        """Take back everything, or all that came after *mark*, the newest first.

        What a class of the program's refuses does not keep the rest from it; the first such error is raised at the end.
        """
        failed: Optional[Exception] = None
        while len(self._undo) > mark:
            try:
                self._undo.pop()()
            except Exception as error:  # of a metaclass, whatever it is
                failed = failed or error
        if failed is not None:
            raise failed

    @property
    def mark(self) -> int:
        """For `roll_back`."""
        return len(self._undo)

    def set_item(self, namespace: Dict[str, Any], name: str, value: Any) -> None:
        """Bind a name of a module."""
        self.was(namespace, name, reading.lookup(namespace, name))
        namespace[name] = value

    def was(self, namespace: Dict[str, Any], name: str, old: Any) -> None:
        """A name of a module was bound by somebody else; *old* is what it had before, or MISSING."""
        if old is reading.MISSING:
            self.note(lambda: namespace.pop(name, None))
        else:
            self.note(lambda: namespace.__setitem__(name, old))

    def remove_item(self, namespace: Dict[str, Any], name: str) -> bool:
        """Unbind a name of a module; whether it was there."""
        old = reading.lookup(namespace, name)
        if old is reading.MISSING:
            return False
        self.note(lambda: namespace.__setitem__(name, old))
        del namespace[name]
        return True

    def set_attribute(self, cls: type, name: str, value: Any) -> None:
        """Bind a name of a class; raises what the class raises."""
        old = reading.lookup(reading.class_dict(cls), name)
        setattr(cls, name, value)
        if old is reading.MISSING:
            self.note(lambda: delattr(cls, name))
        else:
            self.note(lambda: setattr(cls, name, old))

    def remove_attribute(self, cls: type, name: str) -> bool:
        """Unbind a name of a class; whether it was there."""
        old = reading.lookup(reading.class_dict(cls), name)
        if old is reading.MISSING:
            return False
        delattr(cls, name)
        self.note(lambda: setattr(cls, name, old))
        return True
