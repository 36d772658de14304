"""Submitting: a plan and its inputs become a job, durably, or nothing does.

A job's id is made before the commit, so a submit whose commit was cut off can be done again: it finds the job there.
An idempotency key is unique per caller. The same key with the same body gives the first job; with another, a Conflict.

A job that comes alone commits ahead of the disk: a worker may see it and begin while its submitter still waits. Nobody
is told that it was accepted before it is on the disk, nor is whoever comes with the same key. As the log is written in
order, no result can be on the disk without its job.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from windlass.core.bell import Bell, RouteDue, TimerSet, WorkQueued
from windlass.core.birth import births, first_state
from windlass.core.caller import PRIORITY_MAX
from windlass.core.errors import BadInput, Conflict
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.lane import lane_of
from windlass.core.plan import Plan
from windlass.core.states import JobState, StepState
from windlass.store.database import Database, flush
from windlass.store.drafts import encode, sparse, uniform
from windlass.store.statements import sql

CORRELATION_ID_MAX = 200
BATCH_MAX = 1_000
# The expirer looks at least this often by itself.
_SOON_S = 10.0
BUDGET_MAX = 1_000_000_000_000
BUDGET_PLACES_MAX = 12


class Webhook(NamedTuple):
    """Where a job's end is told; the secret is sealed already."""

    url: str
    secret: bytes


class Submission(NamedTuple):
    """What a caller asks for. `inputs` fit the plan's schema already (`recipe/schema.py` checks and completes them)."""

    plan: Plan
    inputs: Mapping[str, Any]
    job_id: UUID
    caller: str = "local"
    idempotency_key: str | None = None
    labels: Mapping[str, str] | None = None
    priority: int = 0
    deadline_s: float | None = None
    # How long the job may live. None: as long as its recipe says, or `default_s`, or as long as the plan needs.
    ttl_s: float | None = None
    default_s: float | None = None
    correlation_id: str | None = None
    parent: tuple[UUID, int, int] | None = None
    depth: int = 0
    retry_of: UUID | None = None
    webhook: Webhook | None = None
    # What the job may spend in all; None: as much as its recipe and its caller may.
    budget: Decimal | None = None
    # What every step of the job is held by until the hold's owner removes it. The job is PENDING meanwhile.
    holds: Hold = NO_HOLD
    # What else was asked for, beside what the job is made of: the same key with another is a conflict.
    asked: tuple[str, ...] = ()

    @property
    def is_ttl_default(self) -> bool:
        """Whether neither the caller nor the recipe chose the time to live."""
        return self.ttl_s is None and self.plan.ttl_s is None

    @property
    def lives_s(self) -> float:
        """How long the job may live."""
        if self.ttl_s is not None:
            return self.ttl_s
        return self.default_s if self.default_s is not None and self.plan.ttl_s is None else self.plan.lives_s

    def check(self) -> None:
        """Refuse what the tables could not hold or no one could mean."""
        if not -PRIORITY_MAX <= self.priority <= PRIORITY_MAX:
            raise BadInput(f"priority {self.priority} is not between -{PRIORITY_MAX} and {PRIORITY_MAX}")
        for name, value in (("deadline", self.deadline_s), ("ttl", self.ttl_s)):
            if value is not None and value <= 0:
                raise BadInput(f"{name} must be longer than 0")
            if value is not None and not value <= 10 * 365 * 86400:
                raise BadInput(f"{name} of {value} s is not a time between 0 and 10 years")
        if self.idempotency_key is not None and not 0 < len(self.idempotency_key) <= 255:
            raise BadInput("an idempotency key has 1 to 255 characters")
        if self.correlation_id is not None and not 0 < len(self.correlation_id) <= CORRELATION_ID_MAX:
            raise BadInput(f"a correlation id has 1 to {CORRELATION_ID_MAX} characters")
        if self.labels:
            self._check_labels(self.labels)
        for text in (self.caller, self.idempotency_key, self.correlation_id):
            if text is not None:
                check_text(text)
        if self.budget is not None:
            self._check_budget(self.budget)
        if self.webhook is not None:
            check_text(self.webhook.url)
            if self.correlation_id is None:
                raise BadInput("a job with a webhook needs a correlation id: its end is learnt from the feed")

    def _check_budget(self, budget: Decimal) -> None:
        exponent = budget.as_tuple().exponent
        if not isinstance(exponent, int) or exponent < -BUDGET_PLACES_MAX or not 0 < budget <= BUDGET_MAX:
            raise BadInput(
                f"a budget of {budget!s:.50} is not more than 0, up to {BUDGET_MAX:,}, "
                f"with at most {BUDGET_PLACES_MAX} digits after the point"
            )

    def _check_labels(self, labels: Mapping[str, str]) -> None:
        if len(labels) > 64 or any(len(text) > 255 for pair in labels.items() for text in pair):
            raise BadInput("there may be 64 labels at most, of 255 characters each")
        for pair in labels.items():
            for text in pair:
                check_text(text)


def check_text(text: str) -> None:
    """Refuse what PostgreSQL cannot store as text."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput("a key, label or caller is not proper text (it holds half a surrogate pair)") from None
    if "\x00" in text:
        raise BadInput("a key, label or caller holds a NUL character, which PostgreSQL cannot store")


@dataclass(frozen=True, slots=True)
class Accepted:
    """The job that answers a submission; `is_new` is False when an earlier submission with the same key made it."""

    job_id: UUID
    is_new: bool


class Answers(list[Accepted | Conflict]):
    """One for each submission. `is_all_new` says that all their jobs were made now: one that was there before may have
    been seen ahead of the disk.
    """

    is_all_new = True


async def submit(db: Database, submissions: Sequence[Submission]) -> list[Accepted | Conflict]:
    """Make the jobs in one commit. An answer each, in order; a Conflict concerns its own submission only."""
    for submission in submissions:
        submission.check()
    return await commit(db, submissions)


async def commit(db: Database, submissions: Sequence[Submission]) -> list[Accepted | Conflict]:
    """The same for what has been checked."""
    has_more = any(submission.webhook or submission.budget is not None for submission in submissions)
    is_ahead = len(submissions) == 1 and not has_more

    async def operation(connection: asyncpg.Connection) -> list[Accepted | Conflict]:
        if has_more:
            async with connection.transaction():
                answers = await insert(connection, submissions)
                await _insert_more(connection, submissions, answers)
        else:
            answers = await insert(connection, submissions, is_ahead)
        if is_ahead or not answers.is_all_new:
            await flush(connection)
        return answers

    return await db.run(operation)


async def _insert_more(
    connection: asyncpg.Connection, submissions: Sequence[Submission], answers: Sequence[Accepted | Conflict]
) -> None:
    """The webhooks and budgets of the jobs that were made now; a job that was there before has its own, or none."""
    pairs = zip(submissions, answers, strict=True)
    made = [s for s, answer in pairs if isinstance(answer, Accepted) and answer.is_new]
    if hooks := [(s.job_id, s.caller, *s.webhook) for s in made if s.webhook is not None]:
        await connection.execute(sql("webhook_put"), *map(list, zip(*hooks, strict=True)))
    if budgets := [(s.job_id, s.budget) for s in made if s.budget is not None]:
        await connection.execute(sql("job_budget"), *map(list, zip(*budgets, strict=True)))


async def insert(connection: asyncpg.Connection, submissions: Sequence[Submission], is_ahead: bool = False) -> Answers:
    """The same on a connection that is in use; the plans must be stored. A lone job may go ahead of the disk."""
    bodies = [encode(submission.inputs) for submission in submissions]
    bells = _bells(submissions)
    pairs = zip(submissions, bodies, strict=True)
    hashes = [body_hash(s, body) if s.idempotency_key is not None else None for s, body in pairs]
    if len(submissions) == 1:
        lone = submissions[0]
        template = _template(lone)
        values = (*_values(lone, bodies[0], hashes[0]), is_ahead, lone.is_ttl_default)
        more = (template.state, template.holds, _told(lone))
        carried = connection.carried(bells) if is_ahead else ([], [])
        rows = await connection.fetch(sql("job_submit_one"), *values, *more, *carried)
    else:
        rows = await _insert_many(connection, submissions, bodies, hashes)
    if rows and not rows[0].get("is_rung"):
        connection.ring(*bells)
    if len(rows) == len(submissions):
        return Answers(Accepted(submission.job_id, True) for submission in submissions)
    return await _compare(connection, submissions, hashes)


async def _insert_many(
    connection: asyncpg.Connection, submissions: Sequence[Submission], bodies: list[str], hashes: Sequence[str | None]
) -> list[asyncpg.Record]:
    rows: list[asyncpg.Record] = await connection.fetch(
        sql("job_submit"),
        *_job_columns(submissions, bodies, hashes),
        [timedelta(seconds=one_s) for one_s in uniform([s.lives_s for s in submissions])],
        *_step_columns(submissions),
        uniform([s.is_ttl_default for s in submissions]),
        _holds(submissions),
        sparse([_told(s) for s in submissions]),
    )
    return rows


def _holds(submissions: Sequence[Submission]) -> list[int]:
    """The holds of all steps, beside the step columns; empty if no job is held."""
    if not any(s.holds for s in submissions):
        return []
    return [hold for s in submissions for hold in _template(s).holds or [0] * len(s.plan.nodes)]


def _told(submission: Submission) -> str | None:
    """What the job's first event tells: the holds that its steps are born with."""
    return encode({"holds": int(submission.holds)}) if submission.holds else None


def _bells(submissions: Sequence[Submission]) -> list[Bell]:
    bells: list[Bell] = []
    templates = [_template(s) for s in {(s.plan.hash, s.holds): s for s in submissions}.values()]
    if queues := {queue for template in templates for queue in template.queues}:
        bells.append(WorkQueued(tuple(sorted(queues))))
    if any(template.has_ready for template in templates):
        bells.append(RouteDue())
    if any(map(_ends_soon, submissions)):
        bells.append(TimerSet())
    return bells


def _ends_soon(submission: Submission) -> bool:
    if submission.deadline_s is not None and submission.deadline_s < _SOON_S:
        return True
    return submission.lives_s < _SOON_S


async def _compare(
    connection: asyncpg.Connection, submissions: Sequence[Submission], hashes: Sequence[str | None]
) -> Answers:
    rows = await connection.fetch(
        sql("job_same"),
        [s.job_id for s in submissions],
        [s.caller for s in submissions],
        [s.idempotency_key for s in submissions],
    )
    same = {row["place"]: row for row in rows}
    answers = Answers()
    answers.is_all_new = False
    for place, (submission, body_hash) in enumerate(zip(submissions, hashes, strict=True), 1):
        row = same[place]
        if row["id"] == submission.job_id:
            # Also when it was made by this very submission, whose first commit was cut off.
            answers.append(Accepted(submission.job_id, True))
        elif row["body_hash"] == body_hash:
            answers.append(Accepted(row["id"], False))
        else:
            answers.append(
                Conflict(
                    f"idempotency key {submission.idempotency_key!r} was used for another body, by job {row['id']}",
                    remedy="Use a new key for a new request",
                )
            )
    return answers


def body_hash(submission: Submission, body: str) -> str:
    """What stands for all that was asked for; `body` is the inputs as text."""
    # What the caller asked for: the recipe by name, not by plan, as a redeploy must not turn a retry into a conflict.
    asked: list[Any] = [
        submission.plan.recipe, body, dict(submission.labels or {}), submission.priority, submission.deadline_s
    ]  # fmt: skip
    if submission.webhook is not None:
        # Not its secret: sealing the same one twice gives two texts.
        asked.append(submission.webhook.url)
    if submission.budget is not None:
        asked.append(["budget", format(submission.budget.normalize(), "f")])
    if submission.asked:
        asked.append(list(submission.asked))
    return hashlib.sha256(encode(asked).encode()).hexdigest()


@dataclass(frozen=True, slots=True)
class _Template:
    """The step rows that every job of a plan starts with, as columns."""

    state: JobState
    numbers: list[int]
    states: list[str]
    holds: list[int]
    queues_of: list[str]
    unmet: list[int]
    timeouts: list[float]
    queues: frozenset[str]
    has_ready: bool
    # What `job_submit_one` is sent of them.
    alone: tuple[list[str], list[str], list[int], list[float]]


@cache
def _template_of(plan_hash: str, holds: Hold) -> list[_Template]:
    return []


def _template(submission: Submission) -> _Template:
    plan = submission.plan
    kept = _template_of(plan.hash, submission.holds)
    if not kept:
        first = births(plan, submission.holds)
        queues = frozenset(n.queue for n, s in zip(plan.nodes, first, strict=True) if s.state is StepState.QUEUED)
        states = [str(start.state) for start in first]
        queues_of = [node.queue for node in plan.nodes]
        unmet = [start.unmet for start in first]
        timeouts = [node.timeout_s for node in plan.nodes]
        kept.append(
            _Template(
                first_state([start.state for start in first]),
                list(range(len(plan.nodes))),
                states,
                [int(start.holds) for start in first] if submission.holds else [],
                queues_of,
                unmet,
                timeouts,
                queues,
                any(start.state is StepState.READY for start in first),
                (states, uniform(queues_of), uniform(unmet), uniform(timeouts)),
            )
        )
    return kept[0]


def _lanes(submission: Submission) -> list[str]:
    return [lane_of(node, submission.caller) for node in submission.plan.nodes]


def _values(submission: Submission, body: str, body_hash: str | None) -> tuple[Any, ...]:
    """The parameters of `job_submit_one`, but for the last."""
    s, template, lives_s = submission, _template(submission), submission.lives_s
    return (
        s.job_id,
        s.plan.recipe,
        s.plan.hash,
        s.caller,
        s.priority,
        len(template.numbers),
        body,
        None if s.labels is None else encode(dict(s.labels)),
        s.idempotency_key,
        body_hash,
        s.correlation_id,
        *(s.parent or (None, None, None)),
        s.depth,
        s.retry_of,
        None if s.deadline_s is None else timedelta(seconds=s.deadline_s),
        timedelta(seconds=lives_s),
        *template.alone,
        uniform(_lanes(s)),
    )


def _job_columns(
    submissions: Sequence[Submission], bodies: list[str], hashes: Sequence[str | None]
) -> tuple[list[Any], ...]:
    counts = uniform([len(s.plan.nodes) for s in submissions])
    return (
        [s.job_id for s in submissions],
        uniform([s.plan.recipe for s in submissions]),
        uniform([s.plan.hash for s in submissions]),
        uniform([_template(s).state for s in submissions]),
        uniform([s.caller for s in submissions]),
        uniform([s.priority for s in submissions]),
        counts,
        counts,
        bodies,
        sparse([None if s.labels is None else encode(dict(s.labels)) for s in submissions]),
        sparse([s.idempotency_key for s in submissions]),
        sparse(list(hashes)),
        sparse([s.correlation_id for s in submissions]),
        sparse([s.parent[0] if s.parent else None for s in submissions]),
        sparse([s.parent[1] if s.parent else None for s in submissions]),
        sparse([s.parent[2] if s.parent else None for s in submissions]),
        uniform([s.depth for s in submissions]),
        sparse([s.retry_of for s in submissions]),
        sparse([None if s.deadline_s is None else timedelta(seconds=s.deadline_s) for s in submissions]),
    )


def _step_columns(submissions: Sequence[Submission]) -> tuple[list[Any] | None, ...]:
    first, repeats = submissions[0], 1
    like = (first.plan.hash, first.caller, first.priority, first.holds)
    if all((s.plan.hash, s.caller, s.priority, s.holds) == like for s in submissions):
        # Jobs that are submitted together are mostly alike: the columns of the first are repeated.
        columns, repeats = _columns_of(first), len(submissions)
    else:
        parts = [_columns_of(s) for s in submissions]
        columns = tuple([value for part in column for value in part] for column in zip(*parts, strict=True))
    ids = [s.job_id for s in submissions for _ in s.plan.nodes]
    short = map(uniform, columns)
    return (
        None if len(ids) == len(submissions) else ids,
        *(column if len(column) == 1 else column * repeats for column in short),
    )


def _columns_of(submission: Submission) -> tuple[list[Any], ...]:
    """The step columns of one job, but for its id."""
    template = _template(submission)
    return (
        template.numbers,
        template.states,
        template.queues_of,
        [submission.priority] * len(template.numbers),
        template.unmet,
        template.timeouts,
        _lanes(submission),
    )
