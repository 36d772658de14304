"""Places for jobs: a verdict with `max_concurrent_jobs` lets in so many jobs of a tenant at once.

A job has its place from the commit that lets it go on until it ends. Places are counted from the jobs that hold them,
so a job that ends in any way gives its place back, and nothing can leak. A job that finds no place is throttled: it is
PENDING, and the warden asks again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from uuid import UUID

import asyncpg

from windlass.core.constraint import NO_CONSTRAINTS
from windlass.core.verdict import Decision, Verdict
from windlass.store.statements import sql


class JobPlaces:
    """The locked places of one commit, by the rule and the tenant that share them."""

    def __init__(self, held: Mapping[str, Sequence[UUID]]) -> None:
        self._held = {key: list(jobs) for key, jobs in held.items()}

    @classmethod
    async def locked(cls, connection: asyncpg.Connection, asked: Sequence[tuple[Verdict, str]]) -> JobPlaces:
        """Lock the places that these verdicts for these tenants limit. Jobs that have ended hold none."""
        keys = sorted({_key(verdict, tenant) for verdict, tenant in asked if _is_limited(verdict)})
        rows = await connection.fetch(sql("place_lock"), keys) if keys else []
        return cls({row["key"]: row["jobs"] for row in rows})

    def verdict(self, verdict: Verdict, tenant: str, job_id: UUID) -> Verdict:
        """Give the job a place, or return the verdict that lets it wait for one."""
        most = verdict.constraints.max_concurrent_jobs
        if most is None or not _is_limited(verdict):
            return verdict
        held = self._held[_key(verdict, tenant)]
        if job_id in held:
            return verdict
        if len(held) >= most:
            reason = f"{most} jobs run at once by rule {verdict.rule}, which is the limit"
            return replace(verdict, decision=Decision.THROTTLE, reason=reason, constraints=NO_CONSTRAINTS)
        held.append(job_id)
        return verdict

    async def write(self, connection: asyncpg.Connection, unmade: Sequence[UUID] = ()) -> None:
        """Store who holds a place. `unmade` are jobs that were not made after all."""
        gone = set(unmade)
        for key, jobs in sorted(self._held.items()):
            await connection.execute(sql("place_write"), key, [job for job in jobs if job not in gone])


def _is_limited(verdict: Verdict) -> bool:
    return verdict.decision.admits and verdict.constraints.max_concurrent_jobs is not None


def _key(verdict: Verdict, tenant: str) -> str:
    return f"{verdict.rule}:{tenant}"
