"""Writes the notes of running attempts: at most once per 0.5 s for one attempt, and the latest value wins.

Log lines are written less often, at the pace of `worker/log_tail.py`, together with other notes where possible.

Handlers add notes from the loop, from threads and from other processes; all of them only fill a dictionary. One task
writes all due notes in one statement. An attempt's last notes are written before its outcome, because an attempt that
has ended accepts no notes.
"""

from __future__ import annotations

import asyncio
import logging
import math
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from uuid import UUID

from windlass.core.errors import Unavailable
from windlass.engine.note import Note
from windlass.store.outage import OutageLog
from windlass.worker.context import LOG, Words, join_words
from windlass.worker.log_tail import Pace

EVERY_S = 0.5
RETRY_AFTER_S = 1.0

Key = tuple[UUID, int, int]  # job, step number, attempt

_log = logging.getLogger("windlass.worker")


class Notes:
    """The notes that wait to be written."""

    def __init__(self, write: Callable[[Sequence[Note]], Awaitable[None]], *, every_s: float = EVERY_S) -> None:
        self._write = write
        self._outages = OutageLog(_log, "writing progress")
        self._every_s = every_s
        self._loop = asyncio.get_running_loop()
        self._lock = threading.Lock()
        self._waiting: dict[Key, Words] = {}
        self._in_flight: dict[Key, Words] = {}
        self._written_s: dict[Key, float] = {}
        self._paces: dict[Key, Pace] = {}
        self._last_words: dict[Key, asyncio.Future[None]] = {}
        self._stir = asyncio.Event()
        self._task = self._loop.create_task(self._run(), name="windlass-notes")

    def say(self, key: Key, words: Words) -> None:
        """Keep these notes until they are written. May be called from any thread."""
        with self._lock:
            said = self._waiting.get(key)
            if said is None:
                self._waiting[key] = dict(words)
            else:
                is_waited_for = LOG in words or len(said) > (LOG in said)
                join_words(said, words)
                if is_waited_for:
                    return
        try:
            self._loop.call_soon_threadsafe(self._stir.set)
        except RuntimeError:
            # The worker has ended; a thread that could not be stopped goes on adding notes.
            return

    def is_owed(self, key: Key) -> bool:
        """Whether notes of this attempt are not written yet."""
        return key in self._waiting or key in self._in_flight

    async def finish(self, key: Key) -> None:
        """Return when all notes of this attempt are written."""
        if not self.is_owed(key):
            self._release(key)
            return
        done = self._last_words.setdefault(key, self._loop.create_future())
        self._stir.set()
        await asyncio.shield(done)

    def forget(self, key: Key) -> None:
        """Drop the notes of this attempt: this worker no longer holds it."""
        if self._waiting:
            self._waiting.pop(key, None)
        if self._written_s or self._paces or self._last_words:
            self._release(key)

    async def close(self) -> None:
        """Stop. Unwritten notes are dropped."""
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

    def _due(self) -> tuple[dict[Key, bool], float | None]:
        """Return the attempts to write now, each with whether to include its log lines; and the wait for the next."""
        now_s = self._loop.time()
        due: dict[Key, bool] = {}
        next_s = math.inf
        with self._lock:
            waiting = [(key, words.get(LOG), len(words)) for key, words in self._waiting.items()]
        for key, tail, count in waiting:
            is_last = key in self._last_words
            log_s = math.inf if tail is None else self._pace(key).wait_s(tail.size, now_s)
            words_s = math.inf
            if tail is None or count > 1:
                words_s = self._written_s.get(key, -self._every_s) + self._every_s - now_s
            if is_last or min(log_s, words_s) <= 0:
                due[key] = is_last or log_s <= 0
            else:
                next_s = min(next_s, log_s, words_s)
        return due, next_s if next_s < math.inf else None

    def _pace(self, key: Key) -> Pace:
        pace = self._paces.get(key)
        if pace is None:
            pace = self._paces[key] = Pace(self._loop.time())
        return pace

    def _take(self, due: Mapping[Key, bool]) -> dict[Key, Words]:
        """Take out the due notes. Log lines stay if they must wait."""
        taken: dict[Key, Words] = {}
        with self._lock:
            for key, with_log in due.items():
                words = self._waiting.pop(key, None)
                if words is None:
                    continue
                if LOG in words and not with_log:
                    self._waiting[key] = {LOG: words.pop(LOG)}
                if words:
                    taken[key] = words
        return taken

    async def _write_down(self, due: Mapping[Key, bool]) -> None:
        self._in_flight = self._take(due)
        if not self._in_flight:
            return
        try:
            await self._write([_note(key, words) for key, words in self._in_flight.items()])
        except (Unavailable, OSError) as error:
            self._outages.note(error)
            with self._lock:
                for key, words in self._in_flight.items():
                    join_words(words, self._waiting.get(key, {}))
                    self._waiting[key] = words
            self._in_flight = {}
            await asyncio.sleep(RETRY_AFTER_S)
            return
        except Exception:
            # An error in progress notes must not keep outcomes from being reported.
            _log.exception("progress could not be written and is dropped")
        else:
            self._outages.over()
        now_s = self._loop.time()
        written, self._in_flight = self._in_flight, {}
        for key, words in written.items():
            if key in self._last_words:
                if key not in self._waiting:
                    self._release(key)
                continue
            if (tail := words.get(LOG)) is not None:
                self._pace(key).spend(tail.size, now_s)
            if tail is None or len(words) > 1:
                self._written_s[key] = now_s

    def _release(self, key: Key) -> None:
        done = self._last_words.pop(key, None)
        self._written_s.pop(key, None)
        self._paces.pop(key, None)
        if done is not None and not done.done():
            done.set_result(None)


def _note(key: Key, words: Words) -> Note:
    tail = words.get(LOG)
    return Note(*key, **words) if tail is None else Note(*key, **{**words, LOG: tail.as_json()})
