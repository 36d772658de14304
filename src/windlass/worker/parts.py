"""Registers the parts of a worker as services, in an order of stopping that loses nothing."""

from __future__ import annotations

from typing import Any, Protocol

from windlass.pure.service import Part, Services
from windlass.worker.begun import Begun
from windlass.worker.heartbeat import Heartbeat


class _Closes(Protocol):
    async def close(self) -> None:
        """Stop the part."""
        ...


async def held_parts(
    services: Services,
    begun: Begun | None,
    heartbeat: Heartbeat,
    desk: Any,
    executor: _Closes,
    notes: _Closes,
    settler: _Closes,
    runner: _Closes,
    suspects: _Closes,
) -> None:
    """Register the parts, to be stopped in this order: parts that begin attempts, parts that report, the heartbeat.

    The table of begun attempts is stopped last, because the heartbeat reads it.
    """
    if begun is not None:
        await services.start(Part("begun", begun.close))
    await services.start(Part("heartbeat", heartbeat.stop, is_ready=heartbeat.is_beating))
    if desk is not None:
        await services.start(Part("desk", desk.close))
    for name, part in (
        ("executor", executor),
        ("notes", notes),
        ("settler", settler),
        ("runner", runner),
        ("apart", suspects),
    ):
        await services.start(Part(name, part.close))
