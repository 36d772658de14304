"""Hands back the steps of a dead worker process as soon as its death is seen, before its lease expires.

The heartbeat process watches the worker and knows which handlers had begun. Attempts that had begun are lost, each in
the company of the others. Attempts that were only claimed are released without a charge. The reports go through
`settle` like any other: if heartbeat and rescuer both report one death, the first report takes effect.
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
    db: Database, worker: UUID, begun: Set[Key], *, unnamed: int = 0, spread: Callable[[], float]
) -> int:
    """Report every attempt of this dead worker and end its lease. Returns how many reports took effect.

    `unnamed` counts begun attempts that are missing from `begun`: then any attempt may have begun.
    """
    company = len(begun) + unnamed - 1

    def outcome(key: Key) -> Outcome:
        return Lost(company, DIED) if key in begun or unnamed else Released()

    heard = await _report(db, worker, outcome, spread)
    await db.run(lambda connection: connection.execute(sql("worker_died"), worker))
    # The worker's last claim may have been committed after its death. None of those attempts has begun.
    return heard + await _report(db, worker, lambda _: Released(), spread)


async def _report(db: Database, worker: UUID, outcome: Callable[[Key], Outcome], spread: Callable[[], float]) -> int:
    keys = sorted(await held_keys(db, worker))
    heard = 0
    for start in range(0, len(keys), BATCH_MAX):
        reports = [Report(*key, outcome(key), source=SOURCE, worker=worker) for key in keys[start : start + BATCH_MAX]]
        heard += sum((await settle(db, reports, spread=spread)).took_effect)
    return heard
