"""Leases and gaps: what a worker's silence proves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.lease import (
    COUNTED_PART,
    GAP_PART,
    LOOK_PART,
    RESCUE_AFTER_S,
    is_gap,
    left_after,
    look_every_s,
    may_be_over,
)

LEASE_S = 15.0


def test_engines_look_often_enough_that_no_usual_pause_is_a_gap() -> None:
    assert look_every_s(LEASE_S) == 5.0
    assert not is_gap(look_every_s(LEASE_S), LEASE_S)


def test_a_lease_is_left_alone_while_engines_look() -> None:
    assert left_after(-0.5, LEASE_S, LEASE_S * GAP_PART) == -0.5


def test_a_twelve_second_outage_loses_no_worker() -> None:
    assert left_after(LEASE_S - 5 - 12, LEASE_S, 12) > 0


@given(
    outage_s=st.floats(0, 86_400),
    renewed_before_s=st.floats(0, LEASE_S / 3),
    looked_before_s=st.floats(0, LEASE_S * LOOK_PART),
)
def test_a_worker_has_time_to_renew_after_any_outage(
    outage_s: float, renewed_before_s: float, looked_before_s: float
) -> None:
    left = left_after(LEASE_S - renewed_before_s - outage_s, LEASE_S, outage_s + looked_before_s)
    assert left >= LEASE_S / 6 - 1e-6
    assert left <= LEASE_S


@given(gap_s=st.floats(LEASE_S * GAP_PART + 0.001, 3600))
def test_a_silent_worker_is_lost_in_the_end_however_slow_the_engine_is(gap_s: float) -> None:
    left, looks = LEASE_S, 0
    while left > 0:
        left, looks = left_after(left - gap_s, LEASE_S, gap_s), looks + 1
    assert looks <= 1 / COUNTED_PART + 1


@given(left_s=st.floats(-3600, 3600), gap_s=st.floats(0, 86_400))
def test_no_lease_is_made_shorter_or_longer_than_a_fresh_one(left_s: float, gap_s: float) -> None:
    assert left_s <= left_after(left_s, LEASE_S, gap_s) <= max(left_s, LEASE_S)


@pytest.mark.parametrize(
    ("reply_s", "lease_s", "timeouts_s", "is_so"),
    [
        (0.1, LEASE_S, [0.1], False),
        (RESCUE_AFTER_S, LEASE_S, [], False),
        (RESCUE_AFTER_S + 0.9, LEASE_S, [30.0, 1.0], False),
        (RESCUE_AFTER_S + 1.0, LEASE_S, [30.0, 1.0], True),
        (LEASE_S, LEASE_S, [], True),
        (2.0, 2.0, [30.0], True),
    ],
)
def test_a_late_reply_may_name_attempts_that_are_over(
    reply_s: float, lease_s: float, timeouts_s: list[float], is_so: bool
) -> None:
    assert may_be_over(reply_s, lease_s, timeouts_s) is is_so
