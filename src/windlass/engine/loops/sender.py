"""The frame of a service that sends requests: it takes due rows, and sends in the background.

A turn begins when a bell rings, when the next row is due, or when a request has ended and made room. A turn that fails
is repeated after a pause, and an outage is logged once.
"""

from __future__ import annotations

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable

from windlass.core.bell import Bell
from windlass.core.errors import Unavailable
from windlass.store.database import Database
from windlass.store.outage import OutageLog

# The wait before a failed turn is repeated.
PAUSE_S = 1.0


class SenderLoop(ABC):
    """Runs the turns of a service. The service gives `name`, the kind of `bell`, `title`, `turn` and `under_way`."""

    name: str
    bell: type[Bell]
    title: str

    def __init__(self, db: Database, log: logging.Logger, clock_s: Callable[[], float]) -> None:
        self._db = db
        self._log = log
        self._outages = OutageLog(log, self.title)
        self._clock_s = clock_s
        self._rung = asyncio.Event()
        self._task: asyncio.Task[None] | None = None
        self._turned_s = clock_s()

    @abstractmethod
    async def turn(self) -> float:
        """Begin the requests that are due. Returns the seconds until the next turn; 0 means at once."""

    @abstractmethod
    def under_way(self) -> Iterable[asyncio.Task[None]]:
        """Return the tasks whose end begins a turn."""

    def alive(self) -> float | None:
        """Return the seconds since the last turn."""
        return self._clock_s() - self._turned_s

    def ready(self) -> bool:
        """Report whether the task runs."""
        return self._task is not None and not self._task.done()

    async def start(self) -> None:
        """Start. Returns once the service listens for bells."""
        await self._db.listen(self.bell, lambda _: self._rung.set())
        self._task = asyncio.create_task(self._run(), name=f"windlass-{self.name}")

    async def stop(self) -> None:
        """Begin no more turns."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None

    async def _run(self) -> None:
        while True:
            self._rung.clear()
            try:
                wait_s = await self.turn()
                self._turned_s = self._clock_s()
                self._outages.over()
            except Unavailable as error:
                self._outages.note(error)
                wait_s = PAUSE_S
            except Exception:
                self._log.exception("%s failed; trying again", self.title)
                wait_s = PAUSE_S
            if wait_s:
                await self._pause(wait_s)

    async def _pause(self, wait_s: float) -> None:
        """Wait until the time has come, a bell rings, or a request has ended."""
        rung = asyncio.create_task(self._rung.wait())
        try:
            await asyncio.wait({rung, *self.under_way()}, timeout=wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            rung.cancel()
