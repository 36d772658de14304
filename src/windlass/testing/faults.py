"""A database that loses its connection before an operation, inside it, or after its commit."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from enum import Enum
from typing import Any, TypeVar

import asyncpg

from windlass.store.database import Database

T = TypeVar("T")


class Moment(Enum):
    """The moment at which the connection is lost."""

    BEFORE = "before"  # nothing was done
    INSIDE = "inside"  # the operation was rolled back
    AFTER = "after"  # the operation was committed, but the answer is lost


def lost_connection(moment: Moment) -> Exception:
    """Return the driver's error for a connection that breaks during an operation."""
    error: Exception = asyncpg.ConnectionDoesNotExistError(f"the connection was lost {moment.value} the operation")
    return error


class FaultyDatabase(Database):
    """A Database whose next operations meet the moments in `faults`, one each; None lets an operation pass."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.faults: deque[Moment | None] = deque()

    async def attempt(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Run the operation, or part of it, and lose the connection at the moment that is next in `faults`."""
        moment = self.faults.popleft() if self.faults else None
        match moment:
            case Moment.BEFORE:
                raise lost_connection(moment)
            case Moment.INSIDE:
                await super().attempt(lambda connection: _undone(connection, operation))
                raise lost_connection(moment)
            case Moment.AFTER:
                await super().attempt(operation)
                raise lost_connection(moment)
            case None:
                return await super().attempt(operation)

    async def _pause(self, seconds: float) -> None:
        """Do not wait: a test has no time."""


async def _undone(connection: asyncpg.Connection, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> None:
    transaction = connection.transaction()
    await transaction.start()
    try:
        await operation(connection)
    finally:
        await transaction.rollback()


async def set_read_only(dsn: str, is_on: bool) -> None:
    """Make the whole server of `dsn` read-only, for open sessions too, as a managed service does before a failover."""
    connection = await asyncpg.connect(dsn)
    try:
        wanted = "on" if is_on else "off"
        await connection.execute("ALTER SYSTEM SET default_transaction_read_only = " + wanted)
        await connection.execute("SELECT pg_reload_conf()")
        async with asyncio.timeout(30):
            while True:
                if await connection.fetchval("SHOW default_transaction_read_only") == wanted:
                    return
                await asyncio.sleep(0.02)
    finally:
        await connection.close()
