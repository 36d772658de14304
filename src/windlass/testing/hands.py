"""A worker without tasks in the background: it claims, runs handlers and reports only when called."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from windlass.core.outcome import Report
from windlass.core.queue import apart
from windlass.core.template import Resolver
from windlass.engine import workers
from windlass.engine.claim import claim
from windlass.engine.note import Note, note
from windlass.engine.settle import Settled, settle
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.worker.execute import Executor
from windlass.worker.handler import Handlers, StepLike
from windlass.worker.notes import Notes
from windlass.worker.outside import Capabilities
from windlass.worker.resolve import Arguments
from windlass.worker.runner import Runner
from windlass.worker.settler import Settler

CONCURRENCY = 100
# Time jumps by hours, and no heartbeat renews the lease.
LEASE_S = 10 * 365 * 86400.0


@dataclass(frozen=True, slots=True)
class Stand:
    """A function in place of a step. It never runs in a process: a test's functions cannot be imported there."""

    name: str
    function: Callable[..., Any]
    is_cpu: bool = False


class Hands:
    """Runs the steps of its queues as a worker does, one batch at a time."""

    def __init__(
        self,
        db: Database,
        steps: Mapping[str, StepLike],
        *,
        artifacts: Artifacts,
        resolver: Resolver,
        worker: UUID,
        spread: Callable[[], float],
        capabilities: Capabilities | None = None,
    ) -> None:
        self._db = db
        self._steps = steps
        self._artifacts = artifacts
        self._resolver = resolver
        self._spread = spread
        self._worker = worker
        self._queues: set[str] = set()
        self._notes = Notes(self._write_notes)
        self._settler = Settler(self._write_reports, lambda _: None)
        self._capabilities = capabilities or Capabilities()
        self._executor = Executor(notes=self._notes, artifacts=artifacts, processes=1, capabilities=self._capabilities)
        self._room = asyncio.Event()
        self._runner = self._new_runner()
        self._is_stale = False

    def forget_handlers(self) -> None:
        """Look every handler up again, because the steps have changed."""
        self._is_stale = True

    def _new_runner(self) -> Runner:
        return Runner(
            self._db,
            concurrency=CONCURRENCY,
            handlers=Handlers(self._steps),
            arguments=Arguments(self._db, self._artifacts, self._resolver),
            executor=self._executor,
            notes=self._notes,
            settler=self._settler,
            on_room=self._room.set,
        )

    async def enlist(self, queues: Sequence[str]) -> None:
        """Claim from these queues as well."""
        if not self._queues:
            await workers.enlist(
                self._db,
                self._worker,
                host="test",
                pid=0,
                queues=queues,
                concurrency=CONCURRENCY,
                lease_s=LEASE_S,
                handlers=self._steps,
            )
        self._queues.update(queues)
        # A step that lost a worker twice moves to the apart twin of its queue.
        self._queues.update(map(apart, queues))

    async def work(self) -> int:
        """Run one batch of queued steps to its end; return the number of attempts."""
        if not self._queues:
            return 0
        if self._is_stale:
            await self._runner.close()
            self._runner, self._is_stale = self._new_runner(), False
        taken = await claim(self._db, worker=self._worker, queues=sorted(self._queues), limit=CONCURRENCY)
        self._runner.begin(taken)
        while self._runner.running:
            self._room.clear()
            await self._room.wait()
        await self._settler.drained()
        return len(taken)

    async def close(self) -> None:
        """Stop the running steps."""
        await self._runner.close()
        await self._settler.close()
        await self._notes.close()
        await self._executor.close()
        if self._capabilities.desk is not None:
            await self._capabilities.desk.close()

    async def _write_reports(self, reports: Sequence[Report]) -> Settled:
        settled = await settle(self._db, reports, spread=self._spread)
        if self._capabilities.desk is not None:
            self._capabilities.desk.heard(reports, settled.took_effect)
        return settled

    async def _write_notes(self, notes: Sequence[Note]) -> None:
        await note(self._db, notes)
