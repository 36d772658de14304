"""The database as a simulated process sees it: one real connection for all, and faults around every commit.

A unit is a single statement or a transaction; it commits at once. Another process may act before a unit, but not inside
it. A unit may be lost before it begins, be rolled back after its work, or be committed with its answer lost. At each of
these moments the process may be killed instead.
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
from windlass.store.pool import Ringing
from windlass.store.statements import names, sql
from windlass.testing.faults import Moment, lost_connection
from windlass.testing.lock_order import out_of_order
from windlass.testing.sim.log import Log
from windlass.testing.sim.loop import here
from windlass.testing.sim.scheduler import Scheduler
from windlass.testing.sim.slots import Watch

T = TypeVar("T")
_MOMENTS = tuple(Moment)
# How often an answer is delayed while its process does other work, and for how long.
LATE_CHANCE = 0.1
LATE_S = (1.0, 1.0, 20.0)
# A process with answers this slow is not expected to be on time.
SLOW_S = 1.0


class RealConnection:
    """The one real connection. A statement of a simulated loop is awaited on the real loop."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self.connection = connection

    async def fetch(self, *args: Any) -> Any:
        """Return rows."""
        return await _really(lambda: self.connection.fetch(*args))

    async def fetchrow(self, *args: Any) -> Any:
        """Return one row."""
        return await _really(lambda: self.connection.fetchrow(*args))

    async def fetchval(self, *args: Any) -> Any:
        """Return one value."""
        return await _really(lambda: self.connection.fetchval(*args))

    async def execute(self, *args: Any) -> Any:
        """Run a statement without a result."""
        return await _really(lambda: self.connection.execute(*args))

    def transaction(self) -> RealTransaction:
        """Return a transaction, whose statements commit at once."""
        return RealTransaction(self.connection.transaction())


class RealTransaction:
    """A transaction of the real connection."""

    def __init__(self, transaction: Any) -> None:
        self._transaction = transaction

    async def start(self) -> None:
        """Begin the transaction."""
        await _really(self._transaction.start)

    async def commit(self) -> None:
        """Commit."""
        await _really(self._transaction.commit)

    async def rollback(self) -> None:
        """Roll back."""
        await _really(self._transaction.rollback)


async def _really(call: Callable[[], Awaitable[T]]) -> T:
    loop = here()
    return await (call() if loop is None else loop.real(call))


@dataclass
class Faults:
    """The chances that a unit fails. Switched off for the phase in which every job must end."""

    rng: random.Random
    error_chance: float
    kill_chance: float
    amnesia_chance: float
    is_on: bool = True
    # Until when the database does not answer.
    away_until: float = 0.0
    errors: int = 0
    kills: int = 0

    def draw(self, *, can_die: bool) -> tuple[Moment | None, bool]:
        """Draw the moment at which this unit fails, if it does, and whether its process dies."""
        drawn = self.rng.random()
        if not self.is_on or drawn >= self.error_chance + self.kill_chance:
            return None, False
        moment = self.rng.choice(_MOMENTS)
        if drawn < self.kill_chance and can_die:
            self.kills += 1
            return moment, True
        self.errors += 1
        return moment, False

    def draw_amnesia(self) -> bool:
        """Draw whether the server crashes right after a commit that is ahead of the disk, and loses it."""
        return self.is_on and self.rng.random() < self.amnesia_chance


class SimDatabase(Database):
    """The database of all simulated processes; the current strand belongs to the calling process."""

    # Real time decides nothing here.
    budget_s = math.inf

    def __init__(self, real: RealConnection, scheduler: Scheduler, faults: Faults, log: Log) -> None:
        self.real = real
        self.log = log
        self.scheduler = scheduler
        self.faults = faults
        self._clock: datetime | None = None
        # Notified of every commit that may have changed the slots.
        self.watch: Watch | None = None

    @property
    def losses(self) -> int:
        """The number of connections that broke under the current process."""
        current = self.scheduler.current
        return 0 if current is None else current.process.losses

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Any]:
        """Yield the connection, for reads."""
        connection = SimConnection(self)
        yield connection
        connection.ring_out()

    async def attempt(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        """Run one operation; its units may fail."""
        connection = SimConnection(self)
        result = await operation(connection)
        connection.ring_out()
        return result

    async def listen(self, kind: type[B], hear: Callable[[B], None]) -> None:
        """Listen through the scheduler, which delivers the bells."""
        self.scheduler.listen(kind, hear)

    async def close(self) -> None:
        """Do nothing: the connection belongs to the simulation."""

    async def _pause(self, seconds: float) -> None:
        await self.scheduler.sleep(seconds)

    async def set_clock(self) -> None:
        """Set the server's clock, if the virtual time has changed."""
        moment = self.scheduler.moment()
        if moment != self._clock:
            await self.real.execute("SELECT set_config('windlass.now', $1, false)", moment.isoformat())
            self._clock = moment

    async def begin(self) -> tuple[Moment | None, bool]:
        """Reach the point before a unit; return how the unit will fail."""
        await self.scheduler.point()
        strand = self.scheduler.current
        assert strand is not None
        if self.scheduler.now < self.faults.away_until:
            self._lost()
            raise lost_connection(Moment.BEFORE)
        moment, is_kill = self.faults.draw(can_die=strand.process.restart is not None)
        if moment is Moment.BEFORE:
            await self.lose(moment, is_kill)
        await self.set_clock()
        return moment, is_kill

    async def inspect(self, args: tuple[Any, ...], result: Any) -> None:
        """Check the rules that hold right after a statement."""
        if args[0] in _claims() and result:
            is_live = "SELECT lost_at IS NULL AND lease_until > windlass.clock() FROM windlass.workers WHERE id = $1"
            worker = args[_claims()[args[0]]]
            if not await self.real.fetchval(is_live, worker):
                self.log.violations.append(f"worker {worker} is not live, and was given {len(result)} attempts")
        elif args[0] in (sql("worker_mark_lost"), sql("worker_leases_put")):
            for row in await self.real.fetch("SELECT id FROM windlass.workers WHERE lost_at IS NOT NULL ORDER BY id"):
                self.log.lost.setdefault(row["id"], self.scheduler.now)
        elif args[0] == sql("step_waiting") and result["queues"] and self.scheduler.current is not None:
            looked = self.scheduler.current.process.looked
            if looked is not None:
                await looked(result["queues"])

    async def looked_at(self) -> None:
        """Check the slots after a commit that touched them."""
        if self.watch is not None:
            await self.watch.look()

    def committed(self, args: tuple[Any, ...], result: Any) -> None:
        """Record a committed statement, also if its answer is lost."""
        is_new = args[0] == sql("worker_enlist") and result == "INSERT 0 1"
        if is_new or (args[0] == sql("worker_renew") and result is not None):
            self.log.leases.setdefault(args[1], []).append(self.scheduler.now)

    async def lose(self, moment: Moment, is_kill: bool) -> None:
        """Kill the process, or break its connection."""
        if is_kill:
            await self.scheduler.die()
        self._lost()
        raise lost_connection(moment)

    def _lost(self) -> None:
        current = self.scheduler.current
        assert current is not None
        current.process.losses += 1
        current.process.trouble(self.scheduler.now)

    async def answer(self) -> None:
        """Delay the answer; a process with a loop may do other work meanwhile."""
        faults = self.faults
        if faults.is_on and here() is not None and faults.rng.random() < LATE_CHANCE:
            late_s = faults.rng.uniform(0.0, faults.rng.choice(LATE_S))
            if late_s > SLOW_S and (current := self.scheduler.current) is not None:
                current.process.trouble(self.scheduler.now + late_s)
            await self.scheduler.sleep(late_s)


class SimConnection(Ringing):
    """The connection that an operation gets."""

    def __init__(self, db: SimDatabase) -> None:
        self._db = db
        self._bells = []
        self.on_ring = self._rung
        self.is_in_unit = False
        self.is_line_touched = False
        # The statements of the current transaction.
        self.statements: list[str] = []
        self._is_cut_off = False

    def is_in_transaction(self) -> bool:
        """Tell whether the written rows are not committed yet."""
        return self.is_in_unit

    def _rung(self, bells: Sequence[Bell]) -> None:
        """Ring the bells: each listener hears each of them once, twice, or not at all.

        A bell sent before its commit is also heard before it: its listeners look, find nothing and keep waiting.
        """
        if not self.is_in_unit:
            self._db.scheduler.ring(bells)

    def carried(self, bells: Sequence[Bell]) -> tuple[list[str], list[str]]:
        """Return none: the scheduler rings its bells after the commit."""
        return [], []

    async def fetch(self, *args: Any, **_: Any) -> Any:
        """Return rows."""
        return await self._statement(self._db.real.fetch, args)

    async def fetchrow(self, *args: Any, **_: Any) -> Any:
        """Return one row."""
        return await self._statement(self._db.real.fetchrow, args)

    async def fetchval(self, *args: Any, **_: Any) -> Any:
        """Return one value."""
        return await self._statement(self._db.real.fetchval, args)

    async def execute(self, *args: Any, **_: Any) -> Any:
        """Run a statement without a result."""
        return await self._statement(self._db.real.execute, args)

    def transaction(self) -> SimTransaction:
        """Return a transaction, which is one unit."""
        return SimTransaction(self, self._db)

    async def _statement(self, call: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> Any:
        if self.is_in_unit:
            self.is_line_touched = self.is_line_touched or Watch.is_touched(args[0])
            self.statements.append(args[0])
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
        await self._db.answer()
        return result

    async def _forgotten(self, call: Callable[..., Awaitable[Any]], args: tuple[Any, ...]) -> Any:
        """Answer the statement, then undo it by a crash of the server, which breaks all connections."""
        rows = await self._undone(call, args)
        for process in {strand.process: None for strand in self._db.scheduler.strands}:
            process.losses += 1
        if args[0] == sql("job_submit_one"):
            # A later question on this connection whether the job is on the disk gets no answer.
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


def _claims() -> dict[str, int]:
    """Return the claim statements, and the position of the worker: the values follow the text in the order of their
    names.
    """
    return {sql(name): 1 + names(name).index("worker") for name in ("step_claim", "step_claim_lane", "step_claim_one")}


# The position of the submit's flag.
_AHEAD = 1 + names("job_submit_one").index("is_ahead")


def _is_ahead(args: tuple[Any, ...]) -> bool:
    """Tell whether a statement commits ahead of the disk."""
    return args[0] in _claims() or (args[0] == sql("job_submit_one") and args[_AHEAD])


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
        self._connection.statements = []
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        self._connection.is_in_unit = False
        if (wrong := out_of_order(self._connection.statements)) is not None:
            self._db.log.violations.append(wrong)
        if kind is not None or self._moment is Moment.INSIDE:
            await self._real.rollback()
        else:
            await self._real.commit()
            if self._connection.is_line_touched:
                await self._db.looked_at()
        if kind is None and self._moment is not None:
            await self._db.lose(self._moment, self._is_kill)
        if kind is None:
            await self._db.answer()
