"""How much may be asked of a provider: the rate, the pause and the breaker, each by itself and together."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.breaker import Breaker
from windlass.core.gate import BREAKER, Gate

START = datetime(2030, 1, 1, tzinfo=UTC)


def at(seconds: float) -> datetime:
    return START + timedelta(seconds=seconds)


def test_requests_come_no_faster_than_the_rate() -> None:
    gate = Gate(rate=10)
    assert gate.room(at(0)) == 1
    gate = gate.taken(1, at(0))
    assert (gate.room(at(0)), gate.room(at(0.0999)), gate.room(at(0.1))) == (0, 0, 1)
    assert gate.opens_at(at(0)) == at(0.1)


def test_a_rest_is_not_saved_up() -> None:
    gate = Gate(rate=10).taken(1, at(0))
    assert gate.room(at(3600)) == 1
    assert gate.opens_at(at(3600)) == at(3600)


def test_a_fast_provider_may_be_asked_several_times_at_once() -> None:
    gate = Gate(rate=100)
    assert gate.room(at(0)) == gate.burst == 10
    gate = gate.taken(4, at(0))
    assert gate.room(at(0)) == 6
    gate = gate.taken(6, at(0))
    assert gate.room(at(0)) == 0
    assert gate.opens_at(at(0)) == at(0.01)
    assert gate.room(at(0.01)) == 1


def test_taking_nothing_changes_nothing() -> None:
    gate = Gate(rate=10, breaker=replace(BREAKER, opened_s=START.timestamp()))
    assert gate.taken(0, at(999)) is gate


def test_a_busy_provider_is_left_alone() -> None:
    gate = Gate(rate=10, paused_until=at(5))
    assert (gate.room(at(4.99)), gate.room(at(5))) == (0, 1)
    assert (gate.opens_at(at(0)), gate.opens_at(at(6))) == (at(5), at(6))


def test_an_open_breaker_lets_nothing_through_and_then_one_at_a_time() -> None:
    breaker = Breaker(failures_max=2, open_s=30).failed(at(0).timestamp()).failed(at(0).timestamp())
    gate = Gate(rate=1000, breaker=breaker)
    assert gate.room(at(29)) == 0
    assert at(30) < gate.opens_at(at(0)) < at(30.1)
    assert gate.room(at(30)) == 1
    assert gate.opens_at(at(31)) == at(31)
    tried = gate.taken(1, at(30))
    assert tried.room(at(31)) == 0
    assert tried.room(at(60)) == 1
    assert replace(tried, breaker=tried.breaker.succeeded()).room(at(31)) == 100
    assert replace(tried, breaker=tried.breaker.failed(at(31).timestamp())).room(at(60)) == 0


def test_a_breaker_that_opens_is_still_bound_by_the_rate() -> None:
    breaker = replace(BREAKER, failures=9, opened_s=at(0).timestamp())
    assert Gate(rate=0.001, free_at=at(500), breaker=breaker).room(at(40)) == 0


@given(
    st.floats(0.5, 5000),
    st.lists(st.tuples(st.floats(0, 0.5), st.integers(0, 50)), min_size=1, max_size=40),
    st.floats(0.01, 2),
)
def test_no_window_holds_more_than_its_rate_and_burst(
    rate: float, asked: list[tuple[float, int]], window_s: float
) -> None:
    gate, now = Gate(rate), START
    made: list[tuple[datetime, int]] = []
    for wait_s, wanted in asked:
        now += timedelta(seconds=wait_s)
        count = min(wanted, gate.room(now))
        gate = gate.taken(count, now)
        made.append((now, count))
        if not gate.room(now):
            opens = gate.opens_at(now)
            assert gate.room(opens) >= 1
            assert gate.room(opens - timedelta(microseconds=1)) == 0
    for begin, _ in made:
        inside = sum(count for when, count in made if begin <= when < begin + timedelta(seconds=window_s))
        assert inside <= rate * window_s + gate.burst


@pytest.mark.parametrize(("rate", "burst"), [(0.1, 1), (10, 1), (19, 1), (20, 2), (1000, 100)])
def test_the_burst_is_what_a_tenth_of_a_second_brings(rate: float, burst: int) -> None:
    assert Gate(rate).burst == burst
