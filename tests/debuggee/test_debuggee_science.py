"""numpy arrays and pandas tables are summarised from where their data lies."""

import time
from typing import Any

import numpy as np
import pandas as pd
import pytest

from dap_agent.debuggee.secrets import Secrets
from dap_agent.debuggee.values import Formatter


def shown(value: Any, name: "str | None" = None) -> dict[str, Any]:
    return Formatter(Secrets({})).value(value, name)


def test_array() -> None:
    found = shown(np.array([[1.0, np.nan, np.inf], [4, 5, 6]]))
    assert found["type"] == "numpy.ndarray"
    assert found["text"] == "numpy.ndarray(shape=(2, 3), dtype=float64, [1.0, nan, inf, 4.0, 5.0, 6.0])"
    assert found["length"] == 2
    assert found["summary"] == {
        "shape": [2, 3], "dtype": "float64", "nan": 1, "min": "1.0", "max": "inf", "inf": 1,
        "head": ["1.0", "nan", "inf", "4.0", "5.0"]}  # fmt: skip


@pytest.mark.parametrize(
    ("array", "dtype", "text"),
    [
        (np.arange(3, dtype="int8"), "int8", "[0, 1, 2]"),
        (np.array(["a", "bcd"]), "str3", "['a', 'bcd']"),
        (np.array([True, False]), "bool", "[True, False]"),
        (np.array(["2024-01-02", "NaT"], dtype="datetime64[D]"), "datetime64", "[2024-01-02, NaT]"),
        (np.array([{"password": "x"}, None], dtype=object), "object", "[{'password': <masked>}, None]"),
        (np.zeros((0, 3)), "float64", "[]"),
        (np.float64(1.5), None, "1.5"),
        (np.int32(7), None, "7"),
        (np.array(5), "int64", "[5]"),
        (np.ma.masked_array([1, 2], mask=[0, 1]), "int64", "[1, 2]"),
        (np.array([(1, "x")], dtype=[("id", "i4"), ("password", "U5")]), "{id: int32, password: str5}", ""),
    ],
)
def test_kinds_of_arrays(array: Any, dtype: "str | None", text: str) -> None:
    found = shown(array)
    assert text in found["text"]
    assert "unreadable" not in found["text"]
    if dtype is not None:
        assert found["summary"]["dtype"] == dtype


def test_a_big_array_is_sampled_and_says_so() -> None:
    array = np.full((20, 1000, 1000), np.nan)
    begun = time.perf_counter()
    found = shown(array)
    assert time.perf_counter() - begun < 1
    assert found["summary"]["sampled"] <= 1000000
    assert found["summary"]["nan"] == found["summary"]["sampled"]


def test_a_subclass_of_ndarray_runs_none_of_its_code() -> None:
    ran = []

    class Loud(np.ndarray):
        def __array_finalize__(self, obj: Any) -> None:
            ran.append("finalize")

        def __array_ufunc__(self, *args: Any, **kwargs: Any) -> Any:
            ran.append("ufunc")

        @property
        def shape(self) -> Any:  # type: ignore[override]
            return ran.append("shape")

        def __getitem__(self, key: Any) -> Any:
            return ran.append("getitem")

    loud = np.ones(5).view(Loud)
    del ran[:]
    assert "shape=(5,)" in shown(loud)["text"]
    assert ran == []


def test_a_class_that_only_says_that_it_is_numpys() -> None:
    ran = []
    fake = type("ndarray", (), {"__module__": "numpy", "shape": property(lambda self: ran.append(1))})
    assert shown(fake())["text"] == "<numpy.ndarray object>"
    assert ran == []


def frame() -> pd.DataFrame:
    return pd.DataFrame(
        {
            "id": [1, 2, 3],
            "price": [1.5, None, 3.5],
            "name": ["a", "b", None],
            "password": ["x", "y", "hunter2"],
            "when": pd.to_datetime(["2024-01-01", None, "2024-01-03"]),
            "small": pd.array([1, None, 3], dtype="Int64"),
            "kind": pd.Categorical(["u", "v", "u"]),
        },
        index=["r1", "r2", "r3"],
    )


def test_dataframe() -> None:
    found = shown(frame())
    assert found["type"].endswith("DataFrame")
    assert found["length"] == 3
    assert "shape=(3, 7)" in found["text"]
    columns = found["summary"]["columns"]
    assert list(columns) == ["id", "price", "name", "password", "when", "small", "kind"]
    assert columns["id"] == {"dtype": "int64", "nan": 0, "head": ["1", "2", "3"]}
    assert columns["price"]["nan"] == 1
    assert columns["price"]["head"] == ["1.5", "nan", "3.5"]
    assert columns["name"]["head"][:2] == ["'a'", "'b'"]
    assert columns["name"]["nan"] == 1
    assert columns["password"]["head"] == ["<masked>"]
    assert columns["when"]["head"] == ["2024-01-01T00:00:00", "NaT", "2024-01-03T00:00:00"]
    assert columns["small"]["dtype"] == "Int64"
    assert columns["small"]["nan"] == 1
    assert columns["kind"] == {"dtype": "category", "nan": 0, "head": ["'u'", "'v'", "'u'"]}
    assert found["summary"]["index"] == "Index['r1', 'r2', 'r3']"
    assert "hunter2" not in str(found)


def test_series_and_index() -> None:
    found = shown(pd.Series([1.0, None], name="rate"))
    assert found["summary"]["nan"] == 1
    assert "name='rate'" in found["text"]
    assert [shown(value)["text"] for value in (pd.NaT, pd.NA)] == ["NaT", "<NA>"]
    assert shown(pd.Series(["hunter2"], name="password"))["summary"]["head"] == ["<masked>"]
    assert "length=1000000" in shown(pd.RangeIndex(1000000))["text"]
    assert shown(pd.MultiIndex.from_product([[1, 2], ["a", "b"]]))["length"] == 4
    assert shown(pd.date_range("2024-01-01", periods=3))["length"] == 3


def test_a_big_and_a_wide_table_are_fast() -> None:
    big = pd.DataFrame(np.ones((1000000, 20)))
    wide = pd.DataFrame(np.ones((3, 20000)))
    for table in (big, wide):
        begun = time.perf_counter()
        found = shown(table)
        assert time.perf_counter() - begun < 1
        assert len(found["summary"]["columns"]) <= 30


def test_a_table_of_a_subclass_runs_none_of_its_code() -> None:
    ran = []

    class Loud(pd.DataFrame):
        @property
        def shape(self) -> Any:
            return ran.append("shape")

        def __getattr__(self, name: str) -> Any:
            ran.append(name)
            raise AttributeError(name)

        def __len__(self) -> int:
            ran.append("len")
            return 0

    table = Loud({"a": [1, 2]})
    del ran[:]
    assert "shape=(2, 1), a: int64" in shown(table)["text"]
    assert ran == []


def test_paths_into_arrays_and_tables() -> None:
    from dap_agent.debuggee import inspection
    from dap_agent.debuggee.stop import Stop

    table, array, nested = frame(), np.arange(12).reshape(3, 4), {"a": [np.ones(3)]}
    try:
        raise ValueError(table.shape, array.shape, nested)
    except ValueError as error:
        stop = Stop.from_exception(error)

    def text(path: str) -> str:
        found: str = inspection.variable(stop, 0, path)["value"]["text"]
        return found

    assert text("array[1]").endswith("[4, 5, 6, 7])")
    assert text("array[1, 2]") == "6"
    assert text("array[:, 0]").endswith("[0, 4, 8])")
    assert text("nested['a'][0][1]") == "1.0"
    assert "1.5, nan, 3.5" in text("table['price']")
    assert text("table['password']") == "<masked>"
    children = inspection.variable(stop, 0, "array", 1, 1)
    assert children["total"] == 3
    assert children["children"][0]["path"] == "array[1]"
    with pytest.raises(inspection.NotThere, match="no column 'nope'; it has 'id'"):
        text("table['nope']")
    with pytest.raises(inspection.NotThere, match="shape is"):
        text("array[9]")
