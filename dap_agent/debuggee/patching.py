"""Changed files put into this process: a jailed copy, in which a candidate is tried, or the one that goes on."""

from __future__ import annotations

import types
import warnings
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Set, Tuple

from . import codes, imports, putting, reading, statements
from .codes import Source
from .ledger import Ledger
from .live import Live

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


class Outcome(NamedTuple):
    """What has become of one function, class or name.

    Args:
        name: qualified.
        outcome: `swapped`, `added`, `removed` or `refused`.
        reason: why, or how; may be empty.
        function: whether it is a function or a class.
    """

    name: str
    outcome: str
    reason: str
    function: bool


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
        frames: as given.
        goes_on: as given.
        ledger: what was done.
    """

    def __init__(self, frames: List[types.FrameType], goes_on: bool = False) -> None:
        self.frames = frames
        self.goes_on = goes_on
        self.ledger = Ledger()
        self.outcomes: List[Outcome] = []
        self.told: List[Dict[str, Any]] = []
        self.watched: List[Tuple[str, str, types.CodeType]] = []
        self.changed: Dict[str, Set[codes.Key]] = {}
        self.moved: Dict[int, Tuple[types.CodeType, types.CodeType]] = {}
        self.sources: Dict[str, Tuple[Source, Source]] = {}
        self.certain = True
        self.started: Optional[Callable[[types.CodeType], None]] = None
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
            self.tell(change.path, change.path, "it is no Python source; the trial goes without this change")
            return
        # also for what is loaded: an import that has failed is made once more
        imports.add(change.path, change.new, lambda code: self._imported(change.path, live, code))
        if live is None:
            self.tell(change.path, change.path, "", "imported from the new text once the program asks for it")
            return
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler, about the user's text
            try:
                old = known or Source(change.old if change.old is not None else "", live.filename)
                new = Source(change.new, live.filename)
            except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
                self.tell(change.path, change.path, "it does not compile: %s" % error)
                return
            self.put_compiled(change.path, live, old, new, from_index.get(live.path))

    def put_compiled(
        self,
        path: str,
        live: Live,
        old: Source,
        new: Source,
        until: Optional[int] = None,
        suspect: Callable[[str], bool] = lambda name: False,
    ) -> None:
        """Put one file in, of which both texts are compiled.

        Args:
            until: as `put` has it in *from_index*.
            suspect: see `putting.File`.
        """
        self.sources[live.filename] = old, new
        putting.File(self, path, live, old, new, until, suspect).put()

    def _imported(self, path: str, live: Optional[Live], code: types.CodeType) -> None:
        self.certain = False  # its statements run now
        if live is not None and live.filename in self.sources:
            self.watch_within(path, live.filename, code)
            return
        for each in codes.all_codes(code):
            self.watch(path, "(module)" if each is code else each.co_name, each)

    def watch(self, path: str, name: str, code: types.CodeType) -> None:
        """Note *code*, of the function *name* in the file *path*, as put in."""
        self.watched.append((path, name, code))
        if self.started is not None:
            self.started(code)

    def watch_within(self, path: str, filename: str, code: types.CodeType) -> None:
        """Note what in newly compiled *code* belongs to a function that differs."""
        new, keys = self.sources[filename][1], self.changed.get(filename, set())
        for each in codes.all_codes(code):
            entry = new.entry_of(each)
            if entry is not None and entry.key in keys:
                self.watch(path, entry.named.name, each)

    def tell(
        self, name: str, path: str, problem: str, how: str = "", outcome: str = "swapped", function: bool = True
    ) -> None:
        """Report of a function, class or name.

        Args:
            problem: why it was not put in; empty: it was.
            how: further words on how.
            outcome: `swapped`, `added` or `removed`, if it was put in.
            function: False for what is none, a constant or an import.
        """
        self.outcomes.append(Outcome(name, "refused" if problem else outcome, problem or how, function))
        self.told.append(
            {"name": name, "file": path, "swapped": not problem, "how": _NOT_SWAPPED + problem if problem else how}
        )

    def local_of(self, code: types.CodeType, name: str) -> Any:
        """The variable *name* in the innermost frame that runs *code*."""
        for frame in self.frames:
            if frame.f_code is code:
                found = frame.f_locals.get(name, reading.MISSING)
                if found is not reading.MISSING:
                    return found
        return reading.MISSING
