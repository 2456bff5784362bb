"""Summaries of pandas tables: shape, dtypes, missing values, first rows.

What pandas keeps in Python objects is read from where it is stored, so no property and no subclass's override runs.
"""

from __future__ import annotations

from typing import Any

from . import arrays, reading
from .reading import MISSING
from .secrets import MASK, is_secret_name

MISSING_MARKS = {"NAType": "<NA>", "NaTType": "NaT"}
"""Text for what pandas puts in the place of a missing value, by class."""

_COLUMNS = 30


def stored_array(array: Any) -> tuple[Any, str]:
    """The numpy array inside what pandas stores as a column, and its dtype's name; (MISSING, name) if there is none."""
    if arrays.is_array(array):
        return array, arrays.dtype_name(array.dtype)
    cls = type(array)
    name = reading.qualname(cls)
    codes = reading.read(array, "_ndarray")
    if name == "Categorical":
        return MISSING, "category"
    if arrays.is_array(codes):
        return codes, {"DatetimeArray": "datetime64", "TimedeltaArray": "timedelta64"}.get(
            name, "str" if "String" in name else arrays.dtype_name(codes.dtype)
        )
    data, mask = reading.read(array, "_data"), reading.read(array, "_mask")
    if arrays.is_array(data) and arrays.is_array(mask):
        return (data, mask), arrays.dtype_name(data.dtype).capitalize()
    arrow = reading.read(array, "_pa_array")
    if arrow is not MISSING and (reading.module(type(arrow)) or "").startswith("pyarrow"):
        return arrow, "str" if "String" in name else "arrow"
    return MISSING, name


def column(array: Any, row: int | None = None) -> tuple[list[Any], int | None, str]:
    """First values, count of missing ones (None: unknown) and dtype of a stored column.

    Args:
        row: which row of a two-dimensional block; None for a one-dimensional array.
    """
    values, name = stored_array(array)
    if name == "category":
        return _categories(array)
    if values is MISSING:
        return [], None, name
    if type(values) is tuple:
        data, mask = values
        head = [
            arrays.Text("<NA>") if lost else item
            for item, lost in zip(data[: arrays.HEAD].tolist(), mask[: arrays.HEAD].tolist())
        ]
        return head, int(arrays.numpy("count_nonzero")(arrays.sample(mask)[0])), name
    if not arrays.is_array(values):
        return values.slice(0, arrays.HEAD).to_pylist(), int(values.null_count), name
    if row is not None and values.ndim == 2:
        values = values[row]
    summary: dict[str, Any] = {}
    if values.size <= arrays.SAMPLE:
        if values.dtype.kind in "fcmM":
            arrays.facts(values, summary)
        elif values.dtype.kind == "O":
            lost = sum(map(_is_missing, values[:20000].tolist()))
            summary["nan"] = lost if values.size <= 20000 else None
    return arrays.head_of(values, arrays.HEAD), summary.get("nan", None if values.dtype.kind in "fcmMO" else 0), name


def _is_missing(item: Any) -> bool:
    cls = type(item)
    return item is None or (cls is float and item != item) or reading.qualname(cls) in MISSING_MARKS


def _categories(array: Any) -> tuple[list[Any], int | None, str]:
    """Head and count of missing values of a Categorical: codes, and an Index of what they stand for."""
    codes = reading.read(array, "_ndarray")
    if not arrays.is_array(codes):
        codes = reading.own(array, "_codes")  # before pandas 1.3
    labels = axis_values(reading.read(reading.read(array, "_dtype"), "_categories"))
    if not arrays.is_array(codes) or labels is None:
        return [], None, "category"
    head = [
        arrays.Text("nan") if code < 0 else labels[code] if code < len(labels) else arrays.Text("...")
        for code in codes[: arrays.HEAD].tolist()
    ]
    lost = int(arrays.numpy("count_nonzero")(codes < 0)) if codes.size <= arrays.SAMPLE else None
    return head, lost, "category"


def put_missing(f: Any, value: Any, depth: int) -> None:
    """pandas.NA and pandas.NaT."""
    f.write(MISSING_MARKS[reading.qualname(type(value))])


def axis_values(index: Any) -> list[Any] | None:
    """The first labels of an Index; None if it is not known how to read them."""
    data = reading.own(index, "_data")
    if data is MISSING:
        data = reading.own(index, "_range")
        return list(data[:_COLUMNS]) if type(data) is range else None
    values, _ = stored_array(data)
    if arrays.is_array(values):
        return arrays.head_of(values, _COLUMNS)
    if values is MISSING or type(values) is tuple:
        return None
    return list(values.slice(0, _COLUMNS).to_pylist())


def axis_length(index: Any) -> int | None:
    """The length of an Index."""
    stored = reading.own(index, "_range")
    if type(stored) is range:
        return len(stored)
    stored = reading.own(index, "_codes")  # of a MultiIndex: a FrozenList of code arrays
    if issubclass(type(stored), list) and list.__len__(stored):
        stored = list.__getitem__(stored, 0)
        return int(arrays.plain(stored).shape[0]) if arrays.real(type(stored), "numpy", "ndarray") else None
    values, _ = stored_array(reading.own(index, "_data"))
    if type(values) is tuple:
        values = values[0]
    if arrays.is_array(values):
        return int(values.shape[0])
    return None if values is MISSING else len(values)


def manager(value: Any) -> tuple[list[Any], tuple[Any, ...]] | None:
    """Axes and blocks of a DataFrame's or Series' manager."""
    held = reading.own(value, "_mgr")
    if held is MISSING:
        held = reading.own(value, "_data")
    axes, blocks = reading.read(held, "axes"), reading.read(held, "blocks")
    if type(axes) is not list or type(blocks) is not tuple:
        return None
    return axes, blocks


def _rows_of(block: Any) -> list[int]:
    """The columns that a block holds, in the order of its rows."""
    place = reading.read(block, "mgr_locs")
    if place is MISSING or place is None:
        place = reading.read(block, "_mgr_locs")
    found = reading.read(place, "as_array")
    return found.tolist() if arrays.is_array(found) else []


def columns_of(value: Any) -> dict[int, tuple[Any, int | None]] | None:
    """For each column number of a DataFrame the array that holds it and the row within it; None if not known how."""
    parts = manager(value)
    if parts is None:
        return None
    found: dict[int, tuple[Any, int | None]] = {}
    for block in parts[1]:
        values = reading.read(block, "values")
        for row, number in enumerate(_rows_of(block)):
            found[number] = (values, row)
    return found


def put_frame(f: Any, value: Any, depth: int) -> None:
    """A pandas DataFrame: shape; per column name, dtype, missing values, first rows."""
    name = f.kind(type(value))[1]
    parts = manager(value)
    if parts is None or len(parts[0]) != 2:
        f.write("<%s object>" % name)
        return
    labels, rows = axis_values(parts[0][0]), axis_length(parts[0][1])
    found = columns_of(value) or {}
    if f.whole(depth):
        f.length = rows
    shown = sorted(found)[: _COLUMNS if f.whole(depth) else 10]
    f.write("%s(shape=(%s, %d)" % (name, rows, len(found)))
    columns: dict[str, Any] = {}
    for number in shown:
        label = labels[number] if labels is not None and number < len(labels) else number
        key = arrays.cell(f, label)
        if type(label) is str:
            key = f.secrets.mask(label[:80])
        head, missing, dtype = column(*found[number])
        if type(label) is str and is_secret_name(label) and head:
            head = [arrays.Text(MASK)]
            f.masked = True
        columns[key] = {"dtype": dtype, "nan": missing, "head": [arrays.cell(f, item) for item in head]}
        f.write(", %s: %s" % (key, dtype))
    if len(found) > len(shown):
        f.truncated = True
        f.write(", ... %d more columns" % (len(found) - len(shown)))
    f.write(")")
    if f.whole(depth):
        f.summary = {"shape": [rows, len(found)], "columns": columns, "index": _index_summary(f, parts[0][1])}


def put_series(f: Any, value: Any, depth: int) -> None:
    """A pandas Series: length, dtype, missing values, first items."""
    name = f.kind(type(value))[1]
    parts = manager(value)
    if parts is None or len(parts[0]) != 1 or len(parts[1]) != 1:
        f.write("<%s object>" % name)
        return
    label = reading.own(value, "_name")
    head, missing, dtype = column(reading.read(parts[1][0], "values"))
    length = axis_length(parts[0][0])
    if type(label) is str and is_secret_name(label) and head:
        head = [arrays.Text(MASK)]
        f.masked = True
    f.write("%s(length=%s, dtype=%s" % (name, length, dtype))
    if type(label) is str:
        f.write(", name=" + repr(f.secrets.mask(label[:80])))
    f.write(", [")
    arrays.put_items(f, head, length if length is not None else len(head), depth)
    f.write("])")
    if f.whole(depth):
        f.length = length
        f.summary = {"shape": [length], "dtype": dtype, "nan": missing, "head": [arrays.cell(f, item) for item in head],
                     "index": _index_summary(f, parts[0][0])}  # fmt: skip


def _index_summary(f: Any, index: Any) -> str:
    labels = axis_values(index)
    name = reading.qualname(type(index))
    if labels is None:
        return name
    return "%s[%s%s]" % (
        name,
        ", ".join(arrays.cell(f, label) for label in labels[: arrays.HEAD]),
        ", ..." if len(labels) > arrays.HEAD else "",
    )


def put_index(f: Any, value: Any, depth: int) -> None:
    """A pandas Index."""
    labels, length = axis_values(value), axis_length(value)
    if f.whole(depth):
        f.length = length
    f.write("%s(length=%s, [" % (f.kind(type(value))[1], length))
    arrays.put_items(f, (labels or [])[: f.limits.items], length or 0, depth)
    f.write("])")
