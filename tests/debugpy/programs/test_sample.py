"""Tests that fail in every way a test can; run by test_pytest_stops.py, not collected as tests of dap-agent."""

import unittest

import pytest


def lookup(mapping):
    return mapping["key"]


@pytest.fixture
def broken():
    raise RuntimeError("in the fixture")


def test_expected():
    with pytest.raises(KeyError):
        lookup({})


def test_handled():
    try:
        lookup({})
    except KeyError:
        pass


def test_bug():
    print("said in the test")
    lookup({"other": 1})


def test_assertion():
    assert lookup({"key": 2}) == 3


@pytest.mark.xfail(strict=True)
def test_known():
    lookup({})


def test_fixture(broken):
    pass


def test_skipped():
    pytest.skip("not today")


class Case(unittest.TestCase):
    def test_equal(self):
        self.assertEqual(1, 2)
