"""Invoices of a month."""

from typing import Dict, Iterable, Iterator, List

from billing.model import Customer, Invoice, Order
from billing.pricing import discount_of, net_of, tax_rate


def make_invoices(orders: Iterable[Order], month: str) -> Iterator[Invoice]:
    """One invoice for each customer who bought something in the month, by name."""
    by_customer: Dict[str, List[Order]] = {}
    for order in orders:
        if order.day.strftime("%Y-%m") == month:
            by_customer.setdefault(order.customer.id, []).append(order)
    for bought in sorted(by_customer.values(), key=lambda orders: orders[0].customer.name):
        yield make_invoice(bought[0].customer, month, bought)


def make_invoice(customer: Customer, month: str, orders: List[Order]) -> Invoice:
    """The invoice of one customer."""
    net = sum(net_of(order) for order in orders)
    discount = discount_of(orders)
    tax = (net - discount) * tax_rate(customer) // 100
    return Invoice(customer, month, orders, net, discount, tax)


def render(invoice: Invoice) -> str:
    """An invoice in one line."""
    return f"{invoice.customer.name:<20} {len(invoice.orders)} orders {invoice.total / 100:>10.2f}"
