"""Bells by LISTEN and NOTIFY, on one connection of the process's own.

A NOTIFY inside a commit takes a lock of the whole server and holds it while the disk is waited for, so no other commit
with a NOTIFY can go on. Here bells have transactions of their own, which do not wait for the disk. Bells that are rung
while one transaction is under way go together in the next: a busy process sends few, an idle one sends at once.

One task owns the connection. It opens it, listens, sends, and opens it again when it was lost.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Generator, Sequence
from typing import Any

import asyncpg

from windlass.bus.port import B, Health
from windlass.core.bell import Bell, merged, parse, payloads

RECONNECT_AFTER_S = 1.0
RECONNECT_MAX_S = 30.0
# A connection that was cut off silently looks alive; asking it now and then is the only way to know.
PROBE_EVERY_S = 30.0
ANSWER_WITHIN_S = 5.0
CLOSE_WITHIN_S = 1.0
# A process that rings this many bells in a window (500 a second) is busy, and gathers bells for this long.
WINDOW_S = 0.05
BUSY_BELLS = 25
GATHER_S = 0.01
# More bells than this wait only while the server is away. Their particulars are given up: listeners look at everything.
WAITING_MAX = 1_000

_NOTIFY = "SELECT pg_notify($1, $2)"
_NOTIFY_MANY = "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS b (channel, payload)"
_AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)

_log = logging.getLogger("windlass.bus")


class PostgresBus:
    """A `Bus`. `connect` opens a connection of its own; `chance` spreads the waits before a new one."""

    def __init__(
        self, connect: Callable[[], Awaitable[asyncpg.Connection]], chance: Callable[[], float] = random.random
    ) -> None:
        self._connect = connect
        self._chance = chance
        self._hearers: dict[type[Any], list[Callable[[Any], None]]] = {}
        self._waiting: list[Bell] = []
        self._connection: asyncpg.Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._heard: set[type[Bell]] = set()
        # The statements that send one bell and many, prepared on the connection.
        self._notify: tuple[Any, Any] = (None, None)
        # Whether the connection is idle, and what is under way on it if `ring` began that.
        self._is_free = False
        self._sending: asyncio.Task[None] | None = None
        self._losses = 0
        self._is_closed = False
        # How many bells were rung in the window that began at this time, and whether the one before was busy.
        self._window_s, self._rung, self._was_busy = 0.0, 0, False
        # Something is to be done: a bell to send, a kind to listen to, a connection that was lost.
        self._news = asyncio.Event()
        self._ready = asyncio.Event()
        self._sent = asyncio.Event()

    def ring(self, bells: Sequence[Bell]) -> None:
        """Send these bells: in this very step of the loop if nothing else is under way."""
        if self._is_closed or not bells:
            return
        self._waiting.extend(bells)
        self._count(len(bells))
        # This process hears at once, and not a second time from the server: a bell that comes back a moment later
        # would have a worker claim again for what it has just claimed.
        heard = [bell for bell in bells if type(bell) in self._heard]
        if heard:
            asyncio.get_running_loop().call_soon(self._tell_all, heard)
        if len(self._waiting) > WAITING_MAX:
            self._waiting = merged(type(bell)() for bell in self._waiting)
        self._sent.clear()
        if self._is_free and not self._is_busy():
            self._send_now()
        else:
            self._wake()

    def carry(self, bells: Sequence[Bell]) -> Sequence[tuple[str, str]]:
        """What a commit may send itself: all of it while the process is not busy, else nothing.

        A busy process sends its bells together, which costs the server and the listeners less.
        """
        if self._is_busy():
            return ()
        self._count(len(bells))
        return [(bell.channel, text) for bell in bells for text in payloads(bell)]

    async def listen(self, kind: type[B], hear: Callable[[B], None]) -> None:
        """Call `hear` for every bell of this kind from now on."""
        self._hearers.setdefault(kind, []).append(hear)
        if kind in self._heard:
            # What was rung before now was not heard by this hearer: it looks once.
            _told(hear, kind())
            return
        self._ready.clear()
        self._wake()
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                await self._ready.wait()
        except TimeoutError:
            return

    def health(self) -> Health:
        """How the bus is."""
        return Health(self._connection is not None, self._losses, len(self._waiting))

    async def close(self) -> None:
        """Send what waits, and stop hearing."""
        self._hearers.clear()
        if self._task is not None:
            if self._waiting:
                await asyncio.wait([asyncio.ensure_future(self._sent.wait())], timeout=CLOSE_WITHIN_S)
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
        self._is_closed = True
        if self._connection is not None:
            self._connection.terminate()
            self._connection = None

    def _count(self, bells: int) -> None:
        now_s = time.monotonic()
        if now_s - self._window_s > WINDOW_S:
            # Also a window that nothing was rung in: then the process is idle.
            self._was_busy = self._rung >= BUSY_BELLS and now_s - self._window_s < 2 * WINDOW_S
            self._window_s, self._rung = now_s, 0
        self._rung += bells

    def _is_busy(self) -> bool:
        """Whether bells are rung so often that they are better sent together."""
        if time.monotonic() - self._window_s > 2 * WINDOW_S:
            return False
        return self._was_busy or self._rung >= BUSY_BELLS

    def _wake(self) -> None:
        self._news.set()
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="windlass-bus")

    async def _run(self) -> None:
        failures = 0
        while True:
            try:
                self._connection = await self._connect()
                failures = 0
                await self._serve(self._connection)
            except _AWAY:
                if self._connection is not None:
                    self._connection.terminate()
                    self._losses += 1
                self._connection = self._sending = None
                self._heard.clear()
                most_s = min(RECONNECT_MAX_S, RECONNECT_AFTER_S * 2**failures)
                failures += 1
                await pause(most_s * self._chance())

    async def _serve(self, connection: asyncpg.Connection) -> None:
        connection.add_termination_listener(lambda *_: self._news.set())
        self._notify = await connection.prepare(_NOTIFY), await connection.prepare(_NOTIFY_MANY)
        loop = asyncio.get_running_loop()
        probe_s = loop.time() + PROBE_EVERY_S
        while True:
            self._news.clear()
            if self._sending is not None:
                sending, self._sending = self._sending, None
                await sending
            if connection.is_closed():
                raise ConnectionResetError("the connection of the bus was closed")
            await self._hear(connection)
            if self._waiting:
                if self._is_busy():
                    await asyncio.sleep(GATHER_S)
                await self._send()
            elif loop.time() >= probe_s:
                await connection.execute("SELECT 1", timeout=ANSWER_WITHIN_S)
                probe_s = loop.time() + PROBE_EVERY_S
            if not self._news.is_set():
                await self._until_news(probe_s)

    async def _until_news(self, probe_s: float) -> None:
        timer = asyncio.get_running_loop().call_at(probe_s, self._news.set)
        self._is_free = True
        try:
            await self._news.wait()
        finally:
            self._is_free = False
            timer.cancel()

    def _send_now(self) -> None:
        """Begin to send without a turn of the loop: a lone bell is on the critical path of a lone job."""
        self._is_free = False
        sending = self._send()
        try:
            first = sending.send(None)
        except BaseException as error:
            # The connection is closed, or was not idle after all. The bells still wait.
            if not isinstance(error, _AWAY):
                raise
        else:
            self._sending = asyncio.create_task(_rest(sending, first), name="windlass-bus-send")
            self._sending.add_done_callback(lambda _: self._news.set())
            return
        self._news.set()

    async def _hear(self, connection: asyncpg.Connection) -> None:
        for kind in [kind for kind in self._hearers if kind not in self._heard]:
            await connection.add_listener(kind.channel, self._on_notify)
            self._heard.add(kind)
            # What was rung before now was not heard: look once.
            self._tell(kind())
        self._ready.set()

    async def _send(self) -> None:
        bells = merged(self._waiting) if len(self._waiting) > 1 else self._waiting
        self._waiting = []
        texts = [(bell.channel, text) for bell in bells for text in payloads(bell)]
        one, many = self._notify
        try:
            if len(texts) == 1:
                await one.fetch(*texts[0], timeout=ANSWER_WITHIN_S)
            else:
                columns = [channel for channel, _ in texts], [text for _, text in texts]
                await many.fetch(*columns, timeout=ANSWER_WITHIN_S)
        except BaseException:
            # They may have been sent or not: hearing a bell twice costs a look.
            self._waiting = bells + self._waiting
            raise
        if not self._waiting:
            self._sent.set()

    def _on_notify(self, connection: Any, pid: int, channel: str, payload: str) -> None:
        if pid == connection.get_server_pid():
            return
        try:
            bell = parse(channel, payload)
        except ValueError:
            _log.warning("a bell on %s cannot be read: %.100r", channel, payload)
            return
        self._tell(bell)

    def _tell_all(self, bells: Sequence[Bell]) -> None:
        for bell in bells:
            self._tell(bell)

    def _tell(self, bell: Bell) -> None:
        for hear in self._hearers.get(type(bell), ()):
            _told(hear, bell)


async def pause(seconds: float) -> None:
    """Wait before the next try at a connection."""
    await asyncio.sleep(seconds)


class _Begun:
    """Awaits the rest of a coroutine that has run up to its first wait."""

    def __init__(self, body: Coroutine[Any, Any, None], first: Any) -> None:
        self._body = body
        self._first = first

    def __await__(self) -> Generator[Any, Any, None]:
        awaited = self._first
        while True:
            error: BaseException | None = None
            try:
                yield awaited
            except BaseException as raised:
                error = raised
            try:
                awaited = self._body.send(None) if error is None else self._body.throw(error)
            except StopIteration:
                return


async def _rest(body: Coroutine[Any, Any, None], first: Any) -> None:
    await _Begun(body, first)


def _told(hear: Callable[[Any], None], bell: Bell) -> None:
    try:
        hear(bell)
    except Exception:
        _log.exception("a hearer of %s failed", type(bell).__name__)
