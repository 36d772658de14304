"""The port through which the worker, the submitter and the loops report their work to metrics and traces.

A holder keeps `Observer | None` and tests for None, so a process without an observer pays nothing. Every method is
cheap, does not wait and does not raise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID


class Observer(Protocol):
    """Receives reports about work."""

    def submitted(self, job_ids: Sequence[UUID], seconds: float) -> None:
        """A commit created these jobs."""
        ...

    def claimed(self, steps: int, wanted: int, seconds: float) -> None:
        """A claim took `steps` of the `wanted` steps."""
        ...

    def settled(self, reports: int, seconds: float) -> None:
        """A commit settled this many attempts."""
        ...

    def attempt(
        self,
        job_id: UUID,
        recipe: str,
        step: str,
        index: int | None,
        attempt: int,
        request_id: str | None,
        lag_s: float | None,
    ) -> Callable[[str], None]:
        """A handler starts. Called in the handler's own context, so the handler sees context variables set here.

        Returns a function that is called once, from any thread, with a word for the outcome of the attempt. `lag_s` is
        how long a job's first step waited; None for other steps.
        """
        ...

    def ended(
        self,
        job_id: UUID,
        recipe: str,
        state: str,
        created_at: datetime,
        finished_at: datetime,
        request_id: str | None,
        parent: UUID | None = None,
    ) -> None:
        """A job, started by the job `parent` if set, has ended. Reported once, by the process that follows the feed."""
        ...

    def looped(self, duty: str, count: int, seconds: float) -> None:
        """A duty of the engine ran once."""
        ...
