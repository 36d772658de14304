"""Failovers under load, and the cost of each.

A round submits jobs of two steps all the time, runs them on two workers, kills the primary, and promotes the standby.
Then it waits until every remaining job has ended. It compares the facts acknowledged before the kill with the tables
afterwards:

| counted | is |
|---|---|
| `lost` | jobs whose submit was answered and that are gone |
| `run_again` | steps with a success acknowledged to their worker, whose handler ran again after that |
| `refused` | late reports that the new primary refused, of attempts whose claim was lost with the tail |
| `wrong` | effects that no acknowledged fact allows. Always 0, with any loss |
"""

from __future__ import annotations

import asyncio
import itertools
import random
import time
from collections.abc import Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec

import windlass as wl
from windlass.app.settings import Settings
from windlass.app.windlass import Windlass
from windlass.core.errors import DatabaseUnavailable
from windlass.core.outcome import Report, Success
from windlass.engine import installation
from windlass.engine.settle import Settled
from windlass.store.database import Database
from windlass.store.migrate import migrate
from windlass.testing.checker import Tables, check_tables
from windlass.testing.failover.pair import Pair
from windlass.worker.context import Context
from windlass.worker.worker import Worker

LOAD_S = 2.0
BEHIND_S = 0.7
HANDLER_MAX_S = 0.8
END_WITHIN_S = 120.0
SUBMIT_EVERY_S = 0.01
SUBMITTERS = 4
SECRET_CHECK = b"failover"
PATIENT = wl.Retry(max_attempts=20, base_s=0.1, factor=1.0)

# The open steps of open jobs, for the report of a round that does not end.
_LEFT = """
SELECT j.id, j.state, j.version, s.no, s.state, s.attempt, s.worker, w.lost_at, clock_timestamp() - w.lease_until
FROM windlass.jobs j JOIN windlass.steps s ON s.job_id = j.id LEFT JOIN windlass.workers w ON w.id = s.worker
WHERE j.finished_at IS NULL ORDER BY j.id, s.no LIMIT 20
"""

# The start times of a step's handler in this process, by job and step.
_BEGUN: dict[tuple[UUID, str], list[float]] = {}


async def _work(n: int, ctx: Context) -> int:
    _BEGUN.setdefault((UUID(str(ctx.job_id)), ctx.step), []).append(time.monotonic())
    await asyncio.sleep(random.Random(n).uniform(0, HANDLER_MAX_S))
    return n + 1


@wl.step(retry=PATIENT)
async def begin(n: int, ctx: Context) -> int:
    """Run the first step."""
    return await _work(n, ctx)


@wl.step(retry=PATIENT)
async def finish(n: int, ctx: Context) -> int:
    """Run the second step."""
    return await _work(n, ctx)


@wl.recipe
def two_steps(n: int) -> Any:
    """The recipe of every job."""
    return finish(begin(n))


app = wl.App()
app.add([two_steps])


@dataclass
class Cost:
    """The cost of one failover."""

    accepted: int = 0
    lost: int = 0
    acknowledged: int = 0
    run_again: int = 0
    refused: int = 0
    outage_s: float = 0.0
    timeline: tuple[int, int] = (0, 0)
    epoch: tuple[int, int] = (0, 0)
    wrong: list[str] = field(default_factory=list)


@dataclass
class Heard:
    """The answers that this process got before and after the failover."""

    accepted: set[UUID] = field(default_factory=set)
    # Successes that took effect: the step, and when its worker got the answer.
    done: dict[tuple[UUID, str], float] = field(default_factory=dict)
    # Effects after the failover: the worker that ended each attempt.
    ended: dict[tuple[UUID, int, int], UUID | None] = field(default_factory=dict)
    refused: int = 0
    is_after: bool = False


class Round:
    """One failover of a pair that has a migrated database."""

    def __init__(self, pair: Pair, folder: Path, numbers: itertools.count[int]) -> None:
        self._pair = pair
        self._folder = folder
        self._numbers = numbers
        self._heard = Heard()
        self._is_over = asyncio.Event()

    async def run(self) -> Cost:
        """Load, kill, promote, and count."""
        _BEGUN.clear()
        settings = Settings(home=self._folder, database_url=self._pair.dsn)
        cost = Cost()
        async with AsyncExitStack() as stack:
            windlass = await stack.enter_async_context(Windlass.connect(self._pair.dsn, settings=settings))
            await windlass.register(two_steps)
            before = await installation.serve(windlass.db, SECRET_CHECK)
            timeline = await _timeline(windlass.db)
            loops = windlass.loops()
            await loops.start()
            stack.push_async_callback(loops.stop)
            workers = [await self._start_worker(windlass, stack) for _ in range(2)]
            submitting = asyncio.gather(*(self._submit(windlass) for _ in range(SUBMITTERS)))
            await asyncio.sleep(LOAD_S)
            await self._fail_over(cost)
            await self._first_commit(windlass.db, cost)
            await asyncio.sleep(LOAD_S)
            self._is_over.set()
            await submitting
            await _until_ended(windlass.db)
            for worker in workers:
                worker.stop()
            after = await installation.read(windlass.db)
            cost.epoch = (before.epoch, after.epoch)
            cost.timeline = (timeline, await _timeline(windlass.db))
            await self._count(windlass.db, cost)
        return cost

    async def _start_worker(self, windlass: Windlass, stack: AsyncExitStack) -> Worker:
        worker = windlass.worker(app, concurrency=40)
        write = worker._write_reports

        async def told(reports: Sequence[Report]) -> Settled:
            is_after = self._heard.is_after
            settled = await write(reports)
            for report, took_effect in zip(reports, settled.took_effect, strict=True):
                self._hear(report, took_effect, is_after)
            return settled

        assert worker._settler is None
        worker._write_reports = told  # type: ignore[method-assign]
        task = asyncio.create_task(worker.run())

        async def stop() -> None:
            worker.stop()
            await task

        stack.push_async_callback(stop)
        await worker.ready.wait()
        return worker

    def _hear(self, report: Report, took_effect: bool, is_after: bool) -> None:
        heard = self._heard
        if not took_effect:
            heard.refused += 1
            return
        if isinstance(report.outcome, Success) and not heard.is_after:
            heard.done[report.job_id, ("begin", "finish")[report.no]] = time.monotonic()
        if is_after:
            heard.ended[report.job_id, report.no, report.attempt] = report.worker

    async def _submit(self, windlass: Windlass) -> None:
        """Submit all the time; an answered submit was accepted."""
        while not self._is_over.is_set():
            is_after = self._heard.is_after
            try:
                job = await windlass.submit("two_steps", n=next(self._numbers))
            except DatabaseUnavailable:
                continue
            if not is_after:
                self._heard.accepted.add(job.job_id)
            await asyncio.sleep(SUBMIT_EVERY_S)

    async def _fail_over(self, cost: Cost) -> None:
        sender = None
        if not self._pair.is_synchronous:
            sender = await self._pair.hold_back()
            await asyncio.sleep(BEHIND_S)
        self._heard.is_after = True
        cost.accepted, cost.acknowledged = len(self._heard.accepted), len(self._heard.done)
        cost.outage_s = -time.monotonic()
        await self._pair.fail_over(sender=sender)

    async def _first_commit(self, db: Database, cost: Cost) -> None:
        while True:
            try:
                await db.run(lambda connection: connection.execute("SELECT pg_logical_emit_message(true, 'w', '')"))
            except DatabaseUnavailable:
                continue
            cost.outage_s += time.monotonic()
            return

    async def _count(self, db: Database, cost: Cost) -> None:
        async with db.connection() as connection:
            tables = await Tables.read(connection)
        cost.lost = len(self._heard.accepted - tables.jobs.keys())
        for (job_id, step), at_s in self._heard.done.items():
            again = [begun for begun in _BEGUN.get((job_id, step), ()) if begun > at_s]
            cost.run_again += bool(again) and job_id in tables.jobs
        cost.refused = self._heard.refused
        cost.wrong += check_tables(tables, is_serial=False)
        cost.wrong += _foreign_ends(tables, self._heard)
        if cost.timeline[0] == cost.timeline[1]:
            cost.wrong.append(f"the timeline is {cost.timeline[1]} before and after")
        if cost.epoch[0] == cost.epoch[1]:
            cost.wrong.append(f"the epoch is {cost.epoch[1]} before and after: followers were not told")
        if self._pair.is_synchronous:
            cost.wrong += [f"{cost.lost} accepted jobs are lost"] if cost.lost else []
            cost.wrong += [f"{cost.run_again} finished steps ran again"] if cost.run_again else []


def _foreign_ends(tables: Tables, heard: Heard) -> list[str]:
    """Find attempts that a worker ended without having claimed them."""
    claimed: dict[tuple[UUID, int, int], str] = {}
    for events in tables.events.values():
        for event in events:
            if event["type"] == "step.running":
                key = (event["job_id"], event["no"], event["attempt"])
                claimed[key] = msgspec.json.decode(event["payload"])["worker"]
    return [
        f"{worker} ended attempt {key}, which {claimed.get(key)} had claimed"
        for key, worker in heard.ended.items()
        if str(worker) != claimed.get(key)
    ]


async def _timeline(db: Database) -> int:
    query = "SELECT ('x' || left(pg_walfile_name(pg_current_wal_lsn()), 8))::bit(32)::int"
    return int(await db.run(lambda connection: connection.fetchval(query)))


async def _until_ended(db: Database) -> None:
    try:
        async with asyncio.timeout(END_WITHIN_S):
            while True:
                if not await _fetch(db, "SELECT 1 FROM windlass.jobs WHERE finished_at IS NULL LIMIT 1"):
                    return
                await asyncio.sleep(0.1)
    except TimeoutError:
        left = await _fetch(db, _LEFT)
        raise TimeoutError(f"after {END_WITHIN_S:g} s these are open: {[tuple(row) for row in left]}") from None


async def _fetch(db: Database, query: str) -> list[Any]:
    rows: list[Any] = await db.run(lambda connection: connection.fetch(query))
    return rows


async def run_rounds(
    folder: Path, *, is_synchronous: bool, rounds: int, on_round: Callable[[Cost], None] = lambda _: None
) -> list[Cost]:
    """Run this many failovers of one pair in a row; return the cost of each. `on_round` is called after each."""
    pair = Pair(folder, is_synchronous=is_synchronous)
    numbers = itertools.count(1)
    costs: list[Cost] = []
    try:
        await pair.start()
        db = await Database.open(pair.dsn)
        await migrate(db)
        await db.close()
        for number in range(rounds):
            if number:
                await pair.repair()
            costs.append(await Round(pair, folder, numbers).run())
            on_round(costs[-1])
    finally:
        await pair.stop()
    return costs
