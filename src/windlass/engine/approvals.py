"""Approvals: a request is made in the commit that makes its step wait, and a vote and its effect are one commit.

    vote ──► lock the job ──► still PENDING, in time, and the job open?    else a Conflict that says which
                          ──► may this caller vote?                        else Forbidden
                          ──► the vote, its event, its record in the audit
                          ──► quorum? ──► the second look ──► the step goes on     all in this commit

A job whose row is held by another transaction for long makes the vote fail with a code that says "again". A vote whose
answer was lost may be sent again: the same vote of the same caller changes nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core import ballot
from windlass.core.approval import (
    NODE_EDGE,
    ApprovalRequest,
    ApprovalState,
    Choice,
    OnReject,
    Subject,
    Use,
    Vote,
    Voter,
    node_on_reject,
    node_terms,
    second_look,
    tally,
    terms_of,
    why_not,
)
from windlass.core.draft import Draft, touched_by
from windlass.core.errors import (
    ApprovalLocked,
    ApprovalNotActionable,
    ApprovalResolved,
    ApprovalStale,
    ApprovalTerminalRun,
    Forbidden,
    NotFound,
)
from windlass.core.outcome import Fault
from windlass.core.plan import Plan
from windlass.core.route import Ask, Unresolvable
from windlass.core.states import JOB_TERMINAL, JobState
from windlass.engine.door import enter, gated
from windlass.engine.policies import Current
from windlass.engine.recheck import RULED_STATES
from windlass.engine.second_look import Counted, changed, decide_job
from windlass.engine.submit import check_text
from windlass.pure.audit import AuditEvent, payload_text
from windlass.store import drafts
from windlass.store.columns import encode
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql

SOURCE = "approval"
# How long a vote waits for a job that another transaction holds.
PATIENCE_MS = 3_000
QUESTION_MAX = 1_000
SHOWN_MAX = 64 * 1024


@dataclass(frozen=True, slots=True)
class Cast:
    """A vote as its caller sends it. `subject` is the digest that the caller saw, if it insists on it."""

    id: UUID
    voter: Voter
    choice: Choice
    reason: str = ""
    note: str = ""
    subject: str | None = None
    key_id: str | None = None
    request_id: str | None = None


def ask(id: UUID, arguments: Any) -> Ask | Unresolvable:
    """Return the question of a step from its resolved arguments."""
    given = arguments if isinstance(arguments, dict) else {}
    question, shown = str(given.get("question", "")), encode(given.get("show") or {})
    for what, text, most in (("question", question, QUESTION_MAX), ("values to show", shown, SHOWN_MAX)):
        if len(text) > most:
            told = f"the approval's {what} have {len(text):,} characters; at most {most:,} are allowed"
            return Unresolvable(Fault("bad_approval", told))
    return Ask(id, question, shown)


async def asked(
    connection: asyncpg.Connection, resolved: Iterable[tuple[asyncpg.Record, Any]], by_job: Mapping[UUID, Draft]
) -> dict[tuple[UUID, int], Ask]:
    """Complete the questions of steps with the rows that they are about. The jobs are locked."""
    found = [
        (by_job[row["job_id"]], row["no"], one)
        for row, one in resolved
        if isinstance(one, Ask) and row["job_id"] in by_job
    ]
    if not found:
        return {}
    ids = sorted({draft.job.id for draft, _, _ in found})
    facts = {row["id"]: row for row in await connection.fetch(sql("approval_facts"), ids)}
    return {
        (draft.job.id, no): replace(ask, request=_request(draft, no, ask, facts[draft.job.id]))
        for draft, no, ask in found
        if no in draft.steps
    }


def _request(draft: Draft, no: int, ask: Ask, facts: asyncpg.Record) -> ApprovalRequest:
    step = draft.steps[no]
    node = draft.plan.nodes[step.node]
    subject = _subject(draft.plan, facts, step.node, step.index, ask.question, ask.arguments)
    return ApprovalRequest(
        no=no,
        attempt=None,
        edge=NODE_EDGE,
        subject=subject.digest,
        requester=facts["caller"],
        terms=node_terms(node.approval, node.wait_s or 0.0),
        question=ask.question,
        arguments=ask.arguments,
        on_reject=node_on_reject(node.approval),
    )


def _subject(
    plan: Plan, facts: Mapping[str, Any], node: int, index: int | None, question: str, arguments: str
) -> Subject:
    return Subject(
        edge=NODE_EDGE,
        plan=plan.hash,
        caller=facts["caller"],
        inputs=facts["input"],
        labels=msgspec.json.decode(facts["labels"] or "{}"),
        step=plan.nodes[node].name,
        index=index,
        question=question,
        arguments=arguments,
    )


async def vote(db: Database, cast: Cast) -> ApprovalState:
    """Count a vote, and do what follows from it. Returns the approval's state after it.

    If something else would run than people approved, the approval is void, and an error says so after the commit.
    """
    for text in (cast.reason, cast.note, cast.voter.caller):
        check_text(text)
    tries = 0

    async def operation(connection: asyncpg.Connection, gate: Current) -> Counted:
        nonlocal tries
        tries += 1
        async with connection.transaction():
            # The policy's lock comes before those of jobs.
            await enter(connection, gate)
            row = await _locked(connection, cast.id)
            votes = await votes_of(connection, cast.id)
            mine = next((one for one in votes if one.caller == cast.voter.caller), None)
            if tries > 1 and mine is not None and mine.choice is cast.choice:
                # An earlier commit whose answer was lost has counted it.
                return Counted(ApprovalState(row["state"]))
            _check(row, cast)
            return await _count(connection, gate, row, cast)

    counted = await gated(db, operation)
    if counted.error is not None:
        raise counted.error
    return counted.state


async def votes_of(connection: asyncpg.Connection, id: UUID) -> list[Vote]:
    """Return the votes that were cast, in order."""
    return [
        Vote(row["caller"], Choice(row["choice"]), row["reason"], row["note"], row["at"])
        for row in await connection.fetch(sql("vote_list"), [id])
    ]


async def _locked(connection: asyncpg.Connection, id: UUID) -> asyncpg.Record:
    """Lock the approval's job, and read the approval."""
    job_id = await connection.fetchval(sql("approval_job"), id)
    if job_id is None:
        raise unknown(id)
    await connection.execute(sql("approval_patience"), str(PATIENCE_MS))
    try:
        await drafts.lock(connection, [job_id])
    except asyncpg.LockNotAvailableError:
        raise ApprovalLocked("the job is busy, so the vote could not be counted", remedy="Vote again") from None
    row = await connection.fetchrow(sql("approval_locked"), id)
    if row is None:
        raise unknown(id)
    return row


async def come_due(db: Database, id: UUID, job_id: UUID, source: str) -> None:
    """Let more people vote on an approval, or end it if its time is over: an approval that expires is never a yes."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await drafts.lock(connection, [job_id])
            row = await connection.fetchrow(sql("approval_locked"), id)
            draft = await drafts.load_open(connection, job_id, (), lambda h: read_plan(connection, h))
            if row is None or draft is None or row["state"] != ApprovalState.PENDING:
                return
            if draft.is_finished:
                await connection.execute(sql("approval_decide"), id, ApprovalState.INVALIDATED)
                return
            draft.source = source
            if row["no"] is None and row["expires_at"] <= row["now"]:
                await connection.execute(sql("approval_decide"), id, ApprovalState.EXPIRED)
                ballot.note_decision(draft, id, None, ApprovalState.EXPIRED)
                ballot.deny(draft, ballot.EXPIRED)
            else:
                until = row["expires_at"] if row["no"] is None else None
                if await connection.fetchval(sql("approval_escalate"), id, until) is None:
                    return
                ballot.note_escalation(draft, id, row["no"])
            await drafts.write(connection, [draft])

    await db.run(operation)


def unknown(id: UUID) -> NotFound:
    """Return the error for an approval that does not exist, or that the caller may not see."""
    return NotFound(f"there is no approval {id}", remedy="`windlass approvals` lists the ones that you may see")


def _check(row: asyncpg.Record, cast: Cast) -> None:
    """Refuse a vote of a caller who has none, and a vote that comes too late."""
    terms = terms_of(row["need"], msgspec.json.decode(row["who"]), 0.0)
    waited_s = (row["now"] - row["created_at"]).total_seconds()
    reason = why_not(cast.voter, row["requester"], row["above"], terms, waited_s)
    if reason is not None:
        raise Forbidden(f"not allowed to decide: {reason}", remedy="Ask another person who may decide")
    state = ApprovalState(row["state"])
    is_open = state in (ApprovalState.PENDING, ApprovalState.INVALIDATED)
    if is_open and JobState(row["job_state"]) in JOB_TERMINAL:
        raise ApprovalTerminalRun(f"the job is {row['job_state']}, so nothing is left to decide")
    if state is not ApprovalState.PENDING:
        raise ApprovalResolved(f"the approval is {state} already", remedy="Look at it: `windlass approvals show`")
    if row["expires_at"] <= row["now"]:
        raise ApprovalNotActionable("the time for this approval is over", remedy="Submit the job again")
    if cast.subject is not None and cast.subject != row["subject"]:
        raise ApprovalStale("what would run is not what you saw", remedy="Read the approval again, then decide")


async def _count(connection: asyncpg.Connection, gate: Current, row: asyncpg.Record, cast: Cast) -> Counted:
    """Store the vote with its event and its record, and apply the result."""
    await connection.execute(
        sql("vote_put"), cast.id, cast.voter.caller, cast.choice, cast.reason, cast.note, cast.key_id
    )
    votes = await votes_of(connection, cast.id)
    mine = next(one for one in votes if one.caller == cast.voter.caller)
    result = tally(votes, row["need"])
    is_job = row["no"] is None
    draft = await (_job_draft(connection, row) if is_job else _step_draft(connection, row))
    draft.source = f"{SOURCE}:{mine.caller}"
    ballot.note_vote(draft, cast.id, row["no"], mine)
    counted = Counted(result)
    if result is not ApprovalState.PENDING:
        decide = decide_job if is_job else _decide_step
        counted = await decide(connection, gate, draft, row, votes, result)
        await connection.execute(sql("approval_decide"), cast.id, counted.state)
    await drafts.write(connection, [draft])
    await _note(connection, row, cast, mine, counted.state)
    return counted


async def _step_draft(connection: asyncpg.Connection, row: asyncpg.Record) -> Draft:
    plan = await read_plan(connection, row["plan"])
    touched = touched_by(plan, row["no"], row["node"], is_success=False)
    [draft] = await drafts.load(connection, {row["job_id"]: touched}, lambda h: read_plan(connection, h))
    if not ballot.waits_for(draft, row["no"], row["id"]):
        raise ApprovalNotActionable("the step does not wait for this approval")
    return draft


async def _job_draft(connection: asyncpg.Connection, row: asyncpg.Record) -> Draft:
    draft = await drafts.load_open(connection, row["job_id"], RULED_STATES, lambda h: read_plan(connection, h))
    assert draft is not None
    return draft


async def _decide_step(
    connection: asyncpg.Connection,
    gate: Current,
    draft: Draft,
    row: asyncpg.Record,
    votes: Sequence[Vote],
    result: ApprovalState,
) -> Counted:
    """End the wait of a step. The digest is made again from the rows as they are now."""
    counted = Counted(result)
    if result is ApprovalState.APPROVED:
        now = _subject(draft.plan, row, row["node"], row["index"], row["question"], row["arguments"])
        is_same = second_look(row["subject"], now.digest, row["rule_hash"], None) is Use.USE
        counted = Counted(ApprovalState.USED) if is_same else Counted(ApprovalState.INVALIDATED, changed())
    ballot.note_decision(draft, row["id"], row["no"], counted.state)
    ballot.conclude(draft, row["no"], counted.state, votes, OnReject(row["on_reject"]))
    return counted


async def _note(
    connection: asyncpg.Connection, row: asyncpg.Record, cast: Cast, mine: Vote, state: ApprovalState
) -> None:
    """Write the audit's notes of the vote and of the use, in the commit of both."""
    told = {
        "job_id": str(row["job_id"]),
        "request_id": cast.request_id,
        "approval": str(cast.id),
        "subject": row["subject"],
    }
    about = {name: value for name, value in told.items() if value is not None}
    voted = {**about, "choice": mine.choice, "reason": mine.reason, "note": mine.note, "key": cast.key_id}
    await _audit(connection, AuditEvent.APPROVAL_VOTED, mine.caller, voted)
    if state is ApprovalState.USED:
        await _audit(connection, AuditEvent.APPROVAL_USED, mine.caller, {**about, "requester": row["requester"]})


async def _audit(connection: asyncpg.Connection, event: AuditEvent, caller: str, payload: dict[str, Any]) -> None:
    known = {name: value for name, value in payload.items() if value not in (None, "")}
    await connection.execute(sql("audit_note"), event, caller, payload_text(known))
