"""A job's webhook on the wire: its URL and the state of its delivery, never its secret."""

from __future__ import annotations

from uuid import UUID

from pydantic import Field

from windlass.api.wire.wire import Time, Told
from windlass.documents.webhook import webhook_values
from windlass.outbound.webhook_sender import WebhookView
from windlass.pure.webhook import DeliveryState


class WebhookDocument(Told):
    """The delivery of a job's webhook."""

    job_id: UUID
    url: str
    status: DeliveryState = Field(
        description="`WAITING` for the job to end, `DUE` until it is taken: `DELIVERED`; or `DEAD`, after the last try."
    )
    tries: int = Field(description="The number of tries, including a try under way.")
    failures: int = Field(description="The number of failed tries of the schedule.")
    next_try_at: Time | None
    last_answer: int | None = Field(description="The receiver's last HTTP status.")
    last_error: str | None = Field(description="The code of the last error, such as `http_500` or `timeout`.")
    created_at: Time
    ended_at: Time | None


def webhook_document(view: WebhookView) -> WebhookDocument:
    """Return a webhook's document."""
    return WebhookDocument.model_construct(**webhook_values(view))
