"""Which writer the classes of numpy, pandas and torch have."""

from __future__ import annotations

from typing import Callable

from . import arrays, reading, tables, tensors

Writer = Callable[..., None]


def writer_for(cls: type) -> Writer | None:
    """The function that writes instances of *cls*, if it is one of these libraries' types or derives from one."""
    for base in reading.mro(cls):
        top = (reading.module(base) or "").partition(".")[0]
        if top == "numpy":
            if reading.is_heap_type(base):
                continue  # numpy's own are not: a class in Python only says that it is numpy's
            if arrays.real(cls, "numpy", "ndarray"):
                return arrays.put_ndarray
            if arrays.real(cls, "numpy", "generic"):
                return arrays.put_scalar
        elif top == "pandas":
            for name, writer in (
                ("DataFrame", tables.put_frame),
                ("Series", tables.put_series),
                ("Index", tables.put_index),
            ):
                if arrays.real(cls, "pandas", name):
                    return writer
            if cls is base and reading.qualname(cls) in tables.MISSING_MARKS:
                return tables.put_missing
        elif top == "torch" and arrays.real(cls, "torch", "Tensor"):
            return tensors.put_tensor
    return None
