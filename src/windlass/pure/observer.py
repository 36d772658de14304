"""The port through which worker, submitter and loops tell what they do to whoever measures it.

A holder keeps `Observer | None` and tests for None: without an observer nothing is paid. Every method is cheap, does
not wait and does not raise.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime
from typing import Protocol
from uuid import UUID


class Observer(Protocol):
    """Hears of work as it is done."""

    def submitted(self, job_ids: Sequence[UUID], seconds: float) -> None:
        """A commit made these jobs."""
        ...

    def claimed(self, steps: int, wanted: int, seconds: float) -> None:
        """A claim took this many steps of those that there was room for."""
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
        """A handler starts. Called in the handler's own context, so that what it sets there is the handler's to see.

        What it gives is called once, from anywhere, with the word for how the attempt ended. `lag_s` is how long a
        job's first step waited; None for the others.
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
        """A job has ended, which that of `parent` started. Told once, by the one process that follows the feed then."""
        ...

    def looped(self, duty: str, count: int, seconds: float) -> None:
        """A duty of the engine had one turn."""
        ...
