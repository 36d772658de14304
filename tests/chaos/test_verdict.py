"""The verdict on a chaos run: what the submitters and the handlers know is held against what is stored."""

from __future__ import annotations

from dataclasses import fields
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from windlass.core.states import JobState, StepState
from windlass.testing.chaos.cluster import Kill
from windlass.testing.chaos.evidence import Evidence, JobHistory
from windlass.testing.chaos.journal import Line
from windlass.testing.chaos.ledger import Ledger, Wish
from windlass.testing.chaos.recovery import recovery_times
from windlass.testing.chaos.verdict import judge, undone_claims
from windlass.testing.chaos.workload import bulk, forsaken, poison
from windlass.testing.checker import Tables
from windlass.views.read import EventView, JobView, StepView
from windlass.views.workers import WorkerView

JOB, OTHER, WORKER = UUID(int=1), UUID(int=2), UUID(int=3)
OUTPUT = 300 * 1024 + 7


def view(kind: type[Any], **given: Any) -> Any:
    """A row with what is given, and nothing else."""
    return kind(**{field.name: given.get(field.name) for field in fields(kind)})


def at(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def running(no: int, attempt: int, at_s: float = 0.0) -> EventView:
    event = view(EventView, type="step.running", no=no, attempt=attempt, at=at(at_s), source="worker")
    return _with_payload(event, {"worker": str(WORKER)})


def _with_payload(event: EventView, payload: Any) -> EventView:
    return EventView(**{f.name: getattr(event, f.name) for f in fields(EventView)} | {"payload": payload})


def completed_job(**given: Any) -> JobHistory:
    """A job of `bulk`: two steps, one attempt each."""
    values = {"id": JOB, "recipe": "bulk", "state": JobState.COMPLETED, "input": {"n": 7}, "idempotency_key": "k"}
    steps = [view(StepView, no=no, node=no, state=StepState.COMPLETED, attempt=1, losses=0) for no in (0, 1)]
    return JobHistory(view(JobView, **values | given), bulk.plan, steps, [running(0, 1), running(1, 1)])


def lines(*attempts: tuple[str, int, float], job: UUID = JOB, word: str | None = None) -> list[Line]:
    words = ("start", "end") if word is None else (word,)
    return [Line(w, job, step, None, attempt, 99, at_s) for step, attempt, at_s in attempts for w in words]


RAN = lines(("bulky", 1, 10.0), ("measure", 1, 11.0))


def evidence(
    *jobs: JobHistory, journal: list[Line] | None = None, output: Any = OUTPUT, workers: tuple[WorkerView, ...] = ()
) -> Evidence:
    found = {job.view.id: job for job in jobs}
    outputs = {job_id: output for job_id, job in found.items() if job.view.state is JobState.COMPLETED}
    return Evidence(Tables([], [], [], 0, []), found, outputs, workers, RAN if journal is None else journal)


def ledger(*answers: UUID, **given: Any) -> Ledger:
    return Ledger({"k": Wish("k", "bulk", 7, answers=list(answers))}, **given)


def rules(found: Evidence, known: Ledger, **given: Any) -> list[str]:
    return [violation.rule for violation in judge(found, known, **given)]


def test_a_good_run_has_no_violations() -> None:
    assert judge(evidence(completed_job()), ledger(JOB)) == []


def test_an_accepted_job_that_is_gone_is_lost() -> None:
    assert rules(evidence(journal=[]), ledger(JOB)) == ["lost"]


def test_an_accepted_retry_that_is_gone_is_lost() -> None:
    assert rules(evidence(completed_job()), ledger(JOB, retried={OTHER})) == ["lost"]


def test_a_submission_without_an_answer_may_have_happened_or_not() -> None:
    assert rules(evidence(completed_job()), ledger()) == []
    assert rules(evidence(journal=[]), ledger()) == []


def test_two_jobs_of_one_key_are_seen() -> None:
    both = evidence(completed_job(), completed_job(id=OTHER), journal=RAN + [_of(line, OTHER) for line in RAN])
    assert rules(both, ledger(JOB)) == ["doubled"]


def _of(line: Line, job_id: UUID) -> Line:
    return Line(line.word, job_id, line.step, line.index, line.attempt, line.pid, line.at_s)


def test_two_answers_for_one_key_are_seen() -> None:
    assert "doubled" in rules(evidence(completed_job()), ledger(JOB, OTHER))


def test_a_job_that_nobody_asked_for_is_seen() -> None:
    assert rules(evidence(completed_job(idempotency_key=None)), Ledger()) == ["unasked"]
    assert rules(evidence(completed_job(idempotency_key="x")), Ledger()) == ["unasked"]


def test_a_job_with_another_body_is_seen() -> None:
    assert "altered" in rules(evidence(completed_job(input={"n": 8}), output=OUTPUT + 1), ledger(JOB))


def test_a_wrong_output_is_seen() -> None:
    assert rules(evidence(completed_job(), output=0), ledger(JOB)) == ["output"]


def test_a_failure_needs_a_reason() -> None:
    failed = completed_job(state=JobState.FAILED, error={"code": "boom"})
    assert rules(evidence(failed), ledger(JOB)) == ["outcome"]
    lost = completed_job(state=JobState.FAILED, error={"code": "worker_lost"})
    assert rules(evidence(lost), ledger(JOB)) == ["outcome"]
    worn = JobHistory(lost.view, lost.plan, [view(StepView, no=0, node=0, losses=5)], lost.events)
    assert rules(evidence(worn, journal=[]), ledger(JOB)) == ["outcome"]


def test_only_poison_may_fail_because_workers_died() -> None:
    values = {"recipe": "poison", "state": JobState.FAILED, "error": {"code": "worker_lost"}}
    job = JobHistory(completed_job(**values).view, poison.plan, [view(StepView, no=0, node=0, attempt=3)], [])
    known = Ledger({"k": Wish("k", "poison", 7, answers=[JOB])})
    assert rules(evidence(job, journal=[]), known) == []


def test_a_step_that_never_snoozes_was_claimed_by_a_worker_without_its_handler() -> None:
    put_off = _with_payload(view(EventView, type="step.parked", no=0), {"waiting_for": "snooze"})
    job = completed_job()
    assert rules(evidence(JobHistory(job.view, job.plan, job.steps, [*job.events, put_off])), ledger(JOB)) == [
        "wrong claim"
    ]


def test_a_recipe_that_can_only_fail_must_not_complete() -> None:
    step = view(StepView, no=0, node=0, state=StepState.COMPLETED, attempt=0)
    job = JobHistory(completed_job(recipe="forsaken").view, forsaken.plan, [step], [])
    known = Ledger({"k": Wish("k", "forsaken", 7, answers=[JOB])})
    assert rules(evidence(job, journal=[]), known) == ["outcome"]


def test_a_cancellation_must_have_been_asked_for() -> None:
    job = completed_job(state=JobState.CANCELLED)
    assert rules(evidence(job), ledger(JOB)) == ["outcome"]
    assert rules(evidence(job), ledger(JOB, cancelled={JOB})) == []


def test_a_child_may_be_cancelled_with_its_parent() -> None:
    child = completed_job(id=OTHER, state=JobState.CANCELLED, parent_job=JOB, idempotency_key=None)
    parent = completed_job(state=JobState.CANCELLED)
    found = evidence(parent, child, journal=RAN + [_of(line, OTHER) for line in RAN])
    assert rules(found, ledger(JOB, cancelled={JOB})) == []


def test_a_timeout_needs_a_deadline() -> None:
    assert rules(evidence(completed_job(state=JobState.TIMEOUT)), ledger(JOB)) == ["outcome"]
    assert rules(evidence(completed_job(state=JobState.TIMEOUT, deadline_at=at(1))), ledger(JOB)) == []


def test_an_attempt_that_was_never_claimed_is_seen() -> None:
    stray = RAN + lines(("measure", 2, 12.0), word="start")
    assert rules(evidence(completed_job(), journal=stray), ledger(JOB)) == ["unclaimed", "run again"]


def test_a_crash_may_undo_a_claim() -> None:
    stray = evidence(completed_job(), journal=RAN + lines(("measure", 2, 12.0), word="start"))
    assert rules(stray, ledger(JOB), crashes=[12.5]) == []
    assert undone_claims(stray) == 1
    assert rules(stray, ledger(JOB), crashes=[99.0]) == ["unclaimed", "run again"]


def test_an_attempt_that_begins_twice_is_seen() -> None:
    twice = RAN + lines(("measure", 1, 12.0), word="start")
    assert rules(evidence(completed_job(), journal=twice), ledger(JOB)) == ["begun twice"]
    assert rules(evidence(completed_job(), journal=twice), ledger(JOB), crashes=[11.5]) == []


def test_a_step_whose_handler_never_ended_is_not_done() -> None:
    cut = lines(("bulky", 1, 10.0)) + lines(("measure", 1, 11.0), word="start")
    assert rules(evidence(completed_job(), journal=cut), ledger(JOB)) == ["not done"]


def test_an_attempt_of_no_known_step_is_seen() -> None:
    stray = RAN + lines(("nothing", 1, 12.0)) + lines(("bulky", 1, 12.0), job=OTHER)
    assert rules(evidence(completed_job(), journal=stray), ledger(JOB)) == ["unknown attempt"] * 4


def test_a_worker_that_still_holds_steps_is_seen() -> None:
    worker = view(WorkerView, id=WORKER, pid=5, running=1, lost_at=at(1))
    assert rules(evidence(completed_job(), workers=(worker,)), ledger(JOB)) == ["held"]


def test_a_worker_that_left_is_off_the_list() -> None:
    worker = view(WorkerView, id=WORKER, pid=5, running=0)
    found = evidence(completed_job(), workers=(worker,))
    assert rules(found, ledger(JOB), dismissed=[5]) == ["enlisted"]
    assert rules(found, ledger(JOB), dismissed=[6]) == []


def test_an_answer_that_nobody_should_get_is_seen() -> None:
    assert rules(evidence(completed_job()), ledger(JOB, surprises=["KeyError: k"])) == ["surprise"]


def test_the_history_checker_has_its_say() -> None:
    found = evidence(completed_job())
    found.tables.inbox = 1
    assert rules(found, ledger(JOB)) == ["history"]


def test_recovery_is_measured_from_the_kill_to_the_next_attempt() -> None:
    worker = view(WorkerView, id=WORKER, pid=5, running=0, started_at=at(0))
    queued = view(EventView, type="step.queued", no=0, attempt=1, at=at(30), source="rescuer")
    job = completed_job()
    history = JobHistory(job.view, job.plan, job.steps, [running(0, 1, 10), queued, running(0, 2, 31)])
    found = evidence(history, workers=(worker,))
    assert recovery_times(found, [Kill(5, 15.0)]) == [16.0]
    assert recovery_times(found, [Kill(5, 5.0)]) == [], "it began after the kill"
    assert recovery_times(found, [Kill(6, 15.0)]) == [], "another worker was killed"
