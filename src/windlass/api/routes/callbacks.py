"""Reports to jobs from outside: the result of a step that an external service does, and events that steps wait for."""

from __future__ import annotations

import msgspec
from starlette.requests import Request

from windlass.api.guard import Caller, Has, JobId, RequestId, charge, guard, guarded_router
from windlass.api.job_access import no_job, owned_job
from windlass.api.parts import Parts
from windlass.api.routes.jobs import IdempotencyKey
from windlass.api.submission import checked_key
from windlass.api.wire.external import (
    CompleteDocument,
    CompleteRequest,
    CompleteStatus,
    CostWish,
    EventRequest,
    EventTaken,
)
from windlass.core.caller import Scope
from windlass.core.errors import BadInput, TooLarge
from windlass.core.external import ProviderStatus, Said
from windlass.core.note import Note
from windlass.core.outcome import Cost, Failure, Fault, Success
from windlass.core.states import StepState
from windlass.documents.values import money_text
from windlass.engine import callback, signals
from windlass.providers.output import fit_output
from windlass.pure.audit import AuditEvent
from windlass.pure.token import Token, bad_token
from windlass.store.plans import plan_of

router = guarded_router("jobs")
PREVIEW_MAX_CHARS = 256 * 1024
_CODES = ("not_found", "bad_input", "too_large", "bad_media")


@router.post(
    "/jobs/{job_id}/complete",
    operation_id="jobs.complete",
    response_model=CompleteDocument,
    summary="Report on external work",
)
@guard(Scope.JOBS_WRITE, operation="write", cost=0, is_internal=True, codes=(*_CODES, "bad_signature"))
async def complete(
    request: Request, job_id: JobId, wish: CompleteRequest, caller: Caller, parts: Has
) -> CompleteDocument:
    """For services that do a step outside Windlass: reports the result or the progress of an attempt.

    The token belongs to the attempt. A repeated report, or a report after the step has advanced, gets 200 with
    `already_advanced` and changes nothing. So a service can repeat the report until it gets a response. Only progress
    counts against the caller's limit, because a result must always get through.
    """
    if wish.status == "progress":
        await charge(request, 1)
    await parts.job_reader.job(job_id)
    token = parts.callbacks.read(wish.token)
    if token.job_id != job_id:
        raise bad_token()
    place = await callback.place_of(parts.db, token)
    if place is None:
        raise no_job(job_id)
    step = (await plan_of(parts.db, place.plan)).nodes[place.node].name
    if wish.stage is not None and wish.stage != step:
        message = f"the token belongs to the step {step}"
        raise BadInput(f"{message}, not of {wish.stage}", errors=(("/stage", message),))
    source = f"{callback.SOURCE}:{caller.caller_id}"
    status: CompleteStatus
    if wish.status == "progress":
        done = await callback.progress(parts.db, token, _note(token, wish, source))
        status = "noted"
    else:
        outcome = await _outcome(parts, wish)
        cost = None if wish.cost is None else _cost(wish.cost)
        done = await callback.complete(parts.db, token, outcome, spread=parts.spread, cost=cost, source=source)
        status = "job_failed" if done.step_state is StepState.FAILED else done.job_state
    return CompleteDocument(
        status=status if done.is_heard else "already_advanced",
        job_status=done.job_state,
        step=step,
        step_status=done.step_state or place.step_state,
    )


async def _outcome(parts: Parts, wish: CompleteRequest) -> Success | Failure:
    if wish.status == "success":
        # Stored like a provider's output: an output that is too large for a row goes to the artifact store.
        output = msgspec.json.encode(wish.result).decode()
        said = await fit_output(
            parts.artifacts, Said(ProviderStatus.SUCCEEDED, output), parts.settings.inline_max_bytes
        )
        return Success(said.output or "null")
    fault = Fault(wish.error_code or "callback_failed", wish.error_message or "the service says that it failed")
    return Failure(fault, is_retryable=wish.is_retryable)


def _cost(wish: CostWish) -> Cost:
    return Cost(money_text(wish.amount), wish.tokens_in, wish.tokens_out, wish.seconds)


def _note(token: Token, wish: CompleteRequest, source: str) -> Note:
    preview = msgspec.json.encode(wish.preview).decode() if "preview" in wish.model_fields_set else None
    if preview is not None and len(preview) > PREVIEW_MAX_CHARS:
        raise TooLarge(f"the preview has {len(preview):,} characters, and may have {PREVIEW_MAX_CHARS:,}")
    return Note(token.job_id, token.no, token.attempt, wish.progress_pct, wish.progress_message, preview, source=source)


@router.post(
    "/jobs/{job_id}/events", operation_id="jobs.send_event", response_model=EventTaken, summary="Send a job an event"
)
@guard(Scope.JOBS_WRITE, operation="write", codes=(*_CODES, "wrong_state", "conflict"))
async def send_event(
    job_id: JobId,
    wish: EventRequest,
    caller: Caller,
    parts: Has,
    request_id: RequestId,
    idempotency_key: IdempotencyKey = None,
) -> EventTaken:
    """Wakes a step that waits for an event of this name and whose conditions the body meets.

    The job keeps an event that arrives before a step waits for it. A repeated `Idempotency-Key` changes nothing.
    """
    id = checked_key(idempotency_key, wish.id) or str(parts.ids.new())
    await owned_job(parts, caller, job_id)
    await parts.audit.note(
        None, AuditEvent.JOB_CONTROLLED, caller, job_id=job_id, request_id=request_id, action="event", name=wish.name
    )
    status = await signals.send(parts.db, job_id, wish.name, wish.body, id=id, sender=caller.caller_id)
    return EventTaken(status=status, id=id)
