"""Work that no step waits for is cancelled at the provider; work that cannot be cancelled is shown."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.providers.ground import Ground, node, until
from tests.worker.yard import until_state
from windlass.core.external import ProviderStatus, WorkKey
from windlass.engine import control, external, workers
from windlass.engine.claim import claim
from windlass.providers import poller as polling
from windlass.providers.adapter import StartRequest
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


async def intended(on: Ground) -> UUID:
    """A job that was cancelled while its worker was about to ask; nothing has come to the provider yet."""
    [job_id] = await on.submit()
    async with on.yard.loops():
        await until_state(on.yard, job_id, "QUEUED")
        worker = on.yard.ids.new()
        await workers.enlist(on.db, worker, host="h", pid=1, queues=[on.yard.queue], concurrency=1)
        [claimed] = await claim(on.db, worker=worker, queues=[on.yard.queue], limit=1)
        assert await external.intend(on.db, job_id, 0, claimed.attempt, "fake") is not None
        await control.cancel(on.db, job_id)
    return job_id


async def test_a_request_that_arrives_after_the_cancel_is_cancelled_all_the_same(
    on: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "ON_ITS_WAY_S", 0.0)
    await on.set_up(timeout="1s")
    await on.fake.behave(seconds=None)
    job_id = await intended(on)
    assert (await on.poller().run_once()).count == 1
    [work] = await on.work(job_id)
    assert (work.state, work.status) == ("CANCELLING", polling.LOOKED_FOR)
    key = WorkKey(job_id, 0, 1)
    await on.by_name["fake"].adapter.start_job(StartRequest(str(key), "image", {"prompt": "a fox"}))
    async with on.polling():
        await on.until_work(job_id, "ENDED")
    assert len(on.fake.entries("cancelled")) == 1


async def test_work_that_never_began_is_looked_for_some_times_and_no_more(
    on: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(polling, "ON_ITS_WAY_S", 0.0)
    await on.set_up(timeout="500ms")
    job_id = await intended(on)
    async with on.polling():
        work = await on.until_work(job_id, "ENDED")
    assert (work.status, work.polls) == (polling.NOT_THERE, polling.LOOKS_MAX + 1)
