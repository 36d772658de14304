"""One submission or report alone takes statements of its own. They write what the ones for many write."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.bell import ToldOutput
from windlass.core.outcome import Report, Success
from windlass.core.plan import Plan
from windlass.engine import recipes
from windlass.engine import settle as settling
from windlass.engine.claim import Claimed
from windlass.engine.submit import Submission, submit
from windlass.recipe.evaluator import shared_evaluator
from windlass.store import drafts
from windlass.store.statements import sql
from windlass.views import read

ONE = plan(task("a"), recipe="one", output="${steps.a.outputs}")
CHAIN = plan(task("a"), task("b", "a"), task("c", "b"), recipe="chain", output="${steps.c.outputs}")
WIDE = plan(task("a"), task("b", "a", queue="gpu"), task("c", "a", when="true"), task("d"), recipe="wide")
PLANS = [ONE, CHAIN, WIDE]

GIVEN: list[dict[str, Any]] = [
    {},
    {"labels": {"k": "v"}, "priority": 7, "deadline_s": 60.0, "ttl_s": 5.0, "correlation_id": "c", "depth": 2},
    {"parent": (UUID(int=1), 2, 3), "retry_of": UUID(int=4), "caller": "ada"},
]


async def rows(rig: Rig, job: UUID) -> dict[str, list[dict[str, Any]]]:
    """All that is stored of a job, but for its id."""
    found = {}
    for table, key in (("jobs", "id"), ("steps", "job_id"), ("events", "job_id")):
        async with rig.db.connection() as connection:
            fetched = await connection.fetch(f"SELECT * FROM windlass.{table} WHERE {key} = $1", job)
        found[table] = sorted(
            ({name: value for name, value in row.items() if name not in (key, "txid")} for row in fetched),
            key=lambda row: (row.get("no") or 0, row.get("seq") or 0),
        )
    return found


def report(one: Claimed) -> Report:
    return one.report(Success('{"n":1}'))


@pytest.mark.parametrize("of", PLANS, ids=lambda of: of.recipe)
@pytest.mark.parametrize("given", GIVEN, ids=["plain", "much", "child"])
async def test_a_job_submitted_alone_is_like_one_of_many(rig: Rig, of: Plan, given: dict[str, Any]) -> None:
    await recipes.register(rig.db, of)
    alone, first, second = (Submission(of, {"x": 1}, rig.ids.new(), **given) for _ in range(3))
    await submit(rig.db, [alone])
    await submit(rig.db, [first, second])
    assert await rows(rig, alone.job_id) == await rows(rig, first.job_id) == await rows(rig, second.job_id)


async def test_a_step_settled_alone_is_like_one_of_many(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    used: list[str] = []
    monkeypatch.setattr(drafts, "sql", lambda name: used.append(name) or sql(name))
    await rig.enlist()
    for of in PLANS:
        alone, *others = [await rig.submit(of, {"x": 1}) for _ in range(3)]
        while taken := await rig.claim():
            first = [one for one in taken if one.no == min(two.no for two in taken)]
            await settling.settle(rig.db, [report(one) for one in first if one.job_id == alone], spread=lambda: 0.0)
            await settling.settle(rig.db, [report(one) for one in first if one.job_id != alone], spread=lambda: 0.0)
            later = [report(one) for one in taken if one not in first]
            if later:
                # These were claimed before their jobs moved on, so they are read and locked, all alike.
                await settling.settle(rig.db, later, spread=lambda: 0.0)
            mine = await rows(rig, alone)
            for other in others:
                assert await rows(rig, other) == mine, of.recipe
    assert "draft_complete" in used
    assert "draft_write" in used


async def test_a_step_that_is_no_longer_running_is_not_completed_alone(rig: Rig) -> None:
    await rig.enlist()
    job = await rig.submit(ONE)
    one = await rig.claim_one()
    async with rig.db.connection() as connection:
        await connection.execute("UPDATE windlass.steps SET state = 'QUEUED' WHERE job_id = $1", job)
    settled = await settling.settle(rig.db, [report(one)], spread=lambda: 0.0)
    assert settled.took_effect == (False,)
    assert await rig.states(job) == ["QUEUED"]
    assert "step.completed" not in await rig.types(job)


async def test_the_bell_of_a_lone_job_tells_its_output(rig: Rig) -> None:
    await rig.enlist()
    waiter = read.Waiter(rig.db)
    job = await rig.submit(CHAIN)
    wait = asyncio.create_task(waiter.wait(job, 10))
    while not waiter.is_listening:
        await asyncio.sleep(0.01)
    for _ in range(3):
        await settling.settle(rig.db, [report(await rig.claim_one())], spread=lambda: 0.0)
    await wait
    told = waiter.told(job)
    assert told == ToldOutput(2, '{"n":1}')
    end = await read.ended_as_told(shared_evaluator(), CHAIN, told)
    assert end == read.Ended(await rig.state(job), {"n": 1})


@pytest.mark.parametrize(
    ("output", "told"),
    [
        ("${steps.b.outputs}", (2, "1")),
        ("${[steps.b.outputs, steps.c.outputs]}", (2, "1")),
        ("${steps.c.outputs + inputs.x}", (2, "1")),
        ("${steps.c.outputs}", (7, "1")),
        ("${steps.c.outputs}", (2, '{"$artifact":{"sha256":"' + "0" * 64 + '","size":9}}')),
    ],
)
async def test_what_a_bell_tells_too_little_of_is_read(output: str, told: tuple[int, str]) -> None:
    of = plan(task("a"), task("b", "a"), task("c", "b"), recipe="chain", output=output)
    assert await read.ended_as_told(shared_evaluator(), of, ToldOutput(*told)) is None


FAN = plan(task("a", each="inputs.items"), task("b", "a"), recipe="fan", output="${steps.b.outputs}")


async def test_a_fan_outs_children_need_not_be_read(rig: Rig) -> None:
    await rig.enlist()
    jobs = [await rig.submit(FAN, {"items": [1, 2, 3, 4]}) for _ in range(2)]
    await rig.loops.run_until_idle()
    while taken := await rig.claim():
        for job, is_seen in zip(jobs, (True, False), strict=True):
            reports = [report(one) if is_seen else report(one)._replace(seen=None) for one in taken]
            mine = [one for one in reports if one.job_id == job]
            settled = await settling.settle(rig.db, mine, spread=lambda: 0.0)
            assert all(settled.took_effect)
        assert await rows(rig, jobs[0]) == await rows(rig, jobs[1])
        await rig.loops.run_until_idle()
    assert await rig.state(jobs[0]) == "COMPLETED"


async def test_a_child_that_is_no_longer_running_is_not_completed(rig: Rig) -> None:
    await rig.enlist()
    job = await rig.submit(FAN, {"items": [1, 2]})
    await rig.loops.run_until_idle()
    taken = await rig.claim()
    async with rig.db.connection() as connection:
        await connection.execute(
            "UPDATE windlass.steps SET state = 'QUEUED' WHERE job_id = $1 AND no = $2", job, taken[0].no
        )
    settled = await settling.settle(rig.db, [report(one) for one in taken], spread=lambda: 0.0)
    assert settled.took_effect == (False, True)
