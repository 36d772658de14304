"""Compares two documents: rules that were added, removed, changed or moved, and verdicts that differ.

The requests of both documents' tests are judged by both. A request that was denied and now passes comes first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from windlass.core.verdict import Decision, Edge, OutputDecision
from windlass.policy.canonical import document_hash, plain
from windlass.policy.document import PolicyDocument, PolicyTest, PolicyTier
from windlass.policy.judge import judge
from windlass.policy.output import judge_output
from windlass.policy.rules import Policy, compile_policy
from windlass.policy.testing import ALLOW_ALL

_LISTS = ("rules", "input_rules", "output_rules")


@dataclass(frozen=True, slots=True)
class PolicyChange:
    """A difference between two documents: `place` is a key or a rule, and `kind` what happened to it."""

    kind: str
    place: str
    detail: str = ""


@dataclass(frozen=True, slots=True)
class VerdictChange:
    """A request that the two documents judge differently."""

    name: str
    topic: str
    before: str
    after: str
    is_looser: bool


@dataclass(frozen=True, slots=True)
class PolicyDiff:
    """All differences between two documents."""

    before: str
    after: str
    changes: tuple[PolicyChange, ...]
    verdicts: tuple[VerdictChange, ...]

    @property
    def is_equal(self) -> bool:
        """Return whether the documents mean the same."""
        return self.before == self.after


def diff_policies(before: PolicyDocument, after: PolicyDocument) -> PolicyDiff:
    """Compare two documents."""
    changes = [*_keys(before, after)]
    for name in _LISTS:
        changes += _rules(name, getattr(before, name), getattr(after, name))
    return PolicyDiff(document_hash(before), document_hash(after), tuple(changes), tuple(_verdicts(before, after)))


def _keys(before: PolicyDocument, after: PolicyDocument) -> Iterable[PolicyChange]:
    old, new = plain(before), plain(after)
    for key in sorted((old.keys() | new.keys()) - {*_LISTS, "tests"}):
        if old.get(key) != new.get(key):
            yield PolicyChange("changed", key, f"{_shown(old.get(key))} → {_shown(new.get(key))}")
    if old.get("tests") != new.get("tests"):
        yield PolicyChange("changed", "tests", f"{len(before.tests)} → {len(after.tests)} tests")


def _rules(name: str, before: Iterable[Any], after: Iterable[Any]) -> Iterable[PolicyChange]:
    old = {rule.id: rule for rule in before}
    new = {rule.id: rule for rule in after}
    for each in old:
        if each not in new:
            yield PolicyChange("removed", f"{name}.{each}", str(old[each].decision))
    for each, rule in new.items():
        if each not in old:
            yield PolicyChange("added", f"{name}.{each}", str(rule.decision))
        elif old[each] != rule:
            keys = sorted(key for key in plain(old[each]).keys() | plain(rule).keys() if _differs(old[each], rule, key))
            yield PolicyChange("changed", f"{name}.{each}", ", ".join(keys))
    both = [each for each in old if each in new]
    for each, other in zip(both, (each for each in new if each in old), strict=True):
        if each != other:
            # Rules are tried in order, so the first difference may change many verdicts.
            yield PolicyChange("moved", f"{name}.{other}", f"before {each}")
            break


def _differs(before: Any, after: Any, key: str) -> bool:
    return bool(getattr(before, key) != getattr(after, key))


def _verdicts(before: PolicyDocument, after: PolicyDocument) -> list[VerdictChange]:
    policies = [compile_policy(_whole(one)) for one in (before, after)]
    found = []
    seen = set()
    for test in (*before.tests, *after.tests):
        key = repr(test.question)
        if key in seen:
            continue
        seen.add(key)
        (old, old_rank), (new, new_rank) = (_decision(policy, test) for policy in policies)
        if old != new:
            found.append(VerdictChange(test.name, test.question.topic, old, new, new_rank < old_rank))
    # Sorting is stable, so the order of the tests stays within each group.
    return sorted(found, key=lambda change: not change.is_looser)


def _whole(document: PolicyDocument) -> list[PolicyDocument]:
    return [document] if document.tier is PolicyTier.GLOBAL else [document, ALLOW_ALL]


def _decision(policy: Policy, test: PolicyTest) -> tuple[str, int]:
    decision: Decision | OutputDecision
    if test.question.edge is Edge.OUTPUT:
        decision = judge_output(policy, test.question).verdict.decision
    else:
        judgement = judge(policy, test.question)
        exceeded = [c.counter for c in judgement.checks if test.counts.get(c.rule, 0) >= c.limit.max_requests]
        decision = judgement.given(exceeded).decision
    return str(decision), decision.rank


def _shown(value: Any) -> str:
    text = "nothing" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:57]}…"
