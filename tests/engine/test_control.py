"""What callers do to jobs."""

from __future__ import annotations

import asyncio

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput, NotFound, WrongState
from windlass.core.outcome import Cancel, Failure, Fault, Parked, Success
from windlass.core.plan import Node, NodeKind, OnFailure
from windlass.core.retry import Retry
from windlass.engine import control, installation, recipes, rerun
from windlass.recipe.evaluator import shared_evaluator
from windlass.views import read

BOOM = Failure(Fault("boom", "it broke"), is_retryable=False)
WIDE = plan(task("a"), task("b"), task("c", "a"), task("d", when="inputs.x"))


async def whole(rig: Rig, job: object) -> None:
    view = await read.job(rig.db, job)  # type: ignore[arg-type]
    events = await read.events(rig.db, view.id)
    assert [event.seq for event in events] == list(range(1, view.event_seq + 1))


@pytest.mark.covers("SCR-12", "SCR-88", "SCR-89", "COR-06")
async def test_cancel_sweeps_every_open_step(rig: Rig) -> None:
    job = await rig.submit(WIDE, {"x": True})
    running = await rig.claim_one()
    assert await control.cancel(rig.db, job, reason="too dear", source="ada")
    view = await read.job(rig.db, job)
    assert (view.state, view.steps_open, view.error) == ("CANCELLED", 0, {"code": "cancelled", "message": "too dear"})
    assert await rig.states(job) == ["CANCELLED"] * 4
    assert not await rig.settle(running)
    assert await rig.claim() == []
    assert not await control.cancel(rig.db, job), "a second cancel changes nothing"
    assert {event.source for event in await read.events(rig.db, job)} == {"local", "worker", "ada"}
    await whole(rig, job)


async def test_a_handler_may_cancel_its_job(rig: Rig) -> None:
    job = await rig.submit(WIDE, {"x": True})
    await rig.run_one(Cancel("no budget"))
    assert await rig.state(job) == "CANCELLED"
    assert set(await rig.states(job)) == {"CANCELLED"}
    await whole(rig, job)


async def test_stop_on_failure_ends_the_job_at_once(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), task("b"), on_failure=OnFailure.STOP))
    await rig.run_one(BOOM)
    assert await rig.states(job) == ["FAILED", "CANCELLED"]
    assert await rig.state(job) == "FAILED"
    await whole(rig, job)


async def test_a_paused_job_starts_nothing_until_it_is_resumed(rig: Rig) -> None:
    job = await rig.submit(WIDE, {"x": True})
    running = await rig.claim_one()
    assert await control.pause(rig.db, job)
    assert not await control.pause(rig.db, job)
    assert await rig.settle(running)
    assert await rig.loops.run_until_idle() == 0
    assert await rig.claim() == []
    assert await rig.states(job) == ["COMPLETED", "HELD", "HELD", "READY"]
    assert await control.resume(rig.db, job)
    assert not await control.resume(rig.db, job)
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"
    await whole(rig, job)


async def test_a_finished_job_can_be_neither_paused_nor_resumed(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    await rig.run_out()
    for action in (control.pause, control.resume):
        with pytest.raises(WrongState, match="already COMPLETED"):
            await action(rig.db, job)


async def test_what_is_not_there_cannot_be_controlled(rig: Rig) -> None:
    nobody = rig.ids.new()
    for action in (control.cancel, control.pause, control.resume, control.delete):
        with pytest.raises(NotFound):
            await action(rig.db, nobody)
    for again in (rerun.retry, rerun.rerun):
        with pytest.raises(NotFound):
            await again(rig.db, nobody, rig.ids.new())


async def test_retry_keeps_what_succeeded(rig: Rig) -> None:
    graph = plan(
        task("a"), task("b", "a", each="steps.a.outputs", retry=Retry(max_attempts=1)), task("c", "b"),
        output="${steps.b.outputs}",
    )  # fmt: skip
    old = await rig.submit(graph, {"x": 1}, labels={"k": "v"}, priority=3, idempotency_key="once")
    await rig.run_one(Success("[1,2,3]"))
    await rig.loops.run_until_idle()
    for one, outcome in zip(await rig.claim(), [Success('"p"'), BOOM, Success('"r"')], strict=True):
        await rig.settle(one, outcome)
    assert await rig.state(old) == "FAILED"
    new = await rerun.retry(rig.db, old, rig.ids.new())
    view = await read.job(rig.db, new)
    assert (view.retry_of, view.input, view.labels, view.priority) == (old, {"x": 1}, {"k": "v"}, 3)
    assert (view.steps_total, view.steps_open) == (6, 3)
    [one] = await rig.claim()
    assert (one.index, one.item) == (1, "2")
    await rig.settle(one, Success('"q"'))
    await rig.run_out()
    assert await rig.state(new) == "COMPLETED"
    assert [s.output for s in await read.steps(rig.db, new) if s.index is not None] == ["p", "q", "r"]
    assert await rig.state(old) == "FAILED", "the old job stays as it ended"
    await whole(rig, new)


async def test_retry_of_a_cancelled_job_goes_on_where_it_was(rig: Rig) -> None:
    job = await rig.submit(WIDE, {"x": False})
    await rig.run_one()
    await rig.loops.run_until_idle()
    await control.cancel(rig.db, job)
    new = await rerun.retry(rig.db, job, rig.ids.new())
    assert await rig.states(new) == ["COMPLETED", "QUEUED", "QUEUED", "SKIPPED"]
    await rig.run_out()
    assert await rig.state(new) == "COMPLETED"


async def test_only_a_job_that_ended_badly_can_be_retried(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    with pytest.raises(WrongState, match="is QUEUED"):
        await rerun.retry(rig.db, job, rig.ids.new())
    await rig.run_out()
    with pytest.raises(WrongState, match="is COMPLETED"):
        await rerun.retry(rig.db, job, rig.ids.new())


async def test_rerun_starts_all_of_it_again(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")), {"x": 1}, deadline_s=99)
    await rig.run_out()
    new = await rerun.rerun(rig.db, job, rig.ids.new())
    view = await read.job(rig.db, new)
    assert (view.retry_of, view.input, view.state) == (job, {"x": 1}, "QUEUED")
    assert (view.deadline_at - view.created_at).total_seconds() == 99
    await rig.run_out()
    assert await rig.state(new) == "COMPLETED"


@pytest.mark.covers("SCR-14")
async def test_a_deleted_job_is_hidden_and_keeps_how_it_ended(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    with pytest.raises(WrongState, match="is QUEUED"):
        await control.delete(rig.db, job)
    await rig.run_out()
    await control.delete(rig.db, job)
    await control.delete(rig.db, job)
    assert await read.jobs(rig.db) == []
    [view] = await read.jobs(rig.db, with_deleted=True)
    assert (view.state, view.deleted_at) == ("COMPLETED", rig.clock.now())


async def test_cancelling_a_parent_cancels_its_children_and_theirs(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="leaf"))
    await recipes.register(rig.db, plan(Node("l", NodeKind.RECIPE, run="leaf"), recipe="branch"))
    job = await rig.submit(plan(Node("b", NodeKind.RECIPE, run="branch"), recipe="root"))
    await rig.loops.run_until_idle()
    leaf = await rig.sole_job("leaf")
    running = await rig.claim_one()
    assert running.job_id == leaf
    await control.cancel(rig.db, job)
    await rig.loops.run_until_idle()
    assert [await rig.state(await rig.sole_job(name)) for name in ("root", "branch", "leaf")] == ["CANCELLED"] * 3
    assert not await rig.settle(running)


async def test_a_childs_failure_fails_the_step_that_waits_for_it(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="child"))
    job = await rig.submit(plan(Node("c", NodeKind.RECIPE, run="child"), task("d", "c")))
    await rig.loops.run_until_idle()
    await rig.run_one(BOOM)
    await rig.loops.run_until_idle()
    assert await rig.state(job) == "FAILED"
    [step, after] = await read.steps(rig.db, job)
    assert (step.state, step.error["code"], after.state) == ("FAILED", "child_failed", "ABANDONED")
    assert "it broke" in step.error["message"]


async def test_a_child_hands_its_output_up_and_gets_its_inputs_down(rig: Rig) -> None:
    inner = plan(
        task("a", with_={"n": "${inputs.n}"}), recipe="child", output={"twice": "${steps.a.outputs}"},
        inputs_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    )  # fmt: skip
    await recipes.register(rig.db, inner)
    outer = plan(
        Node("c", NodeKind.RECIPE, run="child", each="inputs.ns", with_={"n": "${item}"}), output="${steps.c.outputs}"
    )
    job = await rig.submit(outer, {"ns": [1, 2]}, correlation_id="x")
    await rig.loops.run_until_idle()
    for one in await rig.claim():
        await rig.settle(one, Success(one.input))
    await rig.run_out()
    result = await read.result(rig.db, rig.artifacts, shared_evaluator(), job)
    assert result == [{"twice": {"n": 1}}, {"twice": {"n": 2}}]
    children = await read.jobs(rig.db, recipe="child")
    assert {child.correlation_id for child in children} == {"x"}
    assert {child.parent_job for child in children} == {job}


async def test_a_child_that_cannot_be_started_fails_its_step(rig: Rig) -> None:
    inner = plan(
        task("a"), recipe="child",
        inputs_schema={"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    )  # fmt: skip
    await recipes.register(rig.db, inner)
    unknown = await rig.submit(plan(Node("c", NodeKind.RECIPE, run="nobody")))
    misfit = await rig.submit(plan(Node("c", NodeKind.RECIPE, run="child", with_={"n": "text"})))
    await rig.loops.run_until_idle()
    for job in (unknown, misfit):
        assert (await read.job(rig.db, job)).error["code"] == "bad_child"


async def test_recipes_that_call_each_other_for_ever_are_stopped(rig: Rig) -> None:
    job = await rig.submit(plan(Node("c", NodeKind.RECIPE, run="loop"), recipe="loop"))
    await rig.loops.run_until_idle()
    assert await rig.state(job) == "FAILED"
    assert len(await read.jobs(rig.db, recipe="loop")) == 1


async def test_a_job_that_waits_outside_can_be_cancelled(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    one = await rig.run_one(Parked("fal"))
    await control.cancel(rig.db, job)
    assert not await rig.settle(one)
    assert await rig.states(job) == ["CANCELLED"]


async def test_a_job_is_there_for_its_owner_and_for_nobody_else(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")), caller="ada")
    await control.owned(rig.db, job, "ada")
    await control.owned(rig.db, job, None)
    for job_id, owner in ((job, "bob"), (rig.ids.new(), "ada"), (rig.ids.new(), None)):
        with pytest.raises(NotFound, match=f"no job {job_id}"):
            await control.owned(rig.db, job_id, owner)
    await rig.run_out()
    await control.delete(rig.db, job)
    for owner in ("ada", None):
        with pytest.raises(NotFound):
            await control.owned(rig.db, job, owner)


async def test_whoever_asked_is_named_in_the_events(rig: Rig) -> None:
    job = await rig.submit(WIDE, {"x": True}, correlation_id="first")
    await control.pause(rig.db, job, source="ada", request_id="req-1")
    await control.resume(rig.db, job, source="bob")
    await control.cancel(rig.db, job, source="ada", request_id="req-2")
    told = [(e.type, e.source, e.correlation_id) for e in await read.events(rig.db, job) if e.no is None]
    assert told == [
        ("job.submitted", "local", "first"), ("job.paused", "ada", "req-1"), ("job.resumed", "bob", "first"),
        ("job.cancelled", "ada", "req-2"),
    ]  # fmt: skip
    assert (await read.job(rig.db, job)).correlation_id == "first"


@pytest.mark.parametrize("given", [{"source": "a\x00"}, {"source": "\ud800"}, {"request_id": "\x00"}])
async def test_an_actor_that_is_no_text_is_refused(rig: Rig, given: dict[str, str]) -> None:
    job = await rig.submit(plan(task("a")))
    for action in (control.cancel, control.pause, control.resume, control.delete):
        with pytest.raises(BadInput):
            await action(rig.db, job, **given)
    for again in (rerun.retry, rerun.rerun):
        with pytest.raises(BadInput):
            await again(rig.db, job, rig.ids.new(), **given)
    assert await rig.types(job) == ["job.submitted"]


@pytest.mark.parametrize("key", ["k", "k" * 255])
async def test_the_same_key_gives_the_same_new_job(rig: Rig, key: str) -> None:
    job = await rig.submit(plan(task("a")))
    await rig.run_one(BOOM)
    for again in (rerun.retry, rerun.rerun):
        new = await again(rig.db, job, rig.ids.new(), key=key, source="ada", request_id="req-1")
        await rig.run_out()
        assert await rig.state(new) == "COMPLETED"
        assert await again(rig.db, job, rig.ids.new(), key=key) == new
        assert await again(rig.db, job, rig.ids.new(), key="another") != new
        assert (await read.job(rig.db, new)).correlation_id == "req-1"
        assert {e.correlation_id for e in await read.events(rig.db, new)} == {"req-1"}
    with pytest.raises(WrongState, match="is COMPLETED"):
        await rerun.retry(rig.db, new, rig.ids.new(), key=key)


async def test_requests_with_one_key_at_once_make_one_job(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    await rig.run_one(BOOM)
    made = await asyncio.gather(*(rerun.retry(rig.db, job, rig.ids.new(), key="k") for _ in range(6)))
    assert len(set(made)) == 1
    await whole(rig, made[0])


async def test_a_child_is_its_parents_callers(rig: Rig) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="leaf"))
    await recipes.register(rig.db, plan(Node("l", NodeKind.RECIPE, run="leaf"), recipe="branch"))
    await rig.submit(plan(Node("b", NodeKind.RECIPE, run="branch"), recipe="root"), caller="ada")
    await rig.loops.run_until_idle()
    assert [view.caller for view in await read.jobs(rig.db)] == ["ada"] * 3


@pytest.mark.covers("SCR-39")
async def test_the_error_of_a_failed_job_names_the_step(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), task("b", "a")))
    await rig.run_one()
    await rig.run_one(BOOM)
    assert (await read.job(rig.db, job)).error == {"code": "boom", "message": "it broke", "step": "b"}
    [step] = [step for step in await read.steps(rig.db, job) if step.error]
    assert step.error == {"code": "boom", "message": "it broke"}
    [failed] = [event for event in await read.events(rig.db, job) if event.type == "step.failed"]
    assert failed.payload == {"error": {"code": "boom", "message": "it broke"}}


async def test_the_error_names_the_first_step_that_failed(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), task("b"), on_failure=OnFailure.STOP))
    await rig.run_one(BOOM)
    assert (await read.job(rig.db, job)).error["step"] == "a"
    [ended] = [event for event in await read.events(rig.db, job) if event.type == "job.failed"]
    assert ended.payload["error"]["step"] == "a"


async def test_where_there_is_a_service_a_new_job_is_followed_though_the_old_one_was_not(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    await rig.run_one(BOOM)
    alone = await rerun.retry(rig.db, job, rig.ids.new())
    assert (await read.job(rig.db, alone)).correlation_id is None
    await installation.serve(rig.db, b"check")
    for again in (rerun.retry, rerun.rerun):
        new = await again(rig.db, job, rig.ids.new())
        assert {event.correlation_id for event in await read.events(rig.db, new)} == {str(new)}
