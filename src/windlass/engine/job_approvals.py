"""Approvals of whole jobs, which a rule of the policy asks for. A request is made in the commit of its verdict.

submit: REQUIRE_APPROVAL ─► the job is held, its request is PENDING
quorum ─► judged again, in one commit:  ALLOW, or the same rule ─► USED, the holds go
                                        THROTTLE ─► APPROVED, the warden asks again
                                        DENY ─► INVALIDATED, the job is DENIED
                                        another rule ─► INVALIDATED, a new request
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.approval import ApprovalRequest, ApprovalState, Subject, Use, second_look
from windlass.core.constraint import NO_CONSTRAINTS
from windlass.core.draft import Draft, Event
from windlass.core.effect import MoveExpiry, RequestApproval
from windlass.core.event import EventType
from windlass.core.gatekeeping import Ruling
from windlass.core.verdict import ApprovalTerms, Decision, Edge, Verdict
from windlass.pure.audit import AuditEvent, payload_text
from windlass.store.approvals import put
from windlass.store.columns import encode
from windlass.store.statements import sql
from windlass.store.verdicts import constraints_text

_TIME_BITS = 80


def request_id(job_id: UUID, at: datetime | None, request: ApprovalRequest) -> UUID:
    """Return the id of a request. The same request of the same job has the same id, so a repeated commit makes one.

    Ids begin with a time, because lists of approvals follow it: the job's own time, or `at` for a later request.
    """
    head = job_id.int >> _TIME_BITS if at is None else int(at.timestamp() * 1000)
    digest = hashlib.sha256(f"{job_id}:{head}:{request.rule_hash}:{request.subject}".encode()).digest()
    body = int.from_bytes(digest[:16], "big") & ((1 << _TIME_BITS) - 1)
    # Version 7 and its variant, as all ids of rows are.
    body = body & ~(0xF << 76) | (0x7 << 76)
    body = body & ~(0x3 << 62) | (0x2 << 62)
    return UUID(int=(head << _TIME_BITS) | body)


def subject_of(plan: str, caller: str, inputs: str, labels: Mapping[str, str], constraints: str | None) -> Subject:
    """Return what an approval of a whole job is bound to."""
    return Subject(
        edge=Edge.SUBMIT, plan=plan, caller=caller, inputs=inputs, labels=labels, constraints=constraints or ""
    )


def request_of(subject: Subject, verdict: Verdict, policy: int | None) -> ApprovalRequest:
    """Return the request that a verdict asks for."""
    return ApprovalRequest(
        no=None,
        attempt=None,
        edge=subject.edge,
        subject=subject.digest,
        requester=subject.caller,
        terms=verdict.approval or ApprovalTerms(),
        reason=verdict.reason,
        rule=verdict.rule,
        rule_hash=verdict.rule_hash,
        policy=policy,
        constraints=subject.constraints or None,
    )


async def ask_for_new(
    connection: asyncpg.Connection, asked: Sequence[tuple[UUID, ApprovalRequest]], source: str
) -> None:
    """Store the requests for new jobs, in the commit that makes the jobs."""
    if not asked:
        return
    now = await connection.fetchval(sql("approval_now"))
    for job_id, request in asked:
        id = request_id(job_id, None, request)
        await put(connection, id, job_id, request, now)
        told = {"approval": str(id), "rule": request.rule, "need": request.terms.need}
        await connection.execute(sql("approval_told"), job_id, source, encode(told), request.terms.expires_s)


def facts_of(row: asyncpg.Record, constraints: str | None) -> Subject:
    """Return the subject that the rows of a job give now."""
    labels: Mapping[str, Any] = msgspec.json.decode(row["labels"] or "{}")
    return subject_of(row["plan"], row["caller"], row["input"], labels, constraints)


def admitted(verdict: Verdict) -> Verdict:
    """Return the verdict that an approval turns a verdict into: its constraints still hold."""
    if verdict.decision is not Decision.REQUIRE_APPROVAL:
        return verdict
    is_limited = verdict.constraints != NO_CONSTRAINTS
    return replace(verdict, decision=Decision.ALLOW_WITH_CONSTRAINTS if is_limited else Decision.ALLOW)


@dataclass(frozen=True, slots=True)
class JobApprovals:
    """The approvals of a whole job that are open or used."""

    rows: tuple[asyncpg.Record, ...] = ()

    @classmethod
    async def of_jobs(cls, connection: asyncpg.Connection, job_ids: Sequence[UUID]) -> dict[UUID, JobApprovals]:
        """Read those of locked jobs. Jobs without any are left out."""
        found: dict[UUID, list[asyncpg.Record]] = {}
        for row in await connection.fetch(sql("approval_standing"), list(job_ids)):
            found.setdefault(row["job_id"], []).append(row)
        return {job_id: cls(tuple(rows)) for job_id, rows in found.items()}

    def good(self, job: asyncpg.Record, verdict: Verdict) -> asyncpg.Record | None:
        """Return the approval that people gave for this rule and for what would run now, if there is one."""
        for row in self.rows:
            if row["state"] == ApprovalState.PENDING:
                continue
            subject = facts_of(job, row["constraints"]).digest
            if second_look(row["subject"], subject, row["rule_hash"], verdict) is Use.USE:
                return row
        return None

    def admitted(self, job: asyncpg.Record, verdict: Verdict) -> Verdict:
        """Return the verdict, or what the job's approval turns it into."""
        asks = verdict.decision is Decision.REQUIRE_APPROVAL
        return admitted(verdict) if asks and self.good(job, verdict) is not None else verdict

    def is_asked(self, rule_hash: str, subject: str) -> bool:
        """Return whether people are asked this already."""
        return any(
            (row["state"], row["rule_hash"], row["subject"]) == (ApprovalState.PENDING, rule_hash, subject)
            for row in self.rows
        )


NOT_ASKED = JobApprovals()


def ask_again(draft: Draft, job: asyncpg.Record, ruling: Ruling, standing: JobApprovals) -> None:
    """Ask people about a job that a later verdict holds, unless they are asked already."""
    verdict = ruling.verdict
    if draft.is_finished or verdict.decision is not Decision.REQUIRE_APPROVAL:
        return
    request = request_of(facts_of(job, constraints_text(verdict)), verdict, ruling.policy)
    if standing.is_asked(request.rule_hash, request.subject):
        return
    id = request_id(draft.job.id, draft.now, request)
    draft.effects.append(RequestApproval(id, request))
    if draft.job.expires_at is not None:
        draft.job.expires_at += timedelta(seconds=request.terms.expires_s)
        draft.effects.append(MoveExpiry(draft.job.expires_at))
    told = {"approval": str(id), "rule": request.rule, "need": request.terms.need}
    draft.events.append(Event(EventType.APPROVAL_REQUESTED, draft.source, payload=told))


async def use_up(connection: asyncpg.Connection, job: asyncpg.Record, verdict: Verdict, standing: JobApprovals) -> None:
    """Use the approval that people gave while the policy wanted to wait. The job goes on in this commit."""
    given = standing.good(job, verdict)
    if given is None or given["state"] != ApprovalState.APPROVED:
        return
    await connection.execute(sql("approval_decide"), given["id"], ApprovalState.USED)
    told = {"job_id": str(job["id"]), "approval": str(given["id"]), "subject": given["subject"]}
    await connection.execute(sql("audit_note"), AuditEvent.APPROVAL_USED, job["caller"], payload_text(told))
