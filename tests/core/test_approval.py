"""The law of approvals: who may vote, when the votes suffice, and whether what was approved is what would run."""

from __future__ import annotations

from dataclasses import fields, replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.core.world import START, World, plan, task
from windlass.core import ballot
from windlass.core.approval import (
    ApprovalRequest,
    ApprovalState,
    Choice,
    OnReject,
    Subject,
    Use,
    Vote,
    Voter,
    answer,
    node_on_reject,
    node_terms,
    second_look,
    tally,
    terms_of,
    voters_from_json,
    voters_json,
    why_not,
)
from windlass.core.caller import context_of
from windlass.core.draft import Draft
from windlass.core.effect import RequestApproval
from windlass.core.gatekeeping import Ruling, rule_on
from windlass.core.hold import Hold
from windlass.core.plan import Node, NodeKind, plan_from_json
from windlass.core.rerun import restart_from
from windlass.core.retry_job import Kept
from windlass.core.route import Ask, route, wake
from windlass.core.states import JobState, StepState
from windlass.core.verdict import ApprovalTerms, Decision, Verdict, Voters
from windlass.core.wait import Wait, WaitKind

A, S = ApprovalState, StepState
ID = World.of(task("a")).job.id
SUBJECT = Subject("node", "plan", "ada", "{}", {"env": "prod"}, "ok", None, "Publish?", "{}")
NAMES = st.text(min_size=1, max_size=5)


def vote(caller: str, choice: Choice = Choice.APPROVE, reason: str = "") -> Vote:
    return Vote(caller, choice, reason, "", START)


def approval(name: str, *needs: str, **given: object) -> Node:
    return Node(name, NodeKind.APPROVAL, needs=needs, with_={"question": "Publish?"}, wait_s=60.0, **given)  # type: ignore[arg-type]


def request(**given: object) -> ApprovalRequest:
    values = {"no": None, "attempt": None, "edge": "node", "subject": "s", "requester": "ada"}
    return ApprovalRequest(**{**values, "terms": ApprovalTerms(expires_s=60.0), **given})  # type: ignore[arg-type]


def waiting(**given: object) -> Draft:
    """A job whose first step waits for an approval."""
    draft = World.of(approval("ok", **given), task("after", "ok")).draft()
    assert route(draft, 0, Ask(ID, "Publish?", "{}", request()))
    return draft


@pytest.mark.parametrize("name", [one.name for one in fields(Subject)])
def test_every_named_field_changes_the_digest(name: str) -> None:
    other = {"labels": {"env": "test"}, "index": 3}.get(name, "other")
    assert replace(SUBJECT, **{name: other}).digest != SUBJECT.digest  # type: ignore[arg-type]


@given(st.permutations([("a", "1"), ("b", "2"), ("c", "3")]))
def test_the_order_of_labels_does_not_count(labels: list[tuple[str, str]]) -> None:
    first = replace(SUBJECT, labels={"a": "1", "b": "2", "c": "3"})
    assert replace(SUBJECT, labels=dict(labels)).digest == first.digest


def test_two_texts_cannot_be_moved_between_fields() -> None:
    assert replace(SUBJECT, plan="planx", caller="y").digest != replace(SUBJECT, plan="plan", caller="xy").digest


LEADS = ApprovalTerms(who=(Voters(roles=frozenset({"lead"}), escalate_after_s=60, escalate_roles=frozenset({"cto"})),))


@pytest.mark.parametrize(
    ("voter", "waited_s", "words"),
    [
        (Voter("grace", frozenset({"lead"})), 0, "needs the scope"),
        (Voter("ada", frozenset({"lead"}), True), 0, "the requester may not"),
        (Voter("boss", frozenset({"lead"}), True), 0, "a caller of a parent job"),
        (Voter("grace", frozenset({"lead"}), True, False), 0, "no named holder"),
        (Voter("grace", frozenset(), True), 0, "not among the people"),
        (Voter("carl", frozenset({"cto"}), True), 59, "not among the people"),
        (Voter("carl", frozenset({"cto"}), True), 60, None),
        (Voter("grace", frozenset({"lead"}), True), 0, None),
    ],
)
def test_who_may_vote(voter: Voter, waited_s: float, words: str | None) -> None:
    told = why_not(voter, "ada", ("ada", "boss"), LEADS, waited_s)
    assert told is None if words is None else words in (told or "")


@given(st.lists(st.tuples(NAMES, st.sampled_from(Choice))), st.integers(1, 5))
def test_one_reject_ends_it_and_only_different_callers_count(cast: list[tuple[str, Choice]], need: int) -> None:
    state = tally([vote(caller, choice) for caller, choice in cast], need)
    if any(choice is Choice.REJECT for _, choice in cast):
        assert state is A.REJECTED
    else:
        assert state is (A.APPROVED if len({caller for caller, _ in cast}) >= need else A.PENDING)


@pytest.mark.parametrize(
    ("decision", "rule_hash", "use"),
    [
        (Decision.ALLOW, "", Use.USE),
        (Decision.ALLOW_WITH_CONSTRAINTS, "", Use.USE),
        (Decision.THROTTLE, "", Use.WAIT),
        (Decision.REQUIRE_APPROVAL, "h", Use.USE),
        (Decision.REQUIRE_APPROVAL, "other", Use.RENEW),
        (Decision.DENY, "h", Use.DENY),
    ],
)
def test_the_policy_is_asked_again_at_use(decision: Decision, rule_hash: str, use: Use) -> None:
    verdict = Verdict(decision, "r", rule_hash=rule_hash)
    assert second_look("s", "s", "h", verdict) is use
    assert second_look("s", "t", "h", verdict) is Use.RENEW


def test_without_a_policy_only_the_subject_counts() -> None:
    assert (second_look("s", "s", "", None), second_look("s", "t", "", None)) == (Use.USE, Use.RENEW)


@given(
    st.builds(
        Voters,
        st.frozensets(NAMES),
        st.frozensets(NAMES),
        st.none() | st.floats(0, 1e6),
        st.frozensets(NAMES),
        st.frozensets(NAMES),
    )
)
def test_voters_survive_their_stored_form(voters: Voters) -> None:
    assert voters_from_json(voters_json(voters)) == voters


def test_terms_without_people_are_for_all_who_may_decide() -> None:
    assert terms_of(1, (), 60.0) == ApprovalTerms(1, (Voters(),), 60.0)
    assert node_terms(None, 60.0) == ApprovalTerms(1, (Voters(),), 60.0)
    assert node_terms({"need": 2, "who": {"roles": ["lead"]}}, 9.0).who == (Voters(roles=frozenset({"lead"})),)
    assert (node_on_reject(None), node_on_reject({"on_reject": "continue"})) == (OnReject.FAIL, OnReject.CONTINUE)


def test_an_escalation_after_the_expiry_is_none() -> None:
    assert request(terms=replace(LEADS, expires_s=60.0)).escalate_at(START) is None
    assert request(terms=replace(LEADS, expires_s=61.0)).escalate_at(START) == START + timedelta(seconds=60)
    assert request().escalate_at(START) is None


def test_an_answer_names_its_voters_in_order() -> None:
    votes = [vote("b", reason="late"), replace(vote("z"), at=START - timedelta(seconds=1)), vote("x", Choice.REJECT)]
    assert answer(votes, approved=True, at=START)["by"] == ["z", "b"]
    assert answer(votes, approved=False, at=START)["by"] == ["x"]


def test_a_plan_keeps_the_terms_of_its_approvals() -> None:
    made = plan(approval("ok", approval={"need": 2}), task("after", "ok"))
    assert (made.has_approvals, made.is_plain, plan_from_json(made.canonical)) == (True, False, made)


def test_a_step_that_asks_waits_until_its_approval_expires() -> None:
    draft = waiting()
    step = draft.steps[0]
    assert (step.state, step.wait, step.attempt) == (S.PARKED, Wait(WaitKind.APPROVAL, str(ID)), 1)
    assert step.wake_at == draft.now + timedelta(seconds=60)
    [asked] = draft.effects_of(RequestApproval)
    assert (asked.request.no, asked.request.attempt) == (0, 1)
    assert draft.events[-1].type == "approval.requested"


def test_an_approval_that_expires_fails_its_step() -> None:
    draft = waiting()
    draft.now += timedelta(seconds=60)
    assert wake(draft, 0)
    step = draft.steps[0]
    assert step.error is not None
    assert (step.state, step.error.code) == (S.FAILED, "approval_expired")


@pytest.mark.parametrize(
    ("state", "on_reject", "ends", "code"),
    [
        (A.USED, OnReject.FAIL, S.COMPLETED, None),
        (A.REJECTED, OnReject.FAIL, S.FAILED, "approval_rejected"),
        (A.REJECTED, OnReject.CONTINUE, S.COMPLETED, None),
        (A.INVALIDATED, OnReject.CONTINUE, S.FAILED, "approval_invalidated"),
    ],
)
def test_the_result_of_the_votes_ends_the_wait(state: A, on_reject: OnReject, ends: S, code: str | None) -> None:
    draft = waiting()
    assert ballot.waits_for(draft, 0, ID)
    choice = Choice.REJECT if state is A.REJECTED else Choice.APPROVE
    ballot.conclude(draft, 0, state, [vote("grace", choice, "because")], on_reject)
    step = draft.steps[0]
    assert (step.state, None if step.error is None else step.error.code) == (ends, code)
    assert not ballot.waits_for(draft, 0, ID)


def test_a_rejection_without_a_reason_names_the_person() -> None:
    assert ballot.fault_of(A.REJECTED, [vote("grace", Choice.REJECT)]).message == "rejected by grace"


def test_a_report_of_another_kind_does_not_end_the_wait() -> None:
    draft = waiting()
    assert not draft.steps[0].waits_outside
    assert not ballot.waits_for(draft, 1, ID)
    assert not ballot.waits_for(draft, 9, ID)


def test_a_job_that_nobody_approved_is_denied() -> None:
    draft = waiting()
    ballot.note_escalation(draft, ID, None)
    ballot.note_vote(draft, ID, 0, vote("grace"))
    ballot.note_decision(draft, ID, None, A.EXPIRED)
    ballot.deny(draft, ballot.EXPIRED)
    assert draft.job.state is JobState.DENIED
    assert [event.type for event in draft.events[-4:]] == [
        "approval.escalated", "approval.voted", "approval.decided", "job.denied",
    ]  # fmt: skip
    assert not ballot.waits_for(draft, 0, ID)


def test_an_approved_job_that_is_throttled_is_pending() -> None:
    world = World.of(task("a"))
    draft = world.draft()
    draft.job.state = JobState.APPROVAL_REQUIRED
    draft.steps[0].state, draft.steps[0].holds = S.HELD, Hold.APPROVAL
    assert not rule_on(draft, Ruling(Verdict(Decision.THROTTLE, "slow"), 1))
    assert (draft.job.state, draft.steps[0].holds) == (JobState.PENDING, Hold.POLICY)


@pytest.mark.parametrize(
    ("claim", "roles"),
    [(None, set()), (7, set()), ("lead cto", {"lead", "cto"}), (["lead", 7, ""], {"lead"})],
)
def test_roles_come_from_the_claims_and_the_type(claim: object, roles: set[str]) -> None:
    ctx = context_of({"caller_id": "grace", "caller_type": "service", "roles": claim}, "other")
    assert (ctx.roles, ctx.all_roles) == (roles, roles | {"service"})


CHAIN = plan(task("a"), approval("ok", "a"), task("b", "ok"), task("c", "b"), task("d"))


@pytest.mark.parametrize(
    ("step", "changed", "names"),
    [
        ("c", (), ["b", "c", "ok"]),
        ("a", (), ["a", "b", "c", "ok"]),
        ("d", (), ["d"]),
        ("d", ("topic",), ["b", "c", "d", "ok"]),
        (None, (), []),
    ],
)
def test_what_was_approved_does_not_run_again_without_another_approval(
    step: str | None, changed: tuple[str, ...], names: list[str]
) -> None:
    restart = restart_from(CHAIN, (), step, changed)
    assert sorted(CHAIN.nodes[no].name for no in restart.nodes) == names


def test_a_child_of_a_fan_out_that_was_approved_is_asked_about_again() -> None:
    fan = plan(approval("ok"), task("b", "ok", each="inputs.items"), task("c", "b"))
    row = Kept(3, 1, 0, S.COMPLETED, 0, None, None, "1", "1")
    restart = restart_from(fan, [row], "b[0]", ())
    assert sorted(fan.nodes[no].name for no in restart.nodes) == ["b", "c", "ok"]


def test_an_approval_before_what_another_one_lets_run_is_asked_for_too() -> None:
    both = plan(approval("one"), approval("two"), task("b", "one"), task("c", "b", "two"))
    restart = restart_from(both, (), "b", ())
    assert sorted(both.nodes[no].name for no in restart.nodes) == ["b", "c", "one", "two"]
