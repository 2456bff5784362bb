from datetime import date

import pytest

from billing.loading import load_customers, load_orders, parse_customer, parse_price
from billing.model import Customer


def test_a_customer_is_read_from_a_row():
    row = {"id": "C1", "name": " Ada ", "country": "de", "tier": "silver"}
    assert parse_customer(row) == Customer("C1", "Ada", "DE", "silver")


def test_without_a_tier_a_customer_is_basic():
    assert parse_customer({"id": "C1", "name": "Ada", "country": "DE", "tier": ""}).tier == "basic"


@pytest.mark.parametrize("text, cents", [("12.50", 1250), ("3", 300), ("0.5", 50), ("1,299.00", 129900)])
def test_prices_become_cents(text, cents):
    assert parse_price(text) == cents


def test_rows_of_one_order_are_its_lines(tmp_path):
    (tmp_path / "customers.csv").write_text("id,name,country,tier\nC1,Ada,DE,gold\n")
    (tmp_path / "orders.csv").write_text(
        "order,customer,day,product,quantity,price\nA1,C1,2024-05-02,pen,2,1.00\nA1,C1,2024-05-02,ink,1,5.00\n"
    )
    orders = load_orders(tmp_path / "orders.csv", load_customers(tmp_path / "customers.csv"))
    assert [(order.number, order.day, len(order.lines)) for order in orders] == [("A1", date(2024, 5, 2), 2)]
