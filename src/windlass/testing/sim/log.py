"""The records of the simulated clients, which the checker compares with the database in the end."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from windlass.core.outcome import Outcome, Report

Key = tuple[UUID, int, int]  # job, step number, attempt


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer to a submitter."""

    caller: str
    key: str | None
    body: dict[str, Any]
    # None stands for a conflict.
    job_id: UUID | None


@dataclass(frozen=True, slots=True)
class Told:
    """A report that was answered."""

    key: Key
    outcome: Outcome
    source: str
    took_effect: bool
    # The worker that the report names.
    worker: UUID | None = None


@dataclass
class Log:
    """The log of a run. Calls without an answer are in `asked` and `sent` only."""

    answers: list[Answer] = field(default_factory=list)
    # Every job id that was ever submitted, with its inputs.
    asked: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    # The beginnings of attempts: the worker, and when.
    started: dict[Key, list[tuple[UUID, float]]] = field(default_factory=dict)
    # When the handlers of attempts returned; a handler whose process died never does.
    returned: dict[Key, float] = field(default_factory=dict)
    sent: dict[Key, list[Outcome]] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    # When a step's success was acknowledged, by (job, number).
    over: dict[tuple[UUID, int], float] = field(default_factory=dict)
    # When the database began or extended a worker's lease.
    leases: dict[UUID, list[float]] = field(default_factory=dict)
    # When a worker was marked as lost. `outages` below: when the database was away, from and until.
    lost: dict[UUID, float] = field(default_factory=dict)
    # Workers whose process died while its heartbeat lived, which ends the lease at once.
    died: set[UUID] = field(default_factory=set)
    outages: list[tuple[float, float]] = field(default_factory=list)
    cancelled: list[UUID] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    retried: dict[UUID, UUID] = field(default_factory=dict)
    # By re-run: the job that was run again, the step, and the steps that the preview named.
    reran: dict[UUID, tuple[UUID, str, frozenset[str]]] = field(default_factory=dict)
    # Attempts whose claim a crash undid: another worker may get the same number.
    forgotten: set[Key] = field(default_factory=set)
    # Attempts that ran beside others in their process.
    accompanied: set[Key] = field(default_factory=set)
    # Attempts with a running handler when their process died.
    cut_off: set[Key] = field(default_factory=set)
    # Reports that may arrive again, or late.
    echoes: list[Report] = field(default_factory=list)
    # Whether some steps kill the processes that run them.
    has_poison: bool = False
    # Events at the providers: when, and what.
    outside: list[tuple[float, str]] = field(default_factory=list)
    # The ids of webhooks that were answered.
    answered: set[str] = field(default_factory=set)
    # The number of signals sent, and the answers to their senders, by job and id.
    signals: int = 0
    signalled: dict[tuple[UUID, str], list[str]] = field(default_factory=dict)
    # The latest budgets, by scope and name.
    budgets: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    # Set when the run is over: dead processes are being cleared away, and nothing more is recorded.
    is_over: bool = False
    # When the faults ended; from then on every process acts in time.
    calm_at: float = 0.0

    def send(self, key: Key, outcome: Outcome) -> None:
        """Record a report that is sent."""
        self.sent.setdefault(key, []).append(outcome)


class _Overheard(logging.Handler):
    """Turns an error log of the worker into a violation: the worker only logs such a bug because it must not end."""

    def __init__(self, log: Callable[[], Log]) -> None:
        super().__init__(logging.ERROR)
        self._log = log

    def emit(self, record: logging.LogRecord) -> None:
        error = "" if record.exc_info is None else f": {record.exc_info[1]!r}"
        if not self._log().is_over:
            self._log().violations.append(f"the worker logged: {record.getMessage()}{error}")


@contextmanager
def overheard(log: Callable[[], Log]) -> Iterator[None]:
    """Suppress the logs of planted faults; report errors that the worker did not expect."""
    ours, theirs = logging.getLogger("windlass"), logging.getLogger("windlass.worker")
    handler, before = _Overheard(log), (ours.level, ours.propagate)
    ours.setLevel(logging.ERROR)
    ours.propagate = False
    ours.addHandler(quiet := logging.NullHandler())
    theirs.addHandler(handler)
    try:
        yield
    finally:
        ours.setLevel(before[0])
        ours.propagate = before[1]
        ours.removeHandler(quiet)
        theirs.removeHandler(handler)
