"""One connection per process that hears the bells (LISTEN), and comes back by itself when it is lost."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import asyncpg

RECONNECT_AFTER_S = 1.0
# A connection that was cut off without a word looks alive; asking it now and then is the only way to know.
PROBE_EVERY_S = 30.0


class Listener:
    """Channels and their callbacks. A bell may be lost while the connection is; callers poll slowly as well."""

    def __init__(self, connect: Callable[[], Awaitable[asyncpg.Connection]]) -> None:
        self._connect = connect
        self._callbacks: dict[str, list[Callable[[str], None]]] = {}
        self._connection: asyncpg.Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()
        self._heard: set[str] = set()
        self._ready = asyncio.Event()

    async def add(self, channel: str, callback: Callable[[str], None]) -> None:
        """Hear `channel` from now on; returns once it is heard, or after 5 s if the database is away."""
        self._callbacks.setdefault(channel, []).append(callback)
        self._ready.clear()
        self._changed.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="windlass-listener")
        try:
            await asyncio.wait_for(self._ready.wait(), 5)
        except TimeoutError:
            return

    async def close(self) -> None:
        """Stop hearing."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    async def _run(self) -> None:
        while True:
            try:
                await self._hear()
            except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError, TimeoutError):
                if self._connection is not None:
                    self._connection.terminate()
                self._connection = None
                self._heard.clear()
                await asyncio.sleep(RECONNECT_AFTER_S)

    async def _hear(self) -> None:
        connection = self._connection = await self._connect()
        closed = asyncio.Event()
        connection.add_termination_listener(lambda *_: closed.set())
        connection.add_termination_listener(lambda *_: self._changed.set())
        while True:
            self._changed.clear()
            for channel in sorted(self._callbacks.keys() - self._heard):
                await connection.add_listener(channel, self._ring)
                self._heard.add(channel)
                # What was rung before now was not heard: look once.
                self._ring(connection, 0, channel, "")
            if not self._callbacks.keys() - self._heard:
                self._ready.set()
            try:
                async with asyncio.timeout(PROBE_EVERY_S):
                    await self._changed.wait()
            except TimeoutError:
                await connection.execute("SELECT 1", timeout=5)
            if closed.is_set():
                raise ConnectionResetError("the listening connection was closed")

    def _ring(self, _connection: Any, _pid: int, channel: str, payload: str) -> None:
        for callback in self._callbacks.get(channel, ()):
            callback(payload)
