"""One seed: start the processes, run them under faults, then let every job end, and check."""

from __future__ import annotations

import asyncio
import hashlib
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, fields, replace
from typing import TypeVar

import asyncpg
import uvloop

from windlass.core.gate import Gate
from windlass.core.plan import Plan
from windlass.engine import providers, recipes
from windlass.engine.providers import ProviderRow
from windlass.store.database import Database
from windlass.testing.checker import Tables
from windlass.testing.postgres import TABLES, fresh_database
from windlass.testing.sim.asking import asking_library, check_asking, is_asking, run_meddler, run_voters
from windlass.testing.sim.cast import Stage, run_controller, run_engine, run_outsider, run_submitter, wishes_of
from windlass.testing.sim.checker import check
from windlass.testing.sim.crew import Crew
from windlass.testing.sim.database import Faults, RealConnection, SimDatabase
from windlass.testing.sim.echoes import run_echo
from windlass.testing.sim.followed import check_followed, run_clerk, with_webhook
from windlass.testing.sim.log import Log, overheard
from windlass.testing.sim.outside import run_poller, run_receiver, run_signaller, run_treasurer, with_budget
from windlass.testing.sim.plans import (
    HANDLERS,
    OUTER_PLANS,
    PARTS,
    PLANS,
    UNDO_HANDLERS,
    UNDO_PLANS,
    library,
    outer_library,
    undo_library,
)
from windlass.testing.sim.reckoning import check_outside, still_open
from windlass.testing.sim.scheduler import START, Process, Scheduler
from windlass.testing.sim.skew import SkewedIds
from windlass.testing.sim.slots import Watch, too_often
from windlass.testing.sim.small import small_batches
from windlass.testing.sim.undone import check_undo
from windlass.testing.sim.world import PROVIDERS, RECEIVER, World
from windlass.views import explain

T = TypeVar("T")

# All retries, timers, hung attempts and lost workers of a simulated job are over long before.
END_WITHIN_S = 3600.0
END_WITHIN_TURNS = 6_000
LOOK_EVERY_TURNS = 25
POISON_CHANCE = 0.25
# Seeds from here on run recipes whose steps can be undone. The histories of all other seeds stay as they were.
UNDO_SEEDS = 10_000_000
_CLEARED = [table for table in TABLES if table not in ("plans", "recipes")]


@dataclass(frozen=True)
class Knobs:
    """The chances and sizes of a run; drawn from the seed, and printed with it."""

    workers: int
    engines: int
    jobs: int
    turns: int
    error_chance: float
    kill_chance: float
    pause_chance: float
    bell_chance: float
    amnesia_chance: float
    skew_s: float
    # Whether jobs use providers, and how often those fail.
    is_outer: bool
    trouble: float
    # How often the database is away, and whether each kind of worker has only a part of the handlers.
    outage_chance: float
    is_split: bool
    # How often a worker is stopped.
    stop_chance: float
    # Whether some steps kill the processes that run them, and heartbeats outlive their workers.
    has_poison: bool = False
    # Whether the recipes undo their effects.
    has_undo: bool = False

    @classmethod
    def of(cls, seed: int) -> Knobs:
        """Return the knobs of this seed."""
        return cls.draw(random.Random(f"seed {seed}")).undoing(seed)

    def undoing(self, seed: int) -> Knobs:
        """Return the knobs with the recipes of this seed."""
        has_undo = seed >= UNDO_SEEDS and not is_asking(seed)
        return replace(self, is_outer=False, has_undo=True) if has_undo else self

    @classmethod
    def draw(cls, rng: random.Random) -> Knobs:
        """Draw the knobs."""
        drawn = cls(
            workers=rng.choice([1, 2, 2, 3]),
            engines=rng.choice([1, 1, 2]),
            jobs=rng.choice([1, 2, 4, 6, 9]),
            turns=rng.choice([80, 200, 350, 600]),
            error_chance=rng.choice([0.0, 0.01, 0.03, 0.08]),
            kill_chance=rng.choice([0.0, 0.005, 0.015, 0.03]),
            pause_chance=rng.choice([0.0, 0.005, 0.02]),
            bell_chance=rng.choice([0.0, 0.5, 1.0]),
            amnesia_chance=rng.choice([0.0, 0.0, 0.1]),
            skew_s=rng.choice([0.0, 40.0, 3600.0]),
            is_outer=rng.random() < 0.4,
            trouble=rng.choice([0.05, 0.2, 0.4]),
            outage_chance=rng.choice([0.0, 0.0, 0.005, 0.015]),
            is_split=rng.random() < 0.5,
            stop_chance=rng.choice([0.0, 0.003, 0.01]),
        )
        # Drawn separately, so that the other draws of a seed stay the same.
        drawn = replace(drawn, has_poison=random.Random(str(drawn)).random() < POISON_CHANCE)
        # A run with providers needs more turns.
        return replace(drawn, turns=drawn.turns + 150, jobs=drawn.jobs + 2) if drawn.is_outer else drawn

    def __str__(self) -> str:
        return " ".join(f"{one.name}={getattr(self, one.name)}" for one in fields(self))


@dataclass
class Outcome:
    """The result of a seed. `history` is the same whenever the seed is run again."""

    seed: int
    knobs: Knobs
    wrong: list[str]
    history: str
    jobs: int = 0
    turns: int = 0
    simulated_s: float = 0.0
    errors: int = 0
    kills: int = 0
    pauses: int = 0
    states: dict[str, int] = field(default_factory=dict)


def run_seeds(seeds: Sequence[int], server: str | None = None) -> list[Outcome]:
    """Run these seeds in this process, on a new database on the server of this DSN."""

    async def run() -> list[Outcome]:
        async with Simulation.open(server) as simulation:
            return [await simulation.run(seed) for seed in seeds]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        return runner.run(run())


class Simulation:
    """Runs seeds, one after the other, on one database."""

    def __init__(self, connection: asyncpg.Connection, plans: list[Plan]) -> None:
        self._connection = connection
        self._plans = plans
        self._runs = 0
        self._log = Log()

    @classmethod
    @asynccontextmanager
    async def open(cls, server: str | None = None) -> AsyncIterator[Simulation]:
        """Create a database, on the server of this DSN or on a throwaway server, and register the recipes."""
        db = await Database.open(await fresh_database(server), max_size=1)
        try:
            plans = library() + outer_library() + undo_library() + asking_library()
            for plan in plans:
                await recipes.register(db, plan)
            async with db.connection() as connection:
                simulation = cls(connection, plans)
                with small_batches(), overheard(lambda: simulation._log):
                    yield simulation
        finally:
            await db.close()

    async def run(self, seed: int) -> Outcome:
        """Run one seed."""
        await self._clear()
        run = _Run(self._connection, self._plans, seed)
        self._log = run.log
        return await run.run()

    async def story(self) -> str:
        """Return all events of the last run and of its providers, in order of time."""
        rows = await self._connection.fetch(
            "SELECT e.at, e.job_id, j.recipe, e.seq, e.type, e.source, e.no, e.attempt, e.payload "
            "FROM windlass.events e JOIN windlass.jobs j ON j.id = e.job_id ORDER BY e.at, e.job_id, e.seq"
        )
        told = [((row["at"] - START).total_seconds(), _line(row)) for row in rows]
        both = sorted(told + self._log.outside, key=lambda one: one[0])
        return "\n".join(f"{at:>10.3f} {text}" for at, text in both)

    async def _clear(self) -> None:
        self._runs += 1
        if self._runs % 40 == 0:
            await self._connection.execute("TRUNCATE " + ", ".join(f"windlass.{table}" for table in _CLEARED))
        else:
            await self._connection.execute("; ".join(f"DELETE FROM windlass.{table}" for table in _CLEARED))
        await self._connection.execute("UPDATE windlass.installation SET looked_at = $1, back_at = NULL", START)


def _line(row: asyncpg.Record) -> str:
    return (
        f"{row['job_id']} {row['recipe']:<10} {row['seq']:>3} {row['type']:<16} "
        f"{'' if row['no'] is None else row['no']!s:>3} {row['attempt'] or '':>2} {row['source']:<9} "
        f"{row['payload'] or ''}"
    )


class _Run:
    def __init__(self, connection: asyncpg.Connection, plans: list[Plan], seed: int) -> None:
        self.seed = seed
        self.connection = connection
        rng = random.Random(f"seed {seed}")
        self.knobs = knobs = Knobs.draw(rng).undoing(seed)
        self.rng = random.Random(rng.getrandbits(64))
        self.scheduler = Scheduler(random.Random(rng.getrandbits(64)), knobs.bell_chance)
        self.faults = Faults(
            random.Random(rng.getrandbits(64)), knobs.error_chance, knobs.kill_chance, knobs.amnesia_chance
        )
        self.log = Log(has_poison=knobs.has_poison)
        self.ids = SkewedIds(self.scheduler, random.Random(rng.getrandbits(64)), knobs.skew_s)
        real = RealConnection(connection)
        self.db = SimDatabase(real, self.scheduler, self.faults, self.log)
        chances = random.Random(rng.getrandbits(64))
        self.world = World(self.scheduler, self.faults, chances, self.log, real, knobs.trouble)
        chosen = _sample(self.rng, plans, knobs)
        self.is_asking = is_asking(seed)
        asking = plans[PLANS + OUTER_PLANS + UNDO_PLANS :]
        self.stage = Stage(self.db, self.log, self.ids, asking if self.is_asking else chosen)
        self.stage.cancel_chance = 0.8 if knobs.is_outer else 0.4
        if knobs.is_outer:
            self.db.watch = Watch(real, self.log, plans)
        self.pauses = 0
        self.processes: list[Process] = []
        self.crew = Crew(self.stage, self.processes, self.world.providers, self._fork())

    async def run(self) -> Outcome:
        self._people()
        if self.knobs.is_outer:
            await self._outside()
        is_split = self.knobs.is_split and self.knobs.workers > 1
        for number in range(self.knobs.workers):
            handlers = PARTS[number % 2] if is_split else HANDLERS
            self.crew.start(f"worker {number}", handlers + UNDO_HANDLERS if self.knobs.has_undo else handlers)
        for number in range(self.knobs.engines):
            self._engine(f"engine {number}", 0.0)
        while self.scheduler.turns < self.knobs.turns and not self.scheduler.crashes:
            await self.scheduler.turn()
            self._maybe_pause()
            self._maybe_outage()
            if self.rng.random() < self.knobs.stop_chance:
                self.crew.stop_one()
        wrong = await self._come_to_an_end()
        self.log.is_over = True
        self.scheduler.clear()
        self.crew.clear()
        tables = await Tables.read(self.connection)
        wrong += self.scheduler.crashes + check(tables, self.log)
        wrong += await check_undo(self.connection, tables, self.log)
        if self.knobs.is_outer:
            wrong += await check_outside(self.connection, tables, self.log, self.world)
            wrong += self._rates()
        if self.is_asking:
            wrong += await check_asking(self.connection, tables)
        wrong += await check_followed(_Plain(self.connection), self.connection, tables)
        return self._outcome(tables, wrong)

    def _fork(self) -> random.Random:
        return random.Random(self.rng.getrandbits(64))

    def _people(self) -> None:
        rng = self._fork()
        wishes = [with_webhook(wish) for wish in wishes_of(self.stage, rng, self.knobs.jobs)]
        if self.knobs.is_outer:
            wishes = [with_budget(wish, rng) for wish in wishes]
        self._keep_up("submitter", lambda rng: [run_submitter(self.stage, rng, wishes)], 0.0)
        self._keep_up("controller", lambda rng: [run_controller(self.stage, rng)], 0.0)
        self._keep_up("outsider", lambda rng: [run_outsider(self.stage, rng)], 0.0)
        self._keep_up("echo", lambda rng: [run_echo(self.stage, rng)], 0.0)
        if self.is_asking:
            self._keep_up("voters", lambda rng: [run_voters(self.stage, rng)], 0.0)
            self._keep_up("meddler", lambda rng: [run_meddler(self.stage, rng)], 0.0)
        if not self.knobs.is_outer:
            self._keep_up("clerk", lambda rng: [run_clerk(self.stage, rng)], 0.0)

    async def _outside(self) -> None:
        rows = [ProviderRow(name, places, rate) for name, (places, rate) in PROVIDERS.items()]
        await providers.sync(_Plain(self.connection), rows)
        self._keep_up(RECEIVER, lambda rng: [run_receiver(self.stage, self.world, rng)], 0.0)
        self._keep_up("poller", lambda rng: [run_poller(self.stage, self.world, rng)], 0.0)
        self._keep_up("signaller", lambda rng: [run_signaller(self.stage, rng)], 0.0)
        self._keep_up("treasurer", lambda rng: [run_treasurer(self.stage, rng)], 0.0)

    def _rates(self) -> list[str]:
        grants = self.db.watch.grants if self.db.watch is not None else {}
        found = {name: Gate(rate) for name, (_, rate) in PROVIDERS.items()}
        return [
            f"{name} is asked more often than {gate.rate} times a second"
            for name, gate in found.items()
            if too_often(grants.get(name, []), gate.rate, gate.burst)
        ]

    def _engine(self, name: str, after_s: float) -> None:
        self._keep_up(name, lambda rng: [run_engine(self.stage, rng)], after_s)

    def _keep_up(self, name: str, strands: object, after_s: float) -> None:
        """Start a process, and start it again a little later whenever it was killed."""
        rng = self._fork()
        process = Process(name)

        def restart() -> None:
            self.processes.remove(process)
            self._keep_up(name, strands, rng.uniform(0.1, 5))

        process.restart = restart
        self.processes.append(process)
        for body in strands(rng):  # type: ignore[operator]
            self.scheduler.spawn(process, body, after_s)

    def _maybe_pause(self) -> None:
        """Stop a process for a while, as SIGSTOP does: often for longer than a lease lasts."""
        if self.rng.random() < self.knobs.pause_chance:
            self.pauses += 1
            # Sometimes all processes, as when a machine sleeps.
            chosen = self.processes if self.rng.random() < 0.2 else [self.rng.choice(self.processes)]
            until = self.scheduler.now + self.rng.choice([1, 6, 14, 20, 45])
            for process in chosen:
                process.paused_until = max(process.paused_until, until)
                process.trouble(until)

    def _maybe_outage(self) -> None:
        """Take the database away for a while, often for longer than a lease lasts."""
        now = self.scheduler.now
        if now >= self.faults.away_until and self.rng.random() < self.knobs.outage_chance:
            self.faults.away_until = now + self.rng.choice([3, 12, 20, 60])
            self.log.outages.append((now, self.faults.away_until))

    async def _come_to_an_end(self) -> list[str]:
        """End the faults: every accepted job must now end, and soon."""
        self.faults.is_on = False
        self.log.calm_at = self.scheduler.now
        if self.faults.away_until > self.scheduler.now:
            self.faults.away_until = self.scheduler.now
            self.log.outages[-1] = (self.log.outages[-1][0], self.scheduler.now)
        self.stage.is_kind = True
        for process in self.processes:
            process.paused_until = 0.0
        until = self.scheduler.now + END_WITHIN_S
        last = self.scheduler.turns + END_WITHIN_TURNS
        while not self.scheduler.crashes:
            if self.scheduler.turns % LOOK_EVERY_TURNS == 0 and not await self._open_jobs():
                if not await self._is_open_outside():
                    return []
                self._send_home()
            if self.scheduler.now > until or self.scheduler.turns > last:
                return await self._stuck()
            await self.scheduler.turn()
        return []

    async def _open_jobs(self) -> int:
        left = await self.connection.fetchval(
            "SELECT (SELECT count(*) FROM windlass.jobs WHERE finished_at IS NULL)"
            " + (SELECT count(*) FROM windlass.inbox)"
        )
        submitting = sum(strand.process.name == "submitter" for strand in self.scheduler.strands)
        return int(left) + submitting

    async def _is_open_outside(self) -> bool:
        return self.knobs.is_outer and await still_open(self.connection) > 0

    def _send_home(self) -> None:
        """Kill the processes that are not needed while providers finish, since all jobs have ended."""
        needed = ("engine", "poller", RECEIVER)
        for process in {strand.process: None for strand in self.scheduler.strands}:
            if not process.name.startswith(needed) and not process.is_busy():
                process.restart = None
                self.scheduler.kill(process)

    async def _stuck(self) -> list[str]:
        wrong = []
        db = _Plain(self.connection)
        rows = await self.connection.fetch("SELECT id, state FROM windlass.jobs WHERE finished_at IS NULL ORDER BY id")
        for row in rows:
            try:
                reasons = "; ".join(f"{r.step} is {r.state}: {r.because}" for r in await explain.why(db, row["id"]))
            except Exception as error:
                reasons = f"why cannot be said ({error!r})"
            wrong.append(f"job {row['id']} does not end, and is {row['state']}: {reasons}")
        return wrong or ["the run does not come to an end"]

    def _outcome(self, tables: Tables, wrong: list[str]) -> Outcome:
        digest = hashlib.sha256()
        for events in tables.events.values():
            for event in events:
                # Without the transaction id: the server counts the transactions of all its databases.
                digest.update(repr([value for name, value in event.items() if name != "txid"]).encode())
        for rows in tables.steps.values():
            for row in rows:
                digest.update(repr((row["job_id"], row["no"], row["state"], row["attempt"], row["output"])).encode())
        digest.update(repr((self.scheduler.turns, self.scheduler.now, self.log.outside)).encode())
        states: dict[str, int] = {}
        for job in tables.jobs.values():
            states[job["state"]] = states.get(job["state"], 0) + 1
        return Outcome(
            self.seed,
            self.knobs,
            wrong,
            digest.hexdigest(),
            len(tables.jobs),
            self.scheduler.turns,
            self.scheduler.now,
            self.faults.errors,
            self.faults.kills,
            self.pauses,
            states,
        )


def _sample(rng: random.Random, plans: list[Plan], knobs: Knobs) -> list[Plan]:
    plain, outer, rest = plans[:PLANS], plans[PLANS : PLANS + OUTER_PLANS], plans[PLANS + OUTER_PLANS :]
    if knobs.has_undo:
        return rng.sample(rest[:UNDO_PLANS], 4)
    return rng.sample(outer, 3) + rng.sample(plain, 1) if knobs.is_outer else rng.sample(plain, 4)


class _Plain(Database):
    """The bare connection as a Database, for the final checks."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[asyncpg.Connection]:
        yield self._connection

    async def attempt(self, operation: Callable[[asyncpg.Connection], Awaitable[T]]) -> T:
        return await operation(self._connection)
