"""Runs the engine's duties: at once when a bell rings, at the time the database names, and now and then regardless.

One query tells when every duty is next due, so an idle process asks the database once in LOOK_EVERY_S seconds. Bells
make it quick; losing them all makes it no more than that much slower.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Sequence
from datetime import datetime
from uuid import UUID

from windlass.core import lease
from windlass.core.bell import AnswerDue, GrantDue, RouteDue, TimerSet
from windlass.core.errors import Unavailable
from windlass.core.template import Resolver
from windlass.engine import installation
from windlass.engine.backlog import BACKLOG_MAX, Backlog
from windlass.engine.loops.answerer import Answerer
from windlass.engine.loops.duty import Done, Duty
from windlass.engine.loops.expirer import Expirer
from windlass.engine.loops.granter import Granter
from windlass.engine.loops.pruner import RETENTION_S, Pruner
from windlass.engine.loops.relay import Relay
from windlass.engine.loops.rescuer import GRACE_S, Rescuer
from windlass.engine.loops.router import FAN_OUT_MAX, Router
from windlass.engine.loops.waker import Waker
from windlass.pure.observer import Observer
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.outage import OutageLog
from windlass.store.statements import sql

LOOK_EVERY_S = 5.0
PRUNE_EVERY_S = 60.0
UNAVAILABLE_PAUSE_S = 1.0
BUSY_PAUSE_S = 0.1
SEEN_EVERY_S = 10.0

log = logging.getLogger("windlass.engine")


class Loops:
    """The engine's duties as one background task.

    `engine` is its id, host and process, by which people and health checks see it; without one it is not seen.
    `turned_s` is when, by the loop's time, it last had a turn: one that is stuck stands still.
    """

    def __init__(
        self,
        db: Database,
        artifacts: Artifacts,
        resolver: Resolver,
        *,
        new_id: Callable[[], UUID],
        chance: Callable[[], float],
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
        self.router = Router(
            db,
            artifacts,
            resolver,
            new_id,
            fan_out_max=fan_out_max,
            backlog=Backlog(db, backlog_max, lambda: asyncio.get_running_loop().time()),
            on_resolved=lambda: self._ring(self.router),
        )
        self.relay = Relay(db, artifacts, resolver, chance)
        self.answerer = Answerer(db, chance)
        self.granter = Granter(db)
        self.waker = Waker(db)
        self.rescuer = Rescuer(db, chance)
        self.expirer = Expirer(db)
        self.pruner = Pruner(db, retention_s)
        self._bell = asyncio.Event()
        # The names of the duties whose bells rang.
        self._rung: set[str] = set()
        self._task: asyncio.Task[None] | None = None

    @property
    def duties(self) -> Sequence[Duty]:
        """Every duty, in the order in which one makes work for the next."""
        return (
            self.rescuer, self.waker, self.expirer, self.relay, self.answerer, self.router, self.granter, self.pruner
        )  # fmt: skip

    async def start(self) -> None:
        """Begin; returns once the bells are heard."""
        await self._db.listen(AnswerDue, lambda _: self._ring(self.answerer))
        await self._db.listen(RouteDue, lambda _: self._ring(self.relay, self.router))
        await self._db.listen(GrantDue, lambda _: self._ring(self.granter))
        await self._db.listen(TimerSet, lambda _: self._bell.set())
        self._task = asyncio.create_task(self._run(), name="windlass-loops")

    async def stop(self) -> None:
        """End. Whatever was under way is rolled back or done; either is safe."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)
            self._task = None
            await self.router.close()
            await self._leave()

    async def run_until_idle(self) -> int:
        """Do every duty until none has anything to do; how much was done. For tests and simulations."""
        total = 0
        while True:
            done = [await duty.run_once() for duty in self.duties]
            count = sum(one.count for one in done)
            total += count
            # Expressions that take long are resolved beside the duties.
            if not count and not await self.router.resolving():
                return total

    def _ring(self, *duties: Duty) -> None:
        self._rung.update(duty.name for duty in duties)
        self._bell.set()

    async def _run(self) -> None:
        next_prune_s = next_seen_s = 0.0
        losses = self._db.losses
        loop = asyncio.get_running_loop()
        while True:
            self.turned_s = loop.time()
            try:
                is_due = loop.time() >= next_seen_s or self._db.losses != losses
                if self._engine is not None and is_due:
                    losses = self._db.losses
                    await self._show(*self._engine)
                    # A server whose connections broke may be a promoted standby now.
                    await installation.look(self._db)
                    next_seen_s = loop.time() + SEEN_EVERY_S
                if self._rung:
                    rung = [duty for duty in self.duties if duty.name in self._rung]
                    self._rung.clear()
                    await self._drain(rung)
                wait_s = await self.look()
                if loop.time() >= next_prune_s:
                    await self._drain((self.pruner,))
                    next_prune_s = loop.time() + PRUNE_EVERY_S
                self._outages.over()
            except Unavailable as error:
                self._outages.note(error)
                await asyncio.sleep(UNAVAILABLE_PAUSE_S)
                continue
            except Exception:
                # A duty that fails must not end the others; what it did not do is still due.
                log.exception("a duty of the engine failed; it will be tried again")
                await asyncio.sleep(UNAVAILABLE_PAUSE_S)
                continue
            if not self._bell.is_set() and wait_s > 0:
                try:
                    # Not wait_for: it forgets that it was cancelled when the bell rings at that moment.
                    async with asyncio.timeout(wait_s):
                        await self._bell.wait()
                except TimeoutError:
                    continue
            self._bell.clear()

    async def look(self) -> float:
        """Do what is due, and say how long nothing will be."""
        row = await self._db.run(lambda connection: connection.fetchrow(sql("due_times"), lease.GAP_PART))
        now: datetime = row["now"]

        def wait_s(at: datetime | None, grace_s: float = 0.0) -> float:
            return LOOK_EVERY_S if at is None else (at - now).total_seconds() + grace_s

        shortest_s = row["shortest_s"] or LOOK_EVERY_S / lease.LOOK_PART
        has_lost = row["has_lost"] or lease.is_gap(row["gap_s"], shortest_s)
        waits: dict[Duty, float] = {
            self.waker: wait_s(row["waker"]),
            self.expirer: wait_s(row["expirer"]),
            self.rescuer: 0.0 if has_lost else min(wait_s(row["lease"]), wait_s(row["running"], GRACE_S)),
            self.relay: 0.0 if row["has_inbox"] else LOOK_EVERY_S,
            self.answerer: 0.0 if row["has_answers"] else LOOK_EVERY_S,
            self.router: 0.0 if row["has_ready"] else LOOK_EVERY_S,
            self.granter: 0.0 if row["has_line"] else wait_s(row["granter"]),
        }
        due = [duty for duty, wait in waits.items() if wait <= 0]
        if due:
            # Something due that could not be done (another process is at it) must not be asked for in a tight loop.
            return 0.0 if await self._drain(due) else BUSY_PAUSE_S
        # A hair late is right on time: PostgreSQL compares with its own clock.
        return min(LOOK_EVERY_S, lease.look_every_s(shortest_s), min(waits.values()) + 0.005)

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
                # The others are done first: one row that cannot be handled must not stop the engine.
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
        with contextlib.suppress(Exception):  # it is forgotten by itself after a day
            await self._db.attempt(lambda connection: connection.execute(sql("engine_gone"), gone))


async def turn(duty: Duty, observer: Observer | None) -> Done:
    """One turn of a duty, told to whoever measures it."""
    if observer is None:
        return await duty.run_once()
    loop = asyncio.get_running_loop()
    start_s = loop.time()
    done = await duty.run_once()
    observer.looped(duty.name, done.count, loop.time() - start_s)
    return done
