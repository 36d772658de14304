"""The real worker (`worker/worker.py`), watched: its attempts and reports are recorded for the checker.

This module decides nothing for the worker. It only watches the table of begun attempts, the reports on their way to the
settler's commit, and the loss of a lease.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.errors import Unavailable
from windlass.core.outcome import Failure, Fault, Outcome, Report, Success
from windlass.core.queue import is_apart
from windlass.engine.settle import Settled
from windlass.providers.desk import Desk, HasAdapter, _Handed
from windlass.pure.new_ids import NewIds
from windlass.store.database import Database
from windlass.testing.sim.cast import MemoryArtifacts, PlainResolver
from windlass.testing.sim.database import SimDatabase
from windlass.testing.sim.handlers import Conduct
from windlass.testing.sim.log import Key, Log, Told
from windlass.testing.sim.lookout import farewell, held_now
from windlass.testing.sim.plans import HANDLERS, QUEUES
from windlass.worker.apart import Starts
from windlass.worker.begun import Begun
from windlass.worker.outside import Capabilities
from windlass.worker.worker import Worker

CONCURRENCY = 3
# So few that the lanes of a few jobs are more than one walk sees.
LANES_MAX = 2
ECHOES_MAX = 40


class WatchedBegun(Begun):
    """The table of begun attempts, which also calls `on_mark`."""

    def __init__(self, concurrency: int, descriptor: int | None = None) -> None:
        super().__init__(concurrency, descriptor)
        self._keys: dict[int, Key] = {}
        self.on_mark: Callable[[Key], None] = lambda _: None
        self.on_clear: Callable[[Key], None] = lambda _: None
        self.last: Key | None = None
        self._is_closed = False

    def mark(self, key: Key) -> int:
        """Record that an attempt's handler is entered."""
        self.last = key
        self.on_mark(key)
        place = super().mark(key)
        self._keys[place] = key
        return place

    def clear(self, place: int) -> None:
        """Record that the handler has ended."""
        if (key := self._keys.pop(place, None)) is not None:
            self.on_clear(key)
        super().clear(place)

    def close(self) -> None:
        """Release the memory."""
        if not self._is_closed:
            self._is_closed = True
            super().close()

    def newest(self) -> Key:
        """Return the attempt whose handler was entered last."""
        assert self.last is not None
        return self.last

    def now(self) -> set[Key]:
        """Return the attempts with a running handler."""
        return set(self._keys.values())


class WatchedDesk(Desk):
    """The real desk; the database must know late work under the provider's id."""

    async def _disown(self, handed: _Handed) -> None:
        await super()._disown(handed)
        assert isinstance(self._db, SimDatabase)
        name = await self._db.real.fetchval(
            "SELECT external_id FROM windlass.provider_jobs WHERE (job_id, no, round) = ($1, $2, $3)",
            *(handed.key.job_id, handed.key.no, handed.key.round),
        )
        if name != handed.external_id:
            self._db.log.violations.append(f"{handed.key} came too late, and is known as {name}")


class WatchedWorker(Worker):
    """One incarnation of a worker process."""

    def __init__(
        self,
        db: Database,
        log: Log,
        ids: NewIds,
        conduct: Conduct,
        begun: WatchedBegun,
        *,
        now: Callable[[], float],
        handlers: str = HANDLERS,
        queues: Sequence[str] = QUEUES,
        providers: Mapping[str, HasAdapter] | None = None,
        program: Starts | None = None,
        **given: Any,
    ) -> None:
        self.desk = WatchedDesk(db, providers or {})
        is_alone = any(map(is_apart, queues))
        super().__init__(
            db, conduct.steps(handlers), artifacts=MemoryArtifacts(), resolver=PlainResolver(), ids=ids,
            spread=conduct.rng.random, queues=queues, concurrency=1 if is_alone else CONCURRENCY, processes=1,
            heartbeat="loop", capabilities=Capabilities(desk=self.desk), program=program, begun=begun, **given,
        )  # fmt: skip
        self._turns.lanes_max = LANES_MAX
        self._log = log
        self._rng = conduct.rng
        self._now = now
        self.handlers = handlers
        self.begun = begun
        begun.on_mark = self._begins
        begun.on_clear = lambda key: log.returned.__setitem__(key, now())
        # Whether it has worked, and whether it has left in good order.
        self.has_worked = self.has_left = False
        self._is_claiming = False

    async def run(self, *, signals: bool = False) -> None:
        """Run the worker. A worker that cannot even begin ends, and is restarted."""
        try:
            await super().run(signals=signals)
            self.has_left = True
        except Unavailable:
            if self.has_worked:
                raise

    @property
    def is_asleep(self) -> bool:
        """Tell whether it has room, and waits for a bell or for its slow check."""
        is_free = self.ready.is_set() and not self._is_stopping and self._room() > 0
        is_about_to_look = self._is_claiming or self._is_unsure or self._wake.is_set() or bool(self._hungry)
        return is_free and not is_about_to_look and not self._suspects._is_due

    async def _claim_once(self, room: int, twins: Sequence[str] = ()) -> None:
        self._is_claiming = True
        await super()._claim_once(room, twins)
        self._is_claiming = False

    async def _check(self) -> None:
        if not isinstance(self._db, SimDatabase):
            await super()._check()
            return
        worker, known = self.id, await held_now(self, self._db)
        gone = [one for one in self.in_hand() if one.key not in known and not one.is_over]
        await super()._check()
        for one in gone:
            if worker == self.id and one.why is None and not one.is_over:
                self._log.violations.append(f"{one.key} was seen to be over elsewhere, and its handler goes on")

    async def _drain(self) -> None:
        is_unsure = self._is_unsure
        check = None if not isinstance(self._db, SimDatabase) or is_unsure else farewell(self, self._db)
        await super()._drain()
        if check is not None:
            await check()

    async def _work_until_told(self) -> None:
        self.has_worked = True
        await super()._work_until_told()

    def in_hand(self) -> Iterable[Any]:
        """Return the attempts that it runs, or is about to run."""
        return () if self._runner is None else self._runner.running.values()

    def is_asking(self) -> bool:
        """Tell whether a step runs, or a request to a provider is under way."""
        return bool(self.running or self.desk._aside)

    # Watching.

    def _begins(self, key: Key) -> None:
        assert self._runner is not None
        log, attempt = self._log, self._runner.running[key]
        worker = attempt.claimed.worker
        log.started.setdefault(key, []).append((worker, self._now()))
        if worker != self.id:
            log.violations.append(f"{key} began under a lease that its worker knew to be lost")
        if key[:2] in log.over:
            log.violations.append(f"step {key[1]} of {key[0]} runs again after it was over")
        if attempt.prepared is None or attempt.prepared.run not in self.handlers:
            log.violations.append(f"a worker without its handler claimed {key}")
        # A handler that does not stop and was given up no longer counts as company.
        if company := (self.begun.now() & self._runner.running.keys()) - {key}:
            log.accompanied |= {key, *company}

    def _on_lost(self, worker: UUID) -> None:
        if worker == self.id:
            self.haunt()
        super()._on_lost(worker)

    def haunt(self) -> None:
        """Keep late reports of some attempts that are lost now, to arrive later."""
        for attempt in self.in_hand():
            if self._rng.random() < 0.5:
                self._log.echoes.append(attempt.claimed.report(_outcome(self._rng)))

    async def _write_reports(self, reports: Sequence[Report]) -> Settled:
        log = self._log
        for report in reports:
            log.send(_key(report), report.outcome)
        settled = await super()._write_reports(reports)
        for report, took_effect in zip(reports, settled.took_effect, strict=True):
            log.told.append(Told(_key(report), report.outcome, "worker", took_effect, report.worker))
            if took_effect and isinstance(report.outcome, Success):
                log.over.setdefault((report.job_id, report.no), self._now())
        log.echoes.append(self._rng.choice(list(reports)))
        del log.echoes[:-ECHOES_MAX]
        return settled


def _outcome(rng: random.Random) -> Outcome:
    if rng.random() < 0.3:
        return Failure(Fault("boom", "late"), is_retryable=rng.random() < 0.5)
    return Success(msgspec.json.encode({"ok": True, "items": [1], "v": rng.getrandbits(32)}).decode())


def _key(report: Report) -> Key:
    return (report.job_id, report.no, report.attempt)
