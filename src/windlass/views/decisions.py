"""The decisions of the policy about a job and its steps, for people."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.constraint import CONSTRAINT_FIELDS
from windlass.core.errors import NotFound
from windlass.store.database import Database
from windlass.store.statements import sql


@dataclass(frozen=True, slots=True)
class DecisionView:
    """One verdict that is not a plain yes. `no` is the step; None is the whole job."""

    seq: int
    edge: str
    no: int | None
    attempt: int | None
    decision: str
    rule: str
    policy: int | None
    subject: str | None
    reason: str
    constraints: Mapping[str, Any]
    # Who stops a job that breaks the constraint: engine, output, or the handler alone, which is not enforcement.
    enforced: Mapping[str, str]
    kernel: str | None
    at: datetime


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the policy said about a job: the newest verdict under which it may go on, and all others.

    `policy` is None if the job was never judged, or never allowed.
    """

    policy: int | None
    rule: str | None
    verdicts: tuple[DecisionView, ...]


async def decisions(db: Database, job_id: UUID) -> Decisions:
    """Return the decisions about a job, in order."""
    async with db.connection() as connection:
        job = await connection.fetchrow(sql("verdict_of_job"), job_id)
        if job is None:
            raise NotFound(f"there is no job {job_id}")
        rows = await connection.fetch(sql("verdict_list"), job_id)
    return Decisions(job["policy"], job["rule"], tuple(_view(row) for row in rows))


def _view(row: Any) -> DecisionView:
    values = dict(row)
    constraints = msgspec.json.decode(values.pop("constraints") or "{}")
    return DecisionView(**values, constraints=constraints, enforced=enforced_of(constraints))


def enforced_of(constraints: Mapping[str, Any]) -> dict[str, str]:
    """Return who enforces each constraint, by its name."""
    names = [
        name
        for key, value in constraints.items()
        for name in (value if key not in CONSTRAINT_FIELDS and isinstance(value, Mapping) else (key,))
    ]
    return {name: str(CONSTRAINT_FIELDS[name].enforced) for name in names if name in CONSTRAINT_FIELDS}
