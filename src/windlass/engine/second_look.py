"""Decides about a whole job once its votes suffice: the policy is asked again, in the commit of the last vote.

rejected ─► the job is DENIED
approved ─► the digest is the same, and the policy says:
              ALLOW, or the same rule asks ─► USED: the holds go
              THROTTLE                     ─► APPROVED: the policy or its kernel is asked again
              DENY                         ─► INVALIDATED: the job is DENIED
              another rule asks            ─► INVALIDATED: a new request takes its place
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import assert_never

import asyncpg

from windlass.core import ballot
from windlass.core.approval import ApprovalState, Use, Vote, second_look
from windlass.core.bell import TimerSet
from windlass.core.draft import Draft
from windlass.core.errors import ApprovalOutdated, ApprovalStale, WrongState
from windlass.core.gatekeeping import Ruling, rule_on
from windlass.core.verdict import Decision
from windlass.engine.job_approvals import NOT_ASKED, admitted, ask_again, facts_of
from windlass.engine.policies import Current
from windlass.engine.recheck import judge_now


@dataclass(frozen=True, slots=True)
class Counted:
    """The state of an approval after a vote, and the error that its voter gets although the vote was counted."""

    state: ApprovalState
    error: WrongState | None = None


def changed() -> ApprovalStale:
    """Return the error for an approval of something that has changed since the request."""
    return ApprovalStale("what would run has changed since it was requested", remedy="The approval is void: ask again")


async def decide_job(
    connection: asyncpg.Connection,
    gate: Current,
    draft: Draft,
    row: asyncpg.Record,
    votes: Sequence[Vote],
    result: ApprovalState,
) -> Counted:
    """Deny a rejected job. Look again at an approved one, and do what the policy says now."""
    if result is ApprovalState.REJECTED:
        ballot.note_decision(draft, row["id"], None, result)
        ballot.deny(draft, ballot.fault_of(result, votes))
        return Counted(result)
    ruling = await judge_now(connection, gate, row["job_id"])
    now = facts_of(row, row["constraints"])
    use = second_look(row["subject"], now.digest, row["rule_hash"], ruling.verdict)
    counted = _counted(use, ruling, is_same=row["subject"] == now.digest)
    # The event comes before the job's end, because readers of a job's events stop there.
    ballot.note_decision(draft, row["id"], None, counted.state)
    rule_on(draft, replace(ruling, verdict=admitted(ruling.verdict)) if use is Use.USE else ruling)
    if use is Use.RENEW:
        ask_again(draft, row, ruling, NOT_ASKED)
    if use is Use.WAIT:
        # A kernel outside of the processes is asked at once.
        connection.ring(TimerSet())
    return counted


def _counted(use: Use, ruling: Ruling, *, is_same: bool) -> Counted:
    match use:
        case Use.USE:
            return Counted(ApprovalState.USED)
        case Use.WAIT:
            return Counted(ApprovalState.APPROVED)
        case Use.DENY:
            told = ApprovalOutdated("the policy denies now what was approved", remedy="Look at the job's decisions")
            return Counted(ApprovalState.INVALIDATED, told)
        case Use.RENEW:
            asks = ruling.verdict.decision is Decision.REQUIRE_APPROVAL
            remedy = "Decide on the new request that took its place" if asks else None
            told = ApprovalOutdated("the policy has changed since the request", remedy=remedy)
            return Counted(ApprovalState.INVALIDATED, told if is_same else changed())
        case _:
            assert_never(use)
