"""The rows of approvals that follow from drafts: new requests, and the end of requests whose step or job moved on."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

import asyncpg

from windlass.core.approval import APPROVAL_EXPIRED, ApprovalState, Request, voters_json
from windlass.core.bell import DeliveryDue
from windlass.core.draft import Draft
from windlass.core.effect import RequestApproval
from windlass.core.plan import NodeKind
from windlass.core.states import StepState
from windlass.store.columns import encode
from windlass.store.statements import bound, sql


async def put(connection: asyncpg.Connection, id: UUID, job_id: UUID, request: Request, now: datetime) -> None:
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
        if draft.is_swept:
            return draft.plan.has_approvals or draft.job.is_gated
        return draft.plan.has_approvals and (bool(draft.effects_of(RequestApproval)) or bool(_left(draft)))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """End the requests that no step waits for any more, then add the new ones."""
        swept = [draft.job.id for draft in drafts if draft.is_swept]
        if swept:
            await connection.execute(sql("approvals_clear"), swept)
        left = [one for draft in drafts if not draft.is_swept for one in _left(draft)]
        if left:
            await connection.execute(sql("approvals_leave"), *(list(column) for column in zip(*left, strict=True)))
        for draft in drafts:
            for asked in draft.effects_of(RequestApproval) if not draft.is_swept else ():
                await put(connection, asked.id, draft.job.id, asked.request, draft.now)


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
