"""Rates, pauses and breakers: how they hold the line back, and that nothing is asked of the database meanwhile."""

from __future__ import annotations

import asyncio
from uuid import UUID

import pytest

from tests.engine.lines import check, declare, holders, one, slot
from tests.engine.rig import Rig
from windlass.engine import providers
from windlass.engine.loops.granter import Granter
from windlass.engine.loops.runner import LOOK_EVERY_S
from windlass.store.database import Database
from windlass.views import providers as provider_views

OPEN_S = 30.0


async def wait_s(rig: Rig) -> float | None:
    """In how many seconds the granter wants to look again by itself."""
    at = (await rig.loops.moments()).get("granter")
    return None if at is None else round((at - rig.clock.now()).total_seconds(), 3)


async def many(rig: Rig, count: int) -> list[UUID]:
    return [await rig.submit(one()) for _ in range(count)]


async def held(rig: Rig) -> list[UUID]:
    """Who holds a place once the engine has done all that it can at this moment."""
    await rig.loops.run_until_idle()
    return await holders(rig.db)


async def fail(rig: Rig) -> None:
    await providers.failed(rig.db, "fal", "503 Service Unavailable")


@pytest.mark.covers("SCR-77")
async def test_steps_go_at_the_rate_of_their_provider(rig: Rig) -> None:
    await declare(rig.db, concurrency=100, rate=10)
    jobs = await many(rig, 25)
    for count in range(1, 11):
        assert await held(rig) == jobs[:count]
        assert await wait_s(rig) == 0.1
        # A step that joins is checked, and changes nothing.
        await many(rig, 1)
        assert await held(rig) == jobs[:count]
        rig.clock.advance(0.1)
    rig.clock.advance(60)
    assert await held(rig) == jobs[:11]
    rig.clock.advance(0.05)
    assert await held(rig) == jobs[:11]


async def test_what_is_taken_for_polls_is_not_there_for_starts(rig: Rig) -> None:
    await declare(rig.db, concurrency=100, rate=40)
    await many(rig, 5)
    assert await providers.take(rig.db, "fal", 3) == 3
    assert await providers.take(rig.db, "fal", 3) == 1
    assert await providers.take(rig.db, "fal", 3) == 0
    assert await held(rig) == []
    assert await wait_s(rig) == 0.025
    rig.clock.advance(0.05)
    assert len(await held(rig)) == 2


async def test_nothing_can_be_taken_by_asking_for_nothing(rig: Rig) -> None:
    assert await providers.take(rig.db, "unheard_of", 0) == 0
    assert await providers.take(rig.db, "unheard_of", 5) == 1


async def test_nobody_looks_again_while_nobody_waits_or_all_places_are_taken(rig: Rig) -> None:
    await declare(rig.db, concurrency=1, rate=10)
    assert await held(rig) == []
    assert await wait_s(rig) is None
    [job] = await many(rig, 1)
    assert await held(rig) == [job]
    assert await wait_s(rig) is None
    await many(rig, 1)
    assert await held(rig) == [job]
    assert await wait_s(rig) is None


async def test_an_engine_whose_lines_are_full_is_idle(rig: Rig) -> None:
    await declare(rig.db, concurrency=1)
    await many(rig, 5)
    await held(rig)
    assert await rig.loops.look() == LOOK_EVERY_S


async def test_a_busy_provider_is_left_alone_and_nothing_fails(rig: Rig) -> None:
    await declare(rig.db, concurrency=9)
    await providers.busy(rig.db, "fal", 20)
    await providers.busy(rig.db, "fal", 5)
    [job] = await many(rig, 1)
    assert await held(rig) == []
    assert await wait_s(rig) == 20
    assert await providers.take(rig.db, "fal", 1) == 0
    rig.clock.advance(20)
    assert await held(rig) == [job]


async def test_an_open_breaker_holds_the_line_and_lets_one_try(rig: Rig) -> None:
    await declare(rig.db, concurrency=9)
    for _ in range(5):
        await fail(rig)
    jobs = await many(rig, 4)
    assert await held(rig) == []
    assert await slot(rig.db, jobs[0]) == "WAITING"
    assert OPEN_S <= (await wait_s(rig) or 0) < OPEN_S + 0.1
    rig.clock.advance(OPEN_S + 0.1)
    assert await held(rig) == jobs[:1]
    [view] = await provider_views.views(rig.db)
    assert view.breaker == "half_open"
    await fail(rig)
    assert await held(rig) == jobs[:1]
    rig.clock.advance(OPEN_S + 0.1)
    assert await held(rig) == jobs[:2]
    await providers.answered(rig.db, "fal")
    assert await held(rig) == jobs
    await check(rig.db)


async def test_a_poll_may_be_the_one_that_tries(rig: Rig) -> None:
    await declare(rig.db, concurrency=9)
    for _ in range(5):
        await fail(rig)
    assert await providers.take(rig.db, "fal", 3) == 0
    rig.clock.advance(OPEN_S)
    assert await providers.take(rig.db, "fal", 3) == 1
    [job] = await many(rig, 1)
    assert await held(rig) == []
    await providers.answered(rig.db, "fal")
    assert await held(rig) == [job]


async def test_a_success_between_failures_keeps_the_breaker_closed(rig: Rig) -> None:
    for _ in range(3):
        for _ in range(4):
            await fail(rig)
        await providers.answered(rig.db, "fal")
    [job] = await many(rig, 1)
    assert await held(rig) == [job]


async def test_an_answer_writes_nothing_while_all_is_well(rig: Rig) -> None:
    await declare(rig.db)
    before = await _version(rig.db)
    await providers.answered(rig.db, "fal")
    await declare(rig.db)
    assert await _version(rig.db) == before


async def test_a_provider_is_shown_with_its_holders_and_its_line(rig: Rig) -> None:
    await declare(rig.db, concurrency=1, rate=5)
    jobs = await many(rig, 3)
    await held(rig)
    await rig.claim_one()
    await fail(rig)
    [view] = await provider_views.views(rig.db, "fal")
    assert [(holder.job_id, holder.step, holder.attempt, holder.state) for holder in view.holders] == [
        (jobs[0], "a", 1, "RUNNING")
    ]
    assert view.first is not None
    assert (view.concurrency, view.rate, view.waiting, view.first.job_id) == (1, 5.0, 2, jobs[1])
    assert (view.breaker, view.failures, view.error) == ("closed", 1, "503 Service Unavailable")
    for _ in range(4):
        await fail(rig)
    assert [view.breaker for view in await provider_views.views(rig.db)] == ["open"]


async def test_a_rate_is_shared_by_everyone_who_asks(dsn: str) -> None:
    """On the server's own clock: many at once, over several connections of several pools."""
    databases = [await Database.open(dsn, max_size=3) for _ in range(2)]
    try:
        await declare(databases[0], rate=50)
        loop = asyncio.get_running_loop()
        start_s = loop.time()
        taken = 0
        while loop.time() - start_s < 0.6:
            counts = await asyncio.gather(*(providers.take(databases[i % 2], "fal", 5) for i in range(6)))
            taken += sum(counts)
        elapsed_s = loop.time() - start_s
    finally:
        for database in databases:
            await database.close()
    assert taken <= 50 * elapsed_s + 5 + 1
    assert taken >= 5


async def test_two_granters_share_the_rate(rig: Rig, dsn: str) -> None:
    other = await Database.open(dsn, now=rig.clock.now)
    try:
        await declare(rig.db, concurrency=100, rate=10)
        await many(rig, 20)
        await rig.loops.router.run_once()
        for count in range(1, 11):
            await asyncio.gather(Granter(rig.db).run_once(), Granter(other).run_once())
            await rig.loops.granter.run_once()
            [view] = await provider_views.views(rig.db)
            assert len(view.holders) == count
            rig.clock.advance(0.1)
    finally:
        await other.close()


async def _version(db: Database) -> str:
    found: str = await db.run(lambda c: c.fetchval("SELECT xmin::text FROM windlass.providers WHERE name = 'fal'"))
    return found
