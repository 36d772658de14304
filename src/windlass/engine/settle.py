"""Settling: the one door through which an attempt ends, whoever reports it.

Reports are settled in batches. The batch is first tried without locks: read the jobs and the steps that the reports
can touch, decide, and write all of it in one statement on the condition that no job moved on meanwhile. If one did, or
if a decision needs more than one statement, the batch is done again under the jobs' row locks, where nothing can move.
Either way it is one commit.

Most reports tell of success, and their worker saw the job when it claimed the step; where that is all there is to
know, nothing is read at all. It is the same decision on the same condition, and on one more: the attempt must still be
running, on the same worker. A claim does not wait for the disk, so a crash of the server may have undone it, and the
job may have come to the same version by another way since.

A report that is late or doubled is refused by the law (core/settle.py); doing a batch twice is harmless for the same
reason, so a commit whose outcome is unknown is simply done again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from uuid import UUID

import asyncpg

from windlass.core import settle as law
from windlass.core.draft import Draft, Job, Step, touched_by
from windlass.core.outcome import Report, Success
from windlass.core.plan import Plan
from windlass.core.states import JobState, StepState
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import PLANS, read_plan
from windlass.store.statements import sql

BATCH_MAX = 500
# How many settles of a contended job go straight to the lock, and how many such jobs are remembered.
LOCKED_SETTLES = 20
CONTENDED_MAX = 100
# A success sets no timer, so it needs no time.
_NO_TIME = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Settled:
    """What became of the reports: which took effect, and whether steps became ready for a worker or the router."""

    took_effect: tuple[bool, ...]
    queues: frozenset[str]
    has_ready: bool


class Contended:
    """Jobs that others were seen to settle at the same time. For a while they are settled under their lock at once.

    Deciding without the lock leaves the job free meanwhile, for claims above all; but where several workers settle one
    wide job, each would mostly find that it has moved on.
    """

    def __init__(self) -> None:
        self._left: dict[UUID, int] = {}

    def note(self, reports: Sequence[Report]) -> None:
        """A write was refused. Which job moved on is not known; a job with several reports is the likeliest."""
        counts = Counter(report.job_id for report in reports)
        for job_id, count in counts.items():
            if count > 1 or len(counts) == 1:
                self._left[job_id] = LOCKED_SETTLES
        while len(self._left) > CONTENDED_MAX:
            del self._left[next(iter(self._left))]

    def has_any(self, reports: Sequence[Report]) -> bool:
        """Whether one of these jobs is among them."""
        if not self._left:
            return False
        found = {report.job_id for report in reports} & self._left.keys()
        for job_id in sorted(found):
            self._left[job_id] -= 1
            if not self._left[job_id]:
                del self._left[job_id]
        return bool(found)


async def settle(
    db: Database, reports: Sequence[Report], *, chance: Callable[[], float], contended: Contended | None = None
) -> Settled:
    """Settle up to BATCH_MAX reports in one commit. A caller that settles often keeps what it learns in `contended`."""
    chances = [chance() for _ in reports]

    async def operation(connection: asyncpg.Connection) -> Settled:
        placed = await _placed(connection, reports)
        if any(map(_is_slotted, placed)):
            return await _settle_locked(connection, placed, chances)
        if contended is None or not contended.has_any(placed):
            found = await _remembered(connection, placed) or await _load(connection, placed, is_trusting=True)
            settled = _decide(found, placed, chances)
            if all(map(drafts.is_simple, found)):
                try:
                    await drafts.write(connection, found)
                    return settled
                except drafts.MovedOn:
                    if contended is not None:
                        contended.note(placed)
        return await _settle_locked(connection, placed, chances)

    return await db.run(operation)


def _is_slotted(report: Report) -> bool:
    """Whether settling it is known to take more than one statement."""
    plan = None if report.plan_hash is None else PLANS.get(report.plan_hash)
    return plan is not None and plan.is_slotted


async def _settle_locked(
    connection: asyncpg.Connection, reports: Sequence[Report], chances: Sequence[float]
) -> Settled:
    async with connection.transaction():
        await drafts.lock(connection, {report.job_id for report in reports})
        found = await _load(connection, reports)
        settled = _decide(found, reports, chances)
        await drafts.write(connection, found)
    return settled


async def _placed(connection: asyncpg.Connection, reports: Sequence[Report]) -> list[Report]:
    """The reports, each with its step's plan and node; those for steps that do not exist stay without."""
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
    """The drafts as the claims saw them, if that is enough for every one of these reports."""
    if len({report.job_id for report in reports}) < len(reports):
        return None
    found: list[Draft] = []
    known: dict[tuple[str, int], tuple[Plan, tuple[int, ...]] | None] = {}
    for report in reports:
        job_id, no, attempt, outcome, _, _, plan_hash, node, seen, _, worker = report
        if seen is None or worker is None or plan_hash is None or no != node:
            return None
        if seen.has_parent or not isinstance(outcome, Success):
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
    """The plan and the steps after this one, if each of them needs nothing else: then it is still as it was made."""
    after = tuple(plan.successors[node])
    return None if any(len(plan.nodes[no].needs) > 1 for no in after) else (plan, after)


async def _load(connection: asyncpg.Connection, reports: Iterable[Report], *, is_trusting: bool = False) -> list[Draft]:
    """The jobs and what the reports can touch of them.

    With `is_trusting` a fan-out's child that succeeded is taken as its claim saw it, under the same condition as above:
    of a wide job only the fan-out itself is read.
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
    for draft in found:
        for report in children.get(draft.job.id, ()):
            _add_child(draft, report)
    return found


def _add_child(draft: Draft, report: Report) -> None:
    if report.seen is None or report.no in draft.steps:
        return
    # Which place it has in the fan-out does not matter here, only that it has one.
    draft.steps[report.no] = Step(
        report.no, report.node, 0, StepState.RUNNING, 0, report.attempt, report.seen.failures, report.seen.losses,
        worker=report.worker,
    )  # fmt: skip
    if draft.fences is None:
        draft.fences = {}
    draft.fences[report.no] = report.attempt


def _decide(found: list[Draft], reports: Sequence[Report], chances: Sequence[float]) -> Settled:
    by_job = {draft.job.id: draft for draft in found}
    took_effect = tuple(
        (draft := by_job.get(report.job_id)) is not None and law.settle(draft, report, chance)
        for report, chance in zip(reports, chances, strict=True)
    )
    queues = frozenset(queue for draft in found for queue in draft.queues)
    has_ready = any(draft.has_ready or (draft.is_finished and draft.job.parent) for draft in found)
    return Settled(took_effect, queues, has_ready)
