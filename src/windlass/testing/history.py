"""A job's history as text, for the reader of a failed test."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from windlass.core.plan import Plan
from windlass.views.explain import Reason, step_name
from windlass.views.read import EventView, JobView, StepView


def history(
    view: JobView, plan: Plan, steps: Sequence[StepView], events: Sequence[EventView], reasons: Sequence[Reason]
) -> str:
    """Return the job, its steps, every event with the time since the job's creation, and what open steps wait for."""
    names = {step.no: step_name(plan, step) for step in steps}
    lines = [f"job {view.id} of recipe {view.recipe} is {view.state}"]
    if view.error:
        lines.append(f"  error: {_json(view.error)}")
    lines.append("steps:")
    lines += [f"  {names[step.no]:<20} {step.state:<10} {_detail(step)}" for step in steps]
    lines.append("events:")
    lines += [
        f"  {_since(view.created_at, event.at):>12} {event.seq:>4} {event.type:<16} "
        f"{'' if event.no is None else names.get(event.no, str(event.no)):<20} "
        f"{event.source}{'' if event.payload is None else ' ' + _json(event.payload)}"
        for event in events
    ]
    if not view.is_finished:
        lines.append("waits:")
        lines += [f"  {reason.step}: {reason.because}" for reason in reasons]
    return "\n".join(lines)


def _detail(step: StepView) -> str:
    parts = [f"attempts={step.attempt}"]
    if step.error:
        parts.append(f"error={_json(step.error)}")
    elif step.output is not None:
        parts.append(f"output={_json(step.output)}")
    return " ".join(parts)


def _json(value: Any) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 200 else text[:199] + "…"


def _since(start: datetime, at: datetime) -> str:
    return f"+{at - start}"
