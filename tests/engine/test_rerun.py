"""Running a job again from a step, with other inputs: on the database, with concurrent actions."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput, Conflict, NotFound, TooLarge, WrongState
from windlass.core.outcome import Failure, Fault, Success
from windlass.core.plan import Node, NodeKind, Plan
from windlass.core.retry import Retry
from windlass.engine import budgets, control, recipes, rerun
from windlass.engine.loops.pruner import Pruner
from windlass.engine.rerun import Wish
from windlass.recipe.evaluator import shared_evaluator
from windlass.store import plans
from windlass.views import read
from windlass.worker.handler import Prepared
from windlass.worker.resolve import Arguments

BOOM = Failure(Fault("boom", "it broke"), is_retryable=False)
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "voice": {"type": "string", "default": "low"}},
    "required": ["n"],
    "additionalProperties": False,
}
FILM = plan(
    task("split", with_={"n": "${inputs.n}"}),
    task("render", "split", each="steps.split.outputs", with_={"v": "${inputs.voice}"}),
    task("join", "render", with_={"v": "${inputs.voice}", "all": "${steps.render.outputs}"}),
    task("logo", when="inputs.n > 100"),
    task("tell", "join", "logo"),
    recipe="film",
    inputs_schema=SCHEMA,
    output="${steps.tell.outputs}",
)


async def film(rig: Rig, **inputs: Any) -> UUID:
    """A job of FILM that is done."""
    job = await rig.submit(FILM, {"n": 3, "voice": "low", **inputs})
    await rig.run_one(Success("[1,2,3]"))
    await rig.run_out('"old"')
    assert await rig.state(job) == "COMPLETED"
    return job


async def ran(rig: Rig, job: UUID) -> set[str]:
    """The nodes of which something happened in this job."""
    steps = {step.no: step.node for step in await read.steps(rig.db, job)}
    of = await plans.plan_of(rig.db, (await read.job(rig.db, job)).plan)
    return {of.nodes[steps[event.no]].name for event in await read.events(rig.db, job) if event.no is not None}


@pytest.mark.parametrize(
    ("step", "again", "kept"),
    [
        ("split", ["split", "render", "join", "tell"], ["logo"]),
        ("render", ["render", "join", "tell"], ["split", "logo"]),
        ("render[1]", ["render", "join", "tell"], ["split", "logo"]),
        ("join", ["join", "tell"], ["split", "render", "logo"]),
        ("logo", ["logo", "tell"], ["split", "render", "join"]),
        ("tell", ["tell"], ["split", "render", "join", "logo"]),
        (None, ["split", "render", "join", "logo", "tell"], []),
    ],
)
async def test_what_was_told_is_what_runs_and_the_rest_is_kept(
    rig: Rig, step: str | None, again: list[str], kept: list[str]
) -> None:
    job = await film(rig)
    told = await rerun.preview(rig.db, job, Wish("rerun", step))
    assert (list(told.run_again), list(told.kept), told.stale) == (again, kept, ())
    new = await rerun.rerun(rig.db, job, rig.ids.new(), from_step=step)
    await rig.loops.run_until_idle()
    if "split" in again:
        await rig.run_one(Success("[7]"))
    await rig.run_out('"new"')
    assert await rig.state(new) == "COMPLETED"
    assert await ran(rig, new) == set(again)
    view = await read.job(rig.db, new)
    assert (view.retry_of, view.steps_total, view.steps_open) == (job, len(await read.steps(rig.db, new)), 0)
    outputs = {step.no: step.output for step in await read.steps(rig.db, new)}
    assert outputs[FILM.number["tell"]] == "new"
    if step == "render[1]":
        assert [s.output for s in await read.steps(rig.db, new) if s.index is not None] == ["old", "new", "old"]


async def test_a_dry_run_changes_nothing(rig: Rig) -> None:
    job = await film(rig)
    before = await read.jobs(rig.db, limit=10)
    for step in (None, "join", "render[0]"):
        await rerun.preview(rig.db, job, Wish("rerun", step, {"n": 9}))
    assert await read.jobs(rig.db, limit=10) == before


async def test_edited_inputs_reach_what_runs_and_what_is_kept_is_told_as_stale(rig: Rig) -> None:
    job = await film(rig)
    told = await rerun.preview(rig.db, job, Wish("rerun", "join", {"n": 3, "voice": "high"}))
    assert (told.inputs_changed, told.stale) == (("voice",), ("render",))
    new = await rerun.rerun(rig.db, job, rig.ids.new(), from_step="join", inputs={"n": 3, "voice": "high"})
    assert (await read.job(rig.db, new)).input == {"n": 3, "voice": "high"}
    one = await rig.claim_one()
    assert (one.no, '"high"' in one.input) == (FILM.number["join"], True)
    # A default is filled in, so leaving it out is no change.
    told = await rerun.preview(rig.db, job, Wish("rerun", "join", {"n": 3}))
    assert told.inputs_changed == ()


async def test_a_condition_is_asked_again_with_the_new_inputs(rig: Rig) -> None:
    job = await film(rig)
    assert (await rig.states(job))[FILM.number["logo"]] == "SKIPPED"
    new = await rerun.rerun(rig.db, job, rig.ids.new(), from_step="logo", inputs={"n": 101})
    await rig.run_out()
    assert (await rig.states(new))[FILM.number["logo"]] == "COMPLETED"


async def test_inputs_that_do_not_fit_are_refused_with_their_places(rig: Rig) -> None:
    job = await film(rig)
    for act in (rerun.preview(rig.db, job, Wish("rerun", "join", {"n": "three"})), again(rig, job, inputs={"n": "x"})):
        with pytest.raises(BadInput) as caught:
            await act
        assert [pointer for pointer, _ in caught.value.errors] == ["/inputs/n"]
    with pytest.raises(BadInput):
        await again(rig, job, inputs={"n": 1, "m": 2})
    with pytest.raises(TooLarge, match="at most 1,048,576"):
        await again(rig, job, inputs={"n": 1, "voice": "x" * (1 << 20)})
    assert len(await read.jobs(rig.db, limit=10)) == 1


async def again(rig: Rig, job: UUID, **given: Any) -> UUID:
    return await rerun.rerun(rig.db, job, rig.ids.new(), **{"from_step": "join", **given})


@pytest.mark.parametrize("step", ["jion", "join[0]", "render[9]", "render[", "\x00", "\ud800", "x" * 300])
async def test_a_step_that_is_not_there_is_refused(rig: Rig, step: str) -> None:
    job = await film(rig)
    with pytest.raises(BadInput):
        await again(rig, job, from_step=step)
    assert len(await read.jobs(rig.db, limit=10)) == 1


async def test_a_job_that_still_runs_cannot_be_run_again_from_a_step(rig: Rig) -> None:
    job = await rig.submit(FILM, {"n": 3, "voice": "low"})
    for act in (again(rig, job), rerun.preview(rig.db, job, Wish("rerun", "join"))):
        with pytest.raises(WrongState, match="is QUEUED") as caught:
            await act
        assert "cancel it first" in str(caught.value)
    # All of it can: that is a second job like any other.
    await rerun.rerun(rig.db, job, rig.ids.new(), inputs={"n": 4})


async def test_a_key_names_what_was_asked_for(rig: Rig) -> None:
    job = await film(rig)
    first = await again(rig, job, key="k")
    assert await again(rig, job, key="k") == first
    for other in ({"from_step": "tell"}, {"from_step": None}, {"inputs": {"n": 4}}):
        with pytest.raises(Conflict, match="in another way"):
            await again(rig, job, key="k", **other)
    # The same inputs spelled out are the same.
    assert await again(rig, job, key="k", inputs={"n": 3, "voice": "low"}) == first
    await control.delete(rig.db, job)
    assert await again(rig, job, key="k") == first, "a key that was used is answered first"


async def test_two_at_once_with_one_key_make_one_job_and_without_two(rig: Rig) -> None:
    job = await film(rig)
    made = await asyncio.gather(*(again(rig, job, key="k") for _ in range(5)))
    assert len(set(made)) == 1
    made = await asyncio.gather(*(again(rig, job) for _ in range(3)))
    assert len(set(made)) == 3
    for new in made:
        assert (await read.job(rig.db, new)).steps_open == 2


async def test_a_deleted_job_is_not_there_to_be_run_again(rig: Rig) -> None:
    job = await film(rig)
    await control.delete(rig.db, job)
    for act in (again(rig, job), rerun.preview(rig.db, job, Wish("rerun", "join"))):
        with pytest.raises(NotFound):
            await act


async def test_a_job_cannot_go_while_it_is_being_run_again(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    job = await film(rig)
    real = rerun._old_rows
    seen: list[str] = []

    async def slow(connection: Any, name: str, job_id: UUID, plan: Any) -> Any:
        # Retention comes by, with all the time in the world: the job is locked, so it is left alone.
        rig.clock.advance(3600)
        await Pruner(rig.db, 1.0).run_once()
        seen.append(name)
        return await real(connection, name, job_id, plan)

    monkeypatch.setattr(rerun, "_old_rows", slow)
    new = await again(rig, job)
    assert seen == ["step_rows"] and (await read.job(rig.db, new)).steps_open == 2
    monkeypatch.undo()
    await Pruner(rig.db, 1.0).run_once()
    with pytest.raises(NotFound):
        await read.job(rig.db, job)
    # What was kept is the new job's own.
    await rig.run_out('"new"')
    assert [s.output for s in await read.steps(rig.db, new) if s.index is not None] == ["old"] * 3
    assert await rig.state(new) == "COMPLETED"


async def test_a_sub_recipe_that_runs_again_begins_afresh_and_others_go_on(rig: Rig) -> None:
    leaf = plan(task("a"), task("b", "a", retry=Retry(max_attempts=1)), recipe="leaf")
    await recipes.register(rig.db, leaf)

    def call(name: str, *needs: str) -> Node:
        return Node(name, NodeKind.RECIPE, run="leaf", needs=needs, with_={})

    job = await rig.submit(plan(call("x"), call("y"), recipe="two"))
    await rig.loops.run_until_idle()
    for one in await rig.claim():
        await rig.settle(one)
    for one in await rig.claim():
        await rig.settle(one, BOOM)
    await rig.loops.run_until_idle()
    assert await rig.states(job) == ["FAILED", "FAILED"]
    new = await rerun.rerun(rig.db, job, rig.ids.new(), from_step="x")
    await rig.loops.run_until_idle()
    children = {view.parent_no: view for view in await read.jobs(rig.db, recipe="leaf") if view.parent_job == new}
    assert await rig.states(children[0].id) == ["QUEUED", "BLOCKED"], "what was named starts from nothing"
    assert await rig.states(children[1].id) == ["COMPLETED", "QUEUED"], "what failed beside it goes on"


async def test_children_of_a_fan_out_find_their_own_jobs_under_other_numbers(rig: Rig) -> None:
    """Two fan-outs: the first is run again and loses its numbers, the second has to find what it had begun."""
    leaf = plan(task("a"), task("b", "a", retry=Retry(max_attempts=1)), recipe="leaf")
    await recipes.register(rig.db, leaf)
    fans = plan(
        task("one", each="inputs.ns"),
        Node("two", NodeKind.RECIPE, run="leaf", each="inputs.ns", with_={}),
        recipe="fans",
    )
    job = await rig.submit(fans, {"ns": [1, 2]})
    await rig.loops.run_until_idle()
    for _ in range(2):
        for one in await rig.claim():
            await rig.settle(one, BOOM if one.job_id != job and one.no == 1 else None)
        await rig.loops.run_until_idle()
    assert await rig.state(job) == "FAILED"
    before = {view.id for view in await read.jobs(rig.db, recipe="leaf")}
    new = await rerun.rerun(rig.db, job, rig.ids.new(), from_step="one")
    assert (await read.job(rig.db, new)).steps_total == 4
    await rig.loops.run_until_idle()
    after = [view for view in await read.jobs(rig.db, recipe="leaf") if view.parent_job == new]
    assert {view.retry_of for view in after} == before
    await rig.run_out()
    assert await rig.state(new) == "COMPLETED"


async def test_a_budget_and_a_line_are_the_new_jobs_own(rig: Rig) -> None:
    one = plan(task("a"), task("b", "a", concurrency="k", limit=1), recipe="lined")
    job = await rig.submit(one)
    await budgets.set(rig.db, "job", str(job), 5)
    await rig.run_out()
    new = await rerun.rerun(rig.db, job, rig.ids.new(), from_step="b")
    budget = await budgets.get(rig.db, "job", str(new))
    assert budget is not None and (budget.most, budget.spent) == (5, 0)
    await rig.run_out()
    assert await rig.state(new) == "COMPLETED"
    async with rig.db.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM windlass.slots") == 0


async def test_a_wait_that_runs_again_waits_for_a_new_word(rig: Rig) -> None:
    from windlass.engine import signals

    asked = plan(task("a"), Node("yes", NodeKind.EVENT, run="approved", needs=("a",)), recipe="asked")
    job = await rig.submit(asked)
    await rig.run_out()
    await signals.send(rig.db, job, "approved", {"by": "ada"}, id="1", sender="ada")
    await rig.run_out()
    assert await rig.state(job) == "COMPLETED"
    new = await rerun.rerun(rig.db, job, rig.ids.new(), from_step="yes")
    await rig.run_out()
    assert await rig.states(new) == ["COMPLETED", "PARKED"]


async def test_a_job_all_of_whose_steps_are_done_has_nothing_to_retry(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    await rig.run_out()
    async with rig.db.connection() as connection:
        await connection.execute("UPDATE windlass.jobs SET state = 'FAILED', trouble = 'FAILED' WHERE id = $1", job)
    for act in (rerun.retry(rig.db, job, rig.ids.new()), rerun.preview(rig.db, job, Wish("retry"))):
        with pytest.raises(WrongState, match="every step"):
            await act


async def test_a_commit_whose_answer_was_lost_makes_no_second_job(rig: Rig) -> None:
    job, new = await film(rig), rig.ids.new()
    for _ in range(2):
        assert await rerun.rerun(rig.db, job, new, from_step="join") == new
    assert len(await read.jobs(rig.db, limit=10)) == 2


async def test_a_retry_tells_what_it_keeps(rig: Rig) -> None:
    job = await rig.submit(FILM, {"n": 3, "voice": "low"})
    await rig.run_one(Success("[1,2,3]"))
    await rig.loops.run_until_idle()
    for one, outcome in zip(await rig.claim(), [None, BOOM, None], strict=True):
        await rig.settle(one, outcome)
    await rig.run_out()
    told = await rerun.preview(rig.db, job, Wish("retry"))
    assert (told.run_again, told.kept, told.kept_children) == (
        ("render", "join", "tell"), ("split", "logo"), {"render": 2}
    )  # fmt: skip


async def test_a_step_given_all_inputs_is_given_them(rig: Rig) -> None:
    """`${inputs}` alone names no input, and still is all of them."""
    of: Plan = plan(task("a", with_={"all": "${inputs}"}))
    await rig.submit(of, {"x": 1})
    prepared = Prepared(of, 0, None)
    assert not prepared.is_constant
    arguments = Arguments(rig.db, rig.artifacts, shared_evaluator())
    assert arguments.fill(await rig.claim_one(), prepared, {}) == {"all": {"x": 1}}
