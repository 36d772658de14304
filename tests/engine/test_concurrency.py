"""The simulation's cast on many connections at once: real locks, real overlaps, twenty times as fast as life.

The simulation lets one operation act at a time; here they meet inside PostgreSQL. The same checker looks at the end.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta

import asyncpg
import pytest

from tests.sim.mutants import change_sql
from windlass.app.entropy import Ids
from windlass.engine import claim, recipes
from windlass.store import drafts
from windlass.store.database import Database
from windlass.testing.sim.cast import Stage, run_controller, run_engine, run_outsider, run_submitter, wishes_of
from windlass.testing.sim.checker import Tables, check
from windlass.testing.sim.handlers import Conduct
from windlass.testing.sim.log import Log
from windlass.testing.sim.plans import library
from windlass.testing.sim.scheduler import START
from windlass.testing.sim.worker import CONCURRENCY, WatchedBegun, WatchedWorker

SPEED = 20.0
PATIENCE_S = 60.0


class Haste:
    """The scheduler's part: time, and sleeping in it."""

    def __init__(self) -> None:
        self._began_s = time.monotonic()

    @property
    def now(self) -> float:
        return (time.monotonic() - self._began_s) * SPEED

    def moment(self) -> datetime:
        return START + timedelta(seconds=self.now)

    async def sleep(self, seconds: float, *, hears_bells: bool = False) -> None:
        await asyncio.sleep((min(seconds, 0.5) if hears_bells else seconds) / SPEED)


@pytest.mark.covers("SCR-35", "COR-30", "COR-85", "COR-86", "COR-92", "COR-101")
@pytest.mark.parametrize("seed", [1, 2])
async def test_nothing_goes_wrong_when_operations_meet_inside_the_database(dsn: str, seed: int) -> None:
    assert await meet(dsn, seed) == []


def no_job_locks(patch: pytest.MonkeyPatch) -> None:
    async def nothing(*_: object) -> None:
        return

    patch.setattr(drafts, "lock", nothing)
    patch.setattr(claim, "lock", nothing)


def no_lock_in_a_claim(patch: pytest.MonkeyPatch) -> None:
    change_sql(patch, "step_claim", ("FOR UPDATE OF j SKIP LOCKED", ""))


@pytest.mark.covers("COR-85")
@pytest.mark.parametrize("plant", [no_job_locks, no_lock_in_a_claim])
async def test_a_missing_lock_shows(
    dsn: str, plant: Callable[[pytest.MonkeyPatch], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whether two operations meet at the wrong moment is up to the machine; that none of eight runs sees it is not."""
    plant(monkeypatch)
    with pytest.raises((AssertionError, asyncpg.PostgresError, drafts.MovedOn)):
        for seed in range(1, 9):
            assert await meet(dsn, seed) == []


async def meet(dsn: str, seed: int) -> list[str]:
    """Run all actors at once for a while, let the jobs end, and return every complaint."""
    haste = Haste()
    db = await Database.open(dsn, max_size=12, now=haste.moment)
    db.scheduler = haste  # type: ignore[attr-defined]
    rng = random.Random(seed)
    plans = library()
    for plan in plans:
        await recipes.register(db, plan)
    ids = Ids(lambda: int(haste.moment().timestamp() * 1000), rng.getrandbits)
    stage = Stage(db, Log(), ids, plans)  # type: ignore[arg-type]

    def fork() -> random.Random:
        return random.Random(rng.getrandbits(64))

    cast = [run_engine(stage, fork()) for _ in range(2)] + [run_outsider(stage, fork())]
    cast += [run_controller(stage, fork()) for _ in range(3)]
    cast += [_worker(db, stage, fork(), haste).run() for _ in range(5)]
    wishes = [wishes_of(stage, fork(), 20) for _ in range(3)]
    for n, some in enumerate(wishes):
        # Two submitters may share a caller and a key, but then their bodies differ, and one is told so.
        cast.append(run_submitter(stage, random.Random(n), some))
    tasks = [asyncio.create_task(one) for one in cast]
    try:
        await asyncio.sleep(3)
        stage.is_kind = True
        stage.log.calm_at = haste.now
        async with asyncio.timeout(PATIENCE_S):
            while any(wishes) or await _open_jobs(db):
                for task in tasks:
                    if task.done() and task.exception() is not None:
                        raise task.exception()  # type: ignore[misc]
                await asyncio.sleep(0.1)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if sys.exception() is not None:
            await db.close()
    async with db.connection() as connection:
        tables = await Tables.read(connection)
    await db.close()
    assert len(tables.jobs) > 40
    return check(tables, stage.log, is_serial=False)


def _worker(db: Database, stage: Stage, rng: random.Random, haste: Haste) -> WatchedWorker:
    """A worker that lives in ordinary time: its lease outlasts the run, which is counted in the hasty one."""
    begun = WatchedBegun(CONCURRENCY)
    conduct = Conduct(rng, begun.newest, lambda: stage.is_kind, lambda _: False, _never, second_s=1 / SPEED)
    return WatchedWorker(db, stage.log, stage.ids, conduct, begun, now=lambda: haste.now, lease_s=100_000.0)


async def _never() -> None:
    raise AssertionError("no step is deadly here")


async def _open_jobs(db: Database) -> int:
    async with db.connection() as connection:
        return int(
            await connection.fetchval(
                "SELECT (SELECT count(*) FROM windlass.jobs WHERE finished_at IS NULL)"
                " + (SELECT count(*) FROM windlass.inbox)"
            )
        )
