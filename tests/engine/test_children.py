"""Jobs inside jobs: what is handed down and up, what may not be started, and jobs that handlers start themselves."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task, undisturbed
from windlass.core.errors import BadInput, Conflict, NotFound, TooLarge, WrongState
from windlass.core.outcome import Failure, Fault, Parked, Success
from windlass.core.plan import Node, NodeKind, OnFailure, Plan
from windlass.core.retry import Retry
from windlass.engine import children, control, recipes, rerun
from windlass.engine.claim import Claimed
from windlass.engine.loops import expirer
from windlass.engine.loops.auditor import Auditor
from windlass.testing.faults import FaultyDatabase, Moment
from windlass.views import read
from windlass.views.read import JobView

BOOM = Failure(Fault("boom", "it broke"), is_retryable=False)
CHILD = plan(task("a"), task("b", "a", retry=Retry(max_attempts=1)), recipe="child", output="${steps.b.outputs}")


def call(name: str, of: str = "child", *needs: str, **given: Any) -> Node:
    return Node(name, NodeKind.RECIPE, run=of, needs=needs, **given)


async def begun(rig: Rig, of: Plan, inputs: dict[str, Any] | None = None, **given: Any) -> UUID:
    job = await rig.submit(of, inputs, **given)
    await rig.loops.run_until_idle()
    return job


async def sole(rig: Rig, recipe: str) -> JobView:
    return await read.job(rig.db, await rig.sole_job(recipe))


async def times(rig: Rig, job: UUID) -> tuple[Any, Any]:
    async with rig.db.connection() as connection:
        row = await connection.fetchrow("SELECT deadline_at, expires_at, due_at FROM windlass.jobs WHERE id = $1", job)
    assert row["due_at"] == min(filter(None, (row["deadline_at"], row["expires_at"])))
    return row["deadline_at"], row["expires_at"]


async def test_a_child_never_has_longer_than_its_parent(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="leaf"))
    await recipes.register(rig.db, plan(task("w"), call("l", "leaf", "w"), recipe="branch"))
    job = await begun(rig, plan(call("b", "branch"), recipe="root"), deadline_s=600.0)
    rig.clock.advance(60)
    await rig.run_one()
    await rig.loops.run_until_idle()
    ends = (await times(rig, job))[0]
    assert (await times(rig, await rig.sole_job("branch")))[0] == ends
    assert (await times(rig, await rig.sole_job("leaf")))[0] == ends
    rig.clock.advance(540)
    await rig.loops.run_until_idle()
    assert [await rig.state(await rig.sole_job(name)) for name in ("root", "branch", "leaf")] == ["TIMEOUT"] * 3


async def test_it_is_the_parent_that_runs_out_of_time(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expirer, "BATCH_MAX", 1)
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c")), deadline_s=600.0)
    rig.clock.advance(600)
    await rig.loops.expirer.run_once()
    await rig.loops.parent_notifier.run_once()
    assert (await rig.state(job), (await sole(rig, "child")).state) == ("TIMEOUT", "CANCELLED")


async def test_a_child_of_a_job_without_a_deadline_has_none(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    await begun(rig, plan(call("c")))
    assert (await times(rig, await rig.sole_job("child")))[0] is None


async def test_a_child_lives_as_long_as_its_step_says(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c", ttl_s=60.0), task("d", "c")))
    rig.clock.advance(61)
    await rig.loops.run_until_idle()
    assert (await sole(rig, "child")).state == "EXPIRED"
    [step, _] = await read.steps(rig.db, job)
    assert step.error["code"] == "child_failed"
    assert "EXPIRED" in step.error["message"]
    assert await rig.state(job) == "FAILED"


async def test_a_child_lives_as_long_as_its_parent_unless_it_is_told_how_long(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c")), ttl_s=14 * 86400.0)
    child = await rig.sole_job("child")
    assert (await times(rig, child))[1] == (await times(rig, job))[1]
    rig.clock.advance("7d")
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_a_child_takes_over_priority_and_correlation(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    await begun(rig, plan(call("c")), priority=7, correlation_id="req-1", caller="ada")
    child = await sole(rig, "child")
    assert (child.priority, child.correlation_id, child.caller) == (7, "req-1", "ada")
    async with rig.db.connection() as connection:
        found = await connection.fetch("SELECT priority FROM windlass.steps WHERE job_id = $1", child.id)
    assert {row["priority"] for row in found} == {7}


@pytest.mark.covers("SCR-49")
async def test_the_parent_sees_one_step_and_one_completion(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c"), output="${steps.c.outputs}"))
    await rig.run_out()
    assert (await rig.types(job)).count("step.completed") == 1
    assert await rig.state(job) == "COMPLETED"
    assert len(await read.steps(rig.db, job)) == 1


async def test_a_recipe_that_starts_itself_with_the_same_inputs_is_stopped_at_once(rig: Rig) -> None:
    job = await begun(rig, plan(call("c", "loop", with_={"n": "${inputs.n}"}), recipe="loop"), {"n": 1})
    view = await read.job(rig.db, job)
    assert (view.state, view.error["code"]) == ("FAILED", "bad_child")
    assert f"a cycle: job {job} is already loop with the same inputs" in view.error["message"]
    assert len(await read.jobs(rig.db, recipe="loop")) == 1


async def test_a_cycle_over_several_recipes_is_found(rig: Rig) -> None:
    await recipes.register(rig.db, plan(call("c", "a", with_={"n": 1}), recipe="b"))
    job = await begun(rig, plan(call("c", "b"), recipe="a"), {"n": 1})
    assert await rig.state(job) == "FAILED"
    assert [len(await read.jobs(rig.db, recipe=name)) for name in "ab"] == [1, 1]
    assert (await sole(rig, "b")).error["code"] == "bad_child"


async def test_a_recipe_may_start_itself_with_other_inputs(rig: Rig) -> None:
    again = call("c", "down", with_={"n": "${inputs.n - 1}"}, when="inputs.n > 0")
    job = await begun(rig, plan(again, recipe="down"), {"n": 3})
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"
    assert len(await read.jobs(rig.db, recipe="down")) == 4


async def test_true_and_one_are_other_inputs(rig: Rig) -> None:
    await begun(rig, plan(call("c", "r", with_={"n": True}, when="inputs.n == 1"), recipe="r"), {"n": 1})
    await rig.run_out()
    assert len(await read.jobs(rig.db, recipe="r")) == 2


async def test_recipes_that_go_on_for_ever_are_stopped_by_their_depth(rig: Rig) -> None:
    deeper = call("c", "deep", with_={"n": "${inputs.n + 1}"})
    job = await begun(rig, plan(deeper, recipe="deep"), {"n": 0})
    assert await rig.state(job) == "FAILED"
    assert len(await read.jobs(rig.db, recipe="deep")) == children.DEPTH_MAX + 1


async def test_a_thousand_children_come_to_their_end(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="leaf", output="${inputs.n}"))
    fan = call("c", "leaf", each="inputs.ns", with_={"n": "${item}"})
    job = await begun(rig, plan(fan, output="${steps.c.outputs}"), {"ns": list(range(1000))})
    await rig.run_out()
    view = await read.job(rig.db, job)
    assert view.state == "COMPLETED"
    assert await read.result(rig.db, rig.artifacts, rig.loops.router._resolver, job) == list(range(1000))
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.inbox") == 0
        assert await connection.fetchval("SELECT count(*) FROM windlass.jobs WHERE state = 'COMPLETED'") == 1001


async def test_a_failed_child_among_many_fails_the_fan_out_after_the_others(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a", retry=Retry(max_attempts=1)), recipe="leaf"))
    job = await begun(rig, plan(call("c", "leaf", each="inputs.ns", with_={"n": "${item}"})), {"ns": [1, 2, 3]})
    [one, *others] = await rig.claim()
    await rig.settle(one, BOOM)
    for other in others:
        await rig.settle(other)
    await rig.loops.run_until_idle()
    fan = (await read.steps(rig.db, job))[0]
    assert (fan.state, fan.error["code"], fan.error["message"]) == (
        "FAILED",
        "children_failed",
        "1 of 3 children failed",
    )


async def test_a_branch_that_fails_at_once_cancels_the_children(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    stops = plan(call("c"), task("x", retry=Retry(max_attempts=1)), on_failure=OnFailure.STOP)
    await begun(rig, stops)
    taken = {(await read.job(rig.db, one.job_id)).recipe: one for one in await rig.claim()}
    await rig.settle(taken["r"], BOOM)
    await rig.loops.run_until_idle()
    assert (await sole(rig, "child")).state == "CANCELLED"
    assert not await rig.settle(taken["child"])


async def test_a_cancelled_child_fails_the_step_that_waits_for_it(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c")))
    await control.cancel(rig.db, await rig.sole_job("child"), reason="not wanted")
    await rig.loops.run_until_idle()
    error = (await read.job(rig.db, job)).error
    assert (error["code"], "CANCELLED: not wanted" in error["message"]) == ("child_failed", True)


async def test_a_child_that_is_no_longer_there_when_its_end_is_told_fails_the_step(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c")))
    await rig.run_one()
    await rig.run_one()
    async with rig.db.connection() as connection:
        await connection.execute("DELETE FROM windlass.jobs WHERE recipe = 'child'")
    await rig.loops.run_until_idle()
    assert "COMPLETED and is no longer there" in (await read.job(rig.db, job)).error["message"]


async def test_what_looks_like_a_reference_is_handed_up_as_it_is(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="echo", output="${inputs.x}"))
    secret = (await rig.artifacts.put(b'"what others have stored"')).as_json()
    echoed = plan(call("c", "echo", with_={"x": "${inputs.x}"}), output="${steps.c.outputs}")
    job = await begun(rig, echoed, {"x": secret})
    await rig.run_out()
    assert await read.result(rig.db, rig.artifacts, rig.loops.router._resolver, job) == secret


async def test_a_paused_parent_starts_no_child_and_lets_the_others_go_on(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c"), call("d", "child", "c", with_={})))
    await control.pause(rig.db, job)
    await rig.run_out()
    assert (await sole(rig, "child")).state == "COMPLETED", "it is under way like an attempt that runs"
    assert await rig.states(job) == ["COMPLETED", "READY"]
    await control.resume(rig.db, job)
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_a_paused_child_waits_and_its_parent_with_it(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c")))
    child = await rig.sole_job("child")
    await control.pause(rig.db, child)
    await rig.run_out()
    assert (await rig.state(job), await rig.states(job)) == ("DISPATCHING", ["PARKED"])
    await control.resume(rig.db, child)
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


async def test_a_retried_parent_goes_on_where_its_child_failed(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c", with_={"n": "${inputs.n}"}), output="${steps.c.outputs}"), {"n": 1})
    await rig.run_one(Success('"dear"'))
    await rig.run_one(BOOM)
    await rig.loops.run_until_idle()
    assert await rig.state(job) == "FAILED"
    before = await rig.sole_job("child")
    again = await rerun.retry(rig.db, job, rig.ids.new())
    await rig.loops.run_until_idle()
    [after] = [view for view in await read.jobs(rig.db, recipe="child") if view.id != before]
    assert (after.retry_of, after.parent_job) == (before, again)
    assert [(step.state, step.output) for step in await read.steps(rig.db, after.id)] == [
        ("COMPLETED", "dear"),
        ("QUEUED", None),
    ]
    await rig.run_out('"done"')
    assert await rig.state(again) == "COMPLETED"
    events = await read.events(rig.db, after.id)
    assert [event.seq for event in events] == list(range(1, len(events) + 1))


async def test_a_retried_parent_starts_afresh_what_is_no_longer_the_same(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c")))
    await rig.run_one()
    await rig.run_one(BOOM)
    await rig.loops.run_until_idle()
    await recipes.register(rig.db, plan(task("a"), recipe="child"))
    await rerun.retry(rig.db, job, rig.ids.new())
    await rig.loops.run_until_idle()
    children_now = await read.jobs(rig.db, recipe="child")
    assert sorted(view.retry_of is None for view in children_now) == [True, True]


async def test_a_rerun_parent_has_new_children(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c")))
    await rig.run_one()
    await rig.run_one(BOOM)
    await rig.loops.run_until_idle()
    again = await rerun.rerun(rig.db, job, rig.ids.new())
    await rig.loops.run_until_idle()
    fresh = [view for view in await read.jobs(rig.db, recipe="child") if view.parent_job == again]
    assert [await rig.states(view.id) for view in fresh] == [["QUEUED", "BLOCKED"]]


async def test_a_retried_fan_out_keeps_the_children_that_succeeded(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), task("b", "a", retry=Retry(max_attempts=1)), recipe="leaf"))
    fan = plan(call("c", "leaf", each="inputs.ns", with_={"n": "${item}"}))
    job = await begun(rig, fan, {"ns": [1, 2, 3]})
    for one in await rig.claim():
        await rig.settle(one)
    [first, *rest] = await rig.claim()
    await rig.settle(first, BOOM)
    for one in rest:
        await rig.settle(one)
    await rig.loops.run_until_idle()
    again = await rerun.retry(rig.db, job, rig.ids.new())
    await rig.loops.run_until_idle()
    [only] = [view for view in await read.jobs(rig.db, recipe="leaf") if view.parent_job == again]
    assert only.retry_of == first.job_id
    assert await rig.states(only.id) == ["COMPLETED", "QUEUED"]
    await rig.run_out()
    assert await rig.state(again) == "COMPLETED"


# What handlers start themselves.


async def spawn(rig: Rig, one: Claimed, recipe: str = "child", inputs: Any = None, *, key: str | None = None) -> UUID:
    at = (one.job_id, one.no, one.attempt)
    return await children.spawn(rig.db, rig.ids.new(), at, recipe, inputs, key=key)


async def spawning(rig: Rig, **given: Any) -> Claimed:
    await recipes.register(rig.db, CHILD)
    await rig.submit(plan(task("a")), **given)
    return await rig.claim_one()


async def test_a_spawned_job_is_the_handlers_own(rig: Rig) -> None:
    one = await spawning(rig, caller="ada", correlation_id="req", priority=3, deadline_s=50.0)
    child = await read.job(rig.db, await spawn(rig, one, inputs={}))
    assert (child.caller, child.correlation_id, child.priority, child.parent_job) == ("ada", "req", 3, one.job_id)
    assert (await times(rig, child.id))[0] == (await times(rig, one.job_id))[0]
    assert await rig.settle(one, Parked("children", 40.0))
    await rig.run_out()
    assert await rig.state(child.id) == "COMPLETED"
    assert await rig.states(one.job_id) == ["PARKED"], "nobody but the handler waits for it"
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.inbox") == 0
    assert await rig.settle(one, Success("1"))
    assert await rig.state(one.job_id) == "COMPLETED"


async def test_an_attempt_that_is_made_again_finds_what_was_started(rig: Rig) -> None:
    one = await spawning(rig)
    first, unnamed = await spawn(rig, one, key="x"), await spawn(rig, one, inputs={"n": 1})
    assert await spawn(rig, one, key="x") == first
    assert await spawn(rig, one, inputs={"n": 1}) == unnamed
    assert await spawn(rig, one, inputs={"n": 2}) != unnamed
    await rig.settle(one, Failure(Fault("later", "again"), after_s=1.0))
    rig.clock.advance(2)
    await rig.loops.run_until_idle()
    [two] = [taken for taken in await rig.claim() if taken.job_id == one.job_id]
    assert (two.attempt, await spawn(rig, two, key="x"), await spawn(rig, two, inputs={"n": 1})) == (2, first, unnamed)
    with pytest.raises(Conflict, match="'x' was used in this step"):
        await spawn(rig, two, inputs={"n": 9}, key="x")
    assert await spawn(rig, two, key="y" * 300) == await spawn(rig, two, key="y" * 300)


async def test_at_once_they_are_one(rig: Rig) -> None:
    one = await spawning(rig)
    assert len(set(await asyncio.gather(*(spawn(rig, one, key="x") for _ in range(6))))) == 1
    assert len(await read.jobs(rig.db, recipe="child")) == 1


async def test_an_attempt_that_is_over_starts_nothing(rig: Rig) -> None:
    one = await spawning(rig)
    await rig.settle(one, Parked("outside"))
    with pytest.raises(WrongState, match="is over"):
        await spawn(rig, one)
    await control.cancel(rig.db, one.job_id)
    with pytest.raises(WrongState, match="is over"):
        await spawn(rig, one)
    with pytest.raises(WrongState, match="is over"):
        await children.spawn(rig.db, rig.ids.new(), (rig.ids.new(), 0, 1), "child")
    assert await read.jobs(rig.db, recipe="child") == []


async def test_spawned_jobs_end_with_the_job_that_started_them(rig: Rig) -> None:
    one = await spawning(rig)
    child = await spawn(rig, one)
    await control.cancel(rig.db, one.job_id)
    await rig.loops.run_until_idle()
    assert await rig.state(child) == "CANCELLED"


async def test_a_job_that_is_spawned_while_its_starter_is_cancelled_ends_too(rig: Rig) -> None:
    """One of the two sees the other: either nothing was started, or what was started is cancelled."""
    for n in range(10):
        one = await spawning(rig, caller=f"c{n}")
        spawned, _ = await asyncio.gather(spawn(rig, one), control.cancel(rig.db, one.job_id), return_exceptions=True)
        await rig.loops.run_until_idle()
        if isinstance(spawned, UUID):
            assert await rig.state(spawned) == "CANCELLED"
        else:
            assert isinstance(spawned, WrongState)


async def test_a_spawned_job_goes_on_when_its_starter_is_done(rig: Rig) -> None:
    one = await spawning(rig)
    child = await spawn(rig, one)
    await rig.settle(one)
    assert await rig.state(one.job_id) == "COMPLETED"
    await rig.run_out()
    assert await rig.state(child) == "COMPLETED"


async def test_what_may_not_be_spawned(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    one = await spawning(rig)
    with pytest.raises(NotFound, match="no recipe nobody"):
        await spawn(rig, one, "nobody")
    with pytest.raises(BadInput, match="a cycle"):
        await spawn(rig, one, "r")
    with pytest.raises(BadInput, match="at least one character"):
        await spawn(rig, one, key="")
    monkeypatch.setattr(children, "SPAWNED_MAX", 2)
    for key in ("1", "2"):
        await spawn(rig, one, key=key)
    with pytest.raises(TooLarge, match="has started 2 jobs"):
        await spawn(rig, one, key="3")
    assert await spawn(rig, one, key="2"), "what is there already is no new one"
    monkeypatch.setattr(children, "DEPTH_MAX", 0)
    with pytest.raises(BadInput, match="0 deep"):
        await spawn(rig, one, key="4")


class TestACommitWhoseAnswerWasLost:
    @pytest.fixture
    def rig(self, shaky: Rig) -> Rig:
        return shaky

    @pytest.mark.parametrize("moment", list(Moment))
    async def test_spawns_one_job(self, rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
        one = await spawning(rig)
        faulty.faults.append(moment)
        child = await spawn(rig, one)
        assert [view.id for view in await read.jobs(rig.db, recipe="child")] == [child]

    @pytest.mark.parametrize("moment", list(Moment))
    async def test_keeps_a_retried_child_once(self, rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
        await recipes.register(rig.db, CHILD)
        job = await begun(rig, plan(call("c")))
        await rig.run_one()
        await rig.run_one(BOOM)
        await rig.loops.run_until_idle()
        again = await rerun.retry(rig.db, job, rig.ids.new())
        # The router looks what there is to do, then up the line, and then writes.
        faulty.faults.extend([None, None, moment])
        await rig.loops.router.run_once()
        await rig.run_out()
        assert await rig.state(again) == "COMPLETED"
        assert len(await read.jobs(rig.db, recipe="child")) == 2


class Heard:
    """Keeps what it is told of jobs that ended."""

    def __init__(self) -> None:
        self.ends: dict[UUID, UUID | None] = {}

    def ended(self, job_id: UUID, *given: Any) -> None:
        self.ends[job_id] = given[-1]


async def test_whoever_traces_jobs_is_told_what_started_them(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    job = await begun(rig, plan(call("c")), correlation_id="req")
    await rig.run_out()
    await undisturbed(rig.db)
    heard = Heard()
    await Auditor(rig.db, observer=heard).run_once()  # type: ignore[arg-type]
    assert heard.ends == {job: None, await rig.sole_job("child"): job}
