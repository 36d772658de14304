"""What is quarantined goes no further inside the engine: not to the next step, the parent job, a new job, the audit.

No policy puts anything into quarantine yet, so the states are written directly.
"""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task, undisturbed
from windlass.core.errors import OutputQuarantined
from windlass.core.outcome import Failure, Fault, Success
from windlass.core.plan import Node, NodeKind, Plan
from windlass.core.states import JobState, StepState
from windlass.core.visibility import Reader
from windlass.engine import recipes, rerun
from windlass.engine.loops.auditor import Auditor
from windlass.recipe.evaluator import shared_evaluator
from windlass.store.outputs import STATEMENTS
from windlass.store.statements import sql
from windlass.store.values import outputs_of
from windlass.views import explain, read
from windlass.worker.resolve import unreadable

MARK = "xyzzy-4711"
SECRET = Success(f'["made {MARK}"]')
FAN = plan(
    task("a"), Node("b", run="b", needs=("a",), each="steps.a.outputs", with_={"x": "${item}"}), recipe="fan",
    output="${steps.b.outputs}",
)  # fmt: skip
CHILD = plan(task("a"), recipe="child", output="${steps.a.outputs}")
PARENT = plan(Node("c", NodeKind.RECIPE, run="child"), recipe="parent", output="${steps.c.outputs}")
QUARANTINE_JOB = "UPDATE windlass.jobs SET state = 'OUTPUT_QUARANTINED', trouble = 'OUTPUT_QUARANTINED' WHERE id = $1"
QUARANTINE_STEP = "UPDATE windlass.steps SET state = 'QUARANTINED' WHERE job_id = $1 AND no = $2"


async def execute(rig: Rig, statement: str, *values: object) -> None:
    async with rig.db.connection() as connection:
        await connection.execute(statement, *values)


async def everything(rig: Rig, job: UUID) -> str:
    """All that is stored of a job."""
    async with rig.db.connection() as connection:
        rows = [
            *await connection.fetch("SELECT t::text FROM windlass.jobs t WHERE id = $1", job),
            *await connection.fetch("SELECT t::text FROM windlass.steps t WHERE job_id = $1", job),
            *await connection.fetch("SELECT t::text FROM windlass.events t WHERE job_id = $1", job),
        ]
    return "\n".join(row[0] for row in rows)


async def submitted(rig: Rig, of: Plan) -> UUID:
    job = await rig.submit(of)
    await rig.loops.run_until_idle()
    return job


async def test_the_router_gives_it_to_no_next_step_and_others_of_the_batch_go_on(rig: Rig) -> None:
    bad, good = await rig.submit(FAN), await rig.submit(FAN)
    for _ in range(2):
        await rig.run_one(SECRET)
    await execute(rig, QUARANTINE_STEP, bad, 0)
    await rig.loops.run_until_idle()
    assert [(step.index, step.state) for step in await read.steps(rig.db, good)][-1] == (0, StepState.QUEUED)
    [reason] = await explain.why(rig.db, bad, "b")
    assert (reason.state, reason.detail["error"]["code"]) == (StepState.FAILED, "output_quarantined")
    assert MARK in await everything(rig, good)
    assert MARK not in str(await read.steps(rig.db, bad))


async def test_a_handler_is_not_given_it(rig: Rig) -> None:
    job = await rig.submit(FAN)
    await rig.run_one(SECRET)
    assert await outputs_of(rig.db, rig.artifacts, FAN, job, ["a"], Reader.NEXT_STEP) == {"a": [f"made {MARK}"]}
    await execute(rig, QUARANTINE_STEP, job, 0)
    with pytest.raises(OutputQuarantined) as refused:
        await outputs_of(rig.db, rig.artifacts, FAN, job, ["a"], Reader.NEXT_STEP)
    failure = unreadable(refused.value)
    assert (failure.fault.code, failure.is_retryable) == ("output_quarantined", False)


async def test_one_quarantined_child_hides_the_whole_list_of_its_fan_out(rig: Rig) -> None:
    job = await rig.submit(FAN)
    await rig.run_one(SECRET)
    await rig.run_out('"fine"')
    assert await read.result(rig.db, rig.artifacts, shared_evaluator(), job) == ["fine"]
    await execute(rig, QUARANTINE_STEP, job, 2)
    with pytest.raises(OutputQuarantined):
        await read.result(rig.db, rig.artifacts, shared_evaluator(), job)


async def test_the_parent_job_is_told_the_reason_and_not_the_output(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    parent = await submitted(rig, PARENT)
    await rig.run_one(SECRET)
    child = await rig.sole_job("child")
    await execute(rig, QUARANTINE_JOB, child)
    await rig.loops.run_until_idle()
    assert await rig.state(parent) is JobState.FAILED
    assert MARK not in await everything(rig, parent)
    [reason] = await explain.why(rig.db, parent, "c")
    assert "OUTPUT_QUARANTINED: The output policy quarantined this content" in reason.because


async def test_a_parent_job_is_not_given_the_output_of_a_quarantined_step(rig: Rig) -> None:
    await recipes.register(rig.db, CHILD)
    parent = await submitted(rig, PARENT)
    await rig.run_one(SECRET)
    await execute(rig, QUARANTINE_STEP, await rig.sole_job("child"), 0)
    await rig.loops.run_until_idle()
    assert await rig.state(parent) is JobState.FAILED
    assert MARK not in await everything(rig, parent)


async def test_a_retry_of_a_quarantined_job_keeps_nothing_of_it(rig: Rig) -> None:
    job = await rig.submit(FAN)
    await rig.run_one(SECRET)
    await rig.run_out('"fine"')
    await execute(rig, QUARANTINE_JOB, job)
    told = await rerun.preview(rig.db, job, rerun.Wish("retry"))
    assert (told.kept, told.run_again) == ((), ("a", "b"))
    new = await rerun.retry(rig.db, job, rig.ids.new())
    assert MARK not in await everything(rig, new)
    await rig.run_out('["x"]')
    assert await rig.state(new) is JobState.COMPLETED


async def test_a_retry_runs_a_quarantined_child_again_on_its_own_item(rig: Rig) -> None:
    job = await rig.submit(FAN)
    await rig.run_one(Success('["first", "second"]'))
    await rig.loops.run_until_idle()
    for _ in range(2):
        await rig.run_one(SECRET)
    await execute(rig, QUARANTINE_STEP, job, 2)
    await execute(rig, "UPDATE windlass.steps SET state = 'FAILED' WHERE job_id = $1 AND no = 1", job)
    await execute(rig, "UPDATE windlass.jobs SET state = 'FAILED', trouble = 'FAILED' WHERE id = $1", job)
    new = await rerun.retry(rig.db, job, rig.ids.new())
    again = await rig.claim_one()
    assert (again.job_id, again.item) == (new, '"first"')


async def test_the_audit_has_neither_the_words_nor_the_code(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")), correlation_id="request-1")
    await rig.run_one(Failure(Fault(MARK, MARK), is_retryable=False))
    await execute(rig, QUARANTINE_JOB, job)
    await undisturbed(rig.db)
    await Auditor(rig.db).run_once()
    async with rig.db.connection() as connection:
        rows = await connection.fetch("SELECT payload FROM windlass.audit ORDER BY no")
    assert '"code":"output_quarantined"' in rows[-1]["payload"].replace(" ", "")
    assert MARK not in str(rows)


async def test_every_statement_of_the_door_returns_the_states_that_it_is_judged_by(rig: Rig) -> None:
    """And no column of a known name that its shape does not list."""
    known = {column for shape in STATEMENTS.values() for column in shape.content}
    async with rig.db.connection() as connection:
        for name, shape in STATEMENTS.items():
            prepared = await connection.prepare(sql(name).replace(":'label'", "'corpus'"))
            columns = {attribute.name for attribute in prepared.get_attributes()}
            states = {shape.job, *([] if shape.step is None else [shape.step])}
            assert states <= columns, name
            assert columns & known <= shape.content.keys(), name
            assert columns & shape.content.keys(), name
            if "payload" in columns:
                assert "type" in columns, name
