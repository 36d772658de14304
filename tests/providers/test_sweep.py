"""The sweep lists what only one side knows of."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import uuid4

import pytest

from tests.providers.ground import Ground
from tests.worker.yard import until_state
from windlass.core.external import WorkKey
from windlass.engine import control
from windlass.providers.adapter import StartRequest
from windlass.providers.config import ProviderConfig
from windlass.providers.registry import Provider
from windlass.providers.sweep import sweep
from windlass.testing.scripted import ScriptedAdapter


@pytest.fixture
def scripted(on: Ground) -> ScriptedAdapter:
    """A provider that can list its work, in the place of the process."""
    config = ProviderConfig("fake", "scripted", concurrency=50, rate=1000.0, poll_s=(0.1,))
    adapter = ScriptedAdapter(config)
    on.by_name = {"fake": Provider(config, adapter)}
    return adapter


async def parked(on: Ground) -> Any:
    [job_id] = await on.submit()
    async with on.running(with_poller=False):
        await until_state(on.yard, job_id, "PARKED")
    return job_id


async def test_what_both_sides_know_is_not_listed(on: Ground, scripted: ScriptedAdapter) -> None:
    await parked(on)
    found = await sweep(on.db, on.by_name["fake"], older_than_s=0)
    assert (found.forgotten_by_us, found.forgotten_by_them, found.remarks) == ((), (), ())


async def test_work_that_goes_on_there_and_is_over_here_was_forgotten_by_us(
    on: Ground, scripted: ScriptedAdapter
) -> None:
    lost = WorkKey(uuid4(), 0, 1)
    await scripted.start_job(StartRequest(str(lost), "m", {}))
    # Foreign work on the same account is left alone.
    await scripted.start_job(StartRequest("order-17", "m", {}))
    found = await sweep(on.db, on.by_name["fake"], older_than_s=0)
    assert [stray.key for stray in found.forgotten_by_us] == [str(lost)]


async def test_work_that_we_wait_for_and_the_provider_does_not_know_was_forgotten_by_it(
    on: Ground, scripted: ScriptedAdapter
) -> None:
    job_id = await parked(on)
    scripted.asked.clear()
    found = await sweep(on.db, on.by_name["fake"], older_than_s=0)
    assert [stray.key for stray in found.forgotten_by_them] == [str(WorkKey(job_id, 0, 1))]
    # Young work may be known to one side only, and rightly so.
    assert not (await sweep(on.db, on.by_name["fake"])).forgotten_by_them


async def test_a_cancel_that_was_given_up_is_listed(on: Ground, scripted: ScriptedAdapter) -> None:
    job_id = await parked(on)
    await control.cancel(on.db, job_id)
    async with on.db.connection() as connection:
        await connection.execute("UPDATE windlass.provider_jobs SET due_at = NULL, status = 'gave_up: it said no'")
    found = await sweep(on.db, on.by_name["fake"], older_than_s=0)
    [stray] = found.forgotten_by_us
    assert stray.status == "gave_up: it said no" and stray.since is not None
    assert stray.since <= datetime.now(UTC)


async def test_a_provider_that_cannot_list_is_said_so(on: Ground) -> None:
    await on.set_up(options="{}")
    found = await sweep(on.db, on.by_name["fake"])
    assert "cannot list" in found.remarks[0]
