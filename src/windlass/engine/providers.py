"""Providers as all processes see them: how much may be asked of each, whether it answers, who holds its places.

Everything here is one row per provider, changed under its lock; nothing is kept in the process.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import Any, NamedTuple

import asyncpg

from windlass.core.bell import GrantDue
from windlass.core.errors import BadSetting
from windlass.store.database import Database
from windlass.store.provider_gate import gate_of, opened_at
from windlass.store.statements import sql

CONCURRENCY = 1
RATE = 10.0
_ERROR_MAX = 500


class ProviderRow(NamedTuple):
    """What a process declares of a provider. `estimate` is what a step costs at most that does not say so itself."""

    name: str
    concurrency: int = CONCURRENCY
    rate: float = RATE
    estimate: Decimal | None = None


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
        await db.run(lambda connection: _write(connection, "provider_sync", *columns))


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
    await db.run(lambda connection: _write(connection, "provider_answered", name))


async def _write(connection: asyncpg.Connection, statement: str, *values: Any) -> None:
    """A statement that says whether the granter has something to look at."""
    if await connection.fetchval(sql(statement), *values):
        connection.ring(GrantDue())


async def _locked(connection: asyncpg.Connection, name: str) -> Any:
    row = await connection.fetchrow(sql("provider_lock"), name)
    if row is None:
        await connection.execute(sql("provider_make"), name)
        row = await connection.fetchrow(sql("provider_lock"), name)
    return row
