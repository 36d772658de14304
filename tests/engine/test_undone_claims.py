"""A claim does not wait for the disk, so a crash of PostgreSQL may undo it while its worker goes on with the step."""

from __future__ import annotations

from tests.engine.rig import Rig, plan, task
from windlass.core.outcome import Success
from windlass.engine import control
from windlass.engine.claim import Claimed
from windlass.engine.settle import settle

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
    settled = await settle(rig.db, [one.report(Success(output))], chance=lambda: 0.0)
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
