"""The overview of an installation, and failed jobs that need attention."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Path
from pydantic import BeforeValidator

from windlass.api.guard import Caller, Has, RequestId, guard, guarded_router
from windlass.api.parts import Parts
from windlass.api.wire.listing import BulkDone, bulk_done
from windlass.api.wire.overview import (
    DeadLetterList,
    DiscardRequest,
    OverviewDocument,
    RedriveRequest,
    dead_letter_document,
    overview_document,
)
from windlass.core.caller import CallerContext, Scope, priority_max
from windlass.core.errors import NotFound
from windlass.engine import redrive as redriving
from windlass.pure.audit import AuditEvent
from windlass.pure.fingerprint import FINGERPRINT_CHARS
from windlass.views import dead_letters
from windlass.views.overview import overview as look_over

router = guarded_router("overview")
_CODES = ("not_found", "bad_input", "count_changed", "too_large", "bad_media")


def _fingerprint(text: Any) -> str:
    if isinstance(text, str) and len(text) == FINGERPRINT_CHARS and set(text) <= set("0123456789abcdef"):
        return text
    raise NotFound("there are no dead letters of this kind", remedy="GET /dead-letters lists them")


Fingerprint = Annotated[str, BeforeValidator(_fingerprint), Path(description="A kind of failure.")]


@router.get("/overview", operation_id="overview.get", response_model=OverviewDocument, summary="Get the overview")
@guard(Scope.JOBS_READ)
async def overview(caller: Caller, parts: Has) -> OverviewDocument:
    """Returns what needs attention, the work of the last hour, and what waits. An admin sees the whole installation."""
    return overview_document(await look_over(parts.db, caller.owner))


@router.get(
    "/dead-letters", operation_id="dead_letters.list", response_model=DeadLetterList, summary="List dead letters"
)
@guard(Scope.JOBS_READ)
async def list_dead_letters(caller: Caller, parts: Has) -> DeadLetterList:
    """Returns failed jobs that were not run again, discarded or deleted, by kind of failure. Reads the newest 5,000."""
    found = await dead_letters.look(parts.db, caller.owner)
    return DeadLetterList(
        items=[dead_letter_document(kind) for kind in found.kinds],
        looked_at=found.looked_at,
        is_capped=found.is_capped,
    )


@router.post(
    "/dead-letters/{fingerprint}/redrive",
    operation_id="dead_letters.redrive",
    response_model=BulkDone,
    summary="Redrive dead letters",
)
@guard(Scope.JOBS_WRITE, operation="write", by_depth=True, codes=(*_CODES, "busy"))
async def redrive(
    fingerprint: Fingerprint, wish: RedriveRequest, caller: Caller, parts: Has, request_id: RequestId
) -> BulkDone:
    """Runs the jobs again. Does nothing unless `dry_run` is false. Repeating the request never runs a job twice."""
    if not wish.dry_run:
        await _noted(parts, caller, request_id, "redrive", fingerprint, wish, start=wish.start, limit=wish.limit)
    found = await dead_letters.of_kind(parts.db, caller.owner, fingerprint, None if wish.dry_run else wish.expect)
    done = await redriving.redrive(
        parts.db,
        found,
        wish.start,
        new_id=parts.ids.new,
        limit=wish.limit,
        dry_run=wish.dry_run,
        source=caller.caller_id,
        request_id=request_id,
        priority_max=priority_max(caller, parts.settings.priority_max),
    )
    return bulk_done("redrive", wish.dry_run, done)


@router.post(
    "/dead-letters/{fingerprint}/discard",
    operation_id="dead_letters.discard",
    response_model=BulkDone,
    summary="Discard dead letters",
)
@guard(Scope.JOBS_WRITE, operation="write", codes=_CODES)
async def discard(
    fingerprint: Fingerprint, wish: DiscardRequest, caller: Caller, parts: Has, request_id: RequestId
) -> BulkDone:
    """Leaves the jobs as they are and removes them from the dead letters. Does nothing unless `dry_run` is false."""
    if not wish.dry_run:
        await _noted(parts, caller, request_id, "discard", fingerprint, wish)
    found = await dead_letters.of_kind(parts.db, caller.owner, fingerprint, None if wish.dry_run else wish.expect)
    done = await redriving.discard(
        parts.db,
        found,
        dry_run=wish.dry_run,
        reason=wish.reason,
        source=caller.caller_id,
    )
    return bulk_done("discard", wish.dry_run, done)


async def _noted(
    parts: Parts,
    caller: CallerContext,
    request_id: str,
    action: str,
    fingerprint: str,
    wish: DiscardRequest,
    **more: Any,
) -> None:
    await parts.audit.note(
        None,
        AuditEvent.BULK_APPLIED,
        caller,
        request_id=request_id,
        action=action,
        fingerprint=fingerprint,
        expect=wish.expect,
        reason=wish.reason,
        **more,
    )
