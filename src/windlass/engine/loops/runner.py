"""Runs the engine's duties: when a bell rings, at the time the database names, and at least every LOOK_EVERY_S seconds.

One query returns when every duty is due next, so an idle process asks the database once in LOOK_EVERY_S seconds. Bells
make the engine quick; losing them all delays it by no more than that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from uuid import UUID

from windlass.core import lease
from windlass.core.bell import Bell, TimerSet
from windlass.core.errors import Unavailable
from windlass.core.template import Resolver
from windlass.engine import installation
from windlass.engine.backlog import BACKLOG_MAX
from windlass.engine.loops.duty import Done, Duty, Engine, EngineDuty, look
from windlass.engine.loops.pruner import RETENTION_S
from windlass.engine.loops.registry import DUTIES
from windlass.engine.loops.router import FAN_OUT_MAX
from windlass.pure.observer import Observer
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.outage import OutageLog
from windlass.store.statements import sql

LOOK_EVERY_S = 5.0
UNAVAILABLE_PAUSE_S = 1.0
BUSY_PAUSE_S = 0.1
SEEN_EVERY_S = 10.0

log = logging.getLogger("windlass.engine")


class Loops:
    """Runs the engine's duties as one background task.

    `engine` is its id, host and process, under which people and health checks see it; without it they do not.
    `turned_s` is the loop time of its last turn: it stands still when a duty is stuck.
    """

    name = "loops"

    def __init__(
        self,
        db: Database,
        artifacts: Artifacts,
        resolver: Resolver,
        *,
        new_id: Callable[[], UUID],
        spread: Callable[[], float],
        retention_s: float = RETENTION_S,
        observer: Observer | None = None,
        fan_out_max: int = FAN_OUT_MAX,
        backlog_max: int = BACKLOG_MAX,
        engine: tuple[UUID, str, int] | None = None,
    ) -> None:
        self._db = db
        self._observer = observer
        self._engine = engine
        self._outages = OutageLog(log, "the engine")
        self.turned_s = 0.0
        engine_ = Engine(
            db, artifacts, resolver, new_id, spread, retention_s, fan_out_max, backlog_max, ring=self._ring
        )  # fmt: skip
        self.duties: Sequence[EngineDuty] = tuple(duty.made(engine_) for duty in DUTIES)
        self._look, self._look_values = look(self.duties, lease.GAP_PART)
        self._bell = asyncio.Event()
        # The names of the duties whose bells rang.
        self._rung: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    def __getattr__(self, name: str) -> Any:
        """Return a duty by its name. For tests."""
        for duty in self.__dict__.get("duties", ()):
            if duty.name == name:
                return duty
        raise AttributeError(name)

    def alive(self) -> float | None:
        """Return the seconds since its last turn."""
        return asyncio.get_running_loop().time() - self.turned_s

    def ready(self) -> bool:
        """Report whether the task runs."""
        return self._task is not None and not self._task.done()

    async def start(self) -> None:
        """Start. Returns once it listens for bells."""
        await self._db.listen(TimerSet, lambda _: self._bell.set())
        kinds = dict.fromkeys(kind for duty in self.duties for kind in duty.bells)
        for kind in kinds:
            names = [duty.name for duty in self.duties if kind in duty.bells]
            await self._db.listen(kind, partial(self._on_bell, names))
        self._task = asyncio.create_task(self._run(), name="windlass-loops")

    async def stop(self) -> None:
        """Stop. Work under way is rolled back or committed; either is safe."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            for duty in self.duties:
                await duty.close()
            await self._leave()

    async def run_until_idle(self) -> int:
        """Do every duty until none has work. Returns how much was done. For tests and simulations."""
        total = 0
        while True:
            done = [await duty.run_once() for duty in self.duties]
            count = sum(one.count for one in done)
            total += count
            # Background tasks resolve slow expressions.
            if not count and not any([await duty.resolving() for duty in self.duties]):
                return total

    def _on_bell(self, names: Sequence[str], _bell: Bell) -> None:
        self._ring(*names)

    def _ring(self, *names: str) -> None:
        self._rung.update(names)
        self._bell.set()

    async def _run(self) -> None:
        next_seen_s = 0.0
        periodic = {duty: 0.0 for duty in self.duties if duty.every_s is not None}
        losses = self._db.losses
        loop = asyncio.get_running_loop()
        while True:
            self.turned_s = loop.time()
            try:
                is_due = loop.time() >= next_seen_s or self._db.losses != losses
                if self._engine is not None and is_due:
                    losses = self._db.losses
                    await self._show(*self._engine)
                    # A server whose connections broke may now be a promoted standby.
                    await installation.look(self._db)
                    next_seen_s = loop.time() + SEEN_EVERY_S
                if self._rung:
                    rung = [duty for duty in self.duties if duty.name in self._rung]
                    self._rung.clear()
                    await self._drain(rung)
                wait_s = await self.look()
                for duty in [duty for duty, at_s in periodic.items() if loop.time() >= at_s]:
                    await self._drain((duty,))
                    periodic[duty] = loop.time() + (duty.every_s or LOOK_EVERY_S)
                self._outages.over()
            except Unavailable as error:
                self._outages.note(error)
                await asyncio.sleep(UNAVAILABLE_PAUSE_S)
                continue
            except Exception:
                # A failed duty must not end the others; its work is still due.
                log.exception("a duty of the engine failed; it will be tried again")
                await asyncio.sleep(UNAVAILABLE_PAUSE_S)
                continue
            if not self._bell.is_set() and wait_s > 0:
                try:
                    # Not wait_for: it loses a cancellation that arrives when the bell rings.
                    async with asyncio.timeout(wait_s):
                        await self._bell.wait()
                except TimeoutError:
                    continue
            self._bell.clear()

    async def look(self) -> float:
        """Do all duties that are due. Returns the seconds until the next is due."""
        row = await self._db.run(lambda connection: connection.fetchrow(self._look, *self._look_values))
        now: datetime = row["now"]
        waits = [LOOK_EVERY_S if at is None else (at - now).total_seconds() for at in row["moments"]]
        due = [duty for duty, wait_s in zip(self.duties, waits, strict=True) if wait_s <= 0]
        if due:
            # Another process may be doing the due work: asking again at once would spin.
            return 0.0 if await self._drain(due) else BUSY_PAUSE_S
        shortest_s = row["shortest_s"] or LOOK_EVERY_S / lease.LOOK_PART
        # The margin makes the next look come after the moment by PostgreSQL's clock.
        return min(LOOK_EVERY_S, lease.look_every_s(shortest_s), min(waits) + 0.005)

    async def moments(self) -> dict[str, datetime]:
        """Return when each duty is due next, by name, as far as the database can tell. For tests."""
        row = await self._db.run(lambda connection: connection.fetchrow(self._look, *self._look_values))
        pairs = zip(self.duties, row["moments"], strict=True)
        return {duty.name: at for duty, at in pairs if at is not None}

    async def _drain(self, duties: Sequence[Duty]) -> int:
        count = 0
        failed: Exception | None = None
        for duty in duties:
            is_more = True
            try:
                while is_more:
                    done = await turn(duty, self._observer)
                    self.turned_s = asyncio.get_running_loop().time()
                    count += done.count
                    is_more = done.is_more
            except Unavailable:
                raise
            except Exception as error:
                # The other duties run first: one row that cannot be handled must not stop the engine.
                failed = failed or error
        if failed is not None:
            raise failed
        return count

    async def _show(self, id: UUID, host: str, pid: int) -> None:
        await self._db.run(lambda connection: connection.execute(sql("engine_seen"), id, host, pid))

    async def _leave(self) -> None:
        if self._engine is None:
            return
        gone = self._engine[0]
        with contextlib.suppress(Exception):  # the pruner removes the row after a day
            await self._db.attempt(lambda connection: connection.execute(sql("engine_gone"), gone))


async def turn(duty: Duty, observer: Observer | None) -> Done:
    """Do one batch of a duty and report it to the observer, if there is one."""
    if observer is None:
        return await duty.run_once()
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    done = await duty.run_once()
    observer.looped(duty.name, done.count, loop.time() - start_s)
    return done
