"""Whether this process can do its work: its database accepts writes and has this release's schema, its own tasks turn.

The question is open to everybody, so however often it is asked, the database is asked once a second.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

from windlass.api.parts import Parts
from windlass.core.errors import BadSetting
from windlass.pure.service import OK
from windlass.store.migrate import standing
from windlass.views import handlers
from windlass.views.gauge import engines
from windlass.views.handlers import Missing

ANSWER_WITHIN_S = 2.0
LOOK_EVERY_S = 1.0
MISSING_MAX = 20
# A newer release has migrated the database, and this one may go on: information, not a fault.
NEWER = "newer than this release, compatible"


@dataclass(frozen=True, slots=True)
class State:
    """What was found: each part, and how many engines turn (None: it could not be asked)."""

    parts: dict[str, str] = field(default_factory=dict)
    engines: int | None = None
    # For people to know; the process is ready all the same.
    missing: tuple[Missing, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Whether every part is as it should be."""
        return all(found in (OK, NEWER) for found in self.parts.values())


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
        parts.update(self._parts.states())
        if self._parts.is_draining:
            parts["process"] = "is ending"
        engines = self._of_database.engines
        # Its own loops turn, though a busy database has not heard of it for a while.
        is_engine = parts.get("loops") == OK and engines is not None
        return State(parts, max(engines or 0, 1) if is_engine else engines, self._of_database.missing)

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
                trouble = await db.check_writes()
                if trouble is not None and trouble.is_lasting:
                    return State({"database": trouble.reason})
                schema = await standing(db, self._parts.folders)
                if schema.missing:
                    return State({"database": OK, "migrations": f"missing: {', '.join(schema.missing)}"})
                lacking = tuple(await handlers.missing(db))[:MISSING_MAX]
                migrations = NEWER if schema.unknown else OK
                return State({"database": OK, "migrations": migrations}, await engines(db), lacking)
        except BadSetting:
            return State({"database": OK, "migrations": "newer than this release, not compatible"})
        except Exception:
            # Whatever it was, an address or a user name in its text is not for everybody.
            return State({"database": f"no answer within {ANSWER_WITHIN_S:g} s"})
