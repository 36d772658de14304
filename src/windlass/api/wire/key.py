"""Callers and keys on the wire. A key's text is in the answer that makes it and nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Literal
from uuid import UUID

from pydantic import Field

from windlass.access.keys import KeyView
from windlass.api.wire.wire import Asked, Duration, Sought, Text, Time, Told
from windlass.core.caller import Scope
from windlass.views.workers import AtWork, WorkerView

WORKER_STEPS_SHOWN_MAX = 100


class Me(Told):
    """Who the key belongs to, and what it allows."""

    caller: str
    caller_type: str
    role: str
    tier: str | None
    scopes: list[str]
    key_id: str | None


class KeyRequest(Asked):
    """A key that is asked for."""

    caller: Text = Field(min_length=1, examples=["indexer"])
    name: Text = Field(min_length=1, description="What it is for.", examples=["nightly indexing"])
    caller_type: Literal["user", "service"] = "user"
    tier: Text | None = None
    scopes: list[Literal["jobs:read", "jobs:write", "audit:read", "priority:high", "admin"]] = Field(
        default=[Scope.JOBS_READ.value, Scope.JOBS_WRITE.value], min_length=1, max_length=8
    )
    expires_in: Duration | None = Field(default=None, description="Without it, the key lives until it is revoked.")


class KeysQuery(Sought):
    """Whose keys."""

    caller: Text | None = None


class KeyDocument(Told):
    """A key, without its text."""

    id: str
    caller: str
    caller_type: str
    tier: str | None
    scopes: list[str]
    name: str
    created_at: Time
    created_by: str
    expires_at: Time | None
    revoked_at: Time | None
    last_used_at: Time | None
    is_live: bool


class NewKeyDocument(KeyDocument):
    """A key that was just made. `key` is shown this once."""

    key: str


class KeyList(Told):
    """Keys, the oldest first."""

    items: list[KeyDocument]


class WorkerStep(Told):
    """A step that a worker has in hand."""

    job_id: UUID
    no: int
    step: str
    since: Time | None


class WorkerDocument(Told):
    """A worker process. Its steps are those that it began first, as far as they are told."""

    id: UUID
    host: str
    pid: int
    queues: list[str]
    concurrency: int
    running: int
    started_at: Time
    seen_at: Time
    lease_until: Time
    lost_at: Time | None
    is_live: bool = Field(description="Whether its lease holds.")
    steps: list[WorkerStep]


class WorkerList(Told):
    """Workers, the lost ones of the last day too; and how many processes run the engine's loops."""

    items: list[WorkerDocument]
    engines: int
    as_of: Time


def key_values(view: KeyView) -> dict[str, object]:
    """The fields of a key's document."""
    return {name: getattr(view, name) for name in KeyDocument.model_fields if name != "scopes"} | {
        "scopes": list(view.scopes)
    }


def worker_document(view: WorkerView, at_work: Sequence[AtWork], now: datetime) -> WorkerDocument:
    """A worker's document."""
    given = ("queues", "is_live", "steps")
    values = {name: getattr(view, name) for name in WorkerDocument.model_fields if name not in given}
    return WorkerDocument.model_construct(
        **values,
        queues=list(view.queues),
        is_live=view.lost_at is None and view.lease_until > now,
        steps=[
            WorkerStep(job_id=one.job_id, no=one.no, step=one.step, since=one.since)
            for one in at_work[:WORKER_STEPS_SHOWN_MAX]
        ],
    )
