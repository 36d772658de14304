"""Rules for a worker, checked at certain moments.

Each rule holds only without trouble around the worker: a lost connection or a pause may cost it time.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import timedelta
from typing import Protocol
from uuid import UUID

from windlass.core.queue import is_apart
from windlass.testing.sim.database import SimDatabase
from windlass.testing.sim.log import Key
from windlass.testing.sim.scheduler import START

# How long a bell may take from the commit to a claim, without trouble.
RUNG_WITHIN_S = 4.0

_HELD = "SELECT job_id, no, attempt FROM windlass.steps WHERE worker = $1 AND state = 'RUNNING' ORDER BY job_id, no"
_QUEUED = """
    SELECT * FROM (
        SELECT s.job_id, s.no, coalesce(
            (SELECT max(e.at) FROM windlass.events e WHERE e.job_id = s.job_id AND e.no = s.no), j.created_at
        ) AS since
        FROM windlass.steps s JOIN windlass.jobs j ON j.id = s.job_id
        WHERE s.state = 'QUEUED' AND s.queue = ANY($1::text[]) AND split_part(s.lane, ' ', 1) = ANY($2::text[])
          AND j.state IN ('QUEUED', 'DISPATCHING', 'PROCESSING', 'PREVIEW') AND NOT j.is_paused
    ) q WHERE since > $3 AND since < windlass.clock() - $4::interval ORDER BY job_id, no
"""


class Looked(Protocol):
    """The checked part of a worker."""

    id: UUID
    handlers: str

    @property
    def is_asleep(self) -> bool:
        """Tell whether it has room, and waits for a bell or for its slow check."""
        ...


async def check_rung(worker: Looked, db: SimDatabase, queues: Sequence[str]) -> None:
    """Report work that a worker's slow check found and a bell should have announced. It applies only while every bell
    is heard.
    """
    log, scheduler = db.log, db.scheduler
    ordinary = [queue for queue in queues if not is_apart(queue)]
    if db.faults.is_on or scheduler.bell_chance < 1 or not ordinary or not worker.is_asleep:
        return
    calm = START + timedelta(seconds=log.calm_at)
    within = timedelta(seconds=RUNG_WITHIN_S)
    for row in await db.real.fetch(_QUEUED, ordinary, list(worker.handlers), calm, within):
        log.violations.append(f"step {row['no']} of {row['job_id']} lay in its queue and no bell told an idle worker")


async def held_now(worker: Looked, db: SimDatabase) -> set[Key]:
    """Return the running attempts of this worker in the database."""
    return {(row["job_id"], row["no"], row["attempt"]) for row in await db.real.fetch(_HELD, worker.id)}


def farewell(worker: Looked, db: SimDatabase) -> Callable[[], Awaitable[None]]:
    """Prepare for a worker's leaving; the returned function then checks that it left nothing behind."""
    current = db.scheduler.current
    assert current is not None
    process, began = current.process, db.scheduler.now

    async def check() -> None:
        if process.troubled_at < began:
            for key in sorted(await held_now(worker, db)):
                db.log.violations.append(f"worker {worker.id} left in good order, and still has {key} in hand")

    return check
