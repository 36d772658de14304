"""What must be true when a simulation is over: every complaint is a sentence, none means that all is well."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import timedelta
from itertools import pairwise
from typing import Any
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.outcome import Cancel, Failure, Parked, Success
from windlass.core.states import JOB_TERMINAL, STEP_DONE, STEP_TERMINAL, StepState
from windlass.engine.recipes import PLANS
from windlass.engine.workers import LEASE_S
from windlass.testing.sim.log import Log
from windlass.testing.sim.replay import Replay, Row
from windlass.testing.sim.scheduler import START

# How soon word travels from job to job once nothing goes wrong any more.
HEARD_WITHIN_S = 20.0
_TERMINAL = frozenset(map(str, JOB_TERMINAL))
_STEP_TERMINAL = frozenset(map(str, STEP_TERMINAL))
_DONE = frozenset(map(str, STEP_DONE))


class Tables:
    """Everything that is stored, read at once."""

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
        """All of them."""
        return cls(
            await connection.fetch("SELECT * FROM windlass.jobs ORDER BY id"),
            await connection.fetch("SELECT * FROM windlass.steps ORDER BY job_id, no"),
            await connection.fetch("SELECT * FROM windlass.events ORDER BY job_id, seq"),
            await connection.fetchval("SELECT count(*) FROM windlass.inbox"),
            await connection.fetch("SELECT * FROM windlass.workers ORDER BY id"),
        )


def check(tables: Tables, log: Log, *, is_serial: bool = True) -> list[str]:
    """Every complaint. `is_serial` says that no two operations overlapped."""
    wrong = list(log.violations)
    for job in tables.jobs.values():
        plan = PLANS.get(job["plan"])
        assert plan is not None
        steps = tables.steps[job["id"]]
        wrong += Replay(job, steps, plan, log.sent, is_serial=is_serial).run(tables.events[job["id"]])
        wrong += [f"job {job['id']}: {text}" for text in _job(job, steps)]
        wrong += [f"job {job['id']}: {text}" for text in _fans(steps)]
    wrong += _submissions(tables, log)
    wrong += _reports(tables, log)
    wrong += _attempts(log)
    wrong += _children(tables)
    wrong += _orphans(tables, log)
    wrong += _leases(tables, log)
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
    own = [row for row in steps if row["state"] == "FAILED" and _code(row) != "children_failed"]
    if job["steps_failed"] != len(own):
        wrong.append(f"steps_failed is {job['steps_failed']}, but {len(own)} failed")
    if job["state"] == "COMPLETED" and not set(states) <= _DONE:
        wrong.append(f"is COMPLETED with steps {states}")
    if job["state"] == "FAILED" and not own:
        wrong.append("is FAILED without a failed step")
    if job["state"] in _TERMINAL and (job["finished_at"] is None or job["due_at"] is not None):
        wrong.append("has ended, and its row does not say so")
    if (job["trouble"] or "COMPLETED") != job["state"] and job["state"] in _TERMINAL:
        wrong.append(f"ended {job['state']}, and its trouble is {job['trouble']}")
    if job["state"] == "TIMEOUT" and job["finished_at"] < job["deadline_at"]:
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


def _submissions(tables: Tables, log: Log) -> list[str]:
    wrong = []
    by_key: dict[tuple[str, str], set[UUID]] = defaultdict(set)
    for job in tables.jobs.values():
        if job["idempotency_key"] is not None:
            by_key[job["caller"], job["idempotency_key"]].add(job["id"])
        known = job["id"] in log.asked or job["id"] in log.retried or job["parent_job"] is not None
        if not known:
            wrong.append(f"job {job['id']} was never asked for")
    wrong += [f"key {key} has {len(ids)} jobs" for key, ids in by_key.items() if len(ids) > 1]
    given: dict[tuple[str, str], UUID] = {}
    for answer in log.answers:
        if answer.job_id is not None and answer.key is not None:
            first = given.setdefault((answer.caller, answer.key), answer.job_id)
            if first != answer.job_id:
                wrong.append(f"key {answer.key} was answered with {first} and with {answer.job_id}")
        if answer.job_id is None:
            if not by_key.get((answer.caller, answer.key or "")):
                wrong.append(f"key {answer.key} was a conflict with nothing")
            continue
        found = tables.jobs.get(answer.job_id)
        if found is None:
            wrong.append(f"job {answer.job_id} was accepted and is not there")
        elif msgspec.json.decode(found["input"]) != answer.body:
            wrong.append(f"job {answer.job_id} was given to another body")
        elif answer.key is not None and (found["caller"], found["idempotency_key"]) != (answer.caller, answer.key):
            wrong.append(f"job {answer.job_id} was given to another key")
    for job_id in log.cancelled:
        if tables.jobs[job_id]["state"] != "CANCELLED":
            wrong.append(f"job {job_id} was cancelled and is {tables.jobs[job_id]['state']}")
    return wrong


def _reports(tables: Tables, log: Log) -> list[str]:
    """What was heard must be what is stored, and be heard once."""
    wrong = []
    heard: dict[tuple[Any, bool], int] = defaultdict(int)
    steps = {(row["job_id"], row["no"]): row for rows in tables.steps.values() for row in rows}
    for told in log.told:
        if not told.took_effect:
            continue
        job_id, no, attempt = told.key
        # One attempt may first say that it waits outside, and then end.
        heard[told.key, isinstance(told.outcome, Parked)] += 1
        step = steps[job_id, no]
        match told.outcome:
            case Success(output=output):
                if (step["state"], step["attempt"], step["output"]) != (StepState.COMPLETED, attempt, output):
                    wrong.append(f"the success of {told.key} was heard, and the step is {step['state']}")
            case Failure(is_retryable=False):
                if step["state"] != StepState.FAILED:
                    wrong.append(f"the failure of {told.key} was heard, and the step is {step['state']}")
            case Cancel():
                if tables.jobs[job_id]["state"] != "CANCELLED":
                    wrong.append(f"{told.key} cancelled its job, which is {tables.jobs[job_id]['state']}")
    wrong += [f"{count} reports of {key} took effect" for (key, _), count in heard.items() if count > 1]
    return wrong


def _attempts(log: Log) -> list[str]:
    wrong = []
    for key, begun in log.started.items():
        if len({worker for worker, _ in begun}) > 1:
            wrong.append(f"attempt {key} was run by {len(begun)} workers")
        elif len(begun) > 1:
            wrong.append(f"attempt {key} was run {len(begun)} times")
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


def _orphans(tables: Tables, log: Log) -> list[str]:
    """A child whose parent has ended is cancelled as soon as an engine looks."""
    wrong = []
    for job in tables.jobs.values():
        parent = tables.jobs.get(job["parent_job"])
        if parent is None or job["finished_at"] is None or parent["finished_at"] is None:
            continue
        since = max(parent["finished_at"], START + timedelta(seconds=log.calm_at))
        ended = [event for event in tables.events[job["id"]] if event["type"] == f"job.{job['state'].lower()}"]
        if job["finished_at"] > since + timedelta(seconds=HEARD_WITHIN_S) and ended[-1]["source"] != "relay":
            wrong.append(f"child {job['id']} went on for long after its parent had ended, and is {job['state']}")
    return wrong


def _leases(tables: Tables, log: Log) -> list[str]:
    """A lease is extended only while it lasts, and only the worker of a lease that ended loses its steps."""
    wrong = []
    for worker, row in tables.workers.items():
        if row["lost_at"] is not None and row["lost_at"] < row["lease_until"]:
            wrong.append(f"worker {worker} was taken for lost while its lease lasted")
    for worker, moments in log.leases.items():
        for before, at in pairwise(moments):
            if at - before >= LEASE_S + 0.001:
                wrong.append(f"the lease of worker {worker} was revived {at:.3f} s into the run")
    wrong += _losses(tables)
    return wrong


def _losses(tables: Tables) -> list[str]:
    wrong = []
    for events in tables.events.values():
        runs: dict[int, UUID] = {}
        for event in events:
            payload: Mapping[str, Any] = {} if event["payload"] is None else msgspec.json.decode(event["payload"])
            if event["type"] == "step.running":
                runs[event["no"]] = UUID(payload["worker"])
            elif payload.get("because") == "worker_lost":
                worker = tables.workers.get(runs[event["no"]])
                if worker is not None and (worker["lost_at"] is None or worker["lost_at"] > event["at"]):
                    since = (event["at"] - START).total_seconds()
                    wrong.append(
                        f"a step of worker {worker['id']}, which was not lost, was taken away at {since:.3f} s"
                    )
    return wrong
