from tally.readings import Reading, parse_value, read
from tally.report import report


def test_values_have_a_comma_or_a_point():
    assert parse_value("12,5") == parse_value("12.5") == 12.5


def test_comments_are_left_out():
    assert list(read(["# day;meter;value", "", "2024-05-01;a1;7,0"])) == [Reading("2024-05-01", "a1", 7.0)]


def test_report():
    readings = read(["2024-05-01;a1;10", "2024-05-02;a1;14", "2024-05-03;a1;20"])
    assert report(readings) == ["a1 5.0"]
