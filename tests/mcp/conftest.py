"""A shop that crashes, a debug session of it, and what a model says."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from ..agent.conftest import data, pytest_pyfunc_call, root, state
from ..control.conftest import fix, world
from ..control.test_console_debugpy import Session
from ..endtoend.conftest import Trace

__all__ = ["data", "fix", "pytest_pyfunc_call", "root", "state", "world"]


@pytest.fixture
def session(root: Path, tmp_path: Path) -> Session:
    return Session(root, tmp_path)


@pytest.fixture
def trace(session: Session) -> Iterator[Trace]:
    found = Trace(session.temporary)
    yield found
    found.end()
