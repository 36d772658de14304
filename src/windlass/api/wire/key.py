"""Callers and keys on the wire. A key's text is only in the response that creates the key."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from pydantic import Field, Strict

from windlass.api.wire.wire import Asked, Duration, Sought, Text, Time, Told, document_of
from windlass.core.caller import CallerType, Role, Scope
from windlass.documents.key import key_values as key_values
from windlass.documents.worker import worker_values
from windlass.views.workers import AtWork, WorkerView

KeyType = Literal["user", "service"]


class Me(Told):
    """The caller of the key, and its permissions."""

    caller: str
    caller_type: CallerType
    role: Role
    tier: str | None
    scopes: list[str] = Field(description="As `Scope`; a Membership service may name others.")
    roles: list[str] = Field(description="The roles by which an approval may name the caller.")
    key_id: str | None


class KeyRequest(Asked):
    """A request for a key."""

    caller: Text = Field(min_length=1, examples=["indexer"])
    name: Text = Field(min_length=1, description="The purpose of the key.", examples=["nightly indexing"])
    caller_type: KeyType = "user"
    tier: Text | None = None
    scopes: list[Annotated[Scope, Strict(False)]] = Field(
        default=[Scope.JOBS_READ, Scope.JOBS_WRITE], min_length=1, max_length=len(Scope)
    )
    roles: list[Text] | None = Field(
        default=None, max_length=32, description="Roles of its holder, for approvals.", examples=[["lead"]]
    )
    expires_in: Duration | None = Field(default=None, description="Without it, the key lives until it is revoked.")


class KeysQuery(Sought):
    """Whose keys to return."""

    caller: Text | None = None


class KeyDocument(Told):
    """A key, without its text."""

    id: str
    caller: str
    caller_type: KeyType
    tier: str | None
    scopes: list[Scope]
    roles: list[str]
    name: str
    created_at: Time
    created_by: str
    expires_at: Time | None
    revoked_at: Time | None
    last_used_at: Time | None
    is_live: bool


class NewKeyDocument(KeyDocument):
    """A key that was just created. `key` is shown only this once."""

    key: str


class KeyList(Told):
    """Keys, the oldest first."""

    items: list[KeyDocument]


class WorkerStep(Told):
    """A step that a worker is running."""

    job_id: UUID
    no: int
    step: str
    since: Time | None


class WorkerDocument(Told):
    """A worker process. Its list of steps is limited, the earliest started first."""

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
    services: dict[str, str] | None = Field(
        description="Each service of its process: `ok`, or the problem, as its heartbeat last reported it. Null "
        "before the first report.",
        examples=[{"loops": "ok", "worker": "ok", "heartbeat": "ok"}],
    )
    steps: list[WorkerStep]


class WorkerList(Told):
    """Workers, including those lost in the last day, and how many processes run the engine's loops."""

    items: list[WorkerDocument]
    engines: int
    as_of: Time


def worker_document(view: WorkerView, at_work: Sequence[AtWork], now: datetime) -> WorkerDocument:
    """Return a worker's document."""
    return document_of(WorkerDocument, worker_values(view, at_work, now))
