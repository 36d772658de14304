"""The answerer applies what providers told of work before it was known here, once it is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from windlass.core.bell import AnswerDue
from windlass.engine.answer import BATCH_MAX, apply_due
from windlass.engine.loops.duty import Done, Due, Engine, EngineDuty
from windlass.store.database import Database


class Answerer(EngineDuty):
    """See the module."""

    name = "answerer"
    bells = (AnswerDue,)
    due = Due("due_answerer")

    def __init__(self, db: Database, chance: Callable[[], float]) -> None:
        self._db = db
        self._chance = chance

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """The duty, from what the engine has."""
        return cls(engine.db, engine.chance)

    async def run_once(self) -> Done:
        """Apply one batch."""
        count = await apply_due(self._db, chance=self._chance, limit=BATCH_MAX)
        return Done(count, count >= BATCH_MAX)
