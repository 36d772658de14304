"""Judges open jobs again: after a publish, and when the time of a throttle is over.

    lock the policy, then the jobs ─► judge ─► still good: raise `jobs.policy`, many jobs in one statement
                                              else: the draft of the job (core/gatekeeping.py)      all in one commit

Two processes may judge the same jobs: the second finds nothing to change. A job that the policy throttled at its submit
was never counted under a velocity limit, so its question is the question of the submit, and it counts when it passes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from windlass.core.gatekeeping import Ruling, rule_on
from windlass.core.states import JobState, StepState
from windlass.core.verdict import KERNEL_BYPASS, Decision, Edge, Verdict
from windlass.engine.asking import asker_in, question_about
from windlass.engine.door import SOURCE, enter, gated, judge_one, until_told
from windlass.engine.job_approvals import NOT_ASKED, JobApprovals, ask_again, use_up
from windlass.engine.places import JobPlaces
from windlass.engine.policies import Current
from windlass.engine.velocity import Velocity
from windlass.policy.judge import Judgement
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.plans import read_plan
from windlass.store.statements import sql
from windlass.store.verdicts import attempts_max, constraints_text, runs_s

NOTHING_TOLD: Mapping[UUID, Verdict] = {}
# The steps on which a verdict puts a hold, or from which it takes one.
RULED_STATES = (StepState.READY, StepState.HELD, StepState.QUEUED)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A job, the verdict about it now, and the edge of the question."""

    row: asyncpg.Record
    verdict: Verdict
    edge: Edge
    standing: JobApprovals

    @property
    def is_still_good(self) -> bool:
        """Whether only the number of the policy changes: nothing holds the job, and the verdict lets it go on."""
        row = self.row
        is_free = row["gate_tries"] is None and row["state"] != JobState.APPROVAL_REQUIRED
        return is_free and self.verdict.decision.admits

    @property
    def is_waiting(self) -> bool:
        """Whether the job waits already for the approval that the verdict asks for, and all its queued steps are held.

        A job that has begun may have queued more steps meanwhile, so only a job that has not begun is left alone.
        """
        is_asked = self.row["state"] == JobState.APPROVAL_REQUIRED and self.row["waits_for"] == self.verdict.rule
        return is_asked and self.verdict.decision is Decision.REQUIRE_APPROVAL


async def recheck(db: Database, job_ids: Sequence[UUID], told: Mapping[UUID, Verdict] = NOTHING_TOLD) -> int:
    """Judge these jobs by the policy in force, in one commit. Returns how many may go on.

    `told` has the verdicts of the kernel outside of the processes. A job that needs one and has none is left as it is.
    """

    async def operation(connection: asyncpg.Connection, gate: Current) -> int:
        if not gate.is_gated or not job_ids:
            return 0
        async with connection.transaction():
            await enter(connection, gate)
            await drafts.lock(connection, job_ids)
            rows = await connection.fetch(sql("verdict_questions"), list(job_ids))
            rows = [row for row in rows if _can_judge(gate, row, told)]
            asked = await _judged(connection, gate, rows, await JobApprovals.of_jobs(connection, job_ids), told)
            good = [one for one in asked if one.is_still_good]
            await _raise(connection, gate.no, good)
            others = [one for one in asked if not one.is_still_good and not one.is_waiting]
            count = len(good) + await _rule(connection, gate.no, others)
            if told:
                await _note_kernel(connection, [one.row["id"] for one in asked], told)
            return count

    return await gated(db, operation)


def _can_judge(gate: Current, row: asyncpg.Record, told: Mapping[UUID, Verdict]) -> bool:
    return not gate.kernel or row["id"] in told or not _needs_kernel(row)


async def _note_kernel(connection: asyncpg.Connection, job_ids: Sequence[UUID], told: Mapping[UUID, Verdict]) -> None:
    """Mark the jobs that were let through without their kernel, and forget the question about the others."""
    bypassed = [job_id for job_id in job_ids if told[job_id].rule == KERNEL_BYPASS]
    judged = [job_id for job_id in job_ids if told[job_id].rule != KERNEL_BYPASS]
    if bypassed:
        await connection.execute(sql("kernel_bypassed"), bypassed)
    if judged:
        await connection.execute(sql("kernel_judged"), judged)


async def _judged(
    connection: asyncpg.Connection,
    gate: Current,
    rows: Sequence[asyncpg.Record],
    standing: Mapping[UUID, JobApprovals],
    told: Mapping[UUID, Verdict],
) -> list[_Asked]:
    """Judge the jobs. An approval that a job has for the same rule is still good."""
    edges = [edge_of(row) for row in rows]
    judgements = [_judgement(gate, row, edge, told.get(row["id"])) for row, edge in zip(rows, edges, strict=True)]
    velocity = await Velocity.locked(connection, judgements)
    decided = [velocity.decide(judgement) for judgement in judgements]
    approvals = [standing.get(row["id"], NOT_ASKED) for row in rows]
    verdicts = [its.admitted(row, one.verdict) for its, row, one in zip(approvals, rows, decided, strict=True)]
    tenants = [asker_in(row).tenant for row in rows]
    # A job that goes on already keeps the place that it has.
    takes_place = [
        edge is Edge.SUBMIT or row["state"] == JobState.APPROVAL_REQUIRED for row, edge in zip(rows, edges, strict=True)
    ]
    wanted = [(verdict, tenant) for verdict, tenant, new in zip(verdicts, tenants, takes_place, strict=True) if new]
    places = await JobPlaces.locked(connection, wanted)
    found = []
    for at, row in enumerate(rows):
        verdict = places.verdict(verdicts[at], tenants[at], row["id"]) if takes_place[at] else verdicts[at]
        if verdict.decision.admits:
            velocity.count(decided[at])
        found.append(_Asked(row, verdict, edges[at], approvals[at]))
    await velocity.write(connection)
    await places.write(connection)
    return found


def _judgement(gate: Current, row: asyncpg.Record, edge: Edge, told: Verdict | None) -> Judgement:
    found = judge_one(gate, question_about(row, edge), told)
    return until_told(gate, found) if told is None and _needs_kernel(row) else found


def _is_new(row: asyncpg.Record) -> bool:
    """Return whether a job has never had a verdict that lets it go on, and waits for the next question."""
    return row["policy"] is None and row["gate_at"] is not None


def _needs_kernel(row: asyncpg.Record) -> bool:
    """Return whether only a verdict of the kernel, if there is one, lets a job go on.

    That is so for a job that the kernel has not judged yet. The kernel is also asked again about a job that people have
    approved, because its rule may have asked for the approval, and its constraints hold.
    """
    is_unsettled = row["policy"] is None or row["bypassed_at"] is not None
    return _is_new(row) or (is_unsettled and row["gate_tries"] == 0)


def edge_of(row: asyncpg.Record) -> Edge:
    """Return the edge of the question about a stored job."""
    return Edge.SUBMIT if _is_new(row) else Edge.CLAIM


async def judge_now(connection: asyncpg.Connection, gate: Current, job_id: UUID) -> Ruling:
    """Judge one job without regard to its approvals. The caller holds the locks of the policy and of the job.

    A kernel outside of the processes is not asked here: its jobs wait for its next verdict.
    """
    rows = await connection.fetch(sql("verdict_questions"), [job_id])
    [one] = await _judged(connection, gate, rows, {}, NOTHING_TOLD)
    return Ruling(one.verdict, gate.no, one.edge, spread=job_id.int % 1024 / 1024)


async def _raise(connection: asyncpg.Connection, policy: int, good: Sequence[_Asked]) -> None:
    if not good:
        return
    verdicts = [one.verdict for one in good]
    await connection.execute(
        sql("verdict_raise"),
        [one.row["id"] for one in good],
        [verdict.rule for verdict in verdicts],
        policy,
        [attempts_max(verdict) for verdict in verdicts],
        [runs_s(verdict) for verdict in verdicts],
    )
    limited = [
        (one.row["id"], one.verdict.decision, one.verdict.rule, one.verdict.reason, constraints_text(one.verdict))
        for one in good
        if one.verdict.decision is not Decision.ALLOW
    ]
    if limited:
        *columns, constraints = (list(column) for column in zip(*limited, strict=True))
        await connection.execute(sql("verdict_put_many"), *columns, policy, constraints)


async def _rule(connection: asyncpg.Connection, policy: int, asked: Sequence[_Asked]) -> int:
    """Apply verdicts that change more than the number of the policy. Returns how many jobs may go on."""
    if not asked:
        return 0
    by_job = {one.row["id"]: one for one in asked}
    found = await drafts.load_open_many(connection, by_job, RULED_STATES, lambda h: read_plan(connection, h))
    count = 0
    for draft in found:
        one = by_job[draft.job.id]
        draft.source = SOURCE
        # The id's random bits spread the questions about jobs that were submitted together.
        ruling = Ruling(one.verdict, policy, one.edge, spread=draft.job.id.int % 1024 / 1024)
        count += rule_on(draft, ruling, one.row["gate_tries"] or 0)
        ask_again(draft, one.row, ruling, one.standing)
    for one in asked:
        if one.verdict.decision.admits:
            await use_up(connection, one.row, one.verdict, one.standing)
    await drafts.write(connection, found)
    return count
