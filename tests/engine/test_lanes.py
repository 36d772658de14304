"""Lanes: a worker claims what it can run while its lease lasts, and callers take turns."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.engine.rig import LONG_S, QUEUE, Rig, plan, task
from windlass.core.lane import LANES_MAX
from windlass.core.outcome import Failure, Fault
from windlass.core.plan import Node, NodeKind, Plan
from windlass.engine import recipes, rerun, workers
from windlass.engine.claim import Taken, Turns, claim
from windlass.engine.submit import Submission, submit
from windlass.engine.workers import LEASE_S
from windlass.views.explain import why
from windlass.views.handlers import missing

ONE = plan(task("a"))


async def crowd(rig: Rig, of: Plan, count: int, caller: str, priority: int = 0) -> list[UUID]:
    """So many jobs of one caller."""
    await recipes.register(rig.db, of)
    made = [Submission(of, {}, rig.ids.new(), caller, priority=priority) for _ in range(count)]
    for start in range(0, count, 1_000):
        await submit(rig.db, made[start : start + 1_000])
    return [one.job_id for one in made]


async def take(rig: Rig, turns: Turns, limit: int = 1, worker: UUID | None = None) -> Taken:
    return await claim(rig.db, worker=worker or rig.worker, queues=[QUEUE], limit=limit, turns=turns)


async def lanes(rig: Rig, job: UUID) -> list[str]:
    query = "SELECT lane FROM windlass.steps WHERE job_id = $1 ORDER BY no"
    return [row[0] for row in await rig.db.run(lambda connection: connection.fetch(query, job))]


async def test_a_step_is_born_in_the_lane_of_its_handler_and_caller(rig: Rig) -> None:
    fan = Node("f", run="part", each="inputs.items")
    of = plan(task("a"), fan, Node("t", NodeKind.TIMER, with_={"seconds": 1}))
    job = await rig.submit(of, {"items": [1, 2]}, caller="ada")
    await rig.loops.run_until_idle()
    assert await lanes(rig, job) == ["a ada", "part ada", "", "part ada", "part ada"]
    for one in await rig.claim():
        await rig.settle(one, Failure(Fault("boom", ""), is_retryable=False))
    await rig.loops.run_until_idle()
    rig.clock.advance(2)
    await rig.loops.run_until_idle()
    again = await rerun.retry(rig.db, job, rig.ids.new())
    assert await lanes(rig, again) == ["a ada", "part ada", "", "part ada", "part ada"]


async def test_jobs_that_are_submitted_together_have_each_its_own_lane(rig: Rig) -> None:
    await rig.submit(ONE)
    made = [Submission(ONE, {}, rig.ids.new(), caller) for caller in ("ada", "bob")]
    await submit(rig.db, made)
    assert [await lanes(rig, one.job_id) for one in made] == [["a ada"], ["a bob"]]


@pytest.mark.parametrize("limit", [1, 10])
async def test_a_worker_claims_only_what_it_has_a_handler_for(rig: Rig, limit: int) -> None:
    await rig.submit(plan(task("a"), task("b"), task("ab"), task("c")))
    for _ in range(2):
        await take(rig, turns := Turns(["b"]), limit)
    assert [one.no for one in await rig.claim()] == [0, 2, 3]
    assert await take(rig, turns) == []


async def test_a_step_whose_handler_is_not_known_is_anyones(rig: Rig) -> None:
    job = await rig.submit(ONE)
    await rig.db.run(lambda connection: connection.execute("UPDATE windlass.steps SET lane = ''"))
    assert [one.job_id for one in await take(rig, Turns(["b"]))] == [job]


async def test_a_crowd_of_another_handler_or_caller_does_not_hide_a_step(rig: Rig) -> None:
    await crowd(rig, plan(task("foreign"), recipe="x"), 3_000, "ada", priority=50)
    mine = await rig.submit(plan(task("b"), recipe="y"), caller="bob")
    turns = Turns(["b", "z"])
    assert [one.job_id for one in await take(rig, turns)] == [mine]
    assert await take(rig, turns) == []


@pytest.mark.parametrize("limit", [1, 6])
async def test_callers_take_turns_however_much_one_of_them_queued(rig: Rig, limit: int) -> None:
    of_ada = set(await crowd(rig, ONE, 2_000, "ada"))
    of_bob = await crowd(rig, ONE, 3, "bob")
    turns, taken = Turns(["a"]), []
    while len(taken) < 6:
        taken += [one.job_id for one in await take(rig, turns, limit)]
    assert [job for job in taken if job not in of_ada] == of_bob, "the oldest first"
    assert len(taken) == 6


async def test_priority_goes_before_age_and_before_turns(rig: Rig) -> None:
    both = plan(task("a"), recipe="x"), plan(task("b"), recipe="y")
    low = [await rig.submit(of, caller="ada", priority=0) for of in both]
    high = [await rig.submit(of, caller="ada", priority=5) for of in reversed(both)]
    turns = Turns()
    assert [(await take(rig, turns))[0].job_id for _ in range(4)] == [*high, *low]


async def test_one_callers_handlers_go_by_the_age_of_its_jobs(rig: Rig) -> None:
    jobs = [await rig.submit(plan(task(name), recipe=f"r{name}"), caller="ada") for name in "cabcab"]
    turns = Turns()
    assert [(await take(rig, turns))[0].job_id for _ in range(6)] == jobs


async def test_every_lane_has_its_turn_when_there_are_more_than_one_walk_sees(rig: Rig) -> None:
    callers = [f"c{n:02}" for n in range(2 * LANES_MAX + 3)]
    owner = {await rig.submit(ONE, caller=caller): caller for _ in range(3) for caller in callers}
    turns = Turns(["a"])
    served = [owner[(await take(rig, turns))[0].job_id] for _ in callers]
    assert sorted(served) == callers
    turns, left = Turns(["a"]), 2 * len(callers)
    while left:
        taken = await take(rig, turns, 9)
        left -= len(taken)
        assert taken.is_more == (left > 0)


async def test_a_lapsed_worker_claims_nothing_until_it_renews(rig: Rig) -> None:
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    job = await rig.submit(ONE)
    rig.clock.advance(LEASE_S)
    for limit in (1, 2):
        taken = await take(rig, Turns(), limit, worker)
        assert (taken, taken.is_lapsed, taken.is_lost) == ([], True, False)
    await workers.renew(rig.db, worker)
    assert [one.job_id for one in await take(rig, Turns(), 1, worker)] == [job]


async def test_a_lost_worker_claims_nothing_and_learns_of_it(rig: Rig) -> None:
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    await rig.silence(LEASE_S)
    await rig.submit(ONE)
    for limit in (1, 2):
        taken = await take(rig, Turns(), limit, worker)
        assert (taken, taken.is_lapsed, taken.is_lost) == ([], False, True)
    assert (await take(rig, Turns(), 1, rig.ids.new())).is_lost, "a worker that never enlisted"
    assert len(await rig.claim()) == 1


async def test_a_handler_that_no_live_worker_has_is_named_with_its_last_worker(rig: Rig) -> None:
    old = await rig.enlist(rig.ids.new(), handlers=["a", "b"])
    await workers.dismiss(rig.db, old)
    left_at = rig.clock.now()
    await workers.dismiss(rig.db, rig.worker)
    await rig.enlist(rig.ids.new(), handlers=["a"])
    rig.clock.advance(60)
    job = await rig.submit(plan(task("a"), task("b"), task("never")))
    had, never = await missing(rig.db)
    assert (had.queue, had.handler, had.since, had.worker, had.host) == (QUEUE, "b", left_at, old, "h")
    assert (never.handler, never.worker) == ("never", None) and never.since is not None
    told = {reason.step: reason for reason in await why(rig.db, job)}
    assert told["a"].because.startswith("waits for a free worker")
    assert told["b"].because == (
        f"no live worker of queue {QUEUE} has the handler b; worker {old} on h had it last, "
        "until 2030-01-01 00:00:00 UTC"
    )
    assert told["never"].because.endswith("has the handler never; no worker has had it yet")


async def test_a_worker_without_a_list_may_have_any_handler(rig: Rig) -> None:
    await rig.submit(ONE)
    assert await missing(rig.db) == []
    await rig.enlist(rig.ids.new(), lease_s=LONG_S, handlers=["b"])
    assert await missing(rig.db) == []
