"""Jobs that several workers settle at once are remembered, and settled under their lock for a while."""

from __future__ import annotations

from uuid import UUID

import pytest

from tests.engine.rig import Rig, plan, task
from windlass.core.outcome import Report, Success
from windlass.engine import control
from windlass.engine.settle import CONTENDED_MAX, LOCKED_SETTLES, Contended, settle


def reports(job: int, count: int = 1) -> list[Report]:
    return [Report(UUID(int=job), no, 1, Success("1")) for no in range(count)]


def test_a_wide_job_is_remembered_for_a_number_of_settles() -> None:
    contended = Contended()
    worth = 1
    while worth <= 2 * LOCKED_SETTLES:
        contended.note([*reports(1, 2), *reports(2)])
        assert not contended.has_any(reports(2))
        locked = min(worth, LOCKED_SETTLES)
        assert [contended.has_any(reports(1)) for _ in range(locked + 1)] == [True] * locked + [False]
        worth *= 2


def test_a_job_that_was_settled_without_its_lock_is_quiet_again() -> None:
    contended = Contended()
    for _ in range(3):
        contended.note(reports(1))
    contended.forget(reports(1))
    contended.note(reports(1))
    assert [contended.has_any(reports(1)) for _ in range(2)] == [True, False]


def test_only_so_many_jobs_are_remembered() -> None:
    contended = Contended()
    for job in range(CONTENDED_MAX + 1):
        contended.note(reports(job))
    assert not contended.has_any(reports(0)) and contended.has_any(reports(CONTENDED_MAX))


@pytest.mark.covers("COR-99", "COR-100")
async def test_a_job_that_moved_on_is_settled_all_the_same_and_remembered(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), task("b")))
    first, second = sorted(await rig.claim(), key=lambda one: one.no)
    await control.pause(rig.db, job)
    contended = Contended()
    settled = await settle(rig.db, [first.report(Success("1"))], spread=lambda: 0.0, contended=contended)
    assert settled.took_effect == (True,)
    assert contended.has_any([second.report(Success("1"))])
