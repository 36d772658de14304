"""A small pool that hands out only working connections.

The driver's own pool wraps every connection and releases each in a separate task, which costs more than a short
statement. This pool keeps idle connections on a stack. It pings a connection that has been idle, replaces a connection
older than 300 s, and closes a connection that is returned broken or inside a transaction.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import asyncpg

from windlass.core.bell import Bell

PING_AFTER_S = 5.0
RECYCLE_AFTER_S = 300.0
CLOSE_WITHIN_S = 5.0


class Ringing:
    """Keeps bells until the writes they announce are committed. The simulated connection uses this code too."""

    # The callback that rings bells; None: no bus is attached.
    on_ring: Callable[[Sequence[Bell]], None] | None = None
    _bells: list[Bell]

    def is_in_transaction(self) -> bool:
        """Return whether the writes are not committed yet."""
        raise NotImplementedError

    def ring(self, *bells: Bell) -> None:
        """Ring for a statement that has succeeded: at once if that committed it, otherwise after the commit.

        The bells are not part of the commit: a NOTIFY there holds a lock of the whole server during the wait for the
        disk. A bell sent before the commit would make its listeners read too early, and find nothing.
        """
        self._bells += bells
        if not self.is_in_transaction():
            self.ring_out()

    def ring_out(self) -> None:
        """Ring the kept bells after the operation has succeeded."""
        if self._bells:
            bells, self._bells = self._bells, []
            if self.on_ring is not None:
                self.on_ring(bells)

    def hush(self) -> None:
        """Drop the kept bells after the operation has failed: its writes are undone, or unknown."""
        self._bells.clear()


class Connection(asyncpg.Connection, Ringing):  # type: ignore[misc]  # asyncpg's class is not typed as a base
    """A connection with its age, and with the bells of its uncommitted writes."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.born_s = self.used_s = time.monotonic()
        self._bells = []
        self.on_ring = None
        self.on_carry: Callable[[Sequence[Bell]], Sequence[tuple[str, str]]] | None = None

    def carried(self, bells: Sequence[Bell]) -> tuple[list[str], list[str]]:
        """Return the channels and payloads of bells that a statement may send with its commit; empty if it must not.

        A statement sends them in two cases: its commit does not wait for the disk, or no other commit of the database
        carries bells at this moment, which an advisory lock ensures. So no commit ever waits for the lock of another,
        and on an idle system a bell costs no extra round trip. `is_rung` says whether they were sent.
        """
        texts = () if self.on_carry is None else self.on_carry(bells)
        return [channel for channel, _ in texts], [text for _, text in texts]


class Pool:
    """At most `size_max` connections. A caller waits if none is free."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size_max: int) -> None:
        self._connect = connect
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._free = asyncio.Semaphore(size_max)
        # The callback that rings the bells of the connections' writes.
        self.on_ring: Callable[[Sequence[Bell]], None] | None = None
        self.on_carry: Callable[[Sequence[Bell]], Sequence[tuple[str, str]]] | None = None
        # The number of connections that broke while in use. Earlier reads may belong to another history.
        self.losses = 0
        # Connections that were opened before this time are not used again.
        self._expired_s = float("-inf")

    @property
    def busy(self) -> int:
        """The number of connections in use."""
        return len(self._busy)

    @property
    def idle(self) -> int:
        """The number of idle connections."""
        return len(self._idle)

    async def acquire(self) -> Connection:
        """Return a connection that works, as far as the pool can know."""
        await self._free.acquire()
        try:
            connection = await self._idle_one() or await self._connect()
        except BaseException:
            self._free.release()
            raise
        connection.on_ring, connection.on_carry = self.on_ring, self.on_carry
        self._busy.add(connection)
        return connection

    def expire(self) -> None:
        """Expire all open connections: the server is the wrong one. A connection in use is closed on release."""
        self._expired_s = time.monotonic()

    def release(self, connection: Connection) -> None:
        """Take a connection back. Closing a connection makes the server undo an open transaction."""
        self._busy.discard(connection)
        connection.hush()
        self.losses += connection.is_closed()
        if connection.is_closed() or connection.is_in_transaction() or connection.born_s <= self._expired_s:
            connection.terminate()
        else:
            connection.used_s = time.monotonic()
            self._idle.append(connection)
        self._free.release()

    async def close(self) -> None:
        """Close the idle connections cleanly, and terminate the connections in use."""
        for connection in self._busy:
            connection.terminate()
        idle, self._idle = self._idle, []
        for connection in idle:
            try:
                await connection.close(timeout=CLOSE_WITHIN_S)
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                connection.terminate()

    async def _idle_one(self) -> Connection | None:
        while self._idle:
            connection = self._idle.pop()
            now_s = time.monotonic()
            if connection.is_closed():
                self.losses += 1
                continue
            if connection.born_s <= self._expired_s or now_s - connection.born_s > RECYCLE_AFTER_S:
                connection.terminate()
            elif now_s - connection.used_s <= PING_AFTER_S or await _answers(connection):
                return connection
            else:
                self.losses += 1
        return None


async def _answers(connection: Connection) -> bool:
    try:
        await connection.execute("SELECT 1", timeout=CLOSE_WITHIN_S)
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError):
        connection.terminate()
        return False
    return True
