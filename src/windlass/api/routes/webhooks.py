"""A job's webhook: the state of its delivery, and sending it again."""

from __future__ import annotations

import asyncpg

from windlass.access.audit import write_note
from windlass.api.guard import Caller, Has, JobId, RequestId, guard, guarded_router
from windlass.api.job_access import owned_job
from windlass.api.wire.webhook import WebhookDocument, webhook_document
from windlass.core.caller import Scope
from windlass.outbound import webhook_sender
from windlass.pure.audit import AuditEvent

router = guarded_router("webhooks")


@router.get(
    "/jobs/{job_id}/webhook",
    operation_id="webhooks.get",
    response_model=WebhookDocument,
    summary="Get a job's webhook",
)
@guard(Scope.JOBS_READ, codes=("not_found",))
async def get(job_id: JobId, caller: Caller, parts: Has) -> WebhookDocument:
    """Returns the webhook's URL and the state of its delivery. 404 for a job that was submitted without a webhook."""
    await owned_job(parts, caller, job_id)
    return webhook_document(await webhook_sender.webhook_of(parts.db, job_id))


@router.post(
    "/jobs/{job_id}/webhook/redeliver",
    operation_id="webhooks.redeliver",
    status_code=202,
    response_model=WebhookDocument,
    summary="Send a job's webhook again",
)
@guard(Scope.JOBS_WRITE, operation="write", codes=("not_found", "wrong_state"))
async def redeliver(job_id: JobId, caller: Caller, parts: Has, request_id: RequestId) -> WebhookDocument:
    """Sends it at once, with the same `webhook-id`, whether it was delivered, is dead, or waits for a retry."""
    await owned_job(parts, caller, job_id)
    await webhook_sender.webhook_of(parts.db, job_id)

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await webhook_sender.redeliver(connection, job_id)
            await write_note(
                connection, AuditEvent.WEBHOOK_REDELIVERED, caller.caller_id, job_id=job_id, request_id=request_id
            )

    await parts.db.run(operation)
    return webhook_document(await webhook_sender.webhook_of(parts.db, job_id))
