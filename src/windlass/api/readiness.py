"""Whether this process can do its work: its database answers, has this release's schema, and its own tasks turn.

The question is open to everybody, so however often it is asked, the database is asked once a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from windlass.api.parts import Parts
from windlass.core.errors import BadSetting
from windlass.engine.gauge import engines
from windlass.store.migrate import missing

ANSWER_WITHIN_S = 2.0
LOOK_EVERY_S = 1.0
# A task that has not had a turn for this long hangs; the longest that one waits by itself is a third of it.
STUCK_AFTER_S = 30.0
OK = "ok"


@dataclass(frozen=True, slots=True)
class State:
    """What was found: each part, and how many engines turn (None: it could not be asked)."""

    parts: dict[str, str] = field(default_factory=dict)
    engines: int | None = None

    @property
    def is_ready(self) -> bool:
        """Whether every part is as it should be."""
        return all(found == OK for found in self.parts.values())


class Probe:
    """Looks, at most once a second, however many ask."""

    def __init__(self, parts: Parts, clock: Callable[[], float]) -> None:
        self._parts = parts
        self._clock = clock
        self._looked_s = float("-inf")
        self._of_database = State()
        self._looking: asyncio.Task[State] | None = None

    async def state(self) -> State:
        """How things are now."""
        if self._looking is None and self._clock() - self._looked_s >= LOOK_EVERY_S:
            self._looking = asyncio.create_task(self._look(), name="windlass-readiness")
        if self._looking is not None:
            # One that asks and goes away must not take the look from the others.
            self._of_database = await asyncio.shield(self._looking)
        parts = dict(self._of_database.parts)
        for name, age_s in self._parts.alive().items():
            parts[name] = OK if age_s <= STUCK_AFTER_S else f"has not turned for {age_s:.0f} s"
        if self._parts.is_draining:
            parts["process"] = "is ending"
        return State(parts, self._of_database.engines)

    async def _look(self) -> State:
        try:
            return await self._ask()
        finally:
            self._looked_s = self._clock()
            self._looking = None

    async def _ask(self) -> State:
        db = self._parts.db
        try:
            async with asyncio.timeout(ANSWER_WITHIN_S):
                names = await missing(db)
                if names:
                    return State({"database": OK, "migrations": f"missing: {', '.join(names)}"})
                return State({"database": OK, "migrations": OK}, await engines(db))
        except BadSetting:
            return State({"database": OK, "migrations": "newer than this release"})
        except Exception:
            # Whatever it was, an address or a user name in its text is not for everybody.
            return State({"database": f"no answer within {ANSWER_WITHIN_S:g} s"})
