"""Approvals: who may vote, when the votes suffice, and whether what was approved is still what would run.

    request ─► PENDING ── quorum ──► APPROVED ── second look ──► USED         it runs, once
                  │                      │
                  │                      ├── another rule asks ─► INVALIDATED  a new request takes its place
                  │                      └── the policy denies ─► INVALIDATED  the job is DENIED
                  ├── one reject ──► REJECTED
                  ├── time is over ► EXPIRED      never a silent yes
                  └── job ended ───► INVALIDATED

An approval is bound to its *subject*: a digest over named fields of rows that never change. A field that is not named
does not count, so that a label or a column which a later release adds cannot void an approval. A vote and its effect
are one commit, and that commit makes the digest again (`second_look`).

A voter is a person, told apart by caller and never by key. The requester and every caller up the chain of parent jobs
may not vote. A caller that has only an id made for one key may not vote either: its holder may have another key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, assert_never

from windlass.core.verdict import ApprovalTerms, Decision, Verdict, Voters

# The faults of steps and jobs whose approval was not given.
APPROVAL_REJECTED = "approval_rejected"
APPROVAL_EXPIRED = "approval_expired"
APPROVAL_INVALID = "approval_invalidated"

# The edge of an approval that a recipe asks for. All other edges are those of a policy (`Edge`).
NODE_EDGE = "node"


class ApprovalState(StrEnum):
    """The states of an approval. All but PENDING and APPROVED are final."""

    PENDING = "PENDING"
    APPROVED = "APPROVED"
    REJECTED = "REJECTED"
    EXPIRED = "EXPIRED"
    INVALIDATED = "INVALIDATED"
    USED = "USED"

    __hash__ = str.__hash__


class Choice(StrEnum):
    """The two votes."""

    APPROVE = "approve"
    REJECT = "reject"

    __hash__ = str.__hash__


class OnReject(StrEnum):
    """The fate of a step whose approval was rejected."""

    FAIL = "fail"
    # The step completes with `approved: false`, and the recipe decides.
    CONTINUE = "continue"

    __hash__ = str.__hash__


@dataclass(frozen=True, slots=True)
class Subject:
    """What exactly is approved. Every field counts, and nothing else does.

    `inputs`, `arguments` and `constraints` are JSON text as it is stored: the job's inputs, a step's resolved inputs,
    and the constraints of the verdict that asked.
    """

    edge: str
    plan: str
    caller: str
    inputs: str
    labels: Mapping[str, str] = field(default_factory=dict)
    step: str = ""
    index: int | None = None
    question: str = ""
    arguments: str = ""
    provider: str = ""
    host: str = ""
    constraints: str = ""

    @property
    def digest(self) -> str:
        """The digest that an approval is bound to."""
        named = {one.name: getattr(self, one.name) for one in fields(self)}
        named["labels"] = dict(self.labels)
        return hashlib.sha256(json.dumps(named, sort_keys=True, ensure_ascii=False).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class ApprovalRequest:
    """A request for an approval, as it is stored."""

    no: int | None
    attempt: int | None
    edge: str
    subject: str
    requester: str
    terms: ApprovalTerms
    question: str = ""
    arguments: str | None = None
    reason: str = ""
    rule: str = ""
    rule_hash: str = ""
    policy: int | None = None
    constraints: str | None = None
    on_reject: OnReject = OnReject.FAIL

    def expires_at(self, now: datetime) -> datetime:
        """Return the moment at which a request that is made now expires."""
        return now + timedelta(seconds=self.terms.expires_s)

    def escalate_at(self, now: datetime) -> datetime | None:
        """Return the moment at which more people may vote, if that is before the request expires."""
        after_s = self.terms.escalate_after_s
        return None if after_s is None or after_s >= self.terms.expires_s else now + timedelta(seconds=after_s)


@dataclass(frozen=True, slots=True)
class Voter:
    """A caller that wants to vote."""

    caller: str
    roles: frozenset[str] = frozenset()
    # The caller has the scope `approvals:decide`.
    may_decide: bool = False
    # The caller's id is the name of a person or a program, and not an id made for one key.
    is_named: bool = True


@dataclass(frozen=True, slots=True)
class Vote:
    """A vote that counts: one for each caller."""

    caller: str
    choice: Choice
    reason: str
    note: str
    at: datetime


def why_not(voter: Voter, requester: str, above: Collection[str], terms: ApprovalTerms, waited_s: float) -> str | None:
    """Return why this caller may not vote, or None if it may. `above` are the callers up the chain of parent jobs."""
    if not voter.may_decide:
        return "this needs the scope approvals:decide"
    if voter.caller == requester:
        return "the requester may not decide on its own request, with any of its keys"
    if voter.caller in above:
        return "a caller of a parent job may not decide on what that job started"
    if not voter.is_named:
        return "this key has no named holder, so its holder cannot be told from the requester"
    if not terms.may_vote(voter.caller, voter.roles, waited_s):
        return "the caller is not among the people who may decide"
    return None


def tally(votes: Iterable[Vote], need: int) -> ApprovalState:
    """Return the result of the votes: one reject ends it, and `need` different callers must approve."""
    approving: set[str] = set()
    for vote in votes:
        if vote.choice is Choice.REJECT:
            return ApprovalState.REJECTED
        approving.add(vote.caller)
    return ApprovalState.APPROVED if len(approving) >= need else ApprovalState.PENDING


class Use(StrEnum):
    """The result of the second look."""

    # It runs now, and the approval is used up.
    USE = "use"
    # The policy wants to be asked again later; the approval stays good.
    WAIT = "wait"
    # The policy denies what was approved.
    DENY = "deny"
    # Something else would run, or another rule asks: the approval is void.
    RENEW = "renew"

    __hash__ = str.__hash__


def second_look(subject: str, subject_now: str, rule_hash: str, verdict: Verdict | None) -> Use:
    """Decide whether an approval may be used. `verdict` is the policy's verdict now; None if no policy was asked."""
    if subject != subject_now:
        return Use.RENEW
    if verdict is None:
        return Use.USE
    match verdict.decision:
        case Decision.ALLOW | Decision.ALLOW_WITH_CONSTRAINTS:
            return Use.USE
        case Decision.THROTTLE:
            return Use.WAIT
        case Decision.REQUIRE_APPROVAL:
            return Use.USE if verdict.rule_hash == rule_hash else Use.RENEW
        case Decision.DENY:
            return Use.DENY
        case _:
            assert_never(verdict.decision)


def voters_json(voters: Voters) -> dict[str, Any]:
    """Return a group of voters as it is stored and shown, without empty parts."""
    out: dict[str, Any] = {
        "roles": sorted(voters.roles),
        "callers": sorted(voters.callers),
        "escalate_after_s": voters.escalate_after_s,
        "escalate_roles": sorted(voters.escalate_roles),
        "escalate_callers": sorted(voters.escalate_callers),
    }
    return {name: value for name, value in out.items() if value not in (None, [])}


def voters_from_json(stored: Mapping[str, Any]) -> Voters:
    """Rebuild a group of voters from its stored form."""
    return Voters(
        roles=frozenset(stored.get("roles", ())),
        callers=frozenset(stored.get("callers", ())),
        escalate_after_s=stored.get("escalate_after_s"),
        escalate_roles=frozenset(stored.get("escalate_roles", ())),
        escalate_callers=frozenset(stored.get("escalate_callers", ())),
    )


def terms_of(need: int, who: Iterable[Mapping[str, Any]], expires_s: float) -> ApprovalTerms:
    """Rebuild the terms of an approval from their stored parts."""
    return ApprovalTerms(need, tuple(voters_from_json(group) for group in who) or (Voters(),), expires_s)


def node_terms(approval: Mapping[str, Any] | None, expires_s: float) -> ApprovalTerms:
    """Return the terms that a node of a plan declares (`Node.approval`)."""
    said = approval or {}
    return terms_of(said.get("need", 1), [said["who"]] if "who" in said else (), expires_s)


def node_on_reject(approval: Mapping[str, Any] | None) -> OnReject:
    """Return what a rejection does to the step of a node."""
    return OnReject((approval or {}).get("on_reject", OnReject.FAIL))


def answer(votes: Iterable[Vote], *, approved: bool, at: datetime) -> dict[str, Any]:
    """Return the output of a step that asked for an approval."""
    wanted = Choice.APPROVE if approved else Choice.REJECT
    counted = sorted((vote for vote in votes if vote.choice is wanted), key=lambda vote: (vote.at, vote.caller))
    return {
        "approved": approved,
        "by": [vote.caller for vote in counted],
        "reasons": [vote.reason for vote in counted],
        "at": at.isoformat(),
    }
