"""Builds the patches of a console's stream: the current jobs, steps and fan-outs, and the events since the last patch.

One patch needs four statements, regardless of how much happened. The job is read first, so its steps are at least as
new as the job's `seq`.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.api.follow import JobTold
from windlass.api.wire.job import job_document, listed_job
from windlass.api.wire.step import FanDocument
from windlass.api.wire.wire import rfc3339
from windlass.core.plan import Plan
from windlass.core.states import StepState
from windlass.core.visibility import Reader
from windlass.documents.tracebacks import expose_to_caller, streamed_error
from windlass.store.database import Database
from windlass.store.outputs import Row, fetch
from windlass.store.statements import sql
from windlass.views.activity import doing
from windlass.views.read import JobView, view_of


@dataclass(slots=True)
class News:
    """The events of one job since its last patch."""

    plan: Plan
    seq: int = 0
    lines: list[dict[str, Any]] = field(default_factory=list)
    steps: set[int] = field(default_factory=set)
    # Whether an event touched a fan-out or a child of a fan-out.
    is_fanned: bool = False

    def add(self, told: JobTold) -> None:
        """Add an event."""
        event = told.event
        self.seq = event.seq
        self.lines.append(
            {
                "seq": event.seq,
                "at": rfc3339(event.at),
                "type": event.type,
                "no": event.no,
                "step": told.step,
                "attempt": event.attempt,
                "source": event.source,
            }
        )
        no, nodes = event.no, self.plan.nodes
        if no is not None:
            self.steps.add(no)
            self.is_fanned = self.is_fanned or no >= len(nodes) or nodes[no].each is not None


@dataclass(frozen=True, slots=True)
class Truth:
    """JSON documents, by job."""

    jobs: dict[UUID, msgspec.Raw]
    steps: dict[UUID, list[msgspec.Raw]]
    fans: dict[UUID, dict[str, msgspec.Raw]]


async def read_jobs(db: Database, ids: Collection[UUID]) -> dict[UUID, JobView]:
    """Return the jobs with these ids, without their inputs."""

    async def operation(connection: asyncpg.Connection) -> list[Row]:
        return await fetch(connection, "stream_jobs", Reader.CALLER, sorted(ids))

    rows = await db.run(operation) if ids else []
    return {row["id"]: view_of(JobView, row) for row in rows}


async def read_truth(
    db: Database, jobs: Collection[UUID], news: Mapping[UUID, News], fans: Mapping[UUID, Plan]
) -> Truth:
    """Read these jobs, the steps that the news touched, and the given fan-outs."""
    # The documents go to all followers, so the visibility of the request that started the stream must not apply.
    expose_to_caller(False)
    ids = sorted({*jobs, *news})
    wanted = [(job_id, no) for job_id, one in news.items() for no in sorted(one.steps)]

    steps = [one for one, _ in wanted], [no for _, no in wanted]

    async def operation(connection: asyncpg.Connection) -> tuple[Any, ...]:
        return (
            await fetch(connection, "stream_jobs", Reader.CALLER, ids) if ids else [],
            await doing(connection, sorted(jobs)),
            await fetch(connection, "stream_steps", Reader.CALLER, *steps) if wanted else [],
            await connection.fetch(sql("stream_fans"), sorted(fans)) if fans else [],
        )

    job_rows, told, step_rows, fan_rows = await db.run(operation)
    found = Truth({}, {}, {})
    for row in job_rows:
        job = view_of(JobView, row)
        document = listed_job(job, told.get(job.id)) if job.id in jobs else job_document(job)
        found.jobs[job.id] = msgspec.Raw(document.model_dump_json().encode())
    for row in step_rows:
        found.steps.setdefault(row["job_id"], []).append(_step(row, news[row["job_id"]].plan))
    for job_id, by_fan in _fans(fan_rows).items():
        found.fans[job_id] = {
            str(no): msgspec.Raw(fan.model_dump_json().encode())
            for no, fan in by_fan.items()
            if fans[job_id].nodes[no].each is not None
        }
    return found


def _step(row: Row, plan: Plan) -> msgspec.Raw:
    """Return a step's document, exactly as `StepDocument` has it.

    Encoded by hand, as a patch may have a thousand steps.
    """
    node = plan.nodes[row["node"]]
    index, error, progress = row["index"], row["error"], row["progress"]
    wake_at, started_at, finished_at = row["wake_at"], row["started_at"], row["finished_at"]
    data = {
        "no": row["no"],
        "step": node.name,
        "index": index,
        "parent": None if index is None else row["node"],
        "kind": node.kind,
        "run": node.run,
        "queue": row["queue"],
        "status": row["state"],
        "attempt": row["attempt"],
        "failures": row["failures"],
        "losses": row["losses"],
        "worker": row["worker"],
        "waiting_for": row["waiting_for"],
        "wake_at": None if wake_at is None else rfc3339(wake_at),
        "progress": None if progress is None else msgspec.Raw(progress.encode()),
        "error": None if error is None else streamed_error(error),
        "started_at": None if started_at is None else rfc3339(started_at),
        "finished_at": None if finished_at is None else rfc3339(finished_at),
        "links": {"output": f"/jobs/{row['job_id']}/steps/{row['no']}/output"},
    }
    return msgspec.Raw(msgspec.json.encode(data))


def _fans(rows: list[asyncpg.Record]) -> dict[UUID, dict[int, FanDocument]]:
    totals: dict[tuple[UUID, int], int | None] = {}
    states: dict[tuple[UUID, int], dict[StepState, int]] = {}
    for row in rows:
        key = (row["job_id"], row["node"])
        if row["state"] is None:
            totals[key] = row["total"]
        else:
            states.setdefault(key, {})[StepState(row["state"])] = row["count"]
    found: dict[UUID, dict[int, FanDocument]] = {}
    for key, total in totals.items():
        by_status = states.get(key, {})
        fan = FanDocument(total=total, made=sum(by_status.values()), by_status=by_status)
        found.setdefault(key[0], {})[key[1]] = fan
    return found


def patch_data(jobs: Collection[UUID], news: Mapping[UUID, News], seqs: Mapping[UUID, int], truth: Truth) -> bytes:
    """Encode the patch.

    `seqs` has, for each job in the patch, the number of the last event that the client then knows.
    """
    # A job that was removed in the meantime has no document.
    listed = [truth.jobs[job_id] for job_id in sorted(jobs) if job_id in truth.jobs]
    of_job = {}
    for job_id, seq in seqs.items():
        one = news.get(job_id)
        of_job[str(job_id)] = {
            "seq": seq,
            "job": None if one is None else truth.jobs.get(job_id),
            "steps": truth.steps.get(job_id, []),
            "fans": truth.fans.get(job_id, {}),
            "events": [] if one is None else one.lines,
        }
    return msgspec.json.encode({"jobs": listed, "job": of_job})
