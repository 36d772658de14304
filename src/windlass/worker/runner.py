"""Runs claimed steps: resolves the arguments, runs the handler, and gives the outcome to the settler.

It knows every attempt that this worker holds, by (job, step, attempt), and only the runner tells attempts to stop. If
an attempt does not stop when told (its handler swallows cancellation), the runner gives up on it after a grace. It then
reports the outcome without the handler, and another attempt takes the lane.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence, Set
from dataclasses import replace
from typing import Any, assert_never

from windlass.core.outcome import Cancel, Failure, Lost, Outcome, Parked, Released, Snooze, Success
from windlass.core.retry import Backoff
from windlass.engine.claim import Claimed
from windlass.engine.note import Note
from windlass.store.database import Database
from windlass.store.plans import PLANS, plan_of
from windlass.worker import fault
from windlass.worker.attempt import Attempt, Why
from windlass.worker.execute import Executor, observe
from windlass.worker.handler import Handler, Handlers, Prepared
from windlass.worker.lanes import Lanes
from windlass.worker.notes import Key, Notes
from windlass.worker.resolve import Arguments, NotResolved, is_away, unreadable
from windlass.worker.settler import Settler
from windlass.worker.undo import UndoCall

# How long a cancelled handler may take to clean up; less than the rescuer waits before it steps in.
GRACE_S = 3.0
READ_AGAIN = Backoff(0.5, 2.0, 4.0)
# For a step whose function this worker does not have: the job is not at fault, and another worker may have it.
UNKNOWN_HANDLER = Backoff(2.0, 2.0, 60.0)

# How metrics and traces name the end of an attempt. An attempt that another worker holds is `abandoned`.
WORDS: dict[type[Outcome], str] = {
    Success: "done",
    Failure: "failed",
    Snooze: "snoozed",
    Parked: "parked",
    Cancel: "cancelled",
    Released: "released",
    Lost: "lost",
}

_log = logging.getLogger("windlass.worker")


class Runner:
    """Runs attempts. Used from the worker's loop only. `on_room` is called whenever an attempt has ended."""

    def __init__(
        self,
        db: Database,
        *,
        concurrency: int,
        handlers: Handlers,
        arguments: Arguments,
        executor: Executor,
        notes: Notes,
        settler: Settler,
        on_room: Callable[[], None],
        grace_s: float = GRACE_S,
    ) -> None:
        self._db = db
        self._handlers = handlers
        self._arguments = arguments
        self._executor = executor
        self._observer = executor.observer
        self._notes = notes
        self._settler = settler
        self._on_room = on_room
        self._grace_s = grace_s
        self._loop = asyncio.get_running_loop()
        self._lanes: Lanes[Attempt] = Lanes(concurrency, self._work)
        self._background: set[asyncio.Task[None]] = set()
        self._unknown: dict[str, int] = {}
        self._waiting: set[Attempt] = set()
        self.running: dict[Key, Attempt] = {}

    def begin(self, claimed: Sequence[Claimed], over: Set[Key] = frozenset()) -> None:
        """Run these attempts, except attempts already in hand or ended since the database was asked (`over`)."""
        others: list[Attempt] = []
        for one in claimed:
            attempt = Attempt(one, self._timed_out)
            if attempt.key in self.running or self._settler.has(attempt.key) or attempt.key in over:
                continue
            self.running[attempt.key] = attempt
            try:
                prepared = self._prepared(one)
                outputs = None if prepared is None else self._arguments.known_outputs(one, prepared)
            except Exception as error:
                self._conclude(attempt, unreadable(error))
                continue
            if prepared is None or outputs is None:
                others.append(attempt)
            else:
                self._put(attempt, prepared, outputs)
        if others:
            self._spawn(self._read(others))

    def stop(self, attempt: Attempt, why: Why) -> None:
        """Tell an attempt to stop, and enforce it after a grace. Threads and processes are only asked at first."""
        if attempt.is_over:
            return
        if why is Why.NOT_OURS and attempt.is_in_thread:
            # The result does not count. The attempt keeps its lane until it ends or its time limit passes.
            attempt.ask_to_stop(why)
            return
        if why is Why.NOT_OURS and attempt.process is not None:
            attempt.ask_to_stop(why)
            self._executor.processes.stop(attempt.process)
            self._loop.call_later(self._grace_s, attempt.interrupt, why)
            return
        attempt.interrupt(why)
        self._loop.call_later(self._grace_s, self._write_off, attempt)

    def hand_back_waiting(self) -> None:
        """Hand back attempts that have waited for a lane since the last call: another worker may be free."""
        waiting = self._lanes.take_back()
        stale, self._waiting = self._waiting, set(waiting)
        for attempt in waiting:
            if attempt in stale:
                attempt.ask_to_stop(Why.DRAIN)
                self._conclude(attempt, None)
            else:
                self._lanes.put(attempt)

    def stop_all(self, why: Why) -> None:
        """Tell every attempt to stop."""
        for attempt in list(self.running.values()):
            self.stop(attempt, why)

    async def close(self) -> None:
        """Stop everything, without further reports."""
        for attempt in self.running.values():
            attempt.end()
        for task in self._background:
            task.cancel()
        await asyncio.gather(*self._background, return_exceptions=True)
        await self._lanes.close()

    def _spawn(self, work: object) -> None:
        task: asyncio.Task[None] = self._loop.create_task(work)  # type: ignore[arg-type]
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _prepared(self, claimed: Claimed) -> Prepared | None:
        prepared = self._handlers.known(claimed.plan_hash, claimed.node)
        if prepared is None and (plan := PLANS.get(claimed.plan_hash)) is not None:
            prepared = self._handlers.prepare(plan, claimed.node)
        return prepared

    def _put(self, attempt: Attempt, prepared: Prepared, outputs: dict[str, Any]) -> None:
        attempt.prepared = prepared
        attempt.outputs = outputs
        if prepared.handler is None:
            self._conclude(attempt, self._not_here(prepared.run))
        else:
            self._lanes.put(attempt)

    def _not_here(self, name: str) -> Outcome:
        times = self._unknown[name] = self._unknown.get(name, 0) + 1
        wait_s = UNKNOWN_HANDLER.wait_s(times, 0.0)
        _log.warning("this worker has no step %r; the step is snoozed for %g s, for a worker that has it", name, wait_s)
        return Snooze(wait_s)

    # Reading the outputs for the arguments.

    async def _read(self, attempts: list[Attempt]) -> None:
        """Read the plans and outputs that these attempts need, together. Repeats until the database answers."""
        tries = 0
        while attempts := [attempt for attempt in attempts if not self._is_stopped_early(attempt)]:
            try:
                await self._read_once(attempts)
                return
            except Exception as error:
                if is_away(error):
                    tries += 1
                    _log.warning("the arguments of %d steps cannot be read now: %s", len(attempts), error)
                    await asyncio.sleep(READ_AGAIN.wait_s(tries, 0.0))
                elif len(attempts) > 1:
                    # One attempt is at fault; reading each alone shows which.
                    for attempt in attempts:
                        self._spawn(self._read([attempt]))
                    return
                else:
                    _log.exception("the arguments of %s/%d cannot be read", *attempts[0].key[:2], extra=attempts[0].ids)
                    self._conclude(attempts[0], unreadable(error))
                    return

    async def _read_once(self, attempts: list[Attempt]) -> None:
        wanting: list[tuple[Attempt, Prepared]] = []
        for attempt in attempts:
            prepared = self._prepared(attempt.claimed)
            if prepared is None:
                plan = await plan_of(self._db, attempt.claimed.plan_hash)
                prepared = self._handlers.prepare(plan, attempt.claimed.node)
            wanting.append((attempt, prepared))
        outputs = await self._arguments.read_outputs([(attempt.claimed, prepared) for attempt, prepared in wanting])
        for (attempt, prepared), found in zip(wanting, outputs, strict=True):
            self._put(attempt, prepared, found)

    def _is_stopped_early(self, attempt: Attempt) -> bool:
        """Whether the attempt was told to stop before it began. If so, conclude it here."""
        if attempt.why is None or attempt.is_over:
            return attempt.is_over
        self._conclude(attempt, None, has_ended=True)
        return True

    # Running.

    async def _work(self, attempt: Attempt) -> bool:
        """Run an attempt in a lane. Returns whether the lane may run another."""
        if attempt.is_over or self._is_stopped_early(attempt):
            return True
        task = attempt.task = asyncio.current_task(self._loop)
        assert task is not None
        outcome: Outcome | None = None
        try:
            outcome = await self._outcome(attempt)
        except asyncio.CancelledError:
            if attempt.why is None:
                # The lane is cancelled: the worker is closing.
                raise
        except BaseException as error:
            words = "an attempt of %s/%d ended with an unexpected error"
            _log.exception(words, *attempt.key[:2], extra=attempt.ids)
            outcome = fault.failure_of(error)
        if attempt.why is not None:
            # The next attempt in this lane must not inherit the cancellation of this one.
            while task.uncancel() > 0:
                pass
        attempt.task = None
        return self._came_back(attempt, outcome)

    def _came_back(self, attempt: Attempt, outcome: Outcome | None) -> bool:
        if attempt.is_over:
            self._report_late(attempt, outcome)
            return False
        self._conclude(attempt, outcome, has_ended=True)
        return not attempt.has_waited

    async def _outcome(self, attempt: Attempt) -> Outcome | None:
        prepared = attempt.prepared
        assert prepared is not None and prepared.handler is not None
        try:
            if prepared.is_undo:
                return await self._undo(attempt, prepared, prepared.handler)
            if prepared.template.expressions:
                arguments = await self._arguments.evaluate(attempt.claimed, prepared, attempt.outputs)
            else:
                arguments = self._arguments.fill(attempt.claimed, prepared, attempt.outputs)
            attempt.outputs = {}
        except NotResolved as error:
            return error.failure
        return await self._executor.execute(attempt, prepared, prepared.handler, arguments)

    async def _undo(self, attempt: Attempt, prepared: Prepared, handler: Handler) -> Outcome | None:
        """Run an undo step. Its arguments come from another job, whose rows are read until the database answers."""
        tries = 0
        found: UndoCall | Outcome | None = None
        while found is None:
            try:
                found = await self._arguments.undo.call(attempt.claimed.job_id, attempt.claimed.no, prepared)
            except Exception as error:
                if not is_away(error):
                    return unreadable(error)
                tries += 1
                await asyncio.sleep(READ_AGAIN.wait_s(tries, 0.0))
        if not isinstance(found, UndoCall):
            return found
        attempt.undo_key = found.key
        return await self._executor.execute(attempt, prepared, handler, handler.binding.known(found.arguments))

    def _timed_out(self, attempt: Attempt) -> None:
        self.stop(attempt, Why.TIMEOUT)

    def _write_off(self, attempt: Attempt) -> None:
        """Go on without an attempt that was told to stop and has not."""
        lane = attempt.task
        if attempt.is_over or lane is None:
            return
        words = "attempt %d of %s/%d does not stop; the worker continues without it"
        _log.warning(words, attempt.key[2], *attempt.key[:2], extra=attempt.ids)
        self._conclude(attempt, None)
        self._lanes.give_up(lane)

    # Ending.

    def _report_late(self, attempt: Attempt, outcome: Outcome | None) -> None:
        """Report the end of a handler that did not stop when told, if its effect can be undone."""
        if attempt.why is Why.NOT_OURS and _can_be_undone(attempt):
            self._settler.add(attempt.claimed.report(outcome if isinstance(outcome, Success) else Released()))

    def _conclude(self, attempt: Attempt, outcome: Outcome | None, *, has_ended: bool = False) -> None:
        """Decide the outcome to report, and report it after the attempt's last notes.

        `has_ended` says that the handler has returned, so that it cannot act any more.
        """
        attempt.end()
        match attempt.why:
            case None:
                decided = outcome
            case Why.TIMEOUT:
                decided = fault.timeout(attempt.claimed.timeout_s)
            case Why.NOT_OURS:
                # An undo waits until the handler has ended, and a late success is undone too.
                is_told = has_ended and _can_be_undone(attempt)
                decided = (outcome if isinstance(outcome, Success) else Released()) if is_told else None
            case Why.DRAIN:
                # A result that arrived at the last moment counts. A failure may come from the interruption.
                decided = Released() if outcome is None or isinstance(outcome, Failure) else outcome
            case _:
                assert_never(attempt.why)
        if self._observer is not None:
            self._tell(attempt, decided)
        if decided is None:
            self._notes.forget(attempt.key)
            if (desk := self._executor.capabilities.desk) is not None:
                desk.abandoned(attempt.key)
            self._leave(attempt)
        elif self._notes.is_owed(attempt.key):
            self._spawn(self._report_after_words(attempt, decided))
        else:
            self._report(attempt, decided)

    def _tell(self, attempt: Attempt, outcome: Outcome | None) -> None:
        tell, attempt.tell = attempt.tell, None
        if (
            tell is None
            and self._observer is not None
            and attempt.prepared is not None
            and isinstance(outcome, Failure)
        ):
            # The attempt failed before its handler could start.
            tell = observe(self._observer, attempt)
        if tell is not None:
            is_timeout = attempt.why is Why.TIMEOUT
            tell("abandoned" if outcome is None else "timeout" if is_timeout else WORDS[type(outcome)])

    async def _report_after_words(self, attempt: Attempt, outcome: Outcome) -> None:
        await self._notes.finish(attempt.key)
        self._report(attempt, outcome)

    def _report(self, attempt: Attempt, outcome: Outcome) -> None:
        self._notes.forget(attempt.key)
        report = attempt.claimed.report(outcome)
        if attempt.context is not None and attempt.context._cost is not None:
            report = report._replace(cost=attempt.context._cost)
        self._settler.add(report)
        self._leave(attempt)

    def signed(self, notes: Sequence[Note]) -> list[Note]:
        """Add the worker to each note. Notes of attempts that are not in hand are dropped."""
        found = ((said, self.running.get((said.job_id, said.no, said.attempt))) for said in notes)
        return [replace(said, worker=attempt.claimed.worker) for said, attempt in found if attempt is not None]

    def _leave(self, attempt: Attempt) -> None:
        self.running.pop(attempt.key, None)
        self._on_room()


def _can_be_undone(attempt: Attempt) -> bool:
    """Return whether the attempt's step has an undo. An attempt whose plan was not read yet never began."""
    plan = PLANS.get(attempt.claimed.plan_hash)
    return plan is not None and plan.nodes[attempt.claimed.node].undo is not None
