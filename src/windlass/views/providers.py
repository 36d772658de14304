"""Providers as people see them: limits, breaker, and the steps that hold or wait for a slot."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import asyncpg

from windlass.core.breaker import Breaker
from windlass.core.errors import NotFound
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.provider_gate import gate_of
from windlass.store.statements import sql

# The most waiting steps and holders that are counted and shown for each provider.
WAITING_MAX = 10_000
HOLDERS_MAX = 100
BreakerState = Literal["closed", "open", "half_open"]


@dataclass(frozen=True, slots=True)
class Holder:
    """A step that holds one of a provider's slots, or waits for it."""

    job_id: UUID
    no: int
    step: str
    attempt: int
    state: str
    since: datetime


@dataclass(frozen=True, slots=True)
class ProviderView:
    """A provider as people see it. `breaker` is closed, open or half_open; `holders` has the first HOLDERS_MAX."""

    name: str
    concurrency: int
    rate: float
    held: int
    holders: tuple[Holder, ...]
    waiting: int
    first: Holder | None
    breaker: BreakerState
    failures: int
    opened_at: datetime | None
    error: str | None
    paused_until: datetime | None
    free_at: datetime | None


async def views(db: Database, name: str | None = None) -> list[ProviderView]:
    """Return every provider that was declared or requested, or the provider of this name."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("provider_views"), name, WAITING_MAX)
        if name is not None and not rows:
            raise NotFound(f"there is no provider {name}", remedy="`windlass providers` lists the known ones")
        return [await _view(connection, row) for row in rows]


async def _view(connection: asyncpg.Connection, row: Any) -> ProviderView:
    holders = await connection.fetch(sql("provider_holders"), row["name"], HOLDERS_MAX)
    first = await connection.fetchrow(sql("provider_first"), row["name"])
    return ProviderView(
        name=row["name"],
        concurrency=row["concurrency"],
        rate=row["rate"],
        held=row["held"],
        holders=tuple([await holder_of(connection, holder) for holder in holders]),
        waiting=row["waiting"],
        first=None if first is None else await holder_of(connection, first),
        breaker=breaker_state(gate_of(row).breaker, row["now"]),
        failures=row["failures"],
        opened_at=row["opened_at"],
        error=row["error"],
        paused_until=row["paused_until"],
        free_at=row["free_at"],
    )


async def holder_of(connection: asyncpg.Connection, row: Any) -> Holder:
    """Describe the step of a row of slots that is joined with its step."""
    plan = await read_plan(connection, row["plan"])
    name = plan.nodes[row["node"]].name
    step = name if row["index"] is None else f"{name}[{row['index']}]"
    return Holder(row["job_id"], row["no"], step, row["attempt"], row["state"], row["since"])


def breaker_state(breaker: Breaker, now: datetime) -> BreakerState:
    """Return closed, open or half_open. In half_open, one request may pass or is under way as a test."""
    if not breaker.is_open:
        return "closed"
    return "half_open" if breaker.probes or breaker.may_pass(now.timestamp())[0] else "open"
