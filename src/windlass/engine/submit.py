"""Submitting: turns a plan and its inputs into a durable job, or leaves no trace.

A job's id is made before the commit, so an interrupted submit can be repeated: it finds the job. An idempotency key is
unique per caller. The same key with the same body returns the first job; with another body it is a Conflict.

A lone job commits without waiting for the disk, so a worker may begin it early. The submitter and a second request with
the same key, get their answer once it is on disk. The log is written in order: no result is on disk without its job.

Once a policy is published, every job is judged (engine/door.py). A denied job leaves a row, and its submitter gets
`Denied`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

import asyncpg

from windlass.core.bell import Bell, JobsEnded, RouteDue, TimerSet, WorkQueued
from windlass.core.errors import Conflict, Denied
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.states import JobState
from windlass.engine import door
from windlass.engine.door import Judged, Ruled
from windlass.engine.job_rows import UNJUDGED, Marks, batch_statement, has_ready, lone_statement, queues_of, state_of
from windlass.engine.policies import Current
from windlass.engine.submission import Submission as Submission
from windlass.engine.submission import Webhook as Webhook
from windlass.engine.submission import body_hash as body_hash
from windlass.engine.submission import check_text as check_text
from windlass.store.columns import encode
from windlass.store.database import Database, flush
from windlass.store.statements import sql

BATCH_MAX = 1_000
# Engines check for overdue jobs at least this often without a bell.
_SOON_S = 10.0


@dataclass(frozen=True, slots=True)
class Accepted:
    """The reply to a submission. `is_new` is False when an earlier submission with the same key made the job.

    `created_at` is the time of the commit that made the job, or None if another commit may have made it. `state` and
    `holds` are those that the commit gave the job.
    """

    job_id: UUID
    is_new: bool
    created_at: datetime | None = field(default=None, compare=False)
    state: JobState | None = field(default=None, compare=False)
    holds: Hold = field(default=NO_HOLD, compare=False)


# A Conflict and a Denied concern their own submission only.
Answer = Accepted | Conflict | Denied


class Answers(list[Answer]):
    """One reply for each submission.

    `is_all_new` says that this commit made all the jobs. A job that existed before may have been seen before it was on
    disk. `made` has the ids of the jobs that the statement made, if it was asked for them.
    """

    is_all_new = True
    made: Sequence[UUID] = ()


async def submit(db: Database, submissions: Sequence[Submission]) -> list[Answer]:
    """Make the jobs in one commit. Returns a reply for each, in order; a refusal concerns its own submission only."""
    for submission in submissions:
        submission.check()
    return await commit(db, submissions)


async def commit(db: Database, submissions: Sequence[Submission]) -> list[Answer]:
    """Make the jobs of submissions that were checked already."""
    has_more = any(submission.webhook or submission.budget is not None for submission in submissions)

    async def operation(connection: asyncpg.Connection, gate: Current) -> list[Answer]:
        judged = await door.judge_all(connection, gate, submissions)
        is_alone = not has_more and judged.is_plain
        is_ahead = is_alone and len(submissions) == 1
        if is_alone:
            answers = await insert_judged(connection, submissions, judged, is_ahead)
        else:
            async with connection.transaction():
                answers = await insert_judged(connection, submissions, judged)
                await _insert_more(connection, submissions, answers)
        if is_ahead or not answers.is_all_new:
            await flush(connection)
        return answers

    return await door.gated(db, operation)


async def _insert_more(
    connection: asyncpg.Connection, submissions: Sequence[Submission], answers: Sequence[Answer]
) -> None:
    """Store the webhooks and budgets of new jobs. A job that existed before keeps its own."""
    pairs = zip(submissions, answers, strict=True)
    made = [s for s, answer in pairs if isinstance(answer, Accepted) and answer.is_new]
    if hooks := [(s.job_id, s.caller, *s.webhook) for s in made if s.webhook is not None]:
        await connection.execute(sql("webhook_put"), *map(list, zip(*hooks, strict=True)))
    if budgets := [(s.job_id, s.budget) for s in made if s.budget is not None]:
        await connection.execute(sql("job_budget"), *map(list, zip(*budgets, strict=True)))


async def insert(connection: asyncpg.Connection, submissions: Sequence[Submission], gate: Current) -> Answers:
    """Judge and insert jobs in a transaction that is open; the plans must be stored.

    A denied job is stored too, so its caller must let the transaction commit before it raises the answer.
    """
    return await insert_judged(connection, submissions, await door.judge_all(connection, gate, submissions))


async def insert_judged(
    connection: asyncpg.Connection, submissions: Sequence[Submission], judged: Judged, is_ahead: bool = False
) -> Answers:
    """Insert jobs that were judged. With `is_ahead` a lone job commits without waiting for the disk."""
    bodies = [encode(submission.inputs) for submission in submissions]
    pairs = zip(submissions, bodies, strict=True)
    hashes = [body_hash(s, body) if s.idempotency_key is not None else None for s, body in pairs]
    if judged.is_plain:
        marks = judged.marks([one.verdict for one in judged.judgements])
        return await _insert(connection, submissions, bodies, hashes, marks, is_ahead=is_ahead)
    ruled = await Ruled.locked(connection, judged, submissions)
    answers = await _insert(connection, ruled.submissions, bodies, hashes, ruled.marks, is_listed=True)
    await ruled.record(connection, answers.made)
    new = set(answers.made)
    if ended := [s.job_id for s in ruled.submissions if s.is_denied and s.job_id in new]:
        connection.ring(JobsEnded(tuple(ended)), RouteDue())
    if not any(submission.is_denied for submission in ruled.submissions):
        return answers
    # The reasons of denied jobs are stored now, also for a repeat of one in this batch.
    return await _compare(connection, ruled.submissions, hashes, answers)


async def _insert(
    connection: asyncpg.Connection,
    submissions: Sequence[Submission],
    bodies: list[str],
    hashes: Sequence[str | None],
    marks: Marks = UNJUDGED,
    *,
    is_ahead: bool = False,
    is_listed: bool = False,
) -> Answers:
    """Insert the jobs. With `is_ahead` a lone job commits without waiting for the disk."""
    bells = _bells(submissions)
    if len(submissions) == 1 and not is_listed:
        carried = connection.carried(bells) if is_ahead else ([], [])
        rows = await connection.fetch(*lone_statement(submissions[0], bodies[0], hashes[0], is_ahead, carried, marks))
    else:
        rows = await connection.fetch(*batch_statement(submissions, bodies, hashes, marks, is_listed=is_listed))
    made = rows[0]["made"] if rows else 0
    if made and not rows[0].get("is_rung"):
        connection.ring(*bells)
    if made == len(submissions):
        created_at = rows[0]["created_at"]
        answers = Answers(Accepted(s.job_id, True, created_at, state_of(s), s.holds) for s in submissions)
    else:
        answers = await _compare(connection, submissions, hashes)
    answers.made = rows[0]["ids"] if is_listed else ()
    return answers


def _bells(submissions: Sequence[Submission]) -> list[Bell]:
    bells: list[Bell] = []
    alike = {(s.plan.hash, s.holds, s.is_denied): s for s in submissions}.values()
    if queues := {queue for submission in alike for queue in queues_of(submission)}:
        bells.append(WorkQueued(tuple(sorted(queues))))
    if any(map(has_ready, alike)):
        bells.append(RouteDue())
    if any(map(_ends_soon, submissions)):
        bells.append(TimerSet())
    return bells


def _ends_soon(submission: Submission) -> bool:
    return any(at_s is not None and at_s < _SOON_S for at_s in (submission.deadline_s, submission.lives_s))


async def _compare(
    connection: asyncpg.Connection,
    submissions: Sequence[Submission],
    hashes: Sequence[str | None],
    made: Answers | None = None,
) -> Answers:
    rows = await connection.fetch(
        sql("job_same"),
        [s.job_id for s in submissions],
        [s.caller for s in submissions],
        [s.idempotency_key for s in submissions],
    )
    same = {row["place"]: row for row in rows}
    answers = Answers()
    answers.is_all_new = made is not None and made.is_all_new
    for place, (submission, asked) in enumerate(zip(submissions, hashes, strict=True), 1):
        row = same[place]
        is_own = row["id"] == submission.job_id
        if not is_own and row["body_hash"] != asked:
            answers.append(
                Conflict(
                    f"idempotency key {submission.idempotency_key!r} was used for another body, by job {row['id']}",
                    remedy="Use a new key for a new request",
                )
            )
        elif row["rule"] is not None:
            answers.append(door.denied_by(row["id"], row["rule"], row["reason"]))
        elif made is not None:
            answers.append(made[place - 1])
        else:
            # A repeat of this submission after an interrupted commit is new too.
            answers.append(Accepted(row["id"], is_own))
    return answers
