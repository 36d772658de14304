"""The rows that a retried job starts with."""

from __future__ import annotations

from tests.core.world import BOOM, World, child, plan, task
from windlass.core.outcome import Cancel, Failure
from windlass.core.plan import NodeKind
from windlass.core.retry import Retry
from windlass.core.retry_job import Kept, retry_rows
from windlass.core.route import Fan, Unresolvable
from windlass.core.states import StepState

S = StepState
ONCE = Retry(max_attempts=1)


def kept(world: World) -> list[Kept]:
    return [Kept(s.no, s.node, s.index, s.state, s.unmet, s.fan, s.fanned, "0", s.output) for s in world.steps.values()]


def again(world: World) -> dict[tuple[str, int | None], tuple[StepState, int]]:
    rows = retry_rows(world.plan, kept(world))
    return {(world.plan.nodes[row.node].name, row.index): (row.state, row.unmet) for row in rows}


def test_what_succeeded_is_kept_and_the_rest_starts_afresh() -> None:
    world = World.of(task("a"), task("b", "a", retry=ONCE), task("c", "b"), task("d", "a", "c"), task("e", retry=ONCE))
    world.run("a")
    world.run("b", Failure(BOOM))
    world.run("e", Failure(BOOM))
    assert again(world) == {
        ("a", None): (S.COMPLETED, 0),
        ("b", None): (S.QUEUED, 0),
        ("c", None): (S.BLOCKED, 1),
        ("d", None): (S.BLOCKED, 1),
        ("e", None): (S.QUEUED, 0),
    }
    assert retry_rows(world.plan, kept(world))[0].output == "1"


def test_a_step_that_must_be_resolved_is_ready_again() -> None:
    world = World.of(task("a"), task("b", "a", when="x"), child("c"))
    world.run("a")
    world.route("b", Unresolvable(BOOM))
    assert again(world)["b", None] == (S.READY, 0)
    assert again(world)["c", None] == (S.READY, 0)


def test_a_fan_out_keeps_the_children_that_were_done() -> None:
    world = World.of(task("a", each="xs", retry=ONCE))
    world.route("a", Fan(("1", "2", "3"), 0, 3))
    world.run("a", index=0)
    world.run("a", Failure(BOOM), index=1)
    world.run("a", Cancel(), index=2)
    rows = {row.index: row for row in retry_rows(world.plan, kept(world))}
    assert (rows[None].state, rows[None].unmet, rows[None].waiting_for) == (S.PARKED, 2, "fan")
    assert [rows[i].state for i in range(3)] == [S.COMPLETED, S.QUEUED, S.QUEUED]
    assert [rows[i].no for i in range(3)] == [1, 2, 3]


def test_a_fan_out_that_was_not_whole_goes_back_to_the_router_for_the_rest() -> None:
    world = World.of(child("a", each="xs"))
    world.route("a", Fan(("1", "2"), 0, 3))
    world.steps[1].state = S.COMPLETED
    world.steps[2].state = S.CANCELLED
    world.steps[0].state = S.CANCELLED
    rows = retry_rows(world.plan, kept(world))
    assert (rows[0].state, rows[0].unmet, rows[0].fanned, rows[0].waiting_for) == (S.READY, 2, 2, None)
    assert [row.state for row in rows[1:]] == [S.COMPLETED, S.READY]


def test_a_fan_out_whose_needs_must_run_again_loses_its_children() -> None:
    graph = plan(task("a"), task("b", "a", each="xs"))
    old = [
        Kept(0, 0, None, S.FAILED, 0, None, None, None, None),
        Kept(1, 1, None, S.ABANDONED, 1, 2, 2, None, None),
        Kept(2, 1, 0, S.COMPLETED, 0, None, None, "1", "1"),
    ]
    rows = retry_rows(graph, old)
    assert [(row.no, row.state, row.fan) for row in rows] == [(0, S.QUEUED, None), (1, S.BLOCKED, None)]


def test_a_completed_fan_out_is_kept_whole() -> None:
    world = World.of(task("a", each="xs"), task("b", "a", retry=ONCE))
    world.route("a", Fan(("1",), 0, 1))
    world.run("a", index=0)
    world.run("b", Failure(BOOM))
    assert again(world) == {
        ("a", None): (S.COMPLETED, 0), ("b", None): (S.QUEUED, 0), ("a", 0): (S.COMPLETED, 0),
    }  # fmt: skip
    assert world.plan.nodes[0].kind is NodeKind.TASK
