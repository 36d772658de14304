"""A job's webhook on the wire: where its end is told and how far that has come. Never its secret."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from windlass.api.wire.wire import Time, Told
from windlass.outbound.courier import WebhookView
from windlass.pure.webhook import DeliveryState


class WebhookDocument(Told):
    """How far the word of a job's end has come."""

    job_id: UUID
    url: str
    status: DeliveryState = Field(
        description="`WAITING` for the job to end, `DUE` until it is taken: `DELIVERED`; or `DEAD`, after the last try."
    )
    tries: int = Field(description="How often it was sent, or was about to be.")
    failures: int = Field(description="How many of the tries of the schedule failed.")
    next_try_at: Time | None
    last_answer: int | None = Field(description="The receiver's last HTTP status.")
    last_error: str | None = Field(description="The code of what went wrong last, such as `http_500` or `timeout`.")
    created_at: Time
    ended_at: Time | None


def webhook_document(view: WebhookView) -> WebhookDocument:
    """The view, in the words of the wire."""
    return WebhookDocument(
        job_id=view.job_id,
        url=view.url,
        status=view.state,
        tries=view.attempt,
        failures=view.failures,
        next_try_at=view.due_at,
        last_answer=view.answer,
        last_error=view.error,
        created_at=view.created_at,
        ended_at=view.ended_at,
    )
