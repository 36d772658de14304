"""Large fan-outs: too large ones fail, and the others wait for room, so that one caller does not fill the queues."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.engine.lines import call, declare, slots
from tests.engine.rig import Rig, plan, task
from windlass.core import route
from windlass.core.plan import Node, NodeKind
from windlass.core.states import JobState
from windlass.engine import backlog, recipes
from windlass.engine import backlog as room
from windlass.engine.loops import router
from windlass.engine.loops.runner import Loops
from windlass.recipe.evaluator import shared_evaluator
from windlass.testing.checker import Tables, check_tables
from windlass.views import explain, read

MOST = 6


@pytest.fixture
def small(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> Rig:
    """Every limit is so small that a few items pass it."""
    monkeypatch.setattr(route, "FAN_BATCH_MAX", 3)
    monkeypatch.setattr(router, "FREE_MAX", 2)
    monkeypatch.setattr(room, "COUNT_EVERY_S", 0.0)
    rig.loops = Loops(
        rig.db,
        rig.artifacts,
        shared_evaluator(),
        new_id=rig.ids.new,
        spread=lambda: 0.0,
        fan_out_max=20,
        backlog_max=MOST,
    )
    rig.loops.router.patience_s = 60.0
    return rig


def fan(items: int) -> dict[str, list[int]]:
    return {"xs": list(range(items))}


FAN = plan(task("a", each="inputs.xs"), task("b", "a"))


async def counts(rig: Rig) -> dict[str, int]:
    return await backlog.callers(rig.db, 1_000)


async def total(rig: Rig, job: UUID) -> int:
    return (await read.job(rig.db, job)).steps_total - 2


async def test_a_fan_out_above_the_limit_fails(small: Rig) -> None:
    job = await small.submit(FAN, fan(21))
    await small.loops.run_until_idle()
    view = await read.job(small.db, job)
    assert (view.state, view.error["code"], view.steps_total) == (JobState.FAILED, "fan_out_too_large", 2)
    assert "21 items" in view.error["message"]
    exact = await small.submit(FAN, fan(20))
    await small.run_out()
    assert await small.state(exact) is JobState.COMPLETED


async def test_a_fan_out_waits_while_its_caller_has_no_room(small: Rig) -> None:
    job = await small.submit(FAN, fan(20), caller="crowd")
    other = await small.submit(FAN, fan(5), caller="crowd")
    free = await small.submit(FAN, fan(5), caller="ada")
    few = await small.submit(FAN, fan(2), caller="crowd")
    await small.loops.run_until_idle()
    # A caller below its limit may add one batch.
    assert (await counts(small))["crowd"] <= MOST + 3 + 2 + 2
    assert await total(small, job) < 20
    assert await total(small, free) == 5, "another caller has room of its own"
    assert await total(small, few) == 2, "a fan-out of a few is never held up"
    (reason,) = [one for one in await explain.why(small.db, job, "a") if one.state == "READY"]
    assert "20 children are added as there is room" in reason.because
    await small.run_out()
    for one, items in ((job, 20), (other, 5), (free, 5), (few, 2)):
        assert await small.state(one) is JobState.COMPLETED
        assert await total(small, one) == items
        indexes = [step.index for step in await read.steps(small.db, one) if step.index is not None]
        assert indexes == list(range(items))


async def test_at_no_time_do_more_wait_than_the_limit_and_a_batch(small: Rig) -> None:
    for _ in range(4):
        await small.submit(FAN, fan(15), caller="crowd")
    most = 0
    while await small.loops.run_until_idle():
        most = max(most, (await counts(small)).get("crowd", 0))
        for one in await small.claim(2):
            await small.settle(one)
    # The fan-outs themselves wait as well.
    assert most <= MOST + 3 + 4
    await small.run_out()
    assert await counts(small) == {}


async def test_children_that_wait_for_a_slot_use_up_room_too(small: Rig) -> None:
    await declare(small.db, "fal", concurrency=1)
    job = await small.submit(plan(call("a", each="inputs.xs"), task("b", "a")), fan(20), caller="crowd")
    await small.loops.run_until_idle()
    assert await total(small, job) <= MOST + 3
    assert {row["state"] for row in await slots(small.db)} == {"HELD", "WAITING"}
    await small.run_out()
    assert await small.state(job) is JobState.COMPLETED


async def test_child_jobs_of_a_fan_out_are_charged_to_its_caller(small: Rig) -> None:
    await recipes.register(small.db, plan(task("x"), recipe="child"))
    job = await small.submit(plan(Node("c", NodeKind.RECIPE, run="child", each="inputs.xs")), fan(20), caller="crowd")
    await small.loops.run_until_idle()
    assert (await counts(small))["crowd"] <= MOST + 3 + 1
    await small.run_out()
    assert await small.state(job) is JobState.COMPLETED


async def test_a_held_fan_out_has_a_sound_history(small: Rig) -> None:
    await small.submit(FAN, fan(20), caller="crowd")
    job = await small.submit(FAN, fan(9), caller="crowd")
    await small.loops.run_until_idle()
    await small.run_out()
    spans = [event.payload for event in await read.events(small.db, job) if event.type == "step.fanned"]
    assert sum(span["count"] for span in spans) == 9
    async with small.db.connection() as connection:
        assert check_tables(await Tables.read(connection), is_serial=False) == []


async def test_nothing_is_counted_for_small_fan_outs(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    async def callers(*_: object) -> dict[str, int]:
        raise AssertionError("counted")

    monkeypatch.setattr(backlog, "callers", callers)
    job = await rig.submit(FAN, fan(1_000))
    await rig.loops.run_until_idle()
    assert await total(rig, job) == 1_000
