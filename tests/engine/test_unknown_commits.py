"""A connection that breaks leaves it unknown whether the commit took place. Doing it again must come to the same."""

from __future__ import annotations

import pytest

from tests.engine.rig import QUEUE, Rig, plan, task
from windlass.core.errors import Conflict, DatabaseUnavailable
from windlass.core.outcome import Failure, Fault, Success
from windlass.core.plan import Node, NodeKind
from windlass.core.retry import Retry
from windlass.engine import control, recipes, rerun
from windlass.engine.claim import claim, held
from windlass.engine.note import Note, note
from windlass.engine.submit import Accepted, Submission, submit
from windlass.engine.workers import renew
from windlass.testing.faults import FaultyDatabase, Moment
from windlass.views import read

MOMENTS = list(Moment)
ONE = plan(task("a"))
CHAIN = plan(task("a", retry=Retry(max_attempts=1)), task("b", "a"))


@pytest.fixture
def rig(shaky: Rig) -> Rig:
    return shaky


async def whole(rig: Rig, job: object) -> None:
    """The job's events have no gap, and no step is counted wrongly."""
    view = await read.job(rig.db, job)  # type: ignore[arg-type]
    events = await read.events(rig.db, view.id)
    assert [event.seq for event in events] == list(range(1, view.event_seq + 1))


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_submit_makes_one_job(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    await recipes.register(rig.db, ONE)
    jobs = [Submission(ONE, {}, rig.ids.new()), Submission(ONE, {"x": 1}, rig.ids.new(), idempotency_key="k")]
    faulty.faults.append(moment)
    assert await submit(rig.db, jobs) == [Accepted(job.job_id, True) for job in jobs]
    assert len(await read.jobs(rig.db)) == 2
    for job in jobs:
        await whole(rig, job.job_id)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_caller_who_asks_again_with_its_key_gets_its_job(
    rig: Rig, faulty: FaultyDatabase, moment: Moment
) -> None:
    await recipes.register(rig.db, ONE)
    faulty.faults.extend([moment] * 4)
    with pytest.raises(DatabaseUnavailable):
        await submit(rig.db, [Submission(ONE, {}, rig.ids.new(), idempotency_key="k")])
    [answer] = await submit(rig.db, [Submission(ONE, {}, rig.ids.new(), idempotency_key="k")])
    assert not isinstance(answer, Conflict)
    assert [view.id for view in await read.jobs(rig.db)] == [answer.job_id]


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_claim_is_not_repeated_and_held_tells_what_it_took(
    rig: Rig, faulty: FaultyDatabase, moment: Moment
) -> None:
    job = await rig.submit(ONE)
    faulty.faults.append(moment)
    with pytest.raises(DatabaseUnavailable, match="closed the connection"):
        await claim(rig.db, worker=rig.worker, queues=[QUEUE], limit=5)
    taken = await held(rig.db, rig.worker)
    assert [one.job_id for one in taken] == ([job] if moment is Moment.AFTER else [])
    for one in taken or await rig.claim():
        assert one.attempt == 1
        assert await rig.settle(one)
    assert await rig.state(job) == "COMPLETED"
    await whole(rig, job)


@pytest.mark.covers("SCR-02", "SCR-57", "SCR-83", "COR-93", "COR-112")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("outcome", [Success("1"), Failure(Fault("boom", ""))])
async def test_a_report_takes_effect_once(
    rig: Rig, faulty: FaultyDatabase, moment: Moment, outcome: Success | Failure
) -> None:
    job = await rig.submit(CHAIN)
    one = await rig.claim_one()
    faulty.faults.append(moment)
    await rig.settle(one, outcome)
    view = await read.job(rig.db, job)
    is_success = isinstance(outcome, Success)
    assert await rig.states(job) == (["COMPLETED", "QUEUED"] if is_success else ["FAILED", "ABANDONED"])
    assert view.steps_open == (1 if is_success else 0)
    await whole(rig, job)


@pytest.mark.covers("COR-93")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_fan_out_gets_its_children_once(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    job = await rig.submit(plan(task("a", each="inputs.xs")), {"xs": [1, 2, 3]})
    faulty.faults.extend([None, moment])
    await rig.loops.router.run_once()
    assert (await read.job(rig.db, job)).steps_total == 4
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"
    await whole(rig, job)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_step_starts_one_child_job(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="child"))
    job = await rig.submit(plan(Node("c", NodeKind.RECIPE, run="child")))
    faulty.faults.extend([None, moment])
    await rig.loops.router.run_once()
    assert len(await read.jobs(rig.db, recipe="child")) == 1
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"


@pytest.mark.covers("COR-93")
@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_childs_word_reaches_its_parent_once(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    await recipes.register(rig.db, plan(task("a"), recipe="child"))
    job = await rig.submit(plan(Node("c", NodeKind.RECIPE, run="child"), task("d", "c")))
    await rig.loops.run_until_idle()
    await rig.run_one()
    for position in range(3):
        faulty.faults.extend([*[None] * position, moment])
        await rig.loops.parent_notifier.run_once()
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"
    await whole(rig, job)


@pytest.mark.covers("COR-93")
@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("action", [control.cancel, control.pause])
async def test_control_acts_once(rig: Rig, faulty: FaultyDatabase, moment: Moment, action: object) -> None:
    job = await rig.submit(CHAIN)
    faulty.faults.append(moment)
    await action(rig.db, job)  # type: ignore[operator]
    types = await rig.types(job)
    assert len(types) == len(set(types)) + (1 if "job.cancelled" in types else 0)
    await whole(rig, job)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_retry_makes_one_new_job_even_if_it_is_running_when_asked_again(
    rig: Rig, faulty: FaultyDatabase, moment: Moment
) -> None:
    old = await rig.submit(CHAIN)
    await rig.run_one(Failure(Fault("boom", "")))
    new = rig.ids.new()
    faulty.faults.append(moment)
    assert await rerun.retry(rig.db, old, new) == new
    await rig.claim_one()
    assert await rerun.retry(rig.db, old, new) == new
    assert await rig.states(new) == ["RUNNING", "BLOCKED"]
    await whole(rig, new)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_note_is_taken_down(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    job = await rig.submit(ONE)
    await rig.claim_one()
    faulty.faults.append(moment)
    assert await note(rig.db, [Note(job, 0, 1, 50.0, checkpoint="7")]) == [True]
    await whole(rig, job)


@pytest.mark.parametrize("moment", MOMENTS)
async def test_a_lease_is_renewed(rig: Rig, faulty: FaultyDatabase, moment: Moment) -> None:
    faulty.faults.append(moment)
    assert await renew(rig.db, rig.worker)


@pytest.mark.covers("SCR-80")
async def test_an_operation_is_tried_four_times(rig: Rig, faulty: FaultyDatabase) -> None:
    faulty.faults.extend([Moment.BEFORE] * 3)
    assert await renew(rig.db, rig.worker)
    faulty.faults.extend([Moment.BEFORE] * 4)
    with pytest.raises(DatabaseUnavailable, match="cannot be reached, or closed the connection"):
        await renew(rig.db, rig.worker)
