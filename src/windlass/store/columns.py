"""Encodes values for statements: JSON text, and short columns.

The driver checks every element of an array, so a column with little information is sent short. The SQL expands it.
"""

from __future__ import annotations

from typing import Any

import msgspec

from windlass.core.outcome import Fault


def sparse(column: list[Any]) -> list[Any]:
    """Return the column, or an empty list if it holds only None: `unnest` pads with NULL, and empty is free to send."""
    is_empty = not column or (column[0] is None and column.count(None) == len(column))
    return [] if is_empty else column


def uniform(column: list[Any]) -> list[Any]:
    """Return the column, or one element if all values are equal. Only for columns without NULL (see the SQL)."""
    return column[:1] if column and column.count(column[0]) == len(column) else column


def encode(value: Any) -> str:
    """Return the value as JSON text."""
    return msgspec.json.encode(value).decode()


def encode_fault(fault: Fault | None) -> str | None:
    """Return a fault as JSON text."""
    return None if fault is None else encode(fault.as_json())
