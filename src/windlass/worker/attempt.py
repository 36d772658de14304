"""One attempt under way in this worker: who runs it, how long it may take, and whether it was told to stop."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from enum import Enum
from typing import Any

from windlass.engine.claim import Claimed
from windlass.worker.context import Context
from windlass.worker.handler import Prepared
from windlass.worker.notes import Key


class Why(Enum):
    """Why an attempt was told to stop before its handler ended."""

    TIMEOUT = "timeout"  # it ran too long: a failure
    NOT_OURS = "not ours"  # cancelled, or given to another: nothing is reported
    DRAIN = "drain"  # this worker ends: handed back


class Attempt:
    """Used from the worker's loop only."""

    __slots__ = (
        "_is_interrupted",
        "_on_timeout",
        "_timer",
        "claimed",
        "context",
        "has_waited",
        "is_in_thread",
        "is_over",
        "key",
        "mark",
        "outputs",
        "prepared",
        "process",
        "task",
        "tell",
        "why",
    )

    def __init__(self, claimed: Claimed, on_timeout: Callable[[Attempt], None]) -> None:
        self.claimed = claimed
        self.key: Key = (claimed.job_id, claimed.no, claimed.attempt)
        self.prepared: Prepared | None = None
        # The outputs of other steps that its arguments refer to.
        self.outputs: dict[str, Any] = {}
        self.context: Context | None = None
        # The task that runs it, while it runs.
        self.task: asyncio.Task[None] | None = None
        # Where it runs when that can only be asked to stop.
        self.process: Any = None
        self.is_in_thread = False
        # Whether its handler has ever given way to the loop, and so may have met its task.
        self.has_waited = False
        # Its place in the table of begun attempts, from the moment its handler is entered.
        self.mark: int | None = None
        self.why: Why | None = None
        # Hears how it ended, if somebody watches.
        self.tell: Callable[[str], None] | None = None
        # Its outcome is decided: whatever its handler does from now on counts for nothing.
        self.is_over = False
        self._is_interrupted = False
        self._on_timeout = on_timeout
        self._timer: asyncio.TimerHandle | None = None

    @property
    def ids(self) -> dict[str, object]:
        """What a log line about it carries."""
        claimed, prepared = self.claimed, self.prepared
        return {
            "job": str(claimed.job_id),
            "step": claimed.no if prepared is None else prepared.name,
            "index": claimed.index,
            "attempt": claimed.attempt,
            "request_id": claimed.seen.correlation_id,
        }

    def start_clock(self) -> None:
        """Let the time limit run from now. An attempt that waits for a process has not started yet."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.claimed.timeout_s, self._on_timeout, self)

    def wait(self) -> None:
        """Its handler waits for something, for the first time."""
        self.has_waited = True
        self.start_clock()

    def ask_to_stop(self, why: Why) -> None:
        """Set `cancelled` in its context, and no more. The first reason stands."""
        if self.why is None:
            self.why = why
        if self.context is not None:
            self.context._cancel()

    def interrupt(self, why: Why) -> None:
        """Cancel the task that runs it, once."""
        if self.is_over or self._is_interrupted:
            return
        self.ask_to_stop(why)
        if self.task is not None:
            self._is_interrupted = True
            self.task.cancel()

    def end(self) -> None:
        """Its outcome is decided."""
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.context is not None:
            self.context._close()
