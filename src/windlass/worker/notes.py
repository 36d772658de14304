"""Writes down what running attempts say: never more than once per 0.5 s for one attempt, the latest words win.

Handlers speak from the loop, from threads and from other processes; all of them only put words into a dictionary.
One task writes, everything that is due in one statement. The last words of an attempt are written before its outcome
is, as an attempt that has ended can say nothing more.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Awaitable, Callable, Sequence
from uuid import UUID

from windlass.core.errors import Unavailable
from windlass.engine.note import Note
from windlass.worker.context import Words

EVERY_S = 0.5
RETRY_AFTER_S = 1.0

Key = tuple[UUID, int, int]  # job, step number, attempt

_log = logging.getLogger("windlass.worker")


class Notes:
    """The words that wait to be written."""

    def __init__(self, write: Callable[[Sequence[Note]], Awaitable[None]], *, every_s: float = EVERY_S) -> None:
        self._write = write
        self._every_s = every_s
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: dict[Key, Words] = {}
        self._in_flight: dict[Key, Words] = {}
        self._written_s: dict[Key, float] = {}
        self._last_words: dict[Key, asyncio.Future[None]] = {}
        self._stir = asyncio.Event()
        self._task = self._loop.create_task(self._run(), name="windlass-notes")

    def say(self, key: Key, words: Words) -> None:
        """Keep these words until they are written. From any thread."""
        with self._lock:
            said = self._waiting.get(key)
            if said is not None:
                said.update(words)
                return
            self._waiting[key] = dict(words)
        try:
            self._loop.call_soon_threadsafe(self._stir.set)
        except RuntimeError:
            # The worker has ended; a thread that could not be stopped goes on talking.
            return

    def is_owed(self, key: Key) -> bool:
        """Whether anything that this attempt said is not written yet."""
        return key in self._waiting or key in self._in_flight

    async def finish(self, key: Key) -> None:
        """Return when all that this attempt said is written."""
        if not self.is_owed(key):
            self._written_s.pop(key, None)
            return
        done = self._last_words.setdefault(key, self._loop.create_future())
        self._stir.set()
        await asyncio.shield(done)

    def forget(self, key: Key) -> None:
        """Drop what this attempt said: it is no longer ours."""
        if self._waiting:
            self._waiting.pop(key, None)
        if self._written_s or self._last_words:
            self._release(key)

    async def close(self) -> None:
        """Stop; what is not written by now is dropped."""
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)
        for key in list(self._last_words):
            self._release(key)

    async def _run(self) -> None:
        while True:
            self._stir.clear()
            due, next_s = self._due()
            if due:
                await self._write_down(due)
                continue
            try:
                async with asyncio.timeout(next_s):
                    await self._stir.wait()
            except TimeoutError:
                continue

    def _due(self) -> tuple[list[Key], float | None]:
        """Which attempts may be written now, and after how long the next one may."""
        now_s = self._loop.time()
        due: list[Key] = []
        next_s: float | None = None
        with self._lock:
            waiting = list(self._waiting)
        for key in waiting:
            wait_s = self._written_s.get(key, -self._every_s) + self._every_s - now_s
            if wait_s <= 0 or key in self._last_words:
                due.append(key)
            else:
                next_s = wait_s if next_s is None else min(next_s, wait_s)
        return due, next_s

    async def _write_down(self, keys: list[Key]) -> None:
        with self._lock:
            self._in_flight = {key: words for key in keys if (words := self._waiting.pop(key, None)) is not None}
        try:
            await self._write([Note(*key, **words) for key, words in self._in_flight.items()])
        except (Unavailable, OSError) as error:
            _log.warning("progress cannot be written now: %s", error)
            with self._lock:
                for key, words in self._in_flight.items():
                    self._waiting[key] = words | self._waiting.get(key, {})
            self._in_flight = {}
            await asyncio.sleep(RETRY_AFTER_S)
            return
        except Exception:
            # Progress is a courtesy. Whatever is wrong with it must not keep outcomes from being reported.
            _log.exception("progress could not be written and is dropped")
        now_s = self._loop.time()
        keys_written, self._in_flight = list(self._in_flight), {}
        for key in keys_written:
            if key in self._last_words:
                if key not in self._waiting:
                    self._release(key)
            else:
                self._written_s[key] = now_s

    def _release(self, key: Key) -> None:
        done = self._last_words.pop(key, None)
        self._written_s.pop(key, None)
        if done is not None and not done.done():
            done.set_result(None)
