"""The kernel asker asks the kernel outside of the processes about new jobs, and commits its verdicts.

    jobs PENDING, gate_at ─► take 64 ─► ask, at the same time ─► verdicts ─► recheck: one commit
                                             │ silence, fail mode closed ─► gate_at later; no attempt is burnt
                                             │ silence, fail mode open   ─► the job runs, is marked, and is asked about
                                             │                             again: DENY ends it
                                             └ an answer that is an error ─► gate_at later, in both fail modes

The questions run beside the loop, so a kernel that hangs delays no other duty. A process without the configuration of
the kernel asks nothing, and leaves the jobs to the others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Self
from uuid import UUID

from windlass.core.bell import PolicyPublished
from windlass.core.errors import SafetyUnavailable, Unavailable
from windlass.core.gatekeeping import ask_after_s
from windlass.core.verdict import Verdict, bypassing
from windlass.engine.asking import question_about
from windlass.engine.door import policies_of
from windlass.engine.kernels import ASKED_AT_ONCE_MAX, Answer, KernelGate
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.engine.policies import Current
from windlass.engine.recheck import edge_of, recheck
from windlass.store.database import Database
from windlass.store.statements import sql

# Batches of questions under way in one process.
BATCHES_MAX = 4
# The time for the answers and the commit. After it another process may ask.
TAKEN_S = 30.0
# A question that the pace did not admit is asked after this time.
PACED_S = 0.1
BYPASSED = "input policy fail-open: safety kernel unreachable"

_log = logging.getLogger("windlass.policy")


class KernelAsker(EngineDuty):
    """Asks the kernel about new jobs."""

    name = "kernel_asker"
    bells = (PolicyPublished,)
    due = Due("kernel_due")

    def __init__(self, db: Database, spread: Callable[[], float], again: Callable[[], None]) -> None:
        self._db = db
        self._spread = spread
        self._again = again
        self._tasks: set[asyncio.Task[None]] = set()

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db, engine.spread, lambda: engine.ring(cls.name))

    async def run_once(self) -> Done:
        """Take a batch of jobs, and begin to ask about them."""
        kernel = policies_of(self._db).kernel
        if kernel is None or len(self._tasks) >= BATCHES_MAX:
            return Done(0)
        gate = await policies_of(self._db).current(self._db)
        if gate.kernel != kernel.guard.name:
            return Done(0)
        rows = await self._db.run(lambda connection: connection.fetch(sql("kernel_take"), ASKED_AT_ONCE_MAX, TAKEN_S))
        if not rows:
            return Done(0)
        task = asyncio.create_task(self._ask(kernel, gate, [row["id"] for row in rows]), name="windlass-kernel")
        self._tasks.add(task)
        task.add_done_callback(self._ended)
        return Done(len(rows), len(rows) >= ASKED_AT_ONCE_MAX)

    async def resolving(self) -> bool:
        """Wait for the answers of the questions under way. Returns False if there are none. For tests."""
        if not self._tasks:
            return False
        await asyncio.gather(*self._tasks)
        return True

    async def close(self) -> None:
        """Cancel the questions under way. Other processes ask again."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            level = logging.WARNING if isinstance(error, Unavailable) else logging.ERROR
            _log.log(level, "the verdicts of the kernel cannot be written now: %s", error, exc_info=error)
        self._again()

    async def _ask(self, kernel: KernelGate, gate: Current, job_ids: Sequence[UUID]) -> None:
        rows = await self._db.run(lambda connection: connection.fetch(sql("verdict_questions"), list(job_ids)))
        answers = await kernel.guard.ask([question_about(row, edge_of(row)) for row in rows])
        unasked = rows[len(answers) :]
        told, silent = self._sorted(kernel, gate, rows, answers)
        await recheck(self._db, list(told), told)
        waits = [(row["id"], PACED_S, 0) for row in unasked]
        waits += [(row["id"], ask_after_s(row["gate_tries"] or 0, self._spread()), 1) for row in silent]
        await self._db.run(lambda connection: _postpone(connection, job_ids, waits))

    def _sorted(
        self, kernel: KernelGate, gate: Current, rows: Sequence[Any], answers: Sequence[Answer]
    ) -> tuple[Mapping[UUID, Verdict], list[Any]]:
        """Return the verdicts to apply, and the jobs that wait."""
        is_open = kernel.is_open(gate.policy)
        told: dict[UUID, Verdict] = {}
        silent = []
        for row, answer in zip(rows, answers, strict=False):
            if not isinstance(answer, SafetyUnavailable):
                told[row["id"]] = answer
                continue
            self._count(kernel, "unavailable", row)
            if is_open and answer.is_silent and row["policy"] is None:
                _log.warning("%s (job %s)", BYPASSED, row["id"])
                self._count(kernel, "fail_open", row)
                told[row["id"]] = bypassing(kernel.guard.name)
            else:
                silent.append(row)
        return told, silent

    def _count(self, kernel: KernelGate, event: str, row: Any) -> None:
        if kernel.count is not None:
            kernel.count(event, f"job.{row['recipe']}")


async def _postpone(connection: Any, job_ids: Sequence[UUID], waits: Sequence[tuple[UUID, float, int]]) -> None:
    if waits:
        await connection.execute(sql("kernel_postpone"), *(list(column) for column in zip(*waits, strict=True)))
    await connection.execute(sql("kernel_forget"), list(job_ids))
