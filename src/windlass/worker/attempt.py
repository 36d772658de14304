"""One attempt in this worker: its task, its time limit, and whether it must stop."""

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
    """The reason to stop an attempt before its handler ended."""

    TIMEOUT = "timeout"  # it ran too long: a failure
    NOT_OURS = "not ours"  # cancelled, or claimed by another worker: nothing is reported
    DRAIN = "drain"  # this worker ends: handed back


class Attempt:
    """An attempt in hand. Used from the worker's loop only."""

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
        "undo_key",
        "why",
    )

    def __init__(self, claimed: Claimed, on_timeout: Callable[[Attempt], None]) -> None:
        self.claimed = claimed
        self.key: Key = (claimed.job_id, claimed.no, claimed.attempt)
        self.prepared: Prepared | None = None
        # The outputs of other steps that the arguments refer to.
        self.outputs: dict[str, Any] = {}
        # The idempotency key of an undo step.
        self.undo_key: str | None = None
        self.context: Context | None = None
        # The task that runs the handler, while it runs.
        self.task: asyncio.Task[None] | None = None
        # The process that runs the handler, if any. It can only be asked to stop.
        self.process: Any = None
        self.is_in_thread = False
        # Whether the handler has ever yielded to the loop, and so may have used its task.
        self.has_waited = False
        # The attempt's slot in the table of begun attempts, set when the handler is entered.
        self.mark: int | None = None
        self.why: Why | None = None
        # Called with the kind of end, if an observer watches.
        self.tell: Callable[[str], None] | None = None
        # The outcome is decided: the handler's further actions have no effect.
        self.is_over = False
        self._is_interrupted = False
        self._on_timeout = on_timeout
        self._timer: asyncio.TimerHandle | None = None

    @property
    def ids(self) -> dict[str, object]:
        """The ids for a log line about this attempt."""
        claimed, prepared = self.claimed, self.prepared
        return {
            "job": str(claimed.job_id),
            "step": claimed.no if prepared is None else prepared.name,
            "index": claimed.index,
            "attempt": claimed.attempt,
            "request_id": claimed.seen.correlation_id,
        }

    def start_clock(self) -> None:
        """Start the time limit. The limit does not include waiting for a free process."""
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(self.claimed.timeout_s, self._on_timeout, self)

    def wait(self) -> None:
        """Called when the handler first awaits."""
        self.has_waited = True
        self.start_clock()

    def ask_to_stop(self, why: Why) -> None:
        """Set `cancelled` in the context, without interrupting the handler. The first reason stands."""
        if self.why is None:
            self.why = why
        if self.context is not None:
            self.context._cancel()

    def interrupt(self, why: Why) -> None:
        """Cancel the task that runs the handler, once."""
        if self.is_over or self._is_interrupted:
            return
        self.ask_to_stop(why)
        if self.task is not None:
            self._is_interrupted = True
            self.task.cancel()

    def end(self) -> None:
        """Mark the outcome as decided: stop the time limit and close the context."""
        self.is_over = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.context is not None:
            self.context._close()
