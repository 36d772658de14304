"""The worker: claims steps, runs their handlers, and reports the outcomes.

    bell or slow poll ─► claim ─► Runner (arguments, handler) ─► Settler ─► commit
                           ▲                                        │
                           └──────── the settle made more ready ◄───┘

What happens on failure:

- The database goes away: handlers go on, outcomes and claims wait. After a lost reply the worker asks `held`.
- The lease is lost (this process was stopped or cut off for too long): other workers now own the attempts in hand.
  The worker abandons them and enlists under a new id. The heartbeat notices the loss, or a claim that finds nothing.
- The worker is told to end: it claims nothing more, waits for running attempts, hands back the rest, and leaves.
- It dies: its heartbeat hands its steps back, or the lease expires if that died too. Suspects run apart (`apart.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import socket
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Literal
from uuid import UUID

from windlass.core.bell import JobsCancelled, WorkQueued
from windlass.core.errors import BadSetting, Unavailable
from windlass.core.lease import may_be_over
from windlass.core.outcome import Report
from windlass.core.queue import DEFAULT_QUEUES, is_apart
from windlass.core.template import Resolver
from windlass.engine import workers
from windlass.engine.claim import Turns, claim, held, held_keys, waiting
from windlass.engine.note import Note, note
from windlass.engine.settle import Contended, Settled, settle
from windlass.engine.workers import LEASE_S
from windlass.pure.new_ids import NewIds
from windlass.pure.observer import Observer
from windlass.pure.service import Services
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.outage import OutageLog
from windlass.worker.apart import Starts, Suspects
from windlass.worker.attempt import Why
from windlass.worker.begun import Begun
from windlass.worker.execute import OUTPUT_MAX_BYTES, Executor
from windlass.worker.handler import BUILT_IN, Handlers, StepLike
from windlass.worker.heartbeat import Heartbeat, LoopHeartbeat, ProcessHeartbeat
from windlass.worker.notes import Notes
from windlass.worker.outside import Capabilities
from windlass.worker.pace import Pace
from windlass.worker.parts import held_parts
from windlass.worker.resolve import Arguments, is_away
from windlass.worker.runner import GRACE_S, Runner
from windlass.worker.settler import Settler
from windlass.worker.stopping import cancelled, signalled

CONCURRENCY = 100
DRAIN_S = 30.0
# Bells announce new work at once; the poll finds work whose bell was lost. It is slow to keep an idle worker quiet.
POLL_S = 10.0
# How often a busy worker checks that it still holds its attempts.
CHECK_S = 5.0
CLAIM_AGAIN_S = 1.0
# With more outcomes than this waiting for the database, the worker begins nothing new.
BACKLOG_MAX = 2_000
FAREWELL_S = 10.0

_log = logging.getLogger("windlass.worker")


class Worker:
    """One worker. `run` returns after `stop`, when every attempt is reported or handed back."""

    def __init__(
        self,
        db: Database,
        steps: Mapping[str, StepLike],
        *,
        artifacts: Artifacts,
        resolver: Resolver,
        ids: NewIds,
        spread: Callable[[], float],
        queues: Sequence[str] = DEFAULT_QUEUES,
        concurrency: int = CONCURRENCY,
        processes: int | None = None,
        heartbeat: Literal["process", "loop"] = "process",
        dsn: str | None = None,
        lease_s: float = LEASE_S,
        drain_s: float = DRAIN_S,
        grace_s: float = GRACE_S,
        output_max_bytes: int = OUTPUT_MAX_BYTES,
        observer: Observer | None = None,
        capabilities: Capabilities | None = None,
        program: Starts | None = None,
        begun: Begun | None = None,
        yield_s: float = 0.0,
        services: Services | None = None,
    ) -> None:
        if concurrency < 1 or not queues:
            raise BadSetting("a worker needs at least one queue and a concurrency of at least 1")
        self._is_apart = any(map(is_apart, queues))
        if self._is_apart and concurrency > 1:
            raise BadSetting("a queue whose name ends in ! holds steps that run alone; its worker runs one at a time")
        if heartbeat == "process" and dsn is None:
            raise BadSetting("a heartbeat process needs the database URL")
        self._db, self._steps = db, steps
        self._artifacts, self._resolver = artifacts, resolver
        self._ids = ids
        self._spread = spread
        self._queues = tuple(dict.fromkeys(queues))
        self._concurrency, self._processes = concurrency, processes or os.cpu_count() or 1
        self._heartbeat_kind, self._dsn = heartbeat, dsn
        self._lease_s, self._drain_s, self._grace_s = lease_s, drain_s, grace_s
        self._output_max_bytes = output_max_bytes
        self._observer, self._capabilities = observer, capabilities or Capabilities()
        self._program, self._begun, self._yield_s = program, begun, yield_s
        self.id: UUID = ids.new()
        self._contended, self._outages = Contended(), OutageLog(_log, "claiming steps")
        self._pace = Pace(concurrency, is_apart=self._is_apart)
        self._turns = Turns(steps.keys() | BUILT_IN.keys())
        # The queues that may hold a step to claim.
        self._hungry = set(self._queues)
        self._is_unsure = self._is_doubtful = self._is_stopping = self._is_over = False
        self._runner: Runner | None = None
        self._settler: Settler | None = None
        self._wake, self._look, self._idle = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._stop, self._stop_now = asyncio.Event(), asyncio.Event()
        self._comeback: asyncio.Task[None] | None = None
        self.ready = asyncio.Event()  # set while the worker holds a lease and claims
        self.services = Services(services)
        self.report: Callable[[], Mapping[str, str]] = self.services.states  # the states that its heartbeat stores

    @property
    def running(self) -> int:
        """The number of attempts in hand."""
        return 0 if self._runner is None else len(self._runner.running)

    @property
    def ended(self) -> int:
        """The number of attempts that have ended here."""
        return self._pace.ended

    def stop(self, *, now: bool = False) -> None:
        """Claim nothing more and end when running attempts have ended; with `now`, hand them back at once."""
        self._stop.set()
        if now:
            self._stop_now.set()

    async def run(self, *, signals: bool = False) -> None:
        """Work until `stop`. With `signals`, SIGTERM and SIGINT stop it; a second signal stops it at once."""
        with signalled(lambda: self.stop(now=self._stop.is_set())) if signals else contextlib.nullcontext():
            await self._run()

    async def _run(self) -> None:
        notes = Notes(self._write_notes)
        begun = self._begun
        if begun is None and self._heartbeat_kind == "process":
            begun = Begun(self._concurrency)
        self._arguments = Arguments(self._db, self._artifacts, self._resolver)
        self._settler = Settler(self._write_reports, self._on_settled, self._observer)
        executor = Executor(
            notes=notes, artifacts=self._artifacts, processes=self._processes,
            output_max_bytes=self._output_max_bytes, observer=self._observer, capabilities=self._capabilities,
            begun=begun,
        )  # fmt: skip
        self._runner = Runner(
            self._db, concurrency=self._concurrency, handlers=Handlers(self._steps), arguments=self._arguments,
            executor=executor, notes=notes, settler=self._settler, on_room=self._on_room, grace_s=self._grace_s,
        )  # fmt: skip
        self._heartbeat = self._new_heartbeat(begun)
        look = partial(waiting, self._db)
        self._suspects = Suspects(self._queues, self._program, look, self._settler.add, self._wake.set, self._spread)
        try:
            await held_parts(
                self.services, begun, self._heartbeat, self._capabilities.desk, executor, notes, self._settler,
                self._runner, self._suspects,
            )  # fmt: skip
            await self._enlist()
            await self._heartbeat.start(self.id)
            await self._db.listen(WorkQueued, self._on_work)
            await self._db.listen(JobsCancelled, lambda _: self._look.set())
            self.ready.set()
            self._heartbeat.tell(self.report())
            await self._work_until_told()
        finally:
            self._is_over = True
            self.ready.clear()
            await self._end_comeback()
            await self.services.stop()

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
            # Wait for a claim under way: its steps would otherwise stay idle until the lease expires.
            await claiming
            await self._drain()
        finally:
            await cancelled(claiming, watching, polling, stopping)

    async def _drain(self) -> None:
        """Wait for running attempts, hand back the rest, and end the lease."""
        assert self._runner is not None and self._settler is not None
        if self._runner.running and not self._stop_now.is_set():
            _log.warning("%d attempts have up to %g s; a second signal hands them back", self.running, self._drain_s)
            told = asyncio.create_task(self._stop_now.wait())
            done = asyncio.create_task(self._until_idle())
            await asyncio.wait([told, done], timeout=self._drain_s, return_when=asyncio.FIRST_COMPLETED)
            await cancelled(told, done)
        if self._runner.running:
            _log.warning("%d attempts are handed back unfinished", self.running)
            self._runner.stop_all(Why.DRAIN)
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._until_idle(), self._grace_s + 1)
        await self._suspects.close()
        try:
            await asyncio.wait_for(self._settler.drained(), FAREWELL_S)
            await self._heartbeat.stop()
            await asyncio.wait_for(workers.dismiss(self._db, self.id), FAREWELL_S)
        except (TimeoutError, Unavailable, OSError) as error:
            _log.warning("the database does not answer; what is left is taken over when the lease ends: %r", error)

    async def _until_idle(self) -> None:
        assert self._runner is not None
        while self._runner.running:
            self._idle.clear()
            await self._idle.wait()

    # The lease.

    def _new_heartbeat(self, begun: Begun | None) -> Heartbeat:
        if self._heartbeat_kind == "loop":
            return LoopHeartbeat(self._db, lease_s=self._lease_s, on_lost=self._on_lost)
        assert self._dsn is not None
        return ProcessHeartbeat(
            self._dsn, lease_s=self._lease_s, on_lost=self._on_lost, begun=begun, yield_s=self._yield_s
        )

    async def _enlist(self) -> None:
        await workers.enlist(
            self._db, self.id, host=socket.gethostname(), pid=os.getpid(), queues=self._queues,
            concurrency=self._concurrency, lease_s=self._lease_s, handlers=self._steps.keys() | BUILT_IN.keys(),
        )  # fmt: skip

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
                await asyncio.sleep(self._again_s())
        await self._heartbeat.start(self.id)
        self.ready.set()
        self._on_work(WorkQueued())

    async def _end_comeback(self) -> None:
        if self._comeback is not None:
            self._comeback.cancel()
            await asyncio.gather(self._comeback, return_exceptions=True)

    # Claiming.

    def _on_work(self, bell: WorkQueued) -> None:
        named = bell.queues
        rung = [queue for queue in named if queue in self._queues] if named else self._queues
        if rung and not self._is_over:
            self._hungry.update(rung)
            self._wake.set()
        if len(rung) < len(named):
            self._suspects.heard(named)

    def _on_room(self) -> None:
        self._pace.ended += 1
        self._wake.set()
        self._idle.set()

    def _room(self) -> int:
        """Return how many more attempts the worker may take."""
        assert self._runner is not None and self._settler is not None
        if self._settler.backlog >= BACKLOG_MAX:
            return 0
        return self._pace.capacity - len(self._runner.running)

    async def _poll(self) -> None:
        while True:
            try:
                found, is_holding = await waiting(self._db, [*self._queues, *self._suspects.twins], self.id)
            except Exception:
                found, is_holding = list(self._queues), False
            if is_holding and not self.running:
                self._is_doubtful = True
                self._look.set()
            if found:
                self._suspects.heard(found, is_overdue=True)
                self._on_work(WorkQueued(tuple(found)))
            await asyncio.sleep(POLL_S * (1 + 0.2 * self._spread()))

    async def _claim_on(self) -> None:
        while not self._is_stopping:
            self._pace.measure()
            room = self._room()
            if self._suspects.turn(self.running):
                if self.ready.is_set() and not self.running:
                    await self._claim_once(1, self._suspects.twins)
                    continue
                room = 0
            if self._hungry and self.ready.is_set() and room > 0:
                if not await self._pace.gather(room):
                    await self._claim_once(room)
            else:
                self._wake.clear()
                await self._wake.wait()

    async def _claim_once(self, room: int, twins: Sequence[str] = ()) -> None:
        assert self._runner is not None and self._settler is not None
        worker, clock = self.id, asyncio.get_running_loop().time
        queues = twins or [queue for queue in self._queues if queue in self._hungry]
        if not twins:
            self._hungry.clear()
        # An attempt that `held` names, or that a claim takes again after a crash, may be over by the reply.
        began_s, over = clock(), self._settler.follow()
        try:
            if self._is_unsure:
                # A claim's reply was lost, or a check found unknown attempts. Reset first: a new check may set it.
                self._is_unsure = False
                taken = await held(self._db, worker)
                self._hungry.update(self._queues)
            else:
                is_idle = not self._runner.running
                taken = await claim(
                    self._db, worker=worker, queues=queues, limit=room, is_idle=is_idle, turns=self._turns
                )
                if taken.is_more and not twins:
                    self._hungry.update(queues)
                elif taken.is_lost:
                    self._on_lost(worker)
                elif taken.is_lapsed:
                    await self._claim_later()
            self._pace.claimed(len(taken), now_s := clock())
            self._outages.over()
            if self._observer is not None:
                self._observer.claimed(len(taken), room, now_s - began_s)
        except Exception as error:
            self._is_unsure = True
            if is_away(error):
                self._outages.note(error)
            else:
                _log.exception("claiming failed")
            await self._claim_later()
            return
        # Steps taken under a lease that was lost meanwhile are not ours. After a very late reply, ask which still are.
        if may_be_over(clock() - began_s, self._lease_s, (one.timeout_s for one in taken)):
            self._is_unsure = True
            self._on_work(WorkQueued())
        elif worker == self.id:
            self._runner.begin(taken, over)
            if twins:
                self._suspects.took(len(taken))

    async def _claim_later(self) -> None:
        self._hungry.update(self._queues)
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), self._again_s())

    def _again_s(self) -> float:
        """Spread the return of workers that lost the same server over time."""
        return CLAIM_AGAIN_S * (0.5 + self._spread())

    # Checking which attempts are still ours.

    async def _watch(self) -> None:
        """Stop running attempts that this worker no longer holds. Checks on a bell and every few seconds.

        A failover may undo a report. So an idle worker checks after a lost connection or when a poll finds an attempt.
        """
        assert self._runner is not None
        loop, hand_back_s, losses = asyncio.get_running_loop(), 0.0, self._db.losses
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CHECK_S):
                    await self._look.wait()
            self._look.clear()
            self._heartbeat.tell(self.report())
            now = self._db.losses
            if self.ready.is_set() and (self.running or self._is_doubtful or now != losses):
                self._is_doubtful = False
                try:
                    if loop.time() >= hand_back_s:
                        hand_back_s = loop.time() + CHECK_S
                        self._runner.hand_back_waiting()
                    await self._check()
                    losses = now
                except Exception as error:
                    _log.warning("cannot check now which attempts were cancelled: %s", error)

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
            self._on_work(WorkQueued())

    # Reporting.

    async def _write_reports(self, reports: Sequence[Report]) -> Settled:
        settled = await settle(self._db, reports, spread=self._spread, contended=self._contended)
        self._arguments.remember(reports, settled.took_effect)
        if self._capabilities.desk is not None:
            self._capabilities.desk.heard(reports, settled.took_effect)
        return settled

    async def _write_notes(self, notes: Sequence[Note]) -> None:
        assert self._runner is not None
        await note(self._db, self._runner.signed(notes))

    def _on_settled(self, settled: Settled) -> None:
        self._hungry.update(settled.queues.intersection(self._queues))
        self._wake.set()
