"""From a request to what the engine is asked for. Everything is refused here that can be, before anything is made."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.api.parts import Parts
from windlass.api.wire.job import JobRequest, WebhookWish
from windlass.core.caller import CallerContext, check_priority
from windlass.core.errors import BadInput, BadRequest, Refused
from windlass.engine.submit import Submission, Webhook
from windlass.pure.webhook import parse_secret
from windlass.recipe.schema import check_inputs

KEY_LENGTH_MAX = 255


def checked_key(header: str | None, body: str | None = None) -> str | None:
    """The idempotency key of a request, from its header or its body; both and different is nobody's meaning."""
    if header is not None and body is not None and header != body:
        raise BadRequest("the header Idempotency-Key and the field idempotency_key differ", remedy="Give one of them")
    key = header if header is not None else body
    if key is not None and not (0 < len(key) <= KEY_LENGTH_MAX and key.isprintable()):
        raise BadRequest(f"an idempotency key has 1 to {KEY_LENGTH_MAX} printable characters")
    return key


async def submission_of(
    parts: Parts, caller: CallerContext, wish: JobRequest, *, key: str | None, request_id: str
) -> Submission:
    """What the engine is asked for; its id is made here."""
    check_priority(caller, wish.priority, parts.settings.priority_max)
    plan = await parts.plans.latest(wish.recipe, wish.version)
    submission = Submission(
        plan=plan,
        inputs=check_inputs(plan, wish.inputs),
        job_id=parts.ids.new(),
        caller=caller.caller_id,
        idempotency_key=key,
        labels=wish.labels or None,
        priority=wish.priority,
        deadline_s=wish.deadline,
        ttl_s=wish.ttl,
        correlation_id=request_id,
        webhook=None if wish.webhook is None else await _webhook(parts, caller, wish.webhook),
        budget=wish.budget,
    )
    submission.check()
    return submission


async def checked_many(
    parts: Parts, caller: CallerContext, wishes: Sequence[JobRequest], *, request_id: str
) -> list[Submission]:
    """The same for a batch: whatever is wrong with one item refuses all, and is told with its place."""
    made: list[Submission] = []
    for place, wish in enumerate(wishes):
        try:
            key = checked_key(None, wish.idempotency_key)
            made.append(await submission_of(parts, caller, wish, key=key, request_id=request_id))
        except BadInput as error:
            raise at_item(error, place) from None
        except Refused as error:
            error.message = f"job {place} of the batch: {error.message}"
            raise
    return made


def at_item(error: BadInput, place: int) -> BadInput:
    """The same fault, as one of an item of a batch."""
    errors = tuple((f"/jobs/{place}{pointer}", message) for pointer, message in error.errors)
    return BadInput(
        f"job {place} of the batch: {error.message}",
        errors=errors or ((f"/jobs/{place}", error.message),),
        remedy=error.remedy,
    )


async def _webhook(parts: Parts, caller: CallerContext, wish: WebhookWish) -> Webhook:
    secret = parse_secret(wish.secret)
    # Only advice: the name may resolve to something else by the time it is called, and is checked again then.
    await parts.sender.check(wish.url, caller=caller.caller_id)
    return Webhook(wish.url, parts.secret.seal(secret))
