"""Jobs that several workers settle at once are remembered, and settled under their lock for a while."""

from __future__ import annotations

from uuid import UUID

from tests.engine.rig import Rig, plan, task
from windlass.core.outcome import Report, Success
from windlass.engine import control
from windlass.engine.settle import CONTENDED_MAX, LOCKED_SETTLES, Contended, settle


def reports(job: int, count: int = 1) -> list[Report]:
    return [Report(UUID(int=job), no, 1, Success("1")) for no in range(count)]


def test_a_wide_job_is_remembered_for_a_number_of_settles() -> None:
    contended = Contended()
    contended.note([*reports(1, 2), *reports(2)])
    assert not contended.has_any(reports(2))
    assert [contended.has_any(reports(1)) for _ in range(LOCKED_SETTLES + 1)] == [True] * LOCKED_SETTLES + [False]


def test_only_so_many_jobs_are_remembered() -> None:
    contended = Contended()
    for job in range(CONTENDED_MAX + 1):
        contended.note(reports(job))
    assert not contended.has_any(reports(0)) and contended.has_any(reports(CONTENDED_MAX))


async def test_a_job_that_moved_on_is_settled_all_the_same_and_remembered(rig: Rig) -> None:
    job = await rig.submit(plan(task("a"), task("b")))
    first, second = sorted(await rig.claim(), key=lambda one: one.no)
    await control.pause(rig.db, job)
    contended = Contended()
    settled = await settle(rig.db, [first.report(Success("1"))], chance=lambda: 0.0, contended=contended)
    assert settled.took_effect == (True,)
    assert contended.has_any([second.report(Success("1"))])
