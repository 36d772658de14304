"""Duration classes, each a tenth longer than its predecessor, for percentiles over many jobs."""

from __future__ import annotations

import math
from collections.abc import Mapping

_STEP = math.log(1.1)
# From a millisecond to some thirty years.
CLASS_MIN, CLASS_MAX = -72, 217


def class_of(seconds: float) -> int:
    """Return the class of a duration."""
    if not seconds > 0:
        return CLASS_MIN
    return min(CLASS_MAX, max(CLASS_MIN, round(math.log(min(seconds, 1e12)) / _STEP)))


def seconds_of(length: int) -> float:
    """Return the duration that represents a class; durations in the class differ from it by at most 5 %."""
    return float(f"{math.exp(length * _STEP):.3g}")


def share(counts: Mapping[int, int], part: float) -> float | None:
    """Return the duration that `part` of all durations do not exceed, or None if there are none."""
    rest = max(1, math.ceil(sum(counts.values()) * part))
    told = None
    for length in sorted(counts):
        if rest > 0:
            told = seconds_of(length)
        rest -= counts[length]
    return told
