"""The pool of connections, and the first two of four layers between a dropped connection and a lost step.

1. The pool hands out only connections that work (`store/pool.py`).
2. `run` executes one short operation, and repeats it after 1, 2 and 4 s while the database cannot do it
   (`store/outage.py`). So every operation must be safe to repeat: it is fenced, or carries its own id.
3. Handlers that use their own database may let its errors pass; `worker/fault.py` recognises them.
4. A step whose attempt lost its database is queued again after 15, 30, 60 … 300 s (`core/retry.py`).

A broken connection cannot tell whether an interrupted commit took place. Repeating the operation reads the truth: the
fence, the job's id or the version then shows that it is already done.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any, Self, TypeVar
from urllib.parse import urlsplit

import asyncpg

from windlass.bus.port import B, Bus
from windlass.bus.postgres import PostgresBus
from windlass.core.errors import BadSetting, DatabaseUnavailable
from windlass.core.retry import DATABASE_OPERATION
from windlass.pure.redact import masked
from windlass.store.clock import ServerClock
from windlass.store.outage import READ_ONLY, Outage, is_transient, outage_of
from windlass.store.pool import Connection, Pool
from windlass.store.statements import sql

T = TypeVar("T")

OPERATION_TRIES = 4
# No attempt begins later than this after the first: a connection or a lock may take ten seconds to fail.
OPERATION_BUDGET_S = 15.0

# An index drives every statement of the engine. The planner keeps the plan that it made while a table was small, and
# that plan must not read whole tables. So such plan types are disabled. The costs say that a row lookup is cheap and
# that comparing many rows is expensive.
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


# Errors that only a connection raises; an OSError may have another source.
_OF_THE_DRIVER = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class Database:
    """PostgreSQL as the engine uses it: short operations on pooled connections, and their bells.

    Writers call `connection.ring`. The bells go to the bus after the writes are committed (`store/pool.py`).

    `lasting_outage` is the outage that the last failed operation met; only `check_writes` clears it.
    """

    budget_s = OPERATION_BUDGET_S
    lasting_outage: Outage | None = None

    def __init__(
        self,
        pool: Pool,
        dsn: str,
        now: Callable[[], datetime] | None,
        clock: ServerClock | None = None,
        bus: Bus | None = None,
    ) -> None:
        self.clock = clock or ServerClock(now)
        self._pool = pool
        self._now = now
        self.bus: Bus = bus or PostgresBus(lambda: _connect_bus(dsn), is_crowded=lambda: pool.busy > 1)
        pool.on_ring, pool.on_carry = self.bus.ring, self.bus.carry

    @classmethod
    async def open(cls, dsn: str, *, max_size: int = 8, now: Callable[[], datetime] | None = None) -> Self:
        """Connect to the database. In tests and simulations, `now` replaces the database's clock in all operations."""
        clock = ServerClock(now)

        async def connect() -> Connection:
            connection = await _connect(dsn)
            try:
                await clock.read(connection)
            except BaseException:
                # Also if the calling task was cancelled: the pool does not know the connection yet.
                connection.terminate()
                raise
            return connection

        pool = Pool(connect, max_size)
        try:
            pool.release(await pool.acquire())
        except (ValueError, asyncpg.ClientConfigurationError) as error:
            raise BadSetting(
                f"the database URL cannot be used: {masked(str(error))}",
                remedy="It looks like postgresql://user:password@host:5432/name",
            ) from error
        except (asyncpg.InvalidCatalogNameError, asyncpg.InvalidAuthorizationSpecificationError) as error:
            raise BadSetting(
                f"PostgreSQL refused the connection: {masked(str(error))}", remedy="Check the database URL"
            ) from error
        except Exception as error:
            if not is_transient(error):
                raise
            raise DatabaseUnavailable(
                f"PostgreSQL cannot be reached: {masked(str(error)) or type(error).__name__}",
                remedy="Check that the server runs and that the database URL is right",
            ) from error
        return cls(pool, dsn, now, clock)

    @property
    def busy(self) -> int:
        """The number of connections in use."""
        return self._pool.busy

    @property
    def idle(self) -> int:
        """The number of idle connections."""
        return self._pool.idle

    @property
    def losses(self) -> int:
        """The number of broken connections. A server that comes back may have lost writes that it acknowledged."""
        return self._pool.losses

    async def close(self) -> None:
        """Stop listening and close every connection."""
        await self.bus.close()
        await self._pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """Yield a working connection for reads. An operation that must survive a lost connection uses `run`."""
        try:
            connection = await self._pool.acquire()
        except Exception as error:
            if (outage := self._met(error)) is None:
                raise
            raise outage.error() from error
        try:
            if self._now is not None:
                await self._set_clock(connection)
            yield connection
            connection.ring_out()
        except asyncio.CancelledError:
            connection.terminate()
            raise
        except _OF_THE_DRIVER as error:
            if (outage := self._met(error, connection)) is None:
                raise
            raise outage.error() from error
        finally:
            self._pool.release(connection)

    async def attempt(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Execute one short operation once: one statement or one flat transaction."""
        connection = await self._pool.acquire()
        try:
            if self._now is not None:
                await self._set_clock(connection)
            result = await operation(connection)
            connection.ring_out()
            return result
        except asyncio.CancelledError:
            # The server's progress is unknown now; closing the connection ends the operation.
            connection.terminate()
            raise
        except _OF_THE_DRIVER as error:
            self._met(error, connection)
            raise
        finally:
            self._pool.release(connection)

    async def run(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Execute one short operation, and repeat it while the database cannot do it. It must be safe to repeat."""
        failures = 0
        give_up_s = time.monotonic() + self.budget_s
        while True:
            try:
                return await self.attempt(operation)
            except Exception as error:
                outage = outage_of(error)
                if outage is None:
                    raise
                failures += 1
                wait_s = DATABASE_OPERATION.wait_s(failures, 0.0)
                is_over = failures >= OPERATION_TRIES or time.monotonic() + wait_s > give_up_s
                if is_over or not outage.is_repeated:
                    raise outage.error() from error
                await self._pause(wait_s)

    async def check_writes(self, *, is_tested: bool = False) -> Outage | None:
        """Return the outage that prevents writes, or None. Tests with a write if asked, or during a lasting outage."""
        is_tested = is_tested or self.lasting_outage is not None
        statement = sql("database_test_write" if is_tested else "database_is_read_only")
        try:
            is_read_only = await self.attempt(lambda connection: connection.fetchval(statement))
        except Exception as error:
            if (outage := outage_of(error)) is None:
                raise
            return outage
        self.lasting_outage = None
        return READ_ONLY if is_read_only is True else None

    async def listen(self, kind: type[B], hear: Callable[[B], None]) -> None:
        """Call `hear` for every bell of this kind; `bus/port.py` states the promises."""
        await self.bus.listen(kind, hear)

    def _met(self, error: Exception, connection: Connection | None = None) -> Outage | None:
        """Return the outage behind an error, and remember a lasting outage."""
        outage = outage_of(error)
        if connection is not None and not isinstance(error, asyncpg.PostgresError):
            # The driver lost track of the connection, which may look open but cannot be used.
            connection.terminate()
        if outage is not None and outage.is_lasting:
            self.lasting_outage = outage
        if outage is not None and outage.is_stale:
            self._pool.expire()
        return outage

    async def _set_clock(self, connection: asyncpg.Connection) -> None:
        assert self._now is not None
        await connection.execute("SELECT set_config('windlass.now', $1, false)", self._now().isoformat())

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def flush(connection: asyncpg.Connection) -> None:
    """Wait until all earlier commits are on disk. Call it outside of a transaction."""
    await connection.fetchrow(sql("flush"))


async def _connect_bus(dsn: str) -> Connection:
    """Connect for the bus. A bell never waits for the disk, because the writes it announces are already there."""
    return await _connect(dsn, synchronous_commit="off")


async def _connect(dsn: str, **settings: str) -> Connection:
    connection: Connection = await asyncpg.connect(
        dsn,
        server_settings={**_SERVER_SETTINGS, **settings},
        connection_class=Connection,
        timeout=10,
        command_timeout=60,
        **_only_primary(dsn),
    )
    return connection


def _only_primary(dsn: str) -> dict[str, Any]:
    """With several hosts, connect to the host that accepts writes. A single host is used as it is, to allow reads."""
    parts = urlsplit(dsn)
    has_many = "," in parts.netloc.rpartition("@")[2] or "," in parts.query.partition("host=")[2].partition("&")[0]
    return {"target_session_attrs": "read-write"} if has_many and "target_session_attrs" not in parts.query else {}
