"""From the shop's CSV exports to objects."""

import csv
from datetime import date
from pathlib import Path
from typing import Dict, List

from billing.model import Customer, Line, Order


def parse_customer(row: Dict[str, str]) -> Customer:
    """A row of customers.csv."""
    return Customer(
        id=row["id"].strip(),
        name=row["name"].strip(),
        country=row["country"].strip().upper(),
        tier=row["tier"] or "basic",
    )


def parse_price(text: str) -> int:
    """A price like 12.50 or 1,299.00 in cents."""
    units, _, cents = text.strip().replace(",", "").partition(".")
    return int(units) * 100 + int((cents + "00")[:2])


def load_customers(path: Path) -> Dict[str, Customer]:
    """All customers, by id."""
    with open(path, newline="", encoding="utf-8") as file:
        customers = [parse_customer(row) for row in csv.DictReader(file)]
    return {customer.id: customer for customer in customers}


def load_orders(path: Path, customers: Dict[str, Customer]) -> List[Order]:
    """All orders; rows with the same order number are lines of one order."""
    orders: Dict[str, Order] = {}
    with open(path, newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            number = row["order"]
            if number not in orders:
                orders[number] = Order(number, customers[row["customer"]], date.fromisoformat(row["day"]))
            orders[number].lines.append(Line(row["product"], int(row["quantity"]), parse_price(row["price"])))
    return list(orders.values())
