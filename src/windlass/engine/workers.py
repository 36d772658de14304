"""Workers' leases. One row stands for all attempts of a process; see docs/decisions/worker-lease.md."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from uuid import UUID

from windlass.store.database import Database
from windlass.store.statements import sql

LEASE_S = 15.0


async def enlist(
    db: Database,
    worker: UUID,
    *,
    host: str,
    pid: int,
    queues: Sequence[str],
    concurrency: int,
    lease_s: float = LEASE_S,
    handlers: Iterable[str] = (),
) -> None:
    """Begin the worker's lease, and list the handlers that it has."""
    names = sorted(handlers)
    await db.run(
        lambda connection: connection.execute(
            sql("worker_enlist"), worker, host, pid, list(queues), concurrency, lease_s, names
        )
    )


async def renew(db: Database, worker: UUID, *, lease_s: float = LEASE_S) -> bool:
    """Extend the lease; False if the worker was marked as lost: it must come back under a new id."""
    return await db.run(lambda connection: connection.fetchval(sql("worker_renew"), worker, lease_s)) is not None


async def dismiss(db: Database, worker: UUID) -> None:
    """The worker leaves, holding nothing."""
    await db.run(lambda connection: connection.execute(sql("worker_dismiss"), worker))
