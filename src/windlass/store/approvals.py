"""The rows of approvals that follow from drafts: new requests, and the end of requests whose step or job moved on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from windlass.core.approval import APPROVAL_EXPIRED, ApprovalRequest, ApprovalState, voters_json
from windlass.core.bell import DeliveryDue
from windlass.core.draft import Draft
from windlass.core.effect import RecordVerdict, RequestApproval
from windlass.core.plan import NodeKind
from windlass.core.states import StepState
from windlass.core.verdict import Decision
from windlass.store.columns import encode
from windlass.store.statements import bound, sql


async def put(connection: asyncpg.Connection, id: UUID, job_id: UUID, request: ApprovalRequest, now: datetime) -> None:
    """Store a request, in the commit that makes its step or its job wait."""
    expires_at, escalate_at = request.expires_at(now), request.escalate_at(now)
    terms = request.terms
    connection.ring(DeliveryDue())
    await connection.execute(
        *bound(
            "approval_put",
            id=id,
            job_id=job_id,
            no=request.no,
            attempt=request.attempt,
            edge=request.edge,
            subject=request.subject,
            arguments=request.arguments,
            constraints=request.constraints,
            policy=request.policy,
            rule=request.rule or None,
            rule_hash=request.rule_hash,
            reason=request.reason,
            question=request.question,
            on_reject=request.on_reject,
            requester=request.requester,
            need=terms.need,
            who=encode([voters_json(group) for group in terms.who]),
            expires_at=expires_at,
            escalate_at=escalate_at,
            # The waker ends the wait of a step, so only the expiry of a whole job's approval needs another duty.
            due_at=escalate_at or (expires_at if request.no is None else None),
        )
    )


class ApprovalWriter:
    """Writes the requests for approvals (store/writers.py)."""

    def touches(self, draft: Draft) -> bool:
        """Return whether an approval is requested, or is no longer waited for."""
        if draft.is_swept or any(isinstance(one, RequestApproval | RecordVerdict) for one in draft.effects):
            return True
        return draft.plan.has_approvals and bool(_left(draft))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """End the requests that nothing waits for any more, then add the new ones."""
        if swept := [draft.job.id for draft in drafts if draft.is_swept]:
            await connection.execute(sql("approval_clear"), swept)
        open_drafts = [draft for draft in drafts if not draft.is_swept]
        if left := [one for draft in open_drafts for one in _left(draft)]:
            await connection.execute(sql("approval_leave"), *(list(column) for column in zip(*left, strict=True)))
        for is_kept in (False, True):
            if ended := [draft.job.id for draft in open_drafts if _ends(draft) is is_kept]:
                await connection.execute(sql("approval_end"), ended, is_kept)
        for draft in open_drafts:
            for asked in draft.effects_of(RequestApproval):
                await put(connection, asked.id, draft.job.id, asked.request, draft.now)


def _ends(draft: Draft) -> bool | None:
    """Return whether the job's open requests end although approvals that were given are kept; None: they do not end.

    A new request takes the place of an open one. A verdict that lets the job go on needs none.
    """
    if any(one.request.no is None for one in draft.effects_of(RequestApproval)):
        return False
    verdicts = [one for one in draft.effects_of(RecordVerdict) if one.no is None]
    if not verdicts or verdicts[-1].verdict.decision is Decision.REQUIRE_APPROVAL:
        return None
    return verdicts[-1].verdict.decision is Decision.THROTTLE


def _left(draft: Draft) -> list[tuple[UUID, int, str]]:
    """Return the steps that this draft made stop waiting, and the state of their approvals."""
    asked = {one.request.no for one in draft.effects_of(RequestApproval)}
    return [
        (draft.job.id, step.no, _state(step.error.code if step.error is not None else ""))
        for step in draft.changed.values()
        if draft.plan.nodes[step.node].kind is NodeKind.APPROVAL
        and step.state is not StepState.PARKED
        and step.no not in asked
    ]


def _state(code: str) -> ApprovalState:
    return ApprovalState.EXPIRED if code == APPROVAL_EXPIRED else ApprovalState.INVALIDATED
