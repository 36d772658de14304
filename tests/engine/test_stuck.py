"""When a job last changed, and how long it has stood still."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.note import Note
from windlass.core.outcome import Parked
from windlass.engine import control
from windlass.engine.note import note
from windlass.views import listing, read
from windlass.views.listing import JobFilter
from windlass.views.read import STUCK_AFTER_S

ONE = plan(task("a"), recipe="one")


async def test_a_job_is_updated_by_every_change(rig: Rig) -> None:
    job = await rig.submit(ONE, caller="ada")
    at = rig.clock.now()
    assert (await read.job(rig.db, job)).updated_at == at
    rig.clock.advance(60)
    one = await rig.claim_one()
    assert (await read.job(rig.db, job)).updated_at == at + timedelta(seconds=60)
    rig.clock.advance(60)
    assert await rig.settle(one, Parked("somebody"))
    view = await read.job(rig.db, job)
    assert view.updated_at == at + timedelta(seconds=120), "started_at and finished_at did not change"
    page = await listing.page(rig.db, JobFilter("ada"), limit=10)
    assert [found.updated_at for found in page.jobs] == [view.updated_at]


async def test_what_a_handler_says_is_a_change(rig: Rig) -> None:
    job = await rig.submit(ONE, correlation_id="r-1")
    one = await rig.claim_one()
    rig.clock.advance(STUCK_AFTER_S)
    assert (await read.job(rig.db, job)).stuck_for_s == STUCK_AFTER_S
    said = Note(one.job_id, one.no, one.attempt, worker=rig.worker, progress_pct=50.0)
    assert await note(rig.db, [said]) == [True]
    view = await read.job(rig.db, job)
    assert (view.updated_at, view.stuck_for_s) == (rig.clock.now(), None)


@pytest.mark.covers("CIX-49")
async def test_an_open_job_is_stuck_after_half_an_hour(rig: Rig) -> None:
    job = await rig.submit(ONE, caller="ada")
    for passed_s, stuck_s in (
        (STUCK_AFTER_S - 1, None),
        (1, STUCK_AFTER_S),
        (59, STUCK_AFTER_S),
        (1, STUCK_AFTER_S + 60),
    ):
        rig.clock.advance(passed_s)
        assert (await read.job(rig.db, job)).stuck_for_s == stuck_s
    page = await listing.page(rig.db, JobFilter("ada"), limit=10)
    assert [found.stuck_for_s for found in page.jobs] == [STUCK_AFTER_S + 60]
    await control.pause(rig.db, job)
    rig.clock.advance("2h")
    assert (await read.job(rig.db, job)).stuck_for_s is None
    await control.cancel(rig.db, job)
    rig.clock.advance("2h")
    assert (await read.job(rig.db, job)).stuck_for_s is None
