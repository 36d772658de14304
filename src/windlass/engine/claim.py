"""Claiming: the one door through which a step starts.

A claim makes the step RUNNING under a new attempt number and names the worker, in one statement. It commits without
waiting for the disk: a claim that a crash undoes is only claimed again, and as the log is written in order, a result
that is on disk has its claim on disk too.

If the answer of a claim is lost on the way, the worker holds steps that it does not know of. It asks `held` and runs
what it is not running yet.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import asyncpg

from windlass.core.errors import Broken, DatabaseUnavailable
from windlass.core.outcome import Outcome, Report, Seen
from windlass.store.database import Database, is_transient
from windlass.store.drafts import lock
from windlass.store.statements import sql

# How far a claim looks beyond what it takes, so that it finds work behind jobs that are locked.
LOOK_AHEAD = 2
CLAIM_MAX = 500
# Large inputs of jobs whose steps this process ran lately. Inputs never change.
_LARGE: dict[UUID, str] = {}
_LARGE_MAX = 16


# Not frozen, as one is made for every step that runs, and freezing takes longer than all else that making it does.
@dataclass(slots=True)
class Claimed:
    """A step that this worker must now run. `input`, `item` and `checkpoint` are JSON texts."""

    job_id: UUID
    no: int
    attempt: int
    plan_hash: str
    node: int
    index: int | None
    input: str
    item: str | None
    checkpoint: str | None
    failures: int
    timeout_s: float
    deadline_s: float | None
    seen: Seen

    def report(self, outcome: Outcome) -> Report:
        """What this attempt has to say."""
        return Report(
            self.job_id, self.no, self.attempt, outcome, plan_hash=self.plan_hash, node=self.node, seen=self.seen
        )


class Taken(list[Claimed]):
    """What a claim took. `is_more` says that it saw more: behind its limit, or in jobs that were being written to."""

    is_more = False


async def claim(db: Database, *, worker: UUID, queues: Sequence[str], limit: int, is_idle: bool = False) -> Taken:
    """Take up to `limit` steps. Not done again when the connection is lost: the caller then asks `held`.

    What wakes an idle worker is mostly one job: with `is_idle` one step of one queue is taken, at a lower price, and
    the answer says whether there was more.
    """
    if limit < 1:
        raise Broken(f"a claim of {limit} steps would find nothing, and be taken to mean that there is nothing")
    count = min(limit, CLAIM_MAX)
    is_lone = len(queues) == 1 and (is_idle or count == 1)
    try:
        return await db.attempt(lambda connection: _claim(connection, worker, list(queues), count, is_lone))
    except Exception as error:
        if is_transient(error):
            raise DatabaseUnavailable(f"a claim's answer was lost: {str(error) or type(error).__name__}") from error
        raise


async def _claim(connection: asyncpg.Connection, worker: UUID, queues: list[str], count: int, is_lone: bool) -> Taken:
    payload = f'{{"worker":"{worker}"}}'
    arguments = (worker, queues, count, count * LOOK_AHEAD, payload)
    if is_lone:
        rows = await connection.fetch(sql("step_claim_one"), worker, queues[0], LOOK_AHEAD, payload)
    else:
        rows = await connection.fetch(sql("step_claim"), *arguments)
    if not rows:
        first = await connection.fetchval(sql("step_first_queued"), queues)
        if first is not None and is_lone:
            # Others write to the jobs that were looked at; a claim for many looks further.
            return await _claim(connection, worker, queues, count, False)
        if first is not None:
            # All that was looked at belongs to jobs that are being written to: wait for the first.
            async with connection.transaction():
                await lock(connection, [first])
                rows = await connection.fetch(sql("step_claim"), *arguments)
    taken = Taken(_claimed(rows, await _inputs(connection, rows)))
    taken.is_more = bool(rows) and rows[0]["seen"] > len(rows)
    return taken


async def held(db: Database, worker: UUID) -> list[Claimed]:
    """Everything that the database says this worker is running."""
    rows = await db.run(lambda connection: connection.fetch(sql("step_held"), worker))
    return _claimed(rows, {row["job_id"]: row["input"] for row in rows})


async def _inputs(connection: asyncpg.Connection, rows: Sequence[asyncpg.Record]) -> dict[UUID, str]:
    """Every job's inputs. Small ones come with the job's first step; a large one is read once and kept a while."""
    inputs: dict[UUID, str] = {row["job_id"]: row["input"] for row in rows if row["input"] is not None}
    if len(inputs) == len(rows):
        return inputs
    large = {row["job_id"] for row in rows} - inputs.keys()
    unknown = sorted(large - _LARGE.keys())
    if unknown:
        for row in await connection.fetch(sql("job_inputs"), unknown):
            _LARGE[row["id"]] = row["input"]
    inputs.update((job_id, _LARGE[job_id]) for job_id in large)
    while len(_LARGE) > _LARGE_MAX:
        del _LARGE[next(iter(_LARGE))]
    return inputs


async def held_keys(db: Database, worker: UUID) -> set[tuple[UUID, int, int]]:
    """The same by (job, step number, attempt) only; an attempt that is not among them is no longer this worker's."""
    rows = await db.run(lambda connection: connection.fetch(sql("step_held_keys"), worker))
    return {(row["job_id"], row["no"], row["attempt"]) for row in rows}


def _claimed(rows: Sequence[asyncpg.Record], inputs: Mapping[UUID, str]) -> list[Claimed]:
    # Taken apart by place, as looking up twenty names takes longer than all else that is done for a row.
    return [
        Claimed(
            job_id, no, attempt, plan, node, index, inputs[job_id], item, checkpoint, failures, timeout_s, deadline_s,
            Seen(version, is_preview, is_paused, total, open_, failed, has_parent, correlation_id, failures, losses),
        )
        for (
            job_id, no, attempt, plan, node, index, item, checkpoint, failures, timeout_s, deadline_s,
            version, is_preview, is_paused, total, open_, failed, has_parent, correlation_id, losses, *_,
        ) in rows
    ]  # fmt: skip
