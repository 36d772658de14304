"""The history checker: reads all rows, and returns a sentence for each violation.

It checks every rule that the tables alone can prove, for the simulation, the chaos run and tests. It replays events
against the state tables (`replay.py`), and compares related rows, child jobs with their parents, and workers. Each run
itself checks the facts known outside the tables: the answers to callers, and the handlers that ran.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.outcome import TIMEOUTS, Outcome
from windlass.core.states import JOB_TERMINAL, STEP_DONE, STEP_TERMINAL
from windlass.store.plans import PLANS
from windlass.testing.replay import Replay, Row

_TERMINAL = frozenset(map(str, JOB_TERMINAL))
_STEP_TERMINAL = frozenset(map(str, STEP_TERMINAL))
_DONE = frozenset(map(str, STEP_DONE))


class Tables:
    """All stored rows, read at once."""

    def __init__(self, jobs: list[Row], steps: list[Row], events: list[Row], inbox: int, workers: list[Row]) -> None:
        self.jobs = {row["id"]: row for row in jobs}
        self.steps: dict[UUID, list[Row]] = defaultdict(list)
        self.events: dict[UUID, list[Row]] = defaultdict(list)
        for row in steps:
            self.steps[row["job_id"]].append(row)
        for row in events:
            self.events[row["job_id"]].append(row)
        self.inbox = inbox
        self.workers = {row["id"]: row for row in workers}

    @classmethod
    async def read(cls, connection: asyncpg.Connection) -> Tables:
        """Read all tables."""
        return cls(
            await connection.fetch("SELECT * FROM windlass.jobs ORDER BY id"),
            await connection.fetch("SELECT * FROM windlass.steps ORDER BY job_id, no"),
            await connection.fetch("SELECT * FROM windlass.events ORDER BY job_id, seq"),
            await connection.fetchval("SELECT count(*) FROM windlass.inbox"),
            await connection.fetch("SELECT * FROM windlass.workers ORDER BY id"),
        )


def check_tables(
    tables: Tables, sent: Mapping[Any, Sequence[Outcome]] | None = None, *, is_serial: bool = True
) -> list[str]:
    """Return every complaint about jobs that should all have ended.

    `sent` are the reported outcomes, by attempt, as far as they are known. `is_serial` tells that no two operations
    overlapped.
    """
    wrong: list[str] = []
    for job in tables.jobs.values():
        plan = PLANS.get(job["plan"])
        assert plan is not None
        steps = tables.steps[job["id"]]
        wrong += Replay(job, steps, plan, sent or {}, is_serial=is_serial).run(tables.events[job["id"]])
        wrong += [f"job {job['id']}: {text}" for text in _job(job, steps)]
        wrong += [f"job {job['id']}: {text}" for text in _fans(steps)]
    wrong += _children(tables)
    wrong += _workers(tables)
    if tables.inbox:
        wrong.append(f"{tables.inbox} words were never carried")
    return wrong


def _job(job: Row, steps: Sequence[Row]) -> list[str]:
    wrong = []
    states = [row["state"] for row in steps]
    still_open = sum(state not in _STEP_TERMINAL for state in states)
    if job["state"] not in _TERMINAL:
        wrong.append(f"is still {job['state']}")
    if job["steps_open"] != still_open:
        wrong.append(f"steps_open is {job['steps_open']}, but {still_open} are open")
    own = [row for row in steps if row["state"] in ("FAILED", "DENIED") and _code(row) not in ("", "children_failed")]
    if job["steps_failed"] != len(own):
        wrong.append(f"steps_failed is {job['steps_failed']}, but {len(own)} failed")
    if job["state"] == "COMPLETED" and not set(states) <= _DONE:
        wrong.append(f"is COMPLETED with steps {states}")
    if job["state"] == "FAILED" and not own:
        wrong.append("is FAILED without a failed step")
    if job["state"] == "FAILED" and _code(job) in TIMEOUTS:
        wrong.append(f"is FAILED by {_code(job)}, and not TIMEOUT")
    if job["state"] in _TERMINAL and (job["finished_at"] is None or job["due_at"] is not None):
        wrong.append("has ended, and its row does not say so")
    if (job["trouble"] or "COMPLETED") != job["state"] and job["state"] in _TERMINAL:
        wrong.append(f"ended {job['state']}, and its trouble is {job['trouble']}")
    ended_at, deadline_at = job["finished_at"], job["deadline_at"]
    is_late = None not in (ended_at, deadline_at) and ended_at >= deadline_at
    if job["state"] == "TIMEOUT" and _code(job) not in TIMEOUTS and not is_late:
        wrong.append("timed out before its deadline")
    if job["state"] == "EXPIRED" and job["finished_at"] < job["expires_at"]:
        wrong.append("expired before its time")
    for row in steps:
        if row["state"] in _STEP_TERMINAL and (row["worker"] is not None or row["finished_at"] is None):
            wrong.append(f"step {row['no']} has ended, and its row does not say so")
    return wrong


def _code(step: Row) -> str:
    return str(msgspec.json.decode(step["error"]).get("code")) if step["error"] is not None else ""


def _fans(steps: Sequence[Row]) -> list[str]:
    wrong = []
    indexes: dict[int, list[int]] = defaultdict(list)
    for row in steps:
        if row["index"] is not None:
            indexes[row["node"]].append(row["index"])
    for row in steps:
        if row["index"] is None and row["fan"] is not None:
            found = sorted(indexes[row["no"]])
            if found != list(range(row["fanned"])) or (row["state"] == "COMPLETED" and len(found) != row["fan"]):
                wrong.append(f"fan-out {row['no']} of {row['fan']} has the children {found}")
            if row["state"] == "COMPLETED" and row["unmet"]:
                wrong.append(f"fan-out {row['no']} is done with {row['unmet']} children to come")
    return wrong


def _children(tables: Tables) -> list[str]:
    wrong = []
    seen: set[tuple[UUID, int, int]] = set()
    for job in tables.jobs.values():
        if job["parent_job"] is None:
            continue
        place = (job["parent_job"], job["parent_no"], job["parent_attempt"])
        if place in seen:
            wrong.append(f"{place} has two child jobs")
        seen.add(place)
        step = next(row for row in tables.steps[job["parent_job"]] if row["no"] == job["parent_no"])
        if step["attempt"] != job["parent_attempt"]:
            continue
        if step["state"] == "COMPLETED" and job["state"] != "COMPLETED":
            wrong.append(f"child {job['id']} ended {job['state']}, and its parent's step is COMPLETED")
        if job["state"] == "COMPLETED" and step["state"] == "FAILED" and _code(step) == "child_failed":
            wrong.append(f"child {job['id']} is COMPLETED, and its parent's step failed of it")
    waiting = {
        (event["job_id"], event["no"], event["attempt"])
        for events in tables.events.values()
        for event in events
        if event["type"] == "step.parked" and b'"child"' in event["payload"].encode()
    }
    wrong += [f"{place} waits for a child job that was never made" for place in sorted(waiting - seen)]
    return wrong


def _workers(tables: Tables) -> list[str]:
    """Check that a worker loses its steps only after its lease ended."""
    wrong = []
    for worker, row in tables.workers.items():
        if row["lost_at"] is not None and row["lost_at"] < row["lease_until"]:
            wrong.append(f"worker {worker} was taken for lost while its lease lasted")
    return wrong + _losses(tables)


def _losses(tables: Tables) -> list[str]:
    wrong = []
    for events in tables.events.values():
        runs: dict[int, UUID] = {}
        for event in events:
            payload: Mapping[str, Any] = {} if event["payload"] is None else msgspec.json.decode(event["payload"])
            if event["type"] == "step.running":
                runs[event["no"]] = UUID(payload["worker"])
            # A heartbeat process, or the worker that started the dead worker, saw it die; the rescuer sees only the
            # lease.
            elif payload.get("because") == "worker_lost" and event["source"] == "rescuer":
                worker = tables.workers.get(runs[event["no"]])
                if worker is not None and (worker["lost_at"] is None or worker["lost_at"] > event["at"]):
                    wrong.append(f"a step of worker {worker['id']}, which was not lost, was taken away, {event['at']}")
    return wrong
