"""The pool of connections, and the first two of four layers between a dropped connection and a lost step.

1. The pool hands out only connections that work: one that has idled is pinged first, one older than 300 s is replaced,
   and one that comes back inside a transaction is rolled back.
2. `run` does one short operation and does it again, after 1, 2 and 4 s on a fresh connection, when the database went
   away under it. So every operation must bear being done twice: it is fenced, or carries its own id.
3. Handlers that use a database of their own may raise what they get; `worker/fault.py` knows it for what it is.
4. A step whose attempt lost its database is queued again after 15, 30, 60 … 300 s (`core/retry.py`).

Whether a commit that was cut off took place cannot be known from the broken connection. Doing the operation again
reads the truth: the fence, the job's id or the version then says that it is already done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, TypeVar

import asyncpg

from windlass.core.errors import BadSetting, DatabaseUnavailable
from windlass.core.retry import DATABASE_OPERATION
from windlass.store.listener import Listener

T = TypeVar("T")

PING_AFTER_S = 5.0
RECYCLE_AFTER_S = 300.0
OPERATION_TRIES = 4

# Every statement of the engine is driven by an index. The planner, which caches its plans while a table is still
# small, must not settle for a plan that reads whole tables.
_SERVER_SETTINGS = {
    "application_name": "windlass",
    "search_path": "windlass,public",
    "jit": "off",
    "timezone": "UTC",
    "enable_seqscan": "off",
    "enable_hashjoin": "off",
    "enable_mergejoin": "off",
    "enable_bitmapscan": "off",
    "plan_cache_mode": "force_generic_plan",
    "lock_timeout": "10s",
    "idle_in_transaction_session_timeout": "30s",
}

_TRANSIENT = (
    asyncpg.PostgresConnectionError,
    asyncpg.InterfaceError,
    asyncpg.CannotConnectNowError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.TooManyConnectionsError,
    asyncpg.DeadlockDetectedError,
    asyncpg.SerializationError,
    asyncpg.LockNotAvailableError,
    OSError,
    TimeoutError,
)


def is_transient(error: BaseException) -> bool:
    """Whether the database went away or asked us to come back, so that the same operation may well succeed later."""
    return isinstance(error, _TRANSIENT)


class Age:
    """When a connection was made and last handed out, on this process's monotonic clock."""

    def __init__(self) -> None:
        self.born_s = self.used_s = time.monotonic()


class Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg's class is not typed as a base
    """A connection that knows its age, and whose return to the pool costs no round trip."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.age = Age()

    def get_reset_query(self) -> str:
        """Nothing: the pool still rolls back an open transaction, and no session state is ever set."""
        return ""


class Database:
    """PostgreSQL as the engine sees it: short operations on pooled connections, and bells."""

    def __init__(self, pool: asyncpg.Pool, dsn: str, now: Callable[[], datetime] | None) -> None:
        self._pool = pool
        self._now = now
        self._listener = Listener(lambda: _connect(dsn))

    @classmethod
    async def open(
        cls, dsn: str, *, min_size: int = 1, max_size: int = 8, now: Callable[[], datetime] | None = None
    ) -> Database:
        """Connect. `now` is for tests and simulations: it replaces the database's clock in every operation."""
        try:
            pool = await asyncpg.create_pool(
                dsn,
                min_size=min_size,
                max_size=max_size,
                connection_class=Connection,
                server_settings=_SERVER_SETTINGS,
                max_inactive_connection_lifetime=RECYCLE_AFTER_S,
                timeout=10,
                command_timeout=60,
            )
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

    async def close(self) -> None:
        """Stop listening and close every connection."""
        await self._listener.close()
        try:
            await asyncio.wait_for(self._pool.close(), 5)
        except TimeoutError:
            self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """A working connection, for reads. What must survive a lost connection goes through `run`."""
        connection = await self._healthy()
        try:
            if self._now is not None:
                await connection.execute("SELECT set_config('windlass.now', $1, false)", self._now().isoformat())
            yield connection
        finally:
            await self._give_back(connection)

    async def attempt(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Do one short operation, one statement or one flat transaction, once."""
        async with self.connection() as connection:
            return await operation(connection)

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

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)

    async def _healthy(self) -> asyncpg.Connection:
        while True:
            connection = await self._pool.acquire()
            now_s = time.monotonic()
            if now_s - connection.age.born_s > RECYCLE_AFTER_S:
                await self._discard(connection)
                continue
            if now_s - connection.age.used_s > PING_AFTER_S:
                try:
                    await connection.execute("SELECT 1", timeout=5)
                except (*_TRANSIENT, asyncpg.PostgresError):
                    await self._discard(connection)
                    continue
            connection.age.used_s = now_s
            return connection

    async def _give_back(self, connection: asyncpg.Connection) -> None:
        try:
            await self._pool.release(connection, timeout=5)
        except _TRANSIENT:
            connection.terminate()

    async def _discard(self, connection: asyncpg.Connection) -> None:
        connection.terminate()
        await self._pool.release(connection)


async def _connect(dsn: str) -> asyncpg.Connection:
    return await asyncpg.connect(dsn, server_settings=_SERVER_SETTINGS, timeout=10)
