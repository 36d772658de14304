"""A claim does not wait for the disk, so a crash of PostgreSQL may undo it while its worker goes on with the step."""

from __future__ import annotations

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import WrongState
from windlass.core.note import Note
from windlass.core.outcome import Failure, Fault, Lost, Outcome, Parked, Report, Success
from windlass.core.plan import Plan
from windlass.engine import children, control, external, recipes
from windlass.engine.claim import Claimed
from windlass.engine.note import note
from windlass.engine.settle import settle
from windlass.engine.workers import LEASE_S

ONE = plan(task("a"))
CHAIN = plan(task("a"), task("b", "a"))


async def undo(rig: Rig, one: Claimed, *, is_first: bool) -> None:
    """What a crash right after the claim leaves behind: everything as it was before."""
    async with rig.db.connection() as connection, connection.transaction():
        await connection.execute(
            "DELETE FROM windlass.events WHERE job_id = $1 AND (type, no, attempt) = ('step.running', $2, $3)",
            *(one.job_id, one.no, one.attempt),
        )
        if is_first:
            await connection.execute(
                "DELETE FROM windlass.events WHERE job_id = $1 AND type = 'job.processing'", one.job_id
            )
        await connection.execute(
            "UPDATE windlass.steps SET state = 'QUEUED', attempt = attempt - 1, worker = NULL, wake_at = NULL"
            " WHERE job_id = $1 AND no = $2",
            *(one.job_id, one.no),
        )
        await connection.execute(
            "UPDATE windlass.jobs SET event_seq = event_seq - 1 - $2, version = version - $2,"
            " state = CASE WHEN $2 = 1 THEN 'QUEUED' ELSE state END WHERE id = $1",
            *(one.job_id, int(is_first)),
        )


async def report(rig: Rig, one: Claimed, output: str) -> bool:
    """As a worker does it: with what its claim saw."""
    settled = await settle(rig.db, [one.report(Success(output))], spread=lambda: 0.0)
    return settled.took_effect[0]


async def test_a_job_that_was_cancelled_after_its_claim_was_undone_stays_cancelled(rig: Rig) -> None:
    job = await rig.submit(ONE)
    one = await rig.claim_one()
    await undo(rig, one, is_first=True)
    await control.cancel(rig.db, job)
    assert not await report(rig, one, "1")
    assert await rig.state(job) == "CANCELLED"
    assert (await rig.types(job))[-1] == "step.cancelled"


async def test_a_step_whose_claim_was_undone_cannot_be_settled(rig: Rig) -> None:
    job = await rig.submit(CHAIN)
    assert await report(rig, await rig.claim_one(), "1")
    one = await rig.claim_one()
    await undo(rig, one, is_first=False)
    assert not await report(rig, one, "2")
    again = await rig.claim_one()
    assert (again.no, again.attempt) == (1, 1)
    assert await report(rig, again, "3")
    assert await rig.state(job) == "COMPLETED"


async def given_out_twice(rig: Rig, of: Plan, **given: float) -> tuple[Claimed, Claimed]:
    """An attempt whose number two workers have: the first one's claim was undone by a crash or a failover."""
    await rig.submit(of)
    first = await rig.claim_one()
    await undo(rig, first, is_first=True)
    second = await rig.claim_one(await rig.enlist(rig.ids.new(), **given))
    assert (second.job_id, second.no, second.attempt) == (first.job_id, first.no, first.attempt)
    assert second.seen == first.seen, "nothing but the worker tells them apart"
    return first, second


# The last step of a job, a step with dependents, and a step that ends together with another.
@pytest.mark.parametrize(
    "of", [ONE, CHAIN, plan(task("a"), task("b"), task("c", "a", "b"))], ids=["last", "chain", "two"]
)
@pytest.mark.parametrize("outcome", [Success('"mine"'), Failure(Fault("boom", "x")), Parked("outside"), Lost()])
async def test_of_two_workers_with_the_same_attempt_only_the_one_that_holds_it_is_heard(
    rig: Rig, of: Plan, outcome: Outcome
) -> None:
    first, second = await given_out_twice(rig, of)
    late = first.report(outcome)
    plain = Report(late.job_id, late.no, late.attempt, outcome, worker=first.worker)
    for reports in ([late], [plain], [late, plain]):
        settled = await settle(rig.db, reports, spread=lambda: 0.0)
        assert not any(settled.took_effect)
    assert (await rig.states(first.job_id))[0] == "RUNNING"
    assert await report(rig, second, '"theirs"')


async def test_a_worker_whose_attempt_is_anothers_does_not_answer_for_the_wait_of_that_one(rig: Rig) -> None:
    first, second = await given_out_twice(rig, ONE)
    assert (await settle(rig.db, [second.report(Parked("outside"))], spread=lambda: 0.0)).took_effect == (True,)
    assert not await report(rig, first, "1")
    outside = Report(second.job_id, 0, 1, Success("2"), source="webhook")
    assert (await settle(rig.db, [outside], spread=lambda: 0.0)).took_effect == (True,)


async def test_words_jobs_and_work_of_a_worker_whose_attempt_is_anothers_are_refused(rig: Rig) -> None:
    first, second = await given_out_twice(rig, ONE)
    await recipes.register(rig.db, plan(task("a"), recipe="other"))
    place = (first.job_id, first.no, first.attempt)
    said = [Note(*place, 10.0, checkpoint="1", worker=one.worker) for one in (first, second)]
    assert await note(rig.db, said) == [False, True]
    assert await external.intend(rig.db, *place, "fal", worker=first.worker) is None
    with pytest.raises(WrongState):
        await children.spawn(rig.db, rig.ids.new(), place, "other", {}, worker=first.worker)
    assert await external.intend(rig.db, *place, "fal", worker=second.worker) is not None
    await children.spawn(rig.db, rig.ids.new(), place, "other", {}, worker=second.worker)


async def test_the_rescuer_names_the_worker_that_it_found_lost(rig: Rig) -> None:
    _, second = await given_out_twice(rig, ONE, lease_s=LEASE_S)
    await rig.silence(LEASE_S)
    assert await rig.states(second.job_id) == ["QUEUED"]
    assert not await report(rig, second, "1")
