"""Approvals as people see them: what exactly will run, who may decide, and the votes so far.

A caller sees an approval if it requested it, belongs to the people who decide on it, has voted on it, or is an admin.
All others are told that it does not exist. `Voters` decides who may vote, here as in the engine, so a page is read in
portions and filtered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.approval import ApprovalState, Choice, OnReject, Vote, Voter, terms_of, why_not
from windlass.core.caller import CallerContext, Role, Scope
from windlass.core.errors import NotFound
from windlass.core.plan import Plan
from windlass.core.states import JobState
from windlass.core.visibility import Reader
from windlass.store.database import Database
from windlass.store.outputs import Row, fetch
from windlass.store.plans import read_plan
from windlass.store.statements import sql

# One request for a page reads at most this many approvals.
LOOK_MAX = 1_000
PORTION = 200
_LAST = UUID(int=2**128 - 1)


@dataclass(frozen=True, slots=True)
class SeenApproval:
    """An approval, and what it means for the caller that reads it."""

    id: UUID
    job_id: UUID
    no: int | None
    step: str | None
    index: int | None
    edge: str
    recipe: str
    plan: str
    question: str
    arguments: Any
    inputs: Any
    labels: dict[str, str]
    requester: str
    policy: int | None
    rule: str | None
    reason: str
    need: int
    who: list[dict[str, Any]]
    on_reject: OnReject
    subject: str
    state: ApprovalState
    job_state: JobState
    created_at: datetime
    expires_at: datetime
    escalate_at: datetime | None
    escalated_at: datetime | None
    decided_at: datetime | None
    votes: tuple[Vote, ...]
    # The caller belongs to the people who decide. `may_decide`: it may vote now.
    is_eligible: bool
    may_decide: bool
    why_not: str | None
    now: datetime

    @property
    def left(self) -> timedelta:
        """The time that is left; zero once the approval is decided or over."""
        if self.state is not ApprovalState.PENDING:
            return timedelta(0)
        return max(timedelta(0), self.expires_at - self.now)


@dataclass(frozen=True, slots=True)
class ApprovalFilter:
    """The filter of a list. `is_mine`: requested by the caller. `is_decidable`: the caller may vote now."""

    states: tuple[str, ...] = ()
    is_mine: bool = False
    is_decidable: bool = False


@dataclass(frozen=True, slots=True)
class Page:
    """A page of approvals, the newest first, and the place of the next page."""

    items: list[SeenApproval]
    next: UUID | None


def voter_of(ctx: CallerContext) -> Voter:
    """Return a caller as the law of approvals sees it. An admin has the scope, and no other privilege."""
    return Voter(ctx.caller_id, ctx.all_roles, ctx.has(Scope.APPROVALS_DECIDE), ctx.is_named)


async def page(db: Database, ctx: CallerContext, wanted: ApprovalFilter, *, before: UUID | None, limit: int) -> Page:
    """Read a page of the approvals that the caller may see."""
    found: list[SeenApproval] = []
    place, looked = before or _LAST, 0
    async with db.connection() as connection:
        while looked < LOOK_MAX:
            values = (place, list(wanted.states), PORTION)
            rows = await fetch(connection, "approval_page", Reader.CALLER, *values)
            views = await _views(connection, rows, ctx)
            for view in views:
                place = view.id
                if not _fits(view, ctx, wanted):
                    continue
                found.append(view)
                if len(found) == limit:
                    return Page(found, place)
            if len(rows) < PORTION:
                return Page(found, None)
            looked += len(rows)
    return Page(found, place)


async def approval(db: Database, ctx: CallerContext, id: UUID) -> SeenApproval:
    """Read one approval, or raise NotFound if the caller may not see it."""
    async with db.connection() as connection:
        views = await _views(connection, await fetch(connection, "approval_get", Reader.CALLER, id), ctx)
    if not views or not _sees(views[0], ctx):
        raise NotFound("there is no such approval", remedy="GET /approvals lists the ones that you may see")
    return views[0]


async def of_job(db: Database, ctx: CallerContext, job_id: UUID) -> list[SeenApproval]:
    """Read the approvals of a job that the caller may see, the newest first."""
    async with db.connection() as connection:
        rows = await fetch(connection, "approval_of_job", Reader.CALLER, job_id, PORTION)
        return await _views(connection, rows, ctx)


def _fits(view: SeenApproval, ctx: CallerContext, wanted: ApprovalFilter) -> bool:
    if wanted.is_mine and view.requester != ctx.caller_id:
        return False
    if wanted.is_decidable and not view.may_decide:
        return False
    return _sees(view, ctx)


def _sees(view: SeenApproval, ctx: CallerContext) -> bool:
    if ctx.role is Role.ADMIN or view.is_eligible or any(vote.caller == ctx.caller_id for vote in view.votes):
        return True
    return view.requester == ctx.caller_id and ctx.has(Scope.JOBS_READ)


async def _views(connection: asyncpg.Connection, rows: Sequence[Row], ctx: CallerContext) -> list[SeenApproval]:
    ids = [row["id"] for row in rows]
    votes: dict[UUID, list[Vote]] = {}
    for row in await connection.fetch(sql("vote_list"), ids) if ids else ():
        vote = Vote(row["caller"], Choice(row["choice"]), row["reason"], row["note"], row["at"])
        votes.setdefault(row["approval_id"], []).append(vote)
    plans = {row["plan"]: await read_plan(connection, row["plan"]) for row in rows}
    voter = voter_of(ctx)
    return [_view(row, plans[row["plan"]], votes.get(row["id"], []), voter) for row in rows]


def _view(row: Row, plan: Plan, votes: Sequence[Vote], voter: Voter) -> SeenApproval:
    who = msgspec.json.decode(row["who"])
    waited_s = (row["now"] - row["created_at"]).total_seconds()
    reason = why_not(voter, row["requester"], row["above"] or (), terms_of(row["need"], who, 0.0), waited_s)
    is_eligible = reason is None
    is_open = row["state"] == ApprovalState.PENDING and row["expires_at"] > row["now"]
    if reason is None and not is_open:
        reason = f"the approval is {row['state']}" if row["state"] != ApprovalState.PENDING else "its time is over"
    return SeenApproval(
        id=row["id"],
        job_id=row["job_id"],
        no=row["no"],
        step=None if row["node"] is None else plan.nodes[row["node"]].name,
        index=row["index"],
        edge=row["edge"],
        recipe=row["recipe"],
        plan=row["plan"],
        question=row["question"],
        arguments=_value(row["arguments"]),
        inputs=_value(row["input"]),
        labels=_value(row["labels"]) or {},
        requester=row["requester"],
        policy=row["policy"],
        rule=row["rule"],
        reason=row["reason"],
        need=row["need"],
        who=who,
        on_reject=OnReject(row["on_reject"]),
        subject=row["subject"],
        state=ApprovalState(row["state"]),
        job_state=JobState(row["job_state"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        escalate_at=row["escalate_at"],
        escalated_at=row["escalated_at"],
        decided_at=row["decided_at"],
        votes=tuple(votes),
        is_eligible=is_eligible,
        may_decide=reason is None,
        why_not=reason,
        now=row["now"],
    )


def _value(text: Any) -> Any:
    return msgspec.json.decode(text) if isinstance(text, str | bytes) else text
