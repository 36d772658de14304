"""The port through which worker, submitter and loops tell what they do to whoever measures it.

A holder keeps `Observer | None` and tests for None: without an observer nothing is paid. Every method is cheap, does
not wait and does not raise.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol
from uuid import UUID


class Observer(Protocol):
    """Hears of work as it is done."""

    def submitted(self, jobs: int, seconds: float) -> None:
        """A commit made this many jobs."""
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
    ) -> AbstractContextManager[Callable[[str], None]]:
        """Around a handler, in its context. What it gives takes the outcome's word; `lag_s` is how long it waited."""
        ...

    def looped(self, duty: str, count: int, seconds: float) -> None:
        """A duty of the engine had one turn."""
        ...
