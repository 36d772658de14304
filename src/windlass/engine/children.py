"""Jobs inside jobs: what a job hands down to those that it starts, and what it may not start.

    a recipe as a step    the router starts the child; the step is parked until the relay brings its end
    a handler's own       `spawn`: nobody waits for it but the handler, which is told as it arranged itself

Both hand down the caller, the correlation id, the priority and the deadline: a child never has longer than its parent.
A step's child lives as long as its parent unless the step says how long; a spawned one has a life of its own.
Both are cancelled when the job that started them ends before its time. A chain of jobs is at most DEPTH_MAX deep, and
none may start a job of the same recipe with the same inputs as one above it: that would go on for ever.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.errors import BadInput, Conflict, TooLarge, WrongState
from windlass.core.plan import TTL_S, Plan
from windlass.core.signal import same
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.engine.recipes import latest
from windlass.engine.submit import Submission, check_text, insert
from windlass.recipe.schema import check_inputs
from windlass.store import drafts
from windlass.store.database import Database
from windlass.store.statements import sql

DEPTH_MAX = 16
# How many jobs one step's handler may start.
SPAWNED_MAX = 1_000
# A spawned job answers to no attempt: those count from 1, so the word of its end is refused by the one door.
NO_ATTEMPT = 0
MOMENT_S = 0.001
_KEY_MAX = 150


class Kin(NamedTuple):
    """What is handed down by the job that starts another."""

    caller: str
    priority: int
    depth: int
    correlation_id: str | None
    # How long it has itself. A child is given no less than a moment: its parent ends with it.
    deadline_s: float | None
    ttl_s: float | None
    is_ttl_default: bool
    retry_of: UUID | None
    # The numbers of the nodes that run afresh in a re-run from a step, as JSON.
    fresh: str | None = None

    def child_of(self, node: int) -> UUID | None:
        """The job among whose children one may be that goes on in a child of this node."""
        return None if self.fresh is not None and node in msgspec.json.decode(self.fresh) else self.retry_of

    def submission(self, job_id: UUID, plan: Plan, inputs: Mapping[str, Any], ttl_s: float | None) -> Submission:
        """A job that takes all of it over.

        It lives for `ttl_s`, or as its recipe says, or as long as the job that starts it. If that job has a default, a
        child with longer waits lives longer, and the expirer lets its parent wait for it.
        """
        own = ttl_s or plan.ttl_s
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
            ttl_s=own if own is not None else None if self.is_ttl_default else same_s,
            default_s=None if is_longer else same_s,
        )


class Line:
    """The jobs that are about to start others, and those above them that could be started again by mistake."""

    def __init__(self, kin: Mapping[UUID, Kin], above: Mapping[tuple[UUID, str], list[tuple[UUID, Any]]]) -> None:
        self.kin = kin
        self._above = above

    @classmethod
    async def load(cls, connection: asyncpg.Connection, calls: Iterable[tuple[UUID, str]]) -> Line:
        """For jobs and the recipes that each is about to start."""
        pairs = sorted(set(calls))
        ids = sorted({job_id for job_id, _ in pairs})
        kin = {row["id"]: Kin(*row[1:]) for row in await connection.fetch(sql("child_kin"), ids)}
        rows = await connection.fetch(sql("child_above"), [job_id for job_id, _ in pairs], [name for _, name in pairs])
        above: dict[tuple[UUID, str], list[tuple[UUID, Any]]] = {}
        for row in rows:
            above.setdefault((row["start"], row["recipe"]), []).append((row["id"], msgspec.json.decode(row["input"])))
        return cls(kin, above)

    def check(self, job_id: UUID, recipe: str, inputs: Mapping[str, Any]) -> None:
        """Refuse a child that would be too deep, or that is its own ancestor."""
        if self.kin[job_id].depth >= DEPTH_MAX:
            raise BadInput(
                f"recipes call each other {DEPTH_MAX} deep, which is the limit", remedy="Flatten them, or use a fan-out"
            )
        for ancestor, given in self._above.get((job_id, recipe), ()):
            if same(given, inputs):
                raise BadInput(
                    f"a cycle: job {ancestor} is already {recipe} with the same inputs, and this would be below it",
                    remedy="Give the inner one other inputs, or none of it",
                )


async def hand_down(connection: asyncpg.Connection, started: Sequence[UUID]) -> None:
    """Give jobs that were just made no longer than the jobs that started them."""
    await connection.execute(sql("child_deadline"), list(started))


async def kept_children(
    connection: asyncpg.Connection, calls: Sequence[tuple[UUID, int, int | None, Submission]]
) -> dict[UUID, UUID]:
    """Of steps of retried jobs (node and index): the child that failed there before, if it was this very one, by the
    new child's id.
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
    """Start a job from within the handler that runs at this job, step and attempt, on this worker; gives the job's id.

    The same `key` in the same step gives the same job, so an attempt that is made again finds what the last one
    started; without a key the recipe and the inputs are it. Nobody waits for the job: the handler returns `Parked` and
    is completed by token, or goes on without it. It is cancelled if the handler's job is cancelled, fails at once or
    runs out of time before it.
    """
    plan = await latest(db, recipe)
    checked = check_inputs(plan, inputs)
    job_id, no, attempt = at
    own = f"spawn:{job_id}:{no}:{_key(key, recipe, checked)}"

    async def operation(connection: asyncpg.Connection) -> UUID:
        async with connection.transaction():
            # Under the lock: a job that ends meanwhile cancels its children, and must see this one.
            await drafts.lock(connection, [job_id])
            row = await connection.fetchrow(sql("child_spawner"), job_id, no)
            _check_current(row, job_id, attempt, worker)
            line = await Line.load(connection, [(job_id, recipe)])
            kin = line.kin[job_id]
            if await connection.fetchval(sql("job_by_key"), kin.caller, own) is None:
                line.check(job_id, recipe, checked)
                if row["spawned"] >= SPAWNED_MAX:
                    raise TooLarge(f"the step has started {SPAWNED_MAX:,} jobs, which is the limit")
            new = kin.submission(new_id, plan, checked, None)._replace(ttl_s=None, default_s=None)
            # Without the deadline while it is compared: what is left is another on every attempt.
            new = new._replace(idempotency_key=own, parent=(job_id, no, NO_ATTEMPT), deadline_s=None)
            new.check()
            [answer] = await insert(connection, [new])
            if isinstance(answer, Conflict):
                raise Conflict(
                    f"the key {key!r} was used in this step for another job, {recipe} with other inputs",
                    remedy="Use one key for one sub-job",
                )
            if answer.is_new and kin.deadline_s is not None:
                await hand_down(connection, [answer.job_id])
        return answer.job_id

    return await db.run(operation)


def _key(key: str | None, recipe: str, inputs: Mapping[str, Any]) -> str:
    if key is None:
        return hashlib.sha256(drafts.encode([recipe, inputs]).encode()).hexdigest()
    check_text(key)
    if not key:
        raise BadInput("a sub-job's key has at least one character")
    # Marked, so that no key can be another's digest.
    return f"={key}" if len(key) <= _KEY_MAX else hashlib.sha256(key.encode()).hexdigest()


def _check_current(row: asyncpg.Record | None, job_id: UUID, attempt: int, worker: UUID | None) -> None:
    is_open = row is not None and JobState(row["job_state"]) not in JOB_TERMINAL
    is_ours = row is not None and row["attempt"] == attempt and worker in (None, row["worker"])
    if row is None or not is_open or not is_ours or row["state"] != StepState.RUNNING:
        raise WrongState(
            f"attempt {attempt} of a step of job {job_id} is over", remedy="An attempt that is over can start nothing"
        )
