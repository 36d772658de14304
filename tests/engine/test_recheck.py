"""Staleness: a claim takes nothing that a newer policy denies, and the warden judges all other open jobs again."""

from __future__ import annotations

import asyncio
from uuid import UUID

from tests.engine.rig import QUEUE, Rig, plan, task
from tests.engine.test_door import DENY_BAD, consistent, document, put, row, verdicts
from windlass.core.errors import Denied
from windlass.core.hold import Hold
from windlass.core.states import JobState, StepState
from windlass.engine import publish, recipes
from windlass.engine.claim import Turns
from windlass.engine.claim import claim as claim_steps
from windlass.engine.door import policies_of
from windlass.engine.submit import Submission, submit
from windlass.views import read

S = StepState
ALLOW = document("{id: go, match: {topics: [job.*]}, decision: allow}")


async def bad_jobs(rig: Rig, count: int, recipe: str = "bad") -> list[UUID]:
    of = plan(task("a"), recipe=recipe)
    await recipes.register(rig.db, of)
    answers = await submit(rig.db, [Submission(of, {}, rig.ids.new()) for _ in range(count)])
    return [answer.job_id for answer in answers if not isinstance(answer, Denied)]  # type: ignore[misc]


async def test_a_claim_takes_nothing_that_a_newer_policy_denies(rig: Rig) -> None:
    await rig.enlist()
    old = await bad_jobs(rig, 30)
    await put(rig, DENY_BAD)
    assert await rig.claim(1) == [] and await rig.claim(10) == []
    for job in old:
        assert await rig.state(job) is JobState.DENIED
        assert await rig.states(job) == [S.CANCELLED]
        assert [one["decision"] for one in await verdicts(rig, job)] == ["deny"]
    await consistent(rig)


async def test_stale_jobs_at_the_front_do_not_starve_the_good_ones_behind(rig: Rig) -> None:
    await rig.enlist()
    of = {name: plan(task("a"), recipe=name) for name in ("bad", "good")}
    for one in of.values():
        await recipes.register(rig.db, one)
    wishes = [Submission(of["bad"], {}, rig.ids.new()) for _ in range(40)]
    wishes += [Submission(of["good"], {}, rig.ids.new()) for _ in range(3)]
    await submit(rig.db, wishes)
    no = await put(rig, DENY_BAD)
    taken = [one for _ in range(4) for one in await rig.claim(1)]
    assert [one.job_id for one in taken] == [one.job_id for one in wishes[40:]]
    assert [(await row(rig, one.job_id))["policy"] for one in taken] == [no] * 3


async def test_stale_jobs_of_many_lanes_are_judged_too(rig: Rig) -> None:
    await rig.enlist()
    for caller in ("ann", "bob", "eve"):
        await rig.submit(plan(task("a"), recipe="bad"), caller=caller)
        await rig.submit(plan(task("a"), recipe="good"), caller=caller)
    await put(rig, DENY_BAD)
    turns, taken = Turns(), []
    for _ in range(10):
        taken += await claim_steps(rig.db, worker=rig.worker, queues=[QUEUE], limit=4, turns=turns)
    assert len(taken) == 3
    assert {(await read.job(rig.db, one.job_id)).recipe for one in taken} == {"good"}


async def test_new_only_leaves_earlier_jobs_alone(rig: Rig) -> None:
    await rig.enlist()
    await put(rig, ALLOW)
    [job] = await bad_jobs(rig, 1)
    await put(rig, DENY_BAD, new_only=True)
    assert [one.job_id for one in await rig.claim()] == [job]


async def test_the_warden_ends_denied_jobs_that_no_claim_would_see(rig: Rig) -> None:
    await rig.enlist()
    [running] = await bad_jobs(rig, 1)
    one = await rig.claim_one()
    no = await put(rig, DENY_BAD)
    await rig.submit(plan(task("a")))
    await rig.loops.run_until_idle()
    assert await rig.state(running) is JobState.DENIED
    view = await read.job(rig.db, running)
    assert view.error is not None and view.error["code"] == "safety_denied"
    # The attempt is cancelled: what it reports is refused.
    assert not await rig.settle(one)
    async with rig.db.connection() as connection:
        assert dict(await connection.fetchrow("SELECT no, floor, swept FROM windlass.policy_now")) == {
            "no": no,
            "floor": no,
            "swept": no,
        }
    await consistent(rig)


async def test_the_warden_raises_the_number_of_good_jobs(rig: Rig) -> None:
    jobs = await bad_jobs(rig, 5)
    for _ in range(2):
        no = await put(rig, ALLOW + "# more\n" if _ else ALLOW)
        await rig.loops.run_until_idle()
        assert {(await row(rig, job))["policy"] for job in jobs} <= {no}
    assert await verdicts(rig, jobs[0]) == []


async def test_a_job_that_has_begun_is_held_until_the_policy_lets_it_go_on(rig: Rig) -> None:
    await rig.enlist()
    job = await rig.submit(plan(task("a"), task("b", "a"), task("c")))
    first = await rig.claim_one()
    await put(rig, document("{id: slow, match: {topics: [job.r]}, decision: throttle}"))
    await rig.loops.run_until_idle()
    assert await rig.states(job) == [S.RUNNING, S.BLOCKED, S.HELD]
    # A step that becomes ready later is not claimed either.
    assert await rig.settle(first)
    assert await rig.claim() == []
    assert [Hold(step.holds) for step in await read.steps(rig.db, job)][1:] == [Hold.POLICY, Hold.POLICY]
    assert await rig.state(job) is JobState.PROCESSING
    await put(rig, ALLOW)
    rig.clock.advance(60)
    await rig.loops.run_until_idle()
    await rig.run_out()
    assert await rig.state(job) is JobState.COMPLETED
    await consistent(rig)


async def test_no_step_that_it_denies_is_claimed_once_publish_has_returned(rig: Rig) -> None:
    await rig.enlist()
    await put(rig, ALLOW)
    of = plan(task("a"), recipe="bad")
    await recipes.register(rig.db, of)
    is_published, taken_after = False, []

    async def submits() -> None:
        for _ in range(40):
            await submit(rig.db, [Submission(of, {}, rig.ids.new())])

    async def claims() -> None:
        for _ in range(60):
            was_published = is_published
            taken = await claim_steps(rig.db, worker=rig.worker, queues=[QUEUE], limit=2)
            if was_published:
                taken_after.extend(taken)

    async def publishes() -> None:
        nonlocal is_published
        await asyncio.sleep(0)
        await publish.publish(rig.db, {"main": DENY_BAD}, by="op", untested="a test")
        is_published = True

    await asyncio.gather(*(submits() for _ in range(4)), *(claims() for _ in range(3)), publishes())
    policies_of(rig.db).expire()
    for _ in range(20):
        taken_after += await rig.claim(10)
    assert taken_after == []
