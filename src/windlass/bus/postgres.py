"""Carries bells by LISTEN and NOTIFY, on one dedicated connection per process.

A NOTIFY inside a commit holds a lock of the whole server during the wait for the disk, and blocks every other commit
with a NOTIFY. So bells have separate transactions here, which do not wait for the disk. Bells that are rung during a
transaction go together in the next: a busy process sends few transactions, an idle process sends at once.

One task owns the connection. It opens the connection, listens, sends, and opens it again after a loss.
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
# A silently cut connection looks alive; only a periodic probe finds it.
PROBE_EVERY_S = 30.0
ANSWER_WITHIN_S = 5.0
CLOSE_WITHIN_S = 1.0
# A process that rings this many bells in a window (500 a second) is busy, and gathers bells for GATHER_S. If it has
# other operations in progress, fewer suffice (100 a second): on a slow machine, the rate alone cannot distinguish
# sequential quick clients from many commits at once.
WINDOW_S = 0.05
BUSY_BELLS = 25
CROWDED_BELLS = 5
GATHER_S = 0.01
# More bells than this wait only while the server is down. Then their details are dropped: listeners read everything.
WAITING_MAX = 1_000

_NOTIFY = "SELECT pg_notify($1, $2)"
_NOTIFY_MANY = "SELECT pg_notify(channel, payload) FROM unnest($1::text[], $2::text[]) AS b (channel, payload)"
_AWAY = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, TimeoutError)

_log = logging.getLogger("windlass.bus")


class PostgresBus:
    """A `Bus` on PostgreSQL.

    `connect` opens the dedicated connection. The numbers of `spread`, in [0, 1), spread the waits before a new one.
    `is_crowded` returns whether the process has several operations in progress.
    """

    def __init__(
        self,
        connect: Callable[[], Awaitable[asyncpg.Connection]],
        spread: Callable[[], float] = random.random,
        is_crowded: Callable[[], bool] = lambda: False,
    ) -> None:
        self._connect = connect
        self._spread = spread
        self._is_crowded = is_crowded
        self._hearers: dict[type[Any], list[Callable[[Any], None]]] = {}
        self._waiting: list[Bell] = []
        self._connection: asyncpg.Connection | None = None
        self._task: asyncio.Task[None] | None = None
        self._heard: set[type[Bell]] = set()
        # The statements that send one bell and many, prepared on the connection.
        self._notify: tuple[Any, Any] = (None, None)
        # Whether the connection is idle, and the send that `ring` started on it.
        self._is_free = False
        self._sending: asyncio.Task[None] | None = None
        self._losses = 0
        self._is_closed = False
        # The start of the current window, its number of bells, the number that makes it busy, and whether the previous
        # window was busy.
        self._window_s, self._rung, self._least, self._was_busy = 0.0, 0, BUSY_BELLS, False
        # Set if there is work: a bell to send, a kind to listen to, a lost connection.
        self._news = asyncio.Event()
        self._ready = asyncio.Event()
        self._sent = asyncio.Event()

    def ring(self, bells: Sequence[Bell]) -> None:
        """Send these bells, within this step of the event loop if the connection is idle."""
        if self._is_closed or not bells:
            return
        self._waiting.extend(bells)
        self._count(len(bells))
        # This process gets its own bells at once, and not again from the server. A bell that came back a moment later
        # would make a worker claim again right after its claim.
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
        """Return all bells for the commit to send while the process is not busy, otherwise nothing.

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
            # The new listener missed all earlier bells, so it reads once.
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
        """Return the state of the bus."""
        return Health(self._connection is not None, self._losses, len(self._waiting), is_unused=self._task is None)

    async def close(self) -> None:
        """Send the waiting bells, and stop listening."""
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
            # A window without bells counts too: then the process is idle.
            self._was_busy = self._rung >= self._least and now_s - self._window_s < 2 * WINDOW_S
            self._window_s, self._rung, self._least = now_s, 0, BUSY_BELLS
        if self._is_crowded():
            self._least = CROWDED_BELLS
        self._rung += bells

    def _is_busy(self) -> bool:
        """Return whether bells are rung so often that they are better sent together."""
        if time.monotonic() - self._window_s > 2 * WINDOW_S:
            return False
        return self._was_busy or self._rung >= self._least

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
                await pause(most_s * self._spread())

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
        """Start sending in the current step of the event loop: a lone bell is on the critical path of a lone job."""
        self._is_free = False
        sending = self._send()
        try:
            first = sending.send(None)
        except BaseException as error:
            # The connection is closed or was not idle. The bells still wait.
            if not isinstance(error, _AWAY):
                raise
        else:
            self._sending = asyncio.create_task(_rest(sending, first), name="windlass-bus-send")
            self._sending.add_done_callback(self._on_sent)
            return
        self._news.set()

    def _on_sent(self, sending: asyncio.Task[None]) -> None:
        """Wake `_serve`. After a lost connection it may be gone already, so the error is also retrieved here."""
        if not sending.cancelled():
            sending.exception()
        self._news.set()

    async def _hear(self, connection: asyncpg.Connection) -> None:
        for kind in [kind for kind in self._hearers if kind not in self._heard]:
            await connection.add_listener(kind.channel, self._on_notify)
            self._heard.add(kind)
            # Earlier bells were missed, so listeners read once.
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
            # It is unknown whether they were sent; a duplicate bell only costs a read.
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
    """Wait before the next attempt to connect."""
    await asyncio.sleep(seconds)


class _Begun:
    """Awaits the rest of a coroutine that has already run up to its first await."""

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
        _log.exception("a listener for %s failed", type(bell).__name__)
