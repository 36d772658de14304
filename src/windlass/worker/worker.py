"""The worker: it claims steps, runs their handlers, and reports what came of them.

    bell or slow poll ─► claim ─► Runner (arguments, handler) ─► Settler ─► commit
                           ▲                                        │
                           └──────── the settle made more ready ◄───┘

What happens on failure:

- The database goes away: running handlers go on, outcomes wait in the settler, claims wait. An answer that was lost
  is asked for again (`held`).
- The lease is lost (this process was stopped, or cut off, for longer than it lasts): everything in hand is another's
  now. It is abandoned, and the worker comes back under a new id.
- The worker is told to end: it claims nothing more, waits for what runs, hands back the rest, and leaves.
- It dies: its lease runs out, and others run its steps again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
from collections.abc import Callable, Mapping, Sequence
from typing import Literal, Protocol
from uuid import UUID

from windlass.core.errors import BadSetting, Unavailable
from windlass.core.observer import Observer
from windlass.core.outcome import Report
from windlass.core.queue import DEFAULT_QUEUES
from windlass.engine import workers
from windlass.engine.claim import CLAIM_MAX, claim, held, held_keys
from windlass.engine.note import Note, note
from windlass.engine.read import Resolver
from windlass.engine.settle import Contended, Settled, settle
from windlass.engine.workers import LEASE_S
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.worker.attempt import Why
from windlass.worker.execute import OUTPUT_MAX_BYTES, Executor
from windlass.worker.handler import Handlers, StepLike
from windlass.worker.notes import Notes
from windlass.worker.outside import Means
from windlass.worker.pulse import LoopPulse, ProcessPulse, Pulse
from windlass.worker.resolve import Arguments, is_away
from windlass.worker.runner import GRACE_S, Runner
from windlass.worker.settler import Settler

CONCURRENCY = 100
DRAIN_S = 30.0
# Bells tell of new work at once; this finds what a lost bell left lying. It is slow, so that an idle worker is quiet.
POLL_S = 10.0
# How often a busy worker makes sure that what it runs is still its own.
CHECK_S = 5.0
CLAIM_AGAIN_S = 1.0
GATHER_S = 0.004
GATHER_MIN = 8
HAND_S = 0.05
# With more outcomes than this waiting for the database, nothing new is begun.
BACKLOG_MAX = 2_000
FAREWELL_S = 10.0

_log = logging.getLogger("windlass.worker")


class Ids(Protocol):
    """Where ids come from."""

    def new(self) -> UUID:
        """An id that nobody has."""
        ...


class Worker:
    """One worker process's hands. `run` returns after `stop`, when everything is handed in."""

    def __init__(
        self,
        db: Database,
        steps: Mapping[str, StepLike],
        *,
        artifacts: Artifacts,
        resolver: Resolver,
        ids: Ids,
        chance: Callable[[], float],
        queues: Sequence[str] = DEFAULT_QUEUES,
        concurrency: int = CONCURRENCY,
        processes: int | None = None,
        pulse: Literal["process", "loop"] = "process",
        dsn: str | None = None,
        lease_s: float = LEASE_S,
        drain_s: float = DRAIN_S,
        grace_s: float = GRACE_S,
        output_max_bytes: int = OUTPUT_MAX_BYTES,
        observer: Observer | None = None,
        means: Means | None = None,
    ) -> None:
        if concurrency < 1 or not queues:
            raise BadSetting("a worker needs at least one queue and a concurrency of at least 1")
        if pulse == "process" and dsn is None:
            raise BadSetting("a pulse in a process of its own needs the database URL")
        self._db = db
        self._steps = steps
        self._artifacts = artifacts
        self._resolver = resolver
        self._ids = ids
        self._chance = chance
        self._queues = tuple(dict.fromkeys(queues))
        self._concurrency = concurrency
        self._processes = processes or os.cpu_count() or 1
        self._pulse_kind = pulse
        self._dsn = dsn
        self._lease_s, self._drain_s, self._grace_s = lease_s, drain_s, grace_s
        self._output_max_bytes = output_max_bytes
        self._observer, self._means = observer, means or Means()
        self.id: UUID = ids.new()
        self._contended = Contended()
        self._capacity = concurrency
        self._ended = self._ended_before = 0
        self._took, self._claimed_s, self._measured_s = 0, 0.0, 0.0
        # The queues that may hold something to claim.
        self._hungry = set(self._queues)
        self._is_unsure = False
        self._is_stopping = False
        self._is_over = False
        self._runner: Runner | None = None
        self._settler: Settler | None = None
        self._wake, self._look, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._stop, self._stop_now = asyncio.Event(), asyncio.Event()
        self._comeback: asyncio.Task[None] | None = None
        self.ready = asyncio.Event()  # set while the worker holds a lease and claims

    @property
    def running(self) -> int:
        """How many attempts are in hand."""
        return 0 if self._runner is None else len(self._runner.running)

    def stop(self, *, now: bool = False) -> None:
        """Claim nothing more and end when what runs has ended; with `now`, hand back what runs at once."""
        self._stop.set()
        if now:
            self._stop_now.set()

    async def run(self, *, signals: bool = False) -> None:
        """Work until `stop`. With `signals`, SIGTERM and SIGINT stop it, and the second one at once."""
        if signals:
            self._watch_signals()
        notes = Notes(self._write_notes)
        self._arguments = Arguments(self._db, self._artifacts, self._resolver)
        self._settler = Settler(self._write_reports, self._on_settled, self._observer)
        executor = Executor(
            notes=notes,
            artifacts=self._artifacts,
            processes=self._processes,
            output_max_bytes=self._output_max_bytes,
            observer=self._observer,
            means=self._means,
        )
        self._runner = Runner(
            self._db,
            concurrency=self._concurrency,
            handlers=Handlers(self._steps),
            arguments=self._arguments,
            executor=executor,
            notes=notes,
            settler=self._settler,
            on_room=self._on_room,
            grace_s=self._grace_s,
        )
        self._pulse = self._new_pulse()
        try:
            await self._enlist()
            await self._pulse.start(self.id)
            await self._db.listen("windlass_work", self._on_work)
            await self._db.listen("windlass_cancel", self._on_cancel)
            self.ready.set()
            await self._work_until_told()
        finally:
            self._is_over = True
            self.ready.clear()
            await self._end_comeback()
            await self._runner.close()
            await self._settler.close()
            await notes.close()
            await executor.close()
            if self._means.desk is not None:
                await self._means.desk.close()
            await self._pulse.stop()
            if signals:
                self._forget_signals()

    # Beginning and ending.

    async def _work_until_told(self) -> None:
        loop = asyncio.get_running_loop()
        watching = loop.create_task(self._watch(), name="windlass-watch")
        polling = loop.create_task(self._poll(), name="windlass-poll")
        claiming = loop.create_task(self._claim_on(), name="windlass-claim")
        stopping = loop.create_task(self._stop.wait(), name="windlass-stop")
        try:
            await asyncio.wait([claiming, stopping], return_when=asyncio.FIRST_COMPLETED)
            self._is_stopping = True
            self._wake.set()
            # A claim that is under way is waited for: what it took would otherwise lie there until the lease is over.
            await claiming
            await self._drain()
        finally:
            for task in (claiming, watching, polling, stopping):
                task.cancel()
            await asyncio.gather(claiming, watching, polling, stopping, return_exceptions=True)

    async def _drain(self) -> None:
        """Wait for what runs, hand back the rest, and say goodbye."""
        assert self._runner is not None and self._settler is not None
        if self._runner.running and not self._stop_now.is_set():
            _log.warning("%d attempts have up to %g s; told again, it hands them back", self.running, self._drain_s)
            told = asyncio.create_task(self._stop_now.wait())
            done = asyncio.create_task(self._until_idle())
            await asyncio.wait([told, done], timeout=self._drain_s, return_when=asyncio.FIRST_COMPLETED)
            for task in (told, done):
                task.cancel()
            await asyncio.gather(told, done, return_exceptions=True)
        if self._runner.running:
            _log.warning("%d attempts are handed back unfinished", self.running)
            self._runner.stop_all(Why.DRAIN)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._until_idle(), self._grace_s + 1)
        try:
            await asyncio.wait_for(self._settler.drained(), FAREWELL_S)
            await self._pulse.stop()
            await asyncio.wait_for(workers.dismiss(self._db, self.id), FAREWELL_S)
        except (TimeoutError, Unavailable, OSError) as error:
            _log.warning("the database does not answer; what is left is taken over when the lease ends: %r", error)

    async def _until_idle(self) -> None:
        assert self._runner is not None
        while self._runner.running:
            self._idle.clear()
            await self._idle.wait()

    def _watch_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, lambda: self.stop(now=self._stop.is_set()))

    def _forget_signals(self) -> None:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.remove_signal_handler(number)

    # The lease.

    def _new_pulse(self) -> Pulse:
        if self._pulse_kind == "loop":
            return LoopPulse(self._db, lease_s=self._lease_s, on_lost=self._on_lost)
        assert self._dsn is not None
        return ProcessPulse(self._dsn, lease_s=self._lease_s, on_lost=self._on_lost)

    async def _enlist(self) -> None:
        await workers.enlist(
            self._db,
            self.id,
            host=socket.gethostname(),
            pid=os.getpid(),
            queues=self._queues,
            concurrency=self._concurrency,
            lease_s=self._lease_s,
        )

    def _on_lost(self, worker: UUID) -> None:
        if worker != self.id or self._is_over:
            return
        assert self._runner is not None
        _log.warning("the lease is lost; %d attempts are abandoned", len(self._runner.running))
        self.ready.clear()
        self.id = self._ids.new()
        self._is_unsure = False
        self._runner.stop_all(Why.NOT_OURS)
        self._comeback = asyncio.get_running_loop().create_task(self._come_back(), name="windlass-comeback")

    async def _come_back(self) -> None:
        while True:
            try:
                await self._enlist()
                break
            except Exception as error:
                _log.warning("the worker cannot enlist now: %s", error)
                await asyncio.sleep(CLAIM_AGAIN_S)
        await self._pulse.start(self.id)
        self.ready.set()
        self._on_work("")

    async def _end_comeback(self) -> None:
        if self._comeback is not None:
            self._comeback.cancel()
            await asyncio.gather(self._comeback, return_exceptions=True)

    # Claiming.

    def _on_work(self, queues: str) -> None:
        rung = self._queues if not queues else [queue for queue in queues.split(",") if queue in self._queues]
        if rung and not self._is_over:
            self._hungry.update(rung)
            self._wake.set()

    def _on_room(self) -> None:
        self._ended += 1
        self._wake.set()
        self._idle.set()

    def _room(self) -> int:
        """How many more attempts may be taken in hand."""
        assert self._runner is not None and self._settler is not None
        if self._settler.backlog >= BACKLOG_MAX:
            return 0
        return self._capacity - len(self._runner.running)

    def _measure(self) -> None:
        """Set how much may be in hand: what may run side by side, or HAND_S worth of work if that is more.

        Steps that end sooner than a claim takes would leave the worker waiting for the database. So it keeps a little
        more than it can run, and only as much as it will have begun within a moment.
        """
        now_s = asyncio.get_running_loop().time()
        if (span_s := now_s - self._measured_s) < HAND_S:
            return
        swift = int((self._ended - self._ended_before) / span_s * HAND_S)
        self._capacity = max(self._concurrency, min(2 * CLAIM_MAX, swift))
        self._measured_s, self._ended_before = now_s, self._ended

    async def _gather(self, room: int) -> bool:
        """Under load, let a moment's work come together: one large claim is cheaper than many small ones.

        A claim that brought one step, or all that there was room for, is followed by the next at once. Says whether it
        waited: the room may be another since.
        """
        early_s = self._claimed_s + GATHER_S - asyncio.get_running_loop().time()
        is_crowded = self._capacity > self._concurrency and room < self._capacity // 4
        if early_s > 0 and (is_crowded or GATHER_MIN <= self._took < room // 2):
            await asyncio.sleep(early_s)
            return True
        return False

    async def _poll(self) -> None:
        while True:
            await asyncio.sleep(POLL_S * (1 + 0.2 * self._chance()))
            self._on_work("")

    async def _claim_on(self) -> None:
        while not self._is_stopping:
            self._measure()
            room = self._room()
            if self._hungry and self.ready.is_set() and room > 0:
                if not await self._gather(room):
                    await self._claim_once(room)
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _claim_once(self, room: int) -> None:
        assert self._runner is not None
        worker, clock = self.id, asyncio.get_running_loop().time
        queues = [queue for queue in self._queues if queue in self._hungry]
        self._hungry.clear()
        began_s = clock()
        try:
            if self._is_unsure:
                # A claim's answer was lost, or the database knows of attempts that we do not.
                taken = await held(self._db, worker)
                self._is_unsure = False
                self._hungry.update(self._queues)
            else:
                is_idle = not self._runner.running
                taken = await claim(self._db, worker=worker, queues=queues, limit=room, is_idle=is_idle)
                if taken.is_more:
                    self._hungry.update(queues)
            self._took = len(taken)
            self._claimed_s = clock()
            if self._observer is not None:
                self._observer.claimed(len(taken), room, self._claimed_s - began_s)
        except Exception as error:
            self._is_unsure = True
            self._hungry.update(self._queues)
            if is_away(error):
                _log.warning("no steps can be claimed now: %s", error)
            else:
                _log.exception("claiming failed")
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._stop.wait(), CLAIM_AGAIN_S)
            return
        # What was taken under a lease that was lost meanwhile is not ours.
        if worker == self.id:
            self._runner.begin(taken)

    # What is still ours.

    def _on_cancel(self, _job_ids: str) -> None:
        self._look.set()

    async def _watch(self) -> None:
        """Find out, by a bell or every few seconds, which running attempts are no longer ours, and stop those."""
        assert self._runner is not None
        loop = asyncio.get_running_loop()
        hand_back_s = 0.0
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_S):
                    await self._look.wait()
            self._look.clear()
            if self.ready.is_set() and self.running:
                try:
                    if loop.time() >= hand_back_s:
                        hand_back_s = loop.time() + CHECK_S
                        self._runner.hand_back_waiting()
                    await self._check()
                except Exception as error:
                    _log.warning("it cannot be seen now which attempts were cancelled: %s", error)

    async def _check(self) -> None:
        assert self._runner is not None and self._settler is not None
        worker = self.id
        mine = list(self._runner.running.values())
        known = await held_keys(self._db, worker)
        if worker != self.id:
            return
        for attempt in mine:
            if attempt.key not in known and attempt.why is None and not self._settler.has(attempt.key):
                self._runner.stop(attempt, Why.NOT_OURS)
        in_hand = self._runner.running
        if any(key not in in_hand and not self._settler.has(key) for key in known):
            self._is_unsure = True
            self._on_work("")

    # Reporting.

    async def _write_reports(self, reports: Sequence[Report]) -> Settled:
        settled = await settle(self._db, reports, chance=self._chance, contended=self._contended)
        self._arguments.remember(reports, settled.took_effect)
        if self._means.desk is not None:
            self._means.desk.heard(reports, settled.took_effect)
        return settled

    async def _write_notes(self, notes: Sequence[Note]) -> None:
        await note(self._db, notes)

    def _on_settled(self, settled: Settled) -> None:
        self._hungry.update(settled.queues.intersection(self._queues))
        self._wake.set()
