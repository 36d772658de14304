"""The history checker lets a sound history pass, and names each fault of an unsound history."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import msgspec
import pytest

from windlass.core.plan import Node, Plan
from windlass.store.plans import PLANS
from windlass.testing.checker import Tables, check_tables

JOB, WORKER = UUID(int=1), UUID(int=2)
START = datetime(2025, 1, 1, tzinfo=UTC)
CHAIN = Plan("chain", (Node("a", run="a"), Node("b", run="b", needs=("a",))))
FAN = Plan("fan", (Node("each", run="a", each="inputs.items"),))
PLANS.keep(CHAIN)
PLANS.keep(FAN)

RUNNING = {"worker": str(WORKER)}
# type, step, attempt, payload
SOUND: list[tuple[Any, ...]] = [
    ("job.submitted",),
    ("job.processing",),
    ("step.running", 0, 1, RUNNING),
    ("step.completed", 0, 1),
    ("step.queued", 1, 0),
    ("step.running", 1, 1, RUNNING),
    ("step.completed", 1, 1),
    ("job.completed",),
]


def event(
    seq: int, type: str, no: int | None = None, attempt: int | None = None, payload: Any = None
) -> dict[str, Any]:
    text = None if payload is None else msgspec.json.encode(payload).decode()
    at = START + timedelta(seconds=seq)
    return {"job_id": JOB, "seq": seq, "at": at, "type": type, "source": "worker", "no": no, "attempt": attempt,
            "payload": text}  # fmt: skip


def step(no: int, state: str = "COMPLETED", **given: Any) -> dict[str, Any]:
    row = {"job_id": JOB, "no": no, "node": no, "index": None, "state": state, "attempt": 1, "unmet": 0, "fan": None}
    row |= {"fanned": None, "worker": None, "error": None, "finished_at": START, "output": None}
    return row | given


def job(**given: Any) -> dict[str, Any]:
    row = {"id": JOB, "plan": CHAIN.hash, "state": "COMPLETED", "is_paused": False, "event_seq": len(SOUND)}
    row |= {"steps_total": 2, "steps_open": 0, "steps_failed": 0, "input": "{}", "parent_job": None, "trouble": None}
    row |= {
        "error": None,
        "created_at": START,
        "finished_at": START,
        "due_at": None,
        "deadline_at": None,
        "expires_at": None,
    }
    return row | given


def wrong(
    events: list[tuple[Any, ...]] = SOUND,
    steps: list[dict[str, Any]] | None = None,
    row: dict[str, Any] | None = None,
    *,
    inbox: int = 0,
    workers: list[dict[str, Any]] | None = None,
) -> str:
    rows = [event(seq, *given) for seq, given in enumerate(events, 1)]
    tables = Tables([row or job(event_seq=len(events))], steps or [step(0), step(1)], rows, inbox, workers or [])
    return "\n".join(check_tables(tables))


def without(*types_and_steps: tuple[Any, ...]) -> list[tuple[Any, ...]]:
    return [given for given in SOUND if given[:2] not in types_and_steps and given not in types_and_steps]


def test_a_sound_history_passes() -> None:
    assert wrong() == ""


def test_a_gap_is_seen() -> None:
    assert "gap" in wrong(row=job(event_seq=9))


def test_a_step_that_is_completed_twice_is_seen() -> None:
    doubled = [*SOUND[:4], ("step.completed", 0, 1), *SOUND[4:]]
    assert "step 0 went from COMPLETED to COMPLETED" in wrong(doubled)


def test_a_finished_step_that_starts_again_is_seen() -> None:
    again = [*SOUND[:4], ("step.running", 0, 2, RUNNING), ("step.completed", 0, 2), *SOUND[4:]]
    assert "step 0 went from COMPLETED to RUNNING" in wrong(again, [step(0, attempt=2), step(1)])


def test_a_completion_without_a_start_is_seen() -> None:
    found = wrong(without(("step.running", 0, 1, RUNNING)))
    assert "step 0 went from QUEUED to COMPLETED" in found
    assert "attempt 1, and not 0" in found


def test_a_step_that_starts_before_what_it_needs_is_seen() -> None:
    early = [*SOUND[:3], ("step.queued", 1, 0), ("step.running", 1, 1, RUNNING), ("step.completed", 1, 1), SOUND[3]]
    assert "step 1 is QUEUED before all that it needs is done" in wrong([*early, SOUND[-1]])


def test_a_terminal_job_that_moves_is_seen() -> None:
    assert "went from COMPLETED to FAILED" in wrong([*SOUND, ("job.failed",)], row=job(event_seq=9, state="FAILED"))


def test_a_step_that_moves_after_the_end_is_seen() -> None:
    found = wrong([*SOUND[:5], ("job.cancelled",), *SOUND[5:7]], row=job(event_seq=8, state="CANCELLED"))
    assert "step 1 is COMPLETED after the job was CANCELLED" in found


def test_an_attempt_that_is_skipped_is_seen() -> None:
    skipped = [given if given[:2] != ("step.running", 1) else ("step.running", 1, 2, RUNNING) for given in SOUND]
    assert "attempt 2, and not 1" in wrong(skipped)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"state": "PROCESSING", "finished_at": None}, "is still PROCESSING"),
        ({"steps_open": 1}, "steps_open is 1"),
        ({"steps_failed": 1}, "steps_failed is 1"),
        ({"finished_at": None}, "does not say so"),
        ({"is_paused": True}, "is_paused is True"),
        ({"state": "FAILED", "error": '{"code":"wait_timeout"}'}, "is FAILED by wait_timeout, and not TIMEOUT"),
        ({"state": "TIMEOUT", "error": '{"code":"boom"}'}, "timed out before its deadline"),
    ],
)
def test_a_job_whose_row_disagrees_is_seen(change: dict[str, Any], complaint: str) -> None:
    assert complaint in wrong(row=job(**change))


@pytest.mark.covers("SCR-72")
@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"state": "RUNNING", "worker": WORKER, "finished_at": None}, "1 are open"),
        ({"worker": WORKER}, "does not say so"),
        ({"attempt": 2}, "stored with attempt 2"),
        ({"state": "SKIPPED"}, "the events lead elsewhere"),
    ],
)
def test_a_step_whose_row_disagrees_is_seen(change: dict[str, Any], complaint: str) -> None:
    assert complaint in wrong(steps=[step(0), step(1, **change)])


def test_a_fan_out_that_lacks_children_is_seen() -> None:
    span = {"first": 1, "from": 0, "count": 2, "of": 2}
    events = [
        ("job.submitted",), ("job.dispatching",), ("step.fanned", 0, 0, span),
        ("step.parked", 0, 0, {"waiting_for": "fan"}), ("job.processing",), ("step.running", 1, 1, RUNNING),
        ("step.completed", 1, 1), ("step.completed", 0, 0), ("job.completed",),
    ]  # fmt: skip
    fan = step(0, attempt=0, fan=2, fanned=2)
    found = wrong(events, [fan, step(1, node=0, index=0)], job(plan=FAN.hash, event_seq=9))
    assert "fan-out 0 of 2 has the children [0]" in found


def test_word_that_was_never_carried_is_seen() -> None:
    assert "1 words" in wrong(inbox=1)


def test_a_worker_that_lost_its_steps_within_its_lease_is_seen() -> None:
    lost = {"id": WORKER, "lost_at": START, "lease_until": START + timedelta(seconds=1)}
    assert "taken for lost while its lease lasted" in wrong(workers=[lost])
