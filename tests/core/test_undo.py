"""The undo of a job: which effects stand, in which order they go, and what a failed undo leaves."""

from __future__ import annotations

from datetime import UTC, datetime
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.core.world import BOOM, World, child, task
from windlass.core.control import cancel
from windlass.core.draft import Draft
from windlass.core.effect import StartUndo
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.outcome import Failure
from windlass.core.plan import (
    UNDO_HANDLER,
    EffectKind,
    Node,
    Plan,
    Undo,
    UndoMode,
    UndoOrder,
    UndoWhen,
    plan_from_json,
)
from windlass.core.retry import Retry
from windlass.core.retry_job import Kept, retry_rows
from windlass.core.states import JobState, StepState
from windlass.core.undo import (
    Effects,
    Past,
    effects_of,
    finals,
    holds,
    is_waited_for,
    may_succeed_late,
    release,
    standing,
    undo_id,
    undo_key,
    undo_labels,
    undo_plan,
)

S = StepState
ONCE = Retry(max_attempts=1)
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def effect(
    name: str, *needs: str, when: UndoWhen = UndoWhen.COMPLETED, each: str | None = None, **given: object
) -> Node:
    undo = Undo(f"un{name}", when, retry=ONCE)
    return task(name, *needs, undo=undo, each=each, **given)


def recipe(*nodes: Node, order: UndoOrder = UndoOrder.COMPLETION, mode: UndoMode = UndoMode.AUTO) -> Plan:
    return Plan("r", nodes, undo_order=order, undo=mode)


def done(plan: Plan, *names: str, state: StepState = S.COMPLETED) -> list[Past]:
    """These steps, which ended in this order."""
    return [Past(plan.number[name], plan.number[name], None, state, 1, seq) for seq, name in enumerate(names, 1)]


def names(plan: Plan, past: list[Past], children: frozenset[int] = frozenset()) -> list[str]:
    return [one.name for one in standing(plan, past, children)]


def undoing(plan: Plan, *ended: str) -> Plan:
    return undo_plan(plan, standing(plan, done(plan, *ended)))


def shown(plan: Plan) -> list[tuple[str, tuple[str, ...], tuple[str, ...]]]:
    return [(node.name, node.needs, node.follows) for node in plan.nodes]


CHAIN = recipe(effect("a"), effect("b", "a"), task("x", "b"), effect("c", "x"))
WIDE = (effect("a"), effect("b"), effect("c", "a"), effect("d", "b"))


def test_effects_are_undone_in_reverse_order_of_completion() -> None:
    assert names(CHAIN, done(CHAIN, "a", "b", "x", "c")) == ["c", "b", "a"]
    told = [("c", (), ()), ("b", ("c",), ("c",)), ("a", ("b",), ("b",))]
    assert shown(undoing(CHAIN, "a", "b", "x", "c")) == told
    wide = recipe(*WIDE)
    assert shown(undoing(wide, "b", "a", "d", "c")) == [
        ("c", (), ()),
        ("d", (), ("c",)),
        ("a", ("c",), ("d",)),
        ("b", ("d",), ("a",)),
    ]


def test_branches_are_undone_together_by_graph() -> None:
    wide = recipe(*WIDE, order=UndoOrder.GRAPH)
    assert shown(undoing(wide, "b", "a", "d", "c")) == [
        ("c", (), ()),
        ("d", (), ()),
        ("a", ("c",), ()),
        ("b", ("d",), ()),
    ]


def test_a_node_runs_the_undo_with_its_own_options() -> None:
    undo = Undo("unpay", UndoWhen.COMPLETED, "q", Retry(max_attempts=9), 7.0)
    plan = recipe(task("pay", undo=undo))
    [node] = undoing(plan, "pay").nodes
    assert node == Node("pay", run="unpay", undoes=0, queue="q", retry=undo.retry, timeout_s=7.0)
    assert undoing(plan, "pay").recipe == "r.undo"
    assert undoing(plan, "pay").is_undo and not plan.is_undo and plan.may_undo


def test_a_plan_keeps_what_it_says_about_undo() -> None:
    plain = recipe(task("pay", undo=Undo("unpay")))
    assert plan_from_json(plain.canonical) == plain and b'"undo":{"run":"unpay"}' in plain.canonical
    undo = Undo("unpay", UndoWhen.STARTED, "q", Retry(max_attempts=9), 7.0)
    plan = recipe(
        task("pay", undo=undo, effect=EffectKind.EXPIRING, savepoint=True), order=UndoOrder.GRAPH, mode=UndoMode.ASK
    )
    assert plan_from_json(plan.canonical) == plan
    made = undoing(recipe(*WIDE), "a", "b", "c", "d")
    assert plan_from_json(made.canonical) == made


def test_a_started_step_may_have_an_effect() -> None:
    plan = recipe(effect("a"), effect("b", when=UndoWhen.STARTED))
    for state in (S.FAILED, S.CANCELLED, S.PARKED):
        assert names(plan, done(plan, "a", "b", state=state)) == ["b"]
    never = [Past(1, 1, None, S.CANCELLED, 0)]
    assert names(plan, never) == []


def test_a_running_step_may_yet_succeed_and_is_the_newest() -> None:
    plan = recipe(effect("a"), effect("b"), task("c"))
    past = [Past(0, 0, None, S.RUNNING, 1), Past(1, 1, None, S.COMPLETED, 1, 9)]
    assert names(plan, past) == ["a", "b"]
    assert is_waited_for(past[0]) and not is_waited_for(past[1])
    assert may_succeed_late(plan, past[0]) and not may_succeed_late(plan, past[1])
    assert not may_succeed_late(plan, Past(2, 2, None, S.RUNNING, 1))
    assert not may_succeed_late(plan, Past(0, 0, None, S.PARKED, 0)), "a fan-out has no attempt"


def test_a_copied_result_is_anothers_effect_unless_it_was_taken_over() -> None:
    plan = recipe(effect("a"))
    assert names(plan, [Past(0, 0, None, S.COMPLETED, 0)]) == []
    assert names(plan, [Past(0, 0, None, S.COMPLETED, 0, None, is_taken_over=True)]) == ["a"]
    two = recipe(effect("a"), effect("b"))
    past = [Past(0, 0, None, S.COMPLETED, 1, 5), Past(1, 1, None, S.COMPLETED, 0, None, is_taken_over=True)]
    assert names(two, past) == ["a", "b"], "what was taken over is the oldest"


def test_a_quarantined_output_does_not_hide_the_effect() -> None:
    plan = recipe(effect("a"))
    assert names(plan, done(plan, "a", state=S.QUARANTINED)) == ["a"]


def test_child_jobs_are_nodes_of_their_own() -> None:
    plan = recipe(effect("a"), child("k", "a"), child("empty"))
    assert names(plan, done(plan, "a", "k", "empty"), frozenset({1})) == ["k", "a"]
    [k, a] = undo_plan(plan, standing(plan, done(plan, "a", "k"), frozenset({1}))).nodes
    assert (k.run, k.undoes, a.needs) == (UNDO_HANDLER, 1, ("k",))
    [alone] = undo_plan(plan, standing(plan, done(plan, "k"), frozenset({1}))).nodes
    assert alone.queue == plan.nodes[1].queue


def test_a_savepoint_keeps_everything_before_it() -> None:
    plan = recipe(effect("a"), effect("b", "a", savepoint=True), effect("z", "a"), effect("c", "b", "z"))
    assert names(plan, done(plan, "a", "b", "z", "c")) == ["c", "z"]
    assert names(plan, done(plan, "a", "z")) == ["z", "a"], "it was not reached"
    joined = recipe(effect("a"), task("l", "a"), task("m", "a"), task("s", "l", "m", savepoint=True))
    assert names(joined, done(joined, "a", "l", "m", "s")) == []


def test_final_effects_are_named() -> None:
    plan = recipe(task("a", effect=EffectKind.FINAL), task("b", effect=EffectKind.FINAL), effect("c"))
    past = [*done(plan, "a", "c"), Past(1, 1, None, S.FAILED, 1, 3)]
    assert finals(plan, past) == ["a"]


def fans(count: int, order: UndoOrder) -> Plan:
    """The undo of two fan-outs in a row, over `count` items each, after a step with an effect."""
    plan = recipe(effect("s"), effect("f", "s", each="inputs.x"), effect("g", "f", each="inputs.x"), order=order)
    past = [
        Past(0, 0, None, S.COMPLETED, 1, 1),
        Past(1, 1, None, S.COMPLETED, 0, 2),
        Past(2, 2, None, S.COMPLETED, 0, 3),
    ]
    past += [Past(3 + i, 1 + i // count, i % count, S.COMPLETED, 1, 4 + i) for i in range(2 * count)]
    return undo_plan(plan, standing(plan, past))


def test_children_of_a_fan_out_are_undone_after_all_that_used_them() -> None:
    made = fans(3, UndoOrder.GRAPH)
    told = {node.name: node.needs for node in made.nodes}
    assert told["g[0]"] == () and told["s"] == ("f[0]", "f[1]", "f[2]")
    [joint] = [node for node in made.nodes if node.undoes is None]
    assert (joint.run, joint.needs) == (UNDO_HANDLER, ("g[0]", "g[1]", "g[2]"))
    assert all(told[f"f[{i}]"] == (joint.name,) for i in range(3))


@pytest.mark.parametrize("order", list(UndoOrder))
def test_the_plan_grows_with_the_effects_and_not_with_their_pairs(order: UndoOrder) -> None:
    made = fans(500, order)
    edges = sum(node.waits_for for node in made.nodes)
    assert len(made.nodes) < 1_010 and edges < 5_000
    assert len(made.canonical) < 400 * len(made.nodes)


def test_an_undo_waits_for_old_attempts_and_for_people() -> None:
    plan = recipe(effect("a"))
    assert holds(plan, may_act=False) == NO_HOLD
    assert holds(plan, may_act=True) == Hold.ATTEMPT
    assert holds(recipe(effect("a"), mode=UndoMode.ASK), may_act=True) == Hold.ATTEMPT | Hold.ASK


def test_every_bad_end_asks_for_an_undo_and_a_good_end_does_not() -> None:
    for state in (JobState.FAILED, JobState.TIMEOUT, JobState.CANCELLED, JobState.EXPIRED, JobState.DENIED):
        draft = World.of(effect("a"), task("b", "a")).draft()
        draft.move_job(state)
        assert draft.effects_of(StartUndo)
    plain = World.of(task("a")).draft()
    plain.move_job(JobState.FAILED)
    assert not plain.effects
    good = World.of(effect("a"))
    good.run("a")
    assert good.job.state is JobState.COMPLETED
    later = good.draft()
    later.move_job(JobState.OUTPUT_QUARANTINED)
    assert not later.effects_of(StartUndo), "its effects were wanted when it completed"


def test_a_cancel_may_keep_the_effects() -> None:
    draft = World.of(effect("a")).draft()
    assert cancel(draft, "", undo=False)
    assert draft.keeps_effects and draft.effects_of(StartUndo)


def held(hold: Hold) -> Draft:
    world = World.of_plan(undoing(CHAIN, "a", "b", "c"))
    world.job.state = JobState.PENDING
    world.steps[0].state, world.steps[0].holds = S.HELD, hold
    return world.draft()


def test_an_undo_goes_once_nothing_holds_it() -> None:
    draft = held(Hold.ATTEMPT | Hold.ASK)
    assert release(draft, Hold.ASK) and draft.steps[0].state is S.HELD
    assert not release(draft, Hold.ASK)
    assert release(draft, Hold.ATTEMPT) and draft.steps[0].state is S.QUEUED
    ended = held(Hold.ASK)
    ended.job.state = JobState.CANCELLED
    assert not release(ended, Hold.ASK)


def test_a_failed_undo_keeps_what_the_step_depended_on_and_lets_the_rest_go_on() -> None:
    wide = recipe(*WIDE)
    world = World.of_plan(undoing(wide, "b", "a", "d", "c"))
    world.run("c", Failure(BOOM, is_retryable=False))
    assert world.step("a").state is S.ABANDONED
    assert world.step("d").state is S.QUEUED
    world.run("d")
    assert world.step("b").state is S.QUEUED, "it followed the step that was abandoned"
    world.run("b")
    assert world.job.state is JobState.FAILED
    error = world.job.error
    assert error is not None
    assert (error.code, error.step) == ("undo_failed", "c")
    assert error.message == "c could not be undone (boom: it broke); these effects stand: c, a"


def test_an_abandoned_undo_passes_its_turn_on_only_when_it_comes() -> None:
    plan = recipe(effect("b"), effect("a"), effect("d"), effect("c", "a"), task("x", "c"))
    world = World.of_plan(undoing(plan, "b", "a", "d", "c"))
    world.run("c", Failure(BOOM, is_retryable=False))
    assert [world.step(name).state for name in ("d", "a", "b")] == [S.QUEUED, S.ABANDONED, S.BLOCKED]
    world.run("d")
    assert world.step("b").state is S.QUEUED, "the turn passed over the abandoned step"
    world.run("b")
    assert world.job.state is JobState.FAILED


def test_a_resumed_undo_gives_the_turn_over_what_was_undone_before() -> None:
    plan = recipe(effect("b"), effect("a"), effect("d"), effect("c"), task("x", "c"))
    undo = undoing(plan, "b", "a", "d", "c")
    first = World.of_plan(undo)
    for name, outcome in (("c", BOOM), ("d", None), ("a", BOOM), ("b", BOOM)):
        first.run(name, None if outcome is None else Failure(outcome, is_retryable=False))
    old = [Kept(s.no, s.node, None, s.state, s.unmet, None, None, None, s.output) for s in first.steps.values()]
    again = World.of_plan(undo)
    for row in retry_rows(undo, old):
        again.steps[row.no].state, again.steps[row.no].unmet = row.state, row.unmet
    again.job.steps_open = 3
    told = [(name, again.step(name).state, again.step(name).unmet) for name in ("c", "d", "a", "b")]
    assert told == [("c", S.QUEUED, 0), ("d", S.COMPLETED, 0), ("a", S.BLOCKED, 1), ("b", S.BLOCKED, 1)]
    again.run("c")
    assert [again.step(name).state for name in ("a", "b")] == [S.QUEUED, S.BLOCKED]
    again.run("a")
    again.run("b")
    assert again.job.state is JobState.COMPLETED


def test_the_fault_names_only_some_of_many_standing_effects() -> None:
    plan = recipe(*(effect(f"s{i}", *([f"s{i - 1}"] if i else [])) for i in range(30)))
    world = World.of_plan(undoing(plan, *(f"s{i}" for i in range(30))))
    world.run("s29", Failure(BOOM, is_retryable=False))
    assert world.job.error is not None and world.job.error.message.endswith(", s10 and 10 more")


def test_effects_follow_the_undo_job() -> None:
    assert effects_of(None, may_stand=False) is Effects.NONE
    assert effects_of(None, may_stand=True) is Effects.STANDING
    assert effects_of(JobState.PENDING, may_stand=False) is Effects.UNDOING
    assert effects_of(JobState.PENDING, may_stand=False, is_asked=True) is Effects.STANDING
    assert effects_of(JobState.PROCESSING, may_stand=False) is Effects.UNDOING
    assert effects_of(JobState.COMPLETED, may_stand=False) is Effects.UNDONE
    assert effects_of(JobState.CANCELLED, may_stand=False) is Effects.STANDING
    assert effects_of(JobState.FAILED, may_stand=False) is Effects.FAILED


def test_the_id_of_an_undo_job_is_the_same_again_and_greater_than_the_jobs() -> None:
    early, late = UUID(int=(1 << 90) | 5), UUID("ffff0000-0000-7000-8000-000000000000")
    assert undo_id(early, 0, NOW) == undo_id(early, 0, NOW) != undo_id(early, 1, NOW)
    assert undo_id(early, 0, NOW).version == 7 and undo_id(early, 0, NOW).variant == "specified in RFC 4122"
    assert undo_id(early, 0, NOW).int >> 80 == int(NOW.timestamp() * 1000)
    assert undo_id(late, 0, NOW) > late


def test_an_undo_job_is_marked_and_its_keys_name_the_step() -> None:
    marks = undo_labels(UUID(int=7), {"env": "prod"})
    assert marks == {
        "env": "prod", "saga_compensation": "true", "is_compensation": "true", "saga_workflow_id": str(UUID(int=7)),
    }  # fmt: skip
    assert undo_key(UUID(int=7), "a[3]") == f"undo/{UUID(int=7)}/a[3]"


@st.composite
def histories(draw: st.DrawFn) -> tuple[Plan, list[Past]]:
    """A random graph, of which some steps have completed in an order that the graph allows."""
    count = draw(st.integers(1, 9))
    nodes: list[Node] = []
    for i in range(count):
        needs = tuple(f"n{j}" for j in range(i) if draw(st.booleans()))
        nodes.append(effect(f"n{i}", *needs) if draw(st.booleans()) else task(f"n{i}", *needs))
    plan = recipe(*nodes, order=draw(st.sampled_from(list(UndoOrder))))
    ended: list[str] = []
    for _ in range(draw(st.integers(0, count))):
        ready = [n.name for n in nodes if n.name not in ended and set(n.needs) <= set(ended)]
        if ready:
            ended.append(draw(st.sampled_from(ready)))
    return plan, done(plan, *ended)


@settings(max_examples=400)
@given(histories(), st.randoms(use_true_random=False))
def test_nothing_is_undone_before_what_used_it(history: tuple[Plan, list[Past]], rng: object) -> None:
    plan, past = history
    stands = standing(plan, past)
    if not stands:
        return
    world = World.of_plan(undo_plan(plan, stands))
    order: list[str] = []
    broken: set[str] = set()
    while ready := sorted(world.plan.nodes[s.no].name for s in world.steps.values() if s.state is S.QUEUED):
        if plan.undo_order is UndoOrder.COMPLETION:
            assert len([name for name in ready if world.plan.nodes[world.plan.number[name]].undoes is not None]) <= 1
        name = rng.choice(ready)  # type: ignore[attr-defined]
        is_effect = world.plan.nodes[world.plan.number[name]].undoes is not None
        is_broken = is_effect and rng.random() < 0.2  # type: ignore[attr-defined]
        world.run(name, Failure(BOOM, is_retryable=False) if is_broken else None)
        order.append(name)
        broken |= {name} if is_broken else set()
    undone = set(order) - broken
    users = {one.name: {plan.nodes[no].name for no in plan.descendants[one.node]} for one in stands}
    held = {one.name for one in stands}
    for one in stands:
        mine = users[one.name] & held
        if one.name in undone | broken:
            assert mine <= undone
            assert all(order.index(user) < order.index(one.name) for user in mine)
        else:
            assert mine - undone, "only an effect that is still used stays without a try"
    assert world.job.state is (JobState.FAILED if broken else JobState.COMPLETED)
    if plan.undo_order is UndoOrder.COMPLETION and not broken:
        assert [name for name in order if name in held] == [one.name for one in stands]
