"""Reports outcomes in batches: while one commit is under way, the next batch gathers.

During an outage the settler keeps outcomes and sends them again, for as long as it takes. The fence makes a repeated or
late report harmless. So no handler runs again only because the database was away, read-only or full for a minute.

An outcome that the database refuses for its content is replaced by a failure. If the database refuses that too, the
content is not the reason: the settler keeps the outcome and tries again later.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence, Set
from uuid import UUID

from windlass.core.outcome import Failure, Fault, Report
from windlass.core.retry import Backoff
from windlass.engine.settle import Settled
from windlass.pure.observer import Observer
from windlass.store.outage import OutageLog
from windlass.worker.notes import Key
from windlass.worker.resolve import is_away

BATCH_MAX = 500
HELP_MIN = 100
WAITS = Backoff(1.0, 2.0, 4.0)
SURPRISES_MAX = 2
REFUSED_WAIT_S = 30.0

_log = logging.getLogger("windlass.worker")


class Settler:
    """Two tasks that report outcomes. `on_settled` receives the result of each batch.

    The second task helps when HELP_MIN outcomes have gathered while the first waits for its commit.
    """

    def __init__(
        self,
        settle: Callable[[Sequence[Report]], Awaitable[Settled]],
        on_settled: Callable[[Settled], None],
        observer: Observer | None = None,
    ) -> None:
        self._settle = settle
        self._on_settled = on_settled
        self._observer = observer
        self._waiting: deque[Report] = deque()
        self._keys: set[Key] = set()
        self._written: set[Key] = set()
        # Outcomes that wait for REFUSED_WAIT_S.
        self._put_off: set[Key] = set()
        self._outages = OutageLog(_log, "reporting outcomes")
        # Jobs with reports under way. Two batches of one wide job would only wait for each other.
        self._jobs_out: set[UUID] = set()
        self._stir = asyncio.Event()
        self._stir_helper = asyncio.Event()
        self._calm = asyncio.Event()
        self._calm.set()
        loop = asyncio.get_running_loop()
        self._clerks = [
            loop.create_task(self._run(self._stir, 1), name="windlass-settler"),
            loop.create_task(self._run(self._stir_helper, HELP_MIN), name="windlass-settler-helper"),
        ]

    def add(self, report: Report) -> None:
        """Report this outcome soon."""
        self._waiting.append(report)
        self._keys.add(key := _key(report))
        self._put_off.discard(key)
        self._stir.set()
        if len(self._waiting) >= HELP_MIN:
            self._stir_helper.set()

    def has(self, key: Key) -> bool:
        """Whether the outcome of this attempt is waiting or under way."""
        return key in self._keys

    def follow(self) -> Set[Key]:
        """Return a set that grows by every attempt whose outcome is written, until the next call."""
        self._written = set()
        return self._written

    @property
    def backlog(self) -> int:
        """The number of outcomes that are not in the database yet."""
        return len(self._keys)

    async def drained(self) -> None:
        """Return when every outcome is in the database."""
        while self._keys:
            self._calm.clear()
            await self._calm.wait()

    async def close(self) -> None:
        """Stop without reporting the rest: when the worker's lease expires, other workers run those steps again."""
        for clerk in self._clerks:
            clerk.cancel()
        await asyncio.gather(*self._clerks, return_exceptions=True)

    async def _run(self, stir: asyncio.Event, least: int) -> None:
        while True:
            await stir.wait()
            stir.clear()
            while len(self._waiting) >= least:
                if least > 1 and self._waiting[0].job_id in self._jobs_out:
                    # Left to the first task, which takes batches of any size.
                    break
                batch = [self._waiting.popleft() for _ in range(min(BATCH_MAX, len(self._waiting)))]
                jobs = {report.job_id for report in batch} - self._jobs_out
                self._jobs_out |= jobs
                await self._report(batch)
                self._jobs_out -= jobs
                written = {_key(report) for report in batch} - self._put_off
                self._keys -= written
                self._written |= written
            if not self._keys:
                self._calm.set()

    async def _report(self, batch: list[Report]) -> None:
        try:
            settled = await self._until_taken(batch)
        except Exception:
            if len(batch) > 1:
                _log.exception("a batch of %d outcomes was refused; each is now reported alone", len(batch))
                for report in batch:
                    await self._report([report])
            else:
                await self._report_refusal(batch[0])
            return
        self._on_settled(settled)

    async def _until_taken(self, batch: list[Report]) -> Settled:
        failures = surprises = 0
        while True:
            try:
                began_s = 0.0 if self._observer is None else asyncio.get_running_loop().time()
                settled = await self._settle(batch)
                if self._observer is not None:
                    self._observer.settled(len(batch), asyncio.get_running_loop().time() - began_s)
                self._outages.over()
                return settled
            except Exception as error:
                # An unknown error may be an outage too, because drivers report outages in odd ways.
                surprises += not is_away(error)
                if surprises > SURPRISES_MAX:
                    raise
                failures += 1
                self._outages.note(error)
                await asyncio.sleep(WAITS.wait_s(failures, 0.0))

    async def _report_refusal(self, report: Report) -> None:
        """Report that this outcome cannot be written, so that the step does not hang until its time limit."""
        ids = {"job": str(report.job_id), "attempt": report.attempt}
        _log.exception("the outcome of %s/%s could not be reported", report.job_id, report.no, extra=ids)
        fault = Fault("bad_report", f"the outcome ({type(report.outcome).__name__}) could not be written")
        try:
            self._on_settled(await self._until_taken([report._replace(outcome=Failure(fault))]))
        except Exception:
            _log.exception("its failure could not be reported either; trying again in %g s", REFUSED_WAIT_S, extra=ids)
            self._put_off.add(_key(report))
            asyncio.get_running_loop().call_later(REFUSED_WAIT_S, self.add, report)


def _key(report: Report) -> Key:
    return (report.job_id, report.no, report.attempt)
