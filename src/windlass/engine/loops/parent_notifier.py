"""The parent notifier carries messages between jobs: a child's end to its parent step, a parent's end to its children.

The commit that causes a message puts it in the inbox. The parent notifier removes it only after acting on it.
So no message is lost, and acting twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.bell import RouteDue
from windlass.core.errors import Refused
from windlass.core.outcome import SAFETY_DENIED, Failure, Fault, Outcome, Report, Success
from windlass.core.states import JobState
from windlass.core.template import Resolver
from windlass.core.visibility import Reader
from windlass.engine import control
from windlass.engine.children import NO_ATTEMPT
from windlass.engine.loops.duty import AnyRow, Done, Engine, EngineDuty
from windlass.engine.settle import settle
from windlass.store.artifact import INLINE_MAX, Artifacts, fitted
from windlass.store.database import Database
from windlass.store.outputs import fetchrow
from windlass.store.plans import plan_of
from windlass.store.statements import sql
from windlass.store.values import output_of

BATCH_MAX = 200
# The most cancels in one commit: each also sweeps all steps of its job.
CANCELS_MAX = 40


class ParentNotifier(EngineDuty):
    """Delivers the messages of the inbox."""

    name = "parent_notifier"
    bells = (RouteDue,)
    due = AnyRow("inbox")

    def __init__(self, db: Database, artifacts: Artifacts, resolver: Resolver, spread: Callable[[], float]) -> None:
        self._db = db
        self._artifacts = artifacts
        self._resolver = resolver
        self._spread = spread

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db, engine.artifacts, engine.resolver, engine.spread)

    async def run_once(self) -> Done:
        """Deliver one batch of messages."""
        rows = await self._db.run(lambda connection: connection.fetch(sql("inbox_take"), BATCH_MAX))
        if not rows:
            return Done(0)
        for undo in (True, False):
            told = [row for row in rows if row["source"] == "parent"]
            cancelled = [row["job_id"] for row in told if msgspec.json.decode(row["outcome"]).get("undo", True) is undo]
            for start in range(0, len(cancelled), CANCELS_MAX):
                some, reason = cancelled[start : start + CANCELS_MAX], "its parent job ended"
                await control.cancel_each(self._db, some, reason=reason, source=self.name, undo=undo)
        reports = []
        for row in rows:
            # Jobs spawned by a handler have no waiting parent step.
            if row["source"] != "parent" and row["attempt"] != NO_ATTEMPT:
                outcome = await self._child_outcome(row)
                reports.append(Report(row["job_id"], row["no"], row["attempt"], outcome, source="child"))
        if reports:
            await settle(self._db, reports, spread=self._spread)
        keys = [[row[name] for row in rows] for name in ("job_id", "no", "attempt", "source")]
        await self._db.run(lambda connection: connection.execute(sql("inbox_drop"), *keys))
        return Done(len(rows), len(rows) >= BATCH_MAX)

    async def _child_outcome(self, row: asyncpg.Record) -> Outcome:
        word = msgspec.json.decode(row["outcome"], type=dict[str, str])
        child_id = UUID(word["child"])
        child = await self._db.run(lambda connection: fetchrow(connection, "read_job", Reader.PARENT, child_id))
        if child is None:
            # Retention removed the child while no engine ran. The message must still leave the inbox.
            fault = Fault("child_failed", f"child job {word['child']} ended {word['state']} and is no longer there")
            return Failure(fault, is_retryable=False)
        if child["state"] != JobState.COMPLETED:
            cause = msgspec.json.decode(child["error"] or "{}").get("message", "")
            told = f"child job {child_id} ended {child['state']}: {cause}"
            # The step is refused for the reason of its child: nothing of it may run.
            code = SAFETY_DENIED if child["state"] == JobState.DENIED else "child_failed"
            return Failure(Fault(code, told, detail=str(child_id)), is_retryable=False)
        plan = await plan_of(self._db, child["plan"])
        inputs = msgspec.json.decode(child["input"])
        try:
            value = await output_of(
                self._db, self._artifacts, self._resolver, plan, child_id, inputs, child["caller"], Reader.PARENT
            )
        except Refused as error:
            return Failure(Fault("bad_output", f"child job {child_id} has no output: {error}"), is_retryable=False)
        text = msgspec.json.encode(value).decode()
        return Success(await fitted(self._artifacts, text, INLINE_MAX))
