"""Lanes: a handler and a caller in one name."""

from __future__ import annotations

import pytest

from windlass.core.lane import caller_of, handler_of, lane_of, spelled
from windlass.core.plan import Node, NodeKind


@pytest.mark.parametrize("caller", ["ada", "Ada Byron", "", " x"])
def test_a_lane_names_the_handler_and_the_caller(caller: str) -> None:
    lane = lane_of(Node("a", run="render.film"), caller)
    assert (handler_of(lane), caller_of(lane)) == ("render.film", caller)


@pytest.mark.parametrize("kind", [NodeKind.TIMER, NodeKind.EVENT, NodeKind.RECIPE])
def test_a_node_that_no_handler_runs_has_no_lane(kind: NodeKind) -> None:
    assert lane_of(Node("a", kind, run="x"), "ada") == ""


def test_the_lanes_of_one_handler_lie_together() -> None:
    lanes = [f"{handler} {caller}" for handler in ("a", "a-b", "a.b", "a_b", "ab") for caller in ("", "!", "z")]
    assert [handler_of(lane) for lane in sorted(lanes)] == [handler_of(lane) for lane in lanes]
    assert all(lane < f"{handler_of(lane)}!" for lane in lanes)


def test_every_spelled_name_stands_between_spaces() -> None:
    assert spelled({"b", "a"}) == " a b "
