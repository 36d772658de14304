"""Verdicts: what words mean, which of several is the strictest, and who may approve."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from windlass.core.constraint import NO_CONSTRAINTS, Constraints
from windlass.core.verdict import (
    KERNEL_BYPASS,
    KERNEL_WAIT,
    NO_POLICY,
    ApprovalTerms,
    Decision,
    OutputDecision,
    OutputVerdict,
    Verdict,
    Voters,
    bypassing,
    denied,
    parse_decision,
    strictest,
    strictest_output,
    waiting,
)

LEADS = Voters(roles=frozenset({"lead"}))


@pytest.mark.parametrize(
    ("word", "decision"),
    [
        ("allow", Decision.ALLOW),
        (" Permit ", Decision.ALLOW),
        ("DENY", Decision.DENY),
        ("block", Decision.DENY),
        ("require_approval", Decision.REQUIRE_APPROVAL),
        ("require-approval", Decision.REQUIRE_APPROVAL),
        ("require_human", Decision.REQUIRE_APPROVAL),
        ("allow_with_constraints", Decision.ALLOW_WITH_CONSTRAINTS),
        ("allow-with-constraints", Decision.ALLOW_WITH_CONSTRAINTS),
        ("throttle", Decision.THROTTLE),
        ("alow", Decision.DENY),
        ("", Decision.DENY),
    ],
)
def test_a_word_means_a_decision_and_an_unknown_word_denies(word: str, decision: Decision) -> None:
    assert parse_decision(word) is decision


def test_only_two_decisions_admit() -> None:
    assert [decision for decision in Decision if decision.admits] == [Decision.ALLOW, Decision.ALLOW_WITH_CONSTRAINTS]


def test_without_a_verdict_the_answer_is_no() -> None:
    assert strictest([]) == denied(NO_POLICY, "no policy is in force")
    assert strictest_output([]).decision is OutputDecision.QUARANTINE


def test_the_strictest_decision_wins_and_constraints_meet() -> None:
    found = strictest(
        [
            Verdict(Decision.ALLOW_WITH_CONSTRAINTS, "a", constraints=Constraints(max_retries=3)),
            Verdict(Decision.THROTTLE, "b", constraints=Constraints(max_retries=1)),
            Verdict(Decision.ALLOW, "c", constraints=Constraints(max_files=1)),
        ]
    )
    assert (found.decision, found.rule) == (Decision.THROTTLE, "b")
    assert found.constraints == Constraints(max_retries=1, max_files=1)


def test_of_equal_decisions_the_first_is_named() -> None:
    assert strictest([Verdict(Decision.DENY, "a"), Verdict(Decision.DENY, "b")]).rule == "a"
    one = Verdict(Decision.ALLOW, "only")
    assert strictest([one]) is one


def test_an_allow_that_gets_constraints_says_so() -> None:
    found = strictest(
        [Verdict(Decision.ALLOW, "a"), Verdict(Decision.ALLOW, "b", constraints=Constraints(max_files=1))]
    )
    assert (found.decision, found.rule) == (Decision.ALLOW_WITH_CONSTRAINTS, "a")
    assert strictest([Verdict(Decision.ALLOW, "a"), Verdict(Decision.ALLOW, "b")]).decision is Decision.ALLOW


def test_one_approval_satisfies_all_rules_that_ask_for_one() -> None:
    first = Verdict(Decision.REQUIRE_APPROVAL, "a", rule_hash="h1", approval=ApprovalTerms(2, (LEADS,), 100.0))
    second = Verdict(Decision.REQUIRE_APPROVAL, "b", rule_hash="h2")
    found = strictest([Verdict(Decision.ALLOW, "c"), first, second])
    assert found.rule == "a"
    assert found.approval == ApprovalTerms(2, (LEADS, Voters()), 100.0)
    assert found.rule_hash not in ("h1", "h2")
    assert found.rule_hash == strictest([second, first]).rule_hash
    alone = strictest([Verdict(Decision.ALLOW, "c"), second])
    assert (alone.rule_hash, alone.approval) == ("h2", ApprovalTerms())


def test_a_voter_belongs_to_every_group() -> None:
    terms = ApprovalTerms(1, (LEADS, Voters(callers=frozenset({"ada"}))))
    assert terms.may_vote("ada", ["lead"], 0)
    assert not terms.may_vote("ada", [], 0)
    assert not terms.may_vote("bob", ["lead"], 0)
    assert ApprovalTerms().may_vote("bob", [], 0)


def test_an_escalation_adds_voters_after_its_time() -> None:
    group = Voters(frozenset({"lead"}), frozenset(), 60.0, frozenset({"cto"}), frozenset({"eve"}))
    terms = ApprovalTerms(1, (group, Voters()))
    assert terms.escalate_after_s == 60.0
    assert ApprovalTerms().escalate_after_s is None
    for caller, roles in (("carl", ["cto"]), ("eve", [])):
        assert not terms.may_vote(caller, roles, 59.9)
        assert terms.may_vote(caller, roles, 60.0)
    assert not terms.may_vote("bob", [], 1e9)


def test_the_strictest_decision_about_an_output_wins() -> None:
    verdicts = [OutputVerdict(decision, decision) for decision in OutputDecision]
    assert strictest_output(verdicts).decision is OutputDecision.DENY
    assert strictest_output(verdicts[:2]).rule == "redact"


VERDICTS = st.lists(
    st.builds(
        Verdict,
        st.sampled_from(Decision),
        st.sampled_from(["a", "b"]),
        constraints=st.sampled_from([NO_CONSTRAINTS, Constraints(max_retries=1), Constraints(max_retries=2)]),
    ),
    min_size=1,
    max_size=4,
)


@given(VERDICTS)
def test_no_verdict_is_stricter_than_the_strictest(verdicts: list[Verdict]) -> None:
    found = strictest(verdicts)
    assert all(one.decision.rank <= found.decision.rank for one in verdicts)
    assert all(one.constraints.meet(found.constraints) == found.constraints for one in verdicts)
    assert any(one.rule == found.rule for one in verdicts)


def test_a_job_waits_for_a_kernel_that_has_not_answered_and_passes_one_that_is_bypassed() -> None:
    found = [(one.decision, one.rule, one.kernel) for one in (waiting("outside"), bypassing("outside"))]
    assert found == [
        (Decision.THROTTLE, KERNEL_WAIT, "outside"),
        (Decision.ALLOW, KERNEL_BYPASS, "outside"),
    ]
