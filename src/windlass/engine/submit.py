"""Submitting: turns a plan and its inputs into a durable job, or leaves no trace.

A job's id is made before the commit, so an interrupted submit can be repeated: it finds the job. An idempotency key is
unique per caller. The same key with the same body returns the first job; with another body it is a Conflict.

A lone job commits without waiting for the disk, so a worker may begin it early. The submitter and a second request with
the same key, get their answer once it is on disk. The log is written in order: no result is on disk without its job.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg

from windlass.core.bell import Bell, RouteDue, TimerSet, WorkQueued
from windlass.core.birth import births, first_state
from windlass.core.caller import CRITICAL, PRIORITY_MAX
from windlass.core.errors import BadInput, Conflict
from windlass.core.hold import NO_HOLD, Hold
from windlass.core.lane import lane_of
from windlass.core.plan import Plan
from windlass.core.states import JobState, StepState
from windlass.store.columns import encode, sparse, uniform
from windlass.store.database import Database, flush
from windlass.store.statements import bound, ordered, sql

CORRELATION_ID_MAX = 200
BATCH_MAX = 1_000
# Engines check for overdue jobs at least this often without a bell.
_SOON_S = 10.0
BUDGET_MAX = 1_000_000_000_000
BUDGET_PLACES_MAX = 12


class Webhook(NamedTuple):
    """The address for the notice of a job's end. The secret is sealed already."""

    url: str
    secret: bytes


class Submission(NamedTuple):
    """A request for a job. `inputs` fit the plan's schema already (`recipe/schema.py` checks and completes them)."""

    plan: Plan
    inputs: Mapping[str, Any]
    job_id: UUID
    caller: str = "local"
    idempotency_key: str | None = None
    labels: Mapping[str, str] | None = None
    priority: int = 0
    deadline_s: float | None = None
    # The job's time to live. None: that of its recipe, or `default_s`, or as long as the plan needs.
    ttl_s: float | None = None
    default_s: float | None = None
    correlation_id: str | None = None
    parent: tuple[UUID, int, int] | None = None
    depth: int = 0
    retry_of: UUID | None = None
    webhook: Webhook | None = None
    # The most that the job may spend. None: as much as its recipe and its caller may.
    budget: Decimal | None = None
    # Holds on every step of the job until their owners remove them. The job is PENDING meanwhile.
    holds: Hold = NO_HOLD
    # Further parts of the request that the job does not store. The same key with other parts is a conflict.
    asked: tuple[str, ...] = ()

    @property
    def is_ttl_default(self) -> bool:
        """Whether neither the caller nor the recipe chose the time to live."""
        return self.ttl_s is None and self.plan.ttl_s is None

    @property
    def lives_s(self) -> float:
        """The job's time to live in seconds."""
        if self.ttl_s is not None:
            return self.ttl_s
        return self.default_s if self.default_s is not None and self.plan.ttl_s is None else self.plan.lives_s

    @property
    def first_state(self) -> JobState:
        """The state in which the job is made."""
        return _template(self).state

    def check(self) -> None:
        """Refuse values that the tables cannot hold or that make no sense."""
        if not -PRIORITY_MAX <= self.priority <= (CRITICAL if self.plan.is_undo else PRIORITY_MAX):
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
                raise BadInput("a job with a webhook needs a correlation id, because the feed reports its end")

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
        for text in (text for pair in labels.items() for text in pair):
            check_text(text)


def check_text(text: str) -> None:
    """Refuse text that PostgreSQL cannot store."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise BadInput("a key, label or caller is not proper text (it holds half a surrogate pair)") from None
    if "\x00" in text:
        raise BadInput("a key, label or caller holds a NUL character, which PostgreSQL cannot store")


@dataclass(frozen=True, slots=True)
class Accepted:
    """The reply to a submission. `is_new` is False when an earlier submission with the same key made the job.

    `created_at` is the time of the commit that made the job, or None if another commit may have made it.
    """

    job_id: UUID
    is_new: bool
    created_at: datetime | None = field(default=None, compare=False)


class Answers(list[Accepted | Conflict]):
    """One reply for each submission.

    `is_all_new` says that this commit made all the jobs. A job that existed before may have been seen before it was on
    disk.
    """

    is_all_new = True


async def submit(db: Database, submissions: Sequence[Submission]) -> list[Accepted | Conflict]:
    """Make the jobs in one commit. Returns a reply for each, in order; a Conflict concerns its own submission only."""
    for submission in submissions:
        submission.check()
    return await commit(db, submissions)


async def commit(db: Database, submissions: Sequence[Submission]) -> list[Accepted | Conflict]:
    """Make the jobs of submissions that were checked already."""
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
    """Store the webhooks and budgets of new jobs. A job that existed before keeps its own."""
    pairs = zip(submissions, answers, strict=True)
    made = [s for s, answer in pairs if isinstance(answer, Accepted) and answer.is_new]
    if hooks := [(s.job_id, s.caller, *s.webhook) for s in made if s.webhook is not None]:
        await connection.execute(sql("webhook_put"), *map(list, zip(*hooks, strict=True)))
    if budgets := [(s.job_id, s.budget) for s in made if s.budget is not None]:
        await connection.execute(sql("job_budget"), *map(list, zip(*budgets, strict=True)))


async def insert(connection: asyncpg.Connection, submissions: Sequence[Submission], is_ahead: bool = False) -> Answers:
    """Insert the jobs on a connection that is in use; the plans must be stored.

    With `is_ahead` a lone job commits without waiting for the disk.
    """
    bodies = [encode(submission.inputs) for submission in submissions]
    bells = _bells(submissions)
    pairs = zip(submissions, bodies, strict=True)
    hashes = [body_hash(s, body) if s.idempotency_key is not None else None for s, body in pairs]
    if len(submissions) == 1:
        lone = submissions[0]
        carried = connection.carried(bells) if is_ahead else ([], [])
        values = _values(lone, bodies[0], hashes[0], is_ahead, carried)
        rows = await connection.fetch(sql("job_submit_one"), *ordered("job_submit_one", _ONE)(values))
    else:
        columns = {**_job_columns(submissions, bodies, hashes), **_step_columns(submissions)}
        rows = await connection.fetch(*bound("job_submit", **columns))
    made = rows[0]["made"] if rows else 0
    if made and not rows[0].get("is_rung"):
        connection.ring(*bells)
    if made == len(submissions):
        created_at = rows[0]["created_at"]
        return Answers(Accepted(submission.job_id, True, created_at) for submission in submissions)
    return await _compare(connection, submissions, hashes)


def _holds(submissions: Sequence[Submission]) -> list[int]:
    """Return the holds of all steps, parallel to the step columns. Empty if no job is held."""
    if not any(s.holds for s in submissions):
        return []
    return [hold for s in submissions for hold in _template(s).holds or [0] * len(s.plan.nodes)]


def _told(submission: Submission) -> str | None:
    """Encode the payload of the job's first event: the initial holds of its steps."""
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
    return any(at_s is not None and at_s < _SOON_S for at_s in (submission.deadline_s, submission.lives_s))


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
            # Also true for a repeat of this submission after an interrupted commit.
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
    """Hash everything that was requested; `body` is the inputs as text."""
    # The recipe counts by name, not by plan: a redeploy must not turn a retry into a conflict.
    asked: list[Any] = [
        submission.plan.recipe, body, dict(submission.labels or {}), submission.priority, submission.deadline_s
    ]  # fmt: skip
    if submission.webhook is not None:
        # The secret is left out: sealing the same secret twice gives two texts.
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
    # The step columns of `job_submit_one`.
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


# The parameters of `job_submit_one` in the order of `_values`, a line there for a line here. A lone job is on its
# submitter's critical path: a mapping of thirty names would be its largest cost in Python.
_ONE = (
    "id", "recipe", "plan", "state", "caller", "priority", "steps", "input",
    "labels",
    "idempotency_key", "body_hash", "correlation_id",
    "parent_job", "parent_no", "parent_attempt", "depth", "retry_of",
    "deadline",
    "ttl", "is_ttl_default", "told",
    "step_states", "step_queues", "step_unmet", "step_timeouts", "step_lanes", "step_holds",
    "is_ahead", "channels", "payloads",
)  # fmt: skip


def _values(
    submission: Submission, body: str, body_hash: str | None, is_ahead: bool, carried: tuple[list[str], list[str]]
) -> tuple[Any, ...]:
    s, template = submission, _template(submission)
    return (
        s.job_id, s.plan.recipe, s.plan.hash, template.state, s.caller, s.priority, len(template.numbers), body,
        None if s.labels is None else encode(dict(s.labels)),
        s.idempotency_key, body_hash, s.correlation_id,
        *(s.parent or (None, None, None)), s.depth, s.retry_of,
        None if s.deadline_s is None else timedelta(seconds=s.deadline_s),
        timedelta(seconds=s.lives_s), s.is_ttl_default, _told(s),
        *template.alone, uniform(_lanes(s)), template.holds,
        is_ahead, *carried,
    )  # fmt: skip


def _job_columns(
    submissions: Sequence[Submission], bodies: list[str], hashes: Sequence[str | None]
) -> dict[str, list[Any]]:
    counts = uniform([len(s.plan.nodes) for s in submissions])
    return {
        "ids": [s.job_id for s in submissions],
        "recipes": uniform([s.plan.recipe for s in submissions]),
        "plans": uniform([s.plan.hash for s in submissions]),
        "states": uniform([_template(s).state for s in submissions]),
        "callers": uniform([s.caller for s in submissions]),
        "priorities": uniform([s.priority for s in submissions]),
        "steps_total": counts,
        "steps_open": counts,
        "inputs": bodies,
        "labels": sparse([None if s.labels is None else encode(dict(s.labels)) for s in submissions]),
        "idempotency_keys": sparse([s.idempotency_key for s in submissions]),
        "body_hashes": sparse(list(hashes)),
        "correlation_ids": sparse([s.correlation_id for s in submissions]),
        "parent_jobs": sparse([s.parent[0] if s.parent else None for s in submissions]),
        "parent_nos": sparse([s.parent[1] if s.parent else None for s in submissions]),
        "parent_attempts": sparse([s.parent[2] if s.parent else None for s in submissions]),
        "depths": uniform([s.depth for s in submissions]),
        "retries_of": sparse([s.retry_of for s in submissions]),
        "deadlines": sparse([None if s.deadline_s is None else timedelta(seconds=s.deadline_s) for s in submissions]),
        "ttls": [timedelta(seconds=one_s) for one_s in uniform([s.lives_s for s in submissions])],
        "ttl_defaults": uniform([s.is_ttl_default for s in submissions]),
        "told": sparse([_told(s) for s in submissions]),
    }


def _step_columns(submissions: Sequence[Submission]) -> dict[str, list[Any] | None]:
    first, repeats = submissions[0], 1
    like = (first.plan.hash, first.caller, first.priority, first.holds)
    if all((s.plan.hash, s.caller, s.priority, s.holds) == like for s in submissions):
        # Jobs submitted together are mostly alike: the columns of the first job are repeated.
        columns, repeats = _columns_of(first), len(submissions)
    else:
        parts = [_columns_of(s) for s in submissions]
        columns = tuple([value for part in column for value in part] for column in zip(*parts, strict=True))
    ids = [s.job_id for s in submissions for _ in s.plan.nodes]
    short = map(uniform, columns)
    repeated = (column if len(column) == 1 else column * repeats for column in short)
    return {
        "step_jobs": None if len(ids) == len(submissions) else ids,
        **dict(zip(_STEP_COLUMNS, repeated, strict=True)),
        "step_holds": _holds(submissions),
    }


_STEP_COLUMNS = (
    "step_nos", "step_states", "step_queues", "step_priorities", "step_unmet", "step_timeouts", "step_lanes"
)  # fmt: skip


def _columns_of(submission: Submission) -> tuple[list[Any], ...]:
    """Return the step columns of one job, in the order of `_STEP_COLUMNS`."""
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
