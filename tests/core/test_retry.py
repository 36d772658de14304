"""Waits between attempts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.retry import DATABASE_ATTEMPT, DATABASE_OPERATION, PROVIDER_POLL, Backoff, Retry


@pytest.mark.covers("SCR-80", "SCR-82", "COR-79")
@pytest.mark.parametrize(
    ("backoff", "waits"),
    [
        (DATABASE_OPERATION, [1, 2, 4]),
        (DATABASE_ATTEMPT, [15, 30, 60, 120, 240, 300, 300]),
        (PROVIDER_POLL, [30, 60, 120, 120]),
    ],
)
def test_the_presets_wait_as_the_documents_say(backoff: Backoff, waits: list[float]) -> None:
    assert [backoff.wait_s(n, 0.0) for n in range(1, len(waits) + 1)] == waits


def test_the_spread_adds_at_most_the_share_of_jitter() -> None:
    backoff = Retry(base_s=10, jitter=0.5).backoff
    assert backoff.wait_s(1, 0.0) == 10
    assert backoff.wait_s(1, 0.5) == 12.5


@given(st.integers(1, 10**9), st.floats(0, 0.999), st.floats(0, 1e3), st.floats(1, 100), st.floats(0, 1e4))
def test_a_wait_is_never_longer_than_the_cap_and_its_jitter(
    failures: int, spread: float, base_s: float, factor: float, cap_s: float
) -> None:
    assert 0 <= Backoff(base_s, factor, cap_s, 0.25).wait_s(failures, spread) <= cap_s * 1.25
