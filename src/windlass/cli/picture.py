"""Turns the nodes of a graph's document into boxes, with fan-outs as counts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from windlass.cli.graph import Box
from windlass.cli.marks import duration, instant, seconds_between
from windlass.core.states import STEP_TERMINAL, StepState
from windlass.core.wait import WaitKind
from windlass.pure.job_failed import fault_text

_IN_LINE = "slot"
_WAITS: dict[str, str] = {
    WaitKind.RETRY: "tried again",
    WaitKind.SNOOZE: "asked to wait",
    WaitKind.CHILD: "waits for its child job",
}


def boxes_of_recipe(nodes: Sequence[dict[str, Any]]) -> list[Box]:
    """Return the boxes of a recipe's nodes, which have no state."""
    return [
        Box(
            node["step"],
            node["kind"],
            node["run"],
            tuple(node["needs"]),
            is_fan=node["each"] is not None,
            note=f"when {node['when']}" if node["when"] else "",
        )
        for node in nodes
    ]


def boxes_of_job(nodes: Sequence[dict[str, Any]], now: datetime) -> list[Box]:
    """Return the boxes of the nodes of a job's graph."""
    return [_box(node, now) for node in nodes]


def _box(node: dict[str, Any], now: datetime) -> Box:
    fan = node["fan"]
    counted = Counter[str]((fan or {}).get("by_status") or {})
    status = node["status"]
    if status == StepState.PARKED and counted:
        # A fan-out is parked while its children run, so its box shows the state of the children.
        status = next((one for one in (StepState.RUNNING, StepState.QUEUED) if counted[one]), StepState.PARKED)
    ended = instant(node["finished_at"]) if status in STEP_TERMINAL else now
    return Box(
        node["step"],
        node["kind"],
        node["run"],
        tuple(node["needs"]),
        state=str(status),
        is_fan=fan is not None,
        fan=None if fan is None else fan["total"],
        fan_done=sum(count for one, count in counted.items() if one in STEP_TERMINAL),
        attempt=node["attempt"],
        retries=node["failures"] + (fan or {}).get("failures", 0),
        seconds=seconds_between(instant(node["started_at"] or (fan or {}).get("started_at")), ended),
        note=_note(node, counted, now),
    )


def _note(node: dict[str, Any], counted: Counter[str], now: datetime) -> str:
    status, waiting_for, progress = node["status"], node["waiting_for"] or "", node["progress"]
    parts = []
    if counted[StepState.FAILED]:
        parts.append(f"{counted[StepState.FAILED]} failed")
    if status == StepState.PARKED and not counted:
        parts.append(_wait(waiting_for, instant(node["wake_at"]), now))
    elif status == StepState.HELD:
        parts.append("stands in line" if waiting_for == _IN_LINE else f"held: {waiting_for or 'not yet'}")
    # External work reports progress too.
    is_outside = status == StepState.PARKED and waiting_for.startswith(WaitKind.EXTERNAL)
    if (status == StepState.RUNNING or is_outside) and isinstance(progress, dict):
        pct = progress.get("pct")
        parts += [f"{round(pct, 1):g} %" if pct is not None else "", str(progress.get("message") or "")]
    if node["error"] and status not in (StepState.COMPLETED, StepState.SKIPPED):
        parts.append(fault_text(node["error"]))
    return " · ".join(part for part in parts if part)


def _wait(waiting_for: str, wake_at: datetime | None, now: datetime) -> str:
    kind, _, rest = waiting_for.partition(":")
    what = (
        f"waits for {rest}"
        if kind in (WaitKind.EXTERNAL, WaitKind.EVENT) and rest
        else _WAITS.get(kind, f"waits for {kind or 'a report'}")
    )
    left_s = seconds_between(now, wake_at)
    return f"{what}, {duration(left_s)} left" if left_s is not None and left_s > 0 else what
