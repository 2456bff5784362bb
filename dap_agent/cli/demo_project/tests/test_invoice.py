from datetime import date

from billing.invoice import make_invoices, render
from billing.model import Customer, Line, Order

ADA = Customer("C1", "Ada", "DE", "gold")


def order(day):
    return Order("A1", ADA, day, [Line("pen", 10, 1000)])


def test_discount_comes_off_before_tax():
    (invoice,) = make_invoices([order(date(2024, 5, 2))], "2024-05")
    assert (invoice.net, invoice.discount, invoice.tax, invoice.total) == (10000, 1000, 1710, 10710)


def test_only_the_month_counts():
    assert list(make_invoices([order(date(2024, 4, 30))], "2024-05")) == []


def test_an_invoice_is_one_line():
    (invoice,) = make_invoices([order(date(2024, 5, 2))], "2024-05")
    assert render(invoice).split() == ["Ada", "1", "orders", "107.10"]
