"""Planted flaws in what the death of a worker is taken for."""

from __future__ import annotations

from collections.abc import Callable

from tests.sim.mutants import Patch, mutant
from windlass.core import settle
from windlass.core.draft import Draft, Step
from windlass.core.outcome import Fault, Lost, Outcome, Report
from windlass.core.retry import LOSSES_MAX
from windlass.core.states import StepState
from windlass.engine import hand_back


@mutant(has_poison=True)
def everyone_in_company_is_charged(patch: Patch) -> None:
    """As it was: five workers that die with a step at hand fail it."""

    def lost(draft: Draft, step: Step, _: Lost) -> None:
        if step.losses + 1 < LOSSES_MAX:
            step.losses += 1
            draft.admit(step, payload={"because": "worker_lost"}, keeps_slot=True)
        else:
            settle.fail(draft, step, Fault("worker_lost", f"{LOSSES_MAX} workers died while they ran this step"))

    patch.setattr(settle, "_lost", lost)


@mutant(has_poison=True)
def steps_that_never_began_are_charged(patch: Patch) -> None:
    def outcome() -> Outcome:
        return Lost(1, "the worker process died")

    patch.setattr(hand_back, "Released", outcome)


@mutant(has_poison=True)
def a_suspect_returns_to_the_ordinary_queue(patch: Patch) -> None:
    def same(queue: str) -> str:
        return queue

    patch.setattr(settle, "apart", same)


@mutant(has_poison=True)
def two_reports_of_one_death_both_count(patch: Patch) -> None:
    once: Callable[..., bool] = settle.settle

    def twice(draft: Draft, report: Report, spread: float) -> bool:
        step = draft.steps.get(report.no)
        is_doubled = step is not None and step.attempt == report.attempt and step.state is StepState.QUEUED
        if step is not None and is_doubled and isinstance(report.outcome, Lost) and not draft.is_finished:
            step.losses += 1
            draft.changed[step.no] = step
            draft.note("step.lost", step, {"because": "worker_lost"})
            return True
        return once(draft, report, spread)

    patch.setattr(settle, "settle", twice)
