"""What a handler says of money, and what it reaches beyond its worker."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

import windlass as wl
from tests.worker.yard import Yard, until_state
from windlass.core.errors import BadInput, WrongState
from windlass.core.outcome import Cost
from windlass.core.plan import Node
from windlass.worker.context import Context, added, refuse_cpu
from windlass.worker.handler import Handlers

JOB = UUID(int=7)


@wl.step(parks=True)
async def park() -> wl.Parked:
    return wl.Parked("somebody")


STEPS = {"park": park}


def context(**given: Any) -> Context:
    return Context(JOB, "render", None, 1, **given)


def test_what_is_spent_adds_up_without_rounding() -> None:
    ctx = context()
    for _ in range(10):
        ctx.cost(0.1, tokens_in=1)
    ctx.cost(Decimal("0.000001"), tokens_out=2, seconds=0.5, provider="fal")
    assert ctx._cost == Cost("1.000001", 10, 2, 0.5, "fal")


def test_costs_are_told_as_they_grow() -> None:
    told: list[Cost] = []
    ctx = context(spend=told.append)
    ctx.cost("1")
    ctx.cost("2", seconds=3)
    assert [cost.amount for cost in told] == ["1", "3"]


def test_the_provider_of_two_costs_is_the_last_that_was_named() -> None:
    assert added(Cost("1", provider="a"), Cost("2")).provider == "a"
    assert added(Cost("1", provider="a"), Cost("2", provider="b")).provider == "b"


@pytest.mark.parametrize(
    "given",
    [
        {"amount": "much"}, {"amount": -1}, {"amount": float("nan")}, {"amount": "Infinity"},
        {"tokens_in": -1}, {"seconds": float("inf")},
    ],
)  # fmt: skip
def test_what_is_no_cost_is_refused(given: dict[str, Any]) -> None:
    ctx = context()
    with pytest.raises(BadInput):
        ctx.cost(**given)
    assert ctx._cost is None


def test_nothing_beyond_is_reached_without_a_worker_or_after_the_end() -> None:
    ctx = context()
    for reach in (lambda: ctx.provider, lambda: ctx.token, lambda: ctx.spawn("other")):
        with pytest.raises(WrongState, match="while the handler runs"):
            reach()


def test_a_process_is_told_to_leave_that_to_others() -> None:
    ctx = context(outside=refuse_cpu)
    with pytest.raises(WrongState, match="without cpu=True"):
        _ = ctx.token


def test_every_worker_knows_the_handler_that_asks_a_provider() -> None:
    handlers = Handlers({})
    assert handlers._handler("windlass.provider") is not None
    assert handlers._handler("windlass.other") is None


@pytest.mark.parametrize(("wait_s", "is_bounded"), [(600.0, True), (None, False)])
async def test_a_wait_without_an_end_has_the_steps(yard: Yard, wait_s: float | None, is_bounded: bool) -> None:
    (job,) = await yard.submit(Node("park", run="park", wait_s=wait_s))
    async with yard.working(steps=STEPS):
        step = await until_state(yard, job, "PARKED")
    assert (step.wake_at is not None) is is_bounded


async def test_a_step_that_holds_a_place_never_waits_without_end(yard: Yard) -> None:
    (job,) = await yard.submit(Node("park", run="park", concurrency="one"))
    async with yard.loops(), yard.working(steps=STEPS):
        step = await until_state(yard, job, "PARKED")
    assert step.wake_at is not None
