"""Rows in the shapes that users of the SDK see: the documents over HTTP, as values, and with tracebacks."""

from __future__ import annotations

from typing import Any, TypeVar
from uuid import UUID

import msgspec

from windlass.client.views import Event, JobView, Reason, StepDocument
from windlass.core.plan import Plan
from windlass.documents.job import job_values
from windlass.documents.step import event_values, reason_values, step_values
from windlass.views import explain, read

T = TypeVar("T")


def shown_job(row: read.JobView) -> JobView:
    """A job."""
    return _shown(job_values(row) | {"error": row.error}, JobView)


def shown_step(job_id: UUID, plan: Plan, row: read.StepView) -> StepDocument:
    """A step."""
    return _shown(step_values(job_id, plan, row) | {"error": row.error}, StepDocument)


def shown_event(job_id: UUID, row: read.EventView) -> Event:
    """An event."""
    return _shown(event_values(job_id, row) | {"payload": row.payload}, Event)


def shown_reason(reason: explain.Reason) -> Reason:
    """Why a step does not run."""
    return _shown(reason_values(reason) | {"detail": reason.detail}, Reason)


def _shown(values: dict[str, Any], kind: type[T]) -> T:
    return msgspec.convert(values, kind)
