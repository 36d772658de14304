"""SchemaState in line: limits, order, and what happens to a place when its step goes on, waits, fails or is stopped."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.engine.lines import call, check, declare, drain, end, granted, keyed, one, slot, slots
from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadSetting
from windlass.core.outcome import Failure, Fault, Lost, Outcome, Parked, Released, Snooze
from windlass.core.plan import OnFailure
from windlass.core.retry import Retry
from windlass.core.states import JobState, StepState
from windlass.engine import control
from windlass.engine.claim import Claimed

BOOM = Fault("boom", "it broke")
S = StepState


@pytest.fixture(autouse=True)
async def fal(rig: Rig) -> None:
    await declare(rig.db)


@pytest.mark.covers("SCR-73", "SCR-75")
async def test_a_step_waits_for_its_providers_place_and_gives_it_back(rig: Rig) -> None:
    await declare(rig.db, concurrency=2)
    jobs = [await rig.submit(one()) for _ in range(5)]
    await rig.loops.run_until_idle()
    assert [await rig.states(job) for job in jobs] == [[S.QUEUED], [S.QUEUED], [S.HELD], [S.HELD], [S.HELD]]
    done = 0
    while taken := await rig.claim():
        assert len(taken) <= 2
        await check(rig.db)
        for claimed in taken:
            assert await rig.settle(claimed)
            done += 1
        await rig.loops.run_until_idle()
    assert done == 5
    assert await slots(rig.db) == []
    assert {await rig.state(job) for job in jobs} == {JobState.COMPLETED}


@pytest.mark.covers("SCR-73")
async def test_a_provider_that_nobody_declared_has_one_place(rig: Rig) -> None:
    first, second = [await rig.submit(one(provider="unheard_of")) for _ in range(2)]
    assert await granted(rig) == [first]
    assert await slot(rig.db, second) == "WAITING"


async def test_a_key_at_a_provider_that_nobody_declared_is_not_forgotten(rig: Rig) -> None:
    jobs = [await rig.submit(keyed(name), {"key": "k"}) for name in ("unheard_of", "nor_of_this")]
    [first] = await granted(rig)
    await end(rig, first)
    assert {first, *await granted(rig)} == set(jobs)


async def test_the_line_goes_by_priority_and_then_by_age(rig: Rig) -> None:
    running = await rig.submit(one())
    claimed = await _claimed(rig, running)
    jobs = [await rig.submit(one(), priority=priority) for priority in (0, 5, 0, 9, 5)]
    order: list[int] = []
    while len(order) < 5:
        await rig.settle(claimed)
        await rig.loops.run_until_idle()
        claimed = await rig.claim_one()
        order.append(jobs.index(claimed.job_id))
    assert order == [3, 1, 4, 0, 2]


async def test_a_key_has_its_own_limit(rig: Rig) -> None:
    a = [await rig.submit(keyed(limit=2), {"key": "a"}) for _ in range(4)]
    b = await rig.submit(keyed(limit=2), {"key": "b"})
    assert sorted(await granted(rig)) == sorted([*a[:2], b])
    await check(rig.db)


async def test_a_key_counts_wherever_it_is_used(rig: Rig) -> None:
    await declare(rig.db, concurrency=9)
    await declare(rig.db, "other", concurrency=9)
    jobs = [await rig.submit(keyed(provider), {"key": "a"}) for provider in ("fal", "other", "", "fal")]
    gone = []
    for _ in jobs:
        [job] = await granted(rig)
        await check(rig.db)
        await end(rig, job)
        gone.append(job)
    assert sorted(gone) == sorted(jobs)


async def test_keys_take_turns_in_a_providers_line(rig: Rig) -> None:
    await declare(rig.db, concurrency=1)
    many = keyed("fal", limit=50)
    a = [await rig.submit(many, {"key": "a"}) for _ in range(30)]
    await rig.loops.run_until_idle()
    b = [await rig.submit(many, {"key": "b"}) for _ in range(3)]
    c = [await rig.submit(many, {"key": "c"}) for _ in range(3)]
    order = await drain(rig, 12)
    assert [job for job in order if job in b] == b
    assert [job for job in order if job in c] == c
    assert [job for job in order if job in a] == a[:6]


async def test_those_without_a_key_are_one_more_among_keys(rig: Rig) -> None:
    await declare(rig.db, concurrency=1)
    await rig.submit(one())
    a = [await rig.submit(keyed("fal", limit=50), {"key": "a"}) for _ in range(6)]
    await rig.loops.run_until_idle()
    free = [await rig.submit(one()) for _ in range(30)]
    order = (await drain(rig, 13))[1:]
    assert [job for job in order if job in a] == a
    assert [job for job in order if job in free] == free[:6]


async def test_a_full_key_does_not_hold_up_others_behind_it(rig: Rig) -> None:
    await declare(rig.db, concurrency=3)
    a = [await rig.submit(keyed("fal"), {"key": "a"}) for _ in range(30)]
    free = [await rig.submit(one()) for _ in range(2)]
    assert sorted(await granted(rig)) == sorted([a[0], *free])
    await check(rig.db)


async def test_a_later_step_of_higher_priority_goes_first_within_its_key(rig: Rig) -> None:
    await declare(rig.db, concurrency=1)
    jobs = [await rig.submit(keyed("fal"), {"key": "a"}) for _ in range(3)]
    await rig.loops.run_until_idle()
    urgent = await rig.submit(keyed("fal"), {"key": "a"}, priority=9)
    assert await drain(rig, 4) == [jobs[0], urgent, *jobs[1:]]


async def test_the_children_of_a_fan_out_stand_in_line_each_for_itself(rig: Rig) -> None:
    await declare(rig.db, concurrency=3)
    job = await rig.submit(plan(call("a", each="[1,2,3,4,5,6,7,8]"), task("b", "a")))
    done = 0
    while (await rig.state(job)) is not JobState.COMPLETED:
        await rig.loops.run_until_idle()
        await check(rig.db)
        taken = await rig.claim()
        assert 0 < len(taken) <= 3
        for claimed in taken:
            await rig.settle(claimed)
        done += len(taken)
    assert done == 9


async def test_a_condition_is_looked_at_before_the_line(rig: Rig) -> None:
    job = await rig.submit(plan(call("a", when="false"), task("b", "a")))
    await rig.loops.run_until_idle()
    assert await rig.states(job) == [S.SKIPPED, S.QUEUED]
    assert await slots(rig.db) == []


@pytest.mark.parametrize("outcome", [Lost(), Released()])
async def test_an_attempt_that_is_begun_again_keeps_its_place(rig: Rig, outcome: Outcome) -> None:
    job, other = [await rig.submit(one()) for _ in range(2)]
    claimed = await _claimed(rig, job)
    await rig.settle(claimed, outcome)
    assert await slot(rig.db, job) == "HELD"
    assert await granted(rig) == [job]
    assert await slot(rig.db, other) == "WAITING"


@pytest.mark.parametrize("outcome", [Failure(BOOM, after_s=60), Snooze(60)])
async def test_a_step_that_is_put_off_gives_its_place_back_and_lines_up_again(rig: Rig, outcome: Outcome) -> None:
    job, other = [await rig.submit(one(retry=Retry(max_attempts=3))) for _ in range(2)]
    await rig.settle(await _claimed(rig, job), outcome)
    assert await slot(rig.db, job) == "IDLE"
    assert await granted(rig) == [other]
    rig.clock.advance(60)
    await rig.loops.run_until_idle()
    assert await slot(rig.db, job) == "WAITING"
    await end(rig, other)
    assert await granted(rig) == [job]
    await check(rig.db)


async def test_a_step_that_waits_for_its_provider_holds_its_place(rig: Rig) -> None:
    job, other = [await rig.submit(one(retry=Retry(max_attempts=1))) for _ in range(2)]
    await rig.settle(await _claimed(rig, job), Parked("fal", 60))
    assert await granted(rig) == []
    assert await slot(rig.db, job) == "HELD"
    rig.clock.advance(60)
    assert await granted(rig) == [other]
    assert await rig.state(job) is JobState.TIMEOUT
    await check(rig.db)


async def test_a_key_is_kept_through_a_retry(rig: Rig) -> None:
    job = await rig.submit(keyed(retry=Retry(max_attempts=3)), {"key": "a"})
    await rig.settle(await _claimed(rig, job), Failure(BOOM, after_s=1))
    other = await rig.submit(keyed(), {"key": "a"})
    assert await granted(rig) == [other]
    rig.clock.advance(1)
    assert await granted(rig) == []
    await end(rig, other)
    assert await granted(rig) == [job]


@pytest.mark.parametrize("at", ["waiting", "queued", "running", "parked", "idle"])
async def test_a_cancelled_job_leaves_the_line_wherever_it_was(rig: Rig, at: str) -> None:
    ahead = await rig.submit(one()) if at == "waiting" else None
    job, other = [await rig.submit(one()) for _ in range(2)]
    if at in ("running", "parked", "idle"):
        claimed = await _claimed(rig, job)
        if at != "running":
            await rig.settle(claimed, Parked("fal", 60) if at == "parked" else Failure(BOOM, after_s=60))
    await rig.loops.run_until_idle()
    await control.cancel(rig.db, job)
    assert await slot(rig.db, job) is None
    await check(rig.db)
    if ahead is not None:
        assert await granted(rig) == [ahead]
        await end(rig, ahead)
    if at != "idle":
        assert await granted(rig) == [other]


async def test_a_job_that_stops_at_a_failure_leaves_every_line(rig: Rig) -> None:
    await declare(rig.db, concurrency=3)
    nodes = [call(name, retry=Retry(max_attempts=1)) for name in "abcde"]
    job = await rig.submit(plan(*nodes, on_failure=OnFailure.STOP))
    other = await rig.submit(one())
    await rig.loops.run_until_idle()
    await rig.run_one(Failure(BOOM))
    assert await rig.state(job) is JobState.FAILED
    assert await granted(rig) == [other]
    await check(rig.db)


@pytest.mark.covers("SCR-75")
async def test_an_overdue_job_leaves_the_line(rig: Rig) -> None:
    await rig.submit(one(), deadline_s=5)
    other = await rig.submit(one())
    await rig.loops.run_until_idle()
    rig.clock.advance(6)
    assert await granted(rig) == [other]


async def test_a_paused_job_lets_the_others_pass_and_stands_in_line_again(rig: Rig) -> None:
    first, paused, last = [await rig.submit(one()) for _ in range(3)]
    await rig.loops.run_until_idle()
    await control.pause(rig.db, paused)
    assert await slot(rig.db, paused) == "IDLE"
    await end(rig, first)
    assert await granted(rig) == [last]
    await check(rig.db)
    await control.resume(rig.db, paused)
    assert await slot(rig.db, paused) == "WAITING"
    await end(rig, last)
    assert await granted(rig) == [paused]
    await check(rig.db)


async def test_pausing_a_job_whose_step_was_let_go_gives_the_place_back(rig: Rig) -> None:
    first, second = [await rig.submit(one()) for _ in range(2)]
    await rig.loops.run_until_idle()
    await control.pause(rig.db, first)
    assert await granted(rig) == [second]
    await control.resume(rig.db, first)
    assert await granted(rig) == []
    await end(rig, second)
    assert await granted(rig) == [first]
    await check(rig.db)


async def test_pausing_the_first_of_a_key_brings_the_next_to_the_front(rig: Rig) -> None:
    await declare(rig.db, concurrency=1)
    holder = await rig.submit(one())
    a = [await rig.submit(keyed("fal"), {"key": "a"}) for _ in range(2)]
    await rig.loops.run_until_idle()
    await control.pause(rig.db, a[0])
    await end(rig, holder)
    assert await granted(rig) == [a[1]]


async def test_more_places_are_used_at_once(rig: Rig) -> None:
    jobs = [await rig.submit(one()) for _ in range(3)]
    assert await granted(rig) == jobs[:1]
    await declare(rig.db, concurrency=3)
    assert await granted(rig) == jobs[1:]


async def test_fewer_places_take_nothing_from_those_who_hold_one(rig: Rig) -> None:
    await declare(rig.db, concurrency=3)
    jobs = [await rig.submit(one()) for _ in range(4)]
    assert await granted(rig) == jobs[:3]
    await declare(rig.db, concurrency=1)
    await end(rig, jobs[0])
    await end(rig, jobs[1])
    assert await granted(rig) == []
    await end(rig, jobs[2])
    assert await granted(rig) == jobs[3:]


async def test_a_job_without_a_line_writes_none(rig: Rig) -> None:
    await rig.submit(plan(task("a"), task("b", "a")))
    await rig.run_out()
    assert await slots(rig.db) == []
    assert await rig.db.run(lambda c: c.fetchval("SELECT count(*) FROM windlass.slot_changes")) == 0


async def test_a_bad_declaration_is_refused(rig: Rig) -> None:
    with pytest.raises(BadSetting):
        await declare(rig.db, concurrency=0)
    with pytest.raises(BadSetting):
        await declare(rig.db, rate=0)


async def _claimed(rig: Rig, job: UUID) -> Claimed:
    await rig.loops.run_until_idle()
    claimed = await rig.claim_one()
    assert claimed.job_id == job
    return claimed
