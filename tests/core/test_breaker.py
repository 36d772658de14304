from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.breaker import Breaker


def opened(at_s: float = 100.0, **given: float) -> Breaker:
    breaker = Breaker(**given)  # type: ignore[arg-type]
    for _ in range(breaker.failures_max):
        breaker = breaker.failed(at_s)
    return breaker


def passes(breaker: Breaker, now_s: float) -> bool:
    return breaker.may_pass(now_s)[0]


def test_a_closed_breaker_lets_everything_through() -> None:
    breaker = Breaker()
    assert breaker.may_pass(0.0) == (True, breaker)
    assert not breaker.is_open
    assert breaker.wait_s(0.0) == 0.0


def test_it_opens_at_the_third_failure_in_a_row() -> None:
    breaker = Breaker().failed(1.0).failed(2.0)
    assert passes(breaker, 2.0)
    breaker = breaker.failed(3.0)
    assert breaker.is_open
    assert not passes(breaker, 3.0)
    assert breaker.wait_s(13.0) == 20.0


def test_a_success_in_between_starts_the_count_again() -> None:
    breaker = Breaker().failed(1.0).failed(2.0).succeeded().failed(3.0).failed(4.0)
    assert passes(breaker, 4.0)


def test_one_probe_passes_after_the_wait_and_no_second() -> None:
    breaker = opened(100.0)
    assert not passes(breaker, 129.9)
    may, breaker = breaker.may_pass(130.0)
    assert may
    assert not passes(breaker, 130.0)


def test_a_good_probe_closes_it() -> None:
    _, breaker = opened().may_pass(130.0)
    assert breaker.succeeded() == Breaker(round=breaker.round)


def test_a_bad_probe_opens_it_for_the_whole_wait() -> None:
    _, breaker = opened(100.0).may_pass(130.0)
    breaker = breaker.failed(132.0)
    assert not passes(breaker, 161.9)
    assert passes(breaker, 162.0)


def test_a_probe_that_is_never_heard_of_again_does_not_shut_it_for_good() -> None:
    _, breaker = opened(100.0).may_pass(130.0)
    assert not passes(breaker, 159.0)
    assert passes(breaker, 160.0)


def test_as_many_probes_pass_as_it_may_have() -> None:
    breaker = opened(100.0, probes_max=3)
    answers = []
    for _ in range(4):
        may, breaker = breaker.may_pass(130.0)
        answers.append(may)
    assert answers == [True, True, True, False]


KERNEL = Breaker(probes_max=3, closes_after=2)


def half_open(wanted: int = 3) -> Breaker:
    return opened(100.0, probes_max=3, closes_after=2).admit(wanted, 130.0)[1]


def test_a_closed_breaker_admits_all_that_are_wanted() -> None:
    assert KERNEL.admit(500, 0.0) == (500, KERNEL)


@pytest.mark.covers("COR-66")
def test_no_more_probes_are_admitted_than_it_may_have_however_many_are_wanted() -> None:
    breaker = opened(100.0, probes_max=3, closes_after=2)
    assert breaker.admit(500, 129.9) == (0, breaker)
    count, breaker = breaker.admit(2, 130.0)
    assert count == 2
    count, breaker = breaker.admit(500, 131.0)
    assert count == 1
    assert breaker.admit(500, 132.0) == (0, breaker)


@pytest.mark.covers("COR-66", "COR-67")
def test_two_good_probes_close_it_and_one_does_not() -> None:
    once = half_open().succeeded()
    assert once.is_open
    twice = once.succeeded()
    assert not twice.is_open
    assert (twice.failures, twice.probes, twice.successes) == (0, 0, 0)


@pytest.mark.covers("COR-66")
def test_a_failure_after_a_good_probe_opens_it_for_the_whole_wait() -> None:
    breaker = half_open().succeeded().failed(133.0)
    assert not passes(breaker, 162.9)
    _, breaker = breaker.admit(1, 163.0)
    assert breaker.succeeded().is_open, "the good probe of the earlier round counts no more"


def test_a_call_from_before_it_opened_neither_closes_nor_reopens_it() -> None:
    early = KERNEL.round
    breaker = half_open()
    assert breaker.succeeded(early) == breaker
    assert breaker.failed(140.0, early) == breaker
    assert breaker.succeeded(breaker.round).succeeded(breaker.round).failures == 0


def test_a_late_failure_counts_once_it_is_closed() -> None:
    breaker = half_open()
    late = breaker.round
    closed = breaker.succeeded(late).succeeded(late)
    assert closed.failed(140.0, late).failures == 1


@given(st.lists(st.sampled_from(["pass", "good", "bad", "wait"]), max_size=60))
def test_it_never_stays_shut_longer_than_its_wait(history: list[str]) -> None:
    breaker, now_s = Breaker(), 0.0
    for word in history:
        now_s += 10.0 if word == "wait" else 0.0
        if word == "pass":
            _, breaker = breaker.may_pass(now_s)
        elif word == "good":
            breaker = breaker.succeeded()
        elif word == "bad":
            breaker = breaker.failed(now_s)
        assert passes(breaker, now_s + breaker.wait_s(now_s))


@given(st.lists(st.sampled_from(["one", "many", "good", "bad", "wait"]), max_size=60))
def test_a_round_never_has_more_probes_than_it_may_have(history: list[str]) -> None:
    breaker, now_s = KERNEL, 0.0
    admitted: dict[int, int] = {}
    for word in history:
        now_s += 10.0 if word == "wait" else 0.0
        if word in ("one", "many"):
            count, breaker = breaker.admit(1 if word == "one" else 50, now_s)
            if breaker.is_open:
                admitted[breaker.round] = admitted.get(breaker.round, 0) + count
        elif word == "good":
            breaker = breaker.succeeded()
        elif word == "bad":
            breaker = breaker.failed(now_s)
    assert all(count <= 3 for count in admitted.values())
