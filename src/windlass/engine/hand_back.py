"""Handing back the steps of a worker process that died, as soon as its death is seen and not when its lease ends.

The process that watches the worker (its heartbeat) knows which handlers had begun. Attempts that had begun are lost, in
the company of each other; attempts that were only claimed are released and charged with nothing. The reports pass the
same door as all others, so of two reports of one death (the heartbeat's, the rescuer's) the first takes effect.
"""

from __future__ import annotations

from collections.abc import Callable, Set
from uuid import UUID

from windlass.core.outcome import Lost, Outcome, Released, Report
from windlass.engine.claim import held_keys
from windlass.engine.settle import BATCH_MAX, settle
from windlass.store.database import Database
from windlass.store.statements import sql

Key = tuple[UUID, int, int]

SOURCE = "heartbeat"
DIED = "the worker process died"


async def hand_back(
    db: Database, worker: UUID, begun: Set[Key], *, unnamed: int = 0, chance: Callable[[], float]
) -> int:
    """Report every attempt of this dead worker and end its lease; returns how many reports took effect.

    `unnamed` counts attempts that had begun and are not in `begun`: then any attempt may have.
    """
    company = len(begun) + unnamed - 1

    def outcome(key: Key) -> Outcome:
        return Lost(company, DIED) if key in begun or unnamed else Released()

    heard = await _report(db, worker, outcome, chance)
    await db.run(lambda connection: connection.execute(sql("worker_died"), worker))
    # The worker's last claim may have been committed after its death. Nothing of that has begun.
    return heard + await _report(db, worker, lambda _: Released(), chance)


async def _report(db: Database, worker: UUID, outcome: Callable[[Key], Outcome], chance: Callable[[], float]) -> int:
    keys = sorted(await held_keys(db, worker))
    heard = 0
    for start in range(0, len(keys), BATCH_MAX):
        reports = [Report(*key, outcome(key), source=SOURCE, worker=worker) for key in keys[start : start + BATCH_MAX]]
        heard += sum((await settle(db, reports, chance=chance)).took_effect)
    return heard
