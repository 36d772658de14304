"""What runs again when a job is run again from a step, and what is kept."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.test_properties import Actor, plans
from tests.core.world import BOOM, World, child, event, task, timer
from windlass.core.control import cancel
from windlass.core.draft import Step
from windlass.core.errors import BadInput
from windlass.core.outcome import Failure
from windlass.core.plan import Plan
from windlass.core.rerun import Again, again, changed_inputs, restart_from
from windlass.core.retry import Retry
from windlass.core.retry_job import Kept, Restart, retry_rows
from windlass.core.route import Fan, Skip
from windlass.core.states import STEP_DONE, STEP_TERMINAL, StepState

S = StepState
ONCE = Retry(max_attempts=1)


def kept(world: World) -> list[Kept]:
    rows = [
        Kept(s.no, s.node, s.index, s.state, s.unmet, s.fan, s.fanned, None, s.output) for s in world.steps.values()
    ]
    return sorted(rows, key=lambda row: row.no)


def run_again(world: World, step: str | None, *changed: str) -> tuple[Again, list[Kept]]:
    old = kept(world)
    rows = retry_rows(world.plan, old, restart_from(world.plan, old, step, changed))
    return again(world.plan, rows, changed), rows


def chain(**given: Any) -> World:
    """split → render (a fan-out) → join → tell, and logo, which only tell needs."""
    world = World.of(
        task("split", with_={"n": "${inputs.n}"}),
        task("render", "split", each="steps.split.outputs", with_={"v": "${inputs.voice}"}, retry=ONCE),
        task("join", "render", with_={"all": "${steps.render.outputs}"}),
        task("logo", with_={"c": "${inputs.colour}"}),
        task("tell", "join", "logo", with_={"j": "${steps.join.outputs}"}),
        **given,
    )
    world.run("split")
    world.route("render", Fan(("1", "2", "3"), 0, 3))
    for index in range(3):
        world.run("render", index=index)
    for name in ("join", "logo", "tell"):
        world.run(name)
    assert world.is_finished
    return world


def test_the_step_and_all_that_depend_on_it_run_again() -> None:
    told, rows = run_again(chain(), "join")
    assert (told.run_again, told.kept) == (("join", "tell"), ("split", "render", "logo"))
    assert told.kept_children == {} and told.stale == ()
    assert [(row.state, row.unmet) for row in rows[:5]] == [
        (S.COMPLETED, 0), (S.COMPLETED, 0), (S.QUEUED, 0), (S.COMPLETED, 0), (S.BLOCKED, 1)
    ]  # fmt: skip
    assert [row.output for row in rows] == ["1", None, None, "1", None, "1", "1", "1"]


def test_a_fan_out_from_which_it_runs_gets_children_anew() -> None:
    told, rows = run_again(chain(), "render")
    assert told.run_again == ("render", "join", "tell")
    assert len(rows) == 5 and (rows[1].state, rows[1].fan, rows[1].fanned) == (S.READY, None, None)


def test_one_child_of_a_fan_out_can_run_again_alone() -> None:
    told, rows = run_again(chain(), "render[1]")
    assert (told.run_again, told.kept) == (("render", "join", "tell"), ("split", "logo"))
    assert told.kept_children == {"render": 2}
    assert (rows[1].state, rows[1].unmet, rows[1].fanned, rows[1].waiting_for) == (S.PARKED, 1, 3, "fan")
    assert [row.state for row in rows[5:]] == [S.COMPLETED, S.QUEUED, S.COMPLETED]


def test_from_the_first_step_that_all_need_everything_else_is_what_does_not_need_it() -> None:
    told, _ = run_again(chain(), "split")
    assert (told.run_again, told.kept) == (("split", "render", "join", "tell"), ("logo",))


def test_without_a_step_it_is_a_retry() -> None:
    world = World.of(task("a"), task("b", "a", retry=ONCE))
    world.run("a")
    world.run("b", Failure(BOOM))
    told, rows = run_again(world, None)
    assert (told.run_again, told.kept) == (("b",), ("a",))
    assert rows == retry_rows(world.plan, kept(world))


def test_what_is_not_done_runs_too_wherever_it_is() -> None:
    world = World.of(task("a"), task("b", retry=ONCE), task("c", "b"))
    world.run("a")
    world.run("b", Failure(BOOM))
    told, _ = run_again(world, "a")
    assert (told.run_again, told.kept) == (("a", "b", "c"), ())


def test_a_skipped_step_is_kept_unless_it_runs_again_and_then_its_condition_is_asked_again() -> None:
    world = World.of(task("a"), task("b", "a", when="inputs.x"), task("c", "b"))
    world.run("a")
    world.route("b", Skip())
    world.run("c")
    told, rows = run_again(world, "c")
    assert (told.kept, rows[1].state, rows[1].output) == (("a", "b"), S.SKIPPED, '{"skipped":true}')
    told, rows = run_again(world, "b", "x")
    assert (told.run_again, rows[1].state, rows[1].output) == (("b", "c"), S.READY, None)
    # Kept though its condition reads what changed: told as stale.
    assert run_again(world, "c", "x")[0].stale == ("b",)


def test_child_jobs_timers_and_waits_run_again_through_the_router() -> None:
    world = World.of(task("a"), child("b", "a"), timer("c", "b"), event("d", "c"), task("e", "d", provider="fal"))
    for step in world.steps.values():
        step.state = S.COMPLETED
    told, rows = run_again(world, "b")
    assert told.run_again == ("b", "c", "d", "e")
    assert [(row.state, row.unmet) for row in rows] == [
        (S.COMPLETED, 0), (S.READY, 0), (S.BLOCKED, 1), (S.BLOCKED, 1), (S.BLOCKED, 1)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("changed", "stale"),
    [
        ((), ()),
        # What reads it, and what reads what that made; not what runs again.
        (("n",), ("split", "render")),
        (("voice",), ("render",)),
        (("colour",), ("logo",)),
        (("other",), ()),
    ],
)
def test_what_is_kept_though_its_input_changed_is_stale(changed: tuple[str, ...], stale: tuple[str, ...]) -> None:
    told, _ = run_again(chain(), "join", *changed)
    assert (told.stale, told.inputs_changed) == (stale, changed)


def test_a_fan_out_with_kept_children_is_stale_too() -> None:
    assert run_again(chain(), "render[0]", "voice")[0].stale == ("render",)


@pytest.mark.parametrize("text", ["${inputs}", "${inputs[steps.a.outputs]}"])
def test_a_step_that_reads_all_inputs_reads_whichever_changed(text: str) -> None:
    world = World.of(task("a"), task("b", "a", with_={"x": text}), task("c", "b", concurrency="k-${inputs.y}"))
    for name in ("a", "b"):
        world.run(name)
    world.steps[2].state = S.COMPLETED
    assert run_again(world, None, "z")[0].stale == ("b",)
    assert run_again(world, None, "y")[0].stale == ("b", "c")


def test_a_fan_out_that_never_got_all_its_children_begins_anew_if_its_items_may_be_others() -> None:
    world = World.of(task("a"), task("b", each="inputs.xs"))
    world.route("b", Fan(("1", "2"), 0, 3))
    world.run("b", index=0)
    draft = world.draft()
    cancel(draft, "")
    world.put(draft)
    told, rows = run_again(world, "a")
    assert (told.kept_children, rows[1].fanned, rows[1].state) == ({"b": 1}, 2, S.READY)
    told, rows = run_again(world, "a", "xs")
    assert (told.kept_children, rows[1].fanned, rows[1].fan, len(rows)) == ({}, None, None, 2)


def test_children_are_numbered_without_gaps() -> None:
    world = World.of(task("a", each="inputs.xs"), task("b", each="inputs.xs"), task("c", "a"))
    world.route("a", Fan(("1", "2"), 0, 2))
    world.route("b", Fan(("1", "2"), 0, 2))
    for name in "ab":
        for index in range(2):
            world.run(name, index=index)
    world.run("c")
    _, rows = run_again(world, "a")
    assert [(row.no, row.node, row.index) for row in rows[3:]] == [(3, 1, 0), (4, 1, 1)]


@pytest.mark.parametrize(
    ("step", "told", "remedy"),
    [
        ("rendr", "r has no step 'rendr'", "Did you mean render?"),
        ("rendr[1]", "r has no step 'rendr[1]'", "Did you mean render?"),
        ("", "r has no step ''", "There is join, logo, render, split, tell"),
        ("render[3]", "the job never had render[3]", "Name the step alone, render, to run all of it again"),
        ("render[0000000001]", "r has no step", "Did you mean render?"),
        ("render[-1]", "r has no step", "Did you mean render?"),
        ("render[١]", "r has no step", "Did you mean render?"),
        ("render[1]\n", "r has no step", "Did you mean render?"),
        ("split[0]", "the job never had split[0]", "Name the step alone, split, to run all of it again"),
        ("x" * 5_000, "r has no step 'xxx", "There is join"),
    ],
)
def test_a_step_that_is_not_there_is_refused_with_what_is(step: str, told: str, remedy: str) -> None:
    with pytest.raises(BadInput) as caught:
        run_again(chain(), step)
    assert told in caught.value.message and len(caught.value.message) < 200
    assert remedy in str(caught.value.remedy)
    assert caught.value.errors == (("/from_step", caught.value.message),)


def test_inputs_are_compared_as_json() -> None:
    before = {"a": 1, "b": [1, {"c": None}], "d": "x", "gone": 0}
    assert changed_inputs(before, dict(before)) == ()
    assert changed_inputs(before, {"a": True, "b": [1, {"c": None}], "d": "x", "new": None}) == ("a", "gone", "new")
    assert changed_inputs({"a": 1}, {"a": 1.0}) == ()
    assert changed_inputs({"b": [1, {"c": None}]}, {"b": [1, {"c": 0}]}) == ("b",)


def reached(graph: Plan, start: int) -> set[int]:
    """The same as the law says, found in another way: from each step back to what it needs."""
    found = {start}
    for no, node in enumerate(graph.nodes):
        if any(graph.number[name] in found for name in node.needs):
            found.add(no)
    return found


@settings(max_examples=200)
@given(plans(), st.data())
def test_what_is_told_beforehand_is_what_then_runs(graph: Plan, data: st.DataObject) -> None:
    world = World.of_plan(graph)
    actor = Actor(world, data)
    for _ in range(data.draw(st.integers(0, 30))):
        actor.act()
    if data.draw(st.booleans()):
        actor.finish()
    if not world.is_finished:
        draft = world.draft()
        cancel(draft, "")
        world.put(draft)
    old = kept(world)
    start = data.draw(st.integers(0, len(graph.nodes) - 1))
    children = [row.index for row in old if row.node == start and row.index is not None]
    index = data.draw(st.sampled_from([None, *children]))
    changed = data.draw(st.sampled_from([(), ("x",), ("xs",)]))
    name = graph.nodes[start].name if index is None else f"{graph.nodes[start].name}[{index}]"
    restart = restart_from(graph, old, name, changed)
    rows = retry_rows(graph, old, restart)
    told = again(graph, rows, changed)

    done_before = {row.node for row in old if row.index is None and row.state in STEP_DONE}
    expected = reached(graph, start) | (set(range(len(graph.nodes))) - done_before)
    assert {graph.number[name] for name in told.run_again} == expected
    assert {graph.number[name] for name in told.kept} == set(range(len(graph.nodes))) - expected
    assert set(told.stale) <= {*told.kept, *told.kept_children}
    outputs = {(row.node, row.index): row.output for row in old}
    for row in rows:
        if row.state in STEP_DONE:
            assert row.output == outputs[row.node, row.index], "what is kept is as it was"

    new = World.of_plan(graph)
    new.steps = {r.no: Step(r.no, r.node, r.index, r.state, r.unmet, 0, 0, 0, r.fan, r.fanned, r.wait) for r in rows}
    new.job.steps_total = len(rows)
    new.job.steps_open = sum(step.state not in STEP_TERMINAL for step in new.steps.values())
    # Its events do not start where a fresh job's do.
    new.replayed = lambda: {no: step.state for no, step in new.steps.items()}  # type: ignore[method-assign]
    assert sorted(new.steps) == list(range(len(rows)))
    new.check()
    Actor(new, data).finish()
    new.check()
    assert {step.state for step in new.steps.values()} <= STEP_DONE
    moved = {new.steps[event.no].node for event in new.events if event.no is not None}
    assert {graph.nodes[no].name for no in moved} == set(told.run_again), "what ran is what was told"
    of_fan = dict.fromkeys(told.kept_children, 0)
    ran = {event.no for event in new.events}
    for step in new.steps.values():
        if step.index is not None and step.no not in ran and graph.nodes[step.node].name in of_fan:
            of_fan[graph.nodes[step.node].name] += 1
    assert of_fan == dict(told.kept_children)


def test_a_restart_keeps_only_what_is_done_and_not_named() -> None:
    rows = [Kept(n, n, None, state, 0, None, None, None, None) for n, state in enumerate((S.COMPLETED, S.FAILED))]
    child_of_0 = Kept(2, 0, 1, S.COMPLETED, 0, None, None, None, None)
    assert [Restart().is_kept(row) for row in rows] == [True, False]
    assert not Restart(frozenset({0})).is_kept(rows[0]) and not Restart(frozenset({0})).is_kept(child_of_0)
    assert not Restart(child=(0, 1)).is_kept(rows[0]) and not Restart(child=(0, 1)).is_kept(child_of_0)
    assert Restart(child=(0, 2)).is_kept(child_of_0) and Restart(child=(1, 1)).is_kept(child_of_0)
