"""Planted flaws: the engine with one thing left out or done wrong. The simulation must notice each of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

from windlass.core import control, graph, route, settle
from windlass.core.draft import Draft, Event
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.outcome import Report
from windlass.core.plan import Plan
from windlass.core.retry_job import Restart
from windlass.core.route import Call, Fan
from windlass.core.states import StepState
from windlass.core.wait import Wait, WaitKind
from windlass.engine import job_rows, rerun, submit
from windlass.engine.loops import granter, rescuer, waker, webhook_scheduler
from windlass.engine.loops.duty import Done
from windlass.engine.loops.parent_notifier import BATCH_MAX, ParentNotifier
from windlass.store import drafts
from windlass.store.statements import _statements, names, sql

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


@dataclass(frozen=True)
class Mutant:
    """A flaw, and in how many seeds at most it must show."""

    name: str
    plant: Plant
    seeds_max: int = 1_000
    # Whether it can only show where work is done outside, or where steps kill their workers.
    is_outer: bool = False
    has_poison: bool = False
    # Whether it can only show where recipes ask people.
    is_asking: bool = False
    # Whether it can only show where effects are undone.
    has_undo: bool = False


MUTANTS: list[Mutant] = []


def mutant(
    seeds_max: int = 1_000,
    *,
    is_outer: bool = False,
    has_poison: bool = False,
    is_asking: bool = False,
    has_undo: bool = False,
) -> Callable[[Plant], Plant]:
    def add(plant: Plant) -> Plant:
        MUTANTS.append(Mutant(plant.__name__, plant, seeds_max, is_outer, has_poison, is_asking, has_undo))
        return plant

    return add


def change_sql(patch: Patch, name: str, *changes: tuple[str, str]) -> None:
    """Change a statement; a change that no longer applies is an error, not a mutant that nothing can catch.

    Parameters may be written by their names.
    """
    numbers = {parameter: f"${number}" for number, parameter in enumerate(names(name), 1)}
    text = sql(name)
    for change in changes:
        old, new = (re.sub(r"(?<!:):([a-z_]+)", lambda found: numbers[found[1]], part) for part in change)
        assert old in text, f"{name} has no {old!r}"
        text = text.replace(old, new)
    patch.setitem(_statements(), name, text)


@mutant()
def settle_has_no_fence(patch: Patch) -> None:
    def is_current(draft: Draft, report: Report) -> bool:
        step = draft.steps.get(report.no)
        if step is None or draft.is_finished:
            return False
        outside = step.wait is not None and step.wait.kind in (WaitKind.EXTERNAL, WaitKind.CHILD)
        return step.state is StepState.RUNNING or (step.state is StepState.PARKED and outside)

    patch.setattr(settle, "is_current", is_current)


@mutant()
def a_resume_removes_every_hold(patch: Patch) -> None:
    release = Draft.release

    def all_of_them(self: Draft, step: Any, hold: Hold) -> bool:
        return release(self, step, step.holds if hold is Hold.PAUSED and hold in step.holds else hold)

    patch.setattr(Draft, "release", all_of_them)


@mutant()
def the_granter_ignores_other_holds(patch: Patch) -> None:
    def grant(draft: Draft, no: int) -> bool:
        step = draft.steps.get(no)
        if step is None or draft.is_finished or Hold.SLOT not in step.holds:
            return False
        return draft.release(step, step.holds)

    patch.setattr(granter, "grant", grant)
    change_sql(patch, "grant_line", ("state = 'WAITING' AND", "state IN ('WAITING', 'IDLE') AND"))


@mutant()
def a_resume_leaves_the_hold(patch: Patch) -> None:
    release = Draft.release
    patch.setattr(Draft, "release", lambda self, step, hold: hold is not Hold.PAUSED and release(self, step, hold))


@mutant()
def a_step_is_queued_while_it_is_held(patch: Patch) -> None:
    def admit(self: Draft, step: Any, *, payload: Any = None, keeps_slot: bool = False) -> None:
        step.wait = step.wake_at = None
        self._set_holds(step, NO_HOLD, payload)

    patch.setattr(Draft, "admit", admit)


@mutant()
def claim_is_not_conditional(patch: Patch) -> None:
    change_sql(
        patch,
        "step_claim",
        ("WHERE s.state = 'QUEUED' AND s.queue", "WHERE s.state IN ('QUEUED', 'RUNNING') AND s.queue"),
        ("s.no = picked.no AND s.state || '' = 'QUEUED'", "s.no = picked.no"),
    )


@mutant()
def claim_keeps_the_attempt_number(patch: Patch) -> None:
    change_sql(patch, "step_claim", ("attempt = s.attempt + 1", "attempt = s.attempt"))


@mutant()
def the_version_is_not_checked(patch: Patch) -> None:
    change_sql(patch, "draft_write", (" AND j.version = d.version", ""))


@mutant()
def a_batch_is_written_by_halves(patch: Patch) -> None:
    change_sql(
        patch,
        "draft_write",
        ("windlass.require(jobs = cardinality(:jobs::uuid[]))", "true"),
        ("WHERE (SELECT jobs FROM base) = cardinality(:jobs::uuid[])", "WHERE true"),
    )


_NO_FENCE = ":attempt::int IS NOT NULL AND :worker::uuid IS NOT NULL"


@mutant(400)
def a_claim_that_a_crash_undid_counts(patch: Patch) -> None:
    change_sql(
        patch,
        "draft_write",
        ("(s.attempt = d.fence AND s.worker = d.fence_worker AND s.state || '' = 'RUNNING')", "true"),
    )
    change_sql(
        patch,
        "draft_complete",
        ("attempt = :attempt::int AND worker = :worker::uuid AND state || '' = 'RUNNING'", _NO_FENCE),
    )


@mutant()
def the_fence_is_the_number_alone(patch: Patch) -> None:
    """A worker whose claim was undone ends the attempt of another one, which has got the same number."""
    change_sql(patch, "draft_write", ("s.worker = d.fence_worker AND ", ""))
    change_sql(patch, "draft_complete", ("worker = :worker::uuid", ":worker::uuid IS NOT NULL"))
    change_sql(patch, "draft_finish", ("worker = :worker::uuid", ":worker::uuid IS NOT NULL"))
    is_current = settle.is_current
    patch.setattr(settle, "is_current", lambda draft, report: is_current(draft, report._replace(worker=None)))


@mutant()
def a_step_completes_alone_whatever_the_version(patch: Patch) -> None:
    change_sql(patch, "draft_complete", ("version = :version::int", ":version::int IS NOT NULL"))


@mutant(200)
def a_child_that_completes_alone_ends_the_count_of_its_fan_out(patch: Patch) -> None:
    """What every step that is READY after a lone completion would hold if it had just become READY."""
    change_sql(patch, "draft_complete", ("unmet = d.unmet", "unmet = 0"))


@mutant()
def a_write_that_was_refused_counts_as_done(patch: Patch) -> None:
    write = drafts.write

    async def careless(connection: Any, found: Any) -> None:
        try:
            await write(connection, found)
        except drafts.MovedOn:
            return

    patch.setattr(drafts, "write", careless)


@mutant(200)
def a_lease_is_revived(patch: Patch) -> None:
    change_sql(patch, "worker_renew", (" AND lost_at IS NULL", ""))


IS_LIVE = "w.lost_at IS NULL AND w.lease_until > windlass.clock()"
CLAIMS = ("step_claim", "step_claim_lane", "step_claim_one")


@mutant(300)
def a_worker_that_is_not_live_claims(patch: Patch) -> None:
    for name in CLAIMS:
        change_sql(patch, name, (IS_LIVE, "true"))


@mutant(300)
def an_outage_is_taken_for_silence(patch: Patch) -> None:
    patch.setattr(rescuer, "left_after", lambda left_s, lease_s, gap_s: left_s)


@mutant(300)
def a_worker_claims_steps_of_handlers_that_it_lacks(patch: Patch) -> None:
    for name in CLAIMS:
        change_sql(patch, name, ("::text IS NULL OR strpos(", "::text IS NOT NULL OR strpos("))


@mutant(300)
def the_walk_through_the_lanes_does_not_wrap(patch: Patch) -> None:
    change_sql(patch, "step_claim", ("AND walk.upto = '~'", "AND walk.upto = '-'"))


@mutant()
def a_lease_is_reckoned_by_the_workers_own_clock(patch: Patch) -> None:
    of_the_id = "to_timestamp(('x' || left(replace($1::uuid::text, '-', ''), 12))::bit(48)::bigint / 1000.0)"
    reckoned = "windlass.clock() + make_interval(secs => $6)"
    change_sql(patch, "worker_enlist", (reckoned, f"{of_the_id} + make_interval(secs => $6)"))


@mutant()
def the_rescuer_is_hasty(patch: Patch) -> None:
    change_sql(patch, "worker_mark_lost", ("<= windlass.clock()", "<= windlass.clock() + interval '12 seconds'"))


@mutant()
def the_rescuer_takes_from_living_workers(patch: Patch) -> None:
    change_sql(
        patch,
        "step_lost",
        ("(w.id IS NULL OR w.lost_at IS NOT NULL) AS is_lost", "true AS is_lost"),
        ("w.lost_at IS NOT NULL OR", "w.seen_at < windlass.clock() - interval '4 seconds' OR"),
    )


@mutant()
def a_retry_forgets_when_to_wake(patch: Patch) -> None:
    park = Draft.park

    def forgetful(self: Draft, step: Any, wait: Wait, until: Any, **payload: Any) -> None:
        park(self, step, wait, None if wait.kind is WaitKind.RETRY else until, **payload)

    patch.setattr(Draft, "park", forgetful)


@mutant()
def the_waker_is_early(patch: Patch) -> None:
    change_sql(patch, "step_due", ("<= windlass.clock()", "<= windlass.clock() + interval '2 seconds'"))
    wake = route.wake

    def early(draft: Draft, no: int) -> bool:
        draft.now += timedelta(seconds=2)
        return wake(draft, no)

    patch.setattr(waker, "wake", early)


@mutant()
def a_fan_out_is_done_again(patch: Patch) -> None:
    _route_again(patch, Fan, WaitKind.FAN)


@mutant()
def a_child_job_is_started_again(patch: Patch) -> None:
    _route_again(patch, Call, WaitKind.CHILD)


def _route_again(patch: Patch, kind: type, waiting_for: str) -> None:
    once = route.route

    def again(draft: Draft, no: int, resolution: Any) -> bool:
        step = draft.steps.get(no)
        if step is not None and isinstance(resolution, kind) and step.waiting_for == waiting_for:
            step.state = StepState.READY
            step.fanned = 0
        return once(draft, no, resolution)

    patch.setattr(route, "route", again)


@mutant()
def word_is_dropped_before_it_is_acted_upon(patch: Patch) -> None:
    once = ParentNotifier.run_once

    async def hasty(self: ParentNotifier) -> Done:
        rows = await self._db.run(lambda connection: connection.fetch(sql("inbox_take"), BATCH_MAX))
        keys = [[row[name] for row in rows] for name in ("job_id", "no", "attempt", "source")]
        if rows:
            await self._db.run(lambda connection: connection.execute(sql("inbox_drop"), *keys))
        with pytest.MonkeyPatch.context() as inner:
            # What follows acts on rows that are gone already, as a process that holds them in memory does.
            inner.setattr(self, "_db", _Remembering(self._db, rows))
            return await once(self)

    patch.setattr(ParentNotifier, "run_once", hasty)


class _Remembering:
    """A database whose first answer is what was read before."""

    def __init__(self, db: Any, rows: Any) -> None:
        self._db, self._rows, self._is_first = db, rows, True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._db, name)

    async def run(self, operation: Any) -> Any:
        if self._is_first:
            self._is_first = False
            return self._rows
        return await self._db.run(operation)


@mutant()
def a_childs_end_is_not_told(patch: Patch) -> None:
    change_sql(patch, "inbox_put", ("SELECT $1, $2, $3, $4, $5, windlass.clock()", _NOTHING))


_NOTHING = "SELECT $1, $2, $3, $4, $5, windlass.clock() WHERE false"


@mutant(200)
def a_parents_end_is_not_told(patch: Patch) -> None:
    change_sql(patch, "inbox_cancel_children", ("AND finished_at IS NULL", "AND finished_at IS NULL AND false"))


@mutant()
def a_sweep_forgets_what_runs(patch: Patch) -> None:
    change_sql(patch, "draft_sweep", ("'RUNNING', ", ""))


@mutant()
def a_sweep_does_not_count_its_events(patch: Patch) -> None:
    change_sql(patch, "draft_sweep", ("event_seq + (SELECT count(*) FROM swept)", "event_seq"))


@mutant()
def a_failure_abandons_nothing(patch: Patch) -> None:
    patch.setattr(graph, "_abandon_dependents", lambda draft, step: None)


@mutant()
def keys_are_ignored(patch: Patch) -> None:
    columns = job_rows._job_columns

    def keyless(submissions: Any, *more: Any) -> Any:
        return columns([one._replace(idempotency_key=None) for one in submissions], *more)

    patch.setattr(job_rows, "_job_columns", keyless)


@mutant()
def a_lone_submit_is_answered_ahead_of_the_disk(patch: Patch) -> None:
    async def hasty(_: Any) -> None:
        pass

    patch.setattr(submit, "flush", hasty)


@mutant()
def a_paused_job_goes_on(patch: Patch) -> None:
    strict = control.pause

    def lax(draft: Draft) -> bool:
        if draft.is_finished or draft.job.is_paused:
            return strict(draft)
        draft.job.is_paused = True
        draft.events.append(Event("job.paused", draft.source))
        return True

    patch.setattr(control, "pause", lax)
    change_sql(patch, "step_claim", (" AND NOT j.is_paused", ""))


@mutant()
def a_dependent_is_counted_down_twice(patch: Patch) -> None:
    once = graph.complete

    def twice(draft: Draft, step: Any, output: Any, **given: Any) -> None:
        once(draft, step, output, **given)
        for no in draft.plan.successors[step.node] if not step.is_child else ():
            after = draft.steps[no]
            if after.state is StepState.BLOCKED and after.unmet > 0:
                after.unmet -= 1
                if after.unmet == 0:
                    draft.make_ready(after)

    patch.setattr(settle, "complete", twice)


@mutant()
def the_feed_passes_over_transactions(patch: Patch) -> None:
    change_sql(patch, "feed_page", ("($1::text::xid8", "(($1::text::bigint + 5)::text::xid8"))


@mutant()
def the_auditor_keeps_no_place(patch: Patch) -> None:
    change_sql(patch, "audit_known", ("WHERE a.job_id = d.job_id", "WHERE false"))
    change_sql(patch, "cursor_put", ("txid = excluded.txid", "txid = cursors.txid"))


@mutant()
def the_webhook_scheduler_hears_of_no_cancelled_job(patch: Patch) -> None:
    patch.setattr(
        webhook_scheduler, "_ENDINGS", [ending for ending in webhook_scheduler._ENDINGS if ending != "job.cancelled"]
    )


@mutant(300)
def a_rerun_forgets_what_comes_later(patch: Patch) -> None:
    """Only what needs the step itself runs again, and not what needs that."""

    def restart_from(plan: Plan, old: Any, step: str | None, changed: Any) -> Restart:
        assert step is not None
        no = plan.number[step]
        return Restart(frozenset({no, *plan.successors[no]}))

    patch.setattr(rerun, "restart_from", restart_from)


@mutant()
def a_rerun_loses_what_was_kept(patch: Patch) -> None:
    change_sql(patch, "retry_step", ("output = d.output", "output = NULL"))
