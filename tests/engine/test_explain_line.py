"""Why a step stands in line: who holds what it waits for, who is before it, what holds the whole line back."""

from __future__ import annotations

from decimal import Decimal
from typing import Any
from uuid import UUID

import pytest

from tests.engine.lines import call, declare, keyed, one
from tests.engine.rig import Rig, plan
from windlass.core.outcome import Parked
from windlass.engine import budgets, control, providers
from windlass.views.explain import why


async def told(rig: Rig, job: UUID, step: str = "a") -> tuple[str, dict[str, Any]]:
    await rig.loops.run_until_idle()
    [reason] = await why(rig.db, job, step)
    return reason.because, reason.detail


async def test_a_place_names_its_holders_and_the_place_in_line(rig: Rig) -> None:
    await declare(rig.db)
    jobs = [await rig.submit(one()) for _ in range(3)]
    because, detail = await told(rig, jobs[2])
    assert because == f"waits for fal: 1 of 1 places held by a of job {jobs[0]}; 1 ahead of it"
    assert (detail["provider"], detail["concurrency"], detail["ahead"], detail["breaker"]) == ("fal", 1, 1, "closed")
    assert [(held["job"], held["step"], held["attempt"]) for held in detail["holders"]] == [(str(jobs[0]), "a", 0)]


async def test_a_long_list_of_holders_is_cut_short(rig: Rig) -> None:
    await declare(rig.db, concurrency=5)
    job = await rig.submit(plan(call("a", each="[1,2,3,4,5]"), call("b")))
    for _ in range(3):
        await rig.loops.run_until_idle()
    because, _ = await told(rig, await rig.submit(one()))
    assert f"5 of 5 places held by b of job {job}, a[0] of job {job}, a[1] of job {job} and 2 more" in because


async def test_a_key_names_its_holders_and_the_place_in_line(rig: Rig) -> None:
    jobs = [await rig.submit(keyed(), {"key": "u1"}) for _ in range(3)]
    because, detail = await told(rig, jobs[2])
    assert because == f"waits for key u1: 1 of 1 held by a of job {jobs[0]}; 1 ahead of it"
    assert (detail["key"], detail["limit"], detail["ahead"]) == ("u1", 1, 1)


async def test_short_money_names_the_budget(rig: Rig) -> None:
    await budgets.set(rig.db, "caller", "ann", "1.5")
    await rig.submit(one(provider="", cost=1), caller="ann")
    job = await rig.submit(one(provider="", cost=1), caller="ann")
    because, detail = await told(rig, job)
    assert because == (
        "waits for money: the budget of caller ann is 1.5, of which 0 is spent and 1 reserved; it needs 1"
    )
    assert detail["budget"]["most"] == Decimal("1.5")
    await budgets.remove(rig.db, "caller", "ann")
    [reason] = await why(rig.db, job, "a")
    assert reason.because == "the engine is about to start it"


async def test_money_of_which_some_is_needed(rig: Rig) -> None:
    await declare(rig.db, concurrency=9)
    await budgets.set(rig.db, "recipe", "r", 0)
    because, _ = await told(rig, await rig.submit(one()))
    assert because.endswith("its cost is unknown")


async def test_what_holds_the_whole_line_back_is_named(rig: Rig) -> None:
    await declare(rig.db, concurrency=9, rate=0.1)
    _, job = [await rig.submit(one()) for _ in range(2)]
    assert (await told(rig, job))[0] == "fal takes at most 0.1 requests a second; 0 ahead of it"
    await providers.busy(rig.db, "fal", 60)
    assert (await told(rig, job))[0] == (
        "fal is busy and asked for a pause until 2030-01-01 00:01:00 UTC; 0 ahead of it"
    )
    rig.clock.advance(60)
    for _ in range(5):
        await providers.failed(rig.db, "fal", "503")
    because, detail = await told(rig, job)
    assert because == "fal does not answer (503); one step tries it at 2030-01-01 00:01:30 UTC; 0 ahead of it"
    assert detail["breaker"] == "open"


async def test_a_step_with_others_ahead_waits_for_the_rate_also_while_the_limit_allows_a_start(rig: Rig) -> None:
    await declare(rig.db, concurrency=9, rate=5)
    jobs = [await rig.submit(one()) for _ in range(3)]
    await rig.loops.router.run_once()
    [reason] = await why(rig.db, jobs[2], "a")
    assert reason.because == "fal takes at most 5 requests a second; 2 ahead of it"
    [reason] = await why(rig.db, jobs[0], "a")
    assert reason.because == "the engine is about to start it"


async def test_before_the_granter_has_looked_it_is_about_to(rig: Rig) -> None:
    first = await rig.submit(one())
    await rig.loops.router.run_once()
    [reason] = await why(rig.db, first)
    assert reason.because == "the engine is about to start it"
    await declare(rig.db)
    [reason] = await why(rig.db, first)
    assert reason.because == "the engine is about to start it"


async def test_a_paused_job_in_line_says_both(rig: Rig) -> None:
    await declare(rig.db)
    _, job = [await rig.submit(one()) for _ in range(2)]
    await rig.loops.run_until_idle()
    await control.pause(rig.db, job)
    because, detail = await told(rig, job)
    assert because == "the job is paused; waits in line for its resources"
    assert detail["holds"] == ("paused", "slot")


@pytest.mark.covers("SCR-31")
async def test_work_at_a_provider_is_told_by_its_id_and_its_polls(rig: Rig) -> None:
    await declare(rig.db)
    job = await rig.submit(one())
    await rig.loops.run_until_idle()
    await rig.run_one(Parked("fal", 600, external_id="ext-1"))
    because, detail = await told(rig, job)
    assert because == ("waits for fal (ext-1) until 2030-01-01 00:10:00 UTC; first poll at 2030-01-01 00:00:30 UTC")
    assert (detail["provider"], detail["external_id"], detail["state"], detail["polls"]) == (
        "fal",
        "ext-1",
        "RUNNING",
        0,
    )
    await rig.db.run(lambda c: c.execute("UPDATE windlass.provider_jobs SET polls = 1, status = 'QUEUED'"))
    because, _ = await told(rig, job)
    assert because.endswith("last status QUEUED; polled once, next poll at 2030-01-01 00:00:30 UTC")
