"""Builds the arguments of an undo step: those of the step that it undoes, and that step's output.

The arguments are resolved again from the old job's own rows, so nothing was copied when the job ended. The step's
templates see the same inputs and outputs as before, because neither changes any more.
"""

from __future__ import annotations

from typing import Any, NamedTuple
from uuid import UUID

import msgspec

from windlass.core.errors import BadExpression, Broken
from windlass.core.outcome import Failure, Fault, Outcome, Snooze, Success
from windlass.core.plan import NodeKind, Plan, UndoWhen
from windlass.core.states import JOB_TERMINAL, JobState, StepState
from windlass.core.template import SKIPPED, Resolver, plan_templates
from windlass.core.undo import label, undo_key
from windlass.core.visibility import Reader
from windlass.engine.undo import undo_child
from windlass.store.artifact import Artifacts
from windlass.store.database import Database
from windlass.store.outputs import fetchrow
from windlass.store.plans import plan_of
from windlass.store.values import outputs_of_many, scope, value_of
from windlass.worker.handler import Prepared

# How often the undo of a job looks at the undo of a child job.
CHILD_EVERY_S = 2.0
NOTHING = Success(msgspec.json.encode(SKIPPED).decode())
_HAPPENED = frozenset({StepState.COMPLETED, StepState.QUARANTINED})


class UndoCall(NamedTuple):
    """The arguments of an undo handler, and the key that is the same on every attempt."""

    arguments: dict[str, Any]
    key: str


class UndoSteps:
    """Prepares undo steps for one worker."""

    def __init__(self, db: Database, artifacts: Artifacts, resolver: Resolver) -> None:
        self._db = db
        self._artifacts = artifacts
        self._resolver = resolver

    async def call(self, undo_job: UUID, no: int, prepared: Prepared) -> UndoCall | Outcome:
        """Return the call of the undo handler, or the outcome of a step that calls none."""
        undoes = prepared.plan.nodes[no].undoes
        if undoes is None:
            # The node only joins branches.
            return NOTHING
        async with self._db.connection() as connection:
            late = await fetchrow(connection, "undo_look", Reader.UNDO, undo_job, undoes)
            row = await fetchrow(connection, "undo_arguments", Reader.UNDO, undo_job, undoes)
        if row is None:
            raise Broken(f"job {undo_job} undoes step {undoes} of a job that is not stored")
        plan = await plan_of(self._db, row["plan"])
        node = plan.nodes[row["node"]]
        if node.kind is NodeKind.RECIPE:
            return await self._child(undo_job, no)
        is_done = late is not None and late["word"] == "DONE"
        output = late["output"] if late is not None and is_done else row["output"]
        stands = is_done or StepState(row["state"]) in _HAPPENED
        if not stands and (node.undo is None or node.undo.when is not UndoWhen.STARTED):
            return NOTHING
        try:
            arguments = await self._arguments(plan, row)
        except BadExpression as error:
            return Failure(Fault("bad_arguments", str(error), type(error).__name__), is_retryable=False)
        value = None if output is None else await value_of(self._artifacts, output)
        return UndoCall({**arguments, "output": value}, undo_key(row["job_id"], label(plan, row["node"], row["index"])))

    async def _arguments(self, plan: Plan, row: Any) -> dict[str, Any]:
        template = plan_templates(plan).nodes[row["node"]].with_
        [outputs] = await outputs_of_many(
            self._db, self._artifacts, [(row["job_id"], plan, template.steps)], Reader.UNDO
        )
        values = scope(msgspec.json.decode(row["input"]), outputs, item=row["item"], index=row["index"])
        resolved: dict[str, Any] = await self._resolver.resolve_async(template, values, row["caller"])
        return resolved

    async def _child(self, undo_job: UUID, no: int) -> Outcome:
        state = await undo_child(self._db, undo_job, no)
        if state in (None, JobState.COMPLETED):
            return NOTHING
        if state not in JOB_TERMINAL:
            return Snooze(CHILD_EVERY_S)
        return Failure(Fault("undo_failed", f"the undo of its child job ended {state}"), is_retryable=False)
