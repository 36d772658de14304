"""Providers as all processes see them: how much may be asked of each, whether it answers, who holds its places.

Everything here is one row per provider, changed under its lock; nothing is kept in the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from windlass.core.breaker import Breaker
from windlass.core.errors import BadSetting, NotFound
from windlass.core.gate import BREAKER, Gate
from windlass.engine.recipes import read_plan
from windlass.store.database import Database
from windlass.store.statements import sql

CONCURRENCY = 1
RATE = 10.0
# Of each provider's line, at most so many are counted and shown.
WAITING_MAX = 10_000
HOLDERS_MAX = 100
_ERROR_MAX = 500


class ProviderRow(NamedTuple):
    """What a process declares of a provider. `estimate` is what a step costs at most that does not say so itself."""

    name: str
    concurrency: int = CONCURRENCY
    rate: float = RATE
    estimate: Decimal | None = None


@dataclass(frozen=True, slots=True)
class Holder:
    """Who has one of a provider's places."""

    job_id: UUID
    no: int
    step: str
    attempt: int
    state: str
    since: datetime


@dataclass(frozen=True, slots=True)
class ProviderView:
    """A provider as people see it. `breaker` is closed, open or half_open; `holders` are the first HOLDERS_MAX."""

    name: str
    concurrency: int
    rate: float
    held: int
    holders: tuple[Holder, ...]
    waiting: int
    first: Holder | None
    breaker: str
    failures: int
    opened_at: datetime | None
    error: str | None
    paused_until: datetime | None
    free_at: datetime | None


def gate_of(row: Any) -> Gate:
    """The gate that a provider's row is."""
    opened_s = None if row["opened_at"] is None else row["opened_at"].timestamp()
    breaker = replace(BREAKER, failures=row["failures"], opened_s=opened_s, probes=row["probes"])
    return Gate(row["rate"], row["free_at"], row["paused_until"], breaker)


def opened_at(breaker: Breaker) -> datetime | None:
    """When the breaker opened, as it is stored."""
    return None if breaker.opened_s is None else datetime.fromtimestamp(breaker.opened_s, tz=UTC)


async def sync(db: Database, rows: Sequence[ProviderRow]) -> None:
    """Declare these providers, at the start of a process. The last one to say something of a provider is right."""
    for row in rows:
        if row.concurrency < 1 or not 0 < row.rate <= 1e6:
            raise BadSetting(
                f"provider {row.name}: concurrency is {row.concurrency} and rate {row.rate}",
                remedy="concurrency must be at least 1, rate more than 0 and at most 1,000,000 requests per second",
            )
    ordered = sorted(rows)
    if ordered:
        columns = [list(column) for column in zip(*ordered, strict=True)]
        await db.run(lambda connection: connection.execute(sql("provider_sync"), *columns))


async def take(db: Database, name: str, n: int) -> int:
    """Reserve up to `n` requests; how many may be made now. None while the provider is paused or its breaker open."""

    async def operation(connection: asyncpg.Connection) -> int:
        async with connection.transaction():
            row = await _locked(connection, name)
            gate = gate_of(row)
            count = min(n, gate.room(row["now"]))
            if count > 0:
                after = gate.taken(count, row["now"])
                breaker = after.breaker
                await connection.execute(
                    sql("provider_taken"), name, after.free_at, breaker.failures, opened_at(breaker), breaker.probes
                )
            return max(0, count)

    return await db.run(operation)


async def busy(db: Database, name: str, after_s: float) -> None:
    """The provider asked to be left alone for so long: nothing is granted or asked meanwhile."""
    await db.run(lambda connection: connection.execute(sql("provider_busy"), name, max(0.0, after_s)))


async def failed(db: Database, name: str, error: str) -> None:
    """A request was not answered, or with a failure of the provider's own. Enough of them in a row open the breaker."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            row = await _locked(connection, name)
            after = gate_of(row).breaker.failed(row["now"].timestamp())
            await connection.execute(
                sql("provider_failed"), name, after.failures, opened_at(after), after.probes, error[:_ERROR_MAX]
            )

    await db.run(operation)


async def answered(db: Database, name: str) -> None:
    """A request was answered: the breaker is closed. Nothing is written while it was."""
    await db.run(lambda connection: connection.execute(sql("provider_answered"), name))


async def views(db: Database, name: str | None = None) -> list[ProviderView]:
    """Every provider that was declared or asked for, or the one of this name."""
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
    """Who a row of slots, joined with its step, is."""
    plan = await read_plan(connection, row["plan"])
    name = plan.nodes[row["node"]].name
    step = name if row["index"] is None else f"{name}[{row['index']}]"
    return Holder(row["job_id"], row["no"], step, row["attempt"], row["state"], row["since"])


def breaker_state(breaker: Breaker, now: datetime) -> str:
    """closed, open, or half_open: one request may pass, or is under way, to try."""
    if not breaker.is_open:
        return "closed"
    return "half_open" if breaker.probes or breaker.may_pass(now.timestamp())[0] else "open"


async def _locked(connection: asyncpg.Connection, name: str) -> Any:
    row = await connection.fetchrow(sql("provider_lock"), name)
    if row is None:
        await connection.execute(sql("provider_make"), name)
        row = await connection.fetchrow(sql("provider_lock"), name)
    return row
