"""Turns a request into a submission for the engine. Refuses every faulty request here, before anything is created."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

from windlass.api.parts import Parts
from windlass.api.wire.job import JobRequest, WebhookWish
from windlass.core.caller import CallerContext, check_priority
from windlass.core.errors import BadInput, BadRequest, Refused
from windlass.core.states import JobState
from windlass.engine.asker import asker_of
from windlass.engine.job_rows import state_of
from windlass.engine.submit import Submission, Webhook
from windlass.pure.webhook import parse_secret
from windlass.recipe.schema import check_inputs
from windlass.views.read import JobView

KEY_LENGTH_MAX = 255
# The other fields of a request are options and go to the engine by their names; there, durations are seconds.
_OPTIONS = JobRequest.model_fields.keys() - {"recipe", "inputs", "version", "webhook", "idempotency_key"}
_SECONDS = {"deadline": "deadline_s", "ttl": "ttl_s"}


def checked_key(header: str | None, body: str | None = None) -> str | None:
    """Return the idempotency key of a request, from its header or its body.

    Two different keys are refused as ambiguous.
    """
    if header is not None and body is not None and header != body:
        raise BadRequest("the header Idempotency-Key and the field idempotency_key differ", remedy="Give one of them")
    key = header if header is not None else body
    if key is not None and not (0 < len(key) <= KEY_LENGTH_MAX and key.isprintable()):
        raise BadRequest(f"an idempotency key has 1 to {KEY_LENGTH_MAX} printable characters")
    return key


async def submission_of(
    parts: Parts, caller: CallerContext, wish: JobRequest, *, key: str | None, request_id: str
) -> tuple[Submission, int | None]:
    """Return the submission for the engine and the version of its recipe; makes the job's id."""
    check_priority(caller, wish.priority, parts.settings.priority_max)
    recipe = await parts.plans.described(wish.recipe, wish.version)
    plan = recipe.plan
    options = {_SECONDS.get(name, name): getattr(wish, name) for name in _OPTIONS}
    submission = Submission(
        plan=plan,
        inputs=check_inputs(plan, wish.inputs),
        job_id=parts.ids.new(),
        caller=caller.caller_id,
        idempotency_key=key,
        correlation_id=request_id,
        asker=asker_of(caller),
        webhook=None if wish.webhook is None else await _webhook(parts, caller, wish.webhook),
        **{**options, "labels": wish.labels or None},
    )
    submission.check()
    return submission, recipe.version


def new_job(
    submission: Submission, recipe_version: int | None, created_at: datetime, state: JobState | None = None
) -> JobView:
    """Return the job as its commit created it, without any later change."""
    deadline_s = submission.deadline_s
    return JobView(
        id=submission.job_id,
        recipe=submission.plan.recipe,
        recipe_version=recipe_version,
        plan=submission.plan.hash,
        state=state or state_of(submission),
        caller=submission.caller,
        priority=submission.priority,
        is_paused=False,
        event_seq=1,
        steps_total=len(submission.plan.nodes),
        steps_open=len(submission.plan.nodes),
        steps_failed=0,
        input=submission.inputs,
        error=None,
        labels=submission.labels,
        progress=None,
        idempotency_key=submission.idempotency_key,
        correlation_id=submission.correlation_id,
        parent_job=None,
        parent_no=None,
        retry_of=None,
        created_at=created_at,
        started_at=None,
        finished_at=None,
        deadline_at=None if deadline_s is None else created_at + timedelta(seconds=deadline_s),
        expires_at=created_at + timedelta(seconds=submission.lives_s),
        deleted_at=None,
    )


async def checked_many(
    parts: Parts, caller: CallerContext, wishes: Sequence[JobRequest], *, request_id: str
) -> list[Submission]:
    """Return the submissions of a batch. A fault of one item refuses the whole batch and names the item's place."""
    made: list[Submission] = []
    for place, wish in enumerate(wishes):
        try:
            key = checked_key(None, wish.idempotency_key)
            submission, _ = await submission_of(parts, caller, wish, key=key, request_id=request_id)
            made.append(submission)
        except BadInput as error:
            raise at_item(error, place) from None
        except Refused as error:
            error.message = f"job {place} of the batch: {error.message}"
            raise
    return made


def at_item(error: BadInput, place: int) -> BadInput:
    """Return the fault as a fault of this item of a batch."""
    errors = tuple((f"/jobs/{place}{pointer}", message) for pointer, message in error.errors)
    return BadInput(
        f"job {place} of the batch: {error.message}",
        errors=errors or ((f"/jobs/{place}", error.message),),
        remedy=error.remedy,
    )


async def _webhook(parts: Parts, caller: CallerContext, wish: WebhookWish) -> Webhook:
    secret = parse_secret(wish.secret)
    # Only an early warning: the name may resolve to another address at delivery, so it is checked again then.
    await parts.sender.check(wish.url, caller=caller.caller_id)
    return Webhook(wish.url, parts.secret.seal(secret))
