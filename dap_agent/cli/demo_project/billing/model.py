"""What the shop deals with. Money is in cents."""

from dataclasses import dataclass, field
from datetime import date
from typing import List


@dataclass(frozen=True)
class Customer:
    """Who buys.

    tier is the level of the loyalty programme: "basic", "silver" or "gold".
    """

    id: str
    name: str
    country: str
    tier: str


@dataclass(frozen=True)
class Line:
    """A product on an order."""

    product: str
    quantity: int
    unit_price: int


@dataclass
class Order:
    """What a customer bought at once."""

    number: str
    customer: Customer
    day: date
    lines: List[Line] = field(default_factory=list)


@dataclass(frozen=True)
class Invoice:
    """What a customer has to pay for a month."""

    customer: Customer
    month: str
    orders: List[Order]
    net: int
    discount: int
    tax: int

    @property
    def total(self) -> int:
        return self.net - self.discount + self.tax
