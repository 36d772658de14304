"""Builds the arguments of claimed steps: the plan's templates with the values filled in.

One statement reads the outputs of other steps that a batch refers to. The worker remembers the outputs that it reported
itself a moment ago. An expression that is more than a path goes to the evaluator.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any
from uuid import UUID

import msgspec

from windlass.core.errors import BadExpression, NotFound, OutputQuarantined, Unavailable
from windlass.core.outcome import Failure, Fault, Report, Success
from windlass.core.states import JobState, StepState
from windlass.core.template import Resolver
from windlass.core.visibility import Content, Reader, is_visible
from windlass.engine.claim import Claimed
from windlass.store.artifact import REFERENCE_KEY, Artifacts
from windlass.store.database import Database
from windlass.store.outage import is_transient
from windlass.store.values import outputs_of_many, scope
from windlass.worker.handler import Prepared
from windlass.worker.undo import UndoSteps

REMEMBERED_MAX = 5_000
REMEMBERED_MAX_CHARS = 2_048
_REFERENCE = f'{{"{REFERENCE_KEY}"'

Wanting = tuple[Claimed, Prepared]


class NotResolved(Exception):
    """Raised when the arguments cannot be built; `failure` is the attempt's outcome."""

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.fault.message)
        self.failure = failure


class Arguments:
    """Builds the arguments for one worker."""

    def __init__(self, db: Database, artifacts: Artifacts, resolver: Resolver) -> None:
        self._db = db
        self._artifacts = artifacts
        self._resolver = resolver
        self.undo = UndoSteps(db, artifacts, resolver)
        # Outputs as JSON text, by job and step number. A succeeded step never changes; but a failover may lose its
        # success, so a lost connection clears them.
        self._remembered: dict[tuple[UUID, int], str] = {}
        self._losses = db.losses

    def remember(self, reports: Sequence[Report], took_effect: Sequence[bool]) -> None:
        """Keep the small outputs of these reports: in a chain, this worker often runs the next step too."""
        kept = self._remembered
        # The report took effect, so its step is COMPLETED and its job was open a moment ago.
        if not is_visible(Content.OUTPUT, Reader.NEXT_STEP, JobState.PROCESSING, StepState.COMPLETED):
            return
        for report, is_effective in zip(reports, took_effect, strict=True):
            # A number above the plan's nodes is a child of a fan-out. One child's output is not the fan-out's.
            if not is_effective or report.no != report.node or not isinstance(report.outcome, Success):
                continue
            # The job's last step has no step to hand its output to.
            if report.seen is not None and report.seen.steps_open == 1:
                continue
            output = report.outcome.output
            if len(output) <= REMEMBERED_MAX_CHARS and not output.startswith(_REFERENCE):
                kept[report.job_id, report.no] = output
        while len(kept) > REMEMBERED_MAX:
            del kept[next(iter(kept))]

    def known_outputs(self, claimed: Claimed, prepared: Prepared) -> dict[str, Any] | None:
        """Return the outputs that this step refers to, or None if one must be read."""
        if self._db.losses != self._losses:
            self._losses = self._db.losses
            self._remembered.clear()
        found: dict[str, Any] = {}
        for name in prepared.template.steps:
            text = self._remembered.get((claimed.job_id, prepared.plan.number[name]))
            if text is None:
                return None
            found[name] = msgspec.json.decode(text)
        return found

    async def read_outputs(self, wanting: Sequence[Wanting]) -> list[dict[str, Any]]:
        """Read the outputs that these steps refer to, by step name, in order. Raises the store's errors."""
        wanted = [(claimed.job_id, prepared.plan, prepared.template.steps) for claimed, prepared in wanting]
        found = await outputs_of_many(self._db, self._artifacts, wanted, Reader.NEXT_STEP)
        # Handlers may change their arguments. Steps of one job must not see each other's changes.
        seen: set[UUID] = set()
        for at, (claimed, _) in enumerate(wanting):
            if claimed.job_id in seen:
                found[at] = copy.deepcopy(found[at])
            seen.add(claimed.job_id)
        return found

    def fill(self, claimed: Claimed, prepared: Prepared, outputs: dict[str, Any]) -> Any:
        """Build the arguments of a step that needs no evaluator. Raises NotResolved."""
        template = prepared.template
        if prepared.is_constant:
            return template.resolve({}, _no_evaluator)
        try:
            return template.resolve(_scope(claimed, prepared, outputs), _no_evaluator)
        except BadExpression as error:
            raise NotResolved(_bad_arguments(error)) from None

    async def evaluate(self, claimed: Claimed, prepared: Prepared, outputs: dict[str, Any]) -> Any:
        """Build the arguments of any step. Raises NotResolved."""
        try:
            # A claim does not know its caller, so the evaluator's turns go by job instead.
            values = _scope(claimed, prepared, outputs)
            return await self._resolver.resolve_async(prepared.template, values, str(claimed.job_id))
        except BadExpression as error:
            raise NotResolved(_bad_arguments(error)) from None
        except Unavailable as error:
            raise NotResolved(Failure(Fault("evaluator", str(error), type(error).__name__))) from None


def _scope(claimed: Claimed, prepared: Prepared, outputs: dict[str, Any]) -> dict[str, Any]:
    reads = prepared.template.inputs or prepared.template.uses_all_inputs
    inputs = msgspec.json.decode(claimed.input) if reads else {}
    return scope(inputs, outputs, item=claimed.item, index=claimed.index)


def unreadable(error: Exception) -> Failure:
    """Return the failure of a step whose arguments exist but cannot be read."""
    if isinstance(error, NotFound):
        return Failure(Fault("artifact_store", str(error), type(error).__name__))
    if isinstance(error, OutputQuarantined):
        return Failure(Fault(error.code, str(error), type(error).__name__), is_retryable=False)
    return Failure(Fault("bad_arguments", f"its arguments cannot be read: {error}", type(error).__name__))


def is_away(error: BaseException) -> bool:
    """Whether the error is an outage of the database, so that the call may be repeated."""
    return is_transient(error) or isinstance(error, Unavailable)


def _bad_arguments(error: BadExpression) -> Failure:
    return Failure(Fault("bad_arguments", str(error), type(error).__name__), is_retryable=False)


def _no_evaluator(text: str, _: Any) -> Any:
    raise BadExpression(f"`{text}` needs the evaluator")
