"""Encodes the values of documents as JSON, with the formats of times and amounts of money."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from decimal import Decimal
from enum import StrEnum
from typing import Any, TypeVar, cast

import msgspec

E = TypeVar("E", bound=StrEnum)


def known(kind: type[E], text: str) -> E:
    """Return the enum's member with this value. A value that a newer release wrote passes as it is."""
    return kind(text) if text in kind._value2member_map_ else cast(E, text)


def rfc3339(at: datetime) -> str:
    """Return a time as RFC 3339 text in UTC, with milliseconds."""
    if at.tzinfo is not UTC:
        at = at.astimezone(UTC)
    return at.isoformat(timespec="milliseconds")[:-6] + "Z"


def money_text(amount: Decimal) -> str:
    """Return an amount as text, without an exponent and without trailing zeros."""
    text = f"{amount:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def encoded(values: Any) -> bytes:
    """Return the JSON text of a document."""
    return msgspec.json.encode(_plain(values))


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Decimal):
        return money_text(value)
    if isinstance(value, Mapping):
        return {name: _plain(one) for name, one in value.items()}
    return [_plain(one) for one in value] if isinstance(value, list | tuple) else value
