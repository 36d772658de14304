"""An undo waits for attempts that may still act, and undoes what succeeds after the end of its job."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.outcome import Failure, Fault, Released, Success
from windlass.core.plan import OnFailure, Plan, Undo
from windlass.core.states import JobState, StepState
from windlass.engine import control, rerun, settle, undo
from windlass.engine.claim import Claimed
from windlass.recipe.evaluator import Evaluator
from windlass.store import undo as store
from windlass.store.plans import plan_of
from windlass.views import read
from windlass.views.undo import effects
from windlass.worker.handler import Prepared
from windlass.worker.undo import NOTHING, UndoCall, UndoSteps

BOOM = Failure(Fault("boom", "it broke"), is_retryable=False)
STOPS = plan(
    task("a", undo=Undo("una")), task("b", undo=Undo("unb"), with_={"to": "${inputs.to}"}), task("c"),
    on_failure=OnFailure.STOP,
)  # fmt: skip


async def report(rig: Rig, one: Claimed, outcome: Any) -> bool:
    """Report as the worker that ran the attempt."""
    return (await settle.settle(rig.db, [one.report(outcome)], spread=lambda: 0.0)).took_effect[0]


async def ended(rig: Rig, of: Plan = STOPS) -> tuple[UUID, Claimed]:
    """Return a job that failed while `b` ran, and the attempt of `b`."""
    job = await rig.submit(of, {"to": "ada"})
    a, b, c = await rig.claim(3)
    assert await report(rig, a, Success('"A"'))
    assert await report(rig, c, BOOM)
    return job, b


async def newest(rig: Rig, job: UUID) -> read.JobView:
    undo_job = (await read.job(rig.db, job)).undo_job_id
    assert undo_job is not None
    return await read.job(rig.db, undo_job)


async def call_of(rig: Rig, evaluator: Evaluator, undo_job: UUID, no: int) -> Any:
    """Return what a worker would do for this undo step."""
    of = await plan_of(rig.db, (await read.job(rig.db, undo_job)).plan)
    return await UndoSteps(rig.db, rig.artifacts, evaluator).call(undo_job, no, Prepared(of, no, None))


@pytest.mark.covers("COR-43", "COR-48")
async def test_the_undo_is_in_the_commit_that_ends_the_job(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await rig.submit(plan(task("a", undo=Undo("una")), task("b", "a")))
    await rig.run_one()
    one = await rig.claim_one()
    whole = store.insert

    async def broken(connection: Any, new: Any) -> None:
        await whole(connection, new)
        raise RuntimeError("the process dies before the commit")

    monkeypatch.setattr(store, "insert", broken)
    with pytest.raises(RuntimeError):
        await report(rig, one, BOOM)
    assert await rig.state(job) is JobState.PROCESSING
    assert (await read.job(rig.db, job)).undo_job_id is None
    monkeypatch.setattr(store, "insert", whole)
    assert await report(rig, one, BOOM)
    assert (await newest(rig, job)).created_at == (await read.job(rig.db, job)).finished_at


async def test_the_first_undo_waits_for_an_attempt_and_a_late_success_is_undone(rig: Rig, evaluator: Evaluator) -> None:
    job, b = await ended(rig)
    held = await newest(rig, job)
    await rig.loops.run_until_idle()
    assert (await rig.state(held.id), await rig.states(held.id)) == (JobState.PENDING, ["HELD", "BLOCKED"])
    assert not await report(rig, b, Success('"B"')), "the step itself stays cancelled"
    assert not await report(rig, b, Success('"again"')), "and so does a repeat"
    await rig.loops.run_until_idle()
    assert await rig.states(held.id) == ["QUEUED", "BLOCKED"]
    assert await call_of(rig, evaluator, held.id, 0) == UndoCall({"to": "ada", "output": "B"}, f"undo/{job}/b")
    assert await call_of(rig, evaluator, held.id, 1) == UndoCall({"output": "A"}, f"undo/{job}/a")


async def test_an_attempt_that_was_stopped_left_nothing_to_undo(rig: Rig, evaluator: Evaluator) -> None:
    job, b = await ended(rig)
    await report(rig, b, Released())
    await rig.loops.run_until_idle()
    held = await newest(rig, job)
    assert await rig.states(held.id) == ["QUEUED", "BLOCKED"]
    assert await call_of(rig, evaluator, held.id, 0) == NOTHING


async def test_a_lost_worker_is_not_waited_for(rig: Rig, evaluator: Evaluator) -> None:
    other = await rig.enlist(rig.ids.new(), lease_s=15)
    job = await rig.submit(STOPS, {"to": "ada"})
    a = (await rig.claim(1))[0]
    b = (await rig.claim(1, other))[0]
    c = (await rig.claim(1))[0]
    await report(rig, a, Success('"A"'))
    await report(rig, c, BOOM)
    held = await newest(rig, job)
    await rig.loops.run_until_idle()
    assert await rig.states(held.id) == ["HELD", "BLOCKED"]
    await rig.silence(60)
    await rig.loops.run_until_idle()
    assert await rig.states(held.id) == ["QUEUED", "BLOCKED"]
    assert await call_of(rig, evaluator, held.id, 0) == NOTHING
    # The worker was only slow. Its effect gets an undo of its own.
    assert not await report(rig, b, Success('"B"'))
    second = await newest(rig, job)
    assert second.id != held.id
    assert await call_of(rig, evaluator, second.id, 0) == UndoCall({"to": "ada", "output": "B"}, f"undo/{job}/b")


async def test_reports_of_one_batch_end_the_job_and_are_late(rig: Rig) -> None:
    job = await rig.submit(STOPS, {"to": "ada"})
    a, b, c = await rig.claim(3)
    await report(rig, a, Success("1"))
    done = await settle.settle(rig.db, [c.report(BOOM), b.report(Success('"B"'))], spread=lambda: 0.0)
    assert done.took_effect == (True, False)
    await rig.loops.run_until_idle()
    assert await rig.states((await newest(rig, job)).id) == ["QUEUED", "BLOCKED"]


async def test_an_expired_job_is_undone(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", undo=Undo("una")), task("b", "a")), ttl_s=60)
    await rig.run_one()
    rig.clock.advance(61)
    await rig.loops.run_until_idle()
    assert await rig.state(job) is JobState.EXPIRED
    assert await rig.states((await newest(rig, job)).id) == ["QUEUED"]


async def test_effects_tell_how_far_the_undo_is(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", undo=Undo("una")), task("b", "a")))
    await rig.run_one()
    assert effects(await read.job(rig.db, job)) == "none"
    await control.cancel(rig.db, job, undo=False)
    assert effects(await read.job(rig.db, job)) == "standing"
    await undo.start(rig.db, job)
    assert effects(await read.job(rig.db, job)) == "undoing"
    assert not (await undo.start(rig.db, job)).is_new
    await rig.run_out()
    assert effects(await read.job(rig.db, job)) == "undone"


async def test_an_undo_job_is_resumed_and_not_run_from_its_start(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", undo=Undo("una")), task("b", "a")))
    await rig.run_one()
    await control.cancel(rig.db, job)
    await rig.run_one(BOOM)
    failed = await newest(rig, job)
    assert (failed.state, effects(await read.job(rig.db, job))) == (JobState.FAILED, "failed")
    with pytest.raises(rerun.WrongState, match="undoes another job"):
        await rerun.rerun(rig.db, failed.id, rig.ids.new())
    resumed = await rerun.retry(rig.db, failed.id, rig.ids.new(), priority_max=10)
    assert (await newest(rig, job)).id == resumed
    assert (await read.job(rig.db, resumed)).priority == failed.priority
    with pytest.raises(rerun.WrongState, match="already"):
        await rerun.retry(rig.db, failed.id, rig.ids.new())
    await rig.run_out()
    assert effects(await read.job(rig.db, job)) == "undone"


async def test_a_job_without_effects_gets_no_undo(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", undo=Undo("una"), retry=rig_once()), task("b")))
    [a, _] = await rig.claim(2)
    await report(rig, a, BOOM)
    await control.cancel(rig.db, job)
    view = await read.job(rig.db, job)
    assert (view.undo_job_id, effects(view)) == (None, "none")
    assert StepState.FAILED in await rig.states(job)


def rig_once() -> Any:
    from windlass.core.retry import Retry

    return Retry(max_attempts=1)
