"""Planted flaws: each breaks one rule of the gate, and the test that states the rule fails."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from tests.engine import test_door, test_limits_of_verdicts, test_recheck
from tests.engine.rig import Rig
from windlass.core import gatekeeping
from windlass.engine import door, places, recheck
from windlass.engine.loops import router
from windlass.engine.policies import Current

Plant = Callable[[pytest.MonkeyPatch], None]
Check = Callable[[Rig], Awaitable[None]]


def children_are_not_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ungated(db: Any, operation: Any) -> Any:
        return await db.run(lambda connection: operation(connection, Current()))

    monkeypatch.setattr(router, "gated", ungated)


def a_process_judges_by_its_old_snapshot(monkeypatch: pytest.MonkeyPatch) -> None:
    true = door.Judged.marks
    monkeypatch.setattr(door.Judged, "marks", lambda self, verdicts: true(self, verdicts)._replace(judged_by=None))


def the_verdict_is_not_in_the_commit_of_its_effect(monkeypatch: pytest.MonkeyPatch) -> None:
    async def later(self: Any, connection: Any, made: Any) -> None:
        """Leave the record to another commit, which never comes."""

    monkeypatch.setattr(door.Ruled, "record", later)


def velocity_counts_repeats(monkeypatch: pytest.MonkeyPatch) -> None:
    true = door.Ruled.record

    async def record(self: Any, connection: Any, made: Any) -> None:
        for one in self._decided:
            self._velocity.count(one)
        await true(self, connection, made)

    monkeypatch.setattr(door.Ruled, "record", record)


def a_place_is_not_counted_until_the_jobs_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(places.JobPlaces, "write", _nothing)


async def _nothing(*_: Any) -> None:
    """Write nothing."""


def a_throttled_job_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(door, "hold_of", lambda decision: gatekeeping.NO_HOLD)


def a_denied_job_is_only_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    true = recheck.rule_on
    monkeypatch.setattr(
        recheck,
        "rule_on",
        lambda draft, ruling, tries: False if ruling.verdict.decision == "deny" else true(draft, ruling, tries),
    )


FLAWS: tuple[tuple[Plant, Check], ...] = (
    (children_are_not_judged, test_door.test_a_child_job_passes_the_door),
    (a_process_judges_by_its_old_snapshot, test_door.test_a_process_that_has_not_heard_of_a_publish_judges_again),
    (the_verdict_is_not_in_the_commit_of_its_effect, test_door.test_a_denied_job_is_kept_and_never_runs),
    (velocity_counts_repeats, test_door.test_a_repeat_of_a_submit_does_not_count_for_velocity),
    (
        a_place_is_not_counted_until_the_jobs_end,
        test_limits_of_verdicts.test_jobs_beyond_the_limit_wait_until_one_has_ended,
    ),
    (a_throttled_job_is_let_in, test_door.test_a_throttled_job_waits_and_is_asked_about_again),
    (a_denied_job_is_only_skipped, test_recheck.test_a_claim_takes_nothing_that_a_newer_policy_denies),
)


@pytest.mark.parametrize(("plant", "check"), FLAWS, ids=lambda one: one.__name__)
async def test_a_planted_flaw_is_caught(rig: Rig, monkeypatch: pytest.MonkeyPatch, plant: Plant, check: Check) -> None:
    plant(monkeypatch)
    with pytest.raises((AssertionError, ValueError)):
        await check(rig)
