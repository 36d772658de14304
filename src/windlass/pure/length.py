"""Lengths of time in classes, each a tenth longer than the one before: what shares of many jobs are told from."""

from __future__ import annotations

import math
from collections.abc import Mapping

_STEP = math.log(1.1)
# From a millisecond to some thirty years.
CLASS_MIN, CLASS_MAX = -72, 217


def class_of(seconds: float) -> int:
    """The class that a length falls in."""
    if not seconds > 0:
        return CLASS_MIN
    return min(CLASS_MAX, max(CLASS_MIN, round(math.log(min(seconds, 1e12)) / _STEP)))


def seconds_of(length: int) -> float:
    """The length that stands for a class; those in it differ from it by 5 % at most."""
    return float(f"{math.exp(length * _STEP):.3g}")


def share(counts: Mapping[int, int], part: float) -> float | None:
    """The length that this part of all is not longer than; None when there are none."""
    rest = max(1, math.ceil(sum(counts.values()) * part))
    told = None
    for length in sorted(counts):
        if rest > 0:
            told = seconds_of(length)
        rest -= counts[length]
    return told
