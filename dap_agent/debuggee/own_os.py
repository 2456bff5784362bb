"""`os.path` as it is when we come: the program may replace its functions later, and must not be run by our looks.

For what we do in the middle of its calls; at a stop `originals` serves.
"""

from __future__ import annotations

import os
import types
from typing import Any


def _copy(module: types.ModuleType, **changed: object) -> types.ModuleType:
    """A copy whose Python functions call each other, whatever becomes of those of *module*."""
    copy = types.ModuleType(module.__name__)
    names = vars(copy)
    names.update(vars(module))
    names.update(changed)
    for name, value in vars(module).items():
        if type(value) is types.FunctionType:
            own = types.FunctionType(value.__code__, names, name, value.__defaults__, value.__closure__)
            own.__kwdefaults__ = value.__kwdefaults__
            names[name] = own
    return copy


path: Any = _copy(os.path, os=_copy(os))
"""`os.path`."""
