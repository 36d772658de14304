"""A small pool of connections that hands out only ones that work.

The driver's own pool wraps every connection and gives each back in a task of its own, which costs more than a short
statement does. This one keeps idle connections on a stack: one that has idled is pinged first, one older than 300 s is
replaced, and one that comes back inside a transaction or broken is closed.
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


class Connection(asyncpg.Connection):  # type: ignore[misc]  # asyncpg's class is not typed as a base
    """A connection that knows its age, and the bells of what it has written and not yet committed."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.born_s = self.used_s = time.monotonic()
        self._bells: list[Bell] = []
        # What rings bells; None: nobody hears them.
        self.on_ring: Callable[[Sequence[Bell]], None] | None = None
        self.on_carry: Callable[[Sequence[Bell]], Sequence[tuple[str, str]]] | None = None

    def ring(self, *bells: Bell) -> None:
        """Ring for a statement that has succeeded: at once if it is committed by that, else after the commit.

        Not inside the commit: a NOTIFY there holds a lock of the whole server while the disk is waited for. A bell
        that went out before the commit would have its hearers look too early, and find nothing.
        """
        self._bells += bells
        if not self.is_in_transaction():
            self.ring_out()

    def carried(self, bells: Sequence[Bell]) -> tuple[list[str], list[str]]:
        """The channels and payloads of bells that a statement may send with its commit; empty if it must not.

        A statement sends them only if its commit does not wait for the disk, or if no other commit of the database
        carries bells at this moment, which an advisory lock tells. So no commit ever waits for the lock of another,
        and on an idle system a bell costs no journey of its own. `is_rung` tells whether they were sent.
        """
        texts = () if self.on_carry is None else self.on_carry(bells)
        return [channel for channel, _ in texts], [text for _, text in texts]

    def ring_out(self) -> None:
        """The operation has succeeded: ring what it left to ring."""
        if self._bells:
            bells, self._bells = self._bells, []
            if self.on_ring is not None:
                self.on_ring(bells)

    def hush(self) -> None:
        """The operation has failed: what it wrote is undone, or unknown."""
        self._bells.clear()


class Pool:
    """At most `size_max` connections; a caller who finds none waits for one."""

    def __init__(self, connect: Callable[[], Awaitable[Connection]], size_max: int) -> None:
        self._connect = connect
        self._idle: list[Connection] = []
        self._busy: set[Connection] = set()
        self._free = asyncio.Semaphore(size_max)
        # What rings the bells of what the connections wrote.
        self.on_ring: Callable[[Sequence[Bell]], None] | None = None
        self.on_carry: Callable[[Sequence[Bell]], Sequence[tuple[str, str]]] | None = None
        # How many connections broke under their users. What was learned before may be of another history.
        self.losses = 0
        # A connection that was opened before this moment is not used again.
        self._expired_s = float("-inf")

    @property
    def busy(self) -> int:
        """How many connections are in use."""
        return len(self._busy)

    @property
    def idle(self) -> int:
        """How many wait to be used."""
        return len(self._idle)

    async def acquire(self) -> Connection:
        """A connection that works, as far as can be known."""
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
        """Close every connection that is open now, those in use when they come back: the server is the wrong one."""
        self._expired_s = time.monotonic()

    def release(self, connection: Connection) -> None:
        """Take it back. Whatever it was in the middle of is undone by the server when it is closed."""
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
        """Close the idle ones in good order, and cut off those still in use."""
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
