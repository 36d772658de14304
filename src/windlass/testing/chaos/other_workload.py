"""A second app on the same database and queue, whose steps the workers of the first app do not have."""

from __future__ import annotations

from typing import Any

import windlass as wl
from windlass.testing.chaos.journal import journal
from windlass.testing.chaos.workload import PATIENT
from windlass.worker.context import Context


@wl.step(retry=PATIENT)
async def greet(n: int, ctx: Context) -> int:
    """Nothing but a number."""
    with journal(ctx):
        return n + 1


@wl.step(retry=PATIENT)
def reply(n: int, ctx: Context) -> int:
    """The same in a thread."""
    with journal(ctx):
        return n + 2


@wl.recipe
def visitor(n: int) -> Any:
    """Two steps, one after the other."""
    return reply(greet(n))


RECIPES = (visitor,)
