"""Parses durations as people write them: `90`, `"90s"`, `"2m"`, `"1h30m"`, `"7d"`."""

from __future__ import annotations

import math
import re

from windlass.core.errors import BadRecipe

DURATION_S_MAX = 10 * 365 * 86400.0

_UNIT_S = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
_PIECE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_WHOLE = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d|w))+")


def duration_s(value: object, place: str) -> float:
    """Return the seconds of a number or a text such as `2m`. A negative, excessive or malformed duration is refused."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.replace(" ", "")):
        seconds = math.fsum(float(n) * _UNIT_S[unit] for n, unit in _PIECE.findall(value.replace(" ", "")))
    elif isinstance(value, int | float) and not isinstance(value, bool):
        # An int may be too large for a float.
        seconds = float(min(value, 2 * DURATION_S_MAX))
    else:
        raise BadRecipe(f"{value!r} is not a length of time", place=place, remedy='Write seconds, or "90s", "2m", "1h"')
    if not 0 <= seconds <= DURATION_S_MAX:
        raise BadRecipe(f"{value!r} is not between 0 and ten years", place=place)
    return seconds
