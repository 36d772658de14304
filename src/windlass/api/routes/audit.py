"""The audit: who did what, and whether the records are unchanged."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query

from windlass.access import audit
from windlass.api.guard import Has, guard, guarded_router
from windlass.api.wire.audit import NO_MAX, AuditPage, AuditQuery, Verdict, VerifyQuery, record_document
from windlass.core.caller import Scope
from windlass.documents.key import verdict_values

router = guarded_router("audit")
VERIFIED_MAX = 50_000


@router.get("/audit", operation_id="audit.list", response_model=AuditPage, summary="List records")
@guard(Scope.AUDIT_READ, codes=("bad_input",))
async def list_records(query: Annotated[AuditQuery, Query()], parts: Has) -> Any:
    """Returns the records of all callers in the order of the chain; with `order=desc` the newest first."""
    found = await audit.records(
        parts.db,
        caller=query.caller,
        event=query.event,
        job_id=query.job_id,
        since=query.since,
        until=query.until,
        after_no=query.after,
        before_no=None if query.order == "asc" else query.before or NO_MAX,
        limit=query.limit,
    )
    items = [record_document(record, digest) for record, digest in found]
    return AuditPage.model_construct(items=items, next=items[-1].no if len(items) == query.limit else None)


@router.get("/audit/verify", operation_id="audit.verify", response_model=Verdict, summary="Verify the chain")
@guard(Scope.AUDIT_READ, codes=("bad_input",))
async def verify(query: Annotated[VerifyQuery, Query()], parts: Has) -> Verdict:
    """Checks at most 50,000 records and reports the first break of the chain; `next` is where to continue."""
    head = None if query.head is None else bytes.fromhex(query.head)
    found = await audit.verify_chain(parts.db, head=head, after_no=query.after, limit=VERIFIED_MAX)
    return Verdict.model_construct(**verdict_values(found))
