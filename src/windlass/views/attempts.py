"""A job's attempts, derived from its events: start, worker, outcome and log lines."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

import msgspec

from windlass.core.states import StepState
from windlass.core.visibility import Reader
from windlass.core.wait import WaitKind
from windlass.store.database import Database
from windlass.store.outputs import Row, fetch

Outcome = Literal["running", "succeeded", "failed", "lost", "waiting", "cancelled"]

ATTEMPTS_PAGE_MAX = 1_000
LOG_LINES_MAX = 100
LOG_CHARS_MAX = 16 * 1024
# Each event has at least one line.
_LOG_EVENTS_MAX = LOG_LINES_MAX
_OUTCOMES: dict[str, Outcome] = {"step.completed": "succeeded", "step.cancelled": "cancelled"}
_RELEASED = {"code": "released", "message": "its worker ended and handed it back"}
_LOST = {"code": "worker_lost", "message": "its worker died while it ran"}


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One attempt. `seq` is the number of the event that began it."""

    seq: int
    no: int
    node: int
    index: int | None
    attempt: int
    started_at: datetime
    finished_at: datetime | None
    outcome: Outcome
    worker: UUID | None
    error: Any


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line that an attempt logged; `at` is by its worker's clock."""

    at: str
    level: str
    text: str
    attempt: int


async def attempts(
    db: Database, job_id: UUID, *, no: int | None = None, after: int = 0, limit: int = ATTEMPTS_PAGE_MAX
) -> list[AttemptView]:
    """Return the attempts that began after this event, of one step or of all, in order of their start."""
    async with db.connection() as connection:
        begun = await fetch(connection, "attempt_begins", Reader.CALLER, job_id, after, no, limit)
        if not begun:
            return []
        numbers = sorted({row["no"] for row in begun})
        ends = await fetch(connection, "attempt_ends", Reader.CALLER, job_id, begun[0]["seq"], numbers)
    ended = {(row["no"], row["attempt"]): row for row in ends}
    return [_view(row, ended.get((row["no"], row["attempt"]))) for row in begun]


async def logs(db: Database, job_id: UUID, no: int) -> list[LogLine]:
    """Return the last log lines of the step's attempts, in order, limited in lines and characters."""
    async with db.connection() as connection:
        rows = await fetch(connection, "attempt_logs", Reader.CALLER, job_id, no, _LOG_EVENTS_MAX)
    found: list[LogLine] = []
    chars = 0
    for row in rows:
        for line in reversed(lines_of(msgspec.json.decode(row["payload"]), row["attempt"])):
            chars += len(line.text)
            if found and (len(found) >= LOG_LINES_MAX or chars > LOG_CHARS_MAX):
                return found[::-1]
            found.append(line)
    return found[::-1]


def lines_of(payload: Any, attempt: int | None) -> list[LogLine]:
    """Return the lines of one `step.log` event."""
    lines = payload.get("lines", ()) if isinstance(payload, Mapping) else ()
    return [LogLine(str(one["at"]), str(one["level"]), str(one["text"]), attempt or 0) for one in lines]


def _view(begin: Row, end: Row | None) -> AttemptView:
    worker = _decoded(begin["payload"]).get("worker")
    outcome, finished_at, error = _end(StepState(begin["state"]), end)
    return AttemptView(
        begin["seq"],
        begin["no"],
        begin["node"],
        begin["index"],
        begin["attempt"],
        begin["at"],
        finished_at,
        outcome,
        None if worker is None else UUID(worker),
        error,
    )


def _end(state: StepState, end: Row | None) -> tuple[Outcome, datetime | None, Any]:
    """Return the outcome, the time and the error of an attempt, from the event that ended it."""
    if end is None:
        # Only the last attempt has no end, so the step's state is the attempt's.
        return ("waiting" if state is StepState.PARKED else "running"), None, None
    payload = _decoded(end["payload"])
    error = payload.get("error")
    if end["type"] in ("step.queued", "step.held"):
        return "lost", end["at"], _RELEASED if payload.get("because") == "released" else _lost(payload)
    if end["type"] == "step.parked":
        return ("failed" if payload.get("waiting_for") == WaitKind.RETRY else "waiting"), end["at"], error
    if isinstance(error, Mapping) and error.get("code") == "worker_lost":
        return "lost", end["at"], error
    return _OUTCOMES.get(end["type"], "failed"), end["at"], error


def _lost(payload: Mapping[str, Any]) -> dict[str, str]:
    """Build the error of a lost attempt: how its worker died, and how many others it ran (its company), if known."""
    if (company := payload.get("company")) is None:
        return _LOST
    beside = "alone" if company == 0 else f"beside {company} other{'s' if company > 1 else ''}"
    return {**_LOST, "message": f"{payload.get('how', 'its worker died')} while it ran {beside}"}


def _decoded(payload: str | None) -> dict[str, Any]:
    return {} if payload is None else msgspec.json.decode(payload, type=dict)
