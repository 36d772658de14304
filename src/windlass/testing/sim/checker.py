"""The rules that must hold after a simulation. Each complaint is a sentence."""

from __future__ import annotations

from collections import defaultdict
from datetime import timedelta
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.errors import WrongState
from windlass.core.lease import COUNTED_PART, is_gap
from windlass.core.outcome import Cancel, Failure, Parked, Success
from windlass.core.states import StepState
from windlass.engine.workers import LEASE_S
from windlass.testing.checker import Tables, check_tables
from windlass.testing.sim.log import Key, Log
from windlass.testing.sim.reruns import check_reruns
from windlass.testing.sim.scheduler import START
from windlass.testing.sim.suspects import check_suspects
from windlass.testing.sim.undone import is_undo

# How soon a message travels from job to job once the faults have ended.
HEARD_WITHIN_S = 20.0


def check(tables: Tables, log: Log, *, is_serial: bool = True) -> list[str]:
    """Return every complaint. `is_serial` tells that no two operations overlapped."""
    return [
        *log.violations,
        *check_tables(tables, log.sent, is_serial=is_serial),
        *_submissions(tables, log),
        *_reports(tables, log),
        *_attempts(log),
        *_blameless(tables),
        *_orphans(tables, log),
        *_leases(log),
        *check_reruns(tables, log),
        *check_suspects(tables, log),
    ]


def _submissions(tables: Tables, log: Log) -> list[str]:
    wrong = []
    by_key: dict[tuple[str, str], set[UUID]] = defaultdict(set)
    for job in tables.jobs.values():
        if job["idempotency_key"] is not None:
            by_key[job["caller"], job["idempotency_key"]].add(job["id"])
        known = job["id"] in log.asked or job["id"] in log.retried or job["parent_job"] is not None
        known = known or is_undo(job["plan"])
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
    """Check that each accepted report is stored, and took effect once."""
    wrong = []
    heard: dict[tuple[Any, bool], int] = defaultdict(int)
    steps = {(row["job_id"], row["no"]): row for rows in tables.steps.values() for row in rows}
    claimed_by = _claims(tables)
    for report in log.told:
        if not report.took_effect:
            continue
        job_id, no, attempt = report.key
        if report.worker is not None and str(report.worker) != claimed_by.get(report.key):
            wrong.append(
                f"the report of {report.worker} ended {report.key}, which {claimed_by.get(report.key)} had claimed"
            )
        # One attempt may first report that it waits for an external answer, and then end.
        heard[report.key, isinstance(report.outcome, Parked)] += 1
        step = steps[job_id, no]
        match report.outcome:
            case Success(output=output):
                if (step["state"], step["attempt"], step["output"]) != (StepState.COMPLETED, attempt, output):
                    wrong.append(f"the success of {report.key} was heard, and the step is {step['state']}")
            case Failure(is_retryable=False):
                if step["state"] != StepState.FAILED:
                    wrong.append(f"the failure of {report.key} was heard, and the step is {step['state']}")
            case Cancel():
                if tables.jobs[job_id]["state"] != "CANCELLED":
                    wrong.append(f"{report.key} cancelled its job, which is {tables.jobs[job_id]['state']}")
    wrong += [f"{count} reports of {key} took effect" for (key, _), count in heard.items() if count > 1]
    return wrong


def _claims(tables: Tables) -> dict[Key, str]:
    """Return the worker of every attempt, from the events."""
    begun = [event for events in tables.events.values() for event in events if event["type"] == "step.running"]
    return {(e["job_id"], e["no"], e["attempt"]): msgspec.json.decode(e["payload"])["worker"] for e in begun}


def _attempts(log: Log) -> list[str]:
    wrong = []
    for key, begun in log.started.items():
        if key in log.forgotten:
            continue
        if len({worker for worker, _ in begun}) > 1:
            wrong.append(f"attempt {key} was run by {len(begun)} workers")
        elif len(begun) > 1:
            wrong.append(f"attempt {key} was run {len(begun)} times")
    return wrong


def _blameless(tables: Tables) -> list[str]:
    """Check that no step fails because its worker mistook the attempt."""
    return [
        f"step {step['no']} of {step['job_id']} failed because its attempt was not the current one"
        for steps in tables.steps.values()
        for step in steps
        if step["state"] == "FAILED" and msgspec.json.decode(step["error"] or "{}").get("code") == WrongState.code
    ]


def _orphans(tables: Tables, log: Log) -> list[str]:
    """Check that a child of an ended parent is cancelled as soon as an engine acts."""
    wrong = []
    for job in tables.jobs.values():
        parent = tables.jobs.get(job["parent_job"])
        if parent is None or job["finished_at"] is None or parent["finished_at"] is None:
            continue
        since = max(parent["finished_at"], START + timedelta(seconds=log.calm_at))
        ended = [event for event in tables.events[job["id"]] if event["type"] == f"job.{job['state'].lower()}"]
        if job["finished_at"] > since + timedelta(seconds=HEARD_WITHIN_S) and ended[-1]["source"] != "parent_notifier":
            wrong.append(f"child {job['id']} went on for long after its parent had ended, and is {job['state']}")
    return wrong


def _leases(log: Log) -> list[str]:
    """Check that a lost worker's lease is never extended, and that no worker is lost before a lease of silence, outages
    apart.
    """
    wrong = []
    for worker, at in log.lost.items():
        moments = log.leases[worker]
        if moments[-1] > at:
            wrong.append(f"the lease of worker {worker} was revived {moments[-1]:.3f} s into the run")
        if worker in log.died:
            continue
        heard = max(moment for moment in moments if moment <= at)
        away = [min(until, at) - max(since, heard) for since, until in log.outages if until > heard and since < at]
        long = [span for span in away if is_gap(span, LEASE_S)]
        if at - heard - sum(long) < LEASE_S * (1 - COUNTED_PART * len(long)) - 0.001:
            wrong.append(
                f"worker {worker} was lost {at - heard:.3f} s after it was heard, {sum(long):.3f} s of them away"
            )
    return wrong
