"""Lengths of time in classes."""

from __future__ import annotations

import math
import statistics

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.pure.length import CLASS_MAX, CLASS_MIN, class_of, seconds_of, share


@given(st.floats(0.002, 9e8))
def test_a_class_is_within_a_twentieth_of_what_is_in_it(seconds: float) -> None:
    assert math.isclose(seconds_of(class_of(seconds)), seconds, rel_tol=0.055)


@pytest.mark.parametrize("seconds", [0.0, -1.0, math.nan, 1e-9])
def test_what_took_no_time_is_in_the_first_class(seconds: float) -> None:
    assert class_of(seconds) == CLASS_MIN


@pytest.mark.parametrize("seconds", [1e10, 1e300, math.inf])
def test_what_took_for_ever_is_in_the_last_class(seconds: float) -> None:
    assert class_of(seconds) == CLASS_MAX
    assert -(2**15) < CLASS_MIN < CLASS_MAX < 2**15


def test_no_jobs_have_no_share() -> None:
    assert share({}, 0.5) is None


@given(st.lists(st.floats(0.01, 1e5), min_size=1, max_size=200), st.sampled_from([0.01, 0.5, 0.95, 1.0]))
def test_a_share_is_that_of_the_lengths_themselves(lengths: list[float], part: float) -> None:
    counts: dict[int, int] = {}
    for one in lengths:
        counts[class_of(one)] = counts.get(class_of(one), 0) + 1
    exact = sorted(lengths)[max(1, math.ceil(len(lengths) * part)) - 1]
    told = share(counts, part)
    assert told is not None and math.isclose(told, exact, rel_tol=0.055)


def test_the_middle_of_many_is_the_median() -> None:
    lengths = [float(n) for n in range(1, 1000)]
    counts: dict[int, int] = {}
    for one in lengths:
        counts[class_of(one)] = counts.get(class_of(one), 0) + 1
    assert math.isclose(share(counts, 0.5) or 0, statistics.median(lengths), rel_tol=0.055)
