"""Draws the graph as lines of text, one per node, with each fan-out as a bar. Recipes, jobs and live views share it.

Nodes in one column follow each other. A fork is drawn as branches. A node that joins branches returns to the column
in which they parted:

    ✓ script
    ├─ ✓ shots   ×6  ████████████████ 6/6
    └─ ✓ poster
    ◐ stitch   ← shots, poster

The column of a node is therefore the column of its immediate dominator: the last node that every path to it visits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from windlass.cli.marks import bar, duration, glyph, has_unicode

ROOT = -1


@dataclass(frozen=True, slots=True)
class Box:
    """One node of the picture: from the plan alone, or with the state of its steps in a job."""

    name: str
    kind: str
    run: str
    needs: tuple[str, ...]
    state: str | None = None
    is_fan: bool = False
    fan: int | None = None
    fan_done: int = 0
    attempt: int = 0
    retries: int = 0
    seconds: float | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the picture; `lead` holds the branches before the glyph."""

    lead: str
    box: Box


def layout(boxes: Sequence[Box]) -> list[Line]:
    """Place the nodes on lines. A node must come after the nodes that it needs."""
    number = {box.name: no for no, box in enumerate(boxes)}
    needs = [sorted(number[name] for name in box.needs) for box in boxes]
    parents = _dominators(needs)
    children: dict[int, list[int]] = {}
    for no, parent in enumerate(parents):
        children.setdefault(parent, []).append(no)
    lines: list[Line] = []
    # A stack replaces recursion, because a chain of thousands of nodes would need thousands of nested calls.
    stack: list[tuple[int, str, str]] = [(no, lead, rest) for no, lead, rest in _arranged(ROOT, "", children, needs)]
    stack.reverse()
    while stack:
        no, lead, rest = stack.pop()
        lines.append(Line(lead, boxes[no]))
        stack.extend(reversed(_arranged(no, rest, children, needs)))
    return lines


def _dominators(needs: list[list[int]]) -> list[int]:
    """Return for each node the last node that every path to it visits, or ROOT."""
    parents: list[int] = []
    depth: list[int] = []
    for needed in needs:
        meet = needed[0] if needed else ROOT
        for other in needed[1:]:
            while meet != other:
                # Walk up from the deeper node until the two paths meet.
                if other == ROOT or (meet != ROOT and depth[meet] >= depth[other]):
                    meet = parents[meet]
                else:
                    other = parents[other]
        parents.append(meet)
        depth.append(0 if meet == ROOT else depth[meet] + 1)
    return parents


def _arranged(
    parent: int, indent: str, children: dict[int, list[int]], needs: list[list[int]]
) -> list[tuple[int, str, str]]:
    """Return the children of a node, each with the text before its line and the text before the lines below it."""
    own = children.get(parent, [])
    branches = [no for no in own if len(needs[no]) <= 1]
    joins = [no for no in own if len(needs[no]) > 1]
    if len(branches) == 1 and not joins:
        return [(branches[0], indent, indent)]
    tee, corner, pipe = ("├─ ", "└─ ", "│  ") if has_unicode() else ("|- ", "`- ", "|  ")
    placed = []
    for place, no in enumerate(branches):
        is_last = place == len(branches) - 1
        placed.append((no, indent + (corner if is_last else tee), indent + ("   " if is_last else pipe)))
    return placed + [(no, indent, indent) for no in joins]


def cells(line: Line) -> tuple[str, str, str, str, str]:
    """Return the columns of a line: tree and name, fan-out, state, time, and remarks."""
    box = line.box
    mark = glyph(box.state) if box.state else ("○" if has_unicode() else "o")
    return (
        f"{line.lead}{mark} {box.name}",
        _fan(box),
        box.state or box.kind,
        duration(box.seconds),
        " · ".join(part for part in (_retries(box), _joined(box), box.note) if part),
    )


def _fan(box: Box) -> str:
    if not box.is_fan:
        return ""
    times = "×" if has_unicode() else "x"
    if box.fan is None:
        return f"{times}n"
    return f"{times}{box.fan} {bar(box.fan_done, box.fan)} {box.fan_done}/{box.fan}"


def _retries(box: Box) -> str:
    parts = []
    if box.retries:
        parts.append(f"{'↻' if has_unicode() else 'retried '}{box.retries}")
    if box.attempt > 1 and not box.is_fan:
        parts.append(f"attempt {box.attempt}")
    return " ".join(parts)


def _joined(box: Box) -> str:
    arrow = "←" if has_unicode() else "<-"
    return f"{arrow} {', '.join(box.needs)}" if len(box.needs) > 1 else ""


def plain_lines(boxes: Sequence[Box]) -> list[str]:
    """Return the picture without colour, with aligned columns."""
    rows = [cells(line) for line in layout(boxes)]
    widths = [max((len(row[column]) for row in rows), default=0) for column in range(4)]
    out = []
    for row in rows:
        padded = [text.ljust(width) for text, width in zip(row, widths, strict=False) if width]
        out.append("  ".join([*padded, row[4]]).rstrip())
    return out
