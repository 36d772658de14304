"""The costs of a job's attempts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from uuid import UUID

from windlass.store.database import Database
from windlass.store.statements import sql


@dataclass(frozen=True, slots=True)
class CostView:
    """The cost of one attempt."""

    no: int
    node: int
    index: int | None
    attempt: int
    provider: str | None
    amount: Decimal
    tokens_in: int
    tokens_out: int
    seconds: float
    at: datetime


async def costs_of(db: Database, job_id: UUID) -> Sequence[CostView]:
    """Return the costs of the job's attempts, in the order of the steps."""
    async with db.connection() as connection:
        rows = await connection.fetch(sql("cost_list"), job_id)
    return [CostView(*row) for row in rows]
