"""Claiming: the only way for a step to start.

A claim makes the step RUNNING under a new attempt number and names the worker, in one statement. It commits without
waiting for the disk. A claim that a crash undoes is claimed again; and because the log is written in order, a result on
disk has its claim on disk too.

A worker takes only steps of its own handlers, and nothing after its lease has expired; callers take turns
(`core/lane.py`). A queue with steps of only one lane is the common case, and has cheaper statements.

A claim takes nothing of a job whose verdict is older than the policy's floor. If it saw only such jobs, it has them
judged again (`engine/recheck.py`) and looks once more.

If the reply to a claim is lost, the worker holds steps that it does not know of. It calls `held` and runs the steps
that it is not running yet.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import NamedTuple
from uuid import UUID

import asyncpg

from windlass.core.errors import Broken
from windlass.core.lane import LANES_MAX, caller_of, spelled
from windlass.core.outcome import Outcome, Report, Seen
from windlass.engine.recheck import recheck
from windlass.store.database import Database
from windlass.store.drafts import lock
from windlass.store.outage import outage_of
from windlass.store.statements import bound, sql

# How many times its limit a claim reads, so that it finds steps behind locked jobs.
LOOK_AHEAD = 2
CLAIM_MAX = 500
# A claim has this many stale steps judged again at once, and looks again at most this often.
STALE_MAX = 500
RECHECKS_MAX = 3
# Large inputs of jobs whose steps this process ran lately. Inputs never change.
_LARGE: dict[UUID, str] = {}
_LARGE_MAX = 16


# Not frozen: one is made for every step, and freezing costs more than the rest of the construction.
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
    worker: UUID

    def report(self, outcome: Outcome) -> Report:
        """Build this attempt's report."""
        return Report(
            self.job_id, self.no, self.attempt, outcome, "worker", None, self.plan_hash, self.node, self.seen, None,
            self.worker,
        )  # fmt: skip


class Taken(list[Claimed]):
    """The steps that a claim took.

    `is_more` says that the claim saw more steps: beyond its limit, or in jobs that were being written. A claim by a
    worker that is not live takes nothing. With `is_lapsed` its lease expired and can still be renewed. With `is_lost`
    the worker was marked as lost and must enlist under a new id.
    """

    is_more = False
    is_lapsed = False
    is_lost = False
    # The jobs that must be judged before any of their steps may be taken.
    stale: Sequence[UUID] = ()


class Turns:
    """What one worker may claim, and where its next claim starts, so that every caller and every lane has its turn.

    Without `handlers` a worker claims any queued step.
    """

    def __init__(self, handlers: Iterable[str] | None = None, lanes_max: int = LANES_MAX) -> None:
        self.lanes_max = lanes_max
        self.handlers = None if handlers is None else spelled(handlers)
        # The lane where the last walk through each queue ended, and the caller that was served last.
        self.places: dict[str, str] = {}
        self.caller = ""
        # Whether the last claim saw several lanes.
        self.is_many = False

    def heed(self, rows: Sequence[asyncpg.Record]) -> None:
        """Remember where a wide claim (`step_claim`) ended."""
        self.is_many = bool(rows) and rows[0]["lane"] is not None
        if self.is_many:
            self.caller = caller_of(max(rows, key=_rank)["lane"])
            for row in sorted(rows, key=_pos):
                self.places[row["queue"]] = row["lane"]


_rank, _pos = itemgetter("rank"), itemgetter("pos")


async def claim(
    db: Database,
    *,
    worker: UUID,
    queues: Sequence[str],
    limit: int,
    is_idle: bool = False,
    turns: Turns | None = None,
) -> Taken:
    """Take up to `limit` steps. A lost connection is not retried: the caller then asks `held`.

    An idle worker is mostly woken by a single job. With `is_idle` the claim takes one step of one queue, which is
    cheaper, and reports whether there are more. The worker keeps `turns` from claim to claim.
    """
    if limit < 1:
        raise Broken(f"a claim needs a limit of at least 1, not {limit}: its empty result would mean an empty queue")
    count = min(limit, CLAIM_MAX)
    asked = _Asked(worker, list(queues), count, is_idle or count == 1, turns or Turns())
    taken = await _attempt(db, asked)
    for _ in range(RECHECKS_MAX):
        if not taken.stale:
            return taken
        await recheck(db, taken.stale)
        taken = await _attempt(db, asked)
    # The next claim goes on with the rest of the queue.
    taken.is_more = taken.is_more or bool(taken.stale)
    return taken


async def _attempt(db: Database, asked: _Asked) -> Taken:
    try:
        return await db.attempt(lambda connection: _claim(connection, asked))
    except Exception as error:
        # The server may have committed the claim: the caller asks `held`.
        if (outage := outage_of(error)) is not None:
            raise outage.error() from error
        raise


class _Asked(NamedTuple):
    worker: UUID
    queues: list[str]
    limit: int
    is_lone: bool
    turns: Turns


async def _claim(connection: asyncpg.Connection, asked: _Asked) -> Taken:
    # Distinguishing lanes costs time, and one queue mostly holds steps of one lane.
    is_wide = len(asked.queues) > 1 or asked.turns.is_many
    rows = await (_claim_wide(connection, asked) if is_wide else _claim_lane(connection, asked))
    if not rows:
        first = await connection.fetchrow(sql("step_first_queued"), asked.worker, asked.queues, asked.turns.handlers)
        if first is None or not (first["is_known"] and first["is_live"]):
            return _not_live(is_lost=first is None or not first["is_known"])
        if first["is_stale"]:
            return await _stale(connection, first)
        if first["job_id"] is not None:
            rows = await _claim_contended(connection, asked, first, is_wide=is_wide)
    taken = Taken(_claimed(rows, await _inputs(connection, rows), asked.worker))
    taken.is_more = bool(rows) and (rows[0]["seen"] > len(rows) or rows[0]["is_full"])
    return taken


async def _stale(connection: asyncpg.Connection, first: asyncpg.Record) -> Taken:
    taken = Taken()
    rows = await connection.fetch(sql("step_stale"), first["queue"], first["lane"], STALE_MAX)
    taken.stale = [row["id"] for row in rows]
    return taken


async def _claim_contended(
    connection: asyncpg.Connection, asked: _Asked, first: asyncpg.Record, *, is_wide: bool
) -> list[asyncpg.Record]:
    """Take steps after a claim that took none although steps are queued.

    Either the queue holds several lanes, or writers hold the locks of every job that the claim read. A wide claim finds
    more than a claim of one lane only in the first case.
    """
    rows: list[asyncpg.Record] = []
    is_one_lane = not is_wide and first["is_one_lane"]
    if asked.is_lone and is_one_lane:
        # A lone claim reads only the first two jobs.
        rows = await _claim_lane(connection, asked._replace(is_lone=False))
    elif not is_wide and not is_one_lane:
        rows = await _claim_wide(connection, asked)
    if not rows:
        async with connection.transaction():
            await connection.execute(sql("step_fence"))
            await lock(connection, [first["job_id"]])
            if is_one_lane:
                rows = await _claim_lane(connection, asked._replace(is_lone=False))
            # Steps of another lane may have arrived in the meantime.
            rows = rows or await _claim_wide(connection, asked)
    return rows


async def _claim_lane(connection: asyncpg.Connection, asked: _Asked) -> list[asyncpg.Record]:
    """Take steps of a queue that holds only one lane."""
    payload = f'{{"worker":"{asked.worker}"}}'
    queue, handlers = asked.queues[0], asked.turns.handlers
    rows: list[asyncpg.Record]
    if asked.is_lone:
        rows = await connection.fetch(
            *bound(
                "step_claim_one", worker=asked.worker, queue=queue, looks=LOOK_AHEAD, told=payload, handlers=handlers
            )
        )
    else:
        rows = await connection.fetch(
            *bound(
                "step_claim_lane",
                worker=asked.worker,
                queue=queue,
                most=asked.limit,
                looks=asked.limit * LOOK_AHEAD,
                told=payload,
                handlers=handlers,
            )
        )
    return rows


async def _claim_wide(connection: asyncpg.Connection, asked: _Asked) -> list[asyncpg.Record]:
    """Take steps of any lanes, in turns."""
    turns = asked.turns
    rows: list[asyncpg.Record] = await connection.fetch(
        *bound(
            "step_claim",
            worker=asked.worker,
            queues=asked.queues,
            most=asked.limit,
            looks=asked.limit * LOOK_AHEAD,
            told=f'{{"worker":"{asked.worker}"}}',
            handlers=turns.handlers,
            places=[turns.places.get(queue, "") for queue in asked.queues],
            caller=turns.caller,
            lanes_max=turns.lanes_max,
        )
    )
    turns.heed(rows)
    return rows


def _not_live(*, is_lost: bool) -> Taken:
    taken = Taken()
    taken.is_lost, taken.is_lapsed = is_lost, not is_lost
    return taken


class Waiting(NamedTuple):
    """Queues that hold a step to claim, and whether the worker holds an attempt."""

    queues: list[str]
    is_holding: bool


async def waiting(db: Database, queues: Sequence[str], worker: UUID | None = None) -> Waiting:
    """Find the given queues that hold a step to claim, and whether the worker holds an attempt."""
    row = await db.run(lambda connection: connection.fetchrow(sql("step_waiting"), list(queues), worker))
    assert row is not None
    return Waiting(*row)


async def held(db: Database, worker: UUID) -> list[Claimed]:
    """Return every attempt that this worker holds according to the database."""
    rows = await db.run(lambda connection: connection.fetch(sql("step_held"), worker))
    return _claimed(rows, {row["job_id"]: row["input"] for row in rows}, worker)


async def _inputs(connection: asyncpg.Connection, rows: Sequence[asyncpg.Record]) -> dict[UUID, str]:
    """Return the inputs of every job.

    Small inputs come with the job's first step. Large inputs are read once and cached for a while.
    """
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
    """Return the (job, step number, attempt) of every attempt that this worker holds."""
    rows = await db.run(lambda connection: connection.fetch(sql("step_held_keys"), worker))
    return {(row["job_id"], row["no"], row["attempt"]) for row in rows}


def _claimed(rows: Sequence[asyncpg.Record], inputs: Mapping[UUID, str], worker: UUID) -> list[Claimed]:
    # Unpacked by position: looking up twenty names costs more than everything else done for a row.
    return [
        Claimed(
            job_id, no, attempt, plan, node, index, inputs[job_id], item, checkpoint, failures, timeout_s, deadline_s,
            Seen(version, is_preview, is_paused, total, open_, failed, has_parent, correlation_id, failures, losses),
            worker,
        )
        for (
            job_id, no, attempt, plan, node, index, item, checkpoint, failures, timeout_s, deadline_s,
            version, is_preview, is_paused, total, open_, failed, has_parent, correlation_id, losses, *_,
        ) in rows
    ]  # fmt: skip
