"""Child jobs: what a job hands down to the jobs it starts, and which jobs it may not start.

    a recipe as a step    the router starts the child; the step is parked until the parent notifier brings its end
    a handler's spawn     `spawn`: no step waits for the child; the handler arranges how it learns of the end

Both hand down the caller, the correlation id, the priority and the deadline: a child's deadline is never later than its
parent's. A step's child has its parent's time to live unless the step sets one; a spawned job has its own. Both are
cancelled when the job that started them ends early. A chain of jobs is at most DEPTH_MAX deep. No job may start a job
with the recipe and inputs of an ancestor: that chain would never end.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.errors import BadInput, Conflict, Denied, TooLarge, WrongState
from windlass.core.plan import TTL_S, Plan
from windlass.core.signal import same
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.engine.asker import Asker, stored_asker
from windlass.engine.door import enter, gated
from windlass.engine.policies import Current
from windlass.engine.recipes import latest
from windlass.engine.submit import Answer, Submission, check_text, insert
from windlass.recipe.schema import check_inputs
from windlass.store import drafts
from windlass.store.columns import encode
from windlass.store.database import Database
from windlass.store.statements import sql

DEPTH_MAX = 16
# The most jobs that one step's handler may start.
SPAWNED_MAX = 1_000
# The parent attempt of a spawned job. Real attempts count from 1, so `settle` refuses the report of the job's end.
NO_ATTEMPT = 0
MOMENT_S = 0.001
_KEY_MAX = 150


class Kin(NamedTuple):
    """The properties that a job hands down to the jobs it starts."""

    caller: str
    priority: int
    depth: int
    correlation_id: str | None
    # The parent's remaining time. A deadline must be positive, so a child of an overdue parent gets MOMENT_S.
    deadline_s: float | None
    ttl_s: float | None
    is_ttl_default: bool
    retry_of: UUID | None
    # The nodes that a re-run from a step runs again, as a JSON list of numbers.
    fresh: str | None = None
    # The facts about the caller, as JSON; None if the job was not judged.
    asker: str | None = None

    def child_of(self, node: int) -> UUID | None:
        """Return the old job, if the new child at this node may continue the child that the old job had there."""
        return None if self.fresh is not None and node in msgspec.json.decode(self.fresh) else self.retry_of

    def submission(self, job_id: UUID, plan: Plan, inputs: Mapping[str, Any], ttl_s: float | None) -> Submission:
        """Build the submission of a child job.

        The child lives for `ttl_s`, or for its recipe's time to live, or as long as its parent. If the parent has the
        default time to live, a child with longer waits lives longer, and the expirer makes the parent wait for it.
        """
        chosen_s = ttl_s or plan.ttl_s
        same_s = max(MOMENT_S, self.ttl_s or TTL_S)
        is_longer = self.is_ttl_default and plan.lives_s - TTL_S >= same_s
        return Submission(
            plan=plan,
            inputs=inputs,
            job_id=job_id,
            caller=self.caller,
            priority=self.priority,
            correlation_id=self.correlation_id,
            depth=self.depth + 1,
            deadline_s=None if self.deadline_s is None else max(MOMENT_S, self.deadline_s),
            ttl_s=chosen_s if chosen_s is not None else None if self.is_ttl_default else same_s,
            default_s=None if is_longer else same_s,
            asker=self.known,
        )

    @property
    def known(self) -> Asker | None:
        """The asker of the job, who asks for its children too."""
        return None if self.asker is None else stored_asker(self.caller, msgspec.json.decode(self.asker))


class Line:
    """The jobs that are about to start children, with the ancestors that could form a cycle."""

    def __init__(self, kin: Mapping[UUID, Kin], above: Mapping[tuple[UUID, str], list[tuple[UUID, Any]]]) -> None:
        self.kin = kin
        self._above = above

    @classmethod
    async def load(cls, connection: asyncpg.Connection, calls: Iterable[tuple[UUID, str]]) -> Line:
        """Load the jobs and the ancestors that run the recipes to be started."""
        pairs = sorted(set(calls))
        ids = sorted({job_id for job_id, _ in pairs})
        kin = {row["id"]: Kin(*row[1:]) for row in await connection.fetch(sql("child_kin"), ids)}
        rows = await connection.fetch(sql("child_above"), [job_id for job_id, _ in pairs], [name for _, name in pairs])
        above: dict[tuple[UUID, str], list[tuple[UUID, Any]]] = {}
        for row in rows:
            above.setdefault((row["start"], row["recipe"]), []).append((row["id"], msgspec.json.decode(row["input"])))
        return cls(kin, above)

    def check(self, job_id: UUID, recipe: str, inputs: Mapping[str, Any]) -> None:
        """Refuse a child that would be too deep, or that repeats an ancestor."""
        if self.kin[job_id].depth >= DEPTH_MAX:
            raise BadInput(
                f"recipes call each other {DEPTH_MAX} deep, which is the limit", remedy="Flatten them, or use a fan-out"
            )
        for ancestor, given in self._above.get((job_id, recipe), ()):
            if same(given, inputs):
                raise BadInput(
                    f"a cycle: job {ancestor} is already {recipe} with the same inputs, and this would be below it",
                    remedy="Give the inner job other inputs, or remove it",
                )


async def hand_down(connection: asyncpg.Connection, started: Sequence[UUID]) -> None:
    """Limit the deadlines of new child jobs to those of their parents."""
    await connection.execute(sql("child_deadline"), list(started))


async def kept_children(
    connection: asyncpg.Connection, calls: Sequence[tuple[UUID, int, int | None, Submission]]
) -> dict[UUID, UUID]:
    """Find the failed children that the new children of retried jobs continue.

    A call is an old job, a node, an index and the new child. The failed child must have the same plan and inputs.
    Returns old ids by new ids.
    """
    if not calls:
        return {}
    rows = await connection.fetch(sql("child_before"), [of for of, *_ in calls], [node for _, node, *_ in calls])
    before = {(row["parent_job"], row["node"], row["index"]): row for row in rows}
    return {
        new.job_id: row["id"]
        for of, node, index, new in calls
        if (row := before.get((of, node, index))) is not None
        and row["plan"] == new.plan.hash
        and same(msgspec.json.decode(row["input"]), new.inputs)
    }


async def spawn(
    db: Database,
    new_id: UUID,
    at: tuple[UUID, int, int],
    recipe: str,
    inputs: Mapping[str, Any] | None = None,
    *,
    key: str | None = None,
    worker: UUID | None = None,
) -> UUID:
    """Start a job from the handler that runs this attempt (job, step, attempt) on this worker. Returns the job's id.

    The same `key` in the same step returns the same job, so a later attempt finds the job that an earlier one started.
    Without a key, the recipe and the inputs are the key. No step waits for the job: the handler returns `Parked` and is
    completed by token, or continues without it. The job is cancelled if the handler's job ends early. Raises Denied
    if the policy denies the job.
    """
    plan = await latest(db, recipe)
    checked = check_inputs(plan, inputs)
    job_id, no, attempt = at
    own_key = f"spawn:{job_id}:{no}:{_key(key, recipe, checked)}"

    async def operation(connection: asyncpg.Connection, gate: Current) -> Answer:
        async with connection.transaction():
            await enter(connection, gate)
            # The lock orders this spawn before or after the job's end: a job that ends cancels its children, and must
            # see this one.
            await drafts.lock(connection, [job_id])
            row = await connection.fetchrow(sql("child_spawner"), job_id, no)
            _check_current(row, job_id, attempt, worker)
            line = await Line.load(connection, [(job_id, recipe)])
            kin = line.kin[job_id]
            if await connection.fetchval(sql("job_by_key"), kin.caller, own_key) is None:
                line.check(job_id, recipe, checked)
                if row["spawned"] >= SPAWNED_MAX:
                    raise TooLarge(f"the step has started {SPAWNED_MAX:,} jobs, which is the limit")
            new = kin.submission(new_id, plan, checked, None)._replace(ttl_s=None, default_s=None)
            # The deadline is left out of the comparison: the remaining time differs on every attempt.
            new = new._replace(idempotency_key=own_key, parent=(job_id, no, NO_ATTEMPT), deadline_s=None)
            new.check()
            [answer] = await insert(connection, [new], gate)
            if isinstance(answer, Conflict):
                raise Conflict(
                    f"the key {key!r} was used in this step for another job, {recipe} with other inputs",
                    remedy="Use one key for one sub-job",
                )
            if not isinstance(answer, Denied) and answer.is_new and kin.deadline_s is not None:
                await hand_down(connection, [answer.job_id])
        return answer

    answer = await gated(db, operation)
    if isinstance(answer, Conflict | Denied):
        raise answer
    return answer.job_id


def _key(key: str | None, recipe: str, inputs: Mapping[str, Any]) -> str:
    if key is None:
        return hashlib.sha256(encode([recipe, inputs]).encode()).hexdigest()
    check_text(key)
    if not key:
        raise BadInput("a sub-job's key has at least one character")
    # The prefix keeps a key from colliding with a digest.
    return f"={key}" if len(key) <= _KEY_MAX else hashlib.sha256(key.encode()).hexdigest()


def _check_current(row: asyncpg.Record | None, job_id: UUID, attempt: int, worker: UUID | None) -> None:
    is_open = row is not None and JobState(row["job_state"]) not in JOB_TERMINAL
    is_ours = row is not None and row["attempt"] == attempt and worker in (None, row["worker"])
    if row is None or not is_open or not is_ours or row["state"] != StepState.RUNNING:
        raise WrongState(
            f"attempt {attempt} of a step of job {job_id} is over", remedy="An attempt that is over can start nothing"
        )
