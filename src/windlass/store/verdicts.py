"""The rows of verdicts that follow from drafts."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

import asyncpg

from windlass.core.draft import Draft
from windlass.core.effect import RecordVerdict
from windlass.core.verdict import Decision, Verdict
from windlass.store.columns import encode
from windlass.store.statements import bound, sql

# The column is a smallint.
ATTEMPTS_MAX = 32_767


class VerdictWriter:
    """Writes verdicts, and which policy a job may go on under (store/writers.py)."""

    def touches(self, draft: Draft) -> bool:
        """Return whether the policy was asked."""
        return bool(draft.effects_of(RecordVerdict))

    async def write(self, connection: asyncpg.Connection, drafts: Sequence[Draft]) -> None:
        """Write the verdicts in the order in which they were made. A plain yes has no row."""
        for draft in drafts:
            for made in draft.effects_of(RecordVerdict):
                if made.no is None:
                    limits = attempts_max(made.verdict), runs_s(made.verdict)
                    about = (made.is_good, made.policy, made.verdict.rule, made.ask_at, *limits)
                    await connection.execute(sql("verdict_good"), draft.job.id, *about)
                if made.verdict.decision is not Decision.ALLOW:
                    await put(connection, draft.job.id, made)


async def put(connection: asyncpg.Connection, job_id: UUID, made: RecordVerdict) -> None:
    """Write the row of a verdict. The job's row is locked."""
    verdict = made.verdict
    await connection.execute(
        *bound(
            "verdict_put",
            job_id=job_id,
            edge=made.edge,
            no=made.no,
            attempt=made.attempt,
            decision=verdict.decision,
            rule=verdict.rule,
            policy=made.policy,
            reason=verdict.reason,
            constraints=constraints_text(verdict),
        )
    )


def attempts_max(verdict: Verdict) -> int | None:
    """Return how often a step may be tried, or None if the verdict does not limit it."""
    retries = verdict.constraints.max_retries
    return None if retries is None else min(retries + 1, ATTEMPTS_MAX)


def runs_s(verdict: Verdict) -> float | None:
    """Return how long the job may run, or None if the verdict does not limit it."""
    most_ms = verdict.constraints.max_runtime_ms
    return None if most_ms is None or not verdict.decision.admits else most_ms / 1000


def constraints_text(verdict: Verdict) -> str | None:
    """Return the verdict's constraints as they are stored, or None if there are none."""
    plain = verdict.constraints.plain()
    return encode(plain) if plain else None
