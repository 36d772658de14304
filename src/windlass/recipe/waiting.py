"""Steps of a recipe that only wait: for time to pass, or to be told something."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from windlass.core.errors import BadRecipe
from windlass.core.plan import NodeKind
from windlass.recipe.duration import duration_s
from windlass.recipe.handle import Pending, StepHandle, Value, as_items
from windlass.recipe.trace import current_trace, outside


def sleep(duration: str | float | Value) -> StepHandle:
    """In a recipe: a step that only lets time pass. Nothing waits meanwhile but a row in the database."""
    trace = current_trace()
    if trace is None:
        raise outside("wl.sleep")
    seconds = duration if isinstance(duration, Value) else duration_s(duration, "steps.sleep.sleep")
    return trace.add(Pending(base="sleep", kind=NodeKind.TIMER, run="", with_={"seconds": seconds}))


def wait_for(
    name: str,
    *,
    match: Mapping[str, Any] | None = None,
    timeout: str | float | None = None,
    each: Any = None,
) -> StepHandle:
    """In a recipe: a step that waits until the job is sent an event of this name; what the event holds is its result.

    Only an event fits in which every key of `match` is there and equal. An event that comes before the step waits is
    kept for it. After `timeout` the step fails with `wait_timeout`; without one it waits as long as the job lives. With
    `each`, one event is waited for per item of that list, and `match` may use `item`.
    """
    trace = current_trace()
    if trace is None:
        raise outside("wl.wait_for")
    place = f"steps.{name}"
    if match is not None and not isinstance(match, Mapping):
        raise BadRecipe("what an event must hold is given by name", place=f"{place}.match", remedy="Write a mapping")
    return trace.add(
        Pending(
            base=str(name),
            kind=NodeKind.EVENT,
            run=name,
            with_=dict(match or {}),
            each=None if each is None else as_items(each),
            wait_s=None if timeout is None else duration_s(timeout, f"{place}.timeout"),
        )
    )
