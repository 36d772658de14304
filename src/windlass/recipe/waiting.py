"""Steps of a recipe that only wait: for time, an event or people. And the mark up to which an undo goes back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from windlass.core.errors import BadRecipe
from windlass.core.plan import NodeKind
from windlass.recipe.approving import approval_with, expires_s, terms_json
from windlass.recipe.asks import Asks
from windlass.recipe.duration import duration_s
from windlass.recipe.handle import Pending, StepHandle, Text, Value, as_items
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


def approve(
    question: str | Text | Value,
    *,
    show: Mapping[str, Any] | None = None,
    who: Any = None,
    need: int = 1,
    expires: str | float | None = None,
    escalate: Mapping[str, Any] | None = None,
    on_reject: str = "fail",
    each: Any = None,
) -> StepHandle:
    """Add a step that asks people; it completes when `need` of them have approved.

    `show` are the values that they see: what they approve is bound to them. `who` names roles, or is a mapping with
    `roles` and `callers`; without it every caller with the scope `approvals:decide` may decide, except the job's own
    caller. `escalate` is a mapping with `after`, and with `to` (roles) or `callers`, who may decide from then on. After
    `expires` (a day by default) the step fails with `approval_expired`. A rejection fails it with `approval_rejected`;
    with `on_reject="continue"` its result says `approved: false`. With `each`, it asks once per item of that list.
    """
    trace = current_trace()
    if trace is None:
        raise outside("wl.approve")
    place = "steps.approve"
    if not isinstance(question, str | Text | Value):
        raise BadRecipe("a question is text", place=f"{place}.approve", remedy='Ask something, such as "Publish?"')
    terms = {"who": who, "need": need, "expires": expires, "escalate": escalate, "on_reject": on_reject}
    return trace.add(
        Pending(
            base="approve",
            kind=NodeKind.APPROVAL,
            run="",
            with_=approval_with(question, show, place),
            each=None if each is None else as_items(each),
            asks=Asks(wait_s=expires_s(expires, place), approval=terms_json(terms, place)),
        )
    )
