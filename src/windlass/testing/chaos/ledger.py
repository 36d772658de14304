"""The submitters' records: the jobs they submitted, the jobs that were accepted, and their later calls."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID


@dataclass(slots=True)
class Wish:
    """A submitted job, under an idempotency key. Each answer to the submit is kept."""

    key: str
    recipe: str
    n: int
    deadline_s: float | None = None
    answers: list[UUID] = field(default_factory=list)


@dataclass(slots=True)
class Ledger:
    """Every call of the submitters. A call without an answer may or may not have taken effect."""

    wishes: dict[str, Wish] = field(default_factory=dict)
    # Jobs with a requested cancellation.
    cancelled: set[UUID] = field(default_factory=set)
    # The retried job by the new job; and the new jobs whose call returned.
    retries: dict[UUID, UUID] = field(default_factory=dict)
    retried: set[UUID] = field(default_factory=set)
    # The answers to senders of events, by job and id.
    signals: dict[tuple[UUID, str], str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    # Answers that a caller should never get.
    surprises: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> list[UUID]:
        """The jobs with an answered submit, in the order of the submits."""
        return [job_id for wish in self.wishes.values() for job_id in dict.fromkeys(wish.answers)]

    def count(self, what: str) -> None:
        """Count one more of these."""
        self.counts[what] = self.counts.get(what, 0) + 1
