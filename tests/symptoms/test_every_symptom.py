"""Every symptom that users report is a test here, or stands in the table of those that are not, with the reason.

Numbers are those of the collection of issue threads that the tests' names quote the first of.

Cured in part only:

3  (exception in a worker of a thread pool): a Future that nobody asks is no stop of "Raised and not going to be
   handled", as somebody may ask later; debugpy's `userUnhandled` stops there, once.
4  (async tests): under trio a nursery gets the exception first; the stop is made at its end, at the failing frame.
8  (CancelledError): debugpy's own filters go on to stop at it unless it is in `ignore`; ours never does.
13-16 (values that freeze): what dap-agent shows is bounded; the variables pane of an editor is debugpy's own.
19 (a question that waits for other threads): ends after its time in the main thread; in other threads a wait in C can't
   be interrupted, and is answered with an error after a further 15 s.
21 (`await` in the console): a plain line is debugpy's, which runs it in another loop; /try says that it cannot.
26 (children of a process attached to by its id): that they are not reported is told; attach to them by their own ids.
29 (gevent, Celery): exceptions of greenlets are told to /why and do not stop; Celery wants `--pool=solo`.
36 (hot reload): what has begun keeps its old code, `__init__` of instances that exist is not run again; both are told.
37 (Python 3.15's duplicates): not tested, as debugpy does not run there.
"""

import ast
import re
from pathlib import Path

SYMPTOMS = set(range(1, 38))
NOT_CURED: set[int] = set()
FOLDER = Path(__file__).parent


def numbered():
    """Number -> names of its tests."""
    found: dict[int, list[str]] = {}
    for file in sorted(FOLDER.glob("test_*.py")):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and (number := re.match(r"test_(\d\d)_", node.name)):
                found.setdefault(int(number[1]), []).append(node.name)
    return found


def test_every_symptom_is_a_test_or_listed_with_the_reason():
    assert set(numbered()) | NOT_CURED == SYMPTOMS
    assert not set(numbered()) & NOT_CURED
    assert len(numbered()) >= 20
    for number in NOT_CURED:
        assert re.search(rf"^{number} +\(", __doc__, re.MULTILINE), number


def test_each_test_names_its_issue():
    for names in numbered().values():
        for name in names:
            assert re.match(r"test_\d\d_[a-z_]+_\d+_[a-z]", name), name
