"""A job ends as TIMEOUT when its first failure is a step that used up its time, and as FAILED otherwise."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.outcome import ATTEMPT_TIMEOUT, Failure, Fault, Outcome, Parked, Report, Seen, Success
from windlass.core.plan import OnFailure, Plan
from windlass.core.retry import Retry
from windlass.core.states import JobState
from windlass.engine.claim import Claimed
from windlass.engine.settle import settle
from windlass.views import dead_letters, listing, read
from windlass.views.listing import JobFilter

ONCE = Retry(max_attempts=1)
# `slow` and `other` run side by side; `after` needs `slow`.
WIDE = plan(task("slow", retry=ONCE), task("other", retry=ONCE), task("after", "slow"), recipe="wide")
OVERRAN = Failure(Fault(ATTEMPT_TIMEOUT, "the attempt ran longer than its 30 s"))
BROKE = Failure(Fault("boom", "it broke"))


async def _ended(rig: Rig, of: Plan, *outcomes: tuple[str, Outcome]) -> UUID:
    """A job whose named steps were claimed together and then ended in this order, as a worker reports them."""
    job = await rig.submit(of)
    claimed = {of.nodes[one.node].name: one for one in await rig.claim()}
    for name, outcome in outcomes:
        settled = await settle(rig.db, [_report(claimed[name], rig.worker, outcome)], spread=rig.spread)
        assert settled.took_effect == (True,)
    return job


def _report(one: Claimed, worker: UUID, outcome: Outcome) -> Report:
    return Report(one.job_id, one.no, one.attempt, outcome, worker=worker)


@pytest.mark.covers("COR-05", "COR-31", "COR-33")
@pytest.mark.parametrize("on_failure", OnFailure)
async def test_an_attempt_that_outran_its_limit_ends_the_job_as_timeout(rig: Rig, on_failure: OnFailure) -> None:
    of = plan(task("a", retry=ONCE), recipe="one", on_failure=on_failure)
    job = await rig.submit(of)
    await rig.run_one(OVERRAN)
    view = await read.job(rig.db, job)
    assert (view.state, view.error["code"], view.error["step"]) == (JobState.TIMEOUT, "attempt_timeout", "a")
    assert (await rig.types(job))[-1] == "job.timeout"


async def test_an_attempt_that_may_be_tried_again_ends_nothing(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", retry=Retry(max_attempts=2, base_s=1.0))))
    await rig.run_one(OVERRAN)
    assert await rig.state(job) == "PROCESSING"
    rig.clock.advance("1h")
    await rig.loops.run_until_idle()
    await rig.run_one()
    assert await rig.state(job) == "COMPLETED"


@pytest.mark.covers("COR-31")
async def test_a_wait_that_outran_its_limit_ends_the_job_as_timeout(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", retry=ONCE)))
    await rig.run_one(Parked("callback", within_s=60))
    rig.clock.advance(61)
    await rig.loops.run_until_idle()
    view = await read.job(rig.db, job)
    assert (view.state, view.error["code"]) == (JobState.TIMEOUT, "wait_timeout")


async def test_the_first_failure_decides_when_the_last_step_ends(rig: Rig) -> None:
    done = Success("1")
    assert await rig.state(await _ended(rig, WIDE, ("slow", OVERRAN), ("other", done))) == "TIMEOUT"
    assert await rig.state(await _ended(rig, WIDE, ("slow", OVERRAN), ("other", BROKE))) == "TIMEOUT"
    assert await rig.state(await _ended(rig, WIDE, ("slow", BROKE), ("other", OVERRAN))) == "FAILED"
    assert await rig.state(await _ended(rig, WIDE, ("other", OVERRAN), ("slow", BROKE))) == "TIMEOUT"


async def test_what_a_claim_remembers_is_not_enough_to_end_a_job_with_failures(rig: Rig) -> None:
    job = await rig.submit(plan(task("slow", retry=ONCE), task("first"), task("last", "first"), recipe="pair"))
    claimed = {one.no: one for one in await rig.claim()}
    assert await rig.settle(claimed[0], OVERRAN)
    assert await rig.settle(claimed[1])
    last = await rig.claim_one()
    seen = last.seen
    assert isinstance(seen, Seen) and seen.steps_failed == 1
    report = Report(
        job, last.no, last.attempt, Success("1"), plan_hash=last.plan_hash, node=last.node, seen=seen, worker=rig.worker
    )
    assert (await settle(rig.db, [report], spread=rig.spread)).took_effect == (True,)
    assert await rig.state(job) == "TIMEOUT"


async def test_a_handlers_own_timeout_error_is_a_failure(rig: Rig) -> None:
    job = await rig.submit(plan(task("a", retry=ONCE)))
    await rig.run_one(Failure(Fault("timeout", "the model did not answer", "TimeoutError")))
    assert await rig.state(job) == "FAILED"


@pytest.mark.covers("COR-05", "COR-33")
async def test_a_job_past_its_deadline_says_why(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")), deadline_s=60)
    rig.clock.advance(61)
    await rig.loops.run_until_idle()
    view = await read.job(rig.db, job)
    assert (view.state, view.error["code"]) == (JobState.TIMEOUT, "deadline")
    assert view.error["message"] == "the job did not finish before its deadline"


async def test_timed_out_jobs_are_dead_letters_and_found_by_their_step(rig: Rig) -> None:
    of = plan(task("a", retry=ONCE), recipe="one")
    made = []
    for outcome in (OVERRAN, BROKE):
        made.append(await rig.submit(of, caller="ada"))
        await rig.run_one(outcome)
    for caller in ("ada", None):
        kinds = (await dead_letters.look(rig.db, caller)).kinds
        assert {kind.code: kind.job_ids for kind in kinds} == {"attempt_timeout": (made[0],), "boom": (made[1],)}
        async with rig.db.connection() as connection:
            assert (await dead_letters.count(connection, caller)).dead == 2
        found, _ = await listing.find(rig.db, JobFilter(caller, failed_step="a"), 10)
        assert found == [made[1], made[0]]
