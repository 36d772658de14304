"""A lane: the steps of one queue that need the same handler and run for the same caller.

A worker claims only from the lanes of the handlers that it has, and callers take turns by their lanes. A lane's name
is the handler's name, a space and the caller's id. Handler names hold no space, so all lanes of one handler lie next to
each other in the index of queued steps, and a claim can jump over them.
"""

from __future__ import annotations

from collections.abc import Iterable

from windlass.core.plan import Node, NodeKind

# At most so many lanes of a queue are looked at in one claim.
LANES_MAX = 16


def lane_of(node: Node, caller: str) -> str:
    """The lane of a node's steps. Only a handler's steps are ever queued; all others have none."""
    return f"{node.run} {caller}" if node.kind is NodeKind.TASK else ""


def handler_of(lane: str) -> str:
    """The handler that the steps of a lane need; '' if it is not known."""
    return lane.partition(" ")[0]


def caller_of(lane: str) -> str:
    """The caller that the steps of a lane run for."""
    return lane.partition(" ")[2]


def spelled(handlers: Iterable[str]) -> str:
    """Handler names as a claim sends them: each between two spaces, so that one search finds a whole name."""
    return f" {' '.join(sorted(handlers))} "
