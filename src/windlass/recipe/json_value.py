"""Decides which values count as JSON: no NaN, and no numbers or depths that other readers would refuse."""

from __future__ import annotations

import math
from typing import Any

from windlass.core.errors import BadRecipe

DEPTH_MAX = 32
# PostgreSQL and most readers store whole numbers of 64 bits, signed or not.
INTEGER_MIN, INTEGER_MAX = -(2**63), 2**64 - 1
INTEGER_SAFE = 2**53


def json_fault(value: Any, place: str, depth: int = 0) -> tuple[str, str] | None:
    """Return the place and the reason of the first fault in a value, or None."""
    # Most values are small and plain, so this check avoids building their places.
    if type(value) is dict and all(map(_is_name, value)) and all(map(_is_plain, value.values())):
        return None
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, str):
        return None if value.isascii() or _is_unicode(value) else (place, "text with half of a surrogate pair")
    if isinstance(value, int):
        return None if INTEGER_MIN <= value <= INTEGER_MAX else (place, f"{value} does not fit in 64 bits")
    if isinstance(value, float):
        return None if math.isfinite(value) else (place, f"{value} is not a JSON number")
    if depth >= DEPTH_MAX:
        return place, f"nested deeper than {DEPTH_MAX}"
    if isinstance(value, dict):
        for key, item in value.items():
            if not isinstance(key, str):
                return place, f"the key {key!r} is not text"
            if fault := json_fault(key, place) or json_fault(item, f"{place}.{key}", depth + 1):
                return fault
        return None
    if isinstance(value, list | tuple):
        for at, item in enumerate(value):
            if fault := json_fault(item, f"{place}[{at}]", depth + 1):
                return fault
        return None
    return place, f"a {type(value).__name__} is not JSON"


def _is_name(key: Any) -> bool:
    return type(key) is str and key.isascii()


def _is_plain(value: Any) -> bool:
    kind = type(value)
    if kind is str:
        return bool(value.isascii())
    return value is None or kind is bool or (kind is int and -INTEGER_SAFE < value < INTEGER_SAFE)


def check_json(value: Any, place: str) -> None:
    """Raise BadRecipe if a constant of a recipe is not JSON."""
    if fault := json_fault(value, place):
        raise BadRecipe(fault[1], place=fault[0])


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
