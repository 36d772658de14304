"""The rows of new jobs, as columns for the statements `job_submit` and `job_submit_one`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any, NamedTuple

from windlass.core.birth import births, first_state
from windlass.core.hold import Hold
from windlass.core.lane import lane_of
from windlass.core.states import JobState, StepState
from windlass.engine.submission import Submission
from windlass.store.columns import encode, sparse, uniform
from windlass.store.statements import bound, ordered, sql


class Marks(NamedTuple):
    """What the policy said about jobs that are made together: the policy's number, and for each job its good verdict.

    `judged_by` is None if no job is judged. The commit is refused if another policy is in force by then. `told` has the
    payloads of the jobs' first events, without their holds.
    """

    judged_by: int | None = None
    policies: Sequence[int | None] = ()
    rules: Sequence[str | None] = ()
    told: Sequence[Mapping[str, Any]] = ()


UNJUDGED = Marks()


def state_of(submission: Submission) -> JobState:
    """Return the state in which the job is made."""
    return JobState.DENIED if submission.is_denied else _template(submission).state


def queues_of(submission: Submission) -> frozenset[str]:
    """Return the queues in which the job's first steps are."""
    return _template(submission).queues


def has_ready(submission: Submission) -> bool:
    """Return whether the router must resolve a step of the new job."""
    return _template(submission).has_ready


def _holds(submissions: Sequence[Submission]) -> list[int]:
    """Return the holds of all steps, parallel to the step columns. Empty if no job is held."""
    if not any(s.holds for s in submissions):
        return []
    return [hold for s in submissions for hold in _template(s).holds or [0] * len(s.plan.nodes)]


def _told(submission: Submission, more: Mapping[str, Any] | None = None) -> str | None:
    """Encode the payload of the job's first event: the initial holds of its steps, and what the policy was told."""
    payload: dict[str, Any] = {**(more or {})}
    if submission.holds:
        payload["holds"] = int(submission.holds)
    if submission.is_denied:
        payload["is_denied"] = True
    return encode(payload) if payload else None


def _all_told(submissions: Sequence[Submission], marks: Marks) -> list[str | None]:
    if not marks.told:
        return sparse([_told(s) for s in submissions])
    first = marks.told[0]
    if all(more is first for more in marks.told) and not any(s.holds or s.is_denied for s in submissions):
        return [_told(submissions[0], first)]
    found = [_told(s, more) for s, more in zip(submissions, marks.told, strict=True)]
    # Jobs that are submitted together mostly have the same caller.
    return found if None in found else uniform(found)


def _short(column: Sequence[Any]) -> list[Any]:
    """Return a column that may have NULLs: one element if all are equal."""
    return uniform(list(column))


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
def _template_of(plan_hash: str, holds: Hold, is_denied: bool) -> list[_Template]:
    return []


def _template(submission: Submission) -> _Template:
    plan = submission.plan
    kept = _template_of(plan.hash, submission.holds, submission.is_denied)
    if not kept:
        first = births(plan, submission.holds, is_denied=submission.is_denied)
        queues = frozenset(n.queue for n, s in zip(plan.nodes, first, strict=True) if s.state is StepState.QUEUED)
        states = [str(start.state) for start in first]
        queues_of = [node.queue for node in plan.nodes]
        unmet = [start.unmet for start in first]
        timeouts = [node.timeout_s for node in plan.nodes]
        kept.append(
            _Template(
                first_state([start.state for start in first], submission.holds),
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
    "judged_by", "policy", "rule",
)  # fmt: skip


def lone_statement(
    submission: Submission,
    body: str,
    body_hash: str | None,
    is_ahead: bool,
    carried: tuple[list[str], list[str]],
    marks: Marks = UNJUDGED,
) -> tuple[Any, ...]:
    """Return `job_submit_one` with its values."""
    values = _values(submission, body, body_hash, is_ahead, carried, marks)
    return sql("job_submit_one"), *ordered("job_submit_one", _ONE)(values)


def _values(
    submission: Submission,
    body: str,
    body_hash: str | None,
    is_ahead: bool,
    carried: tuple[list[str], list[str]],
    marks: Marks,
) -> tuple[Any, ...]:
    s, template = submission, _template(submission)
    policy, rule, told = (marks.policies[0], marks.rules[0], marks.told[0]) if marks.told else (None, None, None)
    return (
        s.job_id, s.plan.recipe, s.plan.hash, template.state, s.caller, s.priority, len(template.numbers), body,
        None if s.labels is None else encode(dict(s.labels)),
        s.idempotency_key, body_hash, s.correlation_id,
        *(s.parent or (None, None, None)), s.depth, s.retry_of,
        None if s.deadline_s is None else timedelta(seconds=s.deadline_s),
        timedelta(seconds=s.lives_s), s.is_ttl_default, _told(s, told),
        *template.alone, uniform(_lanes(s)), template.holds,
        is_ahead, *carried,
        marks.judged_by, policy, rule,
    )  # fmt: skip


def batch_statement(
    submissions: Sequence[Submission],
    bodies: list[str],
    hashes: Sequence[str | None],
    marks: Marks = UNJUDGED,
    *,
    is_listed: bool = False,
) -> tuple[Any, ...]:
    """Return `job_submit` with its values. `is_listed` asks for the ids of the jobs that it makes."""
    columns = {**_job_columns(submissions, bodies, hashes, marks), **_step_columns(submissions)}
    return bound("job_submit", **columns, judged_by=marks.judged_by, is_listed=is_listed)


def _job_columns(
    submissions: Sequence[Submission], bodies: list[str], hashes: Sequence[str | None], marks: Marks
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
        "told": _all_told(submissions, marks),
        "policies": _short(marks.policies),
        "rules": _short(marks.rules),
    }


def _step_columns(submissions: Sequence[Submission]) -> dict[str, list[Any] | None]:
    first, repeats = submissions[0], 1
    like = (first.plan.hash, first.caller, first.priority, first.holds, first.is_denied)
    if all((s.plan.hash, s.caller, s.priority, s.holds, s.is_denied) == like for s in submissions):
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
