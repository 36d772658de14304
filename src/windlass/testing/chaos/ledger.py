"""What the submitters know: which jobs they asked for, which were accepted, and what they did to them since."""

from __future__ import annotations

from dataclasses import dataclass, field
from uuid import UUID


@dataclass(slots=True)
class Wish:
    """A job that was asked for, under an idempotency key. Each answer that came back is kept."""

    key: str
    recipe: str
    n: int
    deadline_s: float | None = None
    answers: list[UUID] = field(default_factory=list)


@dataclass(slots=True)
class Ledger:
    """Everything that was asked for. What has no answer may or may not have happened."""

    wishes: dict[str, Wish] = field(default_factory=dict)
    # Jobs whose cancellation was asked for.
    cancelled: set[UUID] = field(default_factory=set)
    # The new jobs of retries, by the job that they retry; and those among them whose call returned.
    retries: dict[UUID, UUID] = field(default_factory=dict)
    retried: set[UUID] = field(default_factory=set)
    # What senders of events heard, by job and id.
    signals: dict[tuple[UUID, str], str] = field(default_factory=dict)
    counts: dict[str, int] = field(default_factory=dict)
    # Answers that nobody should ever get.
    surprises: list[str] = field(default_factory=list)

    @property
    def accepted(self) -> list[UUID]:
        """The jobs whose submission was answered, in the order of the answers' wishes."""
        return [job_id for wish in self.wishes.values() for job_id in dict.fromkeys(wish.answers)]

    def count(self, what: str) -> None:
        """One more of these."""
        self.counts[what] = self.counts.get(what, 0) + 1
