"""Turns the answer of a kernel outside of the process into a verdict. What Windlass does not understand denies."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from windlass.core.errors import BadPolicy
from windlass.core.verdict import DECISION_WORDS, KERNEL, KERNEL_UNKNOWN, Decision, Verdict, denied
from windlass.policy.canonical import canonical
from windlass.policy.document import Rule
from windlass.policy.reader import read_answer

REASON_CHARS_MAX = 1_000
NAME_CHARS_MAX = 300


@dataclass(frozen=True, slots=True)
class KernelAnswer:
    """An answer as it came. Constraints, approval and remediations have the keys of a rule of a policy document."""

    decision: str
    reason: str = ""
    rule: str = ""
    # The version or the hash of the kernel's own policy.
    snapshot: str = ""
    constraints: Mapping[str, Any] = field(default_factory=dict)
    approval: Mapping[str, Any] = field(default_factory=dict)
    remediations: tuple[Mapping[str, Any], ...] = ()
    # The kernel asks for an approval besides its decision.
    is_approval_required: bool = False
    # A part that this release does not know.
    unknown: str = ""


def verdict_of(answer: KernelAnswer, kernel: str) -> Verdict:
    """Return the verdict that an answer means."""
    decision = DECISION_WORDS.get(answer.decision.strip().lower())
    if decision is None:
        return unknown(kernel, f"the answer of the kernel {kernel} is no decision: {_clean(answer.decision, 40)!r}")
    if answer.is_approval_required and decision.rank < Decision.REQUIRE_APPROVAL.rank:
        decision = Decision.REQUIRE_APPROVAL
    if decision is Decision.DENY:
        # Its other parts cannot make it stricter, so their faults do not matter.
        return _verdict(answer, kernel, Rule("answer", decision))
    if answer.unknown:
        return unknown(kernel, f"the answer of the kernel {kernel} has a part that is not known here: {answer.unknown}")
    try:
        rule = read_answer(_parts(answer, decision))
    except BadPolicy as error:
        return unknown(kernel, f"the answer of the kernel {kernel} cannot be used: {error.message}")
    return _verdict(answer, kernel, rule)


def unknown(kernel: str, reason: str) -> Verdict:
    """Return the refusal of a request about which a kernel gave no decision that Windlass knows."""
    verdict = denied(KERNEL_UNKNOWN, _clean(reason, REASON_CHARS_MAX))
    return Verdict(verdict.decision, verdict.rule, verdict.reason, kernel=kernel)


def _parts(answer: KernelAnswer, decision: Decision) -> dict[str, Any]:
    parts: dict[str, Any] = {"decision": decision.value}
    if answer.constraints:
        parts["constraints"] = dict(answer.constraints)
    if answer.approval and decision is Decision.REQUIRE_APPROVAL:
        parts["approval"] = dict(answer.approval)
    if answer.remediations:
        parts["remediations"] = [dict(one) for one in answer.remediations]
    return parts


def _verdict(answer: KernelAnswer, kernel: str, rule: Rule) -> Verdict:
    name = _clean(answer.rule, NAME_CHARS_MAX) or KERNEL
    return Verdict(
        rule.decision,
        name,
        _clean(answer.reason, REASON_CHARS_MAX) or f"the kernel {kernel} decided: {rule.decision}",
        # An approval holds while the kernel gives the same answer for the same rule.
        hashlib.sha256(f"{kernel}\n{name}\n".encode() + canonical(rule)).hexdigest(),
        _clean(answer.snapshot, NAME_CHARS_MAX),
        constraints=rule.constraints,
        approval=rule.approval,
        remediations=rule.remediations,
        kernel=kernel,
    )


def _clean(text: str, most: int) -> str:
    """Return a text that can be stored and shown in one line."""
    return "".join(char if char.isprintable() else " " for char in text[:most]).strip()
