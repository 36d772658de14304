"""Webhooks become due when their jobs end: none is missed, none too early."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from tests.outbound.rig import FAILED, ONE, Hooks, PatientScheduler
from windlass.engine import control
from windlass.engine.loops import webhook_scheduler as loop
from windlass.engine.loops.webhook_scheduler import WebhookScheduler

URL = "https://hook.example/"


async def test_a_webhook_is_due_when_its_job_has_ended_and_not_before(hooks: Hooks) -> None:
    job = await hooks.submit(URL)
    one = await hooks.rig.claim_one()
    assert (await hooks.scheduler.run_once()).count == 0
    assert await hooks.state(job) == "WAITING"
    await hooks.rig.settle(one)
    assert (await hooks.scheduler.run_once()).count == 1
    view = await hooks.view(job)
    assert (view.state, view.due_at) == ("DUE", hooks.rig.clock.now())
    assert (await hooks.scheduler.run_once()).count == 0


async def test_every_ending_is_told(hooks: Hooks) -> None:
    failed = await hooks.ended(URL, FAILED)
    cancelled = await hooks.submit(URL)
    await control.cancel(hooks.rig.db, cancelled)
    expired = await hooks.submit(URL, ttl_s=60.0)
    late = await hooks.submit(URL, deadline_s=60.0)
    hooks.rig.clock.advance(61)
    await hooks.rig.loops.run_until_idle()
    await hooks.scheduler.run_once()
    jobs = [failed, cancelled, expired, late]
    assert {await hooks.rig.state(job) for job in jobs} == {"FAILED", "CANCELLED", "EXPIRED", "TIMEOUT"}
    assert [await hooks.state(job) for job in jobs] == ["DUE"] * 4


async def test_a_scheduler_that_begins_late_finds_what_ended_before(hooks: Hooks) -> None:
    job = await hooks.submit(URL)
    still = await hooks.submit(URL)
    await hooks.rig.run_one()
    await _forget_cursor(hooks)
    assert (await hooks.scheduler.run_once()).count == 1
    assert [await hooks.state(one) for one in (job, still)] == ["DUE", "WAITING"]
    await hooks.rig.run_out()
    assert (await hooks.scheduler.run_once()).count == 1
    assert await hooks.state(still) == "DUE"


async def _forget_cursor(hooks: Hooks) -> None:
    async with hooks.rig.db.connection() as connection:
        await connection.execute("DELETE FROM windlass.cursors")


async def test_a_commit_that_comes_after_one_with_a_higher_number_is_not_missed(hooks: Hooks, dsn: str) -> None:
    """The horizon: an older transaction is still open while a younger one's end is committed."""
    slow, quick = await hooks.submit(URL), await hooks.submit(URL)
    older = await asyncpg.connect(dsn)
    transaction = older.transaction()
    await transaction.start()
    await older.execute(
        "INSERT INTO windlass.events (job_id, seq, at, type, source, correlation_id)"
        " VALUES ($1, 99, now(), 'job.completed', 'x', 'r')",
        slow,
    )
    await control.cancel(hooks.rig.db, quick)
    assert (await WebhookScheduler(hooks.rig.db).run_once()).count == 0
    await transaction.commit()
    await older.close()
    assert (await hooks.scheduler.run_once()).count == 2


async def test_schedulers_at_once_do_it_once(hooks: Hooks) -> None:
    jobs = [await hooks.submit(URL) for _ in range(20)]
    await hooks.rig.run_out()
    others = [PatientScheduler(hooks.rig.db) for _ in range(4)]
    done = await asyncio.gather(*(one.run_once() for one in others))
    assert sum(one.count for one in done) == 20
    assert {await hooks.state(job) for job in jobs} == {"DUE"}


async def test_the_first_schedulers_at_once_begin_once(hooks: Hooks) -> None:
    [await hooks.submit(URL) for _ in range(5)]
    await hooks.rig.run_out()
    await _forget_cursor(hooks)
    done = await asyncio.gather(*(PatientScheduler(hooks.rig.db).run_once() for _ in range(4)))
    assert sum(one.count for one in done) == 5


async def test_a_long_feed_is_read_in_batches(hooks: Hooks, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "BATCH_MAX", 3)
    jobs = [await hooks.submit(URL) for _ in range(5)]
    for _ in range(5):
        await hooks.rig.submit(ONE, correlation_id="others-without-a-webhook")
    await hooks.rig.run_out()
    looks = 0
    while (await hooks.scheduler.run_once()).is_more:
        looks += 1
    assert looks >= 5
    assert {await hooks.state(job) for job in jobs} == {"DUE"}


async def test_a_look_goes_by_the_index_of_the_feed(hooks: Hooks) -> None:
    from windlass.store.statements import sql

    async with hooks.rig.db.connection() as connection:
        await connection.execute("PREPARE look (int, text[]) AS " + sql("webhook_schedule"))
        lines = [row[0] for row in await connection.fetch("EXPLAIN EXECUTE look (5000, '{job.completed}')")]
        await connection.execute("DEALLOCATE look")
    text = "\n".join(lines)
    assert "events_feed" in text
    assert "webhooks_pkey" in text
    assert "Seq Scan on events" not in text
