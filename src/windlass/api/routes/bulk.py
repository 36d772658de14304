"""One action on many jobs."""

from __future__ import annotations

from windlass.api.guard import Caller, Has, RequestId, guard, guarded_router
from windlass.api.wire.listing import BulkDone, BulkRequest, bulk_done
from windlass.core.caller import Scope, priority_max
from windlass.engine.bulk import bulk
from windlass.pure.audit import AuditEvent
from windlass.views.listing import targets

router = guarded_router("jobs")


@router.post("/jobs/bulk", operation_id="jobs.bulk", response_model=BulkDone, summary="Cancel or retry many jobs")
@guard(Scope.JOBS_WRITE, operation="write", codes=("bad_input", "count_changed", "too_large", "bad_media"))
async def act(wish: BulkRequest, caller: Caller, parts: Has, request_id: RequestId) -> BulkDone:
    """Acts on the matching jobs, one by one, the newest first. Does nothing unless `dry_run` is false.

    An interrupted request can be sent again: jobs that it has already changed no longer match.
    """
    wanted = wish.filter.wanted(caller)
    if not wish.dry_run:
        await parts.audit.note(
            None,
            AuditEvent.BULK_APPLIED,
            caller,
            request_id=request_id,
            action=wish.action,
            filter=wish.filter.model_dump(mode="json", exclude_defaults=True),
            expect=wish.expect,
            limit=wish.limit,
            reason=wish.reason,
        )
    done = await bulk(
        parts.db,
        await targets(parts.db, wanted, wish.action),
        wish.action,
        new_id=parts.ids.new,
        limit=wish.limit,
        dry_run=wish.dry_run,
        expect=wish.expect,
        reason=wish.reason,
        source=caller.caller_id,
        request_id=request_id,
        priority_max=priority_max(caller, parts.settings.priority_max),
    )
    return bulk_done(wish.action, wish.dry_run, done)
