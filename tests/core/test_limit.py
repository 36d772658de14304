from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.caller import CallerContext
from windlass.core.limit import (
    MOST_MAX,
    SLICES,
    Composite,
    FairShare,
    MembershipTier,
    RateLimit,
    Strategy,
    Window,
    full,
    take,
    window,
)

FAIR = FairShare(capacity=1_000_000, floor=10_000, internal=frozenset({"nightly"}))
TIER = MembershipTier({"pro": 100_000}, FAIR)
BOTH = Composite(FAIR, TIER)


def caller(tier: str | None = None, caller_type: str = "user", name: str = "ada", **claims: Any) -> CallerContext:
    return CallerContext(name, caller_type, tier, raw_claims=claims)


@pytest.mark.covers("CIX-68", "CIX-69")
@pytest.mark.parametrize(
    ("active", "requests"),
    [(0, 1_000_000), (1, 1_000_000), (3, 333_333), (100, 10_000), (101, 10_000), (10**9, 10_000)],
)
def test_a_fair_share_falls_with_the_number_of_callers_down_to_the_floor(active: int, requests: int) -> None:
    assert FAIR.limit(caller(), active) == RateLimit(requests, 3600, int(requests * 1.5) - requests)


@pytest.mark.covers("CIX-68", "CIX-70")
@pytest.mark.parametrize("ctx", [caller(caller_type="service"), caller(name="nightly")])
def test_internal_callers_have_twenty_times_the_floor_and_no_burst(ctx: CallerContext) -> None:
    assert FAIR.limit(ctx, 50) == RateLimit(200_000, 3600, 0)


def test_a_tier_has_its_own_limit() -> None:
    assert TIER.limit(caller("pro"), 7) == RateLimit(100_000, 3600, 0)


def test_an_unknown_tier_shares_fairly() -> None:
    assert TIER.limit(caller("gold"), 7) == TIER.limit(caller(), 7) == FAIR.limit(caller(), 7)


def test_limits_of_its_own_win_over_the_tier() -> None:
    own = {"requests": 5, "window_seconds": 60, "burst": 2}
    assert TIER.limit(caller("pro", rate_limits=own), 7) == RateLimit(5, 60, 2)
    assert TIER.limit(caller(rate_limits={"requests": 5}), 7) == RateLimit(5, 3600, 0)


@pytest.mark.parametrize(
    "own",
    [5, "many", [], {"requests": None}, {"requests": "5"}, {"requests": True}, {"requests": -1}, {"window_seconds": 60},
     {"requests": 5, "window_seconds": 0}, {"requests": 5, "window_seconds": 10**9}, {"requests": 5, "burst": -1},
     {"requests": 5, "burst": 0.5}, {"requests": 5, "window_seconds": None}],
)  # fmt: skip
def test_limits_that_cannot_be_read_are_not_followed(own: Any) -> None:
    assert TIER.limit(caller("pro", rate_limits=own), 7) == RateLimit(100_000, 3600, 0)


@pytest.mark.covers("CIX-71", "CIX-74")
@pytest.mark.parametrize(
    ("ctx", "requests"),
    [
        (caller(), 1_000_000),
        (caller(caller_type="service"), 200_000),
        (caller("pro"), 100_000),
        (caller("pro", "service"), 100_000),
        (caller(rate_limits={"requests": 9}), 9),
        (caller(rate_limits={}), 1_000_000),
        (caller(""), 1_000_000),
    ],
)
def test_what_membership_says_changes_the_limit_and_no_code(ctx: CallerContext, requests: int) -> None:
    assert BOTH.limit(ctx, 1).requests == requests


def test_a_limit_fits_what_a_row_can_count() -> None:
    huge = FairShare(capacity=10**9, floor=10**9, burst=100.0)
    assert huge.limit(caller(), 1).most == MOST_MAX
    assert RateLimit(5, 60, 2).most == 7
    strategies: list[Strategy] = [FAIR, TIER, BOTH]
    assert all(strategy.limit(caller(), 1).slice_s == 60.0 for strategy in strategies)


# ------------------------------------------------------------------ the window

LIMIT = RateLimit(10, 60)  # slices of one second


def slices(**counts: int) -> list[int]:
    taken = [0] * (SLICES + 1)
    for place, count in counts.items():
        taken[int(place[1:])] = count
    return taken


def test_an_empty_window_is_free() -> None:
    assert window(slices(), 0.0, LIMIT) == Window(10, 60, 0, 10, 0, 0)


def test_a_window_with_room_needs_no_wait() -> None:
    assert window(slices(s0=9), 0.25, LIMIT) == Window(10, 60, 9, 1, 61, 0)


def test_a_full_window_has_room_when_its_oldest_slice_has_left() -> None:
    # The oldest is a quarter out already: three quarters of a second until it is.
    assert window(slices(s0=9, s60=1), 0.25, LIMIT).retry_after_s == 1
    assert window(slices(s0=9, s58=1), 0.25, LIMIT).retry_after_s == 3
    assert window(slices(s0=4, s30=6), 0.0, LIMIT, 6).retry_after_s == 31
    assert window(slices(s0=5, s30=5), 0.0, LIMIT, 6).retry_after_s == 61


def test_a_limit_that_fell_leaves_nothing_and_not_less() -> None:
    found = window(slices(s0=15), 0.0, LIMIT)
    assert (found.remaining, found.used) == (0, 15)
    assert found.retry_after_s == 61


def test_what_never_fits_says_the_whole_window() -> None:
    assert window(slices(s3=1), 0.0, LIMIT, 11).retry_after_s == 61
    assert window(slices(), 0.0, RateLimit(0, 60)).retry_after_s == 61


def test_a_wait_is_at_least_a_second() -> None:
    assert window(slices(s60=1), 0.9, RateLimit(1, 1)).retry_after_s == 1


def test_headers_say_it_twice() -> None:
    assert window(slices(s0=9), 0.0, LIMIT).headers == {
        "X-RateLimit-Limit": "10",
        "X-RateLimit-Remaining": "1",
        "X-RateLimit-Reset": "61",
        "X-RateLimit-Window": "60",
        "RateLimit-Policy": '"requests";q=10;w=60',
        "RateLimit": '"requests";r=1;t=61',
    }


# ------------------------------------------------------------------ counting

STEPS = st.lists(st.tuples(st.floats(0, 40), st.lists(st.integers(0, 5), min_size=1, max_size=4)), max_size=60)


@pytest.mark.covers("CIX-72")
@given(STEPS, st.integers(0, 12))
def test_no_window_ever_holds_more_than_the_limit_wherever_it_begins(
    steps: list[tuple[float, list[int]]], most: int
) -> None:
    at, state = 1000.5, None
    granted: list[tuple[float, int]] = []
    for passed, costs in steps:
        at += passed
        here, counts, answers = take(state, at, costs, most)
        state = (here, counts)
        granted += [(at, cost) for cost, is_granted in zip(costs, answers, strict=True) if is_granted]
        assert sum(counts) <= most
    for end, _ in granted:
        assert sum(cost for when, cost in granted if end - SLICES < when <= end) <= most


@given(STEPS, st.integers(1, 12))
def test_whoever_waits_as_long_as_told_is_served(steps: list[tuple[float, list[int]]], most: int) -> None:
    limit = RateLimit(most, SLICES)
    at, state = 1000.5, None
    for passed, costs in steps:
        at += passed
        here, counts, answers = take(state, at, costs, most)
        state = (here, counts)
        for cost, is_granted in zip(costs, answers, strict=True):
            if not is_granted and cost <= most:
                wait_s = window(counts, at - here, limit, cost).retry_after_s
                assert take(state, at + wait_s, [cost], most)[2] == [True]
                if wait_s > 1:
                    assert take(state, at + wait_s - 1, [cost], most)[2] == [False]


@given(STEPS, st.integers(0, 12))
def test_what_is_refused_leaves_no_trace(steps: list[tuple[float, list[int]]], most: int) -> None:
    at, state, without = 1000.5, None, None
    for passed, costs in steps:
        at += passed
        here, counts, answers = take(state, at, costs, most)
        state = (here, counts)
        kept = [cost for cost, is_granted in zip(costs, answers, strict=True) if is_granted]
        here, counts, again = take(without, at, kept, most)
        without = (here, counts)
        assert all(again)
        assert state == without


def test_a_clock_that_goes_back_a_little_loses_nothing() -> None:
    here, counts, _ = take(None, 100.5, [3], 5)
    assert take((here, counts), 98.5, [3], 5) == (100, counts, [False])


def test_a_clock_that_was_set_back_by_more_than_a_window_shuts_nobody_out() -> None:
    here, counts, _ = take(None, 1000.5, [5], 5)
    assert take((here, counts), 900.5, [5], 5)[2] == [True]
    assert take((here, counts), 939.5, [5], 5)[2] == [False]


def test_a_slice_counts_until_all_of_it_has_left() -> None:
    here, counts, _ = take(None, 100.99, [5], 5)
    moments = [160.99, 161.0]
    assert [take((here, counts), at, [1], 5)[2] for at in moments] == [[False], [True]]
    assert all(before < after for before, after in pairwise(moments))


def test_a_full_window_has_nothing_left_for_a_second_at_least() -> None:
    assert full(5, 60.0, 0.2) == Window(5, 60, 5, 0, 1, 1)
    assert full(5, 59.5, 7.1) == Window(5, 60, 5, 0, 8, 8)


def test_the_lines_of_a_window_are_its_headers_as_sent() -> None:
    found = full(5, 60, 7)
    assert dict(found.lines) == {name.lower().encode(): value.encode() for name, value in found.headers.items()}
    assert found.lines is found.lines, "made once"
