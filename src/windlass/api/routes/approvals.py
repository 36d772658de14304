"""Approvals: list them, read what exactly will run, approve or reject. A vote belongs to its caller, never to a key."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

from fastapi import Path, Query
from pydantic import BeforeValidator, WithJsonSchema

from windlass.api.guard import Caller, Has, RequestId, guard, guarded_router
from windlass.api.parts import Parts
from windlass.api.wire.approval import ApprovalDocument, ApprovalPage, ApprovalsQuery, VoteRequest
from windlass.api.wire.wire import document_of
from windlass.core.approval import Choice
from windlass.core.caller import CallerContext, Scope
from windlass.core.errors import BadRequest, NotFound
from windlass.documents.approval import approval_values
from windlass.engine.approvals import Cast, vote
from windlass.pure.cursor import decode_page, encode_page
from windlass.views import approvals
from windlass.views.approvals import ApprovalFilter, SeenApproval, voter_of

router = guarded_router("approvals")
_PAGE = "approvals"
_VOTE_CODES = (
    "not_found",
    "bad_input",
    "too_large",
    "bad_media",
    "approval_already_resolved",
    "approval_stale_request",
    "approval_stale_snapshot",
    "approval_not_actionable",
    "approval_terminal_run",
    "approval_retryable_lock",
)


def _id(text: Any) -> UUID:
    # An id is opaque: a malformed id names no approval, and the caller need not know more.
    if isinstance(text, str) and len(text) in (32, 36):
        try:
            return UUID(text)
        except ValueError:
            pass
    raise NotFound("there is no such approval")


ApprovalId = Annotated[
    UUID, BeforeValidator(_id), Path(description="An approval."), WithJsonSchema({"type": "string", "format": "uuid"})
]


@router.get("/approvals", operation_id="approvals.list", response_model=ApprovalPage, summary="List approvals")
@guard(codes=("bad_input",))
async def list_approvals(query: Annotated[ApprovalsQuery, Query()], caller: Caller, parts: Has) -> Any:
    """Returns the approvals that the caller requested or may decide, the newest first.

    A page may have fewer items than `limit`. To get the next page, send `next` as `cursor` with the same filter.
    """
    wanted = ApprovalFilter(tuple(map(str, query.state)), query.mine, query.decidable)
    digest = ",".join((*wanted.states, str(int(wanted.is_mine)), str(int(wanted.is_decidable))))
    before = None if query.cursor is None else _before(query.cursor, digest)
    page = await approvals.page(parts.db, caller, wanted, before=before, limit=query.limit)
    following = None if page.next is None else encode_page(_PAGE, digest, str(page.next))
    return ApprovalPage.model_construct(items=[_document(view) for view in page.items], next=following)


def _before(cursor: str, digest: str) -> UUID:
    try:
        return UUID(decode_page(cursor, _PAGE, digest))
    except ValueError:
        raise BadRequest("the cursor cannot be read", remedy="Send `next` of the last page unchanged") from None


@router.get(
    "/approvals/{approval_id}",
    operation_id="approvals.get",
    response_model=ApprovalDocument,
    summary="Get an approval",
)
@guard(codes=("not_found",))
async def get(approval_id: ApprovalId, caller: Caller, parts: Has) -> ApprovalDocument:
    """Returns what exactly will run, the rule that asks, the people who may decide, and the votes so far."""
    return _document(await approvals.approval(parts.db, caller, approval_id))


@router.post(
    "/approvals/{approval_id}/approve",
    operation_id="approvals.approve",
    response_model=ApprovalDocument,
    summary="Approve",
)
@guard(Scope.APPROVALS_DECIDE, operation="write", codes=_VOTE_CODES)
async def approve(
    approval_id: ApprovalId, caller: Caller, parts: Has, request_id: RequestId, wish: VoteRequest | None = None
) -> ApprovalDocument:
    """Votes for what will run. Once enough people have, it runs, once."""
    return await _vote(parts, caller, approval_id, Choice.APPROVE, wish or VoteRequest(), request_id)


@router.post(
    "/approvals/{approval_id}/reject",
    operation_id="approvals.reject",
    response_model=ApprovalDocument,
    summary="Reject",
)
@guard(Scope.APPROVALS_DECIDE, operation="write", codes=_VOTE_CODES)
async def reject(
    approval_id: ApprovalId, caller: Caller, parts: Has, request_id: RequestId, wish: VoteRequest | None = None
) -> ApprovalDocument:
    """Votes against what would run. One such vote ends the approval."""
    return await _vote(parts, caller, approval_id, Choice.REJECT, wish or VoteRequest(), request_id)


async def _vote(
    parts: Parts, caller: CallerContext, id: UUID, choice: Choice, wish: VoteRequest, request_id: str
) -> ApprovalDocument:
    """Count the vote and return the approval after it."""
    await vote(
        parts.db,
        Cast(
            id=id,
            voter=voter_of(caller),
            choice=choice,
            reason=wish.reason,
            note=wish.note,
            subject=wish.subject,
            key_id=caller.key_id,
            request_id=request_id,
        ),
    )
    return _document(await approvals.approval(parts.db, caller, id))


def _document(view: SeenApproval) -> ApprovalDocument:
    return document_of(ApprovalDocument, approval_values(view))
