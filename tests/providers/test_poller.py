"""The poller asks all providers about all their work, and believes only what ends it."""

from __future__ import annotations

import time
from typing import Any
from uuid import UUID

import pytest

from tests.providers.ground import Ground, node, providers_yaml, until
from tests.worker.yard import until_state
from windlass.app.providing import announce
from windlass.engine import control, external
from windlass.providers.registry import Registry
from windlass.store.artifact import REFERENCE_KEY
from windlass.testing.fake_provider import Fault
from windlass.views import providers as provider_views


async def parked(on: Ground, *nodes: Any, count: int = 1) -> list[UUID]:
    """Jobs whose work the provider has finished, before any poll."""
    await on.fake.behave(seconds=None)
    jobs = await on.submit(*nodes, count=count)
    async with on.running(with_poller=False):
        for job_id in jobs:
            await until_state(on.yard, job_id, "PARKED")
    await on.fake.finish()
    await on.fake.behave(seconds=0.0)

    async def are_due() -> bool:
        async with on.db.connection() as connection:
            return count == await connection.fetchval(
                "SELECT count(*) FROM windlass.provider_jobs WHERE due_at <= windlass.clock()"
            )

    await until(are_due)
    return jobs


async def states(on: Ground, jobs: list[UUID]) -> set[str]:
    return {(await on.yard.step(job_id)).state for job_id in jobs}


async def run_until_due(on: Ground, **given: Any) -> int:
    """Poll once, as soon as something is due."""
    poller = on.poller(**given)

    async def is_due() -> bool:
        return any(due_s <= 0 for due_s in (await external.next_due(on.db, sorted(on.by_name))).values())

    await until(is_due)
    return (await poller.run_once()).count


@pytest.mark.parametrize("at_once", [1, 16])
async def test_all_that_is_due_is_asked_in_one_round(on: Ground, at_once: int) -> None:
    jobs = await parked(on, count=20)
    before = (await on.fake.state())["counts"].get("status", 0)
    while await states(on, jobs) != {"COMPLETED"}:
        await run_until_due(on, at_once=at_once)
    # The generic protocol fetches the result with the status: at most two requests a piece.
    assert (await on.fake.state())["counts"]["status"] - before <= 40
    assert await external.next_due(on.db, ["fake"]) == {}
    assert await on.open_slots() == 0


@pytest.mark.parametrize("lie", ["stale", "forget", "nonsense", "garbage", "lose"])
async def test_what_is_not_the_end_ends_nothing(on: Ground, lie: str) -> None:
    [job_id] = await parked(on)
    await on.fake.fail(Fault("status", lie, times=2))
    for _ in range(2):
        await run_until_due(on)
        assert await states(on, [job_id]) == {"PARKED"}
    async with on.polling():
        assert (await on.yard.end(job_id)).state == "COMPLETED"
    assert (await on.yard.step(job_id)).attempt == 1


async def test_a_failure_that_the_provider_states_is_the_steps(on: Ground) -> None:
    await on.fake.behave(seconds=0.2, outcome="failed", error="no such style")
    [job_id] = await on.submit()
    async with on.running():
        view = await on.yard.end(job_id)
    assert view.state == "FAILED" and "no such style" in str(view.error)


async def test_a_provider_that_hangs_holds_up_no_other(on: Ground) -> None:
    slow_one = providers_yaml(on.fake, timeout="60s").removeprefix("providers:\n").replace("fake:", "slow:", 1)
    text = providers_yaml(on.fake) + slow_one
    on.use(Registry.read(text, {}))
    await announce(on.db, on.registry)
    [slow] = await parked(on, node(provider="slow"))
    await on.fake.fail(Fault("status", "delay", seconds=60, times=1))
    async with on.polling():

        async def is_asked() -> bool:
            return (await on.fake.state())["counts"].get("fault_delay", 0) > 0

        await until(is_asked)
        async with on.running(with_poller=False):
            await on.fake.behave(seconds=0.2)
            [quick] = await on.submit()
            assert (await on.yard.end(quick)).state == "COMPLETED"
        # The other's round is still under way.
        assert await states(on, [slow]) == {"PARKED"}


async def test_an_output_too_big_for_a_row_goes_to_the_artifact_store(on: Ground) -> None:
    await on.fake.behave(output_bytes=50_000)
    [job_id] = await parked(on)
    await run_until_due(on, output_max_bytes=10_000)
    step = await on.yard.step(job_id)
    assert step.state == "COMPLETED" and REFERENCE_KEY in step.output


async def test_a_busy_provider_is_asked_again_when_it_said(on: Ground) -> None:
    jobs = await parked(on, count=5)
    await on.fake.fail(Fault("status", "status", status=429, retry_after="30"))
    await run_until_due(on, at_once=1)
    counts = (await on.fake.state())["counts"]
    assert counts["fault_status"] == 1
    [view] = await provider_views.views(on.db, "fake")
    assert view.paused_until is not None
    waits = await external.next_due(on.db, ["fake"])
    assert waits["fake"] > 20
    assert await states(on, jobs) == {"PARKED"}
    assert {(await on.work(job_id))[0].polls for job_id in jobs} == {0}


async def test_a_provider_that_is_down_opens_the_breaker_and_its_work_waits(on: Ground) -> None:
    jobs = await parked(on, count=12)
    await on.fake.kill()
    await run_until_due(on, at_once=1)
    [view] = await provider_views.views(on.db, "fake")
    assert view.breaker == "open"
    assert await states(on, jobs) == {"PARKED"}


async def test_the_rate_is_kept_by_all_pollers_together(on: Ground) -> None:
    jobs = await parked(on, count=12)
    await on.set_up(rate=2)
    before = (await on.fake.state())["counts"].get("status", 0)
    began_s = time.monotonic()
    for _ in range(6):
        await on.poller().run_once()
    asked = (await on.fake.state())["counts"].get("status", 0) - before
    # The elapsed time's allowance, and a little at the start, for all pollers together.
    assert 0 < asked <= 2 + 2 * (time.monotonic() - began_s)
    assert "PARKED" in await states(on, jobs)


async def test_work_that_a_poller_died_with_is_asked_for_by_the_next(on: Ground) -> None:
    [job_id] = await parked(on)

    async def is_due() -> bool:
        return any(due_s <= 0 for due_s in (await external.next_due(on.db, ["fake"])).values())

    await until(is_due)
    # It took the work and was never seen again.
    assert len(await external.due(on.db, 10, 0.3, provider="fake")) == 1
    async with on.polling():
        assert (await on.yard.end(job_id)).state == "COMPLETED"


async def test_one_answer_that_cannot_be_written_keeps_no_other_from_it(
    on: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = await parked(on, count=3)
    real = external.answer

    async def choosy(db: Any, answers: Any, **given: Any) -> Any:
        if any(answer.key.job_id == jobs[1] for answer in answers):
            raise ValueError("not this one")
        return await real(db, answers, **given)

    monkeypatch.setattr(external, "answer", choosy)
    await run_until_due(on)
    assert [(await on.yard.step(job)).state for job in (jobs[0], jobs[2])] == ["COMPLETED", "COMPLETED"]
    assert (await on.yard.step(jobs[1])).state == "PARKED"
    [work] = await on.work(jobs[1])
    assert work.state == "RUNNING" and work.status is not None and work.status.startswith("unwritable")
    await control.cancel(on.db, jobs[1])
