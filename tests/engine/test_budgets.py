"""Budgets: money is reserved when a step is let go, spent or given back when it ends, and never overshot."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.engine.lines import call, check, declare, granted, keyed, one, slots
from tests.engine.rig import Rig, plan, task
from windlass.core.errors import BadInput, NotFound
from windlass.core.outcome import Cost, Failure, Fault, Lost, Outcome, Parked, Report, Success
from windlass.core.plan import Node, NodeKind
from windlass.core.retry import Retry
from windlass.core.states import JobState
from windlass.engine import budgets, control, recipes, settle
from windlass.engine.budgets import BudgetView
from windlass.engine.claim import Claimed
from windlass.engine.loops import granter
from windlass.views import costs

BOOM = Fault("boom", "it broke")
FAN = plan(call("a", provider="", cost=0.1, each="inputs.items"))


async def report(rig: Rig, claimed: Claimed, cost: Cost | None = None, outcome: Outcome | None = None) -> None:
    made = Report(claimed.job_id, claimed.no, claimed.attempt, outcome or Success("1"), cost=cost)
    assert (await settle.settle(rig.db, [made], spread=lambda: 0.0)).took_effect == (True,)
    await check(rig.db)


async def budget(rig: Rig, scope: str, name: str) -> BudgetView:
    found = await budgets.get(rig.db, scope, name)
    assert found is not None
    return found


async def behind(rig: Rig) -> list[Any]:
    return [row["behind"] for row in await slots(rig.db) if row["state"] == "WAITING"]


async def test_a_fan_out_cannot_overshoot(rig: Rig) -> None:
    job = await rig.submit(FAN, {"items": list(range(100))})
    await budgets.set(rig.db, "job", str(job), "0.75")
    await rig.loops.run_until_idle()
    taken = await rig.claim()
    assert len(taken) == 7
    await check(rig.db)
    for claimed in taken:
        await report(rig, claimed, Cost("0.1"))
    await rig.loops.run_until_idle()
    assert await rig.claim() == []
    assert (await budget(rig, "job", str(job))).left == Decimal("0.05")
    assert set(await behind(rig)) == {f"job:{job}"}

    await budgets.set(rig.db, "job", str(job), "1.2")
    await rig.loops.run_until_idle()
    assert len(await rig.claim()) == 5
    await budgets.remove(rig.db, "job", str(job))
    await rig.loops.run_until_idle()
    assert len(await rig.claim()) == 88
    await check(rig.db)


async def test_a_raised_budget_reaches_every_step_that_waits_for_it(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(granter, "SHORT_MAX", 3)
    job = await rig.submit(FAN, {"items": list(range(10))})
    await budgets.set(rig.db, "job", str(job), "0.05")
    await rig.loops.run_until_idle()
    assert await rig.claim() == []

    await budgets.set(rig.db, "job", str(job), "10")
    await rig.loops.run_until_idle()
    assert len(await rig.claim()) == 10


async def test_what_an_attempt_did_not_need_is_given_to_the_next(rig: Rig) -> None:
    job = await rig.submit(FAN, {"items": list(range(6))})
    await budgets.set(rig.db, "job", str(job), "0.2")
    order = 0
    while await rig.loops.run_until_idle():
        for claimed in await rig.claim():
            await report(rig, claimed, Cost("0.02"))
            order += 1
    assert order == 6
    assert await rig.state(job) is JobState.COMPLETED
    view = await budget(rig, "job", str(job))
    assert (view.spent, view.reserved) == (Decimal("0.12"), Decimal(0))


async def test_an_attempt_that_cost_more_than_expected_stops_the_next(rig: Rig) -> None:
    job = await rig.submit(FAN, {"items": [1, 2]})
    await budgets.set(rig.db, "job", str(job), "0.19")
    await rig.loops.run_until_idle()
    await report(rig, await rig.claim_one(), Cost("5"))
    await rig.loops.run_until_idle()
    assert await rig.claim() == []
    assert (await budget(rig, "job", str(job))).left < 0


async def test_an_expected_cost_is_spent_when_nobody_says_what_it_was(rig: Rig) -> None:
    job = await rig.submit(one(provider="", cost=0.3))
    await budgets.set(rig.db, "job", str(job), 1)
    await granted(rig)
    await _finish(rig, job)
    [cost] = await costs.costs_of(rig.db, job)
    assert (cost.no, cost.attempt, cost.provider, cost.amount) == (0, 1, None, Decimal("0.3"))
    assert (await budget(rig, "job", str(job))).spent == Decimal("0.3")
    await check(rig.db)


async def test_what_was_said_while_it_waited_counts_and_adds_up(rig: Rig) -> None:
    job = await rig.submit(one(cost=0.3))
    await budgets.set(rig.db, "job", str(job), 1)
    await rig.loops.run_until_idle()
    claimed = await rig.claim_one()
    await report(rig, claimed, Cost("0.01", tokens_in=5), Parked("fal", 60))
    await report(rig, claimed, Cost("0.2", tokens_in=1, tokens_out=7, seconds=1.5))
    [cost] = await costs.costs_of(rig.db, job)
    assert (cost.amount, cost.tokens_in, cost.tokens_out, cost.seconds) == (Decimal("0.21"), 6, 7, 1.5)
    assert cost.provider == "fal"


async def test_what_was_said_while_it_waited_is_not_added_to_a_guess(rig: Rig) -> None:
    job = await rig.submit(one(cost=0.3))
    await rig.loops.run_until_idle()
    claimed = await rig.claim_one()
    await report(rig, claimed, Cost("0.01"), Parked("fal", 60))
    await report(rig, claimed)
    [cost] = await costs.costs_of(rig.db, job)
    assert cost.amount == Decimal("0.01")


async def test_each_attempt_has_its_own_cost_and_a_failed_one_gives_the_rest_back(rig: Rig) -> None:
    job = await rig.submit(one(cost=0.5, retry=Retry(max_attempts=3)))
    await budgets.set(rig.db, "job", str(job), 1)
    await rig.loops.run_until_idle()
    await report(rig, await rig.claim_one(), Cost("0.2"), Failure(BOOM, after_s=1))
    assert (await budget(rig, "job", str(job))).left == Decimal("0.8")
    rig.clock.advance(1)
    await rig.loops.run_until_idle()
    await report(rig, await rig.claim_one(), Cost("0.3"))
    assert [(cost.attempt, cost.amount) for cost in await costs.costs_of(rig.db, job)] == [
        (1, Decimal("0.2")),
        (2, Decimal("0.3")),
    ]


async def test_a_lost_attempt_keeps_its_money_and_a_cancelled_one_gives_it_back(rig: Rig) -> None:
    job = await rig.submit(one(cost=0.5))
    await budgets.set(rig.db, "recipe", "r", 1)
    await rig.loops.run_until_idle()
    await report(rig, await rig.claim_one(), None, Lost())
    assert (await budget(rig, "recipe", "r")).reserved == Decimal("0.5")
    await control.cancel(rig.db, job)
    assert (await budget(rig, "recipe", "r")).left == 1
    await check(rig.db)


@pytest.mark.parametrize("scope", ["job", "recipe", "caller"])
async def test_each_of_three_budgets_holds_by_itself(rig: Rig, scope: str) -> None:
    job = await rig.submit(FAN, {"items": [1, 2, 3]}, caller="ann")
    names = {"job": str(job), "recipe": "r", "caller": "ann"}
    for each in names:
        await budgets.set(rig.db, each, names[each], "0.1" if each == scope else "100")
    await rig.loops.run_until_idle()
    assert len(await rig.claim()) == 1
    assert set(await behind(rig)) == {f"{scope}:{names[scope]}"}
    await check(rig.db)


async def test_a_short_job_lets_others_pass(rig: Rig) -> None:
    await declare(rig.db, concurrency=2)
    poor = await rig.submit(plan(call("a", cost=1, each="[1,2,3]")), priority=9)
    await budgets.set(rig.db, "job", str(poor), "0.5")
    rich = [await rig.submit(one(cost=1)) for _ in range(3)]
    assert await granted(rig) == rich[:2]
    await check(rig.db)


async def test_a_short_step_keeps_its_key_and_its_place(rig: Rig) -> None:
    await budgets.set(rig.db, "caller", "ann", 1)
    first = await rig.submit(keyed(cost=2), {"key": "k"}, caller="ann")
    second = await rig.submit(keyed(cost=2), {"key": "k"}, caller="bob")
    assert await granted(rig) == [second]
    await budgets.set(rig.db, "caller", "ann", 2)
    assert await granted(rig) == []
    await _finish(rig, second)
    assert await granted(rig) == [first]
    await check(rig.db)


async def test_what_nobody_knows_the_cost_of_needs_that_something_is_left(rig: Rig) -> None:
    await declare(rig.db, concurrency=9)
    await budgets.set(rig.db, "recipe", "r", 1)
    job = await rig.submit(one())
    assert await granted(rig) == [job]
    await _finish(rig, job, Cost("1"))
    other = await rig.submit(one())
    assert await granted(rig) == []
    await budgets.set(rig.db, "recipe", "r", "1.01")
    assert await granted(rig) == [other]


async def test_a_providers_estimate_is_reserved_for_steps_that_say_nothing(rig: Rig) -> None:
    await declare(rig.db, concurrency=9, estimate=Decimal("0.4"))
    await budgets.set(rig.db, "recipe", "r", 1)
    jobs = [await rig.submit(one()) for _ in range(3)]
    assert await granted(rig) == jobs[:2]
    await check(rig.db)


async def test_a_budget_that_comes_late_knows_what_is_reserved_and_spent(rig: Rig) -> None:
    job = await rig.submit(FAN, {"items": [1, 2, 3]})
    await rig.loops.run_until_idle()
    taken = await rig.claim()
    await report(rig, taken[0], Cost("0.05"))
    view = await budgets.set(rig.db, "job", str(job), 1)
    assert (view.spent, view.reserved) == (Decimal("0.05"), Decimal("0.2"))
    await check(rig.db)
    for claimed in taken[1:]:
        await report(rig, claimed, Cost("0.05"))


async def test_a_jobs_budget_is_that_of_the_jobs_inside_it(rig: Rig) -> None:
    child = plan(call("a", provider="", cost=0.1, each="[1,2,3]"), recipe="child")
    await recipes.register(rig.db, child)
    between = plan(Node("go", NodeKind.RECIPE, run="child"), recipe="between")
    await recipes.register(rig.db, between)
    job = await rig.submit(plan(Node("go", NodeKind.RECIPE, run="between", each="[1,2]"), recipe="top"))
    await budgets.set(rig.db, "job", str(job), "0.45")
    await rig.loops.run_until_idle()
    taken = await rig.claim()
    assert len(taken) == 4
    await report(rig, taken[0], Cost("0.06"))
    view = await budget(rig, "job", str(job))
    assert (view.spent, view.reserved) == (Decimal("0.06"), Decimal("0.3"))
    inside = taken[1].job_id
    late = await budgets.set(rig.db, "job", str(inside), 1)
    assert late.reserved > 0
    await budgets.remove(rig.db, "job", str(job))
    again = await budgets.set(rig.db, "job", str(job), 1)
    assert (again.spent, again.reserved) == (view.spent, view.reserved)
    for claimed in taken[1:]:
        await report(rig, claimed)
    await rig.run_out()
    assert await rig.state(job) is JobState.COMPLETED
    assert (await budget(rig, "job", str(job))).reserved == 0


async def test_the_cost_of_a_step_that_stands_in_no_line_is_spent_too(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")), caller="ann")
    await budgets.set(rig.db, "caller", "ann", 1)
    await report(rig, await rig.claim_one(), Cost("0.25"))
    assert (await budget(rig, "caller", "ann")).spent == Decimal("0.25")
    assert [cost.amount for cost in await costs.costs_of(rig.db, job)] == [Decimal("0.25")]


@pytest.mark.covers("SCR-57")
async def test_a_late_report_costs_nothing(rig: Rig) -> None:
    job = await rig.submit(plan(task("a")))
    claimed = await rig.claim_one()
    await report(rig, claimed, Cost("1"))
    again = Report(job, 0, claimed.attempt, Success("1"), cost=Cost("1"))
    assert (await settle.settle(rig.db, [again], spread=lambda: 0.0)).took_effect == (False,)
    assert [cost.amount for cost in await costs.costs_of(rig.db, job)] == [1]


async def test_budgets_are_listed_and_removed(rig: Rig) -> None:
    await budgets.set(rig.db, "caller", "ann", 1)
    await budgets.set(rig.db, "recipe", "r", "2.5")
    assert [(view.scope, view.name, view.most) for view in await budgets.list(rig.db)] == [
        ("caller", "ann", 1),
        ("recipe", "r", Decimal("2.5")),
    ]
    assert [view.name for view in await budgets.list(rig.db, "recipe")] == ["r"]
    assert await budgets.remove(rig.db, "caller", "ann")
    assert not await budgets.remove(rig.db, "caller", "ann")
    assert await budgets.get(rig.db, "caller", "ann") is None


@pytest.mark.parametrize(
    ("scope", "name", "most"),
    [
        ("planet", "earth", 1),
        ("caller", "", 1),
        ("caller", "a\0b", 1),
        ("caller", "x" * 501, 1),
        ("caller", "ann", -1),
        ("caller", "ann", "much"),
        ("caller", "ann", "NaN"),
        ("caller", "ann", float("inf")),
        ("job", "first", 1),
        ("job", "01B8DAC5-B400-7298-A9A8-E9146513270E", 1),
    ],
)
async def test_what_cannot_be_a_budget_is_refused(rig: Rig, scope: str, name: str, most: Any) -> None:
    with pytest.raises(BadInput):
        await budgets.set(rig.db, scope, name, most)


async def test_a_budget_of_no_job_is_refused(rig: Rig) -> None:
    with pytest.raises(NotFound):
        await budgets.set(rig.db, "job", str(UUID(int=5)), 1)


async def _finish(rig: Rig, job: UUID, cost: Cost | None = None) -> None:
    made = Report(job, 0, 1, Success("1"), cost=cost)
    assert (await settle.settle(rig.db, [made], spread=lambda: 0.0)).took_effect == (True,)
