"""Follows a job: redraws a picture on a terminal, and prints a line per change elsewhere."""

from __future__ import annotations

import os
from contextlib import aclosing
from dataclasses import replace
from uuid import UUID

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from windlass.cli import marks
from windlass.cli.graph import Box, layout
from windlass.cli.screen import one_line, picture
from windlass.cli.snapshot import Snapshot
from windlass.cli.watching import snapshots
from windlass.client.async_client import AsyncClient
from windlass.core.errors import Broken
from windlass.core.states import JobState

# Lines that the headline and the note below the picture take.
MARGIN_LINES = 4


async def follow(client: AsyncClient, job_id: UUID, console: Console, *, hint: str = "") -> JobState:
    """Show the job on a console until it ends, and return its final state."""
    show = _redraw(client, job_id, console, hint) if can_redraw(console) else _tell_changes(client, job_id, console)
    return await show


def can_redraw(console: Console) -> bool:
    """Return whether the console can redraw a picture in place."""
    return console.is_terminal and not console.is_dumb_terminal and "CI" not in os.environ


async def _redraw(client: AsyncClient, job_id: UUID, console: Console, hint: str) -> JobState:
    with Live(console=console, auto_refresh=False, transient=False) as live:
        async with aclosing(snapshots(client, job_id)) as found:
            async for snapshot in found:
                live.update(_frame(snapshot, console.height, "" if snapshot.is_over else hint), refresh=True)
                if snapshot.is_over:
                    return snapshot.status
    raise _early(job_id)


def _frame(snapshot: Snapshot, height: int, hint: str) -> Group:
    boxes, left_out = fit_boxes(snapshot.boxes, max(height - MARGIN_LINES, 5))
    parts = [snapshot.headline(), picture(boxes)]
    if left_out:
        parts.append(Text(f"… and {left_out} more steps; `windlass show` prints all", style="bright_black"))
    if hint:
        parts.append(Text(hint, style="bright_black"))
    return Group(*parts)


def fit_boxes(boxes: list[Box], room: int) -> tuple[list[Box], int]:
    """Select as many boxes as there are lines, active nodes first, and keep the graph's order."""
    if len(boxes) <= room:
        return boxes, 0
    rank = {"RUNNING": 0, "FAILED": 0, "PARKED": 1, "HELD": 1, "QUEUED": 1, "READY": 1, "BLOCKED": 2}
    order = sorted(range(len(boxes)), key=lambda no: (rank.get(boxes[no].state or "", 3), no))
    kept = {boxes[no].name for no in order[:room]}
    shown = [replace(box, needs=tuple(need for need in box.needs if need in kept)) for box in boxes if box.name in kept]
    return shown, len(boxes) - len(shown)


async def _tell_changes(client: AsyncClient, job_id: UUID, console: Console) -> JobState:
    told: dict[str, str] = {}
    async with aclosing(snapshots(client, job_id)) as found:
        async for snapshot in found:
            for text in changes(snapshot.boxes, told):
                console.print(text)
            state = str(snapshot.status)
            if told.get("") != state:
                told[""] = state
                console.print(f"{marks.glyph(state)} job {job_id} {state}")
            if snapshot.is_over:
                return snapshot.status
    raise _early(job_id)


def _early(job_id: UUID) -> Broken:
    return Broken(f"the stream of job {job_id} stopped before the job ended")


def changes(boxes: list[Box], told: dict[str, str]) -> list[str]:
    """Return a line for each node whose state, count or attempt differs from the line in `told`."""
    lines = []
    for line in layout(boxes):
        box = line.box
        tries = f"attempt {box.attempt}" if box.attempt > 1 and not box.is_fan else ""
        count = f"{box.fan_done}/{box.fan}" if box.fan is not None else ""
        retries = f"retried {box.retries}" if box.is_fan and box.retries else ""
        now = "  ".join(part for part in (box.state or "", count, tries, retries) if part)
        if box.state in (None, "BLOCKED") or told.get(box.name) == now:
            continue
        told[box.name] = now
        took = marks.duration(box.seconds) if box.state in ("COMPLETED", "FAILED") else ""
        text = "  ".join(part for part in (box.name, now, took, box.note) if part)
        lines.append(f"  {marks.glyph(box.state)} {one_line(text)}")
    return lines
