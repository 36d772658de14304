"""What the simulated clients saw: the checker compares it with what the database has in the end."""

from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any
from uuid import UUID

from windlass.core.outcome import Outcome

Key = tuple[UUID, int, int]  # job, step number, attempt


@dataclass(frozen=True, slots=True)
class Answer:
    """What a submitter was told."""

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
    """Grows during a run. What was asked but never answered is in `asked` and `sent` only."""

    answers: list[Answer] = field(default_factory=list)
    # Every job id that was ever asked for, with the inputs.
    asked: dict[UUID, dict[str, Any]] = field(default_factory=dict)
    # The beginnings of attempts: who, and when.
    started: dict[Key, list[tuple[UUID, float]]] = field(default_factory=dict)
    sent: dict[Key, list[Outcome]] = field(default_factory=dict)
    told: list[Told] = field(default_factory=list)
    # When a step was heard to be over for good, by (job, number).
    over: dict[tuple[UUID, int], float] = field(default_factory=dict)
    # The moments at which a worker's lease began or was extended, by the database's own account.
    leases: dict[UUID, list[float]] = field(default_factory=dict)
    # When a worker was marked as lost, and when the database was away, from and until.
    lost: dict[UUID, float] = field(default_factory=dict)
    # Workers whose process died while its heartbeat lived, which ends the lease at once.
    died: set[UUID] = field(default_factory=set)
    outages: list[tuple[float, float]] = field(default_factory=list)
    cancelled: list[UUID] = field(default_factory=list)
    violations: list[str] = field(default_factory=list)
    retried: dict[UUID, UUID] = field(default_factory=dict)
    # Of re-runs from a step: the job that was run again, the step, and what was told beforehand to run.
    reran: dict[UUID, tuple[UUID, str, frozenset[str]]] = field(default_factory=dict)
    # Attempts whose claim a crash undid: another worker may get the same number.
    forgotten: set[Key] = field(default_factory=set)
    # Attempts that were claimed from the twin of a queue by a process that ran nothing else.
    apart: set[Key] = field(default_factory=set)
    # Attempts that were claimed and had not begun when their process died.
    fresh: set[Key] = field(default_factory=set)
    # Whether some steps kill the processes that run them.
    has_poison: bool = False
    # What happened outside: when, and what.
    outside: list[tuple[float, str]] = field(default_factory=list)
    # The ids of webhooks that were answered for.
    answered: set[str] = field(default_factory=set)
    # How many signals were sent, and what their senders heard, by job and id.
    signals: int = 0
    signalled: dict[tuple[UUID, str], list[str]] = field(default_factory=dict)
    # The budgets that were set last, by scope and name.
    budgets: dict[tuple[str, str], Decimal] = field(default_factory=dict)
    # When the faults ended; from then on everybody does his duty in time.
    calm_at: float = 0.0

    def send(self, key: Key, outcome: Outcome) -> None:
        """A report leaves."""
        self.sent.setdefault(key, []).append(outcome)
