"""Why a step does not run: a sentence for every way of waiting and of having ended."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import NotFound
from windlass.core.outcome import Failure, Fault, Parked, Snooze
from windlass.core.plan import Node, NodeKind
from windlass.core.retry import Retry
from windlass.engine import control, recipes, workers
from windlass.views.explain import why

BOOM = Fault("boom", "it broke")


async def because(rig: Rig, job: UUID, step: str) -> str:
    [reason] = await why(rig.db, job, step)
    return reason.because


async def test_a_queued_step_waits_for_a_worker(rig: Rig) -> None:
    await rig.submit(plan(task("a")))
    job = await rig.submit(plan(task("a")))
    assert await because(rig, job, "a") == "waits for a free worker of queue main_processing; 1 ahead of it"
    await workers.dismiss(rig.db, rig.worker)
    assert await because(rig, job, "a") == "no worker takes from queue main_processing; start one"


async def test_a_blocked_step_names_what_it_needs(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), task("b"), task("c", "a", "b")))
    await rig.run_one()
    [reason] = await why(rig.db, job, "c")
    assert (reason.because, reason.detail) == ("needs b", {"needs": ["b"]})


async def test_a_running_step_names_its_worker(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", timeout_s=60)))
    await rig.claim_one()
    told = await because(rig, job, "a")
    assert told == f"runs on worker {rig.worker}, attempt 1, at most until 2030-01-01 00:01:00 UTC"


@pytest.mark.parametrize(
    ("outcome", "told"),
    [
        (Failure(BOOM, after_s=60), "attempt 1 failed (boom); tried again at 2030-01-01 00:01:00 UTC"),
        (Snooze(60), "snoozed until 2030-01-01 00:01:00 UTC"),
        (Parked("fal"), "waits for fal"),
        (Parked("fal", 60), "waits for fal until 2030-01-01 00:01:00 UTC"),
        (Failure(BOOM, is_retryable=False), "boom: it broke"),
    ],
)
async def test_a_step_that_spoke_is_explained(rig: Rig, outcome: Snooze | Parked | Failure, told: str) -> None:
    job = await rig.submit(plan(task("a")))
    await rig.run_one(outcome)
    assert await because(rig, job, "a") == told


async def test_what_the_engine_waits_for_is_explained(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="child"))
    job = await rig.submit(
        plan(
            Node("t", NodeKind.TIMER, with_={"seconds": 60}),
            Node("c", NodeKind.RECIPE, run="child"),
            task("f", each="inputs.xs"),
            task("w", when="inputs.x"),
        ),
        {"xs": [1, 2], "x": False},
    )
    assert await because(rig, job, "w") == "the engine is about to resolve its condition or fan-out"
    await rig.loops.run_until_idle()
    assert await because(rig, job, "t") == "sleeps until 2030-01-01 00:01:00 UTC"
    assert await because(rig, job, "c") == "waits for its child job"
    assert await because(rig, job, "f") == "waits for 2 of 2 children"
    assert (await because(rig, job, "f[1]")).startswith("waits for a free worker")
    assert await because(rig, job, "w") == "is SKIPPED"
    assert {reason.step for reason in await why(rig.db, job)} == {"t", "c", "f", "f[0]", "f[1]"}


async def test_a_paused_job_says_so(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), task("w", when="inputs.x")), {"x": True})
    await control.pause(rig.db, job)
    assert await because(rig, job, "a") == await because(rig, job, "w") == "the job is paused"


async def test_an_abandoned_step_says_why(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", retry=Retry(max_attempts=1)), task("b", "a")))
    await rig.run_one(Failure(BOOM))
    assert await because(rig, job, "b") == "can never run: a step that it needs failed"


async def test_an_unknown_step_is_refused_with_the_known_ones(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    with pytest.raises(NotFound, match="Its steps are a"):
        await why(rig.db, job, "b")
    with pytest.raises(NotFound):
        await why(rig.db, rig.ids.new())
