"""Steps of a recipe that only wait, for time to pass or for an event, and the mark up to which an undo goes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from windlass.core.errors import BadRecipe
from windlass.core.plan import NodeKind
from windlass.recipe.asks import Asks
from windlass.recipe.duration import duration_s
from windlass.recipe.handle import Pending, StepHandle, Value, as_items
from windlass.recipe.trace import current_trace, outside


def sleep(duration: str | float | Value) -> StepHandle:
    """Add a timer step to the recipe that is being read. Only a row in the database waits meanwhile."""
    trace = current_trace()
    if trace is None:
        raise outside("wl.sleep")
    seconds = duration if isinstance(duration, Value) else duration_s(duration, "steps.sleep.sleep")
    return trace.add(Pending(base="sleep", kind=NodeKind.TIMER, run="", with_={"seconds": seconds}))


def savepoint(step: StepHandle) -> StepHandle:
    """Keep what was done so far once this step is done: an undo of the job goes back no further.

    The effects of the step and of every step before it then stay. Returns the step.
    """
    if current_trace() is None:
        raise outside("wl.savepoint")
    if not isinstance(step, StepHandle):
        raise BadRecipe(f"{step!r} is not a step", place="savepoint", remedy="Pass what a step's call returned")
    step._pending.asks = replace(step._pending.asks, savepoint=True)
    return step


def wait_for(
    name: str,
    *,
    match: Mapping[str, Any] | None = None,
    timeout: str | float | None = None,
    each: Any = None,
) -> StepHandle:
    """Add a step that waits for an event of this name; the event's body is its result.

    An event fits only if it has every key of `match` with an equal value. An event that arrives early is kept for the
    step. After `timeout` the step fails with `wait_timeout`; without a timeout it waits as long as the job lives. With
    `each`, the step waits for one event per item of that list, and `match` may use `item`.
    """
    trace = current_trace()
    if trace is None:
        raise outside("wl.wait_for")
    place = f"steps.{name}"
    if match is not None and not isinstance(match, Mapping):
        raise BadRecipe("an event is matched by name", place=f"{place}.match", remedy="Write a mapping")
    return trace.add(
        Pending(
            base=str(name),
            kind=NodeKind.EVENT,
            run=name,
            with_=dict(match or {}),
            each=None if each is None else as_items(each),
            asks=Asks(wait_s=None if timeout is None else duration_s(timeout, f"{place}.timeout")),
        )
    )
