"""When jobs expire: a default time to live covers the job's waits, a chosen one stands."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput
from windlass.core.plan import Node, NodeKind
from windlass.core.states import JobState
from windlass.engine import control, recipes, rerun
from windlass.views import explain, read

DAY_S = 86400.0


def wait(name: str, *needs: str, **given: Any) -> Node:
    return Node(name, NodeKind.EVENT, run=name, needs=needs, **given)


def timer(name: str, seconds: Any) -> Node:
    return Node(name, NodeKind.TIMER, with_={"seconds": seconds})


def call(name: str, recipe: str, **given: Any) -> Node:
    return Node(name, NodeKind.RECIPE, run=recipe, **given)


async def lives_s(rig: Rig, job: UUID) -> float:
    view = await read.job(rig.db, job)
    assert view.expires_at is not None
    return (view.expires_at - view.created_at).total_seconds()


async def pass_s(rig: Rig, seconds: float) -> None:
    rig.clock.advance(timedelta(seconds=seconds))
    await rig.loops.run_until_idle()


async def test_the_declared_waits_of_the_longest_path_are_added_to_a_day(rig: Rig) -> None:
    job = await rig.submit(plan(wait("a", wait_s=2 * DAY_S), timer("t", 600), wait("b", "a", wait_s=3600.0)))
    assert await lives_s(rig, job) == 3 * DAY_S + 3600
    await rig.loops.run_until_idle()
    await pass_s(rig, 30 * 3600)
    assert await rig.state(job) is JobState.DISPATCHING
    await pass_s(rig, 20 * 3600)
    assert await rig.state(job) is JobState.TIMEOUT


async def test_a_recipe_says_how_long_its_jobs_live_and_a_caller_overrules_it(rig: Rig) -> None:
    of = plan(task("a"), ttl_s=7 * DAY_S)
    assert await lives_s(rig, await rig.submit(of)) == 7 * DAY_S
    assert await lives_s(rig, await rig.submit(of, ttl_s=60.0)) == 60
    with pytest.raises(BadInput, match="ttl must be longer than 0"):
        await rig.submit(of, ttl_s=0)


async def test_a_default_moves_with_a_wait_whose_length_was_not_known(rig: Rig) -> None:
    job = await rig.submit(plan(timer("t", "${inputs.seconds}")), {"seconds": 3 * DAY_S})
    assert await lives_s(rig, job) == DAY_S
    await rig.loops.run_until_idle()
    assert 4 * DAY_S <= await lives_s(rig, job) < 4 * DAY_S + 60
    await pass_s(rig, 3 * DAY_S + 1)
    assert await rig.state(job) is JobState.COMPLETED


@pytest.mark.parametrize(
    ("given", "ends"), [({"ttl_s": DAY_S}, JobState.EXPIRED), ({"deadline_s": DAY_S}, JobState.TIMEOUT)]
)
async def test_a_chosen_end_stands_and_why_says_so(rig: Rig, given: dict[str, float], ends: JobState) -> None:
    job = await rig.submit(plan(timer("t", "${inputs.seconds}")), {"seconds": 3 * DAY_S}, **given)
    await rig.loops.run_until_idle()
    [reason] = await explain.why(rig.db, job)
    assert f"; the job {'expires' if ends is JobState.EXPIRED else 'times out'} before, at " in reason.because
    assert "job_ends_at" in reason.detail
    await pass_s(rig, DAY_S + 1)
    assert await rig.state(job) is ends


async def test_a_wait_within_the_jobs_life_is_not_remarked_upon(rig: Rig) -> None:
    job = await rig.submit(plan(wait("a", wait_s=2 * DAY_S)))
    await rig.loops.run_until_idle()
    [reason] = await explain.why(rig.db, job)
    assert "before" not in reason.because


async def test_a_job_outlives_the_waits_of_its_child_jobs(rig: Rig) -> None:
    await recipes.register(rig.db, plan(wait("w", wait_s=2 * DAY_S), recipe="inner"))
    await recipes.register(rig.db, plan(call("m", "inner"), recipe="middle"))
    job = await rig.submit(plan(call("c", "middle")))
    await rig.loops.run_until_idle()
    await pass_s(rig, 30 * 3600)
    assert await rig.state(job) is JobState.DISPATCHING
    inner = await rig.sole_job("inner")
    assert await lives_s(rig, inner) == 3 * DAY_S
    await pass_s(rig, 20 * 3600)
    assert await rig.state(inner) is JobState.TIMEOUT
    assert await rig.state(job) is JobState.FAILED


async def test_a_job_and_children_without_long_waits_expire_together(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("w"), recipe="inner"))
    job = await rig.submit(plan(call("c", "inner")))
    await rig.loops.run_until_idle()
    await pass_s(rig, DAY_S + 1)
    assert await rig.state(job) is JobState.EXPIRED
    assert await rig.state(await rig.sole_job("inner")) in (JobState.EXPIRED, JobState.CANCELLED)


async def test_a_rerun_has_a_default_again_and_keeps_a_chosen_time(rig: Rig) -> None:
    for given, wanted in (({}, DAY_S), ({"ttl_s": 600.0}, 600.0)):
        job = await rig.submit(plan(timer("t", "${inputs.seconds}")), {"seconds": 3 * DAY_S}, **given)
        await rig.loops.run_until_idle()
        await control.cancel(rig.db, job)
        again = await rerun.rerun(rig.db, job, rig.ids.new())
        assert await lives_s(rig, again) == wanted
