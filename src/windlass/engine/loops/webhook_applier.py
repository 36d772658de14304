"""The webhook applier applies provider events that arrived before their provider job was known, once it is known."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from windlass.core.bell import AnswerDue
from windlass.engine.answer import BATCH_MAX, apply_due
from windlass.engine.loops.duty import AnyRow, Done, Engine, EngineDuty
from windlass.store.database import Database


class WebhookApplier(EngineDuty):
    """Applies events that have become DUE."""

    name = "webhook_applier"
    bells = (AnswerDue,)
    due = AnyRow("provider_events", "DUE")

    def __init__(self, db: Database, spread: Callable[[], float]) -> None:
        self._db = db
        self._spread = spread

    @classmethod
    def made(cls, engine: Engine) -> Self:
        """Build the duty from the engine's parts."""
        return cls(engine.db, engine.spread)

    async def run_once(self) -> Done:
        """Apply one batch of events."""
        count = await apply_due(self._db, spread=self._spread, limit=BATCH_MAX)
        return Done(count, count >= BATCH_MAX)
