"""Matches the events that are sent to a job with the steps that wait for them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def fits(match: Mapping[str, Any], body: Any) -> bool:
    """Return whether an event matches a step's wait: it has every key of `match`, with an equal value."""
    if not match:
        return True
    if not isinstance(body, Mapping):
        return False
    return all(key in body and same(value, body[key]) for key, value in match.items())


def same(one: Any, other: Any) -> bool:
    """Return whether two JSON values are equal. Python equates `true` with 1; JSON does not."""
    if isinstance(one, bool) or isinstance(other, bool):
        return one is other
    if isinstance(one, Mapping):
        is_alike = isinstance(other, Mapping) and one.keys() == other.keys()
        return is_alike and all(same(value, other[key]) for key, value in one.items())
    if isinstance(one, list):
        is_alike = isinstance(other, list) and len(one) == len(other)
        return is_alike and all(map(same, one, other))
    return bool(one == other)
