"""A lane: the steps of one queue that need the same handler and run for the same caller.

A worker claims only from the lanes of its handlers, and the lanes let callers take turns. A lane's name is the
handler's name, a space and the caller's id. Handler names contain no space. So the lanes of one handler are adjacent in
the index of queued steps, and a claim can skip them together.
"""

from __future__ import annotations

from collections.abc import Iterable

from windlass.core.plan import Node, NodeKind

# One claim considers at most this many lanes of a queue.
LANES_MAX = 16


def lane_of(node: Node, caller: str) -> str:
    """Return the lane of a node's steps. Only steps with a handler are queued; other steps have no lane."""
    return f"{node.run} {caller}" if node.kind is NodeKind.TASK else ""


def handler_of(lane: str) -> str:
    """Return the handler that the steps of a lane need, or '' if it is unknown."""
    return lane.partition(" ")[0]


def caller_of(lane: str) -> str:
    """Return the caller that the steps of a lane run for."""
    return lane.partition(" ")[2]


def spelled(handlers: Iterable[str]) -> str:
    """Join handler names for a claim. Spaces surround each name, so that one text search finds only whole names."""
    return f" {' '.join(sorted(handlers))} "
