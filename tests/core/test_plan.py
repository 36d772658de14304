"""A plan is its content."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from tests.core.world import child, event, plan, task, timer
from windlass.core.outcome import Fault
from windlass.core.plan import TTL_S, Descendants, Node, NodeKind, OnFailure, Plan, plan_from_json
from windlass.core.retry import Retry


def rich() -> Plan:
    return Plan(
        "r",
        (
            task("a", with_={"x": "${inputs.x}"}, retry=Retry(max_attempts=9), timeout_s=5.0, queue="gpu"),
            task("b", "a", each="steps.a.outputs", when="inputs.x"),
            timer("c", "b"),
            child("d", "c", ttl_s=60.0),
            task("e", "d", provider="fal", concurrency="k:{inputs.x}", limit=3, cost=0.5, wait_s=9.0),
            event("f", "e", with_={"id": 1}, wait_s=60.0),
        ),
        {"type": "object"},
        "${steps.d.outputs}",
        OnFailure.STOP,
    )


def test_a_stored_plan_reads_back_as_it_was() -> None:
    for one in (rich(), plan(task("a"))):
        assert plan_from_json(one.canonical) == one
        assert plan_from_json(one.canonical).hash == one.hash


def test_equal_plans_have_equal_hashes_and_others_have_others() -> None:
    assert rich().hash == rich().hash
    assert plan(task("a")).hash != plan(task("a", timeout_s=1.0)).hash


def test_a_plan_knows_who_follows_whom() -> None:
    graph = plan(task("a"), task("b", "a"), task("c", "b"), task("d"))
    assert graph.successors == ((1,), (2,), (), ())
    assert [graph.descendants[no] for no in range(4)] == [{1, 2}, {2}, set(), set()]


def test_what_the_engine_must_resolve_first_is_routed() -> None:
    routed = [timer("a"), child("a"), event("a"), task("a", when="x"), task("a", each="x")]
    assert all(node.is_routed for node in routed)
    assert not Node("a").is_routed
    assert [node.is_child_routed for node in (child("a"), task("a", each="x"))] == [True, False]


@pytest.mark.parametrize("given", [{"provider": "fal"}, {"concurrency": "k"}, {"cost": 0.5}])
def test_a_step_that_needs_a_place_or_money_stands_in_line(given: dict[str, Any]) -> None:
    node = task("a", **given)
    assert node.is_slotted and node.is_routed and node.is_child_routed
    assert plan(task("b"), node).is_slotted
    assert not plan(task("b")).is_slotted


def test_a_plan_knows_whether_it_waits_to_be_told_something() -> None:
    assert plan(task("a"), event("b")).has_events
    assert not plan(task("a")).has_events


def test_what_a_plan_does_not_use_is_not_in_its_bytes() -> None:
    """So that plans of older recipes keep their hashes."""
    assert set(msgspec.json.decode(plan(task("a")).canonical)["steps"][0]) == {"name", "run"}


def test_a_fault_shows_only_what_it_has() -> None:
    assert Fault("c", "m").as_json() == {"code": "c", "message": "m"}


def test_a_default_life_covers_the_longest_declared_wait() -> None:
    nodes = (
        Node("approval", NodeKind.EVENT, run="ok", wait_s=100.0),
        Node("child", NodeKind.RECIPE, run="other", ttl_s=30.0),
        Node("render", run="render", wait_s=20.0, needs=("approval",)),
        Node("fixed", NodeKind.TIMER, with_={"seconds": 5}, needs=("render", "child")),
        Node("unknown", NodeKind.TIMER, with_={"seconds": "${inputs.x}"}, needs=("fixed",)),
        Node("empty", NodeKind.TIMER),
    )
    assert Plan("r", nodes).lives_s == TTL_S + 125
    assert Plan("r", (Node("a", run="a"),)).lives_s == TTL_S
    chosen = Plan("r", nodes, ttl_s=60.0)
    assert chosen.lives_s == 60
    assert plan_from_json(chosen.canonical) == chosen
    assert chosen.hash != Plan("r", nodes).hash


def test_only_so_many_descendants_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Descendants, "KEPT_MAX", 5)
    descendants = plan(task("a"), task("b", "a"), task("c", "a", "b"), task("d", "c")).descendants
    for _ in range(2):
        assert [descendants[no] for no in range(4)] == [{1, 2, 3}, {2, 3}, {3}, set()]
    assert sorted(descendants._kept) == [0, 3]
