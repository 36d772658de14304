"""Verdicts: what a policy says about a job, and how the verdicts of several tiers become one.

    a rule matches ─► Verdict(decision, rule, reason, constraints, approval, …)
    tiers: global, tenant, workflow, job ─► one verdict each ─► strictest(verdicts)

The strictest decision wins, and the constraints of all tiers meet. So a lower tier only tightens:

    ALLOW  <  ALLOW_WITH_CONSTRAINTS  <  THROTTLE  <  REQUIRE_APPROVAL  <  DENY

No verdict at all is DENY, and so is a word that is not a decision.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum

from windlass.core.constraint import NO_CONSTRAINTS, Constraints

APPROVAL_EXPIRES_S = 86_400.0

# Rules that no document contains. An id of a document has no colon, so it is never one of these.
NO_POLICY = "windlass:no_policy"
BAD_TOPIC = "windlass:topic"
FAULT = "windlass:fault"
DEFAULT = "windlass:default"
NO_RULE = "windlass:no_rule"
# A kernel outside of the process: it named no rule, or its answer is no decision that Windlass knows.
KERNEL = "windlass:kernel"
KERNEL_UNKNOWN = "windlass:kernel_unknown"
# The kernel has not answered yet; or it was silent, and the fail mode is `open`.
KERNEL_WAIT = "windlass:kernel_wait"
KERNEL_BYPASS = "windlass:kernel_bypass"
UNDO = "windlass:undo"


class Edge(StrEnum):
    """The moments at which a policy is asked."""

    SUBMIT = "submit"
    # A step whose inputs are resolved is about to be queued.
    DISPATCH = "dispatch"
    # The policy has changed since the submit, so the submit's question is asked again.
    CLAIM = "claim"
    # A request is about to be sent to a provider.
    PROVIDER = "provider"
    # A step has produced an output.
    OUTPUT = "output"

    __hash__ = str.__hash__


class Decision(StrEnum):
    """The decisions about a job, from the most lenient to the strictest."""

    ALLOW = "allow"
    ALLOW_WITH_CONSTRAINTS = "allow_with_constraints"
    THROTTLE = "throttle"
    REQUIRE_APPROVAL = "require_approval"
    DENY = "deny"

    __hash__ = str.__hash__

    @property
    def rank(self) -> int:
        """The place in the order of strictness."""
        return _RANK[self]

    @property
    def admits(self) -> bool:
        """Return whether the job may go on now."""
        return self in (Decision.ALLOW, Decision.ALLOW_WITH_CONSTRAINTS)


_RANK = {decision: at for at, decision in enumerate(Decision)}

# Every word for a decision in documents and in the answers of kernels.
DECISION_WORDS: Mapping[str, Decision] = {
    "allow": Decision.ALLOW,
    "permit": Decision.ALLOW,
    "deny": Decision.DENY,
    "block": Decision.DENY,
    "require_approval": Decision.REQUIRE_APPROVAL,
    "require-approval": Decision.REQUIRE_APPROVAL,
    "require_human": Decision.REQUIRE_APPROVAL,
    "require-human": Decision.REQUIRE_APPROVAL,
    "allow_with_constraints": Decision.ALLOW_WITH_CONSTRAINTS,
    "allow-with-constraints": Decision.ALLOW_WITH_CONSTRAINTS,
    "throttle": Decision.THROTTLE,
}


def parse_decision(word: str) -> Decision:
    """Return the decision that a word means, in any case. An unknown word means DENY."""
    return DECISION_WORDS.get(word.strip().lower(), Decision.DENY)


class OutputDecision(StrEnum):
    """The decisions about an output, from the most lenient to the strictest."""

    ALLOW = "allow"
    REDACT = "redact"
    # The step runs again, because another attempt may produce a better output.
    REDO = "redo"
    QUARANTINE = "quarantine"
    # Treated as QUARANTINE; the word is kept for the record.
    DENY = "deny"

    __hash__ = str.__hash__

    @property
    def rank(self) -> int:
        """The place in the order of strictness."""
        return _OUTPUT_RANK[self]


_OUTPUT_RANK = {decision: at for at, decision in enumerate(OutputDecision)}


@dataclass(frozen=True, slots=True)
class Voters:
    """A group of people who may vote. Without roles and callers, all people with the right to vote belong to it.

    Once an approval has waited `escalate_after_s`, the people of `escalate_roles` and `escalate_callers` belong too.
    """

    roles: frozenset[str] = frozenset()
    callers: frozenset[str] = frozenset()
    escalate_after_s: float | None = None
    escalate_roles: frozenset[str] = frozenset()
    escalate_callers: frozenset[str] = frozenset()

    def has(self, caller: str, roles: Collection[str], waited_s: float) -> bool:
        """Return whether a caller with these roles belongs to the group after the approval has waited this long."""
        if not self.roles and not self.callers:
            return True
        if caller in self.callers or not self.roles.isdisjoint(roles):
            return True
        is_escalated = self.escalate_after_s is not None and waited_s >= self.escalate_after_s
        return is_escalated and (caller in self.escalate_callers or not self.escalate_roles.isdisjoint(roles))


@dataclass(frozen=True, slots=True)
class ApprovalTerms:
    """How an approval is given: the number of voters, the groups that each voter must belong to, and the time."""

    need: int = 1
    # A voter belongs to every group. Rules of two tiers each add a group.
    who: tuple[Voters, ...] = (Voters(),)
    expires_s: float = APPROVAL_EXPIRES_S

    @property
    def escalate_after_s(self) -> float | None:
        """The first moment at which more people may vote, or None."""
        return min((group.escalate_after_s for group in self.who if group.escalate_after_s is not None), default=None)

    def may_vote(self, caller: str, roles: Collection[str], waited_s: float) -> bool:
        """Return whether a caller with these roles may vote after the approval has waited this long."""
        return all(group.has(caller, roles, waited_s) for group in self.who)

    def meet(self, other: ApprovalTerms) -> ApprovalTerms:
        """Return terms that satisfy both: more voters, each of all groups, in the shorter time."""
        who = dict.fromkeys((*self.who, *other.who))
        return ApprovalTerms(max(self.need, other.need), tuple(who), min(self.expires_s, other.expires_s))


@dataclass(frozen=True, slots=True)
class Remediation:
    """A safer form of a refused job, which a person may choose: another topic, capability or labels."""

    id: str
    title: str = ""
    summary: str = ""
    replacement_topic: str = ""
    replacement_capability: str = ""
    add_labels: Mapping[str, str] = field(default_factory=dict, hash=False)
    remove_labels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class VelocityLimit:
    """How many requests with one key may pass in any window of this length. A rule with such a limit fires past it."""

    max_requests: int
    window_s: int
    # The parts of the key, such as `tenant` and `labels.session`.
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision about a job at one edge, with the rule that made it."""

    decision: Decision
    rule: str
    reason: str = ""
    # The hashes of the rule and of the whole policy. An approval holds while the hash of its rule does.
    rule_hash: str = ""
    policy: str = ""
    tier: str = ""
    constraints: Constraints = NO_CONSTRAINTS
    approval: ApprovalTerms | None = None
    remediations: tuple[Remediation, ...] = ()
    velocity: VelocityLimit | None = None
    # The kernel outside of the process that made it; no text: the policy of the installation.
    kernel: str = ""


@dataclass(frozen=True, slots=True)
class OutputVerdict:
    """The decision about an output, with the rule that made it."""

    decision: OutputDecision
    rule: str
    reason: str = ""
    rule_hash: str = ""
    policy: str = ""
    tier: str = ""
    severity: str = ""
    # A person may release, redact or discard the quarantined output.
    is_reviewed: bool = False


def denied(rule: str, reason: str, policy: str = "") -> Verdict:
    """Return a refusal by a rule that no document contains."""
    return Verdict(Decision.DENY, rule, reason, policy=policy)


def waiting(kernel: str) -> Verdict:
    """Return the verdict about a job whose kernel has not answered yet."""
    return Verdict(Decision.THROTTLE, KERNEL_WAIT, f"the kernel {kernel} has not judged it yet", kernel=kernel)


def bypassing(kernel: str) -> Verdict:
    """Return the verdict about a job that runs although its kernel is silent. The kernel judges it afterwards."""
    return Verdict(Decision.ALLOW, KERNEL_BYPASS, "input policy fail-open: safety kernel unreachable", kernel=kernel)


def strictest(verdicts: Iterable[Verdict]) -> Verdict:
    """Return the strictest of the verdicts, with the constraints of all. Of equal decisions the first counts.

    If several verdicts require an approval, one approval must satisfy all of them. It holds while none of the rules
    changes, so its `rule_hash` is made from the hashes of all.
    """
    found = list(verdicts)
    if not found:
        return denied(NO_POLICY, "no policy is in force")
    first = max(found, key=lambda verdict: verdict.decision.rank)
    if len(found) == 1:
        return first
    constraints = NO_CONSTRAINTS
    for verdict in found:
        constraints = constraints.meet(verdict.constraints)
    decision = first.decision
    if decision is Decision.ALLOW and constraints != NO_CONSTRAINTS:
        decision = Decision.ALLOW_WITH_CONSTRAINTS
    whole = replace(first, decision=decision, constraints=constraints)
    return _with_approvals(whole, found) if decision is Decision.REQUIRE_APPROVAL else whole


def _with_approvals(whole: Verdict, verdicts: list[Verdict]) -> Verdict:
    asking = [verdict for verdict in verdicts if verdict.decision is Decision.REQUIRE_APPROVAL]
    terms = ApprovalTerms() if whole.approval is None else whole.approval
    for verdict in asking:
        terms = terms.meet(verdict.approval or ApprovalTerms())
    hashes = sorted({verdict.rule_hash for verdict in asking})
    rule_hash = hashes[0] if len(hashes) == 1 else hashlib.sha256("\n".join(hashes).encode()).hexdigest()
    return replace(whole, approval=terms, rule_hash=rule_hash)


def strictest_output(verdicts: Iterable[OutputVerdict]) -> OutputVerdict:
    """Return the strictest of the verdicts about an output. Of equal decisions the first counts."""
    found = list(verdicts)
    if not found:
        return OutputVerdict(OutputDecision.QUARANTINE, NO_POLICY, "no policy is in force")
    return max(found, key=lambda verdict: verdict.decision.rank)
