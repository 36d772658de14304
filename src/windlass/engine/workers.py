"""The leases of workers. One row covers all attempts of a process; docs/decisions/worker-lease.md has the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from uuid import UUID

import msgspec

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
    """Start the worker's lease and record its handlers."""
    names = sorted(handlers)
    await db.run(
        lambda connection: connection.execute(
            sql("worker_enlist"), worker, host, pid, list(queues), concurrency, lease_s, names
        )
    )


async def renew(
    db: Database, worker: UUID, *, lease_s: float = LEASE_S, states: Mapping[str, str] | None = None
) -> bool:
    """Extend the lease. Returns False if the worker was marked as lost: it must enlist under a new id.

    `states` has the states of its process's services, for people to see.
    """
    told = None if states is None else msgspec.json.encode(dict(states)).decode()
    return await db.run(lambda connection: connection.fetchval(sql("worker_renew"), worker, lease_s, told)) is not None


async def dismiss(db: Database, worker: UUID) -> None:
    """End the lease of a worker that holds no attempts."""
    await db.run(lambda connection: connection.execute(sql("worker_dismiss"), worker))
