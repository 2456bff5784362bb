"""Print the invoices of one month."""

import argparse
from pathlib import Path

from billing.invoice import make_invoices, render
from billing.loading import load_customers, load_orders


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where customers.csv and orders.csv are")
    parser.add_argument("--month", required=True, help="for example 2024-05")
    options = parser.parse_args()
    customers = load_customers(options.folder / "customers.csv")
    orders = load_orders(options.folder / "orders.csv", customers)
    total = 0
    for invoice in make_invoices(orders, options.month):
        print(render(invoice))
        total += invoice.total
    print(f"invoiced in {options.month}: {total / 100:.2f}")


if __name__ == "__main__":
    main()
