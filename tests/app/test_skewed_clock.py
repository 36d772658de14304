"""A machine whose clock is wrong: its jobs stand where the database's clock puts them."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

import windlass as wl
from windlass.app.windlass import Windlass
from windlass.store.database import Database
from windlass.views import read
from windlass.views.listing import JobFilter, page


@wl.step(queue="nobody")
def never() -> None: ...


@wl.recipe
def skewed():
    return never()


async def _now(db: Database) -> datetime:
    async with db.connection() as connection:
        now: datetime = await connection.fetchval("SELECT windlass.clock()")
        return now


@pytest.mark.parametrize("skew_s", [3600, -3600])
async def test_lists_and_since_follow_the_databases_clock(
    dsn: str, monkeypatch: pytest.MonkeyPatch, skew_s: int
) -> None:
    """The jobs of a right and of a wrong machine, by turns."""
    wall_ns = time.time_ns
    jobs = []
    async with Windlass.connect(dsn) as right:
        await right.register(skewed)
        started_at = await _now(right.db)
        with monkeypatch.context() as patch:
            patch.setattr(time, "time_ns", lambda: wall_ns() + skew_s * 1_000_000_000)
            patch.setattr(time, "time", lambda: wall_ns() / 1e9 + skew_s)
            async with Windlass.connect(dsn) as wrong:
                for submitter in (wrong, right, wrong, right, wrong):
                    jobs.append((await submitter.submit(skewed)).job_id)
        ended_at = await _now(right.db) + timedelta(microseconds=1)
        found = await page(right.db, JobFilter("local", recipe="skewed", since=started_at, until=ended_at))
        assert {job.id for job in found.jobs} == set(jobs)
        for own in (jobs[::2], jobs[1::2]):
            assert [job.id for job in found.jobs if job.id in own] == own[::-1]
        for job in jobs:
            made_at = datetime.fromtimestamp((job.int >> 80) / 1000, UTC)
            assert abs(made_at - (await read.job(right.db, job)).created_at) < timedelta(minutes=1)
        assert (await page(right.db, JobFilter("local", recipe="skewed", since=ended_at))).jobs == []
