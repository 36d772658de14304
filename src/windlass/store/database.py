"""The pool of connections, and the first two of four layers between a dropped connection and a lost step.

1. The pool hands out only connections that work (`store/pool.py`).
2. `run` does one short operation and does it again, after 1, 2 and 4 s on a fresh connection, when the database went
   away under it. So every operation must bear being done twice: it is fenced, or carries its own id.
3. Handlers that use a database of their own may raise what they get; `worker/fault.py` knows it for what it is.
4. A step whose attempt lost its database is queued again after 15, 30, 60 … 300 s (`core/retry.py`).

Whether a commit that was cut off took place cannot be known from the broken connection. Doing the operation again
reads the truth: the fence, the job's id or the version then says that it is already done.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Self, TypeVar

import asyncpg

from windlass.core.errors import BadSetting, DatabaseUnavailable
from windlass.core.retry import DATABASE_OPERATION
from windlass.store.listener import Listener
from windlass.store.pool import Connection, Pool
from windlass.store.statements import sql

T = TypeVar("T")

OPERATION_TRIES = 4

# Every statement of the engine is driven by an index. The planner keeps the plan that it made while a table was still
# small; it must not settle for one that reads whole tables. So the ways of doing that are off, and the costs say that
# looking up a row is cheap and comparing many rows is dear.
_SERVER_SETTINGS = {
    "application_name": "windlass",
    "search_path": "windlass,public",
    "jit": "off",
    "timezone": "UTC",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "random_page_cost": "0.1",
    "cpu_operator_cost": "0.1",
    "cpu_tuple_cost": "0.1",
    "plan_cache_mode": "force_generic_plan",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "30s",
}

_TRANSIENT = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    # What the driver says of a connection that was cut off in the middle of something.
    asyncpg.InternalClientError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    # Space is made by people, and what waits for it must not be taken for wrong.
    asyncpg.DiskFullError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    OSError,
    TimeoutError,
)


def is_transient(error: BaseException) -> bool:
    """Whether the database went away or asked us to come back, so that the same operation may well succeed later."""
    return isinstance(error, _TRANSIENT)


class Database:
    """PostgreSQL as the engine sees it: short operations on pooled connections, and bells."""

    def __init__(self, pool: Pool, dsn: str, now: Callable[[], datetime] | None) -> None:
        self._pool = pool
        self._now = now
        self._listener = Listener(lambda: _connect(dsn))

    @classmethod
    async def open(cls, dsn: str, *, max_size: int = 8, now: Callable[[], datetime] | None = None) -> Self:
        """Connect. `now` is for tests and simulations: it replaces the database's clock in every operation."""
        pool = Pool(lambda: _connect(dsn), max_size)
        try:
            pool.release(await pool.acquire())
        except (ValueError, asyncpg.ClientConfigurationError) as error:
            raise BadSetting(
                f"the database URL cannot be used: {error}",
                remedy="It looks like postgresql://user:password@host:5432/name",
            ) from error
        except (asyncpg.InvalidCatalogNameError, asyncpg.InvalidAuthorizationSpecificationError) as error:
            raise BadSetting(f"PostgreSQL refused the connection: {error}", remedy="Check the database URL") from error
        except _TRANSIENT as error:
            raise DatabaseUnavailable(
                f"PostgreSQL cannot be reached: {error or type(error).__name__}",
                remedy="Check that the server runs and that the database URL is right",
            ) from error
        return cls(pool, dsn, now)

    @property
    def busy(self) -> int:
        """How many connections are in use."""
        return self._pool.busy

    @property
    def idle(self) -> int:
        """How many connections wait to be used."""
        return self._pool.idle

    async def close(self) -> None:
        """Stop listening and close every connection."""
        await self._listener.close()
        await self._pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """A working connection, for reads. What must survive a lost connection goes through `run`."""
        try:
            connection = await self._pool.acquire()
        except _TRANSIENT as error:
            raise DatabaseUnavailable(
                f"PostgreSQL cannot be reached: {error or type(error).__name__}",
                remedy="Nothing that was accepted is lost; try again when the server is back",
            ) from error
        try:
            if self._now is not None:
                await self._set_clock(connection)
            yield connection
        except asyncio.CancelledError:
            connection.terminate()
            raise
        finally:
            self._pool.release(connection)

    async def attempt(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Do one short operation, one statement or one flat transaction, once."""
        connection = await self._pool.acquire()
        try:
            if self._now is not None:
                await self._set_clock(connection)
            return await operation(connection)
        except asyncio.CancelledError:
            # What the server was doing for us is unknown now; it ends with the connection.
            connection.terminate()
            raise
        finally:
            self._pool.release(connection)

    async def run(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Do one short operation, and again if the database goes away. It must bear being done twice."""
        failures = 0
        while True:
            try:
                return await self.attempt(operation)
            except _TRANSIENT as error:
                failures += 1
                if failures >= OPERATION_TRIES:
                    raise DatabaseUnavailable(
                        f"PostgreSQL went away {failures} times in a row: {error or type(error).__name__}",
                        remedy="Nothing that was accepted is lost; try again when the server is back",
                    ) from error
                await self._pause(DATABASE_OPERATION.wait_s(failures, 0.0))

    async def listen(self, channel: str, on_message: Callable[[str], None]) -> None:
        """Call `on_message` for every notification, and once with "" after each reconnect: something may be missed."""
        await self._listener.add(channel, on_message)

    async def _set_clock(self, connection: asyncpg.Connection) -> None:
        assert self._now is not None
        await connection.execute("SELECT set_config('windlass.now', $1, false)", self._now().isoformat())

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def flush(connection: asyncpg.Connection) -> None:
    """Wait until everything that was committed before is on the disk. Not inside a transaction."""
    await connection.fetchrow(sql("flush"))


async def _connect(dsn: str) -> Connection:
    connection: Connection = await asyncpg.connect(
        dsn, server_settings=_SERVER_SETTINGS, connection_class=Connection, timeout=10, command_timeout=60
    )
    return connection
