"""Settling: the only way for an attempt to end, for every reporter.

Reports are settled in batches. `settle` first tries a batch without locks: it reads the jobs and the steps that the
reports can touch, and decides. It writes everything in one statement, on condition that no job has moved on meanwhile.
If a job has moved on, or a decision needs more than one statement, it repeats the batch under the jobs' row locks.
Nothing can move there. Either way the batch is one commit.

Most reports are successes, and their worker saw the job when it claimed the step. Where that is enough to decide,
nothing is read at all. The decision and its condition are the same, with one more condition: the attempt must still be
running, on the same worker. A claim does not wait for the disk, so a crash of the server may have undone it. The job
may since have reached the same version in another way.

`core/settle.py` refuses a late or repeated report. For the same reason a repeated batch is harmless, so a commit whose
outcome is unknown is simply repeated.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from windlass.core import settle as law
from windlass.core.draft import Draft, Job, Step, passes_over, touched_by
from windlass.core.outcome import Report, Success
from windlass.core.plan import Plan
from windlass.core.states import JobState, StepState
from windlass.engine.undo import is_late, note_late
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import PLANS, read_plan
from windlass.store.statements import sql
from windlass.store.writers import is_touched

BATCH_MAX = 500
# The most settles of a contended job that go straight to the lock, and the most such jobs that are remembered.
LOCKED_SETTLES = 16
CONTENDED_MAX = 100
# A success sets no timer, so the draft needs no time.
_NO_TIME = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Settled:
    """The result of settling: which reports took effect, and whether steps became ready for a worker or the router."""

    took_effect: tuple[bool, ...]
    queues: frozenset[str]
    has_ready: bool


class Contended:
    """Jobs that other processes settle at the same time. For a while, `settle` locks them at once.

    Deciding without the lock keeps the job free meanwhile, for claims above all. But when several workers settle one
    wide job, each would mostly find that the job has moved on. Each further refusal of a job doubles the number of
    locked settles: the router or the granter moves most jobs once, another worker moves a wide job all the time.
    """

    def __init__(self) -> None:
        # By job: how many more settles go to the lock, and how many the last refusal added.
        self._left: dict[UUID, tuple[int, int]] = {}

    def note(self, reports: Sequence[Report]) -> None:
        """Record a refused write. The job that moved on is unknown; a job with several reports is the likeliest."""
        counts = Counter(report.job_id for report in reports)
        for job_id, count in counts.items():
            if count > 1 or len(counts) == 1:
                _, worth = self._left.pop(job_id, (0, 0))
                worth = min(2 * worth, LOCKED_SETTLES) or 1
                self._left[job_id] = worth, worth
        while len(self._left) > CONTENDED_MAX:
            del self._left[next(iter(self._left))]

    def has_any(self, reports: Sequence[Report]) -> bool:
        """Report whether one of these jobs is contended. Counts down their locked settles."""
        if not self._left:
            return False
        has_locked = False
        for job_id in sorted({report.job_id for report in reports} & self._left.keys()):
            left, worth = self._left[job_id]
            if left:
                self._left[job_id] = left - 1, worth
                has_locked = True
        return has_locked

    def forget(self, reports: Sequence[Report]) -> None:
        """Forget the jobs of these reports: they were settled without the lock, so they are quiet again."""
        if self._left:
            for report in reports:
                self._left.pop(report.job_id, None)


async def settle(
    db: Database, reports: Sequence[Report], *, spread: Callable[[], float], contended: Contended | None = None
) -> Settled:
    """Settle up to BATCH_MAX reports in one commit. A frequent caller keeps `contended` between calls."""
    spreads = [spread() for _ in reports]

    async def operation(connection: asyncpg.Connection) -> Settled:
        placed = await _placed(connection, reports)
        if any(map(_is_lined, placed)):
            return await _settle_locked(connection, placed, spreads)
        if contended is None or not contended.has_any(placed):
            found = await _remembered(connection, placed) or await _load(connection, placed, is_trusting=True)
            settled = _decide(found, placed, spreads)
            if not any(map(is_touched, found)) and not _late(found, placed, settled):
                try:
                    await drafts.write(connection, found)
                    if contended is not None:
                        contended.forget(placed)
                    return settled
                except drafts.MovedOn:
                    if contended is not None:
                        contended.note(placed)
        return await _settle_locked(connection, placed, spreads)

    return await db.run(operation)


def _is_lined(report: Report) -> bool:
    """Whether the step or a step after it needs a slot: such a settle takes more than one statement."""
    plan = None if report.plan_hash is None else PLANS.get(report.plan_hash)
    return plan is not None and report.node in plan.lined


async def _settle_locked(
    connection: asyncpg.Connection, reports: Sequence[Report], spreads: Sequence[float]
) -> Settled:
    async with connection.transaction():
        await drafts.lock(connection, {report.job_id for report in reports})
        found = await _load(connection, reports)
        settled = _decide(found, reports, spreads)
        await drafts.write(connection, found)
        if late := _late(found, reports, settled):
            await note_late(connection, late)
    return settled


def _late(found: Sequence[Draft], reports: Sequence[Report], settled: Settled) -> list[tuple[Draft, Report]]:
    """Return the refused reports about attempts that were in progress when their jobs ended."""
    if all(settled.took_effect):
        return []
    ended = {draft.job.id: draft for draft in found if draft.is_finished}
    pairs = zip(reports, settled.took_effect, strict=True)
    refused = [
        (draft, report) for report, took in pairs if not took and (draft := ended.get(report.job_id)) is not None
    ]
    return [(draft, report) for draft, report in refused if is_late(draft, report)]


async def _placed(connection: asyncpg.Connection, reports: Sequence[Report]) -> list[Report]:
    """Add the step's plan and node to each report. Reports for steps that do not exist stay without."""
    unknown = [report for report in reports if report.plan_hash is None]
    if not unknown:
        return list(reports)
    rows = await connection.fetch(
        sql("step_place"), [report.job_id for report in unknown], [report.no for report in unknown]
    )
    places = {(row["job_id"], row["no"]): row for row in rows}
    return [
        report._replace(plan_hash=row["plan"], node=row["node"])
        if report.plan_hash is None and (row := places.get((report.job_id, report.no))) is not None
        else report
        for report in reports
    ]


async def _remembered(connection: asyncpg.Connection, reports: Sequence[Report]) -> list[Draft] | None:
    """Build the drafts from what the claims saw, if that is enough for every report."""
    if len({report.job_id for report in reports}) < len(reports):
        return None
    found: list[Draft] = []
    known: dict[tuple[str, int], tuple[Plan, tuple[int, ...]] | None] = {}
    for report in reports:
        job_id, no, attempt, outcome, _, _, plan_hash, node, seen, _, worker = report
        if seen is None or worker is None or plan_hash is None or no != node:
            return None
        # A claim does not see how the first failure came about, which decides the job's end.
        if seen.has_parent or seen.steps_failed or not isinstance(outcome, Success):
            return None
        place = (plan_hash, node)
        if place not in known:
            known[place] = _alone(await read_plan(connection, plan_hash), node)
        if (to_know := known[place]) is None:
            return None
        plan, after = to_know
        steps = {next_no: Step(next_no, next_no, None, StepState.BLOCKED, 1, 0, 0, 0) for next_no in after}
        steps[no] = Step(no, node, None, StepState.RUNNING, 0, attempt, seen.failures, seen.losses, worker=worker)
        job = Job(
            job_id,
            JobState.PREVIEW if seen.is_preview else JobState.PROCESSING,
            seen.is_paused,
            seen.version,
            seen.steps_total,
            seen.steps_open,
            seen.steps_failed,
            None,
            None,
            seen.correlation_id,
        )
        found.append(Draft(job, plan, steps, _NO_TIME, "engine", {no: attempt}))
    return found


def _alone(plan: Plan, node: int) -> tuple[Plan, tuple[int, ...]] | None:
    """Return the plan and the next steps, if each needs only this step: then they are unchanged since birth."""
    after = plan.successors[node]
    # In a resumed undo the node that follows may have ended before.
    is_shared = plan.is_undo or any(len(plan.nodes[no].needs) > 1 for no in after)
    return None if is_shared else (plan, after)


async def _load(connection: asyncpg.Connection, reports: Iterable[Report], *, is_trusting: bool = False) -> list[Draft]:
    """Load the jobs and the steps that the reports can touch.

    With `is_trusting`, a succeeded child of a fan-out is taken as its claim saw it, under the condition that the module
    names. Of a wide job, only the fan-out itself is then read.
    """
    wanted: dict[UUID, set[int]] = {}
    children: dict[UUID, list[Report]] = {}
    known: dict[tuple[str, int], frozenset[int]] = {}
    for report in reports:
        if report.plan_hash is None:
            continue
        is_success = isinstance(report.outcome, Success)
        if is_trusting and is_success and report.no != report.node and report.seen is not None and report.worker:
            place = (report.plan_hash, report.node)
            if place not in known:
                plan = await read_plan(connection, report.plan_hash)
                known[place] = plan.descendants[report.node] | {report.node}
            children.setdefault(report.job_id, []).append(report)
            touched: Iterable[int] = known[place]
        else:
            plan = await read_plan(connection, report.plan_hash)
            touched = touched_by(plan, report.no, report.node, is_success=is_success)
        wanted.setdefault(report.job_id, set()).update(touched)
    found = await drafts.load(connection, wanted, lambda plan_hash: read_plan(connection, plan_hash))
    if whole := {draft.job.id: range(draft.job.steps_total) for draft in found if passes_over(draft)}:
        more = await drafts.load(connection, whole, lambda plan_hash: read_plan(connection, plan_hash))
        found = [*(draft for draft in found if draft.job.id not in whole), *more]
    for draft in found:
        for report in children.get(draft.job.id, ()):
            _add_child(draft, report)
    return found


def _add_child(draft: Draft, report: Report) -> None:
    if report.seen is None or report.no in draft.steps:
        return
    # The child's index does not matter here, only that it has one.
    draft.steps[report.no] = Step(
        report.no, report.node, 0, StepState.RUNNING, 0, report.attempt, report.seen.failures, report.seen.losses,
        worker=report.worker,
    )  # fmt: skip
    if draft.fences is None:
        draft.fences = {}
    draft.fences[report.no] = report.attempt


def _decide(found: list[Draft], reports: Sequence[Report], spreads: Sequence[float]) -> Settled:
    by_job = {draft.job.id: draft for draft in found}
    took_effect = tuple(
        (draft := by_job.get(report.job_id)) is not None and law.settle(draft, report, spread)
        for report, spread in zip(reports, spreads, strict=True)
    )
    queues = frozenset(queue for draft in found for queue in draft.queues)
    has_ready = any(draft.has_ready or (draft.is_finished and draft.job.parent) for draft in found)
    return Settled(took_effect, queues, has_ready)
