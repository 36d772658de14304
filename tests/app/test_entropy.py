"""Ids: each is greater than the last, under any change of the clock."""

from __future__ import annotations

import random
from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from windlass.app.entropy import Ids, spread


def ids_at(clock: Callable[[], int]) -> Ids:
    return Ids(clock, random.Random(1).getrandbits)


def test_an_id_is_a_uuid_of_version_7_with_its_millisecond_in_front() -> None:
    made = ids_at(lambda: 0x0123456789AB).new()
    assert (made.version, made.variant) == (7, "specified in RFC 4122")
    assert made.hex.startswith("0123456789ab")


@given(st.lists(st.integers(0, 50), min_size=1, max_size=300))
def test_ids_only_grow(clock: list[int]) -> None:
    times = iter(clock)
    ids = ids_at(lambda: next(times))
    made = [ids.new() for _ in clock]
    assert made == sorted(set(made))


def test_more_ids_than_fit_into_a_millisecond_still_grow() -> None:
    ids = ids_at(lambda: 7)
    made = [ids.new() for _ in range(10_000)]
    assert made == sorted(set(made))


def test_a_spread_is_at_least_0_and_less_than_1() -> None:
    assert all(0 <= spread() < 1 for _ in range(100))
