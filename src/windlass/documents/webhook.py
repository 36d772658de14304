"""The document about a job's webhook: its address and the state of its delivery, but never its secret."""

from __future__ import annotations

from typing import Any

from windlass.outbound.webhook_sender import WebhookView


def webhook_values(view: WebhookView) -> dict[str, Any]:
    """Return the fields of a webhook's document."""
    return {
        "job_id": view.job_id,
        "url": view.url,
        "status": view.state,
        "tries": view.attempt,
        "failures": view.failures,
        "next_try_at": view.due_at,
        "last_answer": view.answer,
        "last_error": view.error,
        "created_at": view.created_at,
        "ended_at": view.ended_at,
    }
