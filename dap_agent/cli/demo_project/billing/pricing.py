"""What things cost. Money is in cents, rates are in percent."""

from typing import Iterable

from billing.model import Customer, Order

DISCOUNTS = {"basic": 0, "silver": 5, "gold": 10}
TAXES = {"AT": 20, "DE": 19, "FR": 20}


def net_of(order: Order) -> int:
    """An order before discount and tax."""
    return sum(line.quantity * line.unit_price for line in order.lines)


def discount_rate(customer: Customer) -> int:
    """How much the customer's tier takes off."""
    return DISCOUNTS[customer.tier]


def tax_rate(customer: Customer) -> int:
    """The tax of the customer's country; customers elsewhere pay none to us."""
    return TAXES.get(customer.country, 0)


def discount_of(orders: Iterable[Order]) -> int:
    """The discount on the orders of one customer."""
    return sum(net_of(order) * discount_rate(order.customer) // 100 for order in orders)
