"""The relay carries word between jobs: a child job's end to the step that waits for it, a parent's end to its children.

Word is left in the inbox in the commit that causes it, and taken out only after it was acted upon. So it is never
lost, and acting upon it twice changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Self
from uuid import UUID

import asyncpg
import msgspec

from windlass.core.bell import RouteDue
from windlass.core.errors import Refused
from windlass.core.outcome import Failure, Fault, Outcome, Report, Success
from windlass.core.states import JobState
from windlass.core.template import Resolver
from windlass.core.visibility import Reader
from windlass.engine import control
from windlass.engine.children import NO_ATTEMPT
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.engine.settle import settle
from windlass.store.artifact import INLINE_MAX, Artifacts, fitted
from windlass.store.database import Database
from windlass.store.outputs import fetchrow
from windlass.store.plans import plan_of
from windlass.store.statements import sql
from windlass.store.values import output_of

BATCH_MAX = 200
# A job's steps are all swept with it, so a commit ends only so many.
CANCELS_MAX = 40


class Relay(EngineDuty):
    """See the module."""

    name = "relay"
    bells = (RouteDue,)
    due = Due("due_relay")

    def __init__(self, db: Database, artifacts: Artifacts, resolver: Resolver, chance: Callable[[], float]) -> None:
        self._db = db
        self._artifacts = artifacts
        self._resolver = resolver
        self._chance = chance

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """The duty, from what the engine has."""
        return cls(engine.db, engine.artifacts, engine.resolver, engine.chance)

    async def run_once(self) -> Done:
        """Carry one batch."""
        rows = await self._db.run(lambda connection: connection.fetch(sql("inbox_take"), BATCH_MAX))
        if not rows:
            return Done(0)
        cancelled = [row["job_id"] for row in rows if row["source"] == "parent"]
        for start in range(0, len(cancelled), CANCELS_MAX):
            some = cancelled[start : start + CANCELS_MAX]
            await control.cancel_each(self._db, some, reason="its parent job ended", source=self.name)
        reports = []
        for row in rows:
            # Of a job that a handler started for itself nobody waits to hear.
            if row["source"] != "parent" and row["attempt"] != NO_ATTEMPT:
                outcome = await self._child_outcome(row)
                reports.append(Report(row["job_id"], row["no"], row["attempt"], outcome, source="child"))
        if reports:
            await settle(self._db, reports, chance=self._chance)
        keys = [[row[name] for row in rows] for name in ("job_id", "no", "attempt", "source")]
        await self._db.run(lambda connection: connection.execute(sql("inbox_drop"), *keys))
        return Done(len(rows), len(rows) >= BATCH_MAX)

    async def _child_outcome(self, row: asyncpg.Record) -> Outcome:
        word = msgspec.json.decode(row["outcome"], type=dict[str, str])
        child_id = UUID(word["child"])
        child = await self._db.run(lambda connection: fetchrow(connection, "read_job", Reader.PARENT, child_id))
        if child is None:
            # Retention removed it while no engine ran. Its word must not stay here for ever.
            fault = Fault("child_failed", f"child job {word['child']} ended {word['state']} and is no longer there")
            return Failure(fault, is_retryable=False)
        if child["state"] != JobState.COMPLETED:
            cause = msgspec.json.decode(child["error"] or "{}").get("message", "")
            told = f"child job {child_id} ended {child['state']}: {cause}"
            return Failure(Fault("child_failed", told, detail=str(child_id)), is_retryable=False)
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
