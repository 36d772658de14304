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
from datetime import datetime
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.approval import Request, Subject
from windlass.core.verdict import ApprovalTerms, Edge, Verdict
from windlass.store.approvals import put
from windlass.store.columns import encode
from windlass.store.statements import sql

_TIME_BITS = 80


def request_id(job_id: UUID, at: datetime | None, salt: str) -> UUID:
    """Return the id of a request. The same request of the same job has the same id, so a repeated commit makes one.

    Ids begin with a time, because lists of approvals follow it: the job's own time, or `at` for a later request.
    """
    head = job_id.int >> _TIME_BITS if at is None else int(at.timestamp() * 1000)
    digest = hashlib.sha256(f"{job_id}:{head}:{salt}".encode()).digest()
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


def request_of(subject: Subject, verdict: Verdict, policy: int | None) -> Request:
    """Return the request that a verdict asks for."""
    return Request(
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


async def ask_for_new(connection: asyncpg.Connection, asked: Sequence[tuple[UUID, Request]], source: str) -> None:
    """Store the requests for new jobs, in the commit that makes the jobs."""
    if not asked:
        return
    now = await connection.fetchval(sql("approval_now"))
    for job_id, request in asked:
        id = request_id(job_id, None, request.rule_hash)
        await put(connection, id, job_id, request, now)
        told = {"approval": str(id), "rule": request.rule, "need": request.terms.need}
        await connection.execute(sql("approval_told"), job_id, source, encode(told))


def facts_of(row: asyncpg.Record, constraints: str | None) -> Subject:
    """Return the subject that the rows of a job give now."""
    labels: Mapping[str, Any] = msgspec.json.decode(row["labels"] or "{}")
    return subject_of(row["plan"], row["caller"], row["input"], labels, constraints)
