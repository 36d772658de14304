"""What nobody waits for any more is cancelled at the provider, and what cannot be is told."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.providers.ground import Ground, node, until
from tests.worker.yard import until_state
from windlass.core.external import ProviderStatus
from windlass.engine import control, external
from windlass.providers import poller as polling
from windlass.testing.fake_provider import Fault


async def parked(on: Ground) -> UUID:
    await on.fake.behave(seconds=None)
    [job_id] = await on.submit()
    async with on.running(with_poller=False):
        await until_state(on.yard, job_id, "PARKED")
    return job_id


async def test_a_job_that_is_cancelled_is_cancelled_at_the_provider(on: Ground) -> None:
    job_id = await parked(on)
    async with on.polling():
        await control.cancel(on.db, job_id)
        work = await on.until_work(job_id, "ENDED")
    assert work.status == ProviderStatus.CANCELLED
    assert [entry.id for entry in on.fake.entries("cancelled")] == [work.external_id]
    assert await on.open_slots() == 0


async def test_a_cancel_that_does_not_reach_the_provider_is_tried_until_it_does(on: Ground) -> None:
    job_id = await parked(on)
    await on.fake.fail(Fault("cancel", "lose", times=2))
    async with on.polling():
        await control.cancel(on.db, job_id)
        await on.until_work(job_id, "ENDED")
    assert len(on.fake.entries("cancelled")) == 1


async def test_a_cancel_that_the_provider_refuses_is_given_up_and_says_so(
    on: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "CANCELS_MAX", 3)
    job_id = await parked(on)
    await on.fake.fail(Fault("cancel", "status", status=403))
    async with on.polling():
        await control.cancel(on.db, job_id)

        async def is_given_up() -> bool:
            [work] = await on.work(job_id)
            return work.due_at is None

        await until(is_given_up)
    [work] = await on.work(job_id)
    assert work.state == "CANCELLING" and work.status is not None and work.status.startswith("gave_up: auth_failed")
    assert await external.next_due(on.db, ["fake"]) == {}


async def test_work_whose_name_we_never_learned_is_looked_for_by_its_key(
    on: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "ON_ITS_WAY_S", 0.0)
    await on.fake.behave(seconds=None)
    # It takes the work, and every answer is lost.
    await on.fake.fail(Fault("start", "lose_after"))
    [job_id] = await on.submit(node(retry=node().retry))
    async with on.running():
        assert (await on.yard.end(job_id)).state == "FAILED"
        if on.by_name["fake"].adapter.can_find:
            await on.until_work(job_id, "ENDED")
            assert len(on.fake.entries("cancelled")) == 1
