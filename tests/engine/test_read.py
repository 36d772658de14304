"""Looking at jobs."""

from __future__ import annotations

import asyncio

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput, NotFound, WaitTimeout, WrongState
from windlass.core.outcome import Failure, Fault, Success
from windlass.core.states import JobState
from windlass.engine import control
from windlass.recipe.evaluator import shared_evaluator
from windlass.views import read

ONE = plan(task("a"))


async def test_jobs_are_listed_newest_first_and_page_by_page(rig: Rig) -> None:
    made = [await rig.submit(ONE) for _ in range(5)]
    first = await read.jobs(rig.db, limit=2)
    rest = await read.jobs(rig.db, before=first[-1].id)
    assert [view.id for view in first + rest] == list(reversed(made))


async def test_jobs_are_found_by_state_recipe_caller_and_label(rig: Rig) -> None:
    a = await rig.submit(ONE, caller="ada", labels={"k": "v", "l": "w"})
    b = await rig.submit(plan(task("a"), recipe="other"), labels={"k": "x"})
    await control.cancel(rig.db, b)

    async def found(**given: object) -> list[object]:
        return [view.id for view in await read.jobs(rig.db, **given)]  # type: ignore[arg-type]

    assert await found(states=[JobState.QUEUED]) == [a]
    assert await found(states=[JobState.CANCELLED]) == [b]
    assert await found(states=[JobState.CANCELLED], caller="ada") == []
    assert await found(recipe="other") == [b]
    assert await found(caller="ada") == [a]
    assert await found(labels={"k": "v"}) == [a]
    assert await found(labels={"k": "v", "l": "x"}) == []


@pytest.mark.parametrize("limit", [0, 1001])
async def test_a_page_has_a_limit(rig: Rig, limit: int) -> None:
    with pytest.raises(BadInput):
        await read.jobs(rig.db, limit=limit)


async def test_a_job_is_found_by_the_beginning_of_its_id(rig: Rig) -> None:
    first, last = await rig.submit(ONE), await rig.submit(ONE)
    assert await read.find(rig.db, str(first)) == first
    assert await read.find(rig.db, "@last") == last
    with pytest.raises(BadInput, match="more than one"):
        await read.find(rig.db, first.hex[:8])
    with pytest.raises(NotFound):
        await read.find(rig.db, "ffff")
    for nonsense in ("", "xyz", "0" * 33):
        with pytest.raises(BadInput, match="not a job's id"):
            await read.find(rig.db, nonsense)


async def test_events_come_after_the_one_that_was_seen(rig: Rig) -> None:
    job = await rig.submit(ONE)
    await rig.run_out()
    assert [event.seq for event in await read.events(rig.db, job, after=2, limit=2)] == [3, 4]


async def test_the_output_is_made_from_the_steps(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), output={"x": "${steps.a.outputs}", "in": "${inputs.n}"}), {"n": 1})
    with pytest.raises(WrongState, match="is QUEUED"):
        await read.result(rig.db, rig.artifacts, shared_evaluator(), job)
    await rig.run_out(output='"y"')
    assert await read.result(rig.db, rig.artifacts, shared_evaluator(), job) == {"x": "y", "in": 1}


async def test_wide_fan_outs_are_counted(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", each="inputs.xs"), task("b", "a")), {"xs": [1, 2, 3]})
    await rig.loops.run_until_idle()
    await rig.run_one(Failure(Fault("x", ""), is_retryable=False))
    nodes, counts = await read.overview(rig.db, job)
    assert [node.state for node in nodes] == ["PARKED", "BLOCKED"]
    assert [(c.state, c.count, c.failures) for c in counts] == [("FAILED", 1, 1), ("QUEUED", 2, 0)]


async def test_a_waiter_hears_of_the_end(rig: Rig) -> None:
    job = await rig.submit(ONE)
    waiter = read.Waiter(rig.db)
    waits = [asyncio.create_task(waiter.wait(job, 10)) for _ in range(3)]
    await asyncio.sleep(0.05)
    await rig.run_one(Success("1"))
    assert {view.state for view in await asyncio.gather(*waits)} == {"COMPLETED"}
    assert (await waiter.wait(job)).state == "COMPLETED"


async def test_a_waiter_gives_up_in_time(rig: Rig) -> None:
    job = await rig.submit(ONE)
    with pytest.raises(WaitTimeout, match=r"within 0\.05 s"):
        await read.Waiter(rig.db).wait(job, 0.05)
