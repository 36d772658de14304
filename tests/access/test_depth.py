from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.engine.lines import declare, one, slots
from tests.engine.rig import QUEUE, Rig, plan, task
from windlass.access.depth import Depth
from windlass.app.entropy import Ids
from windlass.core.errors import Busy
from windlass.engine import backlog
from windlass.store.artifact import FolderArtifacts
from windlass.store.database import Database
from windlass.testing.clock import VirtualClock
from windlass.views import gauge


@pytest.fixture
async def rig(timed_db: Database, clock: VirtualClock, ids: Ids, artifacts: FolderArtifacts) -> Rig:
    made = Rig(timed_db, clock, ids, artifacts)
    await made.enlist()
    return made


CROWD, ADA, BOB = "crowd", "ada", "bob"


async def test_submits_are_refused_above_the_depth_and_not_at_it(rig: Rig) -> None:
    now_s = 0.0
    depth = Depth(rig.db, 2, lambda: now_s)
    await depth.check(CROWD)
    assert depth.last == {}
    for _ in range(2):
        await rig.submit(plan(task("a")), caller=CROWD)
    now_s += 1.0
    await depth.check(CROWD)
    await rig.submit(plan(task("a", queue="other"), recipe="s"), caller=CROWD)
    now_s += 1.0
    with pytest.raises(Busy) as refused:
        await depth.check(CROWD)
    assert refused.value.retry_after_s == 30
    assert refused.value.code == "busy"
    await rig.run_one()
    now_s += 1.0
    await depth.check(CROWD)


async def test_a_caller_has_a_depth_of_its_own(rig: Rig) -> None:
    for caller, count in ((CROWD, 4), (ADA, 3)):
        for _ in range(count):
            await rig.submit(plan(task("a")), caller=caller)
    depth = Depth(rig.db, 100, per_caller_max=3)
    with pytest.raises(Busy, match="of this caller"):
        await depth.check(CROWD)
    await depth.check(CROWD, is_internal=True)
    await depth.check(ADA)
    await depth.check(BOB)


async def test_no_caller_can_use_up_what_the_others_need(rig: Rig) -> None:
    """Above the depth of all, callers are refused who have their share; above twice of it, all are."""
    depths = [Depth(rig.db, 6, per_caller_max=5) for _ in range(3)]

    async def submit(caller: str, count: int) -> None:
        for _ in range(count):
            await rig.submit(plan(task("a")), caller=caller)

    await submit(CROWD, 5)
    await submit(ADA, 2)
    with pytest.raises(Busy, match="more than 6 steps wait"):
        await depths[0].check(CROWD)
    await depths[0].check(ADA)
    await submit(ADA, 1)
    with pytest.raises(Busy):
        await depths[1].check(ADA)
    await depths[1].check(BOB)
    await submit(BOB, 5)
    with pytest.raises(Busy):
        await depths[2].check("somebody new")


async def test_callers_are_counted_only_when_one_could_be_over(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(3):
        await rig.submit(plan(task("a")), caller=CROWD)

    async def callers(*_: Any) -> dict[str, int]:
        raise AssertionError("nobody can be over its depth")

    monkeypatch.setattr(backlog, "callers", callers)
    await Depth(rig.db, 100, per_caller_max=3).check(CROWD)


async def test_steps_that_wait_for_the_router_count_too(rig: Rig) -> None:
    await rig.submit(plan(task("a"), task("b", when="inputs.x")), {"x": True}, caller=CROWD)
    await rig.submit(plan(task("a"), task("b"), task("c", "a")), caller=ADA)
    assert await backlog.callers(rig.db, 100) == {CROWD: 2, ADA: 2}


async def test_steps_that_wait_for_a_slot_count_for_their_caller_and_not_for_the_queues(rig: Rig) -> None:
    await declare(rig.db, "fal", concurrency=1)
    for _ in range(5):
        await rig.submit(one(), caller=CROWD)
    await rig.loops.run_until_idle()
    assert sorted(row["state"] for row in await slots(rig.db)) == ["HELD", *["WAITING"] * 4]
    assert await backlog.callers(rig.db, 100) == {CROWD: 5}
    assert await gauge.queues_and_held(rig.db, 2) == ({QUEUE: (1, pytest.approx(0.0))}, 2), "no more than asked for"
    with pytest.raises(Busy, match="more than 4 steps of this caller wait already"):
        await Depth(rig.db, 100, per_caller_max=4).check(CROWD)
    await Depth(rig.db, 100, per_caller_max=5).check(CROWD)
    # One step is queued: a busy provider does not stop other callers, however long its line is.
    await Depth(rig.db, 1, per_caller_max=1).check(ADA)


async def test_it_looks_once_a_second_however_many_ask(rig: Rig) -> None:
    now_s, looks, real = 0.0, 0, rig.db.run

    async def counted(operation: Any) -> Any:
        nonlocal looks
        looks += 1
        return await real(operation)

    rig.db.run = counted  # type: ignore[method-assign]
    depth = Depth(rig.db, 2, lambda: now_s)
    await asyncio.gather(*(depth.check(CROWD) for _ in range(20)))
    now_s += 0.9
    await depth.check(CROWD)
    assert looks == 1
    now_s += 0.2
    await asyncio.gather(*(depth.check(CROWD) for _ in range(20)))
    assert looks == 2


async def test_it_tells_how_many_wait_and_for_how_long(rig: Rig) -> None:
    await rig.submit(plan(task("a")))
    rig.clock.advance(5)
    await rig.submit(plan(task("a")))
    rig.clock.advance(2)
    depth = Depth(rig.db, 1)
    assert await depth.look() == {QUEUE: (2, pytest.approx(7.0))}
    # It counts no further than it needs to.
    for _ in range(3):
        await rig.submit(plan(task("a")))
    assert (await Depth(rig.db, 1).look())[QUEUE][0] == 3
