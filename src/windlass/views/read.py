"""Reads jobs, their steps, events and results, and waits for their end."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.bell import JobsEnded, ToldOutput
from windlass.core.errors import BadInput, NotFound, WaitTimeout, WrongState
from windlass.core.plan import Plan
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.core.template import Resolver, plan_templates
from windlass.core.visibility import Content, Reader
from windlass.pure.event_key import event_key
from windlass.store import values
from windlass.store.artifact import Artifacts, ref_in
from windlass.store.database import Database, flush
from windlass.store.outputs import Row, check_visible, fetch, fetchrow
from windlass.store.plans import plan_of
from windlass.store.statements import sql
from windlass.store.values import outputs_of, scope

PAGE_MAX = 1_000
STUCK_AFTER_S = 30 * 60
# A bell can be lost, so a waiter checks this often without one.
LOOK_EVERY_S = 5.0
_ENDED_MAX = 10_000
# Events that may be visible before they are on disk.
_AHEAD = ("job.submitted", "job.processing", "step.running")
# The most jobs whose events one read covers.
_JOBS_MAX = 1_000
_TROUBLE = JOB_TERMINAL - {JobState.COMPLETED}


@dataclass(frozen=True, slots=True)
class JobView:
    """A job's row as a caller sees it. JSON columns are decoded."""

    id: UUID
    recipe: str
    recipe_version: int | None
    plan: str
    state: JobState
    caller: str
    priority: int
    is_paused: bool
    event_seq: int
    steps_total: int
    steps_open: int
    steps_failed: int
    input: Any
    error: Any
    labels: Any
    progress: Any
    idempotency_key: str | None
    correlation_id: str | None
    parent_job: UUID | None
    parent_no: int | None
    retry_of: UUID | None
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None
    deadline_at: datetime | None
    expires_at: datetime | None
    deleted_at: datetime | None
    # When it last changed, and when it was read.
    updated_at: datetime | None = None
    read_at: datetime | None = None
    # The last job that undoes it, the state of that job (and `asked`), and whether its effects were kept on purpose.
    undo_job_id: UUID | None = None
    undo_state: str | None = None
    has_kept_effects: bool = False

    @property
    def is_finished(self) -> bool:
        """Whether the job has ended."""
        return self.state in JOB_TERMINAL

    @property
    def stuck_for_s(self) -> int | None:
        """For how many seconds an open job has not changed, in whole minutes; None below `STUCK_AFTER_S`.

        A paused job is not stuck.
        """
        if self.updated_at is None or self.read_at is None or self.is_finished or self.is_paused:
            return None
        still_s = (self.read_at - self.updated_at).total_seconds()
        return int(still_s // 60) * 60 if still_s >= STUCK_AFTER_S else None


@dataclass(frozen=True, slots=True)
class StepView:
    """A step's row as a caller sees it."""

    no: int
    node: int
    index: int | None
    state: StepState
    queue: str
    unmet: int
    fan: int | None
    attempt: int
    failures: int
    losses: int
    worker: UUID | None
    wake_at: datetime | None
    waiting_for: str | None
    item: Any
    output: Any
    error: Any
    progress: Any
    started_at: datetime | None
    finished_at: datetime | None
    holds: int = 0


@dataclass(frozen=True, slots=True)
class EventView:
    """An event's row."""

    seq: int
    at: datetime
    type: str
    source: str
    no: int | None
    attempt: int | None
    payload: Any
    correlation_id: str | None
    idempotency_key: str | None


T = TypeVar("T")
V = TypeVar("V", JobView, StepView, EventView)
_JSON = {"input", "error", "labels", "progress", "item", "output", "payload"}
_STATES: dict[type, type] = {JobView: JobState, StepView: StepState}


def view_of(kind: type[V], row: Row) -> V:
    """Convert a row to a view. The row must have a column for each field."""
    values: dict[str, Any] = {}
    for field in fields(kind):
        value = row[field.name]
        if field.name in _JSON and value is not None:
            value = msgspec.json.decode(value)
        values[field.name] = value
    if kind in _STATES:
        values["state"] = _STATES[kind](values["state"])
    return kind(**values)


async def jobs_of(db: Database, ids: Sequence[UUID]) -> dict[UUID, JobView]:
    """Return these jobs by their ids. Leave out ids of no job."""
    rows = await db.run(lambda connection: fetch(connection, "graph_jobs", Reader.CALLER, list(ids)))
    return {view.id: view for view in (view_of(JobView, row) for row in rows)}


async def job(db: Database, job_id: UUID) -> JobView:
    """Read one job."""
    async with db.connection() as connection:
        row = await fetchrow(connection, "read_job", Reader.CALLER, job_id)
    if row is None:
        raise NotFound(f"there is no job {job_id}", remedy="`windlass jobs` lists the known ones")
    return view_of(JobView, row)


async def jobs(
    db: Database,
    *,
    states: Sequence[JobState] | None = None,
    recipe: str | None = None,
    caller: str | None = None,
    labels: Mapping[str, str] | None = None,
    before: UUID | None = None,
    limit: int = 50,
    with_deleted: bool = False,
) -> list[JobView]:
    """List jobs, newest first. Pass the last job's id as `before` for the next page."""
    if not 1 <= limit <= PAGE_MAX:
        raise BadInput(f"a page has 1 to {PAGE_MAX} jobs, not {limit}")
    wanted = None if states is None else [str(state) for state in states]
    name = "read_jobs_trouble" if states and set(states) <= _TROUBLE else "read_jobs"
    filter_ = None if not labels else msgspec.json.encode(dict(labels)).decode()
    async with db.connection() as connection:
        values = (caller, wanted, recipe, filter_, before, with_deleted, limit)
        rows = await fetch(connection, name, Reader.CALLER, *values)
    return [view_of(JobView, row) for row in rows]


async def steps(db: Database, job_id: UUID) -> list[StepView]:
    """Read every step of a job, in order."""
    async with db.connection() as connection:
        rows = await fetch(connection, "read_steps", Reader.CALLER, job_id)
    return [view_of(StepView, row) for row in rows]


@dataclass(frozen=True, slots=True)
class FanCount:
    """The number of a fan-out's children in one state."""

    node: int
    state: StepState
    count: int
    failures: int
    started_at: datetime | None
    finished_at: datetime | None


async def overview(db: Database, job_id: UUID) -> tuple[list[StepView], list[FanCount]]:
    """Read the steps of the plan's nodes, and fan-outs as counts, so the cost does not grow with their width."""
    async with db.connection() as connection:
        steps = await fetch(connection, "read_nodes", Reader.CALLER, job_id)
        rows = await connection.fetch(sql("read_step_counts"), job_id)
    counts = [
        FanCount(r["node"], StepState(r["state"]), r["count"], r["failures"], r["started_at"], r["finished_at"])
        for r in rows
    ]
    return [view_of(StepView, row) for row in steps], counts


async def events(
    db: Database,
    job_id: UUID,
    *,
    after: int = 0,
    before: int | None = None,
    is_newest_first: bool = False,
    limit: int = PAGE_MAX,
) -> list[EventView]:
    """Read a job's events in order, after one sequence number and before another."""
    name = "read_events_newest" if is_newest_first else "read_events"
    async with db.connection() as connection:
        rows = await fetch(connection, name, Reader.CALLER, job_id, after, before, limit)
    return [_keyed(job_id, view_of(EventView, row)) for row in rows]


def _keyed(job_id: UUID, event: EventView) -> EventView:
    if event.idempotency_key is not None:
        return event
    return replace(event, idempotency_key=event_key(job_id, event.seq, event.type, event.no, event.attempt))


async def events_of(db: Database, wanted: Mapping[UUID, int], limit_each: int = 200) -> dict[UUID, list[EventView]]:
    """Return the durable events of these jobs after the given sequence numbers, in order. Leaves out jobs without any.

    Claims and lone submits commit without waiting for the disk, so a read that sees one waits for the disk.
    """
    found: dict[UUID, list[EventView]] = {}
    ids = sorted(wanted)
    for start in range(0, len(ids), _JOBS_MAX):
        some = ids[start : start + _JOBS_MAX]
        seqs = [wanted[job_id] for job_id in some]

        async def operation(
            connection: asyncpg.Connection, some: list[UUID] = some, seqs: list[int] = seqs
        ) -> list[Row]:
            rows = await fetch(connection, "feed_of_jobs", Reader.CALLER, some, seqs, limit_each)
            if any(row["type"] in _AHEAD for row in rows):
                await flush(connection)
            return rows

        for row in await db.run(operation):
            found.setdefault(row["job_id"], []).append(_event_of(row))
    return found


def _event_of(row: Row) -> EventView:
    """Return `view_of` an event. A stream reads thousands of them in a second."""
    payload = row["payload"]
    return EventView(
        row["seq"],
        row["at"],
        row["type"],
        row["source"],
        row["no"],
        row["attempt"],
        None if payload is None else msgspec.json.decode(payload),
        row["correlation_id"],
        row["idempotency_key"],
    )


async def result(db: Database, artifacts: Artifacts, resolver: Resolver, job_id: UUID) -> Any:
    """Build the output of a completed job from the outputs of its steps."""
    view = await job(db, job_id)
    check_output(view)
    return await output_of(db, artifacts, resolver, view, await plan_of(db, view.plan))


def check_output(view: JobView) -> None:
    """Raise WrongState unless the job has an output, and OutputQuarantined if its caller may not see it."""
    check_visible(Content.OUTPUT, Reader.CALLER, view.state)
    if view.state is not JobState.COMPLETED:
        raise WrongState(f"job {view.id} is {view.state}", remedy="Only a COMPLETED job has an output")


async def output_of(db: Database, artifacts: Artifacts, resolver: Resolver, view: JobView, plan: Plan) -> Any:
    """Return the output of a completed job that was already read."""
    return await values.output_of(db, artifacts, resolver, plan, view.id, view.input, view.caller, Reader.CALLER)


async def find(db: Database, text: str) -> UUID:
    """Find the job whose id begins with this text, or the newest job for `@last`."""
    async with db.connection() as connection:
        if text == "@last":
            found = [row["id"] for row in await connection.fetch(sql("read_last"))]
        else:
            digits = text.replace("-", "").lower()
            if not digits or len(digits) > 32 or set(digits) - set("0123456789abcdef"):
                raise BadInput(f"{text!r} is not a job's id", remedy="An id, the beginning of one, or @last")
            low, high = UUID(digits.ljust(32, "0")), UUID(digits.ljust(32, "f"))
            found = [row["id"] for row in await connection.fetch(sql("read_find"), low, high)]
    if not found:
        raise NotFound(f"there is no job {text}", remedy="`windlass jobs` lists the known ones")
    if len(found) > 1:
        raise BadInput(f"more than one job's id begins with {text}", remedy="Give more of it")
    job_id: UUID = found[0]
    return job_id


@dataclass(frozen=True, slots=True)
class Ended:
    """How a job ended, and its output if it completed."""

    state: JobState
    output: Any = None


async def ended(db: Database, artifacts: Artifacts, resolver: Resolver, plan: Plan, job_id: UUID) -> Ended | None:
    """Return how the job ended, in one read; None while it runs. `plan` is the job's plan."""
    template = plan_templates(plan).output
    wanted = [plan.number[name] for name in sorted(template.steps)]
    async with db.connection() as connection:
        rows = await fetch(connection, "read_ended", Reader.CALLER, job_id, wanted)
    if not rows:
        raise NotFound(f"there is no job {job_id}", remedy="`windlass jobs` lists the known ones")
    state = JobState(rows[0]["state"])
    if state is not JobState.COMPLETED:
        return Ended(state) if state in JOB_TERMINAL else None
    for row in rows:
        check_visible(Content.OUTPUT, Reader.CALLER, state, row["step_state"] and StepState(row["step_state"]))
    outputs = {plan.nodes[row["no"]].name: msgspec.json.decode(row["output"]) for row in rows if row["output"]}
    if len(outputs) < len(wanted) or any(map(ref_in, outputs.values())):
        # Outputs of a fan-out's children, and artifacts, take more than one read.
        outputs = await outputs_of(db, artifacts, plan, job_id, template.steps, Reader.CALLER)
    inputs = msgspec.json.decode(rows[0]["input"])
    return Ended(state, await resolver.resolve_async(template, scope(inputs, outputs)))


async def ended_as_told(resolver: Resolver, plan: Plan, told: ToldOutput) -> Ended | None:
    """Return how the job ended, from its bell alone. None if the job's output needs more."""
    template = plan_templates(plan).output
    number, text = told
    # The number of a fan-out's child is not a node's number.
    name = plan.nodes[number].name if number < len(plan.nodes) else ""
    if template.steps != {name} or template.inputs or template.uses_all_inputs:
        return None
    value = msgspec.json.decode(text)
    if ref_in(value):
        return None
    return Ended(JobState.COMPLETED, await resolver.resolve_async(template, scope({}, {name: value})))


class Waiter:
    """Waits for jobs to end. One listener serves all waits of a process; a slow poll covers lost bells."""

    def __init__(self, db: Database) -> None:
        self._db = db
        self._waits: dict[UUID, set[asyncio.Event]] = {}
        # Jobs whose bells rang lately, with the output that the bell carried (`store/drafts.py`).
        self._ended: dict[UUID, ToldOutput | None] = {}
        self.is_listening = False

    async def wait(self, job_id: UUID, timeout_s: float | None = None) -> JobView:
        """Return the job once it has ended. Raises WaitTimeout when that takes too long; the job goes on."""

        async def look() -> JobView | None:
            view = await job(self._db, job_id)
            return view if view.is_finished else None

        return await self.until(job_id, look, timeout_s)

    async def until(
        self,
        job_id: UUID,
        look: Callable[[], Awaitable[T | None]],
        timeout_s: float | None = None,
        *,
        is_heard: bool = False,
    ) -> T:
        """Call `look` until it returns a value. It is called when the job's bell rings, and every LOOK_EVERY_S seconds.

        `is_heard` says that this waiter was listening before the job was made. Then the bell is still to come, or it
        rang lately, so `look` is not called first.
        """
        if not self.is_listening:
            await self._db.listen(JobsEnded, self._ring)
            self.is_listening, is_heard = True, False
        rung = asyncio.Event()
        self._waits.setdefault(job_id, set()).add(rung)
        try:
            async with asyncio.timeout(timeout_s):
                if is_heard and job_id not in self._ended:
                    await _rung(rung)
                while (found := await look()) is None:
                    await _rung(rung)
                return found
        except TimeoutError:
            raise WaitTimeout(
                f"job {job_id} did not end within {timeout_s} s", remedy="It goes on; wait again or look at it"
            ) from None
        finally:
            waits = self._waits[job_id]
            waits.discard(rung)
            if not waits:
                del self._waits[job_id]

    def told(self, job_id: UUID) -> ToldOutput | None:
        """Return the output that the bell of the job's end carried, or None.

        It is returned once: a later request reads the output again, because it may be hidden by then.
        """
        told = self._ended.get(job_id)
        if told is not None:
            self._ended[job_id] = None
        return told

    def _ring(self, bell: JobsEnded) -> None:
        for job_id in bell.jobs or list(self._waits):
            self._ended[job_id] = bell.told
            for rung in self._waits.get(job_id, ()):
                rung.set()
        while len(self._ended) > _ENDED_MAX:
            del self._ended[next(iter(self._ended))]


async def _rung(rung: asyncio.Event) -> None:
    """Wait for the bell, or for LOOK_EVERY_S seconds."""
    timer = asyncio.get_running_loop().call_later(LOOK_EVERY_S, rung.set)
    try:
        await rung.wait()
    finally:
        timer.cancel()
    rung.clear()
