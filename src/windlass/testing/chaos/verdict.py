"""The rules that must hold after a chaos run. Pure: evidence in, violations out.

The history checker (`windlass.testing.checker`) tells whether events and rows are consistent. This module compares them
with facts from outside the system: the answers to submitters, the handlers' journal, and the expected result of each
job.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from uuid import UUID

from windlass.core.outcome import TIMEOUTS
from windlass.core.plan import NodeKind
from windlass.core.states import JobState, StepState
from windlass.core.wait import WaitKind
from windlass.testing.chaos.answers import ANSWERS, FAILS_WITH, answer
from windlass.testing.chaos.evidence import Evidence, JobHistory
from windlass.testing.chaos.journal import Line
from windlass.testing.chaos.ledger import Ledger
from windlass.testing.chaos.reckoning import complaints
from windlass.testing.checker import check_tables

# The only handler of the workload that snoozes.
SNOOZER = "snoozing"
# A claim does not wait for the disk. When PostgreSQL loses its memory, the claims of its last moments are undone. Their
# attempts have no event, and begin again under the same number. A worker may begin such an attempt up to
# CLAIM_UNDONE_BEFORE_S after the crash, since it may have been stopped meanwhile, or up to CLAIM_UNDONE_AFTER_S before
# it.
CLAIM_UNDONE_AFTER_S = 2.0
CLAIM_UNDONE_BEFORE_S = 30.0


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule that did not hold, its job if it concerns one, and how it was broken."""

    rule: str
    job_id: UUID | None
    message: str

    def __str__(self) -> str:
        return f"{self.rule}: {f'job {self.job_id}: ' if self.job_id else ''}{self.message}"


def judge(
    evidence: Evidence, ledger: Ledger, *, crashes: Sequence[float] = (), dismissed: Collection[int] = ()
) -> list[Violation]:
    """Return every violation. `dismissed` are the processes that were told to stop, and were not killed."""
    found = [Violation("history", None, text) for text in check_tables(evidence.tables, is_serial=False)]
    for job in evidence.jobs.values():
        found += _outcome(job, evidence, ledger)
    found += _submissions(evidence, ledger)
    found += _workers(evidence, dismissed)
    found += _handlers(evidence, crashes)
    found += _claims(evidence)
    found += [Violation(rule, None, text) for rule, text in complaints(evidence.outside, ledger.signals)]
    found += [Violation("surprise", None, text) for text in ledger.surprises]
    return found


def undone_claims(evidence: Evidence) -> int:
    """Count the started attempts whose claim a crash of PostgreSQL undid: without an event, or begun twice."""
    starts = [line for line in evidence.journal if line.word == "start"]
    attempts = {(line.job_id, line.step, line.index, line.attempt) for line in starts}
    return len(starts) - len(attempts) + sum(not _is_known(line, evidence) for line in starts)


# The submitters' answers.


def _submissions(evidence: Evidence, ledger: Ledger) -> Iterator[Violation]:
    by_key: dict[str, list[UUID]] = defaultdict(list)
    for job in evidence.jobs.values():
        if job.view.idempotency_key is not None:
            by_key[job.view.idempotency_key].append(job.view.id)
        elif job.view.parent_job is None and job.view.id not in ledger.retries:
            yield Violation("unasked", job.view.id, "no caller submitted it")
    for key, ids in by_key.items():
        if len(ids) > 1:
            yield Violation("doubled", ids[0], f"key {key} made {len(ids)} jobs")
        if key not in ledger.wishes:
            yield Violation("unasked", ids[0], f"no caller submitted with key {key}")
    for wish in ledger.wishes.values():
        if len(set(wish.answers)) > 1:
            yield Violation(
                "doubled", wish.answers[0], f"key {wish.key} was answered with {len(set(wish.answers))} jobs"
            )
        for job_id in dict.fromkeys(wish.answers):
            found = evidence.jobs.get(job_id)
            if found is None:
                yield Violation("lost", job_id, f"it was accepted under key {wish.key}, and is not there")
            elif (found.view.recipe, found.view.input) != (wish.recipe, {"n": wish.n}):
                yield Violation("altered", job_id, f"asked for {wish}, stored {found.view.recipe} {found.view.input}")
    for job_id in sorted(ledger.retried - evidence.jobs.keys()):
        yield Violation("lost", job_id, "it was accepted as a retry, and is not there")


# The result of each job.


def _outcome(job: JobHistory, evidence: Evidence, ledger: Ledger) -> Iterator[Violation]:
    view = job.view
    match view.state:
        case JobState.COMPLETED:
            if view.recipe not in ANSWERS:
                yield Violation("outcome", view.id, f"{view.recipe} completed, and can only fail")
            elif (got := evidence.outputs.get(view.id)) != (wanted := answer(view.recipe, view.input["n"])):
                yield Violation("output", view.id, f"{view.recipe} {view.input} gave {got!r}, not {wanted!r}")
        case JobState.FAILED:
            if not _may_fail(job):
                yield Violation("outcome", view.id, f"{view.recipe} failed: {view.error}")
        case JobState.CANCELLED:
            if view.id not in ledger.cancelled and not _has_ended_parent(job, evidence):
                yield Violation("outcome", view.id, f"{view.recipe} was cancelled without a request")
        case JobState.TIMEOUT:
            is_step = (view.error or {}).get("code") in TIMEOUTS and _may_fail(job)
            if view.deadline_at is None and not is_step:
                yield Violation("outcome", view.id, f"{view.recipe} timed out without a deadline or such a step")
        case JobState.EXPIRED:
            yield Violation("outcome", view.id, f"{view.recipe} expired within minutes")
        case _:
            return


def _may_fail(job: JobHistory) -> bool:
    code = (job.view.error or {}).get("code")
    if code == "child_failed":
        return any(node.kind is NodeKind.RECIPE for node in job.plan.nodes)
    return code is not None and code == FAILS_WITH.get(job.view.recipe)


def _has_ended_parent(job: JobHistory, evidence: Evidence) -> bool:
    parent = evidence.jobs.get(job.view.parent_job) if job.view.parent_job is not None else None
    return parent is not None and parent.view.state is not JobState.COMPLETED and parent.view.is_finished


# The steps that workers hold.


def _workers(evidence: Evidence, dismissed: Collection[int]) -> Iterator[Violation]:
    for worker in evidence.workers:
        if worker.running:
            yield Violation("held", None, f"worker {worker.id} still holds {worker.running} steps")
        if worker.lost_at is None and worker.pid in dismissed:
            yield Violation("enlisted", None, f"worker {worker.id} left, and is still on the list")


def _claims(evidence: Evidence) -> Iterator[Violation]:
    """Yield steps that a worker snoozed without being asked: it claimed a step that its app does not have."""
    for job in evidence.jobs.values():
        for event in job.events:
            is_put_off = event.type == "step.parked" and (event.payload or {}).get("waiting_for") == WaitKind.SNOOZE
            if is_put_off and event.no is not None and not _can_snooze(job, event.no):
                yield Violation("wrong claim", job.view.id, f"step {event.no} was put off, and never asks for that")


def _can_snooze(job: JobHistory, no: int) -> bool:
    step = next(step for step in job.steps if step.no == no)
    return job.plan.nodes[step.node].run == SNOOZER


# The handlers' journal.


def _handlers(evidence: Evidence, crashes: Sequence[float]) -> Iterator[Violation]:
    begun: dict[tuple[UUID, int, int], list[Line]] = defaultdict(list)
    ended: set[tuple[UUID, int, int]] = set()
    for line in evidence.journal:
        job = evidence.jobs.get(line.job_id)
        no = None if job is None else _number(job, line)
        if no is None:
            yield Violation("unknown attempt", line.job_id, f"{line} is of no step that there is")
        elif line.word == "start":
            begun[line.job_id, no, line.attempt].append(line)
        else:
            ended.add((line.job_id, no, line.attempt))
    for (job_id, no, attempt), lines in begun.items():
        yield from _begun(evidence.jobs[job_id], no, attempt, lines, crashes)
    for job in evidence.jobs.values():
        for step in job.steps:
            node = job.plan.nodes[step.node]
            # A provider's step may complete although its handler was lost after the request.
            is_task = node.kind is NodeKind.TASK and step.fan is None and not node.provider
            has_run = is_task and step.state is StepState.COMPLETED and step.attempt > 0
            if has_run and (job.view.id, step.no, step.attempt) not in ended:
                yield Violation(
                    "not done", job.view.id, f"step {step.no} is COMPLETED by attempt {step.attempt}, which never ended"
                )


def _begun(
    job: JobHistory, no: int, attempt: int, lines: Sequence[Line], crashes: Sequence[float]
) -> Iterator[Violation]:
    step = next(step for step in job.steps if step.no == no)
    is_known = _has_event(job, no, attempt)
    if not is_known and not all(_is_undone(line, crashes) for line in lines):
        yield Violation("unclaimed", job.view.id, f"attempt {attempt} of step {no} began, and was never claimed")
    if attempt > step.attempt and not all(_is_undone(line, crashes) for line in lines):
        yield Violation("run again", job.view.id, f"step {no} ended by attempt {step.attempt}; {attempt} began too")
    for first, second in pairwise(lines):
        between = [at for at in crashes if first.at_s - CLAIM_UNDONE_BEFORE_S < at < second.at_s]
        if not between:
            what = f"by process {first.pid} at {first.at_s:.3f} and {second.pid} at {second.at_s:.3f}"
            yield Violation("begun twice", job.view.id, f"attempt {attempt} of step {no} began twice, {what}")


def _number(job: JobHistory, line: Line) -> int | None:
    node = job.plan.number.get(line.step)
    if line.index is None or node is None:
        return node
    return next((step.no for step in job.steps if (step.node, step.index) == (node, line.index)), None)


def _has_event(job: JobHistory, no: int, attempt: int) -> bool:
    return any((e.type, e.no, e.attempt) == ("step.running", no, attempt) for e in job.events)


def _is_known(line: Line, evidence: Evidence) -> bool:
    job = evidence.jobs.get(line.job_id)
    no = None if job is None else _number(job, line)
    return job is not None and no is not None and _has_event(job, no, line.attempt)


def _is_undone(line: Line, crashes: Sequence[float]) -> bool:
    """Tell whether a crash was near enough to this start to have undone its claim."""
    return any(line.at_s - CLAIM_UNDONE_BEFORE_S < at < line.at_s + CLAIM_UNDONE_AFTER_S for at in crashes)
