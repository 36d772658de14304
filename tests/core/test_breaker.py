from __future__ import annotations

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
    assert breaker.succeeded() == Breaker()


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
