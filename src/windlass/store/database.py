"""The pool of connections, and the first two of four layers between a dropped connection and a lost step.

1. The pool hands out only connections that work (`store/pool.py`).
2. `run` does one short operation and does it again, after 1, 2 and 4 s, when the database could not do it
   (`store/outage.py`). So every operation must bear being done twice: it is fenced, or carries its own id.
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
# No try begins later than this after the first: a connection or a lock may take ten seconds to fail.
OPERATION_BUDGET_S = 15.0

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


# What a connection raises by itself; an OSError may be another's.
_OF_THE_DRIVER = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError)


class Database:
    """PostgreSQL as the engine sees it: short operations on pooled connections, and the bells of what they did.

    Writers call `connection.ring`; the bells go to the bus once what they tell of is committed (`store/pool.py`).

    `trouble` is the lasting outage that the last failed operation met; only `check_writes` clears it.
    """

    budget_s = OPERATION_BUDGET_S
    trouble: Outage | None = None

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
        self.bus: Bus = bus or PostgresBus(lambda: _connect_bus(dsn))
        pool.on_ring, pool.on_carry = self.bus.ring, self.bus.carry

    @classmethod
    async def open(cls, dsn: str, *, max_size: int = 8, now: Callable[[], datetime] | None = None) -> Self:
        """Connect. `now` is for tests and simulations: it replaces the database's clock in every operation."""
        clock = ServerClock(now)

        async def connect() -> Connection:
            connection = await _connect(dsn)
            try:
                await clock.read(connection)
            except BaseException:
                # Also when the task that asked was cancelled: the pool does not know the connection yet.
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
        """How many connections are in use."""
        return self._pool.busy

    @property
    def idle(self) -> int:
        """How many connections wait to be used."""
        return self._pool.idle

    @property
    def losses(self) -> int:
        """How many connections broke. A server that comes back may have lost what it answered before."""
        return self._pool.losses

    async def close(self) -> None:
        """Stop listening and close every connection."""
        await self.bus.close()
        await self._pool.close()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        """A working connection, for reads. What must survive a lost connection goes through `run`."""
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
        """Do one short operation, one statement or one flat transaction, once."""
        connection = await self._pool.acquire()
        try:
            if self._now is not None:
                await self._set_clock(connection)
            result = await operation(connection)
            connection.ring_out()
            return result
        except asyncio.CancelledError:
            # What the server was doing for us is unknown now; it ends with the connection.
            connection.terminate()
            raise
        except _OF_THE_DRIVER as error:
            self._met(error, connection)
            raise
        finally:
            self._pool.release(connection)

    async def run(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Do one short operation, and again if the database cannot do it now. It must bear being done twice."""
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
        """Why the server accepts no writes now; None if it does. Writes while there is trouble, or if `is_tested`."""
        is_tested = is_tested or self.trouble is not None
        statement = sql("database_test_write" if is_tested else "database_is_read_only")
        try:
            is_read_only = await self.attempt(lambda connection: connection.fetchval(statement))
        except Exception as error:
            if (outage := outage_of(error)) is None:
                raise
            return outage
        self.trouble = None
        return READ_ONLY if is_read_only is True else None

    async def listen(self, kind: type[B], hear: Callable[[B], None]) -> None:
        """Call `hear` for every bell of this kind (`bus/port.py` says what that means)."""
        await self.bus.listen(kind, hear)

    def _met(self, error: Exception, connection: Connection | None = None) -> Outage | None:
        """The outage that an error tells of, which is remembered if it lasts."""
        outage = outage_of(error)
        if connection is not None and not isinstance(error, asyncpg.PostgresError):
            # The driver lost track of the connection: it may look open, and cannot be used.
            connection.terminate()
        if outage is not None and outage.is_lasting:
            self.trouble = outage
        if outage is not None and outage.is_stale:
            self._pool.expire()
        return outage

    async def _set_clock(self, connection: asyncpg.Connection) -> None:
        assert self._now is not None
        await connection.execute("SELECT set_config('windlass.now', $1, false)", self._now().isoformat())

    async def _pause(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


async def flush(connection: asyncpg.Connection) -> None:
    """Wait until everything that was committed before is on the disk. Not inside a transaction."""
    await connection.fetchrow(sql("flush"))


async def _connect_bus(dsn: str) -> Connection:
    """The connection that bells go by. A bell never waits for the disk: what it tells of is there already."""
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
    """With several hosts, connect to the one that accepts writes. A single host is used as it is: it can be read."""
    parts = urlsplit(dsn)
    has_many = "," in parts.netloc.rpartition("@")[2] or "," in parts.query.partition("host=")[2].partition("&")[0]
    return {"target_session_attrs": "read-write"} if has_many and "target_session_attrs" not in parts.query else {}
