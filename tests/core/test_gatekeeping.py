"""Gatekeeping: what a verdict about a whole job changes."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.world import World, task
from windlass.core.birth import births, first_state
from windlass.core.constraint import NO_CONSTRAINTS, Constraints
from windlass.core.draft import Draft
from windlass.core.effect import RecordVerdict, Sweep
from windlass.core.gatekeeping import (
    ASK_MAX_S,
    DESTINATION,
    Ruling,
    ask_after_s,
    at_destination,
    fault_of,
    hold_of,
    rule_on,
)
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.outcome import DESTINATION_DENIED
from windlass.core.plan import Plan
from windlass.core.states import JobState, StepState
from windlass.core.velocity import VelocityWindow
from windlass.core.verdict import Decision, Edge, VelocityLimit, Verdict, waiting

S, J, D = StepState, JobState, Decision


def draft_of(*holds: Hold, state: JobState = J.PENDING) -> Draft:
    """A job of two first steps, each with these holds."""
    draft = World.of(task("a"), task("b")).draft()
    draft.job.state = state
    for no, hold in enumerate(holds):
        step = draft.steps[no]
        step.holds, step.state = hold, S.HELD if hold else S.QUEUED
    return draft


def ruling(decision: Decision) -> Ruling:
    return Ruling(Verdict(decision, "rule", "because"), 7)


@pytest.mark.parametrize("decision", [D.ALLOW, D.ALLOW_WITH_CONSTRAINTS])
def test_a_good_verdict_removes_the_holds_of_the_policy_only(decision: Decision) -> None:
    draft = draft_of(Hold.POLICY | Hold.PAUSED, Hold.APPROVAL | Hold.POLICY, state=J.APPROVAL_REQUIRED)
    assert rule_on(draft, ruling(decision))
    assert [draft.steps[no].holds for no in (0, 1)] == [Hold.PAUSED, NO_HOLD]
    assert (draft.steps[1].state, draft.job.state) == (S.QUEUED, J.QUEUED)
    [made] = draft.effects_of(RecordVerdict)
    assert made.is_good and made.policy == 7 and made.ask_at is None


def test_a_throttle_holds_queued_steps_and_names_the_next_question() -> None:
    draft = draft_of(NO_HOLD, Hold.POLICY, state=J.QUEUED)
    assert not rule_on(draft, ruling(D.THROTTLE), tries=1)
    assert [draft.steps[no].holds for no in (0, 1)] == [Hold.POLICY, Hold.POLICY]
    [made] = draft.effects_of(RecordVerdict)
    assert not made.is_good and made.ask_at == draft.now + timedelta(seconds=8)


def test_an_approval_takes_the_place_of_a_throttle() -> None:
    draft = draft_of(Hold.POLICY, Hold.POLICY)
    assert not rule_on(draft, ruling(D.REQUIRE_APPROVAL))
    assert [draft.steps[no].holds for no in (0, 1)] == [Hold.APPROVAL, Hold.APPROVAL]
    assert draft.job.state is J.APPROVAL_REQUIRED


def test_a_job_that_has_begun_keeps_its_state_while_it_waits_for_an_approval() -> None:
    draft = draft_of(NO_HOLD, NO_HOLD, state=J.PROCESSING)
    draft.steps[1].state = S.READY
    rule_on(draft, ruling(D.REQUIRE_APPROVAL))
    assert draft.job.state is J.PROCESSING
    assert [draft.steps[no].holds for no in (0, 1)] == [Hold.APPROVAL, Hold.APPROVAL | Hold.ROUTE]


def test_a_refusal_ends_the_job_whatever_it_does() -> None:
    draft = draft_of(NO_HOLD, Hold.POLICY, state=J.PROCESSING)
    assert not rule_on(draft, ruling(D.DENY))
    assert draft.job.state is J.DENIED and draft.job.error is not None
    assert draft.job.error.code == "safety_denied"
    assert draft.effects_of(Sweep)


def test_a_job_that_has_ended_is_left_alone() -> None:
    draft = draft_of(state=J.COMPLETED)
    assert not rule_on(draft, ruling(D.DENY))
    assert not draft.effects and not draft.events


def test_a_velocity_limit_has_its_own_code() -> None:
    limited = replace(Verdict(D.DENY, "fast"), velocity=VelocityLimit(1, 60, ("tenant",)))
    assert fault_of(limited).code == "velocity_exceeded"
    assert fault_of(Verdict(D.DENY, "no")).code == "safety_denied"


@pytest.mark.covers("COR-82")
@given(st.integers(0, 100), st.floats(0, 1, exclude_max=True))
def test_the_questions_about_a_throttled_job_become_rarer_up_to_a_limit(tries: int, spread: float) -> None:
    assert 5.0 <= ask_after_s(tries, spread) <= ASK_MAX_S
    assert ask_after_s(tries, spread) <= ask_after_s(tries + 1, spread)


def test_a_kernel_is_asked_at_once_about_a_job_that_waits_for_it() -> None:
    draft = draft_of(Hold.APPROVAL, Hold.APPROVAL, state=J.APPROVAL_REQUIRED)
    rule_on(draft, Ruling(waiting("outside"), 7))
    assert [(one.ask_at, one.is_good) for one in draft.effects_of(RecordVerdict)] == [(draft.now, False)]
    assert draft.job.state is J.PENDING
    assert {step.holds for step in draft.steps.values()} == {Hold.POLICY}


def test_every_decision_has_its_hold() -> None:
    assert {decision: hold_of(decision) for decision in D} == {
        D.ALLOW: NO_HOLD,
        D.ALLOW_WITH_CONSTRAINTS: NO_HOLD,
        D.THROTTLE: Hold.POLICY,
        D.REQUIRE_APPROVAL: Hold.APPROVAL,
        D.DENY: NO_HOLD,
    }
    assert Ruling(Verdict(D.DENY, "r"), None).edge is Edge.CLAIM


def test_a_denied_job_is_born_with_ended_steps() -> None:
    plan = Plan("r", (task("a"), task("b", "a"), task("c", "a", "b")))
    assert [birth.state for birth in births(plan, is_denied=True)] == [S.DENIED, S.ABANDONED, S.ABANDONED]


def test_a_job_that_needs_an_approval_is_born_waiting_for_it() -> None:
    assert first_state([S.HELD], Hold.APPROVAL) is J.APPROVAL_REQUIRED
    assert first_state([S.HELD], Hold.POLICY) is J.PENDING


@given(st.lists(st.floats(0, 1_000), max_size=60), st.integers(1, 300))
def test_no_window_holds_more_requests_than_were_counted(times: list[float], length_s: int) -> None:
    window = VelocityWindow(length_s, {})
    for at in sorted(times):
        window = window.add(1, at)
    ends = sorted(times)[-1] if times else 0.0
    inside = sum(ends - length_s < at <= ends for at in times)
    assert inside <= window.count(ends) <= len(times)
    assert window.count(ends + 2 * length_s) == 0


def limited_to(*hosts: str) -> Constraints:
    return Constraints(allowed_destinations=frozenset(hosts))


def test_a_request_to_an_allowed_destination_keeps_its_verdict() -> None:
    verdict = Verdict(D.ALLOW, "rule")
    assert at_destination(verdict, NO_CONSTRAINTS, "mail", "anywhere.example") is verdict
    assert at_destination(verdict, limited_to("*.example"), "mail", "smtp.example") is verdict
    refusal = Verdict(D.DENY, "rule")
    assert at_destination(refusal, limited_to("*.example"), "mail", "elsewhere.test") is refusal


@pytest.mark.parametrize("host", ["elsewhere.test", ""])
def test_a_request_to_another_destination_is_denied_with_its_own_code(host: str) -> None:
    both = limited_to("smtp.example", "imap.example")
    limited = Verdict(D.ALLOW_WITH_CONSTRAINTS, "rule", constraints=limited_to("smtp.example"))
    found = at_destination(limited, both, "mail", host)
    assert (found.decision, found.rule) == (D.DENY, DESTINATION)
    assert (host or "the unknown host of mail") in found.reason
    assert fault_of(found).code == DESTINATION_DENIED


def test_a_job_that_never_waited_for_people_keeps_its_state_when_it_may_go_on() -> None:
    draft = draft_of(Hold.POLICY, Hold.POLICY)
    assert rule_on(draft, ruling(D.ALLOW))
    assert draft.job.state is J.QUEUED
