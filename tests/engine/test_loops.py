"""The engine's duties, each done once at a time of the test's choosing."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from tests.engine.rig import QUEUE, Rig, plan, task
from windlass.core import route
from windlass.core.lease import RESCUE_AFTER_S
from windlass.core.outcome import Failure, Fault, Lost, Report, Success
from windlass.core.plan import Node, NodeKind
from windlass.core.queue import apart
from windlass.core.retry import SILENT_LOSSES_MAX, SUSPECT_LOSSES, Retry
from windlass.engine import control, recipes, workers
from windlass.engine.claim import claim
from windlass.engine.hand_back import hand_back
from windlass.engine.loops.pruner import Pruner
from windlass.engine.loops.runner import Loops
from windlass.engine.settle import settle
from windlass.engine.workers import LEASE_S
from windlass.recipe.evaluator import shared_evaluator
from windlass.views import read
from windlass.views import workers as worker_views

ONE = plan(task("a"))


def timer(name: str, seconds: object, *needs: str) -> Node:
    return Node(name, NodeKind.TIMER, needs=needs, with_={"seconds": seconds})


async def test_a_condition_is_resolved_from_inputs_and_outputs(rig: Rig) -> None:
    job = await rig.submit(
        plan(
            task("a"),
            task("yes", "a", when="steps.a.outputs.ok"),
            task("no", "a", when="inputs.x > 5"),
            task("after", "yes", "no"),
        ),
        {"x": 1},
    )
    await rig.run_one(Success('{"ok":true}'))
    await rig.loops.run_until_idle()
    assert await rig.states(job) == ["COMPLETED", "QUEUED", "SKIPPED", "BLOCKED"]
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


@pytest.mark.parametrize(
    ("node", "code"),
    [
        (task("a", when="inputs.x"), "bad_expression"),
        (task("a", each="inputs.x"), "bad_expression"),
        (task("a", when="inputs.nothing"), "bad_expression"),
        (timer("a", "soon"), "bad_timer"),
        (timer("a", -1), "bad_timer"),
        (timer("a", True), "bad_timer"),
    ],
)
async def test_what_cannot_be_resolved_fails_the_step_with_the_reason(rig: Rig, node: Node, code: str) -> None:
    job = await rig.submit(plan(node), {"x": 7})
    await rig.loops.run_until_idle()
    view = await read.job(rig.db, job)
    assert (view.state, view.error["code"]) == ("FAILED", code)


async def test_a_fan_out_of_thousands_takes_several_commits(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(route, "FAN_BATCH_MAX", 1_000)
    job = await rig.submit(plan(task("a", each="inputs.xs"), task("b", "a")), {"xs": list(range(2_500))})
    done = await rig.loops.router.run_once()
    assert done.is_more
    assert (await read.job(rig.db, job)).steps_total == 1_002
    await rig.run_out()
    view = await read.job(rig.db, job)
    assert (view.state, view.steps_total, view.steps_open) == ("COMPLETED", 2_502, 0)
    spans = [e.payload for e in await read.events(rig.db, job) if e.type == "step.fanned"]
    assert [(span["from"], span["count"], span["of"]) for span in spans] == [
        (0, 1000, 2500), (1000, 1000, 2500), (2000, 500, 2500),
    ]  # fmt: skip
    items = [s.item for s in await read.steps(rig.db, job) if s.index is not None]
    assert items == list(range(2_500))


@pytest.mark.covers("COR-30", "COR-88")
async def test_two_routers_fan_out_once(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", each="inputs.xs")), {"xs": [1, 2, 3]})
    other = Loops(rig.db, rig.artifacts, shared_evaluator(), new_id=rig.ids.new, spread=lambda: 0.0)
    other.router.patience_s = rig.loops.router.patience_s
    await asyncio.gather(rig.loops.router.run_once(), other.router.run_once())
    assert (await read.job(rig.db, job)).steps_total == 4


@pytest.mark.covers("COR-105")
async def test_a_timer_takes_its_time_and_no_more(rig: Rig) -> None:
    job = await rig.submit(plan(timer("t", "${inputs.s}"), task("a", "t")), {"s": 3600})
    await rig.loops.run_until_idle()
    rig.clock.advance("59m59s")
    await rig.run_out()
    assert await rig.states(job) == ["PARKED", "BLOCKED"]
    rig.clock.advance(1)
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


@pytest.mark.covers("COR-84", "COR-97", "JN-30", "JN-48")
async def test_a_lost_workers_steps_run_again_and_its_late_report_is_refused(rig: Rig) -> None:
    job = await rig.submit(ONE)
    old = await rig.claim_one(await rig.enlist(rig.ids.new(), lease_s=LEASE_S))
    rig.clock.advance(LEASE_S - 0.001)
    assert await rig.loops.run_until_idle() == 0
    rig.clock.advance(0.001)
    assert await rig.loops.run_until_idle() == 1
    second = await rig.enlist(rig.ids.new())
    new = await rig.claim_one(second)
    assert new.attempt == 2
    assert not await rig.settle(old)
    assert await rig.settle(new)
    [step] = await read.steps(rig.db, job)
    assert (step.state, step.losses, step.failures) == ("COMPLETED", 1, 0)


@pytest.mark.covers("COR-95")
async def test_a_lease_that_ran_out_can_be_renewed_until_the_worker_is_marked_as_lost(rig: Rig) -> None:
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    rig.clock.advance(LEASE_S + 1)
    assert await workers.renew(rig.db, worker)
    await rig.silence(LEASE_S)
    assert not await workers.renew(rig.db, worker)
    await rig.enlist(worker, lease_s=LEASE_S)
    assert not await workers.renew(rig.db, worker), "not under the same id"


@pytest.mark.covers("JN-30")
async def test_a_step_that_keeps_killing_its_workers_fails(rig: Rig) -> None:
    job = await rig.submit(ONE)
    for number in range(SILENT_LOSSES_MAX):
        worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
        queue = QUEUE if number < SUSPECT_LOSSES else apart(QUEUE)
        [step] = await read.steps(rig.db, job)
        assert (step.queue, step.losses, step.state) == (queue, number, "QUEUED")
        assert len(await claim(rig.db, worker=worker, queues=[queue], limit=1)) == 1
        await rig.silence(LEASE_S)
        await rig.loops.run_until_idle()
    assert (await read.job(rig.db, job)).error["code"] == "worker_lost"


async def test_a_dead_workers_steps_are_handed_back_and_only_those_that_had_begun_are_charged(rig: Rig) -> None:
    jobs = [await rig.submit(ONE) for _ in range(3)]
    taken = await rig.claim(3)
    keys = {(one.job_id, one.no, one.attempt) for one in taken if one.job_id in jobs[:2]}
    assert await hand_back(rig.db, rig.worker, keys, spread=rig.spread) == 3
    found = [(await read.steps(rig.db, job))[0] for job in jobs]
    assert [(step.state, step.losses, step.queue) for step in found] == [
        ("QUEUED", 1, QUEUE),
        ("QUEUED", 1, QUEUE),
        ("QUEUED", 0, QUEUE),
    ]
    events = [event for job in jobs for event in await read.events(rig.db, job) if event.source == "heartbeat"]
    assert [event.payload for event in events] == [
        {"because": "worker_lost", "company": 1, "how": "the worker process died"},
        {"because": "worker_lost", "company": 1, "how": "the worker process died"},
        {"because": "released"},
    ]
    assert not await workers.renew(rig.db, rig.worker)
    # The rescuer has nothing left to report, and a second report of the same death changes nothing.
    assert await rig.loops.run_until_idle() == 0
    assert await hand_back(rig.db, rig.worker, keys, spread=rig.spread) == 0
    again = [Report(*key, Lost(0), source="heartbeat") for key in sorted(keys)]
    assert not any((await settle(rig.db, again, spread=rig.spread)).took_effect)
    assert [(await read.steps(rig.db, job))[0].losses for job in jobs] == [1, 1, 0]


async def test_attempts_without_a_name_in_the_table_may_all_have_begun(rig: Rig) -> None:
    job = await rig.submit(ONE)
    await rig.claim_one()
    assert await hand_back(rig.db, rig.worker, set(), unnamed=2, spread=rig.spread) == 1
    [step] = await read.steps(rig.db, job)
    assert (step.state, step.losses) == ("QUEUED", 1)


@pytest.mark.covers("COR-34")
async def test_a_hung_attempt_is_ended_after_its_time_and_a_grace(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", timeout_s=30, retry=Retry(max_attempts=1))))
    await rig.claim_one()
    for _ in range(7):
        rig.clock.advance(5)
        assert await workers.renew(rig.db, rig.worker)
        await rig.loops.run_until_idle()
    assert await rig.state(job) == "PROCESSING"
    rig.clock.advance(RESCUE_AFTER_S + 0.001 - 5)
    await rig.loops.run_until_idle()
    ended = await read.job(rig.db, job)
    assert (ended.state, ended.error["code"]) == ("TIMEOUT", "attempt_timeout")


async def test_a_worker_that_leaves_in_good_order_is_forgotten(rig: Rig) -> None:
    await rig.submit(ONE)
    one = await rig.claim_one()
    await workers.dismiss(rig.db, rig.worker)
    assert len(await worker_views.listing(rig.db)) == 1, "it still holds a step"
    await rig.settle(one)
    await workers.dismiss(rig.db, rig.worker)
    assert await worker_views.listing(rig.db) == []


@pytest.mark.covers("COR-91")
async def test_a_lost_worker_is_shown_for_a_day(rig: Rig) -> None:
    worker = await rig.enlist(rig.ids.new(), lease_s=LEASE_S)
    await rig.submit(ONE)
    await rig.claim_one(worker)
    _, view = await worker_views.listing(rig.db)
    assert (view.running, view.lost_at, view.queues) == (1, None, (QUEUE,))
    await rig.silence(LEASE_S)
    await rig.loops.run_until_idle()
    _, view = await worker_views.listing(rig.db)
    assert (view.id, view.running, view.lost_at) == (worker, 0, rig.clock.now())
    rig.clock.advance("25h")
    await rig.loops.pruner.run_once()
    assert [view.id for view in await worker_views.listing(rig.db)] == [rig.worker]


@pytest.mark.covers("SCR-13", "COR-32")
@pytest.mark.parametrize(
    ("given", "after", "state"),
    [({"deadline_s": 60}, 60, "TIMEOUT"), ({"ttl_s": 60}, 60, "EXPIRED"), ({}, 24 * 3600, "EXPIRED")],
)
async def test_a_job_past_its_time_ends(rig: Rig, given: dict[str, float], after: float, state: str) -> None:
    job = await rig.submit(plan(task("a"), task("b", "a")), **given)
    await rig.run_one()
    rig.clock.advance(after - 1)
    await rig.loops.run_until_idle()
    assert await rig.state(job) == "PROCESSING"
    rig.clock.advance(1)
    await rig.loops.run_until_idle()
    assert await rig.state(job) == state
    assert await rig.states(job) == ["COMPLETED", "CANCELLED"]


async def test_a_finished_job_does_not_expire(rig: Rig) -> None:
    job = await rig.submit(ONE, deadline_s=5, ttl_s=10)
    await rig.run_out()
    rig.clock.advance("2d")
    assert await rig.loops.run_until_idle() == 0
    assert await rig.state(job) == "COMPLETED"


async def test_retention_removes_old_finished_jobs_and_nothing_else(rig: Rig) -> None:
    old_open = await rig.submit(ONE, ttl_s=100 * 86400)
    await control.pause(rig.db, old_open)
    done = [await rig.submit(ONE) for _ in range(3)]
    await rig.run_out()
    rig.clock.advance("29d")
    young = await rig.submit(ONE)
    await rig.run_out()
    assert (await rig.loops.pruner.run_once()).count == 0
    rig.clock.advance("1d1s")
    assert (await rig.loops.pruner.run_once()).count == 3
    left = {view.id for view in await read.jobs(rig.db)}
    assert left == {old_open, young}
    async with rig.db.connection() as connection:
        for table in ("steps", "events"):
            gone = await connection.fetchval(f"SELECT count(*) FROM windlass.{table} WHERE job_id = ANY($1)", done)
            assert gone == 0


async def test_retention_goes_in_batches(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    for _ in range(5):
        await rig.submit(ONE)
    await rig.run_out()
    rig.clock.advance("2d")
    monkeypatch.setattr("windlass.engine.loops.pruner.BATCH_MAX", 2)
    pruner = Pruner(rig.db, 86400.0)
    batches = [await pruner.run_once() for _ in range(4)]
    assert [(done.count, done.is_more) for done in batches] == [(2, True), (2, True), (1, False), (0, False)]


async def test_word_for_a_parent_that_ended_meanwhile_is_dropped(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="child"))
    job = await rig.submit(plan(Node("c", NodeKind.RECIPE, run="child")))
    await rig.loops.run_until_idle()
    one = await rig.claim_one()
    await control.cancel(rig.db, job)
    assert await rig.settle(one), "the child does not know yet"
    assert await rig.loops.run_until_idle() > 0
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.inbox") == 0
    assert await rig.state(job) == "CANCELLED"


async def test_a_childs_output_that_does_not_exist_fails_the_parents_step(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="child", output="${steps.a.outputs.nothing}"))
    job = await rig.submit(plan(Node("c", NodeKind.RECIPE, run="child")))
    await rig.run_out(output="{}")
    assert (await read.job(rig.db, job)).error["code"] == "bad_output"


async def test_a_childs_large_output_travels_by_reference(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="child", output="${inputs.big}"))
    job = await rig.submit(
        plan(Node("c", NodeKind.RECIPE, run="child", with_={"big": "${inputs.big}"}), output="${steps.c.outputs}"),
        {"big": "x" * 300_000},
    )
    await rig.run_out()
    assert "$artifact" in (await read.steps(rig.db, job))[0].output
    assert await read.result(rig.db, rig.artifacts, shared_evaluator(), job) == "x" * 300_000


@pytest.mark.covers("SCR-19", "COR-29", "COR-103")
async def test_started_loops_hear_the_bells_and_keep_time(dsn: str, rig: Rig) -> None:
    """The one test in which real time passes: the loops as a deployment runs them."""
    from windlass.store.database import Database

    db = await Database.open(dsn)
    loops = Loops(db, rig.artifacts, shared_evaluator(), new_id=rig.ids.new, spread=lambda: 0.0)
    waiter = read.Waiter(db)
    real = Rig(db, rig.clock, rig.ids, rig.artifacts)
    try:
        await loops.start()
        job = await real.submit(plan(timer("t", 0.2), task("a", "t", when="inputs.x")), {"x": False})
        assert (await waiter.wait(job, 10)).state == "COMPLETED"
    finally:
        await loops.stop()
        await db.close()


async def test_a_retry_is_due_at_the_moment_it_names(rig: Rig) -> None:
    job = await rig.submit(ONE)
    await rig.run_one(Failure(Fault("x", ""), after_s=12.5))
    [step] = await read.steps(rig.db, job)
    assert step.wake_at == rig.clock.now() + timedelta(seconds=12.5)
    assert await claim(rig.db, worker=rig.worker, queues=[QUEUE], limit=1) == []
