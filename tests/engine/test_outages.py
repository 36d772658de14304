"""Outages: time in which no worker could renew is not silence."""

from __future__ import annotations

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.lease import RESCUE_AFTER_S
from windlass.core.retry import Retry
from windlass.engine import workers
from windlass.engine.workers import LEASE_S
from windlass.views import read

ONE = plan(task("a"))


@pytest.mark.covers("COR-122")
@pytest.mark.parametrize("outage_s", [8, 12, 20, 60, 3600])
async def test_a_worker_outlives_an_outage_of_any_length(rig: Rig, outage_s: float) -> None:
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    job = await rig.submit(ONE)
    one = await rig.claim_one(worker)
    await rig.silence(5)
    rig.clock.advance(outage_s)
    for _ in range(3):
        await rig.loops.look()
    assert await workers.renew(rig.db, worker)
    assert await rig.settle(one)
    assert await rig.state(job) == "COMPLETED"


@pytest.mark.covers("COR-122")
async def test_a_worker_that_does_not_come_back_after_an_outage_is_lost(rig: Rig) -> None:
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    await rig.submit(ONE)
    await rig.claim_one(worker)
    await rig.silence(1)
    rig.clock.advance(60)
    await rig.silence(2 * LEASE_S)
    assert not await workers.renew(rig.db, worker)
    assert (await rig.claim_one()).attempt == 2


async def test_a_worker_that_died_before_an_outage_is_found_soon_after_it(rig: Rig) -> None:
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    await rig.silence(LEASE_S - 1)
    rig.clock.advance(60)
    await rig.silence(LEASE_S * 1 / 5)
    assert not await workers.renew(rig.db, worker)


async def test_an_engine_that_always_looks_late_still_finds_lost_workers(rig: Rig) -> None:
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    for _ in range(8):
        rig.clock.advance(LEASE_S)
        await rig.loops.rescuer.run_once()
    assert not await workers.renew(rig.db, worker)


async def test_engines_look_more_often_if_a_lease_is_short(rig: Rig) -> None:
    assert await rig.loops.look() == 5.0
    await rig.enlist(rig.ids.new(), lease_s=3.0)
    assert await rig.loops.look() == pytest.approx(1.0)


async def test_an_attempt_that_ended_during_an_outage_has_time_to_report(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", timeout_s=30, retry=Retry(max_attempts=1))))
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    one = await rig.claim_one(worker)
    await rig.silence(5)
    rig.clock.advance(60)
    await rig.loops.run_until_idle()
    assert await workers.renew(rig.db, worker)
    rig.clock.advance(RESCUE_AFTER_S - 1)
    await rig.loops.run_until_idle()
    assert await rig.settle(one)
    assert await rig.state(job) == "COMPLETED"


async def test_an_attempt_that_hangs_through_an_outage_is_ended_after_a_grace(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", timeout_s=30, retry=Retry(max_attempts=1))))
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    await rig.claim_one(worker)
    await rig.silence(5)
    rig.clock.advance(60)
    for _ in range(2):
        await rig.loops.run_until_idle()
        assert await workers.renew(rig.db, worker)
        rig.clock.advance(RESCUE_AFTER_S + 0.001)
    await rig.loops.run_until_idle()
    ended = await read.job(rig.db, job)
    assert (ended.state, ended.error["code"]) == ("TIMEOUT", "attempt_timeout")


@pytest.mark.usefixtures("no_pauses")
async def test_while_the_database_is_read_only_no_worker_is_marked(rig: Rig) -> None:
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    await rig.silence(5)
    rig.clock.advance(60)
    async with rig.db.connection() as connection:
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute(f"ALTER DATABASE {name} SET default_transaction_read_only = on")
        await connection.execute("SET default_transaction_read_only = on")
    try:
        with pytest.raises(Exception, match="read-only"):
            await rig.loops.rescuer.run_once()
    finally:
        async with rig.db.connection() as connection:
            await connection.execute("SET transaction_read_only = off; SET default_transaction_read_only = off")
            await connection.execute(f"ALTER DATABASE {name} RESET default_transaction_read_only")
    await rig.loops.rescuer.run_once()
    assert await workers.renew(rig.db, worker)
