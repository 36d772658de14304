"""Checks whether this process can work: its database accepts writes and has this release's schema, its loops run.

Anonymous clients may call it at any rate, so the database is queried at most once a second.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass, field

from windlass.api.parts import Parts
from windlass.core.errors import BadSetting, Unavailable
from windlass.pure.service import OK, WITHOUT
from windlass.store.migrate import schema_state
from windlass.store.outage import outage_of
from windlass.views import handlers
from windlass.views.gauge import engines
from windlass.views.handlers import Missing

ANSWER_WITHIN_S = 2.0
LOOK_EVERY_S = 1.0
MISSING_MAX = 20
# A newer release has migrated the database, and this release may go on: information, not a fault.
NEWER = "newer than this release, compatible"
# The check itself failed; the database may be healthy.
BROKEN = "could not be checked: an internal error; see the log of this process"

log = logging.getLogger("windlass.api")


@dataclass(frozen=True, slots=True)
class State:
    """The result: the state of each part, and how many engines run (None if that could not be read)."""

    parts: dict[str, str] = field(default_factory=dict)
    engines: int | None = None
    # For people to read; the process is ready all the same.
    missing: tuple[Missing, ...] = ()

    @property
    def is_ready(self) -> bool:
        """Return whether every part is healthy."""
        return all(found in (OK, NEWER, WITHOUT) for found in self.parts.values())


class Probe:
    """Checks the database at most once a second, regardless of how many requests arrive."""

    def __init__(self, parts: Parts, clock: Callable[[], float]) -> None:
        self._parts = parts
        self._clock = clock
        self._looked_s = float("-inf")
        self._of_database = State()
        self._looking: asyncio.Task[State] | None = None

    async def state(self) -> State:
        """Return the current state."""
        if self._looking is None and self._clock() - self._looked_s >= LOOK_EVERY_S:
            self._looking = asyncio.create_task(self._look(), name="windlass-readiness")
        if self._looking is not None:
            # A request that is cancelled must not cancel the check for the other requests.
            self._of_database = await asyncio.shield(self._looking)
        parts = dict(self._of_database.parts)
        parts.update(self._parts.services.states())
        policy = self._parts.policies.known
        if policy is not None and policy.fault is not None:
            parts["policy"] = policy.fault
        if self._parts.is_draining:
            parts["process"] = "is ending"
        engines = self._of_database.engines
        # This process's loops run, even if a busy database has no recent heartbeat of it.
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
                outage = await db.check_writes()
                if outage is not None and outage.is_lasting:
                    return State({"database": outage.reason})
                schema = await schema_state(db, self._parts.folders)
                if schema.missing:
                    return State({"database": OK, "migrations": f"missing: {', '.join(schema.missing)}"})
                lacking = tuple(await handlers.missing(db))[:MISSING_MAX]
                migrations = NEWER if schema.unknown else OK
                return State({"database": OK, "migrations": migrations}, await engines(db), lacking)
        except BadSetting:
            return State({"database": OK, "migrations": "newer than this release, not compatible"})
        except TimeoutError:
            return State({"database": f"no answer within {ANSWER_WITHIN_S:g} s"})
        except Unavailable as error:
            return State({"database": error.message})
        except Exception as error:
            # An error's text may contain an address or a user name, which anonymous clients must not see.
            if (outage := outage_of(error)) is not None:
                return State({"database": outage.reason})
            log.exception("the check of the database for /readyz failed")
            return State({"database": BROKEN})
