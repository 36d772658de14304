"""What a provider's word means for a step, and what is made of words that make no sense."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

import pytest

from windlass.core.external import (
    ID_MAX,
    POLL_S,
    ProviderStatus,
    Said,
    WorkKey,
    is_id,
    outcome_of,
    poll_wait_s,
    sound,
)
from windlass.core.outcome import Cost, Failure, Fault, Success

P = ProviderStatus
JOB = UUID(int=7)


def test_three_states_end_the_work_and_three_do_not() -> None:
    assert [status for status in P if status.is_terminal] == [P.SUCCEEDED, P.FAILED, P.CANCELLED]
    for status in P:
        assert (outcome_of(Said(status)) is not None) == status.is_terminal


def test_a_success_carries_its_output() -> None:
    assert outcome_of(Said(P.SUCCEEDED, '{"url":"x"}')) == Success('{"url":"x"}')
    assert outcome_of(Said(P.SUCCEEDED)) == Success("null")


def test_a_failure_may_be_tried_again_if_the_provider_says_so() -> None:
    why = Fault("nsfw", "refused")
    assert outcome_of(Said(P.FAILED, fault=why, is_retryable=False)) == Failure(why, is_retryable=False)
    silent = outcome_of(Said(P.FAILED))
    assert isinstance(silent, Failure) and silent.is_retryable and silent.fault.code == "provider_failed"


def test_what_was_cancelled_there_is_not_tried_again() -> None:
    why = Fault("cancelled", "by an operator")
    assert outcome_of(Said(P.CANCELLED, fault=why)) == Failure(why, is_retryable=False)
    silent = outcome_of(Said(P.CANCELLED))
    assert isinstance(silent, Failure) and not silent.is_retryable and silent.fault.code == "provider_cancelled"


def test_polls_follow_their_schedule_and_then_its_last_wait() -> None:
    assert [poll_wait_s(n, 0.5) for n in range(5)] == [30, 60, 120, 120, 120]
    assert poll_wait_s(0, 0.0) == pytest.approx(27)
    assert poll_wait_s(0, 1.0) == pytest.approx(33)
    assert poll_wait_s(1, 0.0, waits_s=(5.0,), jitter=0.0) == 5
    assert POLL_S == (30, 60, 120)


def test_a_key_reads_back_as_it_was() -> None:
    key = WorkKey(JOB, 12, 3)
    assert str(key) == f"wl-{JOB}-12-3"
    assert WorkKey.parse(str(key)) == key


@pytest.mark.parametrize(
    "text",
    [
        *("", "wl", "wl-", "wl-1-2", "wl-zz-1-2", "wl--1-2", f"xx-{JOB}-1-2", f"wl-{JOB}-1", f"wl-{JOB}-a-2"),
        *(f"wl-{JOB}-01-2", f"wl-{JOB}-1-0", f"wl-{JOB}-{2**31}-1", f"wl-{JOB}-1-{2**31}", f"wl-{JOB}--1-2"),
    ],
)
def test_what_is_no_key_is_told_from_one(text: str) -> None:
    assert WorkKey.parse(text) is None


def test_an_id_is_a_short_text() -> None:
    assert is_id("req-1") and is_id("é" * ID_MAX)
    assert not any(map(is_id, ("", "x" * (ID_MAX + 1), "a\x00", "\ud800")))


def test_sense_is_left_as_it_is() -> None:
    said = Said(P.SUCCEEDED, "{}", Fault("c", "m"), True, Cost("0.5"), 50.0, "half", "[1]")
    assert sound(said) == said
    assert sound(Said(P.RUNNING)) == Said(P.RUNNING)


@pytest.mark.parametrize("bad", ["{", "", "NaN", '"a\x00b"', '"\ud800"'])
def test_a_result_that_is_not_json_is_a_failure(bad: str) -> None:
    said = sound(Said(P.SUCCEEDED, bad))
    assert (said.status, said.output, said.is_retryable) == (P.FAILED, None, False)
    assert said.fault is not None and said.fault.code == "bad_output"


@pytest.mark.parametrize("is_retryable", [True, False])
def test_an_output_that_does_not_matter_is_dropped(is_retryable: bool) -> None:
    why = Fault("c", "m")
    said = Said(P.FAILED, "{", why, is_retryable)
    assert sound(said) == replace(said, output=None)


def test_half_characters_bad_previews_and_bad_costs_are_dropped() -> None:
    said = sound(Said(P.FAILED, None, Fault("c", "a\ud800"), True, Cost("a lot"), None, "b\udfff", "{"))
    assert said == Said(P.FAILED, None, Fault("c", "a?"), True, None, None, "b?", None)


BAD_COSTS = [
    *map(Cost, ("nan", "inf", "", "1e", "-1", "1e13", "1e-19")),
    *(Cost(tokens_in=2**53), Cost(tokens_in=-1), Cost(tokens_out=-1), Cost(tokens_out=2**63)),
    *(Cost(seconds=float("nan")), Cost(seconds=-1.0), Cost(seconds=float("inf"))),
]


@pytest.mark.parametrize("cost", BAD_COSTS)
def test_a_cost_is_what_can_be_added_up(cost: Cost) -> None:
    assert not cost.is_sound
    assert sound(Said(P.SUCCEEDED, cost=cost)).cost is None


@pytest.mark.parametrize("cost", [Cost(), Cost("0.000000000000000001"), Cost("1e12"), Cost("1.5", 1, 2, 3.0, "fal")])
def test_an_ordinary_cost_is_sound(cost: Cost) -> None:
    assert cost.is_sound
