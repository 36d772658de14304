"""A lone job can be seen before it is on the disk, but its submit is answered only afterwards."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from uuid import UUID

import asyncpg
import pytest

from tests.engine.forgetful import Crash, forgetful_server
from tests.engine.rig import Rig, plan, task, undisturbed
from windlass.core.outcome import Success
from windlass.engine import claim, feed, recipes, submit, workers
from windlass.engine.settle import settle
from windlass.engine.submit import Accepted, Submission
from windlass.pure.cursor import ORIGIN
from windlass.store.database import Database, flush

ONE = plan(task("a"))
QUEUE = "main_processing"


@pytest.fixture
async def server() -> AsyncIterator[tuple[Database, Crash]]:
    async with forgetful_server() as (db, crash):
        await recipes.register(db, ONE)
        yield db, crash


async def jobs(db: Database) -> list[UUID]:
    rows = await db.run(lambda connection: connection.fetch("SELECT id FROM windlass.jobs ORDER BY id"))
    return [row["id"] for row in rows]


def before_the_flush(monkeypatch: pytest.MonkeyPatch, *steps: Callable[[], Awaitable[object]]) -> None:
    """What happens before the first flush of a submit, the second, and so on."""
    waiting = list(steps)

    async def hindered(connection: asyncpg.Connection) -> None:
        if waiting:
            await waiting.pop(0)()
        await flush(connection)

    monkeypatch.setattr(submit, "flush", hindered)


async def test_a_job_that_a_crash_undoes_is_submitted_again(
    server: tuple[Database, Crash], rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, crash = server
    job, worker = rig.ids.new(), rig.ids.new()
    await workers.enlist(db, worker, host="h", pid=1, queues=[QUEUE], concurrency=1)
    began: list[claim.Claimed] = []
    left: list[UUID] = []

    async def crash_while_it_runs() -> None:
        began.extend(await claim.claim(db, worker=worker, queues=[QUEUE], limit=1))
        await crash()
        left.extend(await jobs(db))

    before_the_flush(monkeypatch, crash_while_it_runs)
    [answer] = await submit.submit(db, [Submission(ONE, {}, job)])
    assert [one.job_id for one in began] == [job], "a worker began before the disk had it"
    assert left == [], "the test is worth nothing: the job was on the disk by itself"
    assert answer == Accepted(job, True)
    assert await jobs(db) == [job]
    # What the worker did for the job that was undone counts for nothing; the step runs again.
    report = began[0].report(Success("1"))
    assert not (await settle(db, [report], spread=lambda: 0.0)).took_effect[0]
    [again] = await claim.claim(db, worker=worker, queues=[QUEUE], limit=1)
    assert (again.job_id, again.attempt) == (job, 1)
    await crash()
    assert await jobs(db) == [job], "what was accepted is on the disk"


async def test_whoever_comes_with_the_same_key_waits_for_the_disk_too(
    server: tuple[Database, Crash], rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, crash = server
    first, second = rig.ids.new(), rig.ids.new()
    reached, goes_on = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        reached.set()
        await goes_on.wait()

    before_the_flush(monkeypatch, hold)
    slow = asyncio.create_task(submit.submit(db, [Submission(ONE, {}, first, idempotency_key="k")]))
    await reached.wait()
    assert await submit.submit(db, [Submission(ONE, {}, second, idempotency_key="k")]) == [Accepted(first, False)]
    await crash()
    assert await jobs(db) == [first]
    goes_on.set()
    assert await slow == [Accepted(first, True)]


async def test_a_follower_is_told_of_a_job_when_it_is_on_the_disk(
    server: tuple[Database, Crash], rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, crash = server
    job = rig.ids.new()
    told: list[UUID] = []

    async def follow_and_crash() -> None:
        await undisturbed(db)
        rows, _ = await feed.after(db, ORIGIN, callers=None)
        told.extend(row.at.job_id for row in rows)
        await crash()
        assert await jobs(db) == told

    before_the_flush(monkeypatch, follow_and_crash)
    await submit.submit(db, [Submission(ONE, {}, job, correlation_id="c")])
    assert told == [job]


async def test_several_jobs_wait_for_the_disk_in_their_own_commit(
    server: tuple[Database, Crash], rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, crash = server

    async def never() -> None:
        raise AssertionError("there is nothing to wait for")

    before_the_flush(monkeypatch, never)
    both = sorted([rig.ids.new(), rig.ids.new()])
    await submit.submit(db, [Submission(ONE, {}, job) for job in both])
    await crash()
    assert await jobs(db) == both
