"""One action on many jobs."""

from __future__ import annotations

import asyncio
from typing import Any
from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.control import BulkAction
from windlass.core.errors import BadInput, CountChanged
from windlass.core.outcome import Failure, Fault
from windlass.core.states import JobState
from windlass.engine import bulk, control
from windlass.engine.bulk import Bulk
from windlass.views import listing, read
from windlass.views.listing import JobFilter

ONE = plan(task("a"))
S = JobState


async def act(rig: Rig, action: BulkAction, wanted: JobFilter | None = None, **given: Any) -> Bulk:
    asked: dict[str, Any] = {
        "limit": 500, "dry_run": False, "expect": None, "reason": "", "source": "ada", "request_id": None,
    }  # fmt: skip
    found = await listing.targets(rig.db, wanted or JobFilter("ada"), action)
    return await bulk.bulk(rig.db, found, action, new_id=rig.ids.new, **{**asked, **given})


async def submit(rig: Rig, count: int, **given: Any) -> list[UUID]:
    return [await rig.submit(ONE, **{"caller": "ada", **given}) for _ in range(count)]


async def fail(rig: Rig, count: int, **given: Any) -> list[UUID]:
    made = await submit(rig, count, **given)
    for _ in made:
        await rig.run_one(Failure(Fault("x", ""), is_retryable=False))
    return made


async def test_a_dry_run_counts_and_touches_nothing(rig: Rig) -> None:
    made = await submit(rig, 3)
    await submit(rig, 2, caller="bob")
    assert await act(rig, "cancel", dry_run=True) == Bulk(3, False)
    assert [await rig.state(job) for job in made] == [S.QUEUED] * 3


async def test_open_jobs_are_cancelled_and_only_ones_own(rig: Rig) -> None:
    done = await submit(rig, 1)
    await rig.run_out()
    made = await submit(rig, 3)
    [other] = await submit(rig, 1, caller="bob")
    told = await act(rig, "cancel", expect=3, reason="enough", request_id="req-1")
    assert told == Bulk(3, False, tuple((job, None) for job in reversed(made)))
    assert [await rig.state(job) for job in (*done, *made, other)] == [S.COMPLETED, *[S.CANCELLED] * 3, S.QUEUED]
    [cancelled] = [event for event in await read.events(rig.db, made[0]) if event.type == "job.cancelled"]
    assert (cancelled.source, cancelled.correlation_id) == ("ada", "req-1")
    assert (await act(rig, "cancel")).matched == 0


async def test_a_count_that_changed_stops_the_action(rig: Rig) -> None:
    made = await submit(rig, 2)
    with pytest.raises(CountChanged, match="2 jobs match, not 1"):
        await act(rig, "cancel", expect=1)
    assert [await rig.state(job) for job in made] == [S.QUEUED] * 2


async def test_failed_jobs_are_retried_once_however_often_it_is_asked(rig: Rig) -> None:
    failed = await fail(rig, 3)
    await fail(rig, 1, caller="bob")
    first = await act(rig, "retry", limit=2)
    assert (first.matched, [old for old, _ in first.done]) == (3, [failed[2], failed[1]])
    second = await act(rig, "retry")
    assert (second.matched, [old for old, _ in second.done]) == (1, [failed[0]])
    assert await act(rig, "retry") == Bulk(0, False)
    for old, new in (*first.done, *second.done):
        assert new is not None
        view = await read.job(rig.db, new)
        assert (view.retry_of, view.caller, view.state) == (old, "ada", S.QUEUED)


async def test_two_bulk_retries_at_once_make_one_job_each(rig: Rig) -> None:
    failed = await fail(rig, 4)
    one, other = await asyncio.gather(act(rig, "retry"), act(rig, "retry"))
    made = dict(one.done) | dict(other.done)
    assert set(made) == set(failed)
    for answer in (one, other):
        assert all(made[old] == new for old, new in answer.done)
    assert (await listing.count(rig.db, JobFilter("ada", states=(S.QUEUED,))))[0] == 4


async def test_the_filter_narrows(rig: Rig) -> None:
    [red] = await submit(rig, 1, labels={"colour": "red"})
    await submit(rig, 1, labels={"colour": "blue"})
    told = await act(rig, "cancel", JobFilter("ada", labels={"colour": "red"}))
    assert told.done == ((red, None),)
    # Neither is open, so nothing can be meant.
    assert await act(rig, "cancel", JobFilter("ada", states=(S.COMPLETED, S.CANCELLED))) == Bulk(0, False)


async def test_a_job_that_ended_meanwhile_is_told_of(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    made = await submit(rig, 2)
    find = listing.find

    async def slow(*given: Any) -> tuple[list[UUID], bool]:
        found = await find(*given)
        await control.cancel(rig.db, made[0])
        return found

    monkeypatch.setattr(listing, "find", slow)
    assert await act(rig, "cancel") == Bulk(2, False, ((made[1], None),), ((made[0], "wrong_state"),))


@pytest.mark.parametrize("limit", [0, bulk.BULK_MAX + 1])
async def test_a_bulk_action_has_a_limit(rig: Rig, limit: int) -> None:
    with pytest.raises(BadInput, match="1 to 500 jobs"):
        await act(rig, "cancel", limit=limit)
