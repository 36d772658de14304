"""The database as a simulated process sees it: one real connection for all, and faults around every commit.

A unit is what commits at once: a statement by itself, or a transaction. Before a unit another process may act; inside
one nobody can. A unit may be lost before it begins, be rolled back after it was done, or be committed with its answer
lost; and at each of these moments the process may be killed instead of being told.
"""

from __future__ import annotations

import math
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Self, TypeVar

import asyncpg

from windlass.bus.port import B
from windlass.core.bell import Bell
from windlass.store.database import Database
from windlass.store.statements import sql
from windlass.testing.faults import Moment, lost_connection
from windlass.testing.sim.log import Log
from windlass.testing.sim.scheduler import Scheduler
from windlass.testing.sim.slots import Watch

T = TypeVar("T")
_MOMENTS = tuple(Moment)


@dataclass
class Faults:
    """How often a unit goes wrong. Switched off for the phase in which everything must come to its end."""

    rng: random.Random
    error_chance: float
    kill_chance: float
    amnesia_chance: float
    is_on: bool = True
    # Until when the database answers no one.
    away_until: float = 0.0
    errors: int = 0
    kills: int = 0

    def draw(self, *, can_die: bool) -> tuple[Moment | None, bool]:
        """When this unit goes wrong, if it does, and whether its process dies of it."""
        chance = self.rng.random()
        if not self.is_on or chance >= self.error_chance + self.kill_chance:
            return None, False
        moment = self.rng.choice(_MOMENTS)
        if chance < self.kill_chance and can_die:
            self.kills += 1
            return moment, True
        self.errors += 1
        return moment, False

    def draw_amnesia(self) -> bool:
        """Whether the server crashes right after what is ahead of the disk, and has forgotten it when it is back."""
        return self.is_on and self.rng.random() < self.amnesia_chance


class SimDatabase(Database):
    """See the module. One for all processes; who is asking is whoever has the turn."""

    # Real time decides nothing here.
    budget_s = math.inf
    losses = 0

    def __init__(self, real: asyncpg.Connection, scheduler: Scheduler, faults: Faults, log: Log) -> None:
        self.real = real
        self.log = log
        self.scheduler = scheduler
        self.faults = faults
        self._clock: datetime | None = None
        # Is told of every commit that may have changed the lines.
        self.watch: Watch | None = None

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        """The connection, for reads."""
        connection = SimConnection(self)
        yield connection
        connection.ring_out()

    async def attempt(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """One operation; its units are where things go wrong."""
        connection = SimConnection(self)
        result = await operation(connection)
        connection.ring_out()
        return result

    async def listen(self, kind: type[B], hear: Callable[[B], None]) -> None:
        """Bells are the scheduler's."""

    async def close(self) -> None:
        """Nothing is ours to close."""

    async def _pause(self, seconds: float) -> None:
        await self.scheduler.sleep(seconds)

    async def set_clock(self) -> None:
        """Tell the server what time it is, if that has changed."""
        moment = self.scheduler.moment()
        if moment != self._clock:
            await self.real.execute("SELECT set_config('windlass.now', $1, false)", moment.isoformat())
            self._clock = moment

    async def begin(self) -> tuple[Moment | None, bool]:
        """The point before a unit. Returns what will go wrong with it."""
        await self.scheduler.point()
        strand = self.scheduler.current
        assert strand is not None
        if self.scheduler.now < self.faults.away_until:
            raise lost_connection(Moment.BEFORE)
        moment, is_kill = self.faults.draw(can_die=strand.process.restart is not None)
        if moment is Moment.BEFORE:
            await self.lose(moment, is_kill)
        await self.set_clock()
        return moment, is_kill

    async def inspect(self, args: tuple[Any, ...], result: Any) -> None:
        """What must be true right after a statement."""
        if args[0] in _claims() and result:
            is_live = "SELECT lost_at IS NULL AND lease_until > windlass.clock() FROM windlass.workers WHERE id = $1"
            if not await self.real.fetchval(is_live, args[1]):
                self.log.violations.append(f"worker {args[1]} is not live, and was given {len(result)} attempts")
        elif args[0] in (sql("worker_mark_lost"), sql("worker_leases_put")):
            for row in await self.real.fetch("SELECT id FROM windlass.workers WHERE lost_at IS NOT NULL ORDER BY id"):
                self.log.lost.setdefault(row["id"], self.scheduler.now)

    async def looked_at(self) -> None:
        """A commit that touched the lines."""
        if self.watch is not None:
            await self.watch.look()

    def committed(self, args: tuple[Any, ...], result: Any) -> None:
        """A statement was committed, whoever hears of it."""
        is_new = args[0] == sql("worker_enlist") and result == "INSERT 0 1"
        if is_new or (args[0] == sql("worker_renew") and result is not None):
            self.log.leases.setdefault(args[1], []).append(self.scheduler.now)

    async def lose(self, moment: Moment, is_kill: bool) -> None:
        """The process is killed, or finds its connection broken."""
        if is_kill:
            await self.scheduler.die()
        raise lost_connection(moment)


class SimConnection:
    """What an operation is given in place of a connection."""

    def __init__(self, db: SimDatabase) -> None:
        self._db = db
        self.is_in_unit = False
        self.is_line_touched = False
        self._is_cut_off = False
        self._has_bells = False

    def ring(self, *bells: Bell) -> None:
        """As a real connection does: at once for what is committed, else after the operation."""
        self._has_bells = self._has_bells or bool(bells)
        if not self.is_in_unit:
            self.ring_out()

    def carried(self, bells: Sequence[Bell]) -> tuple[list[str], list[str]]:
        """None: the scheduler's bells are rung after the commit."""
        return [], []

    def ring_out(self) -> None:
        """The operation has succeeded. Each listener hears its bells, does not, or hears them twice."""
        if self._has_bells:
            self._has_bells = False
            self._db.scheduler.ring()

    async def fetch(self, *args: Any, **_: Any) -> Any:
        """Rows."""
        return await self._statement(self._db.real.fetch, args)

    async def fetchrow(self, *args: Any, **_: Any) -> Any:
        """One row."""
        return await self._statement(self._db.real.fetchrow, args)

    async def fetchval(self, *args: Any, **_: Any) -> Any:
        """One value."""
        return await self._statement(self._db.real.fetchval, args)

    async def execute(self, *args: Any, **_: Any) -> Any:
        """Nothing but the doing."""
        return await self._statement(self._db.real.execute, args)

    def transaction(self) -> SimTransaction:
        """Several statements as one unit."""
        return SimTransaction(self, self._db)

    async def _statement(self, call: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> Any:
        if self.is_in_unit:
            self.is_line_touched = self.is_line_touched or Watch.is_touched(args[0])
            result = await call(*args)
            await self._db.inspect(args, result)
            return result
        moment, is_kill = await self._db.begin()
        if self._is_cut_off:
            await self._db.lose(Moment.BEFORE, is_kill)
        if moment is Moment.INSIDE:
            await self._undone(call, args)
            await self._db.lose(moment, is_kill)
        if moment is None and _is_ahead(args) and self._db.faults.draw_amnesia():
            return await self._forgotten(call, args)
        result = await call(*args)
        self._db.committed(args, result)
        await self._db.inspect(args, result)
        if Watch.is_touched(args[0]):
            await self._db.looked_at()
        if moment is not None:
            await self._db.lose(moment, is_kill)
        return result

    async def _forgotten(self, call: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> Any:
        """It was answered, and then undone by a crash of the server."""
        rows = await self._undone(call, args)
        if args[0] == sql("job_submit_one"):
            # Whoever asks this connection whether the job is on the disk hears nothing more.
            self._is_cut_off = True
        else:
            self._db.log.forgotten.update((row["job_id"], row["no"], row["attempt"]) for row in rows)
        return rows

    async def _undone(self, call: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> Any:
        transaction = self._db.real.transaction()
        await transaction.start()
        try:
            return await call(*args)
        finally:
            await transaction.rollback()


def _claims() -> tuple[str, ...]:
    return sql("step_claim"), sql("step_claim_lane"), sql("step_claim_one")


def _is_ahead(args: tuple[Any, ...]) -> bool:
    """Whether a statement commits ahead of the disk."""
    return args[0] in _claims() or (args[0] == sql("job_submit_one") and args[24])


class SimTransaction:
    """One unit of several statements."""

    def __init__(self, connection: SimConnection, db: SimDatabase) -> None:
        self._connection = connection
        self._db = db
        self._moment: Moment | None = None
        self._is_kill = False

    async def __aenter__(self) -> Self:
        self._moment, self._is_kill = await self._db.begin()
        self._real = self._db.real.transaction()
        await self._real.start()
        self._connection.is_in_unit = True
        self._connection.is_line_touched = False
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._connection.is_in_unit = False
        if kind is not None or self._moment is Moment.INSIDE:
            await self._real.rollback()
        else:
            await self._real.commit()
            if self._connection.is_line_touched:
                await self._db.looked_at()
        if kind is None and self._moment is not None:
            await self._db.lose(self._moment, self._is_kill)
