"""A second app on the same database and queue, whose steps the workers of the first app do not have."""

from __future__ import annotations

from typing import Any

import windlass as wl
from windlass.testing.chaos.journal import journal
from windlass.testing.chaos.workload import PATIENT
from windlass.worker.context import Context


@wl.step(retry=PATIENT)
async def greet(n: int, ctx: Context) -> int:
    """Add one."""
    with journal(ctx):
        return n + 1


@wl.step(retry=PATIENT)
def reply(n: int, ctx: Context) -> int:
    """Add two, in a thread."""
    with journal(ctx):
        return n + 2


@wl.recipe
def visitor(n: int) -> Any:
    """Two steps, one after the other."""
    return reply(greet(n))


RECIPES = (visitor,)
