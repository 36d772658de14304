"""What work costs: prices as they are configured, what was used, and their product. All of it in decimals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

MILLION = Decimal(1_000_000)
ANY_MODEL = "*"


@dataclass(frozen=True, slots=True)
class Price:
    """What is charged: once per call, per second, per piece that was made, per million tokens."""

    call: Decimal = Decimal(0)
    second: Decimal = Decimal(0)
    item: Decimal = Decimal(0)
    tokens_in: Decimal = Decimal(0)
    tokens_out: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Usage:
    """What was used, as far as the provider tells."""

    calls: int = 1
    seconds: Decimal = Decimal(0)
    items: Decimal = Decimal(0)
    tokens_in: int = 0
    tokens_out: int = 0


FREE = Price()


def price_of(prices: Mapping[str, Price], model: str) -> Price:
    """The price of a model: under its own name, under the longest name that it begins with, or under `*`.

    Providers answer with a longer name than they were asked for (`gpt-4o` becomes `gpt-4o-2024-08-06`).
    """
    if model in prices:
        return prices[model]
    fitting = [name for name in prices if name != ANY_MODEL and model.startswith(name)]
    return prices[max(fitting, key=len)] if fitting else prices.get(ANY_MODEL, FREE)


def amount_of(price: Price, usage: Usage) -> Decimal:
    """What so much costs."""
    amount = (
        price.call * usage.calls
        + price.second * usage.seconds
        + price.item * usage.items
        + price.tokens_in * usage.tokens_in / MILLION
        + price.tokens_out * usage.tokens_out / MILLION
    )
    return amount.normalize() if amount else Decimal(0)


def decimal_of(value: object) -> Decimal | None:
    """A number as it was written, None for what is none, is endless or is below zero."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        # By way of its text: 0.1 is a tenth, and not the binary fraction beside it.
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None


def count_of(value: object) -> int:
    """A count that a provider tells; what is no count is none."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
