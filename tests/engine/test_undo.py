"""A job that ends badly undoes what its steps did."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from uuid import UUID

import pytest

import windlass as wl
from windlass.core.caller import CRITICAL
from windlass.core.errors import WrongState
from windlass.core.states import JobState
from windlass.engine import control, rerun, undo
from windlass.testing import Harness
from windlass.testing import harness as started
from windlass.views import read

BRIEF = wl.Retry(max_attempts=2, base_s=1, jitter=0)


class Book:
    """What the handlers of a test did, in order."""

    def __init__(self) -> None:
        self.done: list[Any] = []
        self.broken: set[str] = set()

    def act(self, name: str, *more: Any) -> Any:
        if name in self.broken:
            raise wl.Permanent(f"{name} is broken")
        self.done.append((name, *more) if more else name)
        return f"{name}!"


book = Book()


@pytest.fixture(autouse=True)
def _empty() -> None:
    book.__init__()  # type: ignore[misc]


@pytest.fixture
async def harness() -> AsyncIterator[Harness]:
    async with started() as made:
        yield made


@wl.step(retry=BRIEF)
def release(room: str, output: str, ctx: wl.Context) -> Any:
    return book.act("release", room, output, ctx.key.split("/", 1)[0] + "/" + ctx.key.rsplit("/", 1)[1])


@wl.step(undo=release, retry=BRIEF)
def reserve(room: str) -> Any:
    return book.act("reserve")


@wl.step(retry=BRIEF)
def refund(output: str) -> Any:
    return book.act("refund")


@wl.step(undo=refund, retry=BRIEF)
def charge(of: str) -> Any:
    return book.act("charge")


@wl.step(retry=BRIEF)
def recall() -> Any:
    return book.act("recall")


@wl.step(undo=recall, undo_when="started", retry=BRIEF)
def ship(of: str) -> Any:
    return book.act("ship")


@wl.step(retry=BRIEF)
def thank(of: str) -> Any:
    return book.act("thank")


@wl.recipe
def order(room: str) -> Any:
    return thank(ship(charge(reserve(room))))


async def undo_of(h: Harness, job: UUID) -> UUID:
    """Return the job's newest undo job."""
    _, found = await undo.look(h.db, job)
    return found.parts[-1].undo_job


async def finish_undo(h: Harness, job: UUID) -> JobState | None:
    return await h.run(await undo_of(h, job))


@pytest.mark.covers("COR-41", "COR-45", "COR-46")
async def test_a_failed_job_is_undone_in_reverse_order(harness: Harness) -> None:
    book.broken = {"thank"}
    job = await harness.submit(order, room="a")
    assert await harness.run(job) is JobState.FAILED
    assert await finish_undo(harness, job.job_id) is JobState.COMPLETED
    assert book.done[3:] == ["recall", "refund", ("release", "a", "reserve!", "undo/reserve")]
    view = await harness.view(await undo_of(harness, job.job_id))
    marks = {"saga_compensation": "true", "is_compensation": "true", "saga_workflow_id": str(job.job_id)}
    assert (view.priority, view.labels) == (CRITICAL, marks)


async def test_a_started_step_is_undone_though_it_failed(harness: Harness) -> None:
    book.broken = {"ship"}
    job = await harness.submit(order, room="a")
    await harness.run(job)
    await finish_undo(harness, job.job_id)
    assert [one if isinstance(one, str) else one[0] for one in book.done] == [
        "reserve", "charge", "recall", "refund", "release",
    ]  # fmt: skip


async def test_a_completed_job_keeps_its_effects_until_a_person_undoes_it(harness: Harness) -> None:
    job = await harness.submit(order, room="a")
    assert await harness.result(job) == "thank!"
    assert (await undo.look(harness.db, job.job_id))[1].parts == []
    assert (await undo.start(harness.db, job.job_id)).is_new
    assert await finish_undo(harness, job.job_id) is JobState.COMPLETED
    assert book.done[4:6] == ["recall", "refund"]
    with pytest.raises(WrongState, match="no effect"):
        await undo.start(harness.db, job.job_id)


async def test_a_cancel_undoes_unless_it_is_told_not_to(harness: Harness) -> None:
    @wl.recipe
    def waits(room: str) -> Any:
        return charge(reserve(room)), wl.wait_for("never")

    kept, undone = [await harness.submit(waits, room="a") for _ in range(2)]
    await harness.run()
    await control.cancel(harness.db, kept.job_id, undo=False)
    await control.cancel(harness.db, undone.job_id)
    await harness.run()
    assert (await undo.look(harness.db, kept.job_id))[1].parts == []
    assert await finish_undo(harness, undone.job_id) is JobState.COMPLETED
    assert book.done[-2:] == ["refund", ("release", "a", "reserve!", "undo/reserve")]


async def test_a_failed_undo_leaves_what_the_step_depended_on_and_can_be_resumed(harness: Harness) -> None:
    book.broken = {"thank", "refund"}
    job = await harness.submit(order, room="a")
    await harness.run(job)
    first = await undo_of(harness, job.job_id)
    assert await harness.run(first) is JobState.FAILED
    assert book.done[3:] == ["recall"]
    error = (await read.job(harness.db, first)).error
    assert error is not None and error["code"] == "undo_failed"
    assert "these effects stand: charge, reserve" in error["message"]
    with pytest.raises(WrongState, match="undo"):
        await rerun.retry(harness.db, job.job_id, harness.windlass.ids.new())
    book.broken = set()
    resumed = await rerun.retry(harness.db, first, harness.windlass.ids.new())
    assert await undo_of(harness, job.job_id) == resumed
    assert await harness.run(resumed) is JobState.COMPLETED
    assert [one if isinstance(one, str) else one[0] for one in book.done[4:]] == ["refund", "release"]


async def test_a_retry_runs_undone_steps_again(harness: Harness) -> None:
    book.broken = {"thank"}
    job = await harness.submit(order, room="a")
    await harness.run(job)
    with pytest.raises(WrongState, match="undo"):
        await rerun.retry(harness.db, job.job_id, harness.windlass.ids.new())
    await finish_undo(harness, job.job_id)
    book.broken, book.done = set(), []
    again = await rerun.retry(harness.db, job.job_id, harness.windlass.ids.new())
    assert await harness.run(again) is JobState.COMPLETED
    assert book.done == ["reserve", "charge", "ship", "thank"]


async def test_a_retry_takes_over_effects_that_stand(harness: Harness) -> None:
    @wl.recipe(undo="ask")
    def asks(room: str) -> Any:
        return thank(charge(reserve(room)))

    book.broken = {"thank"}
    job = await harness.submit(asks, room="a")
    await harness.run(job)
    held = await undo_of(harness, job.job_id)
    await harness.run()
    assert (await harness.view(held)).status is JobState.PENDING
    await control.cancel(harness.db, held)
    again = await rerun.retry(harness.db, job.job_id, harness.windlass.ids.new())
    assert await harness.run(again) is JobState.FAILED
    assert book.done == ["reserve", "charge"], "the retry kept both"
    with pytest.raises(WrongState, match="no effect"):
        await undo.start(harness.db, job.job_id)
    assert (await undo.start(harness.db, again)).is_new
    assert await finish_undo(harness, again) is JobState.COMPLETED
    assert book.done[2] == "refund"


async def test_a_savepoint_bounds_the_undo(harness: Harness) -> None:
    @wl.recipe
    def bounded(room: str) -> Any:
        return thank(ship(wl.savepoint(charge(reserve(room)))))

    book.broken = {"thank"}
    job = await harness.submit(bounded, room="a")
    await harness.run(job)
    await finish_undo(harness, job.job_id)
    assert book.done[3:] == ["recall"]


async def test_the_undo_of_a_child_job_is_a_node_of_its_parents_undo(harness: Harness) -> None:
    @wl.recipe
    def inner(room: str) -> Any:
        return charge(reserve(room))

    @wl.recipe
    def outer(room: str) -> Any:
        first = reserve(room).named("first")
        return thank(inner(room).after(first))

    book.broken = {"thank"}
    job = await harness.submit(outer, room="a")
    assert await harness.run(job) is JobState.FAILED
    assert await finish_undo(harness, job.job_id) is JobState.COMPLETED
    told = [one if isinstance(one, str) else (one[0], one[3]) for one in book.done[3:]]
    assert told == ["refund", ("release", "undo/reserve"), ("release", "undo/first")]


async def test_children_of_a_fan_out_are_undone_one_by_one(harness: Harness) -> None:
    @wl.recipe
    def wide(rooms: list[str]) -> Any:
        return thank(reserve.map(rooms))

    book.broken = {"thank"}
    job = await harness.submit(wide, rooms=["a", "b", "c"])
    await harness.run(job)
    assert await finish_undo(harness, job.job_id) is JobState.COMPLETED
    ends = [event.no for event in await harness.events(job) if event.type == "step.completed" and event.no]
    assert [one[1] for one in book.done[3:]] == [{3: "b", 2: "a", 4: "c"}[no] for no in reversed(ends)]
