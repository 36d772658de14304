"""Named events that jobs are sent, and which of them a step that waits is content with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fits(match: Mapping[str, Any], body: Any) -> bool:
    """Whether an event holds what the step waits for: every key of `match`, with an equal value."""
    if not match:
        return True
    if not isinstance(body, Mapping):
        return False
    return all(key in body and same(value, body[key]) for key, value in match.items())


def same(one: Any, other: Any) -> bool:
    """Whether two JSON values are equal. To Python `true` is 1, and to JSON it is not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping):
        is_alike = isinstance(other, Mapping) and one.keys() == other.keys()
        return is_alike and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        is_alike = isinstance(other, list) and len(one) == len(other)
        return is_alike and all(map(same, one, other))
    return bool(one == other)
