"""Prices, usage, and the cost that results, all in decimals."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

MILLION = Decimal(1_000_000)
ANY_MODEL = "*"


@dataclass(frozen=True, slots=True)
class Price:
    """Prices per call, per second, per item made, and per million tokens."""

    call: Decimal = Decimal(0)
    second: Decimal = Decimal(0)
    item: Decimal = Decimal(0)
    tokens_in: Decimal = Decimal(0)
    tokens_out: Decimal = Decimal(0)


@dataclass(frozen=True, slots=True)
class Usage:
    """The usage, as far as the provider reports it."""

    calls: int = 1
    seconds: Decimal = Decimal(0)
    items: Decimal = Decimal(0)
    tokens_in: int = 0
    tokens_out: int = 0


FREE = Price()


def price_of(prices: Mapping[str, Price], model: str) -> Price:
    """Return the price of a model: by its name, by the longest configured name that it begins with, or by `*`.

    Providers answer with a longer name than the requested one (`gpt-4o` becomes `gpt-4o-2024-08-06`).
    """
    if model in prices:
        return prices[model]
    prefixes = [name for name in prices if name != ANY_MODEL and model.startswith(name)]
    return prices[max(prefixes, key=len)] if prefixes else prices.get(ANY_MODEL, FREE)


def amount_of(price: Price, usage: Usage) -> Decimal:
    """Compute the cost of the usage."""
    amount = (
        price.call * usage.calls
        + price.second * usage.seconds
        + price.item * usage.items
        + price.tokens_in * usage.tokens_in / MILLION
        + price.tokens_out * usage.tokens_out / MILLION
    )
    return amount.normalize() if amount else Decimal(0)


def decimal_of(value: object) -> Decimal | None:
    """Convert a number exactly as written. None for any other value, for infinity, and for a negative number."""
    if isinstance(value, bool) or not isinstance(value, int | float | str | Decimal):
        return None
    try:
        # Through its text: 0.1 is a tenth, and not the binary fraction beside it.
        found = Decimal(str(value))
    except InvalidOperation:
        return None
    return found if found.is_finite() and found >= 0 else None


def count_of(value: object) -> int:
    """Return a provider's count, or 0 for any other value."""
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0
