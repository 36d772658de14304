"""Providers as all processes share them: limits, rate, pause and breaker.

Each provider is one row, changed under its lock. The process keeps no copy.
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
    """A process's declaration of a provider. `estimate` is the most that a step costs, unless the step has its own."""

    name: str
    concurrency: int = CONCURRENCY
    rate: float = RATE
    estimate: Decimal | None = None


async def sync(db: Database, rows: Sequence[ProviderRow]) -> None:
    """Declare these providers at the start of a process. The latest declaration of a provider wins."""
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
    """Reserve up to `n` requests and return how many may be made now:

    0 while the provider is paused or its breaker open.
    """

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
    """Pause the provider for `after_s` seconds, as it asked. Meanwhile no slot is granted and no request made."""
    await db.run(lambda connection: connection.execute(sql("provider_busy"), name, max(0.0, after_s)))


async def failed(db: Database, name: str, error: str) -> None:
    """Record a request without an answer, or with a server error. Enough of them in a row open the breaker."""

    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            row = await _locked(connection, name)
            after = gate_of(row).breaker.failed(row["now"].timestamp())
            await connection.execute(
                sql("provider_failed"), name, after.failures, opened_at(after), after.probes, error[:_ERROR_MAX]
            )

    await db.run(operation)


async def answered(db: Database, name: str) -> None:
    """Record an answered request, which closes the breaker. Writes nothing if it was closed."""
    await db.run(lambda connection: _write(connection, "provider_answered", name))


async def _write(connection: asyncpg.Connection, statement: str, *values: Any) -> None:
    """Run a statement, and ring for the granter if it returns true."""
    if await connection.fetchval(sql(statement), *values):
        connection.ring(GrantDue())


async def _locked(connection: asyncpg.Connection, name: str) -> Any:
    row = await connection.fetchrow(sql("provider_lock"), name)
    if row is None:
        await connection.execute(sql("provider_make"), name)
        row = await connection.fetchrow(sql("provider_lock"), name)
    return row
