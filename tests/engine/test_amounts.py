"""Steps that take several of what they stand in line for: sums hold, and the first in line is not overtaken."""

from __future__ import annotations

from decimal import Decimal
from uuid import UUID

import asyncpg

from tests.engine.lines import check, declare, end, granted, keyed, one, slot, slots
from tests.engine.rig import Rig
from windlass.core.outcome import Lost, Snooze
from windlass.core.slot import Slot
from windlass.engine import budgets
from windlass.store.database import Database
from windlass.store.resources.money import Money
from windlass.views.explain import why

KEY = {"key": "gpu"}


async def small(rig: Rig, provider: str = "", limit: int = 8) -> UUID:
    return await rig.submit(keyed(provider, limit=limit), KEY)


async def large(rig: Rig, takes: int = 3, provider: str = "", limit: int = 8, priority: int = 0) -> UUID:
    return await rig.submit(keyed(provider, limit=limit, takes=takes), KEY, priority=priority)


async def because(rig: Rig, job: UUID) -> str:
    [reason] = await why(rig.db, job, "a")
    return reason.because


async def test_steps_that_take_three_of_eight_go_two_at_a_time(rig: Rig) -> None:
    first, second, third = [await large(rig) for _ in range(3)]
    assert await granted(rig) == [first, second]
    await check(rig.db)
    said = await because(rig, third)
    assert said == (
        f"waits for key gpu: needs 3 of 8, 6 are taken by a of job {first}, a of job {second}; 0 ahead of it"
    )
    await end(rig, first)
    assert await granted(rig) == [third]


async def test_amounts_of_one_key_differ_and_add_up(rig: Rig) -> None:
    jobs = [await large(rig, takes) for takes in (4, 3, 1, 1)]
    assert await granted(rig) == jobs[:3]
    assert sum(row["takes"] for row in await slots(rig.db) if row["state"] == "HELD") == 8
    [reason] = await why(rig.db, jobs[3], "a")
    assert reason.because.startswith("waits for key gpu: 8 of 8 held by ")
    assert (reason.detail["takes"], reason.detail["taken"], reason.detail["limit"]) == (1, 8, 8)
    await check(rig.db)


async def test_a_large_step_is_not_overtaken_by_small_ones_of_its_key(rig: Rig) -> None:
    running = [await small(rig, limit=4) for _ in range(3)]
    assert await granted(rig) == running
    big = await large(rig, 3, limit=4)
    later = [await small(rig, limit=4) for _ in range(5)]
    for job in running[:-1]:
        # One place is free throughout, and each of the small ones would fit.
        assert await granted(rig) == []
        assert await slot(rig.db, big) == "WAITING"
        await end(rig, job)
    assert await granted(rig) == [big]
    await end(rig, running[-1])
    assert await granted(rig) == later[:1]
    await end(rig, big)
    assert await granted(rig) == later[1:4]
    await check(rig.db)


async def test_a_higher_priority_goes_before_a_large_step(rig: Rig) -> None:
    first = await large(rig, 6)
    assert await granted(rig) == [first]
    await large(rig, 3)
    urgent = await large(rig, 2, priority=5)
    assert await granted(rig) == [urgent]


async def test_a_large_step_is_not_overtaken_at_another_provider(rig: Rig) -> None:
    for name in ("fal", "slow"):
        await declare(rig.db, name, concurrency=9)
    running = [await small(rig, "slow", limit=3) for _ in range(2)]
    assert await granted(rig) == running
    big = await large(rig, 3, "fal", limit=3)
    later = [await small(rig, "slow", limit=3) for _ in range(3)]
    assert await granted(rig) == []
    for job in running:
        await end(rig, job)
    assert await granted(rig) == [big]
    await end(rig, big)
    assert sorted(await granted(rig)) == later


async def test_other_keys_pass_a_large_step_that_waits_for_its_own(rig: Rig) -> None:
    await declare(rig.db, concurrency=9)
    first = await large(rig, 2, "fal", limit=3)
    assert await granted(rig) == [first]
    await large(rig, 3, "fal", limit=3)
    other = await rig.submit(keyed("fal", limit=3, takes=3), {"key": "other"})
    assert await granted(rig) == [other]


async def test_a_step_takes_several_places_of_its_provider(rig: Rig) -> None:
    await declare(rig.db, concurrency=4)
    first = await rig.submit(one(places=3))
    assert await granted(rig) == [first]
    second = await rig.submit(one(places=2))
    later = await rig.submit(one())
    assert await granted(rig) == [], "the line waits with its first"
    said = await because(rig, second)
    assert said == f"waits for fal: needs 2 of 4 places, 3 are taken by a of job {first}; 0 ahead of it"
    said = await because(rig, later)
    assert said == (
        f"waits for fal: 3 of 4 places held by a of job {first}, and the first in line needs 2; 1 ahead of it"
    )
    assert "granter" not in await rig.loops.moments(), "a place that is given back is told of"
    await end(rig, first)
    assert await granted(rig) == [second, later]
    await check(rig.db)


async def test_a_step_that_takes_more_places_than_there_are_has_all_of_them(rig: Rig) -> None:
    await declare(rig.db, concurrency=5)
    first = await rig.submit(one())
    assert await granted(rig) == [first]
    whole = await rig.submit(one(places=4))
    later = await rig.submit(one())
    await declare(rig.db, concurrency=2)
    assert await granted(rig) == []
    await end(rig, first)
    assert await granted(rig) == [whole]
    await check(rig.db)
    await end(rig, whole)
    assert await granted(rig) == [later]


async def test_however_many_places_a_step_takes_it_is_one_request(rig: Rig) -> None:
    await declare(rig.db, concurrency=9, rate=20)
    jobs = [await rig.submit(one(places=3)) for _ in range(3)]
    assert await granted(rig) == jobs[:2]
    rig.clock.advance(0.05)
    assert await granted(rig) == jobs[2:]


async def fences(db: Database) -> list[int]:
    return [row["fence"] for row in await slots(db)]


async def test_each_grant_has_a_fence_of_its_own(rig: Rig) -> None:
    job = await large(rig, 5)
    await rig.loops.router.run_once()
    assert await fences(rig.db) == [0]
    await rig.loops.run_until_idle()
    assert await fences(rig.db) == [1]
    await rig.run_one(Lost())
    assert (await slot(rig.db, job), await fences(rig.db)) == ("HELD", [1]), "it goes on holding what it was granted"
    await rig.run_one(Snooze(1.0))
    assert (await slot(rig.db, job), await fences(rig.db)) == ("IDLE", [1])
    rig.clock.advance(2)
    await rig.loops.run_until_idle()
    assert (await slot(rig.db, job), await fences(rig.db)) == ("HELD", [2])
    await check(rig.db)


async def give(db: Database, late: Slot) -> None:
    async def operation(connection: asyncpg.Connection) -> None:
        async with connection.transaction():
            await Money().give(connection, [late])

    await db.run(operation)


async def reserved(db: Database) -> Decimal:
    view = await budgets.get(db, "recipe", "r")
    assert view is not None
    return view.reserved


async def test_what_an_earlier_holding_gives_back_late_changes_nothing(rig: Rig) -> None:
    await budgets.set(rig.db, "recipe", "r", 9)
    await rig.submit(one(provider="", cost=2))
    await rig.loops.run_until_idle()
    [row] = await slots(rig.db)
    names = [name for name in Slot._fields if name not in ("is_charged", "spent")]
    late = Slot(*(row[name] for name in names))
    await rig.run_one(Snooze(1.0))
    assert await reserved(rig.db) == 0
    await give(rig.db, late)
    assert await reserved(rig.db) == 0, "it was given back before"
    rig.clock.advance(2)
    await rig.loops.run_until_idle()
    await give(rig.db, late)
    assert await reserved(rig.db) == 2, "another holding of the same step"
    await check(rig.db)


async def test_a_step_that_lacks_two_budgets_waits_for_each_in_turn(rig: Rig) -> None:
    await budgets.set(rig.db, "caller", "ann", 0)
    await budgets.set(rig.db, "recipe", "r", 0)
    job = await rig.submit(one(provider="", cost=1), caller="ann")
    assert await granted(rig) == []
    assert "the budget of caller ann is 0" in await because(rig, job)
    await budgets.set(rig.db, "caller", "ann", 5)
    assert await granted(rig) == []
    assert "the budget of recipe r is 0" in await because(rig, job)
    await budgets.set(rig.db, "recipe", "r", 5)
    assert await granted(rig) == [job]
    await check(rig.db)
