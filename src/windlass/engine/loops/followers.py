"""Runs the duties that follow the feed as a separate task, so that jobs never wait for the records about them.

The task looks when a bell rings, at most every `every_s` seconds. It keeps looking for RESTLESS_S seconds after the
last bell: a commit becomes readable only when all older transactions have ended. Without bells it looks every five
seconds.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence

from windlass.core.bell import Bell, JobsEnded, WorkQueued
from windlass.core.errors import Unavailable
from windlass.engine.loops.duty import Duty
from windlass.engine.loops.runner import UNAVAILABLE_PAUSE_S, turn
from windlass.pure.observer import Observer
from windlass.store.database import Database
from windlass.store.outage import OutageLog

EVERY_S = 0.25
IDLE_S = 5.0
# How long after a bell it looks every `every_s` seconds.
RESTLESS_S = 3.0
BELLS: tuple[type[Bell], ...] = (WorkQueued, JobsEnded)

log = logging.getLogger("windlass.engine")


class Followers:
    """Runs duties that follow the feed. `alive_s` is the loop time of its last turn."""

    name = "followers"

    def __init__(
        self, db: Database, duties: Sequence[Duty], *, every_s: float = EVERY_S, observer: Observer | None = None
    ) -> None:
        self.duties = tuple(duties)
        self.alive_s = 0.0
        self._db = db
        self._outages = OutageLog(log, "the follower of the feed")
        self._every_s = every_s
        self._observer = observer
        self._bell = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def alive(self) -> float | None:
        """Return the seconds since its last turn."""
        return asyncio.get_running_loop().time() - self.alive_s

    def ready(self) -> bool:
        """Report whether the task runs."""
        return self._task is not None and not self._task.done()

    async def start(self) -> None:
        """Start. Returns once it listens for bells."""
        self.alive_s = asyncio.get_running_loop().time()
        for kind in BELLS:
            await self._db.listen(kind, lambda _: self._bell.set())
        self._task = asyncio.create_task(self._run(), name="windlass-followers")

    async def stop(self) -> None:
        """Stop. The database rolls back an interrupted duty; the next run continues from there."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def run_once(self) -> bool:
        """Do one batch of every duty and report whether any has more. A failed duty does not stop the others."""
        is_more = False
        failed: Exception | None = None
        for duty in self.duties:
            try:
                is_more = (await turn(duty, self._observer)).is_more or is_more
            except Exception as error:
                failed = failed or error
        if failed is not None:
            raise failed
        return is_more

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        restless_until_s = 0.0
        while True:
            self.alive_s = loop.time()
            if self._bell.is_set():
                self._bell.clear()
                restless_until_s = loop.time() + RESTLESS_S
            try:
                is_more = await self.run_once()
                self._outages.over()
            except Unavailable as error:
                self._outages.note(error)
                await asyncio.sleep(UNAVAILABLE_PAUSE_S)
                continue
            except Exception:
                log.exception("a follower failed; it will be tried again")
                await asyncio.sleep(UNAVAILABLE_PAUSE_S)
                continue
            if is_more:
                # Let other tasks of this process run.
                await asyncio.sleep(0)
                continue
            await asyncio.sleep(self._every_s)
            if loop.time() >= restless_until_s and not self._bell.is_set():
                try:
                    async with asyncio.timeout(IDLE_S - self._every_s):
                        await self._bell.wait()
                except TimeoutError:
                    continue
