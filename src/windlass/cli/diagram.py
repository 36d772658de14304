"""Writes the graph for other programs: Mermaid and Graphviz."""

from __future__ import annotations

from collections.abc import Sequence

from windlass.cli.graph import Box

_FILL = {
    "COMPLETED": "#d3f2d9",
    "RUNNING": "#cfe8fb",
    "QUEUED": "#fbf1c9",
    "READY": "#fbf1c9",
    "PARKED": "#ecdcf7",
    "HELD": "#ecdcf7",
    "FAILED": "#f9d2d2",
}


def _label(box: Box) -> str:
    parts = [box.name]
    if box.is_fan:
        parts.append(f"×{box.fan if box.fan is not None else 'n'}")
    if box.state:
        parts.append(box.state)
    return " · ".join(parts)


def mermaid(boxes: Sequence[Box]) -> str:
    """Return the graph as a Mermaid flowchart."""
    number = {box.name: no for no, box in enumerate(boxes)}
    lines = ["flowchart TD"]
    for no, box in enumerate(boxes):
        text = _label(box).replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
        shape = ('[["', '"]]') if box.is_fan else ('("', '")') if box.kind == "timer" else ('["', '"]')
        lines.append(f"    s{no}{shape[0]}{text}{shape[1]}")
    lines += [f"    s{number[need]} --> s{no}" for no, box in enumerate(boxes) for need in box.needs]
    lines += [f"    style s{no} fill:{_FILL[b.state]}" for no, b in enumerate(boxes) if b.state and b.state in _FILL]
    return "\n".join(lines)


def dot(boxes: Sequence[Box], name: str) -> str:
    """Return the graph as a Graphviz digraph."""

    def quoted(text: str) -> str:
        return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'

    lines = [f"digraph {quoted(name)} {{", "    node [shape=box, style=filled, fillcolor=white];"]
    for box in boxes:
        fill = f", fillcolor={quoted(_FILL[box.state])}" if box.state in _FILL else ""
        rim = ", peripheries=2" if box.is_fan else ""
        lines.append(f"    {quoted(box.name)} [label={quoted(_label(box))}{fill}{rim}];")
    lines += [f"    {quoted(need)} -> {quoted(box.name)};" for box in boxes for need in box.needs]
    return "\n".join([*lines, "}"])
