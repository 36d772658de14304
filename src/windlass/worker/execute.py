"""Runs one attempt's handler on the loop, in a thread or in a process, and turns its result into an outcome.

An `async` handler runs on the loop, a plain handler in a thread, a `cpu=True` handler in a process. All three end here:
with a value, an exception, or the cancellation of the task that waits for the handler. The worker cancels that task
when the time limit has passed, when it no longer holds the step, or when it ends.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import ExitStack
from contextvars import Context as Variables
from contextvars import copy_context
from dataclasses import replace
from typing import Any, assert_never

from windlass.core.outcome import Cost, Failure, Fault, Outcome, Parked, Released, Success
from windlass.pure.observer import Observer
from windlass.store.artifact import REFERENCE_KEY, Artifacts, fitted, is_inline, is_reference
from windlass.worker.attempt import Attempt, Why
from windlass.worker.begun import Begun
from windlass.worker.binding import BadArguments
from windlass.worker.child import Task
from windlass.worker.context import Cancelled, Context, enter
from windlass.worker.drive import Drive
from windlass.worker.fault import failure_of
from windlass.worker.handler import Handler, Kind, Prepared
from windlass.worker.log_tail import caught
from windlass.worker.notes import Notes
from windlass.worker.output import outcome_of
from windlass.worker.outside import Capabilities, Outside
from windlass.worker.processes import Processes
from windlass.worker.threads import Threads

OUTPUT_MAX_BYTES = 256 * 1024
# How long an attempt waits for a free process before it is handed back for another worker to take.
PROCESS_WAIT_S = 10.0
# The longest wait of a parked step that holds a provider's slot: the slot must be released some day.
WAIT_S = 3600.0


class Executor:
    """Runs handlers. Used from the worker's loop only."""

    def __init__(
        self,
        *,
        notes: Notes,
        artifacts: Artifacts | None,
        processes: int,
        output_max_bytes: int = OUTPUT_MAX_BYTES,
        observer: Observer | None = None,
        capabilities: Capabilities | None = None,
        begun: Begun | None = None,
    ) -> None:
        self.capabilities = capabilities or Capabilities()
        self._begun = begun
        self._loop = asyncio.get_running_loop()
        self.threads = Threads()
        self.processes = Processes(processes)
        self._notes = notes
        self._artifacts = artifacts
        self._output_max_bytes = output_max_bytes
        self.observer = observer
        self._caught = ExitStack()
        self._caught.enter_context(caught())

    async def close(self) -> None:
        """End the threads and processes."""
        self._caught.close()
        self.threads.close()
        await self.processes.close()

    async def execute(self, attempt: Attempt, prepared: Prepared, handler: Handler, arguments: Any) -> Outcome | None:
        """Run the handler to its outcome. Returns None when a stopped attempt has nothing to report."""
        ctx = self._context(attempt, prepared)
        outcome: Outcome | None
        try:
            match handler.kind:
                case Kind.ASYNC:
                    outcome = await self._on_loop(attempt, handler, arguments, ctx)
                case Kind.THREAD:
                    outcome = await self._in_thread(attempt, handler, arguments, ctx)
                case Kind.PROCESS:
                    outcome = await self._in_process(attempt, prepared, handler, arguments, ctx)
                case _:
                    assert_never(handler.kind)
        except asyncio.CancelledError as error:
            if attempt.why is not None or _is_being_cancelled():
                raise
            # Something that the handler awaited was cancelled, not the handler's own task.
            return failure_of(error)
        except Cancelled as error:
            return None if ctx.cancelled else failure_of(error)
        except BadArguments as error:
            return bad_arguments(error)
        except BaseException as error:
            return failure_of(error)
        finally:
            if attempt.mark is not None and self._begun is not None:
                self._begun.clear(attempt.mark)
                attempt.mark = None
        if isinstance(outcome, Parked):
            return _bounded(outcome, prepared, attempt)
        return await self._fit_output(outcome)

    def _context(self, attempt: Attempt, prepared: Prepared) -> Context:
        claimed, key, notes = attempt.claimed, attempt.key, self._notes
        limit_s = claimed.timeout_s if claimed.deadline_s is None else min(claimed.timeout_s, claimed.deadline_s)
        ctx = attempt.context = Context(
            claimed.job_id,
            prepared.name,
            claimed.index,
            claimed.attempt,
            checkpoint=claimed.checkpoint,
            timeout_s=limit_s,
            say=lambda words: notes.say(key, words),
            request_id=claimed.seen.correlation_id,
            outside=lambda: self._outside(attempt, prepared, ctx),
            key=attempt.undo_key,
        )
        return ctx

    def _outside(self, attempt: Attempt, prepared: Prepared, ctx: Context) -> Outside:
        return Outside(
            attempt.key,
            attempt.claimed.worker,
            prepared.plan.nodes[attempt.claimed.node],
            self.capabilities,
            spend=ctx._spent,
            is_over=lambda: attempt.is_over,
            abandon=lambda: attempt.ask_to_stop(Why.NOT_OURS),
            loop=self._loop,
        )

    async def _on_loop(self, attempt: Attempt, handler: Handler, arguments: Any, ctx: Context) -> Outcome:
        binding = handler.binding
        variables = self._variables(attempt, ctx)
        if self._begun is not None:
            attempt.mark = self._begun.mark(attempt.key)
        coroutine = variables.run(binding.function, **binding.arguments(arguments, ctx))
        return outcome_of(await Drive(coroutine, variables, attempt.wait))

    async def _in_thread(self, attempt: Attempt, handler: Handler, arguments: Any, ctx: Context) -> Outcome:
        binding = handler.binding
        keywords = binding.arguments(arguments, ctx)
        variables = self._variables(attempt, ctx)

        def call() -> Outcome:
            # The thread encodes the output too: a big output would block the loop.
            return outcome_of(variables.run(binding.function, **keywords))

        attempt.start_clock()
        attempt.is_in_thread = True
        if self._begun is not None:
            attempt.mark = self._begun.mark(attempt.key)
        try:
            return await self.threads.run(call)  # type: ignore[no-any-return]
        finally:
            attempt.is_in_thread = False

    async def _in_process(
        self, attempt: Attempt, prepared: Prepared, handler: Handler, arguments: Any, ctx: Context
    ) -> Outcome | None:
        if handler.address is None or handler.complaint is not None:
            return Failure(Fault("program", handler.complaint or "", "TypeError"), is_retryable=False)
        try:
            wait_s = min(PROCESS_WAIT_S, attempt.claimed.timeout_s / 2)
            await asyncio.wait_for(self.processes.enter(), wait_s)
        except TimeoutError:
            return Released()
        try:
            claimed = attempt.claimed
            attempt.start_clock()
            if self._begun is not None:
                attempt.mark = self._begun.mark(attempt.key)
            if self.observer is not None:
                self._variables(attempt, ctx)
            task = Task(
                handler.address,
                arguments,
                claimed.job_id,
                prepared.name,
                claimed.index,
                claimed.attempt,
                claimed.checkpoint,
                ctx.deadline,
                claimed.seen.correlation_id,
                attempt.undo_key,
            )

            def spend(cost: Cost) -> None:
                # The process reports its total cost so far.
                ctx._cost = cost

            return await self.processes.run(
                task, ctx._tell, lambda process: setattr(attempt, "process", process), spend
            )
        finally:
            attempt.process = None
            self.processes.leave()

    def _variables(self, attempt: Attempt, ctx: Context) -> Variables:
        variables = copy_context()
        variables.run(enter, ctx)
        if self.observer is not None:
            attempt.tell = variables.run(observe, self.observer, attempt)
        return variables

    async def _fit_output(self, outcome: Outcome | None) -> Outcome | None:
        """Store an output that is too large for a row as an artifact (`store/artifact.py`)."""
        if not isinstance(outcome, Success) or is_inline(outcome.output, self._output_max_bytes):
            return outcome
        if self._artifacts is None:
            if is_reference(outcome.output):
                message = f"an output of {REFERENCE_KEY!r} alone needs an artifact store: put it under another key"
                return Failure(Fault("bad_output", message), is_retryable=False)
            message = (
                f"the output has {len(outcome.output.encode())} bytes, and there is no artifact store for more than "
            )
            return Failure(Fault("output_too_large", f"{message}{self._output_max_bytes}"), is_retryable=False)
        try:
            return Success(await fitted(self._artifacts, outcome.output, self._output_max_bytes))
        except Exception as error:
            fault = failure_of(error).fault
            return Failure(Fault("artifact_store", f"the output could not be stored: {fault.message}", fault.kind))


def _bounded(parked: Parked, prepared: Prepared, attempt: Attempt) -> Parked:
    """Give a wait without an end the step's own limit. A wait that holds a slot always has an end."""
    node = prepared.plan.nodes[attempt.claimed.node]
    if parked.within_s is not None or (node.wait_s is None and not node.is_slotted):
        return parked
    return replace(parked, within_s=WAIT_S if node.wait_s is None else node.wait_s)


def bad_arguments(error: BaseException) -> Failure:
    """Build the failure for arguments that cannot be made or do not fit the function.

    A retry would fail the same way.
    """
    return Failure(Fault("bad_arguments", str(error), type(error).__name__), is_retryable=False)


def observe(observer: Observer, attempt: Attempt) -> Callable[[str], None]:
    """Report the start of an attempt to the observer. Returns the callback for its end."""
    claimed, prepared = attempt.claimed, attempt.prepared
    assert prepared is not None
    lag_s = None
    if claimed.attempt == 1 and not prepared.plan.nodes[claimed.node].needs:
        # A job's id begins with the millisecond of its creation, by the clock of the process that made it.
        lag_s = max(0.0, time.time() - (claimed.job_id.int >> 80) / 1000)
    return observer.attempt(
        claimed.job_id,
        prepared.plan.recipe,
        prepared.name,
        claimed.index,
        claimed.attempt,
        claimed.seen.correlation_id,
        lag_s,
    )


def _is_being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
